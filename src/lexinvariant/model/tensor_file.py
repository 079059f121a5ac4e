"""model.safetensors as NumPy arrays, for readers with and without jax."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lexinvariant.errors import UserError

SCALE = ".scale"  # an int8 tensor NAME comes with a float32 tensor NAME.scale, one number a column
_RENAMED = {"lexicals.": "embedding."}  # what version 0.1 called parameters in its files


def _name(stored: str) -> str:
    for old, new in _RENAMED.items():
        if stored.startswith(old):
            return new + stored.removeprefix(old)
    return stored


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """The tensors of a model's folder by their names; int8 and bfloat16 become float32."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        stored = load_file(str(folder / "model.safetensors"))
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{folder}/model.safetensors is missing or damaged: export the model again."
        ) from error
    # int8 times float32 is float32 in one pass, with no copy in between.
    return {
        _name(name): value * stored[name + SCALE] if value.dtype == np.int8 else value.astype(np.float32)
        for name, value in stored.items()
        if not _is_scale(name, stored)
    }


def _is_scale(name: str, stored: Mapping[str, np.ndarray]) -> bool:
    quantized = stored.get(name.removesuffix(SCALE))
    return name.endswith(SCALE) and quantized is not None and quantized.dtype == np.int8
