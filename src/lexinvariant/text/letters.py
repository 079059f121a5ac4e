"""Text as solvers of ciphers see it: 26 letters and the space, or the letters alone."""

_FOLD = bytes(ord(chr(i).lower()) if chr(i).isascii() and chr(i).isalpha() else 32 for i in range(256))


def letters_only(text: str) -> str:
    """Lower case a-z, with every run of anything else as one space."""
    return " ".join(text.encode("ascii", "replace").translate(_FOLD).decode().split())


def unspaced(text: str) -> str:
    """Lower case a-z and nothing else."""
    return letters_only(text).replace(" ", "")
