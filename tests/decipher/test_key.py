"""Votes, precision and soft matrices, against answers known beforehand and against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.decipher.key import (
    NONE,
    SoftKey,
    majority,
    mean_precision,
    number_symbols,
    sliding_counts,
    soft_rows,
    tally,
    whole_key,
)
from lexinvariant.errors import UserError

C, V = 5, 7


def plain_vote(symbols: list[int], names: list[int]) -> list[int]:
    """The rule in words: most occurrences, and if even, the name given last."""
    winners = []
    for symbol in range(C):
        given = [name for s, name in zip(symbols, names, strict=True) if s == symbol]
        last = {name: at for at, name in enumerate(given)}
        winners.append(max(last, key=lambda name: (given.count(name), last[name])) if given else NONE)
    return winners


def random_readings(seed: int, sequences: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    symbol_ST = rng.integers(-1, C, (sequences, length))
    name_ST = rng.integers(0, 3, (sequences, length)) * 2  # few names, so that many are even
    return symbol_ST, name_ST, rng.integers(0, V, (sequences, C))


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), length=st.integers(1, 24), data=st.data())
def test_sliding_counts_equal_a_loop_over_windows(seed: int, length: int, data: st.DataObject) -> None:
    window = data.draw(st.integers(1, length))
    symbol_ST, name_ST, truth_SC = random_readings(seed, 3, length)
    right_SW, seen_SW = sliding_counts(symbol_ST, name_ST, truth_SC, V, window)
    assert right_SW.shape == seen_SW.shape == (3, length - window + 1)
    for s in range(3):
        for w in range(length - window + 1):
            inside = slice(w, w + window)
            vote = np.array(plain_vote(symbol_ST[s, inside].tolist(), name_ST[s, inside].tolist()))
            assert seen_SW[s, w] == (vote != NONE).sum()
            assert right_SW[s, w] == (vote == truth_SC[s]).sum()
            whole = majority(symbol_ST[s : s + 1, inside], name_ST[s : s + 1, inside], C, V)[0]
            np.testing.assert_array_equal(whole, vote)


def test_many_sequences_are_counted_as_each_alone() -> None:
    symbol_ST, name_ST, truth_SC = random_readings(1, 300, 12)
    right_SW, seen_SW = sliding_counts(symbol_ST, name_ST, truth_SC, V, 5)
    for s in (0, 127, 128, 299):
        alone = sliding_counts(symbol_ST[s : s + 1], name_ST[s : s + 1], truth_SC[s : s + 1], V, 5)
        np.testing.assert_array_equal(right_SW[s], alone[0][0])
        np.testing.assert_array_equal(seen_SW[s], alone[1][0])
    np.testing.assert_array_equal(
        majority(symbol_ST, name_ST, C, V)[200], plain_vote(symbol_ST[200].tolist(), name_ST[200].tolist())
    )


@pytest.fixture
def texts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """plain_ST over letters 0..4 and others, cipher_ST under the key c = (p + 2) % 5, and what each c stands for."""
    plain_ST = np.random.default_rng(0).integers(0, V, (20, 60))
    cipher_ST = np.where(plain_ST < C, (plain_ST + 2) % C, plain_ST)
    return plain_ST, cipher_ST, (np.arange(C) - 2) % C


def test_a_reader_that_knows_the_key_is_right_at_every_offset(texts: tuple[np.ndarray, ...]) -> None:
    plain_ST, cipher_ST, truth_C = texts
    symbol_ST = number_symbols(cipher_ST, np.arange(C), V)
    assert ((symbol_ST == NONE) == (cipher_ST >= C)).all()
    mean_W, half_W = mean_precision(*sliding_counts(symbol_ST, plain_ST, truth_C[None], V, 10))
    assert mean_W.tolist() == [1.0] * 51
    assert half_W.tolist() == [0.0] * 51


def test_a_key_with_two_letters_swapped_is_right_in_all_others(texts: tuple[np.ndarray, ...]) -> None:
    plain_ST, cipher_ST, truth_C = texts
    swapped_V = np.array([1, 0, 2, 3, 4, 5, 6])
    symbol_ST = number_symbols(cipher_ST, np.arange(C), V)
    right_SW, seen_SW = sliding_counts(symbol_ST, swapped_V[plain_ST], truth_C[None], V, 60)
    assert seen_SW[:, 0].tolist() == [C] * 20  # sixty symbols hold every letter
    assert right_SW[:, 0].tolist() == [C - 2] * 20
    assert mean_precision(right_SW, seen_SW)[0].tolist() == pytest.approx([3 / 5])
    name_SC = majority(symbol_ST, swapped_V[plain_ST], C, V)
    assert (whole_key(name_SC, V) == truth_C).sum() == C - 2
    assert (tally(name_SC, V)[np.arange(C), swapped_V[truth_C]] == 20).all()


def test_the_whole_key_joins_windows_that_lack_letters() -> None:
    name_SC = np.array([[0, NONE, 3, NONE], [NONE, 1, 3, NONE], [0, 2, 4, NONE], [0, 2, NONE, NONE]])
    assert whole_key(name_SC, V).tolist() == [0, 2, 3, NONE]
    assert tally(name_SC, V).sum(axis=1).tolist() == [3, 3, 3, 0]


def test_precision_is_a_mean_over_sequences_with_its_interval() -> None:
    right_SW, seen_SW = np.array([[4], [1], [0], [2]]), np.array([[4], [2], [0], [2]])
    mean_W, half_W = mean_precision(right_SW, seen_SW)
    shares = [1.0, 0.5, 1.0]  # the third sequence has no letter in the window
    assert mean_W[0] == pytest.approx(np.mean(shares))
    assert half_W[0] == pytest.approx(1.96 * np.std(shares, ddof=1) / np.sqrt(3))
    nothing = mean_precision(np.zeros((2, 1), np.int64), np.zeros((2, 1), np.int64))
    assert np.isnan(nothing).all()


@pytest.mark.parametrize("window", [0, 13])
def test_a_window_must_fit(window: int) -> None:
    symbol_ST, name_ST, truth_SC = random_readings(1, 2, 12)
    with pytest.raises(UserError, match=f"window of {window} symbols does not fit texts of 12"):
        sliding_counts(symbol_ST, name_ST, truth_SC, V, window)


def soft(
    symbol_ST: np.ndarray, logits_STV: np.ndarray, *, batch: int = 100, temperature: float = 1.0
) -> SoftKey:
    key = SoftKey.empty((0, 4), 6, temperature, C, V)
    for start in range(0, len(symbol_ST), batch):
        part_BTV = logits_STV[start : start + batch]
        key.add(symbol_ST[start : start + batch], lambda first, stop, part=part_BTV: part[:, first:stop])
    return key


def test_a_uniform_reader_gives_uniform_rows() -> None:
    symbol_ST, _, _ = random_readings(2, 50, 10)
    np.testing.assert_allclose(soft(symbol_ST, np.full((50, 10, V), 2.5)).matrices(), 1 / V, rtol=1e-12)


def test_soft_rows_average_logits_within_a_sequence_and_probabilities_over_them() -> None:
    rng = np.random.default_rng(3)
    symbol_ST, _, _ = random_readings(3, 30, 10)
    logits_STV = rng.normal(size=(30, 10, V)).astype(np.float32) * 3
    temperature = 2.0
    key = soft(symbol_ST, logits_STV, batch=7, temperature=temperature)
    p_KCV = key.matrices()
    np.testing.assert_allclose(p_KCV.sum(axis=2), 1.0)
    for k, start in enumerate((0, 4)):
        for c in range(C):
            rows = []
            for s in range(30):
                at = [t for t in range(start, start + 6) if symbol_ST[s, t] == c]
                if at:
                    power = np.exp(logits_STV[s, at].astype(float).mean(axis=0) / temperature)
                    rows.append(power / power.sum())
            assert key.n_KC[k, c] == len(rows)
            np.testing.assert_allclose(p_KCV[k, c], np.mean(rows, axis=0), rtol=1e-6)
    np.testing.assert_allclose(
        p_KCV, soft(symbol_ST, logits_STV, temperature=temperature).matrices(), rtol=1e-12
    )


def test_temperature_sharpens_and_huge_logits_do_not_overflow() -> None:
    symbol_ST = np.zeros((1, 6), np.int64)
    logits_STV = np.zeros((1, 6, V), np.float32)
    logits_STV[..., 2] = 1.0
    cold, warm = (soft_rows(symbol_ST, logits_STV, C, t)[0][0, 0, 2] for t in (0.1, 10.0))
    assert 1 / V < warm < 0.2 < 0.99 < cold < 1
    assert soft_rows(symbol_ST, 1e6 * logits_STV, C, 1.0)[0][0, 0].tolist() == [0, 0, 1, 0, 0, 0, 0]
    with pytest.raises(UserError, match="temperature of 0"):
        soft(symbol_ST, logits_STV, temperature=0.0)


def test_a_symbol_in_no_window_has_no_row() -> None:
    p_KCV = soft(np.full((2, 10), NONE), np.zeros((2, 10, V))).matrices()
    assert np.isnan(p_KCV).all()
