"""Texts written differently, in ways that a reader sees through: misspelt words, words replaced by rare or made-up ones
throughout, and code whose identifiers have other names.

A text is given back in pieces, so that what was changed and what stands around it can be measured apart. Nothing here
knows of models.
"""

from __future__ import annotations

import keyword
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from lexinvariant.decipher.word_cipher import WORDS, like, made_up_word
from lexinvariant.results.regularised_model import Perturbation

SHORTEST = 4
"""Letters of a word that may be misspelt or replaced: shorter ones are those of grammar."""
SHARE = 0.2
"""Of the words that are misspelt, or of the different words that are replaced."""
_JAVA = """abstract assert boolean break byte case catch char class const continue default do double else enum extends
false final finally float for goto if implements import instanceof int interface long native new null package private
protected public return short static strictfp super switch synchronized this throw throws transient true try var void
volatile while yield"""
KEYWORDS = frozenset({*re.findall(r"\w+", _JAVA), *keyword.kwlist, "self", "cls", "String", "Object"})
_NO_TYPES = """and assert await case del do elif else except extends from if implements import in instanceof is lambda
new not or package raise return throw throws until while with yield"""
_NOT_BEFORE_A_DECLARATION = frozenset(re.findall(r"\w+", _NO_TYPES))
# Strings and comments are matched to be left alone.
_CODE = re.compile(
    r"""(?P<other>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|/\*.*?(?:\*/|\Z)|//[^\n]*|\#[^\n]*)|(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)
# After a type or `def`; assigned to at the start of a line; the variable of a loop; or a class.
_DECLARED = re.compile(
    r"(?P<before>\w+)[>\]]*[ \t]+(?P<name>[A-Za-z_]\w*)[ \t]*(?=[=;,):({])"
    r"|^[ \t]*(?P<assigned>[A-Za-z_]\w*)[ \t]*=(?!=)"
    r"|\bfor[ \t]+(?P<loop>[A-Za-z_]\w*)[ \t]+in\b"
    r"|\b(?:class|interface|enum)[ \t]+(?P<type>[A-Za-z_]\w*)",
    re.MULTILINE,
)
_PARAMETERS = re.compile(r"\bdef[ \t]+\w+\((?P<all>[^)]*)\)")
_PARAMETER = re.compile(r"(?:^|,)[\s*]*([A-Za-z_]\w*)(?=\s*(?:[:=,]|$))")
_LINE_OF_CODE = re.compile(r"[;{})\]:,(]$|^(?://|/?\*|#|@|return\b|[\w.\[\]]+ [-+*/]?= )")


@dataclass(frozen=True)
class Piece:
    """A part of a text as it was and as it is written now; of a part that was changed, the word that stood there."""

    clean: str
    written: str
    word: str | None = None


Perturb = Callable[[str, random.Random], list[Piece]]


def _rewrite(text: str, spans: Iterable[tuple[int, int, str, str]]) -> list[Piece]:
    """The text with (start, end, new, word) written anew, and all that lies between as it is."""
    pieces, at = [], 0
    for start, end, new, word in spans:
        pieces += [Piece(text[at:start], text[at:start]), Piece(text[start:end], new, word)]
        at = end
    return [piece for piece in (*pieces, Piece(text[at:], text[at:])) if piece.clean]


def _words(text: str) -> list[tuple[int, int, str]]:
    matches = (match for match in WORDS.finditer(text) if match["word"])
    return [(*match.span("word"), match["word"]) for match in matches if len(match["word"]) >= SHORTEST]


def swap_characters(text: str, chance: random.Random) -> list[Piece]:
    """Two neighbouring letters inside a word change places, in a share of the words."""
    spans = []
    for start, end, word in _words(text):
        places = [i for i in range(1, len(word) - 2) if word[i] != word[i + 1]]
        if places and chance.random() < SHARE:
            i = chance.choice(places)
            spans.append((start, end, word[:i] + word[i + 1] + word[i] + word[i + 2 :], word.lower()))
    return _rewrite(text, spans)


def _replace_consistently(text: str, chance: random.Random, new_words: Iterator[str]) -> list[Piece]:
    words = _words(text)
    different = sorted({word.lower() for _, _, word in words})
    chosen = [word for word in different if chance.random() < SHARE]
    written = dict(zip(chosen, new_words, strict=False))
    return _rewrite(
        text,
        (
            (start, end, like(word, written[word.lower()]), word.lower())
            for start, end, word in words
            if word.lower() in written
        ),
    )


def _made_up_words(chance: random.Random, taken: set[str]) -> Iterator[str]:
    """Different ones, without end."""
    while True:
        taken.add(word := made_up_word(chance, taken))
        yield word


def make_up_words(known: Set[str]) -> Perturb:
    """A share of the different words is written as made-up ones that are not known, wherever they stand."""

    def perturb(text: str, chance: random.Random) -> list[Piece]:
        return _replace_consistently(text, chance, _made_up_words(chance, set(known)))

    return perturb


def replace_by_rare_words(rare: Sequence[str]) -> Perturb:
    """A share of the different words is written as rare ones, wherever they stand."""

    def perturb(text: str, chance: random.Random) -> list[Piece]:
        taken = {word.lower() for _, _, word in _words(text)}
        others = [word for word in rare if word not in taken]
        return _replace_consistently(text, chance, iter(chance.sample(others, len(others))))

    return perturb


def rename_identifiers(known: Set[str]) -> Perturb:
    """Names that a piece of code declares and uses again become made-up ones; strings and comments stay."""

    def perturb(text: str, chance: random.Random) -> list[Piece]:
        found = [(*match.span(), match["name"]) for match in _CODE.finditer(text) if match["name"]]
        counts = Counter(name for _, _, name in found)
        chosen = sorted(name for name in declared_names(text) if counts[name] > 1)
        new_names = _made_up_words(chance, set(known))
        written = {name: like(name, new) for name, new in zip(chosen, new_names, strict=False)}
        return _rewrite(text, ((start, end, written[n], n) for start, end, n in found if n in written))

    return perturb


def declared_names(text: str) -> set[str]:
    code = _CODE.sub(lambda match: match[0] if match["name"] else '""', text)
    names = {
        match["name"] or match["assigned"] or match["loop"] or match["type"]
        for match in _DECLARED.finditer(code)
        if match["before"] not in _NOT_BEFORE_A_DECLARATION
    }
    parameters = {name for some in _PARAMETERS.finditer(code) for name in _PARAMETER.findall(some["all"])}
    return (names | parameters) - KEYWORDS


def looks_like_code(text: str) -> bool:
    """Most lines end or begin as lines of code do, and names are declared."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    n_code = sum(bool(_LINE_OF_CODE.search(line)) for line in lines)
    return len(lines) > 3 and n_code > len(lines) / 2 and len(declared_names(text)) > 2


def looks_like_prose(text: str) -> bool:
    """Nearly nothing but letters and blanks, in words of more than a few kinds."""
    n_plain = sum(character.isalpha() or character == " " for character in text)
    return not looks_like_code(text) and n_plain > 0.9 * len(text) and len(_words(text)) > 8


def perturbations(
    texts: Sequence[str], is_rare: Callable[[str], bool]
) -> dict[Perturbation, tuple[Perturb, list[int]]]:
    """Each way of writing texts differently, and the numbers of those that it is for."""
    prose = [i for i, text in enumerate(texts) if looks_like_prose(text)]
    code = [i for i, text in enumerate(texts) if looks_like_code(text)]
    known = {word.lower() for text in texts for word in re.findall(r"\w+", text)}
    words = {word.lower() for i in prose for _, _, word in _words(texts[i])}
    rare = sorted(word for word in words if is_rare(word))
    return {
        "characters swapped": (swap_characters, prose),
        "rare words": (replace_by_rare_words(rare), prose),
        "made-up words": (make_up_words(known), prose),
        "identifiers renamed": (rename_identifiers(known), code),
    }
