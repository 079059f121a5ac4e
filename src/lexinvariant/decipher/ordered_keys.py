"""Keys that follow the order of the alphabet: the text as it stands, shifts (Caesar), the alphabet turned round
(Atbash) and affine keys. There are so few that all are tried, and that a fitting one is hardly found by chance.
Where any character may have been enciphered, these keys move the letters alone, as such ciphers do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd, log

import numpy as np
from numpy.typing import NDArray

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import KEPT, Puzzle
from lexinvariant.decipher.decipherment import KeyPosterior
from lexinvariant.decipher.language import Evidence
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.decipher.verdict import Kind

Ids = NDArray[np.integer]
_BEGINNING = 100  # symbols on which all keys are compared
_KEPT = 20  # the best of them, compared on the whole text


def read_in_order(puzzle: Puzzle, problem: SearchProblem) -> KeyPosterior | None:
    """The text under the best of these keys; None where its symbols have no order or the cribs rule all keys out."""
    key_of = _characters_moved(puzzle) if puzzle.kind == "ascii" else _letters_moved(puzzle)
    if key_of is None:
        return None
    size = len(puzzle.language.letters)
    factors = [a for a in range(1, size) if gcd(a, size) == 1]
    log_keys: dict[Kind, float] = {
        "plain": 0.0,
        "atbash": 0.0,
        "caesar": log(size - 1),
        "affine": log(size * len(factors)),
    }
    found: list[tuple[Kind, dict[str, int]]] = []
    keys = []
    for a in factors:
        for b in range(size):
            key_S = key_of(pow(a, -1, size) * (np.arange(size) - b) % size)
            if all(key_S[symbol] == letter for symbol, letter in problem.pinned.items()):
                keys.append(key_S)
                found.append(_named(a, b, size))
    if not keys:
        return None
    key_NS = np.stack(keys).astype(np.int32)
    log_keys_N = np.array([log_keys[kind] for kind, _ in found])
    beginning = replace(problem, pieces=[problem.pieces[0][:_BEGINNING]])
    best = np.argsort(search.costs(beginning, key_NS) + log_keys_N, kind="stable")[:_KEPT]
    cost_N = search.costs(problem, key_NS[best]) + log_keys_N[best]
    order = np.argsort(cost_N, kind="stable")
    kind, parameters = found[best[order[0]]]
    candidates = Candidates(key_NS[best[order]], cost_N[order] - log_keys[kind])
    evidence: Evidence = "spaced" if puzzle.spaced else "unspaced"
    evidence = "characters" if puzzle.kind == "ascii" else evidence
    return KeyPosterior(puzzle, problem, candidates, evidence, kind, parameters, log_keys[kind])


KeyOf = Callable[[Ids], Ids]
"""The key of a text's symbols, given which letter stands behind each letter of the alphabet."""


def _letters_moved(puzzle: Puzzle) -> KeyOf | None:
    letter_S = puzzle.letter_S
    return None if letter_S is None else lambda plain_V: plain_V[letter_S]


def _characters_moved(puzzle: Puzzle) -> KeyOf | None:
    """Small letters and capitals are moved alike, and other characters stay; None where a symbol is no character."""
    language = puzzle.language
    number = {character: i for i, character in enumerate(language.characters)}
    if not all(symbol in number for symbol in puzzle.symbols):
        return None
    itself_S = np.array([number[symbol] for symbol in puzzle.symbols])
    rows = [[number.get(letter, KEPT) for letter in row] for row in (language.letters, language.capitals)]
    number_RV = np.array(rows)
    places = [(s, row.index(n), r) for s, n in enumerate(itself_S) for r, row in enumerate(rows) if n in row]

    def key_of(plain_V: Ids) -> Ids:
        key_S = itself_S.copy()
        for s, letter, r in places:
            key_S[s] = number_RV[r, plain_V[letter]]
        return key_S

    return key_of


def _named(a: int, b: int, size: int) -> tuple[Kind, dict[str, int]]:
    """What the key is called that writes letter number x as number a x + b."""
    if a == 1:
        return ("caesar", {"shift": b}) if b else ("plain", {})
    if a == size - 1 and b == size - 1:
        return "atbash", {}
    return "affine", {"a": a, "b": b}
