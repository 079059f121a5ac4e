"""log p(x): the same for every renaming of x, whatever stands beside it, and a true mixture over draws."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model import padding
from lexinvariant.model.params import Params
from lexinvariant.model.scoring import mixture, next_token_log_probs, score_and_compare, score_tokens
from lexinvariant.model.transformer import forward
from lexinvariant.rng import Stream, key_at
from tests.tiny_models import random_params

V = 9
SMALL = ModelConfig(vocab_size=V, context=16, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=24)
TEXT = np.array([4, 4, 1, 7, 4, 1, 0, 7, 4, 4, 2, 1, 7])


@cache
def model(kind: str, readout: str) -> tuple[Params, ModelConfig]:
    config = replace(SMALL, lexicon=LexiconConfig(kind=kind), readout=readout, smeared_keys=readout == "seen")
    return random_params(config), config


def renamings(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.stack([rng.permutation(V) for _ in range(n)])


@pytest.mark.parametrize("kind", ["gaussian", "permuted"])
@pytest.mark.parametrize("readout", ["full", "seen"])
def test_a_renamed_text_has_bit_for_bit_the_same_score(kind: str, readout: str) -> None:
    params, config = model(kind, readout)
    [expected] = score_tokens(params, config, [TEXT], draws=3)
    assert np.ptp(expected) > 0.1
    for score in score_tokens(params, config, [pi[TEXT] for pi in renamings(40)], draws=3):
        np.testing.assert_array_equal(score, expected)


def test_a_standard_model_knows_names() -> None:
    params, config = model("learned", "full")
    scores = score_tokens(params, config, [TEXT, *(pi[TEXT] for pi in renamings(20))])
    assert len({score.tobytes() for score in scores}) > 15


def test_texts_of_any_lengths_score_as_they_do_alone() -> None:
    params, config = model("gaussian", "seen")
    rng = np.random.default_rng(2)
    texts = [rng.integers(0, V, n) for n in (3, 16, 17, 1, 30, 16)]
    together = score_tokens(params, config, texts, draws=2)
    for text, score in zip(texts, together, strict=True):
        assert score.shape == text.shape
        np.testing.assert_array_equal(score_tokens(params, config, [text], draws=2)[0], score)


def test_more_texts_than_a_batch_holds_all_get_their_scores() -> None:
    params, config = model("permuted", "seen")
    one_more_than_a_batch = padding.CPU_TOKENS_PER_BATCH // 16 + 1
    first, last = TEXT, TEXT[::-1]
    scores = score_tokens(params, config, [*[first] * (one_more_than_a_batch - 1), last])
    assert len(scores) == one_more_than_a_batch
    assert len({score.tobytes() for score in scores[:-1]}) == 1
    np.testing.assert_array_equal(scores[-1], score_tokens(params, config, [last])[0])
    assert np.any(scores[-1] != scores[0])


def test_the_padding_of_a_text_does_not_alter_its_score() -> None:
    params, config = model("gaussian", "seen")
    [longer] = score_tokens(params, config, [np.concatenate([TEXT, [8, 8, 8]])])
    [score] = score_tokens(params, config, [TEXT])
    np.testing.assert_array_equal(longer[: len(TEXT)], score)


@pytest.mark.parametrize(
    ("kind", "readout", "draws"),
    [("learned", "full", 1), ("permuted", "seen", 3), ("gaussian", "seen", 1), ("gaussian", "full", 2)],
)
def test_a_token_is_compared_with_all_that_could_have_come(kind: str, readout: str, draws: int) -> None:
    params, config = model(kind, readout)
    texts = [TEXT, TEXT[:5]]
    found = score_and_compare(params, config, texts, draws=draws)
    is_new_T = np.array([tok not in TEXT[:t] for t, tok in enumerate(TEXT)])
    for text, (score_T, likeliest_T) in zip(texts, found, strict=True):
        np.testing.assert_allclose(score_T, score_tokens(params, config, [text], draws=draws)[0], atol=1e-4)
        logp_SV = next_token_log_probs(params, config, text, draws=draws)[:-1]
        expected_T = logp_SV.argmax(axis=1) == text
        if config.lexicon.is_lexinvariant:  # symbols that have not come are alike
            expected_T &= ~is_new_T[: len(text)]
        np.testing.assert_array_equal(likeliest_T, expected_T)
    # The likeliest token in place of the last one is known as such.
    best = next_token_log_probs(params, config, TEXT, draws=draws)[-2].argmax()
    if best in TEXT[:-1]:
        [(_, likeliest_T)] = score_and_compare(params, config, [np.append(TEXT[:-1], best)], draws=draws)
        assert likeliest_T[-1]


def test_mixture_is_the_log_of_the_average_probability_of_every_prefix() -> None:
    logp_KT = np.log(np.random.default_rng(0).uniform(0.01, 1, (4, 7)))
    mixed_T = mixture(logp_KT)
    for t in range(1, 8):
        average = np.mean([np.exp(row[:t].sum()) for row in logp_KT])
        assert mixed_T[:t].sum() == pytest.approx(np.log(average), rel=1e-12)


def test_mixture_weighs_draws_by_how_well_they_predicted_so_far() -> None:
    logp_KT = np.log(np.random.default_rng(0).uniform(0.01, 1, (4, 7)))
    mixed_T = mixture(logp_KT)
    for t in range(7):
        evidence_K = np.exp(logp_KT[:, :t].sum(axis=1))
        predicted = np.sum(evidence_K / evidence_K.sum() * np.exp(logp_KT[:, t]))
        assert mixed_T[t] == pytest.approx(np.log(predicted), rel=1e-9)


def test_mixture_of_one_or_of_equal_draws_is_the_draw() -> None:
    logp_T = np.log(np.random.default_rng(0).uniform(0.01, 1, 7))
    np.testing.assert_allclose(mixture(logp_T[None]), logp_T, rtol=1e-12)
    np.testing.assert_allclose(mixture(np.stack([logp_T] * 3)), logp_T, rtol=1e-12)


def test_mixture_of_long_texts_does_not_underflow() -> None:
    logp_KT = np.full((2, 5000), -9.0)
    logp_KT[1] = -10.0
    mixed_T = mixture(logp_KT)
    assert mixed_T.sum() == pytest.approx(-9.0 * 5000 - np.log(2))
    assert mixed_T[-1] == pytest.approx(-9.0)


def test_a_score_is_the_mixture_of_the_draws_at_their_addresses() -> None:
    params, config = model("permuted", "seen")
    key_K = jnp.stack([key_at(11, Stream.EVAL, 0, k) for k in range(3)])
    tok_KT = np.tile(np.pad(TEXT, (0, 16 - len(TEXT))), (3, 1)).astype(np.int32)
    logp_KT = jax.jit(forward, static_argnums=1)(params, config, tok_KT, key_K).logp_BT[:, : len(TEXT)]
    [score] = score_tokens(params, config, [TEXT], draws=3, seed=11)
    np.testing.assert_allclose(score, mixture(np.asarray(logp_KT)), rtol=1e-5, atol=1e-6)
    whole_K = np.asarray(logp_KT, np.float64).sum(axis=1)
    assert np.ptp(whole_K) > 0.1
    assert score.sum() == pytest.approx(logsumexp(whole_K) - np.log(3), abs=1e-4)


def test_another_seed_draws_another_lexicon() -> None:
    params, config = model("gaussian", "seen")
    scores = [score_tokens(params, config, [TEXT], seed=seed)[0] for seed in (0, 0, 1)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.any(scores[0] != scores[2])


@pytest.mark.parametrize("seed", [1 << 32, -1, (1 << 62) + 3])
def test_seeds_of_more_bits_are_others(seed: int) -> None:
    params, config = model("gaussian", "seen")
    for short in (seed & 0xFFFFFFFF, 0):
        scores = [score_tokens(params, config, [TEXT], seed=s)[0] for s in (seed, seed, short)]
        np.testing.assert_array_equal(scores[0], scores[1])
        assert np.any(scores[0] != scores[2])
        assert (key_at(seed, Stream.EVAL) != key_at(short, Stream.EVAL)).any()


def test_one_short_text_is_not_padded_to_many() -> None:
    [(members, tok_BT)] = padding.batches_by_length(SMALL, [TEXT], padding.CPU_TOKENS_PER_BATCH)
    assert members == [0] and tok_BT.size <= 128


@pytest.mark.parametrize(
    ("texts", "draws", "sentence"),
    [
        ([TEXT, TEXT[:0]], 1, "Text 1 is empty"),
        ([np.zeros(padding.MAX_TOKENS + 1, int)], 1, "Text 0 has 16385 tokens and the most is 16384"),
        ([TEXT, TEXT, np.array([0, V])], 1, "Text 2 has a token outside 0..8"),
        ([np.array([-1])], 1, "Text 0 has a token outside 0..8"),
        ([TEXT], 0, "at least one draw"),
    ],
)
def test_what_cannot_be_scored_is_told_in_a_sentence(
    texts: list[np.ndarray], draws: int, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        score_tokens(*model("gaussian", "seen"), texts, draws=draws)
