"""One training step: loss, gradient, update. A pure function of (state, batch)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from lexinvariant.config import ModelConfig, TrainConfig
from lexinvariant.model.params import Params
from lexinvariant.model.readout import decipher_logits
from lexinvariant.model.transformer import ForwardOutput, forward, hindsight
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.training.curriculum import anneal_hi
from lexinvariant.training.sums import BatchSums, Sums, means, sum_up


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


def named(params: Params, h_BTD: jax.Array, tok_BT: jax.Array, counts_BT: jax.Array) -> Sums:
    """What the head says of each symbol, against what it is."""
    logits_BTV = decipher_logits(params, h_BTD)
    nats_BT = optax.softmax_cross_entropy_with_integer_labels(logits_BTV, tok_BT)
    return sum_up(nats_BT, counts_BT, jnp.argmax(logits_BTV, axis=2) == tok_BT)


def measure(
    params: Params,
    config: ModelConfig,
    output: ForwardOutput,
    tok_BT: jax.Array,
    mask_BT: jax.Array,
    read_BT: jax.Array,
) -> BatchSums:
    """All that is measured of what was read; in hindsight, when no more than `read_BT` has been read."""
    predicted = sum_up(-output.logp_BT, mask_BT)
    if not config.decipher_head:
        return BatchSums(predicted)
    at_once = named(params, output.h_BTD, tok_BT, mask_BT)
    if not config.has_hindsight:
        return BatchSums(predicted, at_once)
    later_BTD = hindsight(params, config, output.h_BTD, read_BT)
    return BatchSums(predicted, at_once, named(params, later_BTD, tok_BT, read_BT))


def read_so_far(key_B: jax.Array, length: int) -> jax.Array:
    """read_BT: how far each sequence has been read when it is named in hindsight: half of them to their end."""
    share_B = jnp.minimum(2 * jax.vmap(jax.random.uniform)(key_B), 1.0)
    return jnp.arange(length, dtype=jnp.float32) < jnp.ceil(share_B * length)[:, None]


def loss_of_part(
    params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array, total: jax.Array
) -> tuple[jax.Array, BatchSums]:
    """A part's share of the batch's mean loss: sums over the part, divided by the batch's count of tokens."""

    def keys(stream: Stream) -> jax.Array:
        return keys_for_rows(key_at(config.seed, stream, step), batch.row_B)

    model = config.model
    has_dropout = model.dropout > 0 or model.attention_dropout > 0
    dropout_key = key_at(config.seed, Stream.DROPOUT, step, batch.row_B[0]) if has_dropout else None
    output = forward(
        params,
        model,
        batch.tok_BT,
        keys(Stream.LEXICON),
        lexicon=model.lexicon,
        anneal_hi=anneal_hi(model.lexicon, step, config.steps),
        dropout_key=dropout_key,
        dtype=jnp.dtype(config.dtype),
    )
    read_BT = batch.mask_BT & read_so_far(keys(Stream.HINDSIGHT), batch.tok_BT.shape[1])
    sums = measure(params, model, output, batch.tok_BT, batch.mask_BT, read_BT)
    naming = [part.nats for part in (sums.named, sums.in_hindsight) if part is not None]
    return (sums.predicted.nats + config.decipher_weight * sum(naming, jnp.zeros(()))) / total, sums


def gradient(
    params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array
) -> tuple[Params, BatchSums]:
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
