"""Options that take a list, given twice: of the first list nothing would be left."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

import tyro

from lexinvariant.errors import UserError


def check_given_once(argv: Sequence[str], *commands: type[Any]) -> None:
    """Of the dataclasses of options that a command may have, all that are lists; but not those that gather values."""
    count = Counter(word.partition("=")[0].replace("_", "-") for word in argv)
    for option in dict.fromkeys(name for command in commands for name in _lists(command)):
        if count[option] > 1:
            raise UserError(
                f"{option} is given {count[option]} times: give all of its values after one of them."
            )


def _lists(command: type[Any]) -> list[str]:
    hints = get_type_hints(command, include_extras=True)
    return [f"--{field.name.replace('_', '-')}" for field in fields(command) if _is_list(hints[field.name])]


def _is_list(hint: Any) -> bool:
    kind, *marks = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    gathers = any(mark in (tyro.conf.Positional, tyro.conf.UseAppendAction) for mark in marks)
    return get_origin(kind) is tuple and not gathers
