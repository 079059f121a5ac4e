"""What changes with the step: how much of the lexicon is permuted, or random."""

import jax
import jax.numpy as jnp

from lexinvariant.config import LexiconConfig
from lexinvariant.model.lexicon import Curriculum


def curriculum_at(config: LexiconConfig, step: jax.Array, steps: int, key: jax.Array) -> Curriculum:
    """All that the lexicons of one step have in common; `key` is the step's own."""
    return Curriculum(anneal_hi(config, step, steps), p_at(config, step, steps), key)


def anneal_hi(config: LexiconConfig, step: jax.Array, steps: int) -> jax.Array:
    """The upper end of the share of permuted symbols: rises linearly, then infinity (every symbol, always)."""
    progress = step.astype(jnp.float32) / max(config.anneal_share * steps, 1e-9)
    hi = config.anneal_from + (config.anneal_to - config.anneal_from) * progress
    return jnp.where(progress < 1, hi, jnp.inf)


def p_at(config: LexiconConfig, step: jax.Array, steps: int) -> jax.Array:
    """The share of randomised tokens: constant, and at the end falling linearly to 0."""
    if config.p_anneal_share == 0:
        return jnp.float32(config.p)
    left = (steps - step.astype(jnp.float32)) / (config.p_anneal_share * steps)
    return config.p * jnp.minimum(left, 1.0)
