"""Round numbers on log axes."""

import pytest

from lexinvariant.results.figure import log_ticks


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (1.8, 22, 10, [2, 3, 5, 7, 10, 15, 20]),
        (2.53, 2.81, 10, [2.6, 2.7, 2.8]),  # narrow
        (10.1, 19.9, 4, [11, 14, 17]),
        (0.9e15, 2.2e16, 6, [1e15, 2e15, 5e15, 1e16, 2e16]),
        (0.9, 2.2e5, 10, [1, 10, 100, 1e3, 1e4, 1e5]),
    ],
)
def test_there_are_round_numbers_and_not_too_many(
    low: float, high: float, most: int, ticks: list[float]
) -> None:
    assert log_ticks(low, high, most) == pytest.approx(ticks)
