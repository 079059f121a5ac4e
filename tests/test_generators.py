"""What is drawn with NumPy: at addresses, from any seed."""

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.generators import generator_at


@pytest.mark.parametrize("seed", [0, 7, -1, 1 << 40])
def test_the_same_address_draws_the_same_and_another_draws_something_else(seed: int) -> None:
    def drawn(*address: int) -> list[int]:
        return generator_at(seed, *address).integers(1 << 60, size=4).tolist()

    assert drawn() == drawn()
    assert drawn(1, 2) == drawn(1, 2) != drawn(2, 1)


def test_small_seeds_are_those_of_numpy() -> None:
    assert generator_at(5).integers(1 << 60) == np.random.default_rng(5).integers(1 << 60)
    assert generator_at(5, 3).integers(1 << 60) == np.random.default_rng([5, 3]).integers(1 << 60)


def test_a_seed_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="63 bits"):
        generator_at(1 << 80)
