"""Confidence intervals of shares."""

import pytest

from lexinvariant.results.intervals import Share, wilson


@pytest.mark.parametrize(("share", "n"), [(0.0, 10), (1.0, 10), (0.5, 400), (0.918, 1000)])
def test_wilson_agrees_with_scipy(share: float, n: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(round(share * n), n).proportion_ci(method="wilson")
    assert wilson(share, n) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert wilson(share, 0) == (0.0, 1.0)
    assert (Share(share, n).low, Share(share, n).high) == wilson(share, n)


def test_a_share_is_written_with_its_interval() -> None:
    assert str(Share(0.2, 1000)) == "20.0% (17.6% to 22.6%)"
