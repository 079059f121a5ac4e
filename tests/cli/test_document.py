from pathlib import Path

from lexinvariant.cli.document import document

CLI_PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_of_commands_is_what_the_commands_say_of_themselves() -> None:
    assert CLI_PAGE.read_text() == document(), "run `make docs`"
