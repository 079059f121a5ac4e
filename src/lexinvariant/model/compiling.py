"""`jax.jit` for interactive use, where the time to compile is most of the time to the answer."""

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any, TypeVar

import jax

Result = TypeVar("Result")


def jit_fast_compile(
    *, static_argnames: Sequence[str] = ()
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """`jax.jit` for what is first called while somebody waits, and not from within another jit: on a CPU it leaves out
    the compiler's later passes, which take long and make none of these functions faster.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        @cache  # asking for the backend starts it, and so must wait until the first call
        def compiled() -> Callable[..., Result]:
            options = {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else None
            return jax.jit(function, static_argnames=static_argnames, compiler_options=options)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Result:
            return compiled()(*args, **kwargs)

        return call

    return decorate
