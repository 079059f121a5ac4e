"""Long work is told of now and then, short work not at all."""

import io

from rich.console import Console

from lexinvariant.progress import Progress


def test_a_line_comes_every_ten_seconds_until_all_is_done() -> None:
    said: list[str] = []
    seconds = iter([0, 4, 11, 12, 25, 40])  # the start, and each time some are done
    console = Console(file=io.StringIO())
    with Progress("LookUp", 1500, said.append, console=console, clock=lambda: next(seconds)) as advance:
        for n in (100, 900, 100, 100, 300):
            advance(n)
    assert said == ["LookUp: 1,000 of 1,500", "LookUp: 1,200 of 1,500"]


def test_a_terminal_has_a_bar_and_no_lines() -> None:
    said: list[str] = []
    seconds = iter([0, 20, 40])
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with Progress("LookUp", 2, said.append, console=console, clock=lambda: next(seconds)) as advance:
        advance(1)
        advance(1)
    assert said == []
    assert "LookUp" in screen.getvalue() and "2/2" in screen.getvalue()
