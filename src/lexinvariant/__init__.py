"""Lexinvariant language models: no fixed token embeddings, so p(x) = p(pi(x)) for every permutation pi.

    import lexinvariant
    model = lexinvariant.load("runs/tiny/model")
    model.score(["a big bad", "e cop cod"], draws=8)

Names are loaded when they are first used, so that importing the package is fast.
"""

import importlib

# As typing's, which is not imported here: `python -m` would look for it in the current folder first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.2.0"

_HOMES = {
    "Corpus": "lexinvariant.text",
    "Language": "lexinvariant.decipher.language",
    "LexiconConfig": "lexinvariant.config",
    "Model": "lexinvariant.api",
    "ModelConfig": "lexinvariant.config",
    "Decipherment": "lexinvariant.decipher.solve",
    "Solver": "lexinvariant.decipher.solve",
    "TrainConfig": "lexinvariant.config",
    "UserError": "lexinvariant.errors",
    "WordReading": "lexinvariant.decipher.words",
    "encipher_words": "lexinvariant.decipher.word_cipher",
    "load": "lexinvariant.api",
    "load_language": "lexinvariant.decipher.language",
    "prepare": "lexinvariant.text",
    "preset": "lexinvariant.presets",
    "train": "lexinvariant.training.loop",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 (they are strings)


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'lexinvariant' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
