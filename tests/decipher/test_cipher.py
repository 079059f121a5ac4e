"""Keys are permutations of their alphabet and of nothing else, and undo themselves."""

import numpy as np
import pytest

from lexinvariant.decipher.cipher import (
    LOWERCASE,
    PRINTABLE,
    Cipher,
    decipher,
    encipher,
    encipher_letters,
    inverse,
    random_cipher,
    random_keys,
)
from lexinvariant.errors import UserError

TEXT = "The quick brown fox, at 3 o'clock; jumps over {lazy} Dogs!"
LETTERS = np.frombuffer(LOWERCASE.encode(), np.uint8)


def test_alphabets() -> None:
    assert len(LOWERCASE) == 26
    assert len(PRINTABLE) == 95 and PRINTABLE.isprintable() and " " in PRINTABLE


@pytest.mark.parametrize("alphabet", [LOWERCASE, PRINTABLE])
def test_a_string_comes_back_and_only_the_alphabet_changes(alphabet: str) -> None:
    cipher = random_cipher(3, alphabet=alphabet)
    written = cipher.encipher(TEXT + "\n")
    assert written != TEXT + "\n"
    assert cipher.decipher(written) == TEXT + "\n"
    assert all(a == b for a, b in zip(TEXT + "\n", written, strict=True) if a not in alphabet)
    assert cipher.encipher(alphabet) == cipher.written


def test_token_arrays_and_strings_have_the_same_key() -> None:
    key_1V = random_keys(3, np.array([7]), LETTERS, 128)
    tok_1T = np.frombuffer(TEXT.encode(), np.uint8)[None]
    expected = random_cipher(3, 7).encipher(TEXT)
    cipher_1T = encipher(key_1V, tok_1T)
    assert cipher_1T.astype(np.uint8).tobytes().decode() == expected
    np.testing.assert_array_equal(decipher(key_1V, cipher_1T), tok_1T)


def test_each_sequence_has_its_key_by_its_number() -> None:
    tok_ST = np.tile(LETTERS, (3, 1))
    key_SV = random_keys(0, np.array([5, 9, 5]), LETTERS, 128)
    cipher_ST = encipher(key_SV, tok_ST)
    assert (cipher_ST[0] == cipher_ST[2]).all() and (cipher_ST[0] != cipher_ST[1]).any()
    np.testing.assert_array_equal(decipher(key_SV, cipher_ST), tok_ST)
    np.testing.assert_array_equal(np.sort(key_SV, axis=1), np.tile(np.arange(128), (3, 1)))
    np.testing.assert_array_equal(np.take_along_axis(inverse(key_SV), key_SV, axis=1)[1], np.arange(128))
    others = np.setdiff1d(np.arange(128), LETTERS)
    np.testing.assert_array_equal(key_SV[:, others], np.tile(others, (3, 1)))


def test_keys_are_uniform() -> None:
    """Every letter is written as every letter equally often, within chance."""
    key_SV = random_keys(1, np.arange(26_000), LETTERS, 128)
    counts = np.stack([np.bincount(key_SV[:, letter] - ord("a"), minlength=26) for letter in LETTERS])
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
    assert (random_keys(2, np.arange(3), LETTERS, 128) != key_SV[:3]).any()


def test_a_key_is_the_same_on_every_machine() -> None:
    assert random_cipher(0).written == "xeipwjdovbkrmtchaqufzngysl"
    assert random_cipher(1).written != random_cipher(0, 1).written != random_cipher(0).written


def test_letters_are_written_as_letters_of_their_script_in_their_case() -> None:
    text = "Ångström, ß; Ένας Σίσυφος"
    written = encipher_letters(1, text)
    assert {written[c] for c in LOWERCASE + "åöß"} == {*LOWERCASE + "åöß"}
    assert {written[c] for c in "έναςσίυφο"} == {*"έναςσίυφο"}
    for capital in "ÅΈΣ":
        assert written[capital].lower() == written[capital.lower()]
    assert "".join(encipher_letters(0, "abc").values()) == random_cipher(0).written
    assert {encipher_letters(seed, "ΣΑ")["Σ"] for seed in range(9)} == {"Σ", "Α"}
    sharp = next(w for w in (encipher_letters(seed, "Aß") for seed in range(99)) if w["a"] == "ß")
    assert sharp["A"] == "ß"  # which has no capital
    assert encipher_letters(0, "İ")["İ"] == random_cipher(0).encipher("i").upper()


@pytest.mark.parametrize(
    ("alphabet", "written"), [("abc", "abb"), ("abc", "ab"), ("aab", "aba"), ("ab", "xy")]
)
def test_what_is_no_permutation_is_refused(alphabet: str, written: str) -> None:
    with pytest.raises(UserError, match="exactly once on both sides"):
        Cipher(alphabet, written)
