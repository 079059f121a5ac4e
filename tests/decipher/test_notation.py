"""How a text is written down: seen by itself, everywhere alike."""

import time

import pytest

from lexinvariant.decipher.notation import Notation, detect, split_symbols
from lexinvariant.errors import UserError

FLAG, FAMILY, HEART, THUMB = "🇪🇺", "👩‍👩‍👧", "❤️", "👍🏽"


def test_what_is_seen_as_one_sign_is_one_symbol() -> None:
    assert split_symbols(f"{FLAG}{FLAG}{FAMILY} {HEART}\n{THUMB}x") == [
        *(FLAG, FLAG, FAMILY, " ", HEART, "\n", THUMB, "x")
    ]
    assert split_symbols("e\u0301a 1\ufe0f\u20e3") == ["é", "a", " ", "1\ufe0f\u20e3"]


def test_a_plain_text_is_its_own_symbols_whatever_its_size() -> None:
    text = "plain text, 🐶 too"
    assert split_symbols(text) is text


def test_marks_without_a_character_are_symbols_and_nothing_is_lost() -> None:
    for text in ("\ufe0f", "\u200d", "🇪", "🇪🇺🇪", "a\u200d", "\u200d\u200db\ufe0f"):
        assert "".join(split_symbols(text)) == text


@pytest.mark.parametrize(
    ("text", "notation", "symbols"),
    [
        ("2 7 23 2", "numbers", ["2", "7", "23", "2"]),
        ("2,7,23\n2", "numbers", ["2", "7", "23", "2"]),
        ("20-8-5 5-14-4", "numbers", ["20", "8", "5", " ", "5", "14", "4"]),
        ("20 8 5 / 5 14", "numbers", ["20", "8", "5", " ", "5", "14"]),
        ("0723110519", "pairs", ["07", "23", "11", "05", "19"]),
        ("07231 10519", "pairs", ["07", "23", "11", "05", "19"]),
        (" 12 7\n12\t300 ", "numbers", ["12", "7", "12", "300"]),
        ("072311051", "characters", "072311051"),
        ("12 34", "characters", "12 34"),
        ("... --- ... / .-", "morse", "sos a"),
        ("•−−• / ·", "morse", "p e"),
        ("01 1000 1010 100 0 0010 110 0000 00 0111 101 0100 11", "morse", "abcdefghijklm"),
        ("x q v x  w x u v z y r", "tokens", ["x", "q", "v", "x", " ", *"wxuvzyr"]),
        (" ".join("😀😃😄😁😆😅🤣😂🙂🙃"), "tokens", list("😀😃😄😁😆😅🤣😂🙂🙃")),
        ("hello, world: 20 8 5", "characters", "hello, world: 20 8 5"),
        ("a-b", "characters", "a-b"),
        ("3.14", "characters", "3.14"),
        ("...", "characters", "..."),
        ("VGhlIGNhdCBzYXQgb24g\ndGhlIG1hdC4=", "base64", "The cat sat on the mat."),
        ("R3J1ZXPDnyBHb3R0LCBzw7zDnw", "base64", "Gruesß Gott, süß"),
        ("54 68 65 20 63 61 74 20 73 61 74 20 6F 6E", "hex", "The cat sat on"),
        ("54686520636174207361742e2e2e", "hex", "The cat sat..."),
        (" ".join(f"{ord(c):08b}" for c in "The cat sat on"), "binary", "The cat sat on"),
        ("84,104,101,32,99,97,116,32,115,97,116,46", "codes", "The cat sat."),
        (
            "TW9uIGPFk3VywqA6IOKAi/CfkanigI3wn5Gp4oCN8J+RpywgZMOpasOgIHZ1wq0h",
            "base64",
            [*"Mon cœur\xa0: \u200b", FAMILY, *", déjà vu\u00ad!"],
        ),
        ("U0dWc2JHOGdkMjl5YkdRaA==", "base64", "Hello world!"),
        ("2e 2e 2e 20 2d 2d 2d 20 2e 2e 2e 20 2f 20 2e 2d", "hex", "sos a"),
        ("MjAgOCA1IDUgMTQgNCAxOQ==", "base64", ["20", "8", "5", "5", "14", "4", "19"]),
        ("%54%68%65%20%63%61%74%20%73%61%74%2E", "hex", "The cat sat."),
        ("23 41 36 98 44 23", "numbers", ["23", "41", "36", "98", "44", "23"]),
        ("deadbeefcafe0123456789abcdef", "characters", "deadbeefcafe0123456789abcdef"),
        ("thequickbrownfoxjumpsoverthelazy", "characters", "thequickbrownfoxjumpsoverthelazy"),
    ],
)
def test_a_notation_is_seen(text: str, notation: str, symbols: str | list[str]) -> None:
    assert detect(text) == notation
    assert split_symbols(text) == symbols


def test_codes_of_few_signs_are_groups_and_pairs() -> None:
    bacon = "AABAB BABAA AAAAA BBBBA AABBB ABABA BBBAA BBAAA ABBAA AABAA BAAAB"
    assert split_symbols(bacon) == bacon.split()
    squares = "".join(a + b for a in "ADFGX" for b in "XGFDA")
    assert split_symbols(squares)[:2] == ["AX", "AG"]
    assert len(split_symbols(squares)) == 25


def test_groups_of_dots_and_dashes_that_are_no_morse_code_are_symbols() -> None:
    code = "..-.. .-. - .-.-.-.-. / ..-.."
    assert detect(code) == "tokens"
    assert split_symbols(code) == ["..-..", ".-.", "-", ".-.-.-.-.", " ", "..-.."]
    for text in (code, "abc", "hello there"):
        with pytest.raises(UserError, match="not Morse code"):
            split_symbols(text, "morse")


def test_somebody_may_know_better() -> None:
    assert split_symbols("2 7 23", "characters") == "2 7 23"
    assert split_symbols("ab cd", "tokens") == ["ab", "cd"]
    assert split_symbols("ab cd", "pairs") == ["ab", "cd"]
    assert (
        split_symbols("SGk=", "base64")
        == split_symbols("48 69", "hex")
        == split_symbols("72 105", "codes")
        == "Hi"
    )
    assert split_symbols("1055 1088 1080", "codes") == "При"


@pytest.mark.parametrize("notation", ["base64", "hex", "binary", "codes"])
@pytest.mark.parametrize("text", ["Hi there!", "gg", "0", "9" * 7, "1 " * 9, "00", "=", "Ă"])
def test_what_is_not_encoded_as_somebody_says_is_told(text: str, notation: Notation) -> None:
    with pytest.raises(UserError, match=f"not encoded in the notation {notation}"):
        split_symbols(text, notation)


def test_a_long_run_of_spaces_takes_no_time() -> None:
    started = time.monotonic()
    assert detect("a" + " " * 100_000 + "!") == "characters"
    assert time.monotonic() - started < 5
