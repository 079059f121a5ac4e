"""The lemmas on multiplicative weights and on the martingale, each against its own constant."""

import itertools
import math

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.theory import Smoothed, exact, expert_predictions, random_markov, run_hedge
from lexinvariant.theory.bound import azuma_deviation, increment_bound
from lexinvariant.theory.hedge import (
    corollary_horizon,
    corollary_rate,
    counterexample,
    gibbs_regret_bound,
    martingale_increments,
    martingale_T,
    mixture_regret_bound,
)
from lexinvariant.theory.languages import FunctionLanguage, KnownLanguage, near_uniform


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_hedge_at_the_papers_rate_is_the_bayes_mixture(epsilon: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    language = Smoothed(random_markov(4, rng), 0.01)
    text = rng.permutation(4)[language.sample(rng, 60)]  # y = pi*(x), under a key nobody is told
    game = run_hedge(expert_predictions(language, text), text, epsilon)
    trace = exact(language, text)
    np.testing.assert_allclose(game.prob_TV, trace.prob_TV, atol=1e-12)
    np.testing.assert_allclose(game.logp_T, trace.logp_T, atol=1e-10)


def test_another_rate_is_not_the_bayes_mixture() -> None:
    rng = np.random.default_rng(0)
    language = random_markov(3, rng)
    text = language.sample(rng, 40)
    slow = run_hedge(expert_predictions(language, text), text, epsilon=1.0, rate=0.5)
    assert np.abs(slow.prob_TV - exact(language, text).prob_TV).max() > 0.01


@pytest.mark.parametrize("seed", range(6))
def test_regret_of_the_mixture_is_at_most_log_d_factorial(seed: int) -> None:
    """For texts the language would never write as well; and the constant is attained, so a smaller one fails."""
    rng = np.random.default_rng(seed)
    language = Smoothed(random_markov(4, rng, concentration=0.2), 1e-6)
    for text in (language.sample(rng, 80), rng.integers(4, size=80)):
        game = run_hedge(expert_predictions(language, text), text)
        regret_N = np.sum(-game.cost_TN, axis=0) - game.logp_T.sum()
        assert regret_N.max() <= mixture_regret_bound(math.factorial(4)) + 1e-9
    easy = FunctionLanguage(lambda prefix: np.eye(4)[len(prefix) % 4] * (1 - 4e-9) + 1e-9, 4)
    attained = exact(easy, np.arange(8) % 4).regret_T[-1]
    assert attained == pytest.approx(mixture_regret_bound(math.factorial(4)), abs=1e-6)


def alternating_game(floor: float, steps: int, epsilon: float, rate: float | None) -> np.ndarray:
    language, text = counterexample(steps, floor)
    return run_hedge(expert_predictions(language, text), text, epsilon, rate).gibbs_regret_N()


def test_the_cited_corollary_holds_at_its_own_rate_and_fails_at_the_bayes_rate() -> None:
    """Average cost of the weights minus an expert's: <= 2 eps at rate eps / rho^2, but linear in T at rate eps."""
    epsilon, floor = 0.7, 1e-3
    rho = -math.log(floor) / epsilon
    steps = math.ceil(corollary_horizon(2, rho, epsilon))
    slow = alternating_game(floor, steps, epsilon, corollary_rate(epsilon, rho))
    assert slow.max() / steps <= 2 * epsilon
    bayes = alternating_game(floor, steps, epsilon, None)
    assert bayes.max() / steps > 2 * epsilon  # the step that the paper's proof takes is false here
    gain = math.log(
        (1 - floor) / floor
    )  # what the leader of the moment loses; its weight is sigmoid(gain / 2)
    assert bayes.max() / steps == pytest.approx(
        (1 / (1 + math.exp(-gain / 2)) - 0.5) * gain / epsilon, rel=0.01
    )
    language, text = counterexample(steps, floor)
    assert exact(language, text).regret_T[-1] <= math.log(2)  # and what it is needed for is true all the same


@pytest.mark.parametrize("seed", range(5))
def test_textbook_regret_bound_on_random_languages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sigma, d = 0.05, 3
    language = Smoothed(random_markov(d, rng, concentration=0.3), sigma)
    rho = math.log(d / sigma)
    for text in (language.sample(rng, 200), rng.integers(d, size=200)):
        experts = expert_predictions(language, text)
        for rate in (1 / rho, 0.1 / rho):
            regret = run_hedge(experts, text, 1.0, rate).gibbs_regret_N().max()
            assert regret <= gibbs_regret_bound(6, 200, rho, rate)


def test_textbook_bound_is_tight_when_one_expert_is_always_right() -> None:
    """Then the regret is log(N) / rate in the limit, so that term cannot be smaller."""
    floor, steps = 1e-3, 1000
    language = FunctionLanguage(lambda prefix: [1 - floor, floor], 2)
    text = np.zeros(steps, dtype=int)
    rho = -math.log(floor)
    rate = 0.01 / rho
    regret = run_hedge(expert_predictions(language, text), text, 1.0, rate).gibbs_regret_N().max()
    assert 0.8 * gibbs_regret_bound(2, steps, rho, rate) < regret <= gibbs_regret_bound(2, steps, rho, rate)
    with pytest.raises(UserError, match="rate"):
        gibbs_regret_bound(2, steps, rho, 1.0)


def all_texts(language: KnownLanguage, length: int) -> list[tuple[float, np.ndarray]]:
    """Every text of a length with its probability."""
    out = []
    for text in itertools.product(range(language.d), repeat=length):
        rows = language.predictions(np.array(text))
        out.append((float(np.prod(rows[np.arange(length), text])), np.array(text)))
    return out


def test_z_is_a_martingale() -> None:
    """E[Z_t | prefix] = Z_{t-1}, exactly, for every prefix."""
    language = Smoothed(random_markov(3, np.random.default_rng(1)), 0.02)
    for prefix in itertools.product(range(3), repeat=3):
        texts = [np.array([*prefix, symbol]) for symbol in range(3)]
        traces = [exact(language, text) for text in texts]
        step = [
            martingale_increments(t.known_TV, t.prob_TV, x)[-1] for t, x in zip(traces, texts, strict=True)
        ]
        weight = traces[0].known_TV[-1]
        assert weight @ np.array(step) == pytest.approx(0, abs=1e-12)
    total = sum(
        w * martingale_T(t.known_TV, t.prob_TV, x)[-1]
        for w, x in all_texts(language, 4)
        for t in [exact(language, x)]
    )
    assert total == pytest.approx(0, abs=1e-12)


def test_increments_are_bounded_by_twice_log_d_over_sigma_and_no_less() -> None:
    d, sigma = 2, 1e-10
    certain = np.array([[1 - sigma / 2, sigma / 2]])
    mirrored = certain[:, ::-1].copy()
    worst = abs(martingale_increments(certain, mirrored, np.array([1]))[0])
    assert 0.99 * increment_bound(d, sigma) < worst <= increment_bound(d, sigma)
    # The main text's 2 log(1/sigma), without d, is too small.
    d, sigma = 64, 0.5
    p, q = np.full(d, sigma / d), np.full(d, sigma / d)
    p[0] += 1 - sigma
    q[1] += 1 - sigma
    step = abs(martingale_increments(p[None], q[None], np.array([1]))[0])
    assert 2 * math.log(1 / sigma) < step <= increment_bound(d, sigma)


@pytest.mark.parametrize("seed", range(4))
def test_increments_on_random_languages(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sigma, d = 0.01, 4
    language = Smoothed(random_markov(d, rng, concentration=0.1), sigma)
    for text in (language.sample(rng, 60), rng.integers(d, size=60)):
        trace = exact(language, text)
        steps = martingale_increments(trace.known_TV, trace.prob_TV, text)
        assert np.abs(steps).max() <= increment_bound(d, sigma)


def test_azuma_holds_for_the_coin_that_comes_closest_and_not_with_a_smaller_constant() -> None:
    """A sum of T fair coins of size c: the exact tail at b is at most delta; a little below b it is more."""
    from scipy.stats import binom

    for T, delta, less in ((50, 0.05, 0.6), (400, 1e-4, 0.8), (1000, 1e-9, 0.9)):
        b = azuma_deviation(T, 3.0, delta)

        def tail(value: float, T: int = T) -> float:  # P(3 (2 heads - T) >= value)
            return float(binom.sf(math.ceil((value / 3.0 + T) / 2) - 1, T, 0.5))

        assert tail(b) <= delta
        assert tail(less * b) > delta


def test_azuma_on_sampled_texts() -> None:
    rng = np.random.default_rng(9)
    sigma, d, T, delta = 0.1, 3, 40, 0.2
    language = Smoothed(near_uniform(d, 0.6), sigma)
    over = 0
    for _ in range(100):
        text = language.sample(rng, T)
        trace = exact(language, text)
        z = martingale_T(trace.known_TV, trace.prob_TV, text)[-1]
        over += z >= azuma_deviation(T, increment_bound(d, sigma), delta)
    assert over / 100 <= delta


def test_bad_games() -> None:
    language = random_markov(2, np.random.default_rng(0))
    experts = expert_predictions(language, [0, 1])
    with pytest.raises(UserError, match="positive"):
        run_hedge(experts, [0, 1], epsilon=0)
    with pytest.raises(UserError, match="predict 2 symbols"):
        run_hedge(experts, [0, 1, 0])
