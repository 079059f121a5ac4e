"""Every option that is a path, and every output, of every command: given an address, the command says at once what it
makes of it, and makes no folder called "s3:". The options are found by looking at what the commands hand to tyro.
"""

import dataclasses
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import tyro

from lexinvariant.cli.document import pages
from lexinvariant.cli.main import COMMANDS, main

ADDRESS = "nosuch://bucket/mine"


class ParsedError(Exception):
    """What a command has handed to tyro."""


def what_is_parsed(command: list[str]) -> Any:
    def parse(arguments: Any, **_: Any) -> None:
        raise ParsedError(arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tyro, "cli", parse)
        try:
            main([*command, "--help"])
        except ParsedError as parsed:
            return parsed.args[0]
    return None


def parts_of(hint: Any) -> tuple[Any, list[Any]]:
    """A type, and what it is annotated with."""
    return (hint.__origin__, list(hint.__metadata__)) if get_origin(hint) is Annotated else (hint, [])


def dataclasses_of(command: list[str]) -> Iterator[tuple[list[str], Any]]:
    parsed = what_is_parsed(command)
    if get_origin(parsed) not in (Union, types.UnionType):
        yield from [(command, parsed)] if parsed else []
        return
    for choice in get_args(parsed):
        kind, [subcommand] = parts_of(choice)
        yield [command[0], subcommand.name], kind


def commands() -> list[tuple[list[str], Any]]:
    """Words after `lexinvariant`, and the dataclass that comes after them."""
    found = [one for page in pages() if page for one in dataclasses_of(page)]
    # Some commands want a preset before all else.
    bare = [name for name in COMMANDS if name not in {command[0] for command, _ in found}]
    found += [one for name in bare for one in dataclasses_of([name, "tiny"])]
    return list({tuple(command): (command, kind) for command, kind in found}.values())


@dataclasses.dataclass(frozen=True)
class Option:
    """A field of a command's dataclass."""

    name: str
    kind: Any
    is_positional: bool
    metavar: str
    is_required: bool

    @property
    def may_be_an_address(self) -> bool:
        return self.name == "out" or self.metavar.endswith("OUT") or "Path" in str(self.kind)

    def words(self, value: str | None) -> list[str]:
        """As it is given on the command line; without a value, with one that leads nowhere."""
        if get_origin(self.kind) is Literal:
            value = get_args(self.kind)[0]
        values = ["missing", value or "out"] if self.metavar.endswith("... OUT") else [value or "missing"]
        return values if self.is_positional else [f"--{self.name.replace('_', '-')}", *values]


def options_of(kind: Any) -> list[Option]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in dataclasses.fields(kind):
        bare, marks = parts_of(hints[field.name])
        is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        metavar = next((m.metavar for m in marks if getattr(m, "metavar", None)), "")
        found.append(Option(field.name, bare, tyro.conf.Positional in marks, metavar, is_required))
    return found


CASES = [
    (command, option, options)
    for command, kind in commands()
    for options in [options_of(kind)]
    for option in options
    if option.may_be_an_address
]


def test_all_commands_are_looked_at() -> None:
    assert {command[0] for command, _ in commands()} == set(COMMANDS)
    outputs = {" ".join(command) for command, option, _ in CASES if option.name != "data"}
    assert outputs > {
        "train char-small",
        "data prepare",
        "data collect",
        "tokenizer",
        "language build",
        "bench",
    }


@pytest.mark.parametrize(
    ("command", "option", "options"), CASES, ids=[f"{'-'.join(c)}-{o.name}" for c, o, _ in CASES]
)
def test_an_address_is_understood_or_refused_before_anything_is_done(
    command: list[str],
    option: Option,
    options: list[Option],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    line = [*command]
    for other in options:
        if other is option or other.is_required:
            line += other.words(ADDRESS if other is option else None)
    assert main(line) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"lexinvariant: {ADDRESS} ") and told.err.count("\n") == 1, told.err
    assert told.out == "" and not list(tmp_path.iterdir())
