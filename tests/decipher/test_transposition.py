"""Letters in other places: columns, full and not, rail fences and texts turned round."""

import numpy as np
import pytest

from lexinvariant.decipher import classical
from lexinvariant.decipher.alphabet import make_puzzle
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.text_reading import TextReading
from lexinvariant.decipher.transposition import climb, rail_fence, read_transposition

ENGLISH = load_language()
PLAIN = (
    "when the old keeper of the lighthouse heard the storm coming over the water he climbed the stairs with his lamp "
    "and his book and sat down to wait for the ships that would need him before the morning"
)
LETTERS = PLAIN.replace(" ", "")


def read(text: str) -> TextReading:
    found = read_transposition(make_puzzle(text, ENGLISH))
    assert found is not None
    return found


@pytest.mark.parametrize("n_letters", [144, 142])
@pytest.mark.parametrize(
    "order", [[2, 0, 1], [4, 2, 0, 5, 7, 1, 3, 6], [7, 3, 11, 0, 9, 5, 1, 10, 2, 8, 6, 4]]
)
def test_columns_are_put_back_whether_or_not_the_last_row_is_full(order: list[int], n_letters: int) -> None:
    plain = LETTERS[:n_letters]
    found = read(classical.columnar(plain, order))
    key = " ".join(str(order.index(column) + 1) for column in range(len(order)))
    assert (found.kind, found.parameters) == ("columnar", {"columns": len(order), "key": key})
    told = found.decipherment(top=3)
    assert (told.plaintext, told.verdict.status) == (plain, "read")
    assert told.spaced is not None
    assert told.spaced.startswith("when the old keeper of")
    assert f"in {len(order)} columns" in told.verdict.sentence


def test_a_text_without_its_first_letter_is_hardly_a_rival() -> None:
    """Read from its second column on, "The keeper ..." is "He keeper ...", with the T behind its last word."""
    plain = (
        "the keeper of the lighthouse has gone to the mainland and will not return before the storm is over row out at "
        "dusk when the tide is low and land on the northern side where the rocks hide a boat from the village the "
        "chest is under the stairs"
    ).replace(" ", "")
    found = read(classical.columnar(plain, [3, 0, 5, 2, 6, 1, 4])).decipherment(top=0)
    assert found.plaintext == plain
    assert found.right > 0.85


def test_spaces_and_capitals_may_be_moved_like_letters() -> None:
    plain = PLAIN.capitalize() + "."
    found = read(classical.columnar(plain, [3, 1, 4, 0, 2]))
    assert found.decipherment(top=0).plaintext == plain


@pytest.mark.parametrize("rails", [2, 3, 7])
def test_a_rail_fence(rails: int) -> None:
    assert "".join("wearediscovered"[i] for i in rail_fence(15, 3)) == "wecrerdsoeeaivd"
    found = read("".join(LETTERS[i] for i in rail_fence(len(LETTERS), rails)))
    # Two rails are two columns too, as everybody knows.
    assert (found.kind, dict(found.parameters)["rails" if found.kind == "rail-fence" else "columns"])[
        1
    ] == rails
    assert found.plaintext == LETTERS


def test_a_text_turned_round_keeps_its_signs() -> None:
    found = read((PLAIN + ".")[::-1])
    assert (found.kind, found.plaintext) == ("reversed", PLAIN + ".")


def test_what_is_no_transposition_is_not_claimed_to_be_one() -> None:
    assert read_transposition(make_puzzle(random_cipher(1).encipher(PLAIN), ENGLISH)) is None
    shuffled = "".join(np.random.default_rng(0).permutation([*LETTERS]))
    assert read(shuffled).reading().probability < 0.1


def test_climbing_ends_where_no_move_betters_the_order() -> None:
    best = np.array([3, 0, 4, 1, 5, 2])

    def cost(block: np.ndarray) -> np.ndarray:
        return (block != best).sum(axis=-1).astype(float)

    orders, costs = climb(np.stack([np.arange(6), best[::-1]]), cost)
    assert orders.tolist() == [best.tolist()]
    assert costs.tolist() == [0.0]
