import subprocess
import sys
from itertools import pairwise
from pathlib import Path

CLI_PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_of_commands_is_what_the_commands_say_of_themselves() -> None:
    """In a process of its own: tyro remembers what it has read of an option, and other tests call it directly."""
    made = subprocess.run(
        [sys.executable, "-m", "lexinvariant.cli.document"], capture_output=True, check=True
    )
    assert CLI_PAGE.read_text() == made.stdout.decode(), "run `make docs`"


def test_the_help_of_an_option_is_one_paragraph() -> None:
    """Lines are as long as they can be: no word but would be too long for the line before."""
    _, page = CLI_PAGE.read_text().split("## `lexinvariant train char-small`\n")
    lines = page.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("--out PATH")) + 1
    stop = next(i for i in range(start, len(lines)) if lines[i].strip().startswith("--"))
    assert stop - start >= 2
    for line, following in pairwise(lines[start:stop]):
        assert len(line) + 1 + len(following.split()[0]) > 95
