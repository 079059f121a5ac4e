"""One training step: loss, gradient, update. A pure function of (state, batch)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from lexinvariant.config import TrainConfig
from lexinvariant.model.params import Params
from lexinvariant.model.readout import decipher_logits
from lexinvariant.model.transformer import forward
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.training.curriculum import anneal_hi


def tail_length(context: int) -> int:
    """How many positions are "the end of the context": 100, as in the paper, or a fifth of a short context."""
    return min(100, -(-context // 5))


@dataclass(frozen=True)
class TrainState:
    """All that a run carries from step to step."""

    step: Any
    params: Params
    optimizer: Any


jax.tree_util.register_dataclass(TrainState)


class DeviceBatch(NamedTuple):
    """A batch on the devices."""

    tok_BT: jax.Array
    mask_BT: jax.Array
    row_B: jax.Array  # number of each row in the global batch: the address of its randomness


class Sums(NamedTuple):
    """Sums over a batch, so that parts of a batch and batches add up; `means` divides."""

    nats: jax.Array
    tokens: jax.Array
    tail_nats: jax.Array
    tail_tokens: jax.Array
    decipher_nats: jax.Array
    deciphered: jax.Array
    tail_deciphered: jax.Array


def means(sums: Sums) -> dict[str, Any]:
    """Loss and tail loss in nats a token, and the share of symbols that the head names rightly."""
    sums = jax.tree.map(lambda x: x.astype(jnp.float32), sums)
    count, tail_count = sums.tokens, jnp.maximum(sums.tail_tokens, 1)
    return {
        "loss": sums.nats / count,
        "tail_loss": sums.tail_nats / tail_count,
        "decipher_loss": sums.decipher_nats / count,
        "deciphered": sums.deciphered / count,
        "tail_deciphered": sums.tail_deciphered / tail_count,
    }


def sum_up(logp_BT: jax.Array, decipher: tuple[jax.Array, jax.Array] | None, mask_BT: jax.Array) -> Sums:
    """Reduce what was measured at every position; `decipher` is (nats_BT, is_right_BT)."""
    tail_BT = mask_BT & (jnp.arange(mask_BT.shape[1]) >= mask_BT.shape[1] - tail_length(mask_BT.shape[1]))
    nats_BT, right_BT = decipher or (jnp.zeros_like(logp_BT), jnp.zeros_like(mask_BT))
    return Sums(
        nats=-jnp.sum(logp_BT, where=mask_BT),
        tokens=jnp.sum(mask_BT),
        tail_nats=-jnp.sum(logp_BT, where=tail_BT),
        tail_tokens=jnp.sum(tail_BT),
        decipher_nats=jnp.sum(nats_BT, where=mask_BT),
        deciphered=jnp.sum(right_BT, where=mask_BT),
        tail_deciphered=jnp.sum(right_BT, where=tail_BT),
    )


def decipher_results(params: Params, h_BTD: jax.Array, tok_BT: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cross-entropy of the true identity of each symbol read, and whether the best guess is right."""
    logits_BTV = decipher_logits(params, h_BTD)
    nats_BT = optax.softmax_cross_entropy_with_integer_labels(logits_BTV, tok_BT)
    return nats_BT, jnp.argmax(logits_BTV, axis=2) == tok_BT


def loss_of_part(
    params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array, total: jax.Array
) -> tuple[jax.Array, Sums]:
    """A part's share of the batch's mean loss: sums over the part, divided by the batch's count of tokens."""
    key_B = keys_for_rows(key_at(config.seed, Stream.LEXICON, step), batch.row_B)
    has_dropout = config.model.dropout > 0 or config.model.attention_dropout > 0
    dropout_key = key_at(config.seed, Stream.DROPOUT, step, batch.row_B[0]) if has_dropout else None
    reading = forward(
        params,
        config.model,
        batch.tok_BT,
        key_B,
        lexicon=config.model.lexicon,
        anneal_hi=anneal_hi(config.model.lexicon, step, config.steps),
        dropout_key=dropout_key,
        dtype=jnp.dtype(config.dtype),
    )
    has_head = config.model.decipher_head
    decipher = decipher_results(params, reading.h_BTD, batch.tok_BT) if has_head else None
    sums = sum_up(reading.logp_BT, decipher, batch.mask_BT)
    loss = (sums.nats + config.decipher_weight * sums.decipher_nats) / total
    return loss, sums


def gradient(params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array) -> tuple[Params, Sums]:
    """The gradient of the batch's mean loss, in `accumulate` parts that hold less memory each."""
    total = jnp.sum(batch.mask_BT).astype(jnp.float32)
    part_gradient = jax.grad(loss_of_part, has_aux=True)
    if config.accumulate == 1:
        return part_gradient(params, config, batch, step, total)

    def split(x: jax.Array) -> jax.Array:
        # Interleaved, so that every part is spread over all devices as the batch is.
        return jnp.swapaxes(x.reshape(-1, config.accumulate, *x.shape[1:]), 0, 1)

    def add_part(carry: Any, part: DeviceBatch) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, carry, part_gradient(params, config, part, step, total)), None

    parts = jax.tree.map(split, batch)
    first = part_gradient(params, config, jax.tree.map(lambda x: x[0], parts), step, total)
    added, _ = jax.lax.scan(add_part, first, jax.tree.map(lambda x: x[1:], parts))
    return added


def make_train_step(
    config: TrainConfig, optimizer: optax.GradientTransformation, rate: optax.Schedule
) -> Callable[[TrainState, DeviceBatch], tuple[TrainState, dict[str, jax.Array]]]:
    """The step as a function to be jitted: (state, batch) -> (state, metrics)."""

    def train_step(state: TrainState, batch: DeviceBatch) -> tuple[TrainState, dict[str, jax.Array]]:
        grads, sums = gradient(state.params, config, batch, state.step)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats, where we do not
            updates, optimizer_state = optimizer.update(grads, state.optimizer, state.params)
            current_rate = rate(state.step)
        params = optax.apply_updates(state.params, updates)
        metrics = means(sums) | {"gradient_norm": optax.tree.norm(grads), "rate": current_rate}
        return TrainState(state.step + 1, params, optimizer_state), metrics

    return train_step
