"""Sampling against enumeration, and what keeps it unbiased."""

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.theory import HMM, NGramLanguage, exact, log_factorial, particles, random_markov
from lexinvariant.theory.population import (
    NGramTarget,
    Population,
    ReplayTarget,
    Settings,
    branch,
    pool,
    thin_out,
)


def test_exact_while_every_key_is_kept() -> None:
    """Four islands of 150 keys hold all 120 keys of five symbols, so nothing is sampled."""
    rng = np.random.default_rng(0)
    language = random_markov(5, rng)
    text = language.sample(rng, 60)
    sampled, enumerated = particles(language, text, n=600), exact(language, text)
    np.testing.assert_allclose(sampled.prob_TV, enumerated.prob_TV, atol=1e-10)
    np.testing.assert_allclose(sampled.key_matrix_VV, enumerated.key_matrix_VV, atol=1e-10)
    assert np.all(sampled.log_evidence_error_T < 1e-9)


def test_fewer_particles_than_keys_and_an_honest_error_estimate() -> None:
    """7! = 5,040 keys, 1,200 particles in four islands. The error behaves like Student's t with three degrees."""
    z, gaps, distances = [], [], []
    for seed in range(6):
        rng = np.random.default_rng([2, seed])
        language = random_markov(7, rng, concentration=1.0)
        text = language.sample(rng, 40)
        sampled, enumerated = particles(language, text, n=1200, sweeps=2, seed=seed), exact(language, text)
        gap_T = sampled.log_evidence_T - np.cumsum(enumerated.logp_T)
        sampling_T = sampled.log_evidence_error_T > 1e-9
        assert sampling_T.sum() > 30  # it did have to sample
        z.append(gap_T[sampling_T] / sampled.log_evidence_error_T[sampling_T])
        gaps.append(gap_T[-1])
        distances.append(np.abs(sampled.prob_TV - enumerated.prob_TV).sum(axis=1).mean())
        assert np.abs(sampled.key_matrix_VV - enumerated.key_matrix_VV).max() < 0.1
        np.testing.assert_allclose(
            sampled.evidence_key_surprise_T, enumerated.key_surprise_T + gap_T, atol=1e-9
        )
    size = np.abs(np.concatenate(z))
    assert np.mean(size < 3) > 0.85  # t with three degrees: 0.94; an estimate three times too small: 0.6
    assert np.mean(size < 0.5) < 0.55  # t: 0.35; three times too large: 0.77
    assert abs(np.mean(gaps)) < 0.15
    assert np.mean(distances) < 0.03


def test_a_hidden_markov_language_is_sampled_too() -> None:
    rng = np.random.default_rng(2)
    language = HMM(rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(2), 2), rng.dirichlet(np.ones(6), 2))
    text = language.sample(rng, 14)
    sampled, enumerated = particles(language, text, n=240, sweeps=2, seed=1), exact(language, text)
    assert sampled.log_evidence_error_T[-1] > 1e-9
    assert np.abs(sampled.prob_TV - enumerated.prob_TV).sum(axis=1).mean() < 0.06
    assert abs(sampled.log_evidence_T[-1] - enumerated.logp_T.sum()) < 0.3


def test_the_evidence_is_unbiased() -> None:
    """The mean of exp(log evidence) over seeds is p'(text): a wrong weight anywhere would show."""
    rng = np.random.default_rng(4)
    language = random_markov(6, rng, concentration=1.0)
    text = language.sample(rng, 12)
    truth = exact(language, text).logp_T.sum()
    ratios = [
        np.exp(particles(language, text, n=80, islands=2, sweeps=1, seed=seed).log_evidence_T[-1] - truth)
        for seed in range(50)
    ]
    error = np.std(ratios) / np.sqrt(len(ratios))
    assert error < 0.15
    assert abs(np.mean(ratios) - 1) < 4 * error


def test_swap_gains_agree_with_reading_the_text_again() -> None:
    rng = np.random.default_rng(6)
    language = NGramLanguage([rng.dirichlet(np.ones(5), (5,) * j) for j in range(3)])
    keys = rng.permuted(np.tile(np.arange(5)[:, None], (1, 40)), axis=0)
    for length in (1, 2, 3, 30):
        text = language.sample(rng, length)
        quick, slow = NGramTarget(language, text, 0.3), ReplayTarget(language, text, 0.3)
        np.testing.assert_allclose(quick.total(keys), slow.total(keys), atol=1e-9)
        for a, b in ((0, 1), (3, 2), (4, 0)):
            np.testing.assert_allclose(quick.gain(keys, a, b), slow.gain(keys, a, b), atol=1e-9)


def test_thinning_out_keeps_the_expected_weights() -> None:
    rng = np.random.default_rng(7)
    weight = rng.dirichlet(np.full(40, 0.3))
    mean = np.zeros(40)
    for _ in range(4000):
        kept, logw = thin_out(np.log(weight), 10, rng)
        assert len(kept) == 10
        np.add.at(mean, kept, np.exp(logw) / 4000)
    np.testing.assert_allclose(mean, weight, atol=0.01)
    heavy = np.argsort(-weight)[:3]
    kept, logw = thin_out(np.log(weight), 10, rng)
    assert set(heavy) <= set(kept.tolist())  # the heavy ones are never lost, and keep their weight
    np.testing.assert_allclose(np.exp(logw[[kept.tolist().index(h) for h in heavy]]), weight[heavy])


def test_branches_are_permutations_and_pooling_weighs_evidence() -> None:
    settings = Settings(50, np.random.default_rng(0), 0.5, 1)
    population = Population(np.arange(4)[:, None], np.zeros(1))
    branch(population, np.array([[0.1, 0.2, 0.3, 0.4]]), np.arange(4), 2, settings)
    assert population.complete
    np.testing.assert_array_equal(np.sort(population.key_VN, axis=0), np.tile(np.arange(4)[:, None], (1, 4)))
    assert sorted(population.key_VN[2].tolist()) == [0, 1, 2, 3]
    poor = Population(np.arange(4)[:, None], np.zeros(1), log_evidence=-50.0)
    rich = Population(np.arange(4)[::-1][:, None], np.zeros(1), log_evidence=0.0)
    both = pool(poor, rich, settings)
    assert (both.key_VN[0] == 3).all()
    assert both.log_evidence == pytest.approx(-np.log(2))


def test_unseen_symbols_share_what_is_left() -> None:
    rng = np.random.default_rng(8)
    language = random_markov(12, rng)
    trace = particles(language, np.array([4, 9, 4]), n=200)
    unseen = [v for v in range(12) if v not in (4, 9)]
    assert np.ptp(trace.prob_TV[2, unseen]) < 1e-12
    assert np.ptp(trace.key_matrix_VV[unseen], axis=0).max() < 1e-12
    np.testing.assert_allclose(trace.key_matrix_VV.sum(axis=1), 1)
    assert trace.prob_TV[0, 0] == pytest.approx(1 / 12)
    assert log_factorial(12) == pytest.approx(np.log(np.arange(1, 13)).sum())


def test_bad_input() -> None:
    language = random_markov(3, np.random.default_rng(0))
    with pytest.raises(UserError, match="two islands"):
        particles(language, [0, 1], islands=1)
    with pytest.raises(UserError, match="empty"):
        particles(language, [])
    with pytest.raises(UserError, match="effective-sample-size"):
        particles(language, [0, 1], ess_share=0.0)
    with pytest.raises(UserError, match="probability zero under every relabelling"):
        particles(NGramLanguage([[1.0, 0.0, 0.0]]), [0, 1])
