"""What counting symbols tells, against counts done by hand."""

import math

import numpy as np
import pytest

from lexinvariant.text import MarkovLanguage
from lexinvariant.text.frequency import count_text, counting_losses, occurrences, still_counting


def test_occurrences_are_counted_from_one() -> None:
    tok_ST = np.array([[3, 1, 3, 3, 1], [0, 0, 2, 1, 0]], np.int32)
    np.testing.assert_array_equal(occurrences(tok_ST), [[1, 1, 2, 3, 2], [1, 2, 1, 1, 3]])


def test_losses_are_those_of_a_probability() -> None:
    """After any prefix the probabilities of all symbols, each tried as the next one, sum to one."""
    prefix = [4, 1, 4, 4, 0, 1]
    tok_ST = np.array([[*prefix, last] for last in range(7)], np.int32)
    nats_ST = counting_losses(tok_ST, 7)
    assert np.exp(-nats_ST[:, -1]).sum() == pytest.approx(1.0, abs=1e-6)
    assert nats_ST[4, -1] < nats_ST[1, -1] < nats_ST[0, -1]
    assert nats_ST[2, -1] == nats_ST[6, -1]  # unseen ones are alike
    assert nats_ST[0, 0] == pytest.approx(math.log(7))


def test_counting_comes_near_the_entropy_of_single_symbols() -> None:
    language = MarkovLanguage()
    counted = count_text(language.generate("valid", np.arange(64), 400), 12)
    assert counted.nats_ST[:, -80:].mean() == pytest.approx(language.unigram_entropy, abs=0.05)


def test_frequency_analysis_names_what_is_in_order() -> None:
    """Two sequences with the order of all, and one in which the two most frequent ones have changed places."""
    row = np.repeat([0, 1, 2], [6, 3, 1])
    named_ST = count_text(np.stack([row, row, np.array([1, 0, 2])[row]]).astype(np.int32), 4).named_ST
    np.testing.assert_array_equal(named_ST, [[True] * 10, [True] * 10, [False] * 9 + [True]])


@pytest.mark.parametrize(
    ("loss", "named", "says"),
    [
        (3.0, None, "no better than counting symbols does (3.00 and 3.00 nats"),
        (3.5, 0.9, "no better than counting"),
        (2.0, 0.3, "names 30% of the symbols, and frequency analysis 35%"),
        (2.0, 0.4, None),
        (2.0, None, None),
    ],
)
def test_who_has_left_the_plateau(loss: float, named: float | None, says: str | None) -> None:
    said = still_counting(loss, 3.0, named, 0.35)
    assert said is None if says is None else says in (said or "")
