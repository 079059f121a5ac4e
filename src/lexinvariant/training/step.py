"""One training step: loss, gradient, update. A pure function of (state, batch)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from lexinvariant.config import ModelConfig, TrainConfig
from lexinvariant.model.decipher_head import decipher_logits, decipher_next_logits, hindsight_states
from lexinvariant.model.layout import gathered_but_layers
from lexinvariant.model.logits import is_likeliest, log_softmax_at
from lexinvariant.model.params import Params
from lexinvariant.model.readout import predictors
from lexinvariant.model.transformer import ForwardOutput, forward
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.training.batch_metrics import BatchSums, TokenSums, batch_means, sum_over_tokens
from lexinvariant.training.curriculum import curriculum_at


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
    named_B: jax.Array  # whether the deciphering head learns from the row
    row_B: jax.Array  # number of each row in the global batch: the address of its randomness


def decipher_sums(logits_BTV: jax.Array, tok_BT: jax.Array, mask_BT: jax.Array, every: int = 1) -> TokenSums:
    """Cross-entropy and accuracy of the deciphering head against what the symbols are."""
    loss_BT = -log_softmax_at(logits_BTV, tok_BT)
    return sum_over_tokens(loss_BT, mask_BT, is_likeliest(logits_BTV, tok_BT), every)


def every_nth(x_BT: jax.Array, n: int, first: jax.Array | int) -> jax.Array:
    """Every n-th position from `first` on; a slice that a traced `first` allows."""
    return x_BT if n == 1 else x_BT.reshape(len(x_BT), -1, n, *x_BT.shape[2:])[:, :, first]


def batch_sums(
    params: Params,
    config: ModelConfig,
    output: ForwardOutput,
    tok_BT: jax.Array,
    mask_BT: jax.Array,
    named_BT: jax.Array,
    read_BT: jax.Array,
    every: int = 1,
    first: jax.Array | int = 0,
    hindsight_apart: bool = False,
) -> BatchSums:
    """All that is measured of a batch; in hindsight of the positions of `read_BT`, and of their symbols alone. The
    deciphering head is asked at one position in `every` of `named_BT`, from `first` on. With `hindsight_apart` the
    trunk has no gradient of what is named in hindsight.
    """
    sums = BatchSums(sum_over_tokens(-output.logp_BT, mask_BT))
    if not config.decipher_head:
        return sums

    def some(x_BT: jax.Array) -> jax.Array:
        return every_nth(x_BT, every, first)

    tok_BS, named_BS = some(tok_BT), some(named_BT)
    logits_BSV = decipher_logits(params, config, some(output.h_BTD))
    sums = sums._replace(deciphering=decipher_sums(logits_BSV, tok_BS, named_BS, every))
    if config.has_hindsight:
        h_BTD = jax.lax.stop_gradient(output.h_BTD) if hindsight_apart else output.h_BTD
        later_BTD = hindsight_states(params, config, h_BTD, read_BT)
        logits_BSV = decipher_logits(params, config, some(later_BTD))
        sums = sums._replace(hindsight=decipher_sums(logits_BSV, tok_BS, named_BS & some(read_BT), every))
    if config.decipher_next:
        logits_BSV = decipher_next_logits(params, some(predictors(params, output.h_BTD)))
        sums = sums._replace(next_deciphering=decipher_sums(logits_BSV, tok_BS, named_BS, every))
    return sums


def random_prefix(key_B: jax.Array, length: int) -> jax.Array:
    """mask_BT of a prefix of each sequence: all of it in half of the cases, else of any length.

    Hindsight is trained on prefixes, so that it works on texts shorter than the context.
    """
    share_B = jnp.minimum(2 * jax.vmap(jax.random.uniform)(key_B), 1.0)
    return jnp.arange(length, dtype=jnp.float32) < jnp.ceil(share_B * length)[:, None]


def microbatch_loss(
    params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array, n_tokens: jax.Array
) -> tuple[jax.Array, BatchSums]:
    """A microbatch's share of the batch's mean loss: its sum, divided by the whole batch's count of tokens."""

    def keys(stream: Stream) -> jax.Array:
        return keys_for_rows(key_at(config.seed, stream, step), batch.row_B)

    params = gathered_but_layers(params)
    model = config.model
    has_dropout = model.dropout > 0 or model.attention_dropout > 0
    output = forward(
        params,
        model,
        batch.tok_BT,
        keys(Stream.LEXICON),
        lexicon=model.lexicon,
        curriculum=curriculum_at(
            model.lexicon, step, config.steps, key_at(config.seed, Stream.SHARED_LEXICON, step)
        ),
        dropout_key_B=keys(Stream.DROPOUT) if has_dropout else None,
        dtype=jnp.dtype(config.dtype),
    )
    read_BT = batch.mask_BT & random_prefix(keys(Stream.HINDSIGHT), batch.tok_BT.shape[1])
    every = config.decipher_every
    named_BT = batch.mask_BT & batch.named_B[:, None]
    sums = batch_sums(
        params,
        model,
        output,
        batch.tok_BT,
        batch.mask_BT,
        named_BT,
        read_BT,
        every=every,
        first=step % every,
        hindsight_apart=config.hindsight_apart,
    )
    heads = (sums.deciphering, sums.hindsight, sums.next_deciphering)
    decipher_loss = sum((head.loss for head in heads if head is not None), jnp.zeros(()))
    weight = config.decipher_weight * every  # each position stands for those that were left out
    return (sums.prediction.loss + weight * decipher_loss) / n_tokens, sums


def loss_gradient(
    params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array
) -> tuple[Params, BatchSums]:
    """The gradient of the batch's mean loss, in `accumulate` microbatches that hold less memory each."""
    n_tokens = jnp.sum(batch.mask_BT).astype(jnp.float32)
    microbatch_gradient = jax.grad(microbatch_loss, has_aux=True)
    if config.accumulate == 1:
        return microbatch_gradient(params, config, batch, step, n_tokens)

    def split(x: jax.Array) -> jax.Array:
        # Interleaved, so that every microbatch is spread over all devices as the batch is.
        return jnp.swapaxes(x.reshape(-1, config.accumulate, *x.shape[1:]), 0, 1)

    def add(carry: Any, microbatch: DeviceBatch) -> tuple[Any, None]:
        more = microbatch_gradient(params, config, microbatch, step, n_tokens)
        return jax.tree.map(jnp.add, carry, more), None

    microbatches = jax.tree.map(split, batch)
    first = microbatch_gradient(params, config, jax.tree.map(lambda x: x[0], microbatches), step, n_tokens)
    total, _ = jax.lax.scan(add, first, jax.tree.map(lambda x: x[1:], microbatches))
    return total


def make_train_step(
    config: TrainConfig, optimizer: optax.GradientTransformation, rate: optax.Schedule
) -> Callable[[TrainState, DeviceBatch], tuple[TrainState, dict[str, jax.Array]]]:
    """The step as a function to be jitted: (state, batch) -> (state, metrics)."""

    def train_step(state: TrainState, batch: DeviceBatch) -> tuple[TrainState, dict[str, jax.Array]]:
        grads, sums = loss_gradient(state.params, config, batch, state.step)
        with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats, where we do not
            updates, optimizer_state = optimizer.update(grads, state.optimizer, state.params)
            current_rate = rate(state.step)
        params = optax.apply_updates(state.params, updates)
        metrics = batch_means(sums) | {"gradient_norm": optax.tree.norm(grads), "rate": current_rate}
        return TrainState(state.step + 1, params, optimizer_state), metrics

    return train_step
