"""The optimisers: Adafactor as the paper has it, AdamW, and Muon."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib

from lexinvariant.config import OptimizerConfig
from lexinvariant.model.params import Params


def rate_schedule(config: OptimizerConfig, steps: int) -> optax.Schedule:
    """Linear warm-up to the peak, then cosine or linear down to the final share, or constant."""
    final = config.rate * config.final_rate_share
    rest = max(steps - config.warmup_steps, 1)
    after: optax.Schedule = {
        "cosine": optax.cosine_decay_schedule(config.rate, rest, config.final_rate_share),
        "linear": optax.linear_schedule(config.rate, final, rest),
        "constant": optax.constant_schedule(config.rate),
    }[config.schedule]
    if config.warmup_steps == 0:
        return after
    # The first step already moves: step s of the warm-up has the rate (s + 1) / warmup_steps of the peak.
    warmup = optax.linear_schedule(config.rate / config.warmup_steps, config.rate, config.warmup_steps - 1)
    return optax.join_schedules([warmup, after], [config.warmup_steps])


def _block_rms(tree: Params) -> Params:
    """Root mean square of every matrix; layers are stacked, so theirs is taken layer by layer."""

    def rms(x: jax.Array, first_axis: int) -> jax.Array:
        return jnp.sqrt(jnp.mean(x * x, axis=tuple(range(first_axis, x.ndim)), keepdims=True))

    layers, hindsight = (jax.tree.map(lambda x: rms(x, 1), stack) for stack in (tree.layers, tree.hindsight))
    return replace(jax.tree.map(lambda x: rms(x, 0), tree), layers=layers, hindsight=hindsight)


def clip_by_block_rms(threshold: float) -> optax.GradientTransformation:
    """Optax's transformation of that name, for stacked layers."""

    def clip(updates: Params, params: Params | None = None) -> Params:
        return jax.tree.map(
            lambda u, rms: u / jnp.maximum(1.0, rms / threshold), updates, _block_rms(updates)
        )

    return optax.stateless(clip)


def scale_by_param_block_rms(min_scale: float = 1e-3) -> optax.GradientTransformation:
    """Optax's transformation of that name, for stacked layers."""

    def scale(updates: Params, params: Params) -> Params:
        return jax.tree.map(lambda u, rms: u * jnp.maximum(rms, min_scale), updates, _block_rms(params))

    return optax.stateless(scale)


def adafactor(config: OptimizerConfig, rate: optax.Schedule) -> optax.GradientTransformation:
    """`optax.adafactor` with the paper's settings, step for step, but layer by layer in stacked arrays.

    The factored moments need no care: optax factors the two largest axes, and keeps the layers apart.
    """
    return optax.chain(
        optax.scale_by_factored_rms(decay_rate=0.8, min_dim_size_to_factor=128, epsilon=1e-30),
        clip_by_block_rms(1.0),
        optax.scale_by_learning_rate(rate, flip_sign=False),
        scale_by_param_block_rms(),
        optax.ema(config.beta1, debias=False),
        *([optax.add_decayed_weights(config.weight_decay)] if config.weight_decay else []),
        optax.scale(-1.0),
    )


MUON_MATRICES = ("query_DE", "key_DE", "value_DE", "out_ED", "up_DF", "down_FD")
MUON_AXES = optax.contrib.MuonDimensionNumbers(reduction_axis=1, output_axis=2)  # axis 0 is the layer


def muon(config: OptimizerConfig, rate: optax.Schedule) -> optax.GradientTransformation:
    """`optax.contrib.muon` on the layers' matrices, each by itself, and AdamW on all else.

    Updates are scaled to AdamW's usual size (root mean square 0.2), so one rate serves both.
    """

    def axes(path: tuple[Any, ...], _: Any) -> Any:
        return MUON_AXES if path and path[-1].name in MUON_MATRICES else None

    return optax.contrib.muon(
        rate,
        beta=config.muon_beta,
        weight_decay=config.weight_decay,
        adam_b1=config.beta1,
        adam_b2=config.beta2,
        muon_weight_dimension_numbers=partial(jax.tree_util.tree_map_with_path, axes),
        consistent_rms=0.2,
    )


def make_optimizer(config: OptimizerConfig, steps: int) -> optax.GradientTransformation:
    rate = rate_schedule(config, steps)
    if config.name == "adafactor":
        update = adafactor(config, rate)
    elif config.name == "muon":
        update = muon(config, rate)
    else:
        update = optax.adamw(rate, config.beta1, config.beta2, weight_decay=config.weight_decay)
    return optax.chain(optax.clip_by_global_norm(config.clip_norm), update) if config.clip_norm else update
