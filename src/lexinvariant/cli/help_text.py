"""The help of options, in whole paragraphs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docstring_parser
from docstring_parser import DocstringStyle


@contextmanager
def joined_docstrings() -> Iterator[None]:
    """Join the lines of fields' docstrings before tyro, which makes an option's help of them, does: it leaves lines
    apart that are indented, as all but the first of such a docstring are.
    """
    parse = docstring_parser.parse_from_object

    def parse_and_join(obj: Any, style: DocstringStyle = DocstringStyle.AUTO) -> docstring_parser.Docstring:
        docstring = parse(obj, style)
        for field in docstring.params:
            paragraphs = re.split(r"\n\s*\n", field.description or "")
            field.description = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return docstring

    docstring_parser.parse_from_object = parse_and_join
    try:
        yield
    finally:
        docstring_parser.parse_from_object = parse
