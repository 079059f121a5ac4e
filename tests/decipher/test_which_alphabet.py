"""Texts whose letters alone were enciphered, though they do not look so."""

from typing import Any

import pytest

from lexinvariant.decipher.alphabet import check_cribs, make_puzzle
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.decipherment import KeyPosterior
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.substitution import KeySearch

NOTE = """Dear Tom,

  1) Pick up the car (plate V-1234) at 9:30;
  2) call Anna & Co. -- "urgent"!
\tThen e-mail me: tom@example.com

Thanks... see you on Friday (8/11), 7 pm? I will bring 3 cakes, 12 eggs and the 2 tents :-)
The weather should be good on the way home, they say, with a little rain in the night.
"""
C = """#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv) {
    int values[64], count = 0;
    for (int i = 1; i < argc && count < 64; i++) {
        values[count++] = atoi(argv[i]);
    }
    qsort(values, count, sizeof(values[0]), compare);
    for (int i = 0; i < count; i++) {
        printf("%d%c", values[i], i + 1 < count ? ' ' : '\\n');
    }
    return 0;
}
"""
TURNED = (
    "Rovers came back from two goals down to snatch a point at Ashton Lane, with substitute Kieran Webb heading home "
    "in the fourth minute of stoppage time."
)[::-1]


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver()


def test_a_note_full_of_numbers_and_signs(solver: Solver) -> None:
    found = solver.read([random_cipher(5).encipher(NOTE)])[0]
    assert (found.verdict.kind, found.verdict.status) == ("substitution", "read")
    right = sum(a == b for a, b in zip(found.plaintext, NOTE, strict=True))
    assert right >= 0.9 * len(NOTE)


def test_capitals_at_the_ends_of_words(solver: Solver) -> None:
    found = solver.read([TURNED])[0]
    assert (found.verdict.kind, found.verdict.status) == ("reversed", "read")
    assert found.plaintext == TURNED[::-1]


def test_letters_are_tried_before_a_patient_search_among_all_signs(
    solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = []
    search = KeySearch.best_keys

    def watched(self: KeySearch, *arguments: Any) -> KeyPosterior:
        patience.append(arguments[-1])
        return search(self, *arguments)

    monkeypatch.setattr(KeySearch, "best_keys", watched)
    assert solver.read([TURNED])[0].verdict.status == "read"
    assert patience
    assert not any(patience)


def test_code_is_not_changed_by_a_key_that_fits_a_little_better(solver: Solver) -> None:
    found = solver.read([C])[0]
    assert found.verdict.kind == "plain"
    assert found.plaintext == C


@pytest.mark.parametrize(("second", "kind"), [("l", "ascii"), ("e", "glyphs")])
def test_known_homophones_rule_out_a_key_of_all_characters(second: str, kind: str) -> None:
    language = load_language()
    puzzle = make_puzzle(C, language)
    known = check_cribs(puzzle, {"(": "e", ")": second}, None)
    found = KeySearch(None, language, use_judge=False).best_keys(puzzle, known, patient=False)
    assert found.puzzle.kind == kind


def test_letters_of_code_moved_on(solver: Solver) -> None:
    moved = random_cipher(0)  # of the same alphabet
    rot_13 = str.maketrans(moved.alphabet, moved.alphabet[13:] + moved.alphabet[:13])
    text = "".join(c.lower().translate(rot_13).upper() if c.isupper() else c.translate(rot_13) for c in C)
    found = solver.read([text])[0]
    assert (found.verdict.kind, found.verdict.parameters) == ("caesar", {"shift": 13})
    assert found.plaintext == C
