"""How fast tokens are permuted on the machine at hand: `python -m lexinvariant.bench.augment`."""

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from lexinvariant.augment import TokenPermuter

_SHAPE = (32, 512)
_VOCAB_SIZES = (32_000, 128_000)


class Speed(NamedTuple):
    """Tokens that one library permutes in a second."""

    library: str
    vocab_size: int
    tokens_per_second: float


def measure(shape: tuple[int, int] = _SHAPE, repeats: int = 20) -> Iterator[Speed]:
    """The fastest of some batches, which is the least disturbed by whatever else runs on the machine."""
    for vocab_size in _VOCAB_SIZES:
        permuter = TokenPermuter(vocab_size, special_ids=(0, 1, 2))
        tok_BT = np.random.default_rng(0).integers(vocab_size, size=shape)
        for library, call in _calls(permuter, tok_BT).items():
            call(0)
            times = []
            for step in range(repeats):
                start = time.perf_counter()
                call(step)
                times.append(time.perf_counter() - start)
            yield Speed(library, vocab_size, tok_BT.size / min(times))


def _calls(permuter: TokenPermuter, tok_BT: NDArray[np.int64]) -> dict[str, Callable[[int], Any]]:
    """One permuted batch in each library that is installed."""
    compiled = jax.jit(lambda tok_BT, step: permuter(tok_BT, step=step))
    on_device_BT = jnp.asarray(tok_BT, jnp.int32)
    calls: dict[str, Callable[[int], Any]] = {
        "NumPy": lambda step: permuter(tok_BT, step=step),
        f"JAX ({jax.default_backend()}, jit)": lambda step: compiled(on_device_BT, step).block_until_ready(),
    }
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        tensor_BT = torch.from_numpy(tok_BT)
        calls["PyTorch (cpu, 1 thread)"] = lambda step: permuter(tensor_BT, step=step)
    return calls


def main() -> None:
    table = Table(title=f"permuting tokens, batches of {_SHAPE[0]} x {_SHAPE[1]}")
    for column in ("library", "vocabulary", "million tokens/s"):
        table.add_column(column, justify="left" if column == "library" else "right")
    for speed in measure():
        table.add_row(speed.library, f"{speed.vocab_size:,}", f"{speed.tokens_per_second / 1e6:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
