"""What commands print on: a console that shows any text, whatever the text and the terminal are."""

from rich.console import Console

_USUAL_WIDTH = 80
# Not tabs and line breaks; of the rest, rich leaves some out and passes escape on, with which a text could move the
# cursor, rename the window or clear the screen.
_CONTROLS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\r"}
_VISIBLE = _CONTROLS | {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd")


def plain_console() -> Console:
    """One that neither colours numbers nor breaks lines."""
    console = Console(highlight=False, soft_wrap=True)
    if console.width < 1:  # COLUMNS=0, as of a terminal that knows no size: rich would print nothing at all
        console.width = _USUAL_WIDTH
    return console


def visible(text: str) -> str:
    """The text with signs in the place of control characters: what somebody else wrote must not steer a terminal."""
    return text.translate(_VISIBLE)
