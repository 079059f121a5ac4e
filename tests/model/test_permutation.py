"""Random permutations are permutations, random, and the same whether all of one is asked for or a few images."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.model import permutation

N, N_DRAWS = 12, 2000
LARGE = 5000
SHARES = (0.0, 0.25, 1.0)


def shuffled(key: jax.Array, share: jax.Array, n: int) -> jax.Array:
    """A large vocabulary's way, for a small one."""
    return permutation.shuffle_share(key, share, n, jnp.arange(n))


WAYS: dict[str, Callable[[jax.Array, jax.Array, int], jax.Array]] = {
    "sorted": permutation.partial_permutation,
    "shuffled": shuffled,
}


@pytest.fixture(scope="module", params=WAYS)
def permutations_at(request: pytest.FixtureRequest) -> dict[float, np.ndarray]:
    """Many permutations of N symbols for each share of them that is moved."""
    keys = jax.random.split(jax.random.key(0), N_DRAWS)
    draw = jax.jit(jax.vmap(partial(WAYS[request.param], n=N), in_axes=(0, None)))
    return {share: np.asarray(draw(keys, np.float32(share))) for share in SHARES}


@pytest.mark.parametrize("share", SHARES)
def test_a_share_of_the_symbols_is_permuted(permutations_at: dict[float, np.ndarray], share: float) -> None:
    moved = permutations_at[share]
    np.testing.assert_array_equal(np.sort(moved, axis=1), np.tile(np.arange(N), (N_DRAWS, 1)))


def test_share_zero_moves_nothing(permutations_at: dict[float, np.ndarray]) -> None:
    np.testing.assert_array_equal(permutations_at[0.0], np.tile(np.arange(N), (N_DRAWS, 1)))


def counts_of_images(permutations: np.ndarray) -> np.ndarray:
    n = permutations.shape[1]
    return np.stack([np.bincount(permutations[:, symbol], minlength=n) for symbol in range(n)])


def assert_even(counts: np.ndarray, freedom: int) -> None:
    """Pearson's chi-square is within five standard deviations of what even chances give."""
    expected = counts.mean()
    assert np.sum((counts - expected) ** 2 / expected) < freedom + 5 * np.sqrt(2 * freedom)


def test_share_one_sends_every_symbol_everywhere_equally_often(
    permutations_at: dict[float, np.ndarray],
) -> None:
    assert_even(counts_of_images(permutations_at[1.0]), (N - 1) ** 2)


def test_a_share_of_the_symbols_moves_and_the_rest_stays(permutations_at: dict[float, np.ndarray]) -> None:
    away = permutations_at[0.25] != np.arange(N)
    # A random permutation of the chosen leaves one of them at home on average.
    assert away.sum(axis=1).mean() == pytest.approx(0.25 * N - 1, abs=0.15)
    assert np.ptp(away.mean(axis=0)) < 0.08
    elsewhere = counts_of_images(permutations_at[0.25])[~np.eye(N, dtype=bool)]
    assert_even(elsewhere, N * (N - 1) - 1)


@pytest.mark.parametrize("share", [None, 1.0])
def test_a_shuffle_gives_all_orders_equally_often(share: float | None) -> None:
    """Not only is each symbol's image even: so are all 120 permutations of five."""
    keys = jax.random.split(jax.random.key(1), 12_000)
    symbol_V = jnp.arange(5)

    def draw(key: jax.Array) -> jax.Array:
        if share is None:
            return permutation.shuffle(permutation.shuffle_rounds(key, 5), 5, symbol_V)
        return permutation.shuffle_share(key, share, 5, symbol_V)

    orders = Counter(map(bytes, np.asarray(jax.jit(jax.vmap(draw))(keys)).astype(np.uint8)))
    assert len(orders) == 120
    assert_even(np.array(list(orders.values())), 119)


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 32_000, 32_128])
def test_a_shuffle_is_undone_by_its_rounds_in_reverse(n: int) -> None:
    rounds = permutation.shuffle_rounds(jax.random.key(n), n)
    image_V = permutation.shuffle(rounds, n, jnp.arange(n))
    np.testing.assert_array_equal(np.sort(image_V), np.arange(n))
    np.testing.assert_array_equal(permutation.shuffle(rounds, n, image_V, inverse=True), np.arange(n))
    assert n < 1000 or np.mean(np.asarray(image_V) == np.arange(n)) < 0.01


@pytest.mark.parametrize("n", [100, LARGE])
def test_images_do_not_depend_on_what_else_is_asked_for(n: int) -> None:
    key, some = jax.random.key(3), jnp.asarray([7, 0, n - 1, 7, 42])
    all_of_it = permutation.permute(key, n, jnp.arange(n))
    np.testing.assert_array_equal(permutation.permute(key, n, some), all_of_it[some])
    np.testing.assert_array_equal(np.sort(all_of_it), np.arange(n))
    partly = permutation.permute_share(key, 0.5, n, jnp.arange(n))
    np.testing.assert_array_equal(permutation.permute_share(key, 0.5, n, some), partly[some])
    np.testing.assert_array_equal(np.sort(partly), np.arange(n))
    assert np.mean(np.asarray(partly) == np.arange(n)) == pytest.approx(0.5, abs=0.15 if n == 100 else 0.01)


def test_small_vocabularies_are_permuted_by_sorting() -> None:
    """Results of models of characters that were kept can be had again."""
    key, symbols = jax.random.key(4), jnp.arange(128)
    np.testing.assert_array_equal(permutation.permute(key, 128, symbols), jax.random.permutation(key, 128))
    np.testing.assert_array_equal(
        permutation.permute_share(key, 0.5, 128, symbols), permutation.partial_permutation(key, 0.5, 128)
    )
