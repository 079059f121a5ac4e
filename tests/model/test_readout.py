"""What comes out is a probability distribution over the next symbol, and knows no names for unseen ones."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model import readout
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.lexicon import Lexicon, draw_by_rank, first_occurrence
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from tests.tiny_models import random_params

V, T = 5, 8
SMALL = ModelConfig(vocab_size=V, context=T, n_layers=1, width=8, n_heads=2, head_dim=4, hidden=12)
TEXT = np.array([3, 1, 3, 0, 4, 2, 3, 1], np.int32)  # all five symbols are seen after the sixth
MANY = 400
N_DISTINCT_BEFORE = np.array([len(set(TEXT[:t].tolist())) for t in range(T)])


def model(kind: str, kind_of_readout: str) -> ModelConfig:
    return replace(SMALL, lexicon=LexiconConfig(kind=kind), readout=kind_of_readout)


_forward = partial(jax.jit, static_argnames=("config", "dtype"))(forward)


def next_symbol_logp(config: ModelConfig, params: Params, draws: int = 1) -> np.ndarray:
    """logp_KTV[k, t, v] of the symbol v after the first t symbols of the text, for each draw k."""
    continued_TVT = np.tile(TEXT, (T, V, 1))
    for t in range(T):
        continued_TVT[t, :, t] = np.arange(V)
    keys = np.repeat(
        np.asarray(jax.random.key_data(jax.random.split(jax.random.key(1), draws))), T * V, axis=0
    )
    tok_BT = np.tile(continued_TVT.reshape(T * V, T), (draws, 1))
    logp_BT = _forward(params, config, tok_BT, jax.random.wrap_key_data(keys)).logp_BT
    return np.einsum("ktvt->ktv", np.asarray(logp_BT).reshape(draws, T, V, T))


@pytest.mark.parametrize(
    ("kind", "kind_of_readout"),
    [("learned", "full"), ("gaussian", "seen"), ("permuted", "seen")],
)
def test_probabilities_of_all_next_symbols_sum_to_one(kind: str, kind_of_readout: str) -> None:
    config = model(kind, kind_of_readout)
    probability_TV = np.exp(next_symbol_logp(config, random_params(config))[0])
    np.testing.assert_allclose(probability_TV.sum(axis=1), 1.0, rtol=1e-5)
    assert np.ptp(probability_TV[-1]) > 0.1


def test_a_full_readout_of_a_drawn_lexicon_sums_to_one_on_average_over_draws() -> None:
    """Every unseen symbol is scored as the next drawn row, so a single draw is normalised over rows only."""
    config = model("gaussian", "full")
    total_KT = np.exp(next_symbol_logp(config, random_params(config), draws=MANY)).sum(axis=2)
    error_T = total_KT.std(axis=0) / np.sqrt(MANY)
    assert np.all(np.abs(total_KT.mean(axis=0) - 1) < 4 * error_T + 1e-4)
    all_seen = N_DISTINCT_BEFORE == V
    np.testing.assert_allclose(total_KT[:, all_seen], 1.0, rtol=1e-5)
    # With one symbol unseen it has the only row that is left.
    assert total_KT[:, N_DISTINCT_BEFORE < V - 1].std() > 0.01


@pytest.mark.parametrize(
    ("kind", "kind_of_readout"), [("gaussian", "full"), ("gaussian", "seen"), ("permuted", "seen")]
)
def test_unseen_symbols_are_exactly_equally_probable(kind: str, kind_of_readout: str) -> None:
    config = model(kind, kind_of_readout)
    logp_TV = next_symbol_logp(config, random_params(config), MANY if kind_of_readout == "full" else 1)[0]
    for t in range(T):
        unseen = np.setdiff1d(np.arange(V), TEXT[:t])
        assert len(set(logp_TV[t, unseen].tolist())) <= 1
    assert len(set(logp_TV[3, [3, 1]].tolist())) == 2


@pytest.mark.parametrize("kind", ["gaussian", "permuted"])
def test_both_readouts_agree_in_expectation(kind: str) -> None:
    """The full readout scores a new symbol by the next free row; the seen one shares the mass of all free rows. Over
    draws of the lexicon that is the same probability, and would not be if it were shared among one more.
    """
    config, draws = replace(model(kind, "full"), vocab_size=6), 4000
    params = random_params(config)
    tok_1T = np.array([[2, 5, 2, 0]], np.int32)
    is_new_T, n_seen_T = np.array([True, True, False, True]), np.array([0, 1, 2, 2])

    @jax.jit
    def probabilities(key_B: jax.Array) -> tuple[jax.Array, ...]:
        tok_BT, n_seen_BT = (jnp.broadcast_to(x, (draws, 4)) for x in (tok_1T, n_seen_T))
        h_BTD = forward(params, config, tok_BT, key_B).h_BTD
        lexicon, row_BR = draw_by_rank(
            config, params.embedding, key_B, first_occurrence(tok_BT), 6, jnp.dtype("float32")
        )
        logits_BTR = jnp.take_along_axis(
            readout.logits(config, lexicon.table, readout.predictors(params, h_BTD)), row_BR[:, None], axis=2
        )
        is_free_BTR = jnp.arange(6) >= n_seen_BT[:, :, None]
        free_BT = jax.nn.logsumexp(logits_BTR, axis=2, where=is_free_BTR)
        shared = partial(
            readout.combine_seen, logits_BTR, free_BT, first_occurrence(tok_BT), is_new_T, n_seen_BT
        )
        full_BT = readout.log_likelihood(params, config, lexicon, h_BTD)
        return jnp.exp(full_BT), jnp.exp(shared(6)), jnp.exp(shared(7))

    full_BT, shared_BT, wrong_BT = map(np.asarray, probabilities(jax.random.split(jax.random.key(5), draws)))
    np.testing.assert_allclose(full_BT[:, ~is_new_T], shared_BT[:, ~is_new_T], rtol=1e-4)

    def errors_away(other_BT: np.ndarray) -> np.ndarray:
        """How far the means over draws are apart, in standard errors."""
        difference_BT = (full_BT - other_BT)[:, is_new_T]
        return np.abs(difference_BT.mean(axis=0)) / (difference_BT.std(axis=0) / np.sqrt(draws))

    assert errors_away(shared_BT).max() < 4
    assert errors_away(wrong_BT).min() > 6


def test_rows_not_used_yet_differ_in_probability_under_the_full_readout_only() -> None:
    """The paper's readout tells unseen rows apart by chance; the seen readout does not look at them."""
    config = model("gaussian", "full")
    h_BTD = jnp.asarray(np.random.default_rng(0).normal(size=(1, 1, 8)), jnp.float32)
    table_BVD = jnp.asarray(np.random.default_rng(1).normal(size=(1, V, 8)), jnp.float32)
    assert len(set(np.asarray(readout.logits(config, table_BVD, h_BTD)).ravel().tolist())) == V

    seen = model("gaussian", "seen")
    lexicon = Lexicon(*[jnp.asarray([[0, 0, 1]])] * 2, table_BVD)
    changed = lexicon._replace(table=table_BVD.at[:, 2:].set(7.0))
    states = jnp.asarray(np.random.default_rng(2).normal(size=(1, 3, 8)), jnp.float32)
    params = random_params(seen)
    score = partial(jax.jit, static_argnums=1)(readout.log_likelihood)
    np.testing.assert_array_equal(score(params, seen, lexicon, states), score(params, seen, changed, states))


@pytest.mark.parametrize("kind", ["gaussian", "permuted"])
def test_the_first_symbol_has_probability_one_in_v_under_the_seen_readout(kind: str) -> None:
    config = model(kind, "seen")
    params = random_params(config)
    np.testing.assert_allclose(next_symbol_logp(config, params)[0, 0], np.full(V, -np.log(V)), rtol=1e-6)
    fresh = replace(params, start_D=jnp.zeros(8))
    np.testing.assert_array_equal(next_symbol_logp(config, fresh)[0, 0], np.full(V, -np.log(np.float32(V))))


def test_when_all_symbols_are_seen_nothing_is_left_for_others() -> None:
    config = model("permuted", "seen")
    params = random_params(config)
    plain = next_symbol_logp(config, params)[0]
    eager = next_symbol_logp(config, replace(params, unseen_D=100 * params.unseen_D))[0]
    all_seen = N_DISTINCT_BEFORE == V
    assert all_seen.sum() == 2
    np.testing.assert_array_equal(plain[all_seen], eager[all_seen])
    between = ~all_seen & (np.arange(T) > 0)
    assert np.all(np.any(plain[between] != eager[between], axis=1))


def test_seen_and_unseen_share_the_mass_as_the_logits_say() -> None:
    logits_BTR = jnp.asarray([[[0.0, 0.0, 0.0], [1.0, 9.0, 9.0], [2.0, -1.0, 9.0]]])
    unseen_BT = jnp.asarray([[0.3, 0.5, 0.7]])
    rank_BT, is_new_BT = jnp.asarray([[0, 1, 0]]), jnp.asarray([[True, True, False]])
    n_seen_BT = jnp.asarray([[0, 1, 2]])
    logp_BT = jax.jit(readout.combine_seen)(logits_BTR, unseen_BT, rank_BT, is_new_BT, n_seen_BT, 10)
    expected = [
        -np.log(10),
        0.5 - np.log(9) - np.log(np.exp(1.0) + np.exp(0.5)),
        2.0 - np.log(np.exp(2.0) + np.exp(-1.0) + np.exp(0.7)),
    ]
    np.testing.assert_allclose(logp_BT[0], expected, rtol=1e-6)


def test_gradients_of_impossible_logits_are_numbers() -> None:
    config = model("permuted", "seen")

    def loss(params: Params) -> jax.Array:
        key_B = jax.random.split(jax.random.key(0), 1)
        return jnp.mean(forward(params, config, TEXT[None], key_B).logp_BT)

    gradient = jax.jit(jax.grad(loss))(random_params(config))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert np.any(np.asarray(gradient.unseen_D) != 0)
    assert np.any(np.asarray(gradient.embedding.table_VD) != 0)


def test_each_position_is_predicted_by_the_state_before_it() -> None:
    params = random_params(SMALL)
    h_BTD = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 8)), jnp.float32)
    shifted = np.asarray(readout.predictors(params, h_BTD))
    np.testing.assert_array_equal(shifted[:, 0], np.tile(params.start_D, (2, 1)))
    np.testing.assert_array_equal(shifted[:, 1:], h_BTD[:, :-1])


def test_logits_are_float32_products_with_the_table() -> None:
    h_BTD, table_VD = (
        np.random.default_rng(0).normal(size=(2, 3, 8)),
        np.random.default_rng(1).normal(size=(V, 8)),
    )
    half_h, half_table = jnp.asarray(h_BTD, jnp.bfloat16), jnp.asarray(table_VD, jnp.float32)
    for config, scale in ((SMALL, 8**-0.5), (replace(SMALL, logit_scale="vocab"), V**-0.5)):
        ours = readout.logits(config, half_table, half_h)
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, h_BTD @ table_VD.T * scale, rtol=0.05, atol=0.05)


def test_the_deciphering_head_is_two_layers_over_the_state() -> None:
    config = replace(SMALL, decipher_head=True, decipher_hidden=6)
    params = random_params(config)
    h_BTD = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    head = jax.tree.map(lambda x: np.asarray(x, np.float64), params.decipher)
    before = h_BTD @ head.up_DP + head.up_bias_P
    gelu = 0.5 * before * (1 + np.tanh(np.sqrt(2 / np.pi) * (before + 0.044715 * before**3)))
    expected = gelu @ head.down_PV + head.down_bias_V
    np.testing.assert_allclose(
        decipher_logits(params, config, jnp.asarray(h_BTD)), expected, rtol=1e-4, atol=1e-5
    )
