"""Hindsight: the head names a symbol by all that was read, and by nothing else."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig, TrainConfig
from lexinvariant.model.attention import bidirectional_attention, bidirectional_toeplitz
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import ForwardOutput, forward
from lexinvariant.presets import as_standard
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.training.step import random_prefix
from tests.tiny_models import TINY, random_params

B, T, V = 3, 20, 12
CONFIG = replace(
    TINY,
    vocab_size=V,
    context=T,
    lexicon=LexiconConfig(kind="permuted"),
    readout="seen",
    recall_width=4,
    smeared_keys=True,
    decipher_head=True,
    decipher_hidden=8,
    hindsight_layers=2,
)
PARAMS = random_params(CONFIG, 0.3)
TOK = np.random.default_rng(0).integers(0, V, (B, T))
KEYS = keys_for_rows(key_at(0, Stream.EVAL), jnp.arange(B))


@partial(jax.jit, static_argnums=1)
def read(params: Params, config: ModelConfig, tok_BT: jax.Array) -> ForwardOutput:
    return forward(params, config, tok_BT, KEYS)


@jax.jit
def named(tok_BT: jax.Array, n_read: int) -> jax.Array:
    read_BT = jnp.broadcast_to(jnp.arange(T) < n_read, (B, T))
    h_BTD = read(PARAMS, CONFIG, tok_BT).h_BTD
    return decipher_logits(PARAMS, CONFIG, h_BTD, read_BT)


def test_names_hang_on_what_came_later_but_not_on_what_was_not_read() -> None:
    other = TOK.copy()
    other[:, 14] = (other[:, 14] + 1) % V
    before, after = named(TOK, 12), named(other, 12)
    np.testing.assert_allclose(after[:, :12], before[:, :12], rtol=1e-5, atol=1e-6)
    assert np.abs(named(other, T)[:, :12] - named(TOK, T)[:, :12]).max() > 1e-3


def test_names_of_symbols_say_nothing() -> None:
    """The same text in other symbols has the same names for its places, bit for bit."""
    renamed = np.random.default_rng(1).permutation(V)[TOK]
    assert np.array_equal(named(renamed, T), named(TOK, T))


def test_prediction_does_not_use_it() -> None:
    plain = replace(CONFIG, hindsight_layers=0)
    without = replace(PARAMS, hindsight=None)
    assert np.array_equal(read(PARAMS, CONFIG, TOK).logp_BT, read(without, plain, TOK).logp_BT)


def test_attention_both_ways_is_a_softmax_over_what_was_read() -> None:
    rng = np.random.default_rng(2)
    n_heads, size, n_read = 2, 3, 5
    q, k, v = (rng.normal(size=(1, 7, n_heads, size)) for _ in range(3))
    past_NT, future_NT = rng.normal(size=(2, n_heads, 7))
    read_BT = jnp.arange(7)[None] < n_read
    bias_NTS = bidirectional_toeplitz(jnp.asarray(past_NT), jnp.asarray(future_NT))
    ours = jax.jit(bidirectional_attention)(*(jnp.asarray(x) for x in (q, k, v)), bias_NTS, read_BT)
    for head in range(n_heads):
        for t in range(7):
            bias = [past_NT[head, t - s] if s <= t else future_NT[head, s - t] for s in range(n_read)]
            weight = np.exp(q[0, t, head] @ k[0, :n_read, head].T + bias)
            expected = weight / weight.sum() @ v[0, :n_read, head]
            np.testing.assert_allclose(ours[0, t, head], expected, rtol=2e-5, atol=1e-6)


def test_training_reads_half_of_the_sequences_to_their_end_and_the_others_to_any_place() -> None:
    read_BT = np.asarray(random_prefix(jax.random.split(jax.random.key(0), 4000), T))
    n_B = read_BT.sum(axis=1)
    assert (read_BT == (np.arange(T) < n_B[:, None])).all()
    assert n_B.min() == 1
    assert (n_B == T).mean() == pytest.approx(0.5 + 0.5 / T, abs=0.03)
    assert np.bincount(n_B, minlength=T + 1)[1:T] / 4000 == pytest.approx(0.5 / T, abs=0.02)


def test_compute_counts_its_layers_and_a_standard_model_has_none() -> None:
    deeper = replace(CONFIG, n_layers=CONFIG.n_layers + 2, hindsight_layers=0)
    assert CONFIG.flop_per_token(T) == deeper.flop_per_token(T)
    standard = as_standard(TrainConfig(model=CONFIG)).model
    assert not standard.has_hindsight
    assert standard.n_matmul_parameters == CONFIG.n_matmul_parameters // 3
