"""The benchmark of permuted tokens measures every library that is there."""

from lexinvariant.bench.augment import measure


def test_every_library_and_vocabulary_has_a_speed() -> None:
    speeds = list(measure(shape=(2, 16), repeats=1))
    assert {speed.vocab_size for speed in speeds} == {32_000, 128_000}
    assert {"NumPy", "JAX (cpu, jit)"} <= {speed.library for speed in speeds}
    assert all(speed.tokens_per_second > 0 for speed in speeds)
