"""Recall: symbols scored by their occurrences, in one pass and step by step, against sums written out."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig
from lexinvariant.errors import UserError
from lexinvariant.model import params as model_params
from lexinvariant.model.params import Recall
from lexinvariant.model.recall import (
    MAX_LOG_WEIGHT,
    build_memory,
    empty_memory,
    next_recall_logits,
    recall_logits,
    update_memory,
)
from lexinvariant.model.scoring import score_tokens
from tests.tiny_models import TINY

D, C, R = 6, 4, 5
RANK_BT = np.array([[0, 1, 0, 2, 3, 1, 0], [0, 0, 0, 1, 2, 1, 4]], np.int32)
B, T = RANK_BT.shape
SMALL = replace(
    TINY,
    vocab_size=9,
    context=16,
    lexicon=LexiconConfig(kind="permuted"),
    readout="seen",
    recall_width=C,
)


def normal(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


@pytest.fixture
def recall() -> Recall:
    return Recall(note_DC=normal(0, D, C), gate_D=5 * normal(1, D), ask_DC=normal(2, D, C))


def written_out(recall: Recall, predictor_TD: jax.Array, h_TD: jax.Array, rank_T: np.ndarray) -> np.ndarray:
    """logits_TR in float64, occurrence by occurrence."""
    note_DC, gate_D, ask_DC, predictor, h = (
        np.asarray(x, np.float64) for x in (recall.note_DC, recall.gate_D, recall.ask_DC, predictor_TD, h_TD)
    )
    logits_TR = np.zeros((T, R))
    for t in range(T):
        for r in range(R):
            occurrences = [s for s in range(t) if rank_T[s] == r]
            if occurrences:
                gates = np.array([h[s] @ gate_D for s in occurrences])
                weights = np.exp(MAX_LOG_WEIGHT * np.tanh(gates / MAX_LOG_WEIGHT))
                mean_C = sum(w * h[s] @ note_DC for w, s in zip(weights, occurrences, strict=True)) / sum(
                    weights
                )
                logits_TR[t, r] = predictor[t] @ ask_DC @ mean_C / np.sqrt(C)
    return logits_TR


@pytest.mark.parametrize("chunk", [2, 3, 128])
def test_each_symbol_is_scored_by_the_weighted_mean_of_its_earlier_occurrences(
    recall: Recall, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lexinvariant.model.recall.CHUNK", chunk)
    predictor_BTD, h_BTD = normal(3, B, T, D), normal(4, B, T, D)
    logits_BTR = recall_logits(recall, predictor_BTD, h_BTD, jnp.asarray(RANK_BT), R)
    expected = [written_out(recall, predictor_BTD[b], h_BTD[b], RANK_BT[b]) for b in range(B)]
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(logits_BTR, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("chunk", [3, 128])
def test_the_symbol_to_come_is_scored_by_all_that_was_read(
    recall: Recall, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lexinvariant.model.recall.CHUNK", chunk)
    predictor_BTD, h_BTD, rank_BT = normal(3, B, T, D), normal(4, B, T, D), jnp.asarray(RANK_BT)
    whole_BTR = recall_logits(recall, predictor_BTD, h_BTD, rank_BT, R)
    ahead_BTR = recall_logits(recall, predictor_BTD, h_BTD[:, :-1], rank_BT[:, :-1], R)
    np.testing.assert_allclose(ahead_BTR, whole_BTR, rtol=2e-5, atol=2e-5)


def test_a_memory_kept_step_by_step_is_that_of_one_pass(recall: Recall) -> None:
    predictor_BTD, h_BTD = normal(3, B, T, D), normal(4, B, T, D)
    logits_BTR = recall_logits(recall, predictor_BTD, h_BTD, jnp.asarray(RANK_BT), R)
    memory = empty_memory(B, R, C)
    for t in range(T):
        next_BR = next_recall_logits(recall, memory, predictor_BTD[:, t : t + 1])
        np.testing.assert_allclose(next_BR, logits_BTR[:, t], rtol=2e-5, atol=2e-5)
        read_BT = np.broadcast_to(np.arange(T) < t, (B, T))
        at_once = build_memory(recall, h_BTD, jnp.asarray(RANK_BT), jnp.asarray(read_BT), R)
        jax.tree.map(
            lambda one, other: np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-4), at_once, memory
        )
        memory = update_memory(recall, memory, h_BTD[:, t : t + 1], jnp.asarray(RANK_BT[:, t]))


def test_however_extreme_the_gates_logits_and_gradients_are_numbers(recall: Recall) -> None:
    h_BTD = 1e4 * normal(4, B, T, D)

    def total(recall: Recall) -> jax.Array:
        return jnp.sum(recall_logits(recall, normal(3, B, T, D), h_BTD, jnp.asarray(RANK_BT), R) ** 2)

    gradient = jax.grad(total)(recall)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((total(recall), gradient)))


def test_a_model_starts_as_one_without_recall_and_scores_renamed_texts_alike() -> None:
    text = np.array([4, 4, 1, 7, 4, 1, 0, 7, 4, 4, 2, 1, 7])
    params, without = model_params.init(SMALL, 0), replace(SMALL, recall_width=0)
    [start] = score_tokens(params, SMALL, [text])
    np.testing.assert_allclose(start, score_tokens(model_params.init(without, 0), without, [text])[0])

    assert params.recall is not None
    asking = replace(params, recall=replace(params.recall, ask_DC=4 * normal(5, 16, C)))
    [score] = score_tokens(asking, SMALL, [text])
    assert np.abs(score - start).max() > 0.1
    for seed in range(10):
        renamed = np.random.default_rng(seed).permutation(9)[text]
        np.testing.assert_array_equal(score_tokens(asking, SMALL, [renamed])[0], score)


def test_only_symbols_that_were_seen_are_recalled() -> None:
    assert model_params.init(replace(SMALL, readout="full"), 0).recall is None
    with pytest.raises(UserError, match=r"recall_width is -1: give a number of at least 0"):
        replace(SMALL, recall_width=-1)
