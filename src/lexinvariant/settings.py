"""Nested settings in frozen dataclasses: some of them changed, written as JSON, and built again from it."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

from lexinvariant.errors import UserError, nearest

Config = TypeVar("Config")


def with_settings(node: Config, settings: Mapping[tuple[str, ...], Any], inside: str = "") -> Config:
    """Dataclasses are frozen, so every one on the way to a setting is rebuilt; once, since settings that only agree
    with each other (a width and its heads) must be changed together.
    """
    known = [f.name for f in dataclasses.fields(node)] if dataclasses.is_dataclass(node) else []
    values: dict[str, Any] = {}
    within: dict[str, dict[tuple[str, ...], Any]] = {}
    for (first, *rest), value in settings.items():
        if first not in known:
            hint = f": did you mean {nearest(first, known)!r}?" if known else ": a setting has no parts."
            raise UserError(f"There is no setting {inside + '.'.join((first, *rest))!r}{hint}")
        if rest:
            within.setdefault(first, {})[tuple(rest)] = value
        else:
            values[first] = value
    for first, parts in within.items():
        values[first] = with_settings(values.get(first, getattr(node, first)), parts, f"{inside}{first}.")
    return dataclasses.replace(node, **values)  # type: ignore[type-var]


def to_json(config: Any) -> str:
    return json.dumps(dataclasses.asdict(config), indent=2) + "\n"


def from_dict(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Build a (nested) configuration; a field that this version does not know is an error, not a shrug."""
    if not isinstance(values, Mapping):
        raise UserError(
            "The saved configuration is damaged, settings in it are no object: export or train again."
        )
    hints = get_type_hints(kind)
    unknown = set(values) - set(hints)
    if unknown:
        raise UserError(
            f"The saved configuration has fields that this version does not know ({', '.join(sorted(unknown))}): "
            "install the version of lexinvariant that wrote it."
        )
    nested = {
        name: from_dict(hints[name], value) if dataclasses.is_dataclass(hints[name]) else value
        for name, value in values.items()
    }
    return kind(**nested)
