"""Nested settings in frozen dataclasses: some of them changed, written as JSON, and built again from it."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_type_hints

from lexinvariant.errors import UserError, likely

Config = TypeVar("Config")


def with_settings(node: Config, settings: Mapping[str, Any]) -> Config:
    """The same settings, some of them changed: by dotted names, as in {"model.width": 64}."""
    known = list(_dotted_names(node))
    for name in settings:
        if name not in known:
            raise UserError(f"There is no setting {name!r}{_hint(str(name), known)}")
    return _rebuilt(node, {tuple(name.split(".")): value for name, value in settings.items()})


def _dotted_names(node: Any, inside: str = "") -> Iterator[str]:
    for field in dataclasses.fields(node):
        yield inside + field.name
        if dataclasses.is_dataclass(value := getattr(node, field.name)):
            yield from _dotted_names(value, f"{inside}{field.name}.")


def _hint(name: str, known: Sequence[str]) -> str:
    """The setting that was meant: its whole name, also where only the end of it was given."""
    parents = {full.rpartition(".")[0] for full in known}
    single = [full for full in known if full not in parents]
    if name.rpartition(".")[0] in single:
        return ": a setting has no parts."
    by_name = {full.rpartition(".")[2]: full for full in reversed(single)} | {full: full for full in single}
    meant = likely(name, by_name)
    return f": did you mean {by_name[meant]!r}?" if meant else ": `lexinvariant train tiny --help` lists all."


def _rebuilt(node: Config, settings: Mapping[tuple[str, ...], Any]) -> Config:
    """Dataclasses are frozen, so every one on the way to a setting is rebuilt; once, since settings that only agree
    with each other (a width and its heads) must be changed together.
    """
    values: dict[str, Any] = {}
    within: dict[str, dict[tuple[str, ...], Any]] = {}
    for (first, *rest), value in settings.items():
        if rest:
            within.setdefault(first, {})[tuple(rest)] = value
        else:
            values[first] = value
    for first, parts in within.items():
        whole = values.get(first, getattr(node, first))
        values[first] = _rebuilt(whole, parts) if dataclasses.is_dataclass(whole) else whole  # an error, soon
    return dataclasses.replace(node, **values)  # type: ignore[type-var]


def to_json(config: Any) -> str:
    return json.dumps(dataclasses.asdict(config), indent=2) + "\n"


def from_dict(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Build a (nested) configuration; a field that this version does not know is an error, not a shrug."""
    if not isinstance(values, Mapping):
        raise UserError(
            "The saved configuration is damaged, its settings are not an object: export or train again."
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
