"""Lexinvariance as a regulariser for other people's models: docs/regularise.md is the guide.

    from lexinvariant.augment import TokenPermuter
    permuter = TokenPermuter(vocab_size=32_000, p=0.2, special_ids=(0, 1, 2))
    permuted = permuter(token_ids, step=0)  # a NumPy, PyTorch or JAX array of (batch, time)

Names are loaded when they are first used, so that a user of one library needs none of the others.
"""

import importlib
from typing import Any

from lexinvariant.errors import UserError

_HOMES = {
    "LinearAnneal": "lexinvariant.augment.permuter",
    "PermutingCollator": "lexinvariant.augment.collator",
    "TokenPermuter": "lexinvariant.augment.permuter",
    "permute_training_batches": "lexinvariant.augment.trainer",
    "randomise_embeddings": "lexinvariant.augment.embeddings",
}

__all__ = [*_HOMES]  # noqa: PLE0604 (they are strings)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lexinvariant.augment' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise UserError(f"{name} needs {error.name}: pip install 'lexinvariant[torch]'.") from error


def __dir__() -> list[str]:
    return __all__
