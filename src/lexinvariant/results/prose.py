"""The words of a section: paragraphs and captions, in `prose/NAME.md`, with the rows' numbers filled in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "prose")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True)  # the page escapes
    environment.filters |= {"number": format, "listed": listed}
    return environment


class Prose:
    """A file of Jinja blocks: `paragraphs`, with an empty line between two, and one for each long caption."""

    def __init__(self, name: str) -> None:
        self.name = name

    def paragraphs(self, **values: object) -> list[str]:
        parts = self._render("paragraphs", values).split("\n\n")
        return [" ".join(part.split()) for part in parts if part.strip()]

    def __call__(self, block: str, **values: object) -> str:
        return " ".join(self._render(block, values).split())

    def _render(self, block: str, values: dict[str, object]) -> str:
        template = _environment().get_template(f"{self.name}.md")
        return "".join(template.blocks[block](template.new_context(values)))


def listed(values: Iterable[object], between: str = " or ") -> str:
    """Different values in their order, in words."""
    return between.join(map(str, sorted(set(values))))  # type: ignore[type-var]
