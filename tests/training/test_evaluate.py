"""Held-out loss: independent of how it is computed, and right where the answer is known."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model import params as model_params
from lexinvariant.model.batches import forward_batches, machine_mesh
from lexinvariant.text import MarkovLanguage, Split
from lexinvariant.text.batch import Batch
from lexinvariant.training.batch_metrics import tail_length
from lexinvariant.training.evaluate import Evaluation, evaluate
from tests.tiny_models import TINY

T, V = 12, 12
MODEL = replace(TINY, vocab_size=V, context=T, lexicon=LexiconConfig(kind="permuted"), readout="seen")


class Listed:
    """A split given as lists of tokens, padded."""

    length = T

    def __init__(self, rows: list[list[int]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, piece_B: np.ndarray, /) -> Batch:
        rows = [self._rows[piece] for piece in piece_B]
        tok_BT = np.array([row + [0] * (T - len(row)) for row in rows], np.int32)
        mask_BT = np.arange(T) < np.array([len(row) for row in rows])[:, None]
        return Batch(tok_BT, mask_BT, np.ones(len(piece_B), bool), np.asarray(piece_B))

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch:
        raise AssertionError("evaluation reads pieces by their number, never a shuffled batch")


def assess(
    pieces: Split,
    *,
    sequences: int,
    batch_size: int,
    model: ModelConfig = MODEL,
    seed: int = 0,
    table_scale: float = 1.0,
) -> Evaluation:
    params = model_params.init(model, 0)
    embedding = replace(params.embedding, table_VD=table_scale * params.embedding.table_VD)
    params = replace(params, embedding=embedding)
    return evaluate(params, model, pieces, sequences=sequences, batch_size=batch_size, seed=seed)


VALID = MarkovLanguage().split("valid", T)


@pytest.fixture(scope="module")
def in_threes() -> Evaluation:
    return assess(VALID, sequences=7, batch_size=3)


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_result_does_not_depend_on_the_batch_size(in_threes: Evaluation, batch_size: int) -> None:
    other = assess(VALID, sequences=7, batch_size=batch_size)
    assert other.metrics == pytest.approx(in_threes.metrics, rel=1e-5)
    np.testing.assert_allclose(other.loss_by_position, in_threes.loss_by_position, atol=2e-5)


def test_result_does_not_depend_on_the_devices_that_share_a_batch(in_threes: Evaluation) -> None:
    params = model_params.init(MODEL, 0)
    mesh = machine_mesh(7 * 4, jax.devices())
    assert mesh.size == 7, "as many of the eight as divide the batch"
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))
    other = evaluate(params, MODEL, VALID, sequences=7, batch_size=7, mesh=mesh)
    assert other.metrics == pytest.approx(in_threes.metrics, rel=1e-5)
    assert machine_mesh(8).size == 1, "a CPU's devices would share its cores"


def test_sequences_are_read_alike_on_one_device_and_on_many() -> None:
    params, tok_ST = model_params.init(MODEL, 0), VALID[np.arange(12)].tok_BT
    one, many = (
        np.concatenate(
            [
                np.asarray(output.logp_BT)
                for _, output in forward_batches(
                    params, MODEL, tok_ST, np.arange(12), batch_size=8, devices=devices
                )
            ]
        )
        for devices in (None, jax.devices())
    )
    np.testing.assert_allclose(one, many, rtol=1e-5)


def test_lexicons_depend_on_the_seed(in_threes: Evaluation) -> None:
    other = assess(VALID, sequences=7, batch_size=3, seed=1)
    assert abs(other.metrics["loss"] - in_threes.metrics["loss"]) > 1e-4


def test_losses_by_position_average_to_the_loss_and_its_end(in_threes: Evaluation) -> None:
    assert len(in_threes.loss_by_position) == T
    assert np.mean(in_threes.loss_by_position) == pytest.approx(in_threes.metrics["loss"], abs=1e-5)
    end = np.mean(in_threes.loss_by_position[-tail_length(T) :])
    assert end == pytest.approx(in_threes.metrics["tail_loss"], abs=1e-5)
    assert in_threes.tail_perplexity == pytest.approx(math.exp(end), rel=1e-4)


def test_a_model_without_a_deciphering_head_reports_none(in_threes: Evaluation) -> None:
    assert set(in_threes.metrics) == {
        end + name for name in ("loss", "seen_loss", "new_loss", "new_share") for end in ("", "tail_")
    }


@pytest.mark.parametrize("end", ["", "tail_"])
def test_losses_on_seen_and_on_new_symbols_make_up_the_loss(in_threes: Evaluation, end: str) -> None:
    loss, seen, new, share = (
        in_threes.metrics[end + name] for name in ("loss", "seen_loss", "new_loss", "new_share")
    )
    assert 0 < share < 1
    assert (1 - share) * seen + share * new == pytest.approx(loss, rel=1e-5)


def test_a_new_symbol_costs_at_least_its_share_of_the_unseen() -> None:
    metrics = assess(Listed([[0, 1, 2, 3] * 3]), sequences=1, batch_size=1).metrics
    assert metrics["new_share"] == pytest.approx(4 / T)
    assert metrics["tail_new_share"] == 0.0 and "tail_new_loss" not in metrics, "no symbol is new there"
    assert metrics["tail_seen_loss"] == metrics["tail_loss"]
    assert metrics["new_loss"] >= np.mean(np.log(V - np.arange(4))) - 1e-6


def test_a_uniform_model_has_the_loss_of_a_uniform_guess_at_every_position() -> None:
    found = assess(VALID, sequences=5, batch_size=3, model=replace(MODEL, readout="full"), table_scale=0.0)
    assert found.loss_by_position == [round(math.log(V), 5)] * T
    assert found.metrics["loss"] == pytest.approx(math.log(V), rel=1e-6)
    assert found.tail_perplexity == pytest.approx(V, rel=1e-5)


def test_a_uniform_deciphering_head_knows_one_symbol_in_all() -> None:
    model = replace(MODEL, decipher_head=True, decipher_hidden=8)
    params = model_params.init(model, 0)
    params = replace(params, decipher=jax.tree.map(jnp.zeros_like, params.decipher))
    metrics = evaluate(params, model, VALID, sequences=4, batch_size=4).metrics
    assert metrics["decipher_loss"] == pytest.approx(math.log(V), rel=1e-6)
    first_symbol = np.mean(VALID[np.linspace(0, len(VALID) - 1, 32).astype(np.int64)].tok_BT == 0)
    assert 0 < metrics["deciphered"] < 3 * first_symbol + 0.2


def test_only_pieces_that_fill_the_context_count() -> None:
    rng = np.random.default_rng(0)
    full = [rng.integers(V, size=T).tolist() for _ in range(3)]
    short = [[0], [1, 1], [2, 2, 2]]
    mixed = Listed([row for pair in zip(short, full, strict=True) for row in pair])
    counts = np.zeros(T)
    chosen = assess(mixed, sequences=10, batch_size=4)
    for piece in (1, 3, 5):
        alone = assess(_OnlyPiece(mixed, piece), sequences=1, batch_size=1)
        counts += alone.loss_by_position
    np.testing.assert_allclose(chosen.loss_by_position, counts / 3, atol=3e-5)


class _OnlyPiece(Listed):
    """One piece under its own number, as if all the others were short."""

    def __init__(self, whole: Listed, piece: int) -> None:
        rows = [row if i == piece else row[:1] for i, row in enumerate(whole._rows)]
        super().__init__(rows)


def test_where_no_piece_fills_the_context_all_are_used_and_padding_does_not_count() -> None:
    short = Listed([[1, 2, 1], [3], [4, 4]])
    found = assess(short, sequences=3, batch_size=2)
    by_position, count = np.array(found.loss_by_position), np.array([3, 2, 1] + [0] * (T - 3))
    assert found.metrics["loss"] == pytest.approx((by_position * count).sum() / 6, abs=1e-4)
    assert found.loss_by_position[3:] == [0.0] * (T - 3)
    # Nothing is known of the end of the context, and a loss of 0 there would be a perplexity of 1.
    assert not [name for name in found.all_metrics if name.startswith("tail_")]
