"""Lexinvariant language models: no fixed token embeddings, so p(x) = p(pi(x)) for every permutation pi.

    import lexinvariant
    model = lexinvariant.load()  # the model that comes with the package; or a folder, or OWNER/NAME on the Hub
    model.score(["a big bad", "e cop cod"], draws=8)

Names are loaded when they are first used, so that importing the package is fast.
"""

import importlib

# As typing's, which is not imported here: `python -m` would look for it in the current folder first.
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names for type checkers, to which __getattr__ would be any name at all
    from lexinvariant.api import Model as Model
    from lexinvariant.api import load as load
    from lexinvariant.config import LexiconConfig as LexiconConfig
    from lexinvariant.config import ModelConfig as ModelConfig
    from lexinvariant.config import TrainConfig as TrainConfig
    from lexinvariant.decipher.decipherment import Decipherment as Decipherment
    from lexinvariant.decipher.language import Language as Language
    from lexinvariant.decipher.language import load_language as load_language
    from lexinvariant.decipher.solve import Solver as Solver
    from lexinvariant.decipher.word_cipher import encipher_words as encipher_words
    from lexinvariant.decipher.words import WordReading as WordReading
    from lexinvariant.errors import UserError as UserError
    from lexinvariant.presets import preset as preset
    from lexinvariant.text import Corpus as Corpus
    from lexinvariant.text import prepare as prepare
    from lexinvariant.training.loop import train as train

__version__ = "0.2.0"

_HOMES = {
    "Corpus": "lexinvariant.text",
    "Language": "lexinvariant.decipher.language",
    "LexiconConfig": "lexinvariant.config",
    "Model": "lexinvariant.api",
    "ModelConfig": "lexinvariant.config",
    "Decipherment": "lexinvariant.decipher.decipherment",
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


if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'lexinvariant' has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
