"""A corpus that every machine has: the Python standard library's source and the topics of `pydoc`."""

import ast
import os
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from lexinvariant.text.formats import Document
from lexinvariant.text.source_code import is_table

# Many installations lack the tests, and third-party packages differ: without both, machines are alike.
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


def read_modules() -> Iterator[Document]:
    """Every module, tables and empty ones too."""
    root = Path(sysconfig.get_path("stdlib"))
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if name not in _LEFT_OUT and "config-" not in name)
        for name in sorted(files):
            if name.endswith(".py"):
                path = Path(folder, name)
                text = path.read_text(encoding="utf-8", errors="replace")
                yield Document(text, f"python:{path.relative_to(root).as_posix()}")


def read_code() -> Iterator[Document]:
    """The modules that are written by hand: not the tables of encodings, nor what is empty."""
    return (module for module in read_modules() if module.text.strip() and not is_table(module.text))


def read_topics() -> Iterator[Document]:
    """The pages that `help()` shows for keywords and topics of the language."""
    from pydoc_data.topics import topics

    for name in sorted(topics):
        yield Document(topics[name], f"pydoc:{name}")


def read_prose() -> Iterator[Document]:
    """The topics, and for each module its docstrings, outer ones first."""
    yield from read_topics()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for module in read_modules():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escapes in other people's strings
            try:
                tree = ast.parse(module.text)
            except (SyntaxError, ValueError):
                continue
        docstrings = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
        text = "\n\n".join(docstring for docstring in docstrings if docstring)
        if text:
            yield Document(text, module.source.replace("python:", "docstrings:", 1))
