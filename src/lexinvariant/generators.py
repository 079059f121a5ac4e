"""NumPy's random generators, at addresses: of seeds that may be negative or long."""

import numpy as np

from lexinvariant.checks import seed_of_32_bits


def generator_at(seed: int, *address: int) -> np.random.Generator:
    """For what is drawn at this address: the same seed draws something else at another."""
    start = seed_of_32_bits(seed)
    return np.random.default_rng([start, *address] if address else start)
