"""The paper's curve, against numbers worked out by hand."""

import numpy as np
import pytest

from lexinvariant.results.perplexity import (
    gap_curve,
    lexinvariant_floor,
    part_curve,
    perplexity_curve,
    resampled,
    smoothed_nats,
    smoothed_perplexity,
)

LN2 = np.log(2)
# In bits: two sequences of four symbols.
NATS_ST = LN2 * np.array([[4.0, 2.0, 0.0, 0.0], [2.0, 2.0, 2.0, 4.0]])


def test_each_offset_averages_the_symbols_after_it() -> None:
    np.testing.assert_allclose(smoothed_nats(NATS_ST, 2), LN2 * np.array([[3, 1, 0], [2, 2, 3]]), atol=1e-12)
    np.testing.assert_allclose(smoothed_nats(NATS_ST, 1), NATS_ST, atol=1e-12)
    np.testing.assert_allclose(smoothed_nats(NATS_ST, 4), LN2 * np.array([[1.5], [2.5]]), atol=1e-12)


def test_both_averages_are_the_ones_worked_out_by_hand() -> None:
    nats_SI, weight_RS = smoothed_nats(NATS_ST, 2), resampled(2, seed=0)
    geometric = perplexity_curve(nats_SI, "geometric", weight_RS)
    np.testing.assert_allclose(geometric.mean, [2**2.5, 2**1.5, 2**1.5])
    arithmetic = perplexity_curve(nats_SI, "arithmetic", weight_RS)
    np.testing.assert_allclose(arithmetic.mean, [(8 + 4) / 2, (2 + 4) / 2, (1 + 8) / 2])
    # Two sequences: half of the resamples hold one of them twice, so the band reaches from one to the other.
    for curve in (geometric, arithmetic):
        np.testing.assert_allclose(curve.low, [4, 2, 1])
        np.testing.assert_allclose(curve.high, [8, 4, 8])
    np.testing.assert_allclose(smoothed_perplexity(NATS_ST, 2), geometric.mean)


def test_the_gap_is_a_multiple_of_theirs() -> None:
    weight_RS = resampled(2, seed=0)
    ours_SI, theirs_SI = LN2 * np.array([[3.0], [5.0]]), LN2 * np.array([[1.0], [2.0]])
    geometric = gap_curve(ours_SI, theirs_SI, "geometric", weight_RS)
    np.testing.assert_allclose(geometric.mean, [2**4 / 2**1.5 - 1])
    arithmetic = gap_curve(ours_SI, theirs_SI, "arithmetic", weight_RS)
    np.testing.assert_allclose(arithmetic.mean, [(8 + 32) / (2 + 4) - 1])
    # Paired: a resample of one sequence alone compares that sequence with itself.
    np.testing.assert_allclose([arithmetic.low[0], arithmetic.high[0]], [8 / 2 - 1, 32 / 4 - 1])


def test_a_gap_that_is_the_same_in_every_sequence_is_certain() -> None:
    theirs_SI = np.random.default_rng(0).normal(2, 1, size=(30, 3))
    gap = gap_curve(theirs_SI + np.log(3), theirs_SI, "geometric", resampled(30, seed=1))
    for values in (gap.mean, gap.low, gap.high):
        np.testing.assert_allclose(values, 2.0)


def test_the_band_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    nats = rng.normal(
        1.0, 0.5, size=(400, 40, 1)
    )  # 400 experiments with 40 sequences; the true mean is 1 nat
    curves = [
        perplexity_curve(one, "geometric", resampled(40, seed=i, resamples=400)) for i, one in enumerate(nats)
    ]
    covered = np.mean([curve.low[0] < np.e < curve.high[0] for curve in curves])
    assert 0.90 < covered < 0.98


def test_resamples_are_whole_sequences_and_repeatable() -> None:
    weight_RS = resampled(7, seed=3, resamples=50)
    np.testing.assert_allclose(weight_RS.sum(axis=1), 1)
    np.testing.assert_allclose(weight_RS * 7, np.round(weight_RS * 7), atol=1e-12)
    np.testing.assert_array_equal(weight_RS, resampled(7, seed=3, resamples=50))
    assert not np.array_equal(weight_RS, resampled(7, seed=4, resamples=50))
    assert perplexity_curve(np.ones((1, 2)), "geometric", resampled(1, seed=0)).high == pytest.approx(
        [np.e] * 2
    )


def test_a_window_longer_than_the_text_is_the_whole_text() -> None:
    nats = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]])
    np.testing.assert_allclose(smoothed_perplexity(nats, 2), np.exp([2.0, 3.0, 4.0]))
    np.testing.assert_allclose(smoothed_perplexity(nats, 100), np.exp([3.0]))


def test_some_tokens_alone_weigh_the_same_in_whichever_sequence_they_stand() -> None:
    part_ST = np.array([[False, True, True, True], [False, False, False, True]])
    curve = part_curve(NATS_ST, part_ST, 2, resampled(2, seed=0))
    np.testing.assert_allclose(curve.mean, LN2 * np.array([2.0, (2 + 0) / 2, (0 + 0 + 4) / 3]))
    # The second sequence alone has no such token in the first two windows: there is no band to give.
    assert curve.low[:2] == curve.high[:2] == [None, None]
    np.testing.assert_allclose([curve.low[2], curve.high[2]], [0.0, 4 * LN2])
    assert part_curve(NATS_ST, np.zeros((2, 4), bool), 4, resampled(2, seed=0)).mean == [None]


def test_a_new_token_costs_the_log_of_those_left() -> None:
    nats_ST, unseen_ST = lexinvariant_floor(np.array([[1, 1, 2, 1, 3]]), vocab_size=10)
    np.testing.assert_allclose(np.exp(unseen_ST), [[10, 9, 8, 8, 7]])
    np.testing.assert_allclose(np.exp(nats_ST), [[10, 9, 1, 8, 1]])
