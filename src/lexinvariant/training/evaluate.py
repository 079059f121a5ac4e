"""Loss on held-out pieces, as a trained model is used: every symbol re-drawn, no noise."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.batches import machine_mesh
from lexinvariant.model.layout import gathered_but_layers
from lexinvariant.model.lexicon import is_new
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.rng import evaluation_keys
from lexinvariant.text import Data, Split, Vocab
from lexinvariant.text.frequency import count_text
from lexinvariant.training.batch_metrics import (
    BatchSums,
    batch_means,
    means_of_nothing,
    sum_over_tokens,
    tail_length,
)
from lexinvariant.training.sharding import REPLICATED, host_rows, to_devices
from lexinvariant.training.step import batch_sums


@dataclass(frozen=True)
class Evaluation:
    """Held-out losses in nats per token, without those of which the texts have nothing: none with `tail` in its name
    where no text reaches the end of the context.
    """

    metrics: dict[str, float]
    loss_by_position: list[float]
    sequences: int
    """How many contexts were measured."""

    @property
    def tail_perplexity(self) -> float:
        """Perplexity at the end of the context, the paper's figure."""
        return float(np.exp(self.metrics["tail_loss"]))

    @property
    def all_metrics(self) -> dict[str, float]:
        return self.metrics | (
            {"tail_perplexity": self.tail_perplexity} if "tail_loss" in self.metrics else {}
        )


@partial(jax.jit, static_argnames=("config", "mesh", "dtype"))
def _evaluate_batch(
    params: Params,
    config: ModelConfig,
    tok_BT: jax.Array,
    mask_BT: jax.Array,
    named_B: jax.Array,
    piece_B: jax.Array,
    seed: jax.Array,
    mesh: AbstractMesh,
    dtype: str,
) -> tuple[BatchSums, jax.Array, jax.Array]:
    with jax.sharding.use_abstract_mesh(mesh):
        named_BT, key_B = mask_BT & named_B[:, None], evaluation_keys(seed, piece_B)
        return _sums_by_position(params, config, tok_BT, mask_BT, named_BT, key_B, dtype)


def _sums_by_position(
    params: Params,
    config: ModelConfig,
    tok_BT: jax.Array,
    mask_BT: jax.Array,
    named_BT: jax.Array,
    key_B: jax.Array,
    dtype: str,
) -> tuple[BatchSums, jax.Array, jax.Array]:
    params = gathered_but_layers(params)
    output = forward(params, config, tok_BT, key_B, dtype=jnp.dtype(dtype))
    loss_T = -jnp.sum(output.logp_BT, axis=0, where=mask_BT)
    # A new symbol costs a lexinvariant model at least log(number of unseen ones): a loss that says nothing of skill.
    is_new_BT = is_new(tok_BT)
    sums = batch_sums(params, config, output, tok_BT, mask_BT, named_BT, mask_BT)._replace(
        seen=sum_over_tokens(-output.logp_BT, mask_BT & ~is_new_BT),
        new=sum_over_tokens(-output.logp_BT, mask_BT & is_new_BT),
    )
    return sums, loss_T, jnp.sum(mask_BT, axis=0)


def evaluate(
    params: Params,
    config: ModelConfig,
    pieces: Split,
    *,
    sequences: int,
    batch_size: int,
    seed: int = 0,
    dtype: str = "float32",
    mesh: Mesh | None = None,
    named: bool = True,
) -> Evaluation:
    """Average over `sequences` pieces, spread evenly over those that fill a whole context (over all, if none does).
    Without `named`, what names symbols is not measured: those of the text have other names than the model's.

    A piece's lexicon comes from the piece's own number, so the result does not depend on the batch size. The devices
    of the mesh share each batch, and every host reads its own rows; without a mesh, all devices of this machine that
    divide the batch do.
    """
    if not pieces:
        raise UserError("There is no text to measure on: give data that has some.")
    if mesh is None:
        mesh = machine_mesh(batch_size)
        params = jax.device_put(params, NamedSharding(mesh, REPLICATED))
    seed_32 = np.uint32(seed & 0xFFFFFFFF)  # all that a key takes of a seed, in a type that is compiled once
    rows = host_rows(batch_size)
    chosen = full_pieces(pieces, sequences)
    total: BatchSums | None = None
    loss_T: jax.Array | float = 0.0
    count_T: jax.Array | int = 0
    for start in range(0, len(chosen), batch_size):
        index_B = chosen[start : start + batch_size]
        n_real = len(index_B)
        # The last batch is filled up with masked repeats: one shape, one compilation.
        index_B = np.concatenate([index_B, np.repeat(index_B[:1], batch_size - n_real)])
        batch = pieces[index_B[rows]]
        mask_BT = batch.mask_BT & (np.asarray(rows) < n_real)[:, None]
        arrays = (batch.tok_BT, mask_BT, batch.named_B & named, index_B[rows].astype(np.int32))
        inputs = (to_devices(array, mesh) for array in arrays)
        sums, batch_loss_T, batch_count_T = _evaluate_batch(
            params, config, *inputs, seed_32, mesh.abstract_mesh, dtype
        )
        total = sums if total is None else jax.tree.map(jnp.add, total, sums)
        loss_T, count_T = loss_T + batch_loss_T, count_T + batch_count_T
    assert total is not None
    left_out = means_of_nothing(total)
    metrics = {name: float(value) for name, value in batch_means(total).items() if name not in left_out}
    by_position = np.asarray(loss_T) / np.maximum(np.asarray(count_T), 1)
    return Evaluation(metrics, [round(float(x), 5) for x in by_position], len(chosen))


def check_vocabulary(config: ModelConfig, own: Vocab, data: Data, told: str) -> None:
    """What a token's number stands for means nothing to a lexinvariant model, and everything to a standard one."""
    remedy = "prepare the data with the model's own vocabulary."
    if data.vocab_size > config.vocab_size:
        raise UserError(
            f"{told}: the data has a vocabulary of {data.vocab_size} and the model one of {config.vocab_size}: {remedy}"
        )
    if not config.lexicon.is_lexinvariant and data.vocab.name != own.name:
        raise UserError(f"{told}: the data is in {data.vocab.name} and the model reads {own.name}: {remedy}")


def counting_metrics(config: ModelConfig, pieces: Split, sequences: int) -> dict[str, float]:
    """What counting symbols reaches at the end of the context of the same pieces, beside a lexinvariant model."""
    batch = pieces[full_pieces(pieces, sequences)]
    if not config.lexicon.is_lexinvariant or not batch.mask_BT.all():
        return {}
    counted, tail = (
        count_text(batch.tok_BT, config.vocab_size),
        slice(-tail_length(batch.tok_BT.shape[1]), None),
    )
    return {
        "tail_counting_loss": float(counted.nats_ST[:, tail].mean()),
        "tail_counting_named": float(counted.named_ST[:, tail].mean()),
    }


def full_pieces(pieces: Split, wanted: int) -> np.ndarray:
    """Pieces that fill the context, spread evenly over the split, so that every position has equal weight."""
    candidates = np.unique(np.linspace(0, len(pieces) - 1, min(len(pieces), 8 * wanted)).astype(np.int64))
    full = np.concatenate(
        [
            part[pieces[part].mask_BT.all(axis=1)]
            for part in np.array_split(candidates, -(-len(candidates) // 256))
        ]
    )
    chosen = full if len(full) else candidates
    return chosen[np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), wanted)).astype(np.int64))]
