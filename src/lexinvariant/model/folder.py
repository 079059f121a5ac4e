"""Where models lie, and what their config.json says: for readers with and without jax."""

from pathlib import Path
from typing import Any

from lexinvariant.errors import UserError
from lexinvariant.files import read_json_object

FORMAT = 1
MODEL_TYPE = "lexinvariant"
"""By this transformers knows our models, once lexinvariant.torch is imported."""
BUNDLED = "bundled"
WEIGHTS = Path(__file__).parents[1] / "weights"
"""What comes with the package."""


def read_description(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.exists():
        hint = (
            f"`lexinvariant export {folder} OUT` makes a model of it"
            if (folder / "checkpoints").is_dir()
            else "give a folder written by `lexinvariant export`"
        )
        raise UserError(f"{folder} holds no model (there is no config.json in it): {hint}.")
    remedy = "export the model again."
    description = read_json_object(path, remedy)
    written_as = description.get("format")
    if not isinstance(written_as, int) or not isinstance(description.get("model"), dict):
        raise UserError(f"{path} is not a model's description: {remedy}")
    if written_as > FORMAT:
        raise UserError(f"{folder} was written by a newer lexinvariant: update this one.")
    return description


def find_model(place: str | Path) -> Path:
    """The bundled model, a local folder as it is, or a name on the Hugging Face Hub."""
    if not isinstance(place, (str, Path)):
        raise UserError(
            f"Give a model's folder or name as str or Path, not a value of type {type(place).__name__}."
        )
    if place == BUNDLED:
        return WEIGHTS / "char-small"
    local = Path(place)
    if local.exists():
        return local
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
            f"{name} is no folder here, and the Hub did not give it ({type(error).__name__}): check the name and "
            "the network."
        ) from error
