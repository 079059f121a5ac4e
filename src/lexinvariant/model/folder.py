"""Where models lie, and what their config.json says: for readers with and without jax."""

from pathlib import Path
from typing import Any

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.files import read_json_object
from lexinvariant.remote import local_copy
from lexinvariant.text import HuggingFaceVocab, Vocab, load_vocab

FORMAT = 1
MODEL_TYPE = "lexinvariant"
"""By this transformers knows our models, once lexinvariant.torch is imported."""
BUNDLED = "bundled"
WEIGHTS = Path(__file__).parents[1] / "weights"
"""What comes with the package."""
MOST_CHARACTERS = 1 << 20
"""Symbols of a model of characters: each has a character for its name, and Unicode has few more."""


def read_description(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.exists():
        raise UserError(
            f"{folder} holds no model (there is no config.json in it): give a folder written by `lexinvariant export`."
        )
    remedy = "export the model again."
    description = read_json_object(path, remedy)
    written_as = description.get("format")
    if not isinstance(written_as, int) or not isinstance(description.get("model"), dict):
        raise UserError(f"{path} is not a model's description: {remedy}")
    if not isinstance(description.setdefault("notes", {}), dict):
        raise UserError(f"{path} is damaged, its notes are none: {remedy}")
    if written_as > FORMAT:
        raise UserError(f"{folder} was written by a newer lexinvariant: update this one.")
    return description


def read_vocab(folder: Path, config: ModelConfig) -> Vocab:
    """The vocabulary of a model, which has a symbol for each of its tokens."""
    vocab = load_vocab(folder)
    most = config.vocab_size if isinstance(vocab, HuggingFaceVocab) else MOST_CHARACTERS
    if not vocab.size <= config.vocab_size <= most:
        raise UserError(
            f"{folder} has a vocabulary of {vocab.size} and its config.json a model of {config.vocab_size} symbols: "
            "export the model again."
        )
    return vocab


def find_model(place: str | Path) -> Path:
    """The bundled model, a folder (of a training run: the model that it ended with), one on an object store, or a name
    on the Hub.
    """
    if not isinstance(place, (str, Path)):
        raise UserError(
            f"Give a model's folder or name as str or Path, not a value of type {type(place).__name__}."
        )
    if place == BUNDLED:
        return WEIGHTS / "char-small"
    local = local_copy(place)
    if (local / "checkpoints").is_dir():
        return _model_of_run(local)
    if local.exists():
        return local
    if local.name == "model" and (local.parent / "checkpoints").is_dir():
        return _model_of_run(local.parent)
    name = str(place)
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise UserError(
            f"There is no folder {name}: give a model's folder, or OWNER/NAME for one on the Hub."
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(
            f"There is no folder {name}, and reading it from the Hub needs `pip install 'lexinvariant[hub]'`."
        ) from None
    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors"]))
    except Exception as error:
        raise UserError(
            f"{name} is not a folder here, and it could not be fetched from the Hub ({type(error).__name__}): check "
            "the name and the network."
        ) from error


def _model_of_run(run: Path) -> Path:
    model = run / "model"
    if not model.is_dir():
        raise UserError(
            f"{run} is a run that was stopped before its end: train on, or `lexinvariant export {run} OUT`."
        )
    return model
