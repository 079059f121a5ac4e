"""Which files are source code worth reading: their language, and what speaks against them."""

import re
import zlib
from collections import Counter
from pathlib import PurePosixPath

SUFFIXES = {
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"),
    "css": (".css", ".scss", ".less"),
    "go": (".go",),
    "html": (".html", ".htm"),
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "python": (".py", ".pyi"),
    "rust": (".rs",),
    "shell": (".sh", ".bash", ".zsh"),
    "sql": (".sql",),
    "typescript": (".ts", ".tsx", ".mts", ".cts"),
}
LANGUAGES = tuple(SUFFIXES)
_LANGUAGE = {suffix: language for language, suffixes in SUFFIXES.items() for suffix in suffixes}

SHORTEST, LONGEST = 300, 100_000
"""Characters of a document."""
_LONGEST_LINE = 400
_LONGEST_MEAN_LINE = 90
_MOST_NON_ASCII, _MOST_DIGITS, _FEWEST_LETTERS = 0.01, 0.25, 0.3

# Lines whose marks are the same, whatever words and numbers stand between them, are rows if there are this many.
_FEWEST_ROWS, _ROWS = 8, 0.05  # at least, and of all lines
_MOST_IN_ROWS, _MOST_IN_ROWS_OF_NUMBERS = 0.9, 0.5  # of a text's characters
_MOST_COMPRESSED = 0.1  # texts that repeat one template have less than this left
_MARKS = 10  # of a line that are compared: rows differ in length
_NO_MARKS = re.compile(r"[\w\s]+")
_DIGIT = re.compile(r"\d")

_SHELL = re.compile(rb"#! ?\S*?(?:/env )?(?:/|\b)(?:ba|da|k|z)?sh\b")
_CPP_HEADER = re.compile(r"^\s*(?:template\s*<|namespace\s+\w|class\s+\w+[^;]*$)", re.MULTILINE)
_MINIFIED = re.compile(r"[.-](?:min|bundle|umd|prod|production\.min)\.")
_GENERATED = re.compile(
    r"auto-?matically[- ]generated|auto-?generated|generated (?:by|from|with|using|automatically|file)|@generated"
    r"|do not edit|don't edit|do not modify|machine[- ]generated",
    re.IGNORECASE,
)
# What compilers and bundlers leave in their output.
_COMPILED = re.compile(r"sourceMappingURL=|\"__esModule\"|__webpack_require__|\b_interopRequireDefault\(")
_LICENCE = re.compile(r"copyright|licen[cs]e|spdx-|all rights reserved|\(c\) \d{4}", re.IGNORECASE)
# A comment of any of the languages; "#" directly before a word is the preprocessor's, or an attribute's.
_COMMENT = re.compile(
    r"\s*(?:/\*.*?\*/|<!--.*?-->|(?:[ \t]*(?://|--|#(?![\w!\[]))[^\n]*(?:\n|$))+)",
    re.DOTALL,
)


def language_of(path: str, beginning: bytes) -> str | None:
    """The language of a file by its name, or by its first line where the name says nothing."""
    name = PurePosixPath(path)
    language = _LANGUAGE.get(name.suffix.lower())
    if language == "c" and name.suffix == ".h" and _CPP_HEADER.search(beginning.decode("utf-8", "replace")):
        return "cpp"
    if language is None and not name.suffix and _SHELL.match(beginning):
        return "shell"
    return language


def read_code(path: str, data: bytes) -> str | None:
    """The file's text without the licence at its top; None where it is binary, generated, minified, a table, too
    short or too long.
    """
    if len(data) > 2 * LONGEST or b"\0" in data or _MINIFIED.search(PurePosixPath(path).name.lower()):
        return None
    try:
        text = data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None
    text = without_licence(text)
    if not SHORTEST <= len(text) <= LONGEST or _GENERATED.search(text[:1500]) or _COMPILED.search(text):
        return None
    lines = text.split("\n")
    if max(map(len, lines)) > _LONGEST_LINE or len(text) > _LONGEST_MEAN_LINE * len(lines):
        return None
    non_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return None if non_ascii > _MOST_NON_ASCII * len(text) or is_table(text) else text


def is_table(text: str) -> bool:
    """Whether the text holds data more than code: numbers, rows that look alike, or one template again and again."""
    digits, letters = (sum(map(kind, text)) for kind in (str.isdigit, str.isalpha))
    if digits > _MOST_DIGITS * len(text) or letters < _FEWEST_LETTERS * len(text):
        return True
    lines = [line for line in map(str.strip, text.split("\n")) if len(line) > 1]
    marks = [_NO_MARKS.sub("", line)[:_MARKS] for line in lines]
    number = Counter(marks)
    rows = [
        line
        for line, its_marks in zip(lines, marks, strict=True)
        if number[its_marks] >= max(_FEWEST_ROWS, _ROWS * len(lines))
    ]
    size, in_rows = sum(map(len, lines)), sum(map(len, rows))
    in_rows_of_numbers = sum(len(row) for row in rows if _DIGIT.search(row))
    if in_rows > _MOST_IN_ROWS * size or in_rows_of_numbers > _MOST_IN_ROWS_OF_NUMBERS * size:
        return True
    encoded = text.encode("utf-8", "replace")
    return len(zlib.compress(encoded)) < _MOST_COMPRESSED * len(encoded)


def without_licence(text: str) -> str:
    """Without the comments at the top that are about copyright: they are the same in thousands of files."""
    first, rest = "", text
    if text.startswith("#!"):
        first, _, rest = text.partition("\n")
    while (comment := _COMMENT.match(rest)) and _LICENCE.search(comment[0]):
        rest = rest[comment.end() :]
    return f"{first}\n{rest.lstrip()}" if first else rest.lstrip("\n")
