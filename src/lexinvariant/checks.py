"""Checks of what people give to settings and functions: what has the wrong type, or is no number, is told in one
sentence and not found out in the middle of a run.
"""

import dataclasses
import math
import os
import types
import zlib
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lexinvariant.errors import UserError


def whole_number(value: object, name: str, least: int | None = None) -> int:
    """The value, once it is sure that it is a whole number, of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UserError(f"{name} is {_shown(value)}: give a whole number.")
    if least is not None and value < least:
        raise UserError(f"{name} is {value}: give a number of at least {least}.")
    return int(value)


def finite_number(value: object, name: str) -> float:
    """The value, once it is sure that it is a number: neither NaN nor infinite, both of which pass comparisons."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UserError(f"{name} is {_shown(value)}: give a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UserError(f"{name} is {number}: give a finite number.")
    return number


def given_text(value: object, name: str) -> str:
    """The value, once it is sure that it is a text."""
    if not isinstance(value, str):
        raise UserError(f"{name} is {_shown(value)}: give a text.")
    return value


def path_as_text(value: object) -> object:
    """Settings are stored as JSON, in which a path is a text."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def check_seed(seed: object) -> None:
    if abs(whole_number(seed, "seed")) >= 1 << 63:
        raise UserError(f"seed is {_shown(seed)}: give a number of at most 63 bits.")


def seed_of_32_bits(seed: int) -> int:
    """What random generators take, which leave out further bits without a word: a hash of a seed that has more."""
    check_seed(seed)
    return seed if 0 <= seed < 1 << 32 else zlib.crc32(int(seed).to_bytes(8, "little", signed=True))


def check_settings(
    settings: Any, inside: str, at_least: Mapping[str, int] | None = None, at_most: int | None = None
) -> None:
    """Compare every field of a dataclass of settings with its type, some with the least they may be, and all whole
    numbers but the seed with the most.
    """
    of_class: Any = type(settings)
    for name, kind in _kinds(of_class).items():
        value = getattr(settings, name)
        _check(value, kind, inside + name)
        if at_least and name in at_least and value < at_least[name]:
            raise UserError(f"{inside}{name} is {value}: give a number of at least {at_least[name]}.")
        if at_most is not None and kind is int and name != "seed" and value > at_most:
            raise UserError(f"{inside}{name} is {_shown(value)}: give a number of at most {at_most}.")


@cache
def _kinds(settings: Any) -> dict[str, Any]:
    hints = get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def _check(value: object, kind: Any, name: str) -> None:
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise UserError(f"{name} is {_shown(value)}: it is one of {', '.join(map(str, get_args(kind)))}.")
    elif get_origin(kind) in (Union, types.UnionType):
        if value is not None:
            _check(value, get_args(kind)[0], name)
    elif get_origin(kind) in (tuple, list):
        if not isinstance(value, (list, tuple)):
            raise UserError(f"{name} is {_shown(value)}: give a list.")
        for item in value:
            _check(item, get_args(kind)[0], name)
    elif get_origin(kind) is Mapping:
        if not isinstance(value, Mapping):
            raise UserError(f"{name} is {_shown(value)}: give a table.")
        for part, of in zip(zip(*value.items(), strict=True), get_args(kind), strict=True) if value else ():
            for item in part:
                _check(item, of, name)
    elif kind is int:
        whole_number(value, name)
    elif kind is float:
        finite_number(value, name)
    elif not isinstance(value, kind):
        wanted = {bool: "true or false", str: "a text"}.get(kind, "settings of its own")
        raise UserError(f"{name} is {_shown(value)}: give {wanted}.")


def _shown(value: object) -> str:
    written = repr(value)
    return written if len(written) <= 40 else f"of type {type(value).__name__}"
