"""model.safetensors as NumPy arrays, for readers with and without jax."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.files import check_regular
from lexinvariant.model.quantize import dequantize, is_quantized, scale_shape

TENSORS = "model.safetensors"
SCALE = ".scale"  # a quantized tensor NAME comes with a float32 tensor NAME.scale, one number a column
HASH = "sha256"  # in the file's metadata
_MOST_BESIDE_NUMBERS = 1 << 20  # bytes of names and shapes; a few thousand are usual
_RENAMED = {"lexicals.": "embedding."}  # what version 0.1 called parameters in its files


def _name(stored: str) -> str:
    for old, new in _RENAMED.items():
        if stored.startswith(old):
            return new + stored.removeprefix(old)
    return stored


def file_metadata(tensors: Mapping[str, np.ndarray]) -> dict[str, str]:
    """What a file says of itself: a hash of its tensors, so that a wrong bit in a number does not pass for a number."""
    return {HASH: _hash(tensors)}  # alone: the library writes several in any order, and files would differ


def _hash(tensors: Mapping[str, np.ndarray]) -> str:
    hashed = hashlib.sha256()
    for name in sorted(tensors):
        hashed.update(name.encode())
        hashed.update(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def read_tensors(folder: Path, n_numbers: int | None = None) -> dict[str, np.ndarray]:
    """The tensors of a model's folder by their names; whatever their type, they become float32.

    With the number of a model's parameters, a file that holds far more is refused before it is read: one full of
    nothing takes no place on a disk, and all of the memory.
    """
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    path = folder / TENSORS
    remedy = "export the model again."
    try:
        check_regular(path, remedy)
        if n_numbers is not None and path.stat().st_size > 4 * n_numbers + _MOST_BESIDE_NUMBERS:
            raise UserError(f"{path} does not fit its config.json (it is larger): {remedy}")
        stored = load_file(str(path))
        with safe_open(str(path), "np") as file:
            expected = (file.metadata() or {}).get(HASH)  # none in files of others
    except MemoryError as error:
        raise UserError(f"{path} is larger than this machine's memory: use a machine with more.") from error
    except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        # AttributeError: of types that NumPy has not
        raise UserError(f"{path} is missing or damaged: {remedy}") from error
    tensors = {}
    for name, value in stored.items():
        if _is_scale(name, stored):
            continue
        if is_quantized(value):
            scale = stored.get(name + SCALE)
            if scale is None or scale.dtype != np.float32 or scale.shape != scale_shape(value):
                raise UserError(f"{path} has no scale that fits {name}: {remedy}")
            value = dequantize(value, scale)
        elif value.dtype.name not in ("float32", "bfloat16"):
            # Bits under another type's name are numbers all the same, and nonsense.
            raise UserError(f"{path} has {name} in {value.dtype.name}, which no model has: {remedy}")
        tensors[_name(name)] = value = value.astype(np.float32, copy=False)
        if not np.isfinite(value).all():
            raise UserError(f"{path} has numbers in {name} that are none (NaN or infinite): {remedy}")
    if expected not in (None, _hash(stored)):
        raise UserError(f"{path} is damaged, its numbers are not those that were written: {remedy}")
    return tensors


def _is_scale(name: str, stored: Mapping[str, np.ndarray]) -> bool:
    quantized = stored.get(name.removesuffix(SCALE))
    return name.endswith(SCALE) and quantized is not None and is_quantized(quantized)
