"""Whatever is given to be deciphered, it is read and shown, or refused in a sentence."""

import io
import json
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lexinvariant.cli.decipher import _cribs, show
from lexinvariant.decipher.alphabet import check_cribs, make_puzzle
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.notation import Notation
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError
from lexinvariant.web.requests import DecipherRequest, EncipherRequest, RequestError, parse
from tests.fuzz.conftest import MORE
from tests.fuzz.damage import VALUES, damaged_bytes

fuzz = settings.get_profile("fuzz")
ENGLISH = load_language()
TEXTS = st.text(max_size=40) | st.text(
    "abcXYZ .,\n\u200d\ufe0f\U0001f469\U0001f467\U0001f1ea❤é\u0301ßǅ", max_size=40
)
ALPHABETS = st.sampled_from(["auto", "letters", "ascii"])
NOTATIONS = st.sampled_from(get_args(Notation))


@fuzz
@given(
    text=TEXTS,
    notation=NOTATIONS,
    alphabet=ALPHABETS,
    unspaced=st.booleans(),
    crib=st.text(max_size=4),
    known=TEXTS,
)
def test_taking_a_text_apart(
    text: str, notation: Notation, alphabet: Any, unspaced: bool, crib: str, known: str
) -> None:
    with suppress(UserError):
        puzzle = make_puzzle(text, ENGLISH, alphabet, unspaced, notation)
        # Under any key at all there is a reading, in which what is not of the key stands as it was.
        puzzle.plaintext(dict.fromkeys(puzzle.symbols, "e"))
        check_cribs(puzzle, _cribs([crib]) if "=" in crib[1:] else {}, known)


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(use_judge=False)


@settings(fuzz, max_examples=max(6, MORE // 20))
@given(text=TEXTS, notation=NOTATIONS, unspaced=st.booleans(), top=st.integers(0, 3))
def test_reading_and_showing(solver: Solver, text: str, notation: Notation, unspaced: bool, top: int) -> None:
    with suppress(UserError):
        [found] = solver.read([text], alphabet="letters", unspaced=unspaced, notation=notation, top=top)
        assert all(0 <= p <= 1 for p in found.confidence.values())
        for terminal in (False, True):
            show(found, Console(file=io.StringIO(), force_terminal=terminal))


@fuzz
@given(body=damaged_bytes(b'{"text": "abc", "cribs": {"a": "b"}, "top": 3}') | st.binary(max_size=60))
def test_bodies_of_requests(body: bytes) -> None:
    for kind in (DecipherRequest, EncipherRequest):
        with suppress(RequestError):
            parse(body, kind)


@fuzz
@given(
    values=st.dictionaries(st.sampled_from(["text", "cribs", "top", "into", "seed", "alphabet", "x"]), VALUES)
)
def test_fields_of_requests(values: dict[str, Any]) -> None:
    for kind in (DecipherRequest, EncipherRequest):
        with suppress(RequestError):
            asked = parse(json.dumps(values).encode(), kind)
            hash(asked)
            if isinstance(asked, EncipherRequest):
                with suppress(UserError):
                    asked.answer()
