"""What changes with the step: how much of the lexicon is permuted."""

import jax
import jax.numpy as jnp

from lexinvariant.config import LexiconConfig


def anneal_hi(config: LexiconConfig, step: jax.Array, steps: int) -> jax.Array:
    """The upper end of the share of permuted symbols: rises linearly, then infinity (every symbol, always)."""
    progress = step.astype(jnp.float32) / max(config.anneal_share * steps, 1e-9)
    hi = config.anneal_from + (config.anneal_to - config.anneal_from) * progress
    return jnp.where(progress < 1, hi, jnp.inf)
