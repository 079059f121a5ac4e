"""Ways of computing a training step faster that give the same numbers, each to be turned off while they are measured.

`lexinvariant bench train --variants` times them against each other; what does not pay is taken out again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

LEVERS = {
    "muon": "Muon's products in the type of the arithmetic, not in float32",
    "merger": "XLA may not merge products that share an operand: what they made had to be copied apart",
    "loss": "cross-entropies without gathers, and their gradients in the type of the arithmetic",
    "recall": "recall in chunks instead of all positions against all",
    "dbias": "the gradient of the position bias by a kernel of its own, only at the distances that differ",
    "relu": "a ReLU that XLA leaves in the product before it",
    "norm": "a kernel for residual and norm",
    "qk": "a kernel for normalised and smeared queries and keys",
}
_on = set(LEVERS)


def uses(lever: str) -> bool:
    assert lever in LEVERS
    return lever in _on


@contextmanager
def only(levers: set[str]) -> Iterator[None]:
    """These levers and no others, while a step is traced."""
    before = set(_on)
    _on.clear()
    _on.update(levers)
    try:
        yield
    finally:
        _on.clear()
        _on.update(before)
