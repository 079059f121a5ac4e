"""Sampling agrees with scoring, follows the distribution it is asked for, and knows no names either."""

from dataclasses import replace
from functools import cache
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.continuation import DecodeState, decode_step, prefill
from lexinvariant.model.generate import generate_tokens, sample
from lexinvariant.model.lexicon import first_occurrence
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import LEAST_TEMPERATURE, MOST_TEMPERATURE, to_ranks
from lexinvariant.model.scoring import score_tokens
from lexinvariant.rng import Stream, key_at
from tests.tiny_models import random_params

V, T = 6, 64
SMALL = ModelConfig(vocab_size=V, context=T, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=24)
TEXT = np.array([4, 4, 1, 5, 4, 1, 0, 5, 4, 4, 2, 1])  # without 3
LONG_TEXT = np.append(TEXT, np.random.default_rng(0).integers(0, V, T - len(TEXT)))


@cache
def model(
    kind: str,
    readout: str = "full",
    n_layers: int = 1,
    smeared: bool = False,
    recall: int = 0,
    counting: bool = False,
    positions: Literal["bias", "rotary"] = "bias",
) -> tuple[Params, ModelConfig]:
    lexicon = LexiconConfig(kind=kind)
    shape = replace(SMALL, readout=readout, smeared_keys=smeared, n_layers=n_layers, recall_width=recall)
    config = replace(shape, lexicon=lexicon, count_occurrences=counting, positions=positions)
    return random_params(config), config


def state_after(
    model: tuple[Params, ModelConfig], prompt_T: np.ndarray, key: jax.Array, batch: int = 1
) -> DecodeState:
    params, config = model
    # Some of it is not to be read, unless there is nothing to read.
    n_prompt = len(prompt_T) and len(prompt_T) + 3
    rank_BT = np.zeros((batch, n_prompt), np.int32)
    rank_BT[:, : len(prompt_T)] = to_ranks(config, prompt_T)
    key_B, n_B = jnp.broadcast_to(key, (batch,)), np.full(batch, len(prompt_T), np.int32)
    return prefill(params, config, key_B, rank_BT, n_B, n_ranks=V, max_new_tokens=T - n_prompt)


@pytest.mark.parametrize(
    ("model", "n_prompt"),
    [
        (model("gaussian"), 0),
        (model("gaussian", "seen", n_layers=2, smeared=True), 20),
        (model("permuted", "seen"), 0),
        (model("annealed", smeared=True), 20),
        (model("permuted", "seen", smeared=True, recall=5), 20),
        (model("permuted", "seen", counting=True), 20),
        (model("learned", counting=True), 0),
        (model("permuted", "seen", smeared=True, positions="rotary"), 20),
    ],
    ids=[
        "gaussian",
        "gaussian, seen, smeared",
        "permuted, seen",
        "annealed, smeared",
        "permuted, recall",
        "permuted, counting",
        "learned, counting",
        "permuted, rotary",
    ],
)
def test_reading_a_text_step_by_step_gives_its_score(
    model: tuple[Params, ModelConfig], n_prompt: int
) -> None:
    params, config = model
    rank_T = to_ranks(config, LONG_TEXT)
    state = state_after(model, LONG_TEXT[:n_prompt], key_at(3, Stream.EVAL, 0, 0))
    logp = []
    for rank in rank_T[n_prompt:]:
        logp.append(float(state.logp_BR[0, rank]))
        state = decode_step(params, config, state, jnp.array([rank]))
    [score] = score_tokens(params, config, [LONG_TEXT], seed=3)
    assert score.std() > 0.3
    np.testing.assert_allclose(logp, score[n_prompt:], rtol=1e-4, atol=2e-5)


N = 3000
PREFIX = np.array([0, 1, 0, 2], np.int32)


@pytest.fixture(scope="module")
def sharp() -> tuple[Params, ModelConfig]:
    params, config = model("learned")
    return replace(params, final_norm_D=2 * params.final_norm_D), config


def sample_after_prefix(
    model: tuple[Params, ModelConfig], key: int, temperature: float, top_k: int | None = None
) -> np.ndarray:
    """The symbol that each of N samples puts after the prefix."""
    state = state_after(model, PREFIX, jax.random.key(0), batch=N)
    k = None if top_k is None else jnp.int32(top_k)
    rank_BN = sample(*model, state, jnp.int32(1), jax.random.key(key), jnp.float32(temperature), k)
    return np.asarray(rank_BN)[:, 0]  # a standard LM's ranks are its symbols


@pytest.fixture(scope="module")
def next_logp_V(sharp: tuple[Params, ModelConfig]) -> np.ndarray:
    params, config = sharp
    scores = score_tokens(params, config, [np.append(PREFIX, symbol) for symbol in range(V)])
    return np.array([score[-1] for score in scores])


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_samples_follow_the_softmax_at_the_temperature(
    sharp: tuple[Params, ModelConfig], next_logp_V: np.ndarray, temperature: float
) -> None:
    symbols = sample_after_prefix(sharp, key=1, temperature=temperature)
    expected_V = np.exp(next_logp_V / temperature)
    expected_V *= N / expected_V.sum()
    observed_V = np.bincount(symbols, minlength=V)
    assert np.sum((observed_V - expected_V) ** 2 / expected_V) < 20.5  # 0.1% of chi-square with 5 degrees
    logp_BR = state_after(sharp, PREFIX, jax.random.key(0), batch=N).logp_BR
    np.testing.assert_allclose(logp_BR, np.tile(next_logp_V, (N, 1)), rtol=1e-4, atol=1e-5)


def test_a_cold_model_takes_the_likeliest(sharp: tuple[Params, ModelConfig], next_logp_V: np.ndarray) -> None:
    symbols = sample_after_prefix(sharp, key=1, temperature=1e-4)
    assert set(symbols.tolist()) == {int(np.argmax(next_logp_V))}


def test_top_k_samples_among_the_k_likeliest(
    sharp: tuple[Params, ModelConfig], next_logp_V: np.ndarray
) -> None:
    symbols = sample_after_prefix(sharp, key=1, temperature=3.0, top_k=3)
    assert set(symbols.tolist()) == set(np.argsort(next_logp_V)[-3:].tolist())


def test_top_1_is_deterministic_and_greedy() -> None:
    params, config = model("learned")
    texts = {
        tuple(generate_tokens(params, config, TEXT[:3], 8, top_k=1, temperature=5.0, seed=seed).tolist())
        for seed in range(3)
    }
    assert len(texts) == 1
    read = TEXT[:3]
    for symbol in next(iter(texts)):
        scores = score_tokens(params, config, [np.append(read, candidate) for candidate in range(V)])
        assert symbol == np.argmax([score[-1] for score in scores])
        read = np.append(read, symbol)


def test_the_seed_decides_the_text() -> None:
    params, config = model("permuted", "seen")
    texts = [generate_tokens(params, config, TEXT, 30, seed=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(texts[0], texts[1])
    assert np.any(texts[0] != texts[2])


def test_a_shorter_request_is_the_start_of_a_longer_one() -> None:
    params, config = model("permuted", "seen")
    longer = generate_tokens(params, config, TEXT, 30)
    np.testing.assert_array_equal(generate_tokens(params, config, TEXT, 7), longer[:7])


def test_the_coldest_and_the_hottest_are_as_they_should_be() -> None:
    params, config = model("learned")
    coldest = generate_tokens(params, config, TEXT, 20, temperature=LEAST_TEMPERATURE)
    np.testing.assert_array_equal(coldest, generate_tokens(params, config, TEXT, 20, top_k=1))
    hottest = generate_tokens(params, config, TEXT, 60, temperature=MOST_TEMPERATURE)
    assert len(set(hottest.tolist())) == V
    only = generate_tokens(params, config, TEXT, 20, temperature=MOST_TEMPERATURE, top_k=1)
    np.testing.assert_array_equal(only, coldest)  # however hot, what is left out is not drawn


def test_no_more_is_sampled_than_asked_for_and_by_one_program(caplog: pytest.LogCaptureFixture) -> None:
    params, config = model("permuted", "seen", n_layers=2)  # which no other test samples from
    state, key = state_after((params, config), TEXT, jax.random.key(0)), jax.random.key(1)
    with jax.log_compiles(), caplog.at_level("WARNING"):
        for n, top_k in ((1, None), (30, None), (2, 1), (3, 4)):
            k = None if top_k is None else jnp.int32(top_k)
            rank_1S = np.asarray(sample(params, config, state, jnp.int32(n), key, jnp.float32(1e4), k))
            assert not rank_1S[0, n:].any()
    assert rank_1S.shape[1] >= 30
    compiled = [message for message in caplog.messages if message.startswith("Compiling jit(sample)")]
    assert len(compiled) == 2, caplog.messages  # with top_k and without


@pytest.mark.parametrize(("kind", "readout"), [("gaussian", "full"), ("permuted", "seen")])
def test_a_renamed_prompt_is_continued_by_the_renamed_continuation(kind: str, readout: str) -> None:
    params, config = model(kind, readout)
    prompt = np.append(TEXT, 3)
    assert len(set(prompt.tolist())) == V
    expected = generate_tokens(params, config, prompt, 40)
    assert len(set(expected.tolist())) > 1
    for seed in range(3):
        pi = np.random.default_rng(seed).permutation(V)
        np.testing.assert_array_equal(generate_tokens(params, config, pi[prompt], 40), pi[expected])


@pytest.mark.parametrize(("kind", "readout"), [("gaussian", "full"), ("permuted", "seen")])
def test_symbols_not_in_the_prompt_get_fresh_names_that_do_not_clash(kind: str, readout: str) -> None:
    params, config = model(kind, readout)
    prompt, renamed = np.array([2, 2, 0]), np.array([5, 5, 1])
    texts = [np.append(p, generate_tokens(params, config, p, 40)) for p in (prompt, renamed)]
    patterns = [np.asarray(first_occurrence(jnp.asarray(text)[None])) for text in texts]
    np.testing.assert_array_equal(*patterns)
    assert all(0 <= text.min() <= text.max() < V for text in texts)
    assert len(set(texts[0].tolist())) > 2


def test_an_empty_prompt_starts_from_nothing() -> None:
    params, config = model("permuted", "seen")
    firsts = {int(generate_tokens(params, config, np.zeros(0, int), 1, seed=seed)[0]) for seed in range(12)}
    assert len(firsts) > 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_tokens": 0}, "n_tokens is 0: give a number of at least 1"),
        ({"temperature": 0.0}, r"temperature is 0\.0: give a number from 1e-30 to 1e\+30, or top_k=1"),
        ({"temperature": -1.0}, "or top_k=1 for the likeliest symbol each time"),
        ({"temperature": 1e-38}, "temperature is 1e-38: give"),  # to a GPU it is 0
        ({"temperature": 1e300}, "temperature is 1e.300: give"),  # infinite in float32
        ({"top_k": 0}, "top_k is 0: give a number of at least 1"),
        ({"top_k": V + 1}, "top_k is 7: give at most 6"),
    ],
)
def test_bad_arguments_are_refused_with_what_is_allowed(arguments: dict[str, float], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        generate_tokens(*model("gaussian"), TEXT, **{"n_tokens": 5, **arguments})


@pytest.mark.parametrize("kind", ["gaussian", "learned"])
@pytest.mark.parametrize("token", [-1, V])
def test_a_prompt_outside_the_vocabulary_is_refused(kind: str, token: int) -> None:
    with pytest.raises(UserError, match=r"outside 0\.\.5"):
        generate_tokens(*model(kind), np.array([0, token]), 5)
