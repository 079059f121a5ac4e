"""The optimisers: Adafactor as the paper has it, AdamW, and Muon."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
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
# Jordan's quintic: steep at zero, and near one it stays between 0.7 and 1.2.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5


def orthogonalize(stacks: Sequence[jax.Array], dtype: Any) -> list[jax.Array]:
    """Every matrix of these stacks with its singular values turned into nearly one, by Newton-Schulz iteration.

    The products are in `dtype`: what bfloat16 rounds away is less than what the iteration leaves undone. All matrices
    of a shape go through one batched product, since those of one parameter alone do not fill a GPU.
    """
    wide = [jnp.swapaxes(x, 1, 2) if x.shape[1] > x.shape[2] else x for x in stacks]
    found: dict[int, jax.Array] = {}
    for shape in {x.shape[1:]: None for x in wide}:
        members = [i for i, x in enumerate(wide) if x.shape[1:] == shape]
        together = _newton_schulz(jnp.concatenate([wide[i] for i in members]), dtype)
        ends = np.cumsum([len(wide[i]) for i in members])[:-1]
        found |= dict(zip(members, jnp.split(together, ends), strict=True))
    return [
        jnp.swapaxes(found[i], 1, 2) if x.shape[1] > x.shape[2] else found[i] for i, x in enumerate(stacks)
    ]


def _newton_schulz(x_LMN: jax.Array, dtype: Any) -> jax.Array:
    a, b, c = NEWTON_SCHULZ
    norm_L11 = jnp.sqrt(jnp.sum(x_LMN * x_LMN, axis=(1, 2), keepdims=True))
    x = (x_LMN / (norm_L11 + 1e-8)).astype(dtype)
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = jnp.einsum("lmn,lkn->lmk", x, x)
        fourth = jnp.einsum("lmn,lnk->lmk", square, square, preferred_element_type=jnp.float32)
        # Added up in float32 and rounded once: that leaves a third of the error.
        polynomial = a * jnp.eye(x.shape[1]) + b * square.astype(jnp.float32) + c * fourth
        x = jnp.einsum("lmk,lkn->lmn", polynomial.astype(dtype), x)
    return x.astype(x_LMN.dtype)


def scale_by_muon(beta: float, dtype: Any) -> optax.GradientTransformation:
    """`optax.contrib.scale_by_muon` for stacks of matrices, with its state."""

    def update(grads: Params, state: Any, params: Params | None = None) -> tuple[Params, Any]:
        count = state.count + 1
        mu = jax.tree.map(lambda g, m: (1 - beta) * g + beta * m, grads, state.mu)
        ahead = jax.tree.map(
            lambda g, m: beta * m / (1 - beta ** (count + 1)) + (1 - beta) * g / (1 - beta**count), grads, mu
        )
        leaves, form = jax.tree.flatten(ahead)
        orthogonal = jax.tree.unflatten(form, orthogonalize(leaves, dtype))
        return orthogonal, state._replace(count=count, mu=mu)

    return optax.GradientTransformation(optax.contrib.scale_by_muon(NEWTON_SCHULZ, beta=beta).init, update)


def muon(config: OptimizerConfig, rate: optax.Schedule, dtype: Any) -> optax.GradientTransformation:
    """Muon on the layers' matrices, each by itself, and AdamW on all else.

    Updates are scaled to AdamW's usual size (root mean square 0.2), so one rate serves both.
    """

    def scale(updates: Params, params: Params | None = None) -> Params:
        return jax.tree.map(lambda u: 0.2 * max(u.shape[1:]) ** 0.5 * u, updates)

    def label(path: tuple[Any, ...], _: Any) -> str:
        return "muon" if path[-1].name in MUON_MATRICES else "adam"

    return optax.partition(
        {
            "muon": optax.chain(
                scale_by_muon(config.muon_beta, dtype),
                optax.stateless(scale),
                optax.add_decayed_weights(config.weight_decay),
                optax.scale_by_learning_rate(rate),
            ),
            "adam": optax.adamw(rate, config.beta1, config.beta2, weight_decay=0.0, nesterov=True),
        },
        partial(jax.tree_util.tree_map_with_path, label),
    )


def make_optimizer(
    config: OptimizerConfig, steps: int, dtype: str = "float32"
) -> optax.GradientTransformation:
    """`dtype` is that of the products of which Muon has many; moments and updates are float32."""
    rate = rate_schedule(config, steps)
    if config.name == "adafactor":
        update = adafactor(config, rate)
    elif config.name == "muon":
        update = muon(config, rate, jnp.dtype(dtype))
    else:
        update = optax.adamw(rate, config.beta1, config.beta2, weight_decay=config.weight_decay)
    return optax.chain(optax.clip_by_global_norm(config.clip_norm), update) if config.clip_norm else update
