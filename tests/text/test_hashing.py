import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.text.batch import shuffled_pieces
from lexinvariant.text.hashing import key_of, permute


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 3000), key=st.integers(0, 2**64 - 1))
def test_permute_is_a_bijection(n: int, key: int) -> None:
    assert sorted(permute(np.arange(n), n, key)) == list(range(n))


def test_permute_depends_on_key_and_looks_random() -> None:
    n = 10_000
    first, second = permute(np.arange(n), n, key_of(1)), permute(np.arange(n), n, key_of(2))
    assert (first == second).mean() < 0.01
    assert abs(np.corrcoef(np.arange(n), first)[0, 1]) < 0.05
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.05


def test_small_permutations_are_spread_evenly() -> None:
    # Index 0 must land anywhere with equal chance, also where the network has only a few bits.
    landed = np.bincount([permute(np.array([0]), 10, key_of(seed))[0] for seed in range(2000)], minlength=10)
    assert landed.min() > 130 and landed.max() < 270


def test_permute_is_the_same_on_every_version() -> None:
    # These numbers may never change: checkpoints resume from the step number alone.
    assert permute(np.arange(8), 8, 0).tolist() == [3, 6, 5, 7, 0, 4, 2, 1]
    assert permute(np.array([0, 1, 2**40 - 1]), 2**40, key_of(7, "epoch", 0)).tolist() == [
        855778286059,
        920091831976,
        370133414821,
    ]


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 200), size=st.integers(1, 40), seed=st.integers(0, 2**32), epochs=st.integers(1, 3))
def test_every_piece_once_an_epoch(n: int, size: int, seed: int, epochs: int) -> None:
    steps = -(-n * epochs // size)
    stream = np.concatenate([shuffled_pieces(n, seed, step, size) for step in range(steps)])
    for epoch in range(epochs):
        assert sorted(stream[epoch * n : (epoch + 1) * n]) == list(range(n))


@settings(max_examples=50, deadline=None)
@given(n=st.integers(8, 500), step=st.integers(0, 10**9), hosts=st.sampled_from([1, 2, 4]))
def test_hosts_share_one_global_batch(n: int, step: int, hosts: int) -> None:
    whole = shuffled_pieces(n, 3, step, 8)
    share = 8 // hosts
    parts = [shuffled_pieces(n, 3, step, 8, range(host * share, (host + 1) * share)) for host in range(hosts)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert np.array_equal(shuffled_pieces(n, 3, step, 8, slice(2, 5)), whole[2:5])


def test_epochs_differ() -> None:
    assert not np.array_equal(shuffled_pieces(64, 0, 0, 64), shuffled_pieces(64, 0, 1, 64))
