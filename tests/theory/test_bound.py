"""Each inequality of the proof with its tight constant, the repaired and the sharp theorem, and both directions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.theory import (
    FunctionLanguage,
    NGramLanguage,
    Smoothed,
    context_needed,
    error_guaranteed,
    exact,
    expected_error,
    hellinger_budget,
    log_factorial,
    random_markov,
)
from lexinvariant.theory.bound import KINDS, Kind, azuma_deviation, increment_bound, smoothing_cost
from lexinvariant.theory.divergence import hellinger_squared, kl, l1, l1_from_hellinger, pinsker
from lexinvariant.theory.languages import KnownLanguage, near_uniform
from lexinvariant.theory.worst import fit_exponent, two_level_l1


def pairs(seed: int, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(d, 0.5), 200), rng.dirichlet(np.full(d, 0.5), 200)


def near_pair(step: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0.5 + step, 0.5 - step]), np.array([0.5, 0.5])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_pinsker_and_hellinger_hold(seed: int) -> None:
    p, q = pairs(seed)
    assert np.all(l1(p, q) <= pinsker(kl(p, q)) + 1e-12)
    assert np.all(l1(p, q) <= l1_from_hellinger(hellinger_squared(p, q)) + 1e-12)


def test_their_constants_are_tight_and_the_papers_pinsker_is_for_half_the_norm() -> None:
    p, q = near_pair()
    assert l1(p, q) > 0.999 * pinsker(kl(p, q))
    assert l1(p, q) > 0.999 * l1_from_hellinger(hellinger_squared(p, q))
    assert l1(p, q) > np.sqrt(kl(p, q) / 2)  # as printed: false for the L1 norm


def test_divergences_at_the_edges() -> None:
    certain, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert kl(certain, other) == np.inf
    assert kl(certain, certain) == 0
    assert l1(certain, other) == 2
    assert hellinger_squared(certain, other) == 2


# --- the sharp theorem -------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_the_exponential_supermartingale(seed: int) -> None:
    """E exp((H^2 - log p/q) / 2) <= 1, the step that replaces smoothing and Azuma."""
    p, q = pairs(seed)
    expectation = np.sum(p * np.exp((hellinger_squared(p, q)[:, None] - np.log(p / q)) / 2), axis=1)
    assert np.all(expectation <= 1 + 1e-12)


def test_the_supermartingale_is_tight() -> None:
    p, q = near_pair(0.05)
    assert np.sum(p * np.exp((1.1 * hellinger_squared(p, q) - np.log(p / q)) / 2)) > 1


def _possible(language: KnownLanguage, text: tuple[int, ...]) -> bool:
    rows = language.predictions(np.array(text))
    return bool(np.all(rows[np.arange(len(text)), text] > 0))


@pytest.mark.parametrize("gap", [0.3, 0.9])
def test_hellinger_budget_holds_exactly(gap: float) -> None:
    """P(sum of squared Hellinger distances > budget) <= delta, by summing over all texts of nine symbols."""
    traces = [exact(near_uniform(2, gap), np.array(text)) for text in itertools.product(range(2), repeat=9)]
    weight = np.array([np.exp(trace.known_logp_T.sum()) for trace in traces])
    total = np.array([trace.hellinger_T.sum() for trace in traces])
    assert weight.sum() == pytest.approx(1)
    for delta in (0.01, 0.1, 0.4):
        assert weight[total > hellinger_budget(2, delta)].sum() <= delta


def test_hellinger_budget_is_not_twice_too_large() -> None:
    """Six symbols in a fixed order: the sum is certain, and more than half of the budget."""
    language = FunctionLanguage(lambda prefix: np.eye(6)[len(prefix) % 6], 6)
    total = exact(language, np.arange(6)).hellinger_T.sum()
    assert 0.55 * hellinger_budget(6, 0.49) < total <= hellinger_budget(6, 0.49)


def test_expected_error_holds_and_needs_its_constant() -> None:
    """A certain first symbol out of two: L1 = 1 at T = 1, bound sqrt(2 log 2) = 1.18; the paper's Pinsker
    gives 0.59.
    """
    trace = exact(NGramLanguage([[1.0, 0.0]]), [0])
    assert trace.average_l1_T[0] == 1.0
    assert trace.average_l1_T[0] <= expected_error(2, 1)
    assert trace.average_l1_T[0] > math.sqrt(log_factorial(2) / 2)


@pytest.mark.parametrize("d", [2, 4, 6])
def test_expected_error_above_the_worst_languages_and_within_a_small_factor(d: int) -> None:
    rng = np.random.default_rng(d)
    worst = 0.0
    for gap in (0.1, 0.2, 0.3, 0.5):
        mean = two_level_l1(d, gap, 300, 128, rng).mean()
        assert mean <= expected_error(d, 128)
        worst = max(worst, mean)
    assert worst > expected_error(d, 128) / 3  # so the bound cannot be three times smaller


def test_guarantees_hold_on_sampled_texts() -> None:
    rng = np.random.default_rng(3)
    delta, T = 0.1, 200
    for language in (random_markov(4, rng), near_uniform(4, 0.4), random_markov(2, rng, 0.1)):
        measured = np.array([exact(language, language.sample(rng, T)).average_l1_T[-1] for _ in range(20)])
        for kind in KINDS:
            assert np.mean(measured > error_guaranteed(language.d, T, delta, kind).epsilon) <= delta


# --- the repaired route ------------------------------------------------------------------------------------


def rare_switch(rare: float) -> FunctionLanguage:
    """Two symbols; the second equals the first but for a rare switch, much rarer after 1 than after 0."""

    def next_symbol(prefix: tuple[int, ...]) -> list[float]:
        if not prefix:
            return [0.5, 0.5]
        if len(prefix) == 1:
            return [1 - rare, rare] if prefix[0] == 0 else [rare**2, 1 - rare**2]
        return [1.0, 0.0]

    return FunctionLanguage(next_symbol, 2)


def test_smoothed_conditionals_are_not_close_for_every_prefix() -> None:
    """The paper adds 2 sigma for p' against p~'. After a rare prefix they differ by 1, however small sigma is."""
    sigma, rare = 1e-4, 1e-9
    text = np.array([0, 1, 0])  # possible under p
    plain, smooth = exact(rare_switch(rare), text), exact(Smoothed(rare_switch(rare), sigma), text)
    difference = l1(plain.prob_TV[2], smooth.prob_TV[2])
    assert difference > 0.9
    assert difference > 1000 * 2 * sigma


@pytest.mark.parametrize("sigma", [0.01, 0.1])
def test_smoothing_costs_little_on_average(sigma: float) -> None:
    """The repair, exactly, over all texts of p: E||p' - p~'|| <= 2 sigma + 2 sigma (t - 1), and Markov's inequality."""
    length = 5
    for language in (rare_switch(1e-3), random_markov(3, np.random.default_rng(0), 0.2)):
        texts = [x for x in itertools.product(range(language.d), repeat=length) if _possible(language, x)]
        plain = [exact(language, np.array(text)) for text in texts]
        smooth = [exact(Smoothed(language, sigma), np.array(text)) for text in texts]
        weight = np.array([np.exp(trace.known_logp_T.sum()) for trace in plain])
        assert weight.sum() == pytest.approx(1)
        known = np.array([l1(a.known_TV, b.known_TV) for a, b in zip(plain, smooth, strict=True)])
        mixed = np.array([l1(a.prob_TV, b.prob_TV) for a, b in zip(plain, smooth, strict=True)])
        assert known.max() <= 2 * sigma
        assert np.all(weight @ mixed <= 2 * sigma + 2 * sigma * np.arange(length))
        for delta in (0.05, 0.2, 0.4):
            over = (known + mixed).mean(axis=1) > smoothing_cost(length, sigma, delta)
            assert weight[over].sum() <= delta


def test_smoothing_cost_needs_its_markov_term() -> None:
    """4 sigma alone is exceeded with more than the allowed probability: the rare prefix is likelier than that."""
    language, sigma, delta = rare_switch(0.02), 0.01, 0.005
    over = {"without": 0.0, "with": 0.0}
    for text in itertools.product(range(2), repeat=3):
        if _possible(language, text):
            plain, smooth = exact(language, np.array(text)), exact(Smoothed(language, sigma), np.array(text))
            change = l1(plain.known_TV, smooth.known_TV) + l1(plain.prob_TV, smooth.prob_TV)
            weight = np.exp(plain.known_logp_T.sum())
            over["without"] += weight * (change.mean() > 4 * sigma)
            over["with"] += weight * (change.mean() > smoothing_cost(3, sigma, delta))
    assert over["with"] <= delta < over["without"]


def test_the_repaired_constants_add_up() -> None:
    """Put the pieces together at the T that context_needed returns: the sum of all costs is at most epsilon."""
    for d, epsilon, delta in itertools.product((2, 8, 27, 1000), (0.01, 0.2, 0.49), (0.001, 0.1, 0.49)):
        promise = context_needed(d, epsilon, delta, "repaired")
        T, sigma = promise.T, promise.sigma
        prime = 4 * sigma * T / delta
        coupling, azuma, markov = sigma * T, delta / 2, 3 * delta / 8
        assert coupling + azuma + markov <= delta * (1 + 1e-9)
        regret = log_factorial(d) / T
        assert regret <= 2 * prime**2  # the lemma's conclusion, from the direct bound
        deviation = azuma_deviation(T, increment_bound(d, sigma), azuma) / T
        total = pinsker(2 * prime**2 + deviation) + smoothing_cost(T, sigma, markov)
        assert total <= epsilon * (1 + 1e-9)
        assert total > 0.5 * epsilon  # no factor is wasted


def test_the_printed_condition_is_the_printed_one() -> None:
    """T >= 512 log(2/delta) log^2(d T / (delta eps')) log(d!) / eps^4, solved and not only its O-form."""
    for d, epsilon, delta in itertools.product((2, 27), (0.05, 0.4), (0.01, 0.3)):
        prime = epsilon / (2 * math.sqrt(2) * (2 * math.log(2 / delta)) ** 0.25)

        def needed(
            T: float, d: int = d, e: float = epsilon, delta: float = delta, prime: float = prime
        ) -> float:
            span = math.log(d * T / (delta * prime))
            return 512 * math.log(2 / delta) * span**2 * math.lgamma(d + 1) / e**4

        promise = context_needed(d, epsilon, delta, "printed")
        assert needed(promise.T) <= promise.T * (1 + 1e-9)
        assert needed(promise.T * 0.99) > promise.T * 0.99
        assert promise.sigma == pytest.approx(delta * prime / promise.T)
        # the paper's last step: 10 W log^2 W is enough for T > W log^2 T
        W = 512 * math.log(2 / delta) * math.lgamma(d + 1) / epsilon**4
        assert 10 * W * math.log(W) ** 2 > W * math.log(10 * W * math.log(W) ** 2) ** 2


def test_the_direct_theorem_implies_the_printed_one() -> None:
    for d, epsilon, delta in itertools.product((2, 3, 27, 32_000), (0.01, 0.49), (1e-6, 0.49)):
        printed, sharp = (context_needed(d, epsilon, delta, kind).T for kind in ("printed", "sharp"))
        assert sharp < printed / 100


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(d=st.integers(2, 500), epsilon=st.floats(0.01, 0.49), delta=st.floats(0.001, 0.49))
def test_the_two_directions_are_inverse(kind: Kind, d: int, epsilon: float, delta: float) -> None:
    promise = context_needed(d, epsilon, delta, kind)
    assert error_guaranteed(d, promise.T, delta, kind).epsilon <= epsilon * (1 + 1e-9)
    if promise.T > 1000:
        assert error_guaranteed(d, int(promise.T * 0.99), delta, kind).epsilon > epsilon


@pytest.mark.parametrize("kind", KINDS)
def test_limits(kind: Kind) -> None:
    assert error_guaranteed(1, 1, 0.1, kind).epsilon == 0  # one symbol: nothing to learn
    assert context_needed(1, 0.1, 0.1, kind).T == 1
    assert (
        error_guaranteed(30, 3, 0.1, kind).epsilon == 2
    )  # too short: no promise, and L1 is never more than 2
    long, longer = (error_guaranteed(30, T, 0.1, kind).epsilon for T in (10**10, 10**12))
    assert longer < long < 2
    slope = math.log(longer / long) / math.log(100)
    assert slope == pytest.approx(-0.5 if kind == "sharp" else -0.25, abs=0.05)


def test_bad_input() -> None:
    for call in (
        lambda: context_needed(2, 0.0, 0.1),
        lambda: context_needed(2, 0.5, 0.1),
        lambda: context_needed(0, 0.1, 0.1),
        lambda: error_guaranteed(2, 0, 0.1),
        lambda: error_guaranteed(2, 5, 0.5),
        lambda: expected_error(2, 0),
    ):
        with pytest.raises(UserError, match="must"):
            call()


def test_two_level_shortcut_is_the_mixture() -> None:
    quick = two_level_l1(4, 0.5, 3, 25, np.random.default_rng(11))
    rng = np.random.default_rng(11)
    texts = rng.choice(4, p=near_uniform(4, 0.5).table_CV[0][0], size=(3, 25))
    for row, text in zip(quick, texts, strict=True):
        np.testing.assert_allclose(row, exact(near_uniform(4, 0.5), text).l1_T, atol=1e-12)
    with pytest.raises(UserError, match="even"):
        two_level_l1(3, 0.5, 1, 1, rng)


def test_exponents() -> None:
    assert fit_exponent([1, 2, 4, 8], [3, 6, 12, 24]) == pytest.approx(1)
    assert fit_exponent([1, 4, 16], [1, 0.5, 0.25]) == pytest.approx(-0.5)
    with pytest.raises(UserError, match="two positive"):
        fit_exponent([1, 2], [0, 1])
