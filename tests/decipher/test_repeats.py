"""What is said again counts once: it says nothing more of the key."""

import numpy as np
import pytest

from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.repeats import LEAST_REPEAT, new_symbols
from lexinvariant.decipher.solve import Solver


def test_only_stretches_that_stood_there_before_are_no_news() -> None:
    phrase, other = np.arange(LEAST_REPEAT + 2), np.arange(50, 55)
    (new,) = new_symbols([np.concatenate([phrase, other, phrase, other[:2] + 9])])
    assert new.tolist() == [True] * 17 + [False] * 12 + [True] * 2
    first, second = new_symbols([phrase, np.concatenate([phrase, other])])
    assert first.all()
    assert second.tolist() == [False] * 12 + [True] * 5
    said_twice_in_passing = np.concatenate([phrase, np.arange(50, 80), phrase])
    assert new_symbols([said_twice_in_passing])[0].all(), "any text says a few things twice"
    short = np.arange(LEAST_REPEAT - 1)
    assert np.concatenate(new_symbols([np.concatenate([short, other, short])])).all()


def test_a_text_said_again_and_again_with_other_words_between_is_read() -> None:
    """The best key for ten times the same phrase would make it a common one, and nonsense of the rest."""
    between = "now the boat under every quick wind of march again with joy from above some dozen villages"
    plain = "".join("sawthatherlondon" + word for word in between.split())
    found = Solver().read([random_cipher(4).encipher(plain)])[0]
    wrong = [a for a, b in zip(found.plaintext, plain, strict=True) if a != b]
    assert len(wrong) < 0.1 * len(plain)


@pytest.mark.parametrize("phrase", ["near the", "organisms in the"])
def test_nobody_is_sure_of_a_few_words_because_they_are_repeated(phrase: str) -> None:
    plain = " ".join([phrase] * 8)
    found = Solver(language=load_language()).read([random_cipher(3).encipher(plain)])[0]
    assert found.plaintext == plain or found.right < 0.6
