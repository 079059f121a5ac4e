"""Text in which a word is one symbol: to a model without fixed embeddings a symbol may stand for anything.

Each word, number, blank or mark of a document becomes one printable character, which is drawn anew for every document
and stands for the same word wherever it occurs there. What comes out is no English to be spelled out, but it has the
order of the text that it comes from: what follows what, which fields come back, where a table repeats itself.
"""

import random
import re
from collections.abc import Iterator

from lexinvariant.text.formats import Document
from lexinvariant.text.tags import WORDS

LENGTH = 512
"""Symbols of a document: as many as the presets' contexts have."""
SYMBOLS = [chr(code) for code in range(32, 127)] + ["\n"]
_SPACED = re.compile(r"[A-Za-z]+|[0-9]+|\s+|[^A-Za-z0-9\s]")
_JOINED = re.compile(r" ?[A-Za-z]+| ?[0-9]+|\s+| ?[^A-Za-z0-9\s]")
_LEAST = 32  # shorter pieces say too little of how their words are used


def words_as_symbols(document: Document) -> Iterator[Document]:
    """Pieces of a document, each with a new character for every word: a piece ends where the characters do."""
    source = f"{WORDS}:{document.source}"
    rng = random.Random(source + document.text[:200])
    # Half of the documents have blanks as symbols of their own, half have them in the words that they precede.
    words = rng.choice([_SPACED, _JOINED]).findall(document.text)
    symbol_of: dict[str, str] = {}
    free, piece = rng.sample(SYMBOLS, len(SYMBOLS)), ""
    for word in words:
        if len(piece) == LENGTH or (word not in symbol_of and not free):
            if len(piece) >= _LEAST:
                yield Document(piece, source)
            symbol_of, free, piece = {}, rng.sample(SYMBOLS, len(SYMBOLS)), ""
        if word not in symbol_of:
            symbol_of[word] = free.pop()
        piece += symbol_of[word]
    if len(piece) >= _LEAST:
        yield Document(piece, source)
