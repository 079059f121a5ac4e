"""The exact mixture against its definition, the paper's toy example, and bad input."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.theory import (
    HMM,
    FunctionLanguage,
    NGramLanguage,
    Smoothed,
    exact,
    from_texts,
    markov,
    random_markov,
)
from lexinvariant.theory.languages import KnownLanguage, symmetric_markov


def joint(language: KnownLanguage, text: tuple[int, ...]) -> float:
    """p(text), one symbol at a time, in plain Python."""
    rows = language.predictions(np.array(text))
    return math.prod(float(rows[t, symbol]) for t, symbol in enumerate(text))


def definition(language: KnownLanguage, text: tuple[int, ...]) -> float:
    """p'(text) = E_pi[p(pi^-1(text))], straight from the paper."""
    d = language.d
    total = 0.0
    for forward in itertools.permutations(range(d)):
        inverse = {cipher: plain for plain, cipher in enumerate(forward)}
        total += joint(language, tuple(inverse[symbol] for symbol in text))
    return total / math.factorial(d)


def some_hmm(rng: np.random.Generator, states: int = 3, d: int = 4) -> HMM:
    ones = np.ones
    return HMM(
        rng.dirichlet(ones(states)), rng.dirichlet(ones(states), states), rng.dirichlet(ones(d), states)
    )


@pytest.mark.parametrize("kind", ["markov", "trigram", "hmm", "function", "smoothed"])
def test_enumeration_is_the_definition(kind: str) -> None:
    rng = np.random.default_rng(5)
    language: KnownLanguage
    if kind == "markov":
        language = random_markov(4, rng)
    elif kind == "trigram":
        language = NGramLanguage([rng.dirichlet(np.ones(3), (3,) * j) for j in range(3)])
    elif kind == "hmm":
        language = some_hmm(rng)
    elif kind == "function":
        language = FunctionLanguage(lambda prefix: np.array([1 + len(prefix), 2, 3]) / (6 + len(prefix)), 3)
    else:
        language = Smoothed(random_markov(3, rng), 0.1)
    text = rng.integers(language.d, size=7)
    trace = exact(language, text)
    for t in range(1, 8):
        expected = definition(language, tuple(text[:t]))
        assert np.exp(trace.logp_T[:t].sum()) == pytest.approx(expected, rel=1e-10)
    # The next-symbol prediction is the ratio of two joints, for symbols that did not come as well.
    for symbol in range(language.d):
        ratio = definition(language, (*text[:4], symbol)) / definition(language, tuple(text[:4]))
        assert trace.prob_TV[4, symbol] == pytest.approx(ratio, rel=1e-10)
    np.testing.assert_allclose(trace.prob_TV.sum(axis=1), 1, atol=1e-12)


def test_the_papers_toy_example() -> None:
    language = from_texts({"babbbb": 0.5, "ababab": 0.5}, "ab")
    a, b = 0, 1
    trace = exact(language, [a, b, a, b, a])
    assert trace.prob_TV[3, a] == trace.prob_TV[3, b] == pytest.approx(0.5)  # p(a|aba) = p(b|aba)
    assert trace.prob_TV[4, a] == pytest.approx(1)  # p(a|abab) = 1
    assert trace.prob_TV[4, b] == 0
    mirrored = exact(language, [b, a, b, a, b])  # p(a|aba) = p(b|bab), by lexinvariance
    np.testing.assert_allclose(mirrored.prob_TV[:, ::-1], trace.prob_TV)
    assert trace.entropy_T[2] == pytest.approx(np.log(2))
    assert trace.entropy_T[3] == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.permutations(range(4)))
def test_lexinvariance(seed: int, relabel: list[int]) -> None:
    rng = np.random.default_rng(seed)
    language = random_markov(4, rng)
    text = language.sample(rng, 30)
    forward = np.array(relabel)
    plain, cipher = exact(language, text), exact(language, forward[text], true_key=np.argsort(forward))
    np.testing.assert_allclose(cipher.prob_TV[:, forward], plain.prob_TV, atol=1e-12)
    np.testing.assert_allclose(cipher.known_TV[:, forward], plain.known_TV, atol=1e-12)
    np.testing.assert_allclose(cipher.key_matrix_VV[forward], plain.key_matrix_VV, atol=1e-12)
    np.testing.assert_allclose(cipher.regret_T, plain.regret_T, atol=1e-9)


def test_posterior_and_key_matrix() -> None:
    rng = np.random.default_rng(0)
    language = random_markov(5, rng)
    trace = exact(language, language.sample(rng, 200))
    posterior = np.exp(trace.log_posterior_N)
    assert posterior.sum() == pytest.approx(1)
    np.testing.assert_allclose(trace.key_matrix_VV.sum(axis=0), 1)
    np.testing.assert_allclose(trace.key_matrix_VV.sum(axis=1), 1)
    np.testing.assert_allclose(np.diag(trace.key_matrix_VV), 1, atol=1e-3)  # long text: the key is known
    # The regret is log d! + log P(true key | text), so the surprise needs no posterior.
    assert trace.key_surprise_T[-1] == pytest.approx(-trace.log_posterior_N[0], abs=1e-9)


def test_expected_kl_is_the_entropy_lost() -> None:
    """Sum of E KL_t = log d! - E H(key | text): exact, over all texts of length 5."""
    language = random_markov(3, np.random.default_rng(3))
    spent = entropy = surprise = 0.0
    for text in itertools.product(range(3), repeat=5):
        weight, trace = joint(language, text), exact(language, np.array(text))
        spent += weight * trace.kl_T.sum()
        entropy += weight * trace.entropy_T[-1]
        surprise += weight * trace.key_surprise_T[-1]
    assert spent == pytest.approx(math.log(6) - entropy, rel=1e-9)
    assert surprise == pytest.approx(entropy, rel=1e-9)


def test_interchangeable_symbols_cost_nothing() -> None:
    rng = np.random.default_rng(1)
    language = symmetric_markov(4, rng)
    traces = [exact(language, language.sample(rng, 400)) for _ in range(3)]
    for trace in traces:
        assert trace.entropy_T[-1] == pytest.approx(2 * np.log(2), abs=0.02)  # each pair stays a coin
        assert trace.l1_T[-1] < 0.01


def test_one_symbol_is_trivial() -> None:
    trace = exact(NGramLanguage([[1.0]]), [0, 0, 0])
    assert trace.l1_T.tolist() == [0, 0, 0]
    assert trace.entropy_T.tolist() == [0, 0, 0]
    assert trace.regret_T[-1] == 0


def test_long_texts_do_not_underflow() -> None:
    language = markov([[0.5, 0.5], [0.4, 0.6]])
    trace = exact(language, np.zeros(5000, dtype=int))
    assert np.isfinite(trace.logp_T).all()
    assert trace.logp_T.sum() < -2000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NGramLanguage([[0.5, 0.6]]), "not normalised"),
        (lambda: NGramLanguage([[1.5, -0.5]]), "negative"),
        (lambda: NGramLanguage([[0.5, 0.5], [0.5, 0.5]]), "shape"),
        (lambda: NGramLanguage([]), "at least one table"),
        (lambda: HMM([1.0], [[1.0]], [[0.5, 0.4]]), "HMM emission is not normalised"),
        (lambda: HMM([0.5, 0.5], [[1.0]], [[0.5, 0.5]]), "number of states"),
        (lambda: exact(NGramLanguage([[0.5, 0.5]]), []), "empty"),
        (lambda: exact(NGramLanguage([[0.5, 0.5]]), [0, 2]), "outside 0..1"),
        (lambda: exact(NGramLanguage([[0.5, 0.5]]), [0.0, 1.0]), "integers"),
        (lambda: exact(NGramLanguage([np.full(9, 1 / 9)]), [0]), "out of reach"),
        (lambda: exact(NGramLanguage([[0.5, 0.5]]), [0], true_key=[0, 0]), "once"),
        (lambda: exact(FunctionLanguage(lambda prefix: [0.9, 0.9], 2), [0]), "not normalised"),
        (lambda: exact(NGramLanguage([[1.0, 0.0]]), [0, 1]), "probability zero under every relabelling"),
        (lambda: Smoothed(NGramLanguage([[0.5, 0.5]]), 1.0), "sigma"),
    ],
)
def test_bad_input_is_one_clear_sentence(make: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()  # type: ignore[operator]
