"""Processes of our own, started so that nothing in the current folder is ever imported."""

import sys
from pathlib import Path


def python_command(module: str, function: str, *arguments: str) -> list[str]:
    """The command that calls a function of this package in a Python of its own, with arguments in sys.argv.

    Not `python -m`, nor a plain `-c`: both look for every module in the current folder first, where anyone's numpy.py
    may lie. -P leaves that folder out, and the package is found where ours is.
    """
    package = str(Path(__file__).parents[1])
    code = (
        f"import sys; sys.path.append({package!r}); from {module} import {function}; sys.exit({function}())"
    )
    return [sys.executable, "-P", "-c", code, *arguments]
