"""What the layers read: rows, scaled and shifted, and what a symbol's occurrences tell."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model.embedding import embed, logarithmic_bucket, occurrence_statistics
from lexinvariant.model.lexicon import Lexicon
from lexinvariant.model.params import EmbeddingParams
from lexinvariant.model.transformer import forward
from tests.tiny_models import random_params

TOK = np.random.default_rng(0).integers(0, 5, (3, 40))
FLOAT32 = jnp.dtype("float32")


def by_counting(tok_T: np.ndarray) -> np.ndarray:
    """The statistics, symbol by symbol."""
    rows, times, pairs, last = [], Counter[int](), Counter[tuple[int, int]](), dict[int, int]()
    for t, symbol in enumerate(tok_T.tolist()):
        pair = (int(tok_T[t - 1]), symbol)
        before, gap = times[symbol], t - last[symbol] if symbol in last else 0
        times[symbol] += 1
        more_frequent = sum(n > times[symbol] for n in times.values())
        rows.append([before, gap, more_frequent, pairs[pair] if t else 0, len(times)])
        last[symbol] = t
        if t:
            pairs[pair] += 1
    return np.array(rows)


def test_statistics_are_what_counting_gives() -> None:
    expected = np.stack([by_counting(tok_T) for tok_T in TOK])
    np.testing.assert_array_equal(occurrence_statistics(jnp.asarray(TOK)), expected)


@pytest.mark.parametrize(
    ("n", "bucket"),
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (8, 4), (9, 5), (2048, 12), (9999, 12)],
)
def test_buckets_double(n: int, bucket: int) -> None:
    assert int(logarithmic_bucket(jnp.array(n))) == bucket


@pytest.mark.parametrize("shared", [True, False])
def test_rows_are_scaled_and_shifted(shared: bool) -> None:
    table_BRD = jax.random.normal(jax.random.key(0), (3, 5, 4))
    table = table_BRD[0] if shared else table_BRD
    rows_BTD = np.asarray(table[TOK] if shared else table_BRD[np.arange(3)[:, None], TOK])
    embedding = EmbeddingParams(None, jnp.float32(2.0), jnp.float32(0.25), None)
    x_BTD = embed(embedding, Lexicon(jnp.asarray(TOK), jnp.asarray(TOK), table), FLOAT32)
    np.testing.assert_allclose(x_BTD, rows_BTD * 2.0 + 0.25, rtol=1e-6)


def test_each_statistic_adds_the_row_of_its_bucket() -> None:
    occurrence_QGD = jax.random.normal(jax.random.key(1), (5, 13, 4))
    embedding = EmbeddingParams(None, jnp.float32(1.0), jnp.float32(0.0), occurrence_QGD)
    lexicon = Lexicon(jnp.asarray(TOK), jnp.asarray(TOK), jnp.zeros((5, 4)))
    bucket_BTQ = logarithmic_bucket(jnp.asarray(np.stack([by_counting(tok_T) for tok_T in TOK])))
    expected = sum(np.asarray(occurrence_QGD)[q][bucket_BTQ[:, :, q]] for q in range(5))
    np.testing.assert_allclose(embed(embedding, lexicon, FLOAT32), expected, rtol=1e-5, atol=1e-6)


def test_a_model_that_counts_knows_no_names() -> None:
    config = ModelConfig(
        vocab_size=5,
        context=40,
        n_layers=1,
        width=16,
        n_heads=2,
        head_dim=8,
        hidden=24,
        lexicon=LexiconConfig(kind="permuted"),
        readout="seen",
        count_occurrences=True,
    )
    params = random_params(config)
    key_B = jax.random.split(jax.random.key(2), 3)
    renamed = np.array([3, 0, 4, 1, 2])[TOK]
    logp_BT, renamed_BT = (forward(params, config, jnp.asarray(tok), key_B).logp_BT for tok in (TOK, renamed))
    np.testing.assert_array_equal(logp_BT, renamed_BT)
