"""Greedy continuation of many prompts is what one cold sampler writes, and what scoring calls the likeliest."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.generate import generate_tokens
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.params import Params
from lexinvariant.model.scoring import mixture, score_tokens
from lexinvariant.rng import Stream, key_at
from tests.tiny_models import random_params

V = 6
SMALL = ModelConfig(vocab_size=V, context=64, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=24)
KINDS = [
    ("gaussian", "full"),
    ("permuted", "seen"),
    ("learned", "full"),
]
PROMPTS = [
    np.array(p)
    for p in ([4, 4, 1, 5, 4, 1, 0, 3, 2], [2, 0, 2, 0, 2, 0], [5], [0, 1, 2, 3, 4, 5], [1, 1, 1, 1])
]


@cache
def model(kind: str, readout: str) -> tuple[Params, ModelConfig]:
    n_layers = 2 if kind == "permuted" else 1
    lexicon = LexiconConfig(kind=kind)
    recall = 5 if kind == "permuted" else 0
    shape = replace(SMALL, readout=readout, smeared_keys=True, n_layers=n_layers, recall_width=recall)
    config = replace(shape, lexicon=lexicon)
    return random_params(config), config


@pytest.mark.parametrize(("kind", "readout"), KINDS)
def test_many_prompts_at_once_are_what_a_cold_sampler_writes_one_by_one(
    kind: str, readout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    params, config = model(kind, readout)

    def samplers_lexicon(seed: int, address_B: jax.Array, draw: int) -> jax.Array:
        return jnp.broadcast_to(key_at(seed, Stream.SAMPLE, 0), (len(address_B),))

    monkeypatch.setattr("lexinvariant.model.greedy.evaluation_keys", samplers_lexicon)
    together = greedy_tokens(params, config, PROMPTS, 8, seed=7, batch_size=2).tolist()
    alone = [generate_tokens(params, config, p, 8, temperature=1e-6, seed=7).tolist() for p in PROMPTS]
    if readout == "seen":  # unseen symbols are exactly as likely as each other: any of them is the likeliest
        together, alone = (
            [pattern(prompt, more) for prompt, more in zip(PROMPTS, continued, strict=True)]
            for continued in (together, alone)
        )
    assert together == alone
    if kind != "learned":
        assert len({tuple(text) for text in together}) > 1


def pattern(prompt: np.ndarray, more: list[int]) -> list[int]:
    """Which symbols are equal, without their names."""
    text = [*prompt.tolist(), *more]
    return [text.index(symbol) for symbol in text]


def test_each_token_is_the_one_that_scoring_finds_likeliest_on_average_over_draws() -> None:
    params, config = model("gaussian", "seen")
    draws = 3
    prompt = np.array([4, 4, 1, 5, 4, 1, 0, 3, 2])  # every symbol has been seen
    more = greedy_tokens(params, config, [prompt], 3, address_S=np.array([11]), seed=5, draws=draws)[0]
    n = len(prompt)
    for i, token in enumerate(more):
        candidate_VT = np.zeros((V, n + len(more)), int)
        candidate_VT[:, : n + i] = [*prompt, *more[:i]]
        candidate_VT[:, n + i] = np.arange(V)
        logp_KVT = np.stack([logp_of(params, config, candidate_VT, draw) for draw in range(draws)])
        last_V = [mixture(logp_KVT[:, v, : n + i + 1])[-1] for v in range(V)]
        assert np.exp(last_V).sum() == pytest.approx(1.0, abs=1e-4)
        assert token == np.argmax(last_V)


def logp_of(params: Params, config: ModelConfig, tok_ST: np.ndarray, draw: int) -> np.ndarray:
    [(_, output)] = forward_batches(
        params, config, tok_ST, np.full(len(tok_ST), 11), seed=5, draw=draw, batch_size=V
    )
    return np.asarray(output.logp_BT)


def test_neither_batch_size_nor_neighbours_nor_padding_change_a_continuation() -> None:
    params, config = model("permuted", "seen")
    expected = greedy_tokens(params, config, PROMPTS, 8, batch_size=2)
    alone = greedy_tokens(params, config, PROMPTS[3:4], 8, address_S=np.array([3]))
    np.testing.assert_array_equal(alone[0], expected[3])


def test_prompts_that_would_not_fit_into_memory_together_are_read_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params, config = model("permuted", "seen")
    done: list[int] = []
    expected = greedy_tokens(params, config, PROMPTS, 4, draws=3, advance=done.append)
    assert done == [len(PROMPTS)]
    monkeypatch.setattr("lexinvariant.model.greedy.MOST_BYTES", 1)
    done.clear()
    alone = greedy_tokens(params, config, PROMPTS, 4, draws=3, advance=done.append)
    assert done == [1] * len(PROMPTS)
    np.testing.assert_array_equal(alone, expected)


def test_a_renamed_prompt_is_continued_by_the_renamed_continuation() -> None:
    params, config = model("permuted", "seen")
    prompt = PROMPTS[3]
    assert len(prompt) == V  # every name is known from the prompt
    pi = np.random.default_rng(0).permutation(V)
    expected = greedy_tokens(params, config, [prompt], 8)
    np.testing.assert_array_equal(greedy_tokens(params, config, [pi[prompt]], 8), pi[expected])


def test_an_empty_prompt_and_news() -> None:
    params, config = model("learned", "full")
    done: list[int] = []
    first = greedy_tokens(params, config, [np.zeros(0, int)] * 3, 1, batch_size=2, advance=done.append)
    likeliest = np.argmax([score_tokens(params, config, [np.array([v])])[0][0] for v in range(V)])
    assert set(first[:, 0].tolist()) == {int(likeliest)}
    assert done == [2, 1]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UserError, match="at least 1"):
        greedy_tokens(*model("learned", "full"), PROMPTS, 0)
    with pytest.raises(UserError, match=r"outside 0\.\.5"):
        greedy_tokens(*model("learned", "full"), [np.array([V])], 1)
