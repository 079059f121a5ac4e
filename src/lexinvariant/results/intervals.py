"""Confidence intervals of shares."""

import math

Z_95 = 1.959963984540054  # the standard normal's quantile at 97.5%


def wilson(share: float, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's 95% interval for a share seen in n trials: sensible at 0, at 1 and for few trials.

    The share need not be a whole number of n-ths: ties that count in part are fine.
    """
    if n < 1:
        return 0.0, 1.0
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Exact at the ends, where rounding would leave specks such as 3e-17.
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)
