"""The verdict: what a text is, whether it was read, and that nothing is claimed of what was not."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.cli.main import main
from lexinvariant.decipher import classical, fit_verdict
from lexinvariant.decipher.calibration import FitTest, fit_test
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.decipherment import Decipherment
from lexinvariant.decipher.features import is_flat, measure
from lexinvariant.decipher.fit_verdict import Unread, accuracy, fit_classifier
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.verdict import KINDS_IN_ORDER, classifier_input

ENGLISH = load_language()
PLAIN = (
    "when the old keeper of the lighthouse heard the storm coming over the water he climbed the stairs with "
    "his lamp and his book and sat down to wait for the ships that would need him before the morning none of "
    "them came but toward dawn a small boat was driven past the rocks with nobody in it and he wrote that down "
    "as he wrote down everything"
)
GERMAN = (
    "als der alte waerter des leuchtturms den sturm ueber das wasser kommen hoerte stieg er mit seiner lampe "
    "und seinem buch die treppe hinauf und setzte sich um auf die schiffe zu warten die ihn vor dem morgen "
    "brauchen wuerden keines von ihnen kam aber gegen morgen trieb ein kleines boot an den felsen vorbei und "
    "niemand sass darin"
)
FRENCH = (
    "quand le vieux gardien du phare entendit la tempete venir sur la mer il monta les marches avec sa lampe "
    "et son livre puis il attendit les navires qui auraient besoin de lui avant le matin aucun ne vint mais "
    "vers l aube une petite barque passa devant les rochers sans personne a bord et il le nota comme il notait "
    "toute chose"
)
LETTERS = PLAIN.replace(" ", "")
DRAW = np.random.default_rng(5)


def in_another(text: str) -> str:
    """In another alphabet first, so that no key of a tableau gives it back."""
    return random_cipher(6).encipher(text)


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(language=ENGLISH)


def numbers(text: str) -> str:
    key = {letter: str(2 + (7 * v) % 26) for v, letter in enumerate(ENGLISH.letters)}
    return " ".join(key[c] for c in text)


def vigenere(text: str, key: str) -> str:
    return classical.polyalphabetic(text, [ENGLISH.letters.index(c) for c in key], "vigenere")


def sure_symbols(found: Decipherment) -> list[str]:
    return [symbol for symbol, p in found.confidence.items() if p >= 0.9]


@pytest.mark.parametrize(
    ("text", "kind", "parameters"),
    [
        (
            classical.polyalphabetic(in_another(LETTERS), [3, 20, 11, 7], "vigenere"),
            "polyalphabetic",
            {"period": 4},
        ),
        ("".join(DRAW.permutation([*LETTERS])), "transposition", {}),
        ("".join(ENGLISH.letters[v] for v in DRAW.integers(0, 26, 250)), "random", {}),
    ],
)
def test_what_is_no_substitution_of_english_is_not_read(
    solver: Solver, text: str, kind: str, parameters: dict[str, int]
) -> None:
    found = solver.read([text])[0]
    assert (found.verdict.status, found.verdict.kind, found.verdict.parameters) == (
        "unread",
        kind,
        parameters,
    )
    assert found.verdict.sentence.startswith("Not read. It looks like ")
    assert found.verdict.language is None
    assert found.right < 0.15  # letters of another language would be right now and then
    assert sure_symbols(found) == []
    assert sum(found.verdict.kinds.values()) == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize(
    "text", [random_cipher(2).encipher(GERMAN), random_cipher(3).encipher(FRENCH), GERMAN]
)
def test_another_language_is_seen_and_its_reading_is_not_trusted(solver: Solver, text: str) -> None:
    found = solver.read([text])[0]
    assert (found.verdict.status, found.verdict.kind) == ("doubtful", "other-language")
    assert "another language" in found.verdict.sentence
    assert found.verdict.language is None
    assert 0.3 < found.right < 0.8
    assert sure_symbols(found) == []


def test_a_homophonic_cipher_too_short_to_be_read_is_told_to_be_one() -> None:
    frequency = ENGLISH.letter_frequencies.tolist()
    symbols, _ = classical.homophonic(LETTERS[:100], frequency, 50, np.random.default_rng(1))
    text = " ".join(str(s + 10) for s in symbols)
    found = Solver(language=ENGLISH).read([text], alphabet="letters")[0]
    assert (found.verdict.status, found.verdict.kind) == ("unread", "homophonic")
    assert found.verdict.parameters == {"symbols": len(set(symbols))}
    assert sure_symbols(found) == []


@pytest.mark.parametrize(
    ("text", "kind", "parameters", "says"),
    [
        (classical.affine(PLAIN, 1, 3), "caesar", {"shift": 3}, "(ROT-3)"),
        (classical.affine(LETTERS, 1, 13), "caesar", {"shift": 13}, "(ROT-13)"),
        (classical.affine(PLAIN, -1, -1), "atbash", {}, "An Atbash cipher"),
        (classical.affine(PLAIN, 5, 8), "affine", {"a": 5, "b": 8}, "5 x + 8"),
        (PLAIN, "plain", {}, "this is English already"),
        ("khoor zruog", "caesar", {"shift": 3}, "(ROT-3)"),
        (
            vigenere(PLAIN, "lantern"),
            "vigenere",
            {"period": 7, "key": "lantern"},
            "the key word lantern (period 7)",
        ),
        (
            classical.columnar(LETTERS, [3, 1, 0, 2]),
            "columnar",
            {"columns": 4, "key": "3 2 4 1"},
            "in 4 columns",
        ),
        (random_cipher(4).encipher(PLAIN), "substitution", {}, "one letter of English"),
        (numbers(LETTERS), "substitution", {}, "in numbers"),
        ("20-8-5 12-9-7-8-20-8-15-21-19-5 9-19 15-12-4", "plain", {}, "in numbers"),
        (".... . .-.. .-.. --- / - .... . .-. .", "plain", {}, "in Morse code"),
    ],
)
def test_what_can_be_read_is_read_and_named(
    solver: Solver, text: str, kind: str, parameters: dict[str, int], says: str
) -> None:
    found = solver.read([text])[0]
    assert (found.verdict.status, found.verdict.kind, found.verdict.parameters) == ("read", kind, parameters)
    assert says in found.verdict.sentence
    assert found.verdict.language == "english"
    assert found.right > 0.9
    plain = found.plaintext.replace(" ", "")
    assert plain in (LETTERS, "helloworld", "thelighthouseisold", "hellothere")


@pytest.mark.parametrize(
    "text",
    ["".join(sorted(LETTERS)), "".join(c * n for c, n in zip("etaoinshr", range(30, 12, -2), strict=True))],
)
def test_sorted_letters_are_no_reading(solver: Solver, text: str) -> None:
    found = solver.read([text])[0]
    assert (found.verdict.status, found.right) == ("unread", 0)
    assert "three and more in a row" in found.verdict.reasons[-1]


def test_letters_of_an_unknown_script_are_rather_a_language_of_their_own(solver: Solver) -> None:
    hebrew = "בראשית ברא אלהים את השמים ואת הארץ והארץ היתה תהו ובהו וחשך על פני תהום ורוח אלהים על פני המים"
    found = solver.read([hebrew])[0]
    assert found.verdict.status != "read"
    assert found.right < 0.5


def test_a_short_text_is_doubtful(solver: Solver) -> None:
    found = solver.read(["qxv zqx"])[0]
    assert found.verdict.status != "read"
    assert sure_symbols(found) == []


def test_a_text_does_not_get_longer_by_repeating_itself(solver: Solver) -> None:
    once = "☃☂☁ ☄★☀ ☆☇☈☉☊ "
    found = solver.read([once * 5])[0]
    assert found.verdict.status != "read"
    assert found.right < 0.6


def test_a_crib_is_certain_even_in_what_was_not_read(solver: Solver) -> None:
    text = classical.polyalphabetic(PLAIN, [3, 20, 11, 7, 16], "vigenere")
    found = solver.read([text], cribs={"a": "e"})[0]
    assert found.verdict.status == "unread"
    assert sure_symbols(found) == ["a"]


def test_a_fit_test_knows_right_costs_from_wrong_ones_at_every_length() -> None:
    rng = np.random.default_rng(0)
    n_N = rng.integers(20, 400, 400).astype(float)
    keys_N = np.full(400, 50.0)
    right_N = rng.random(400) < 0.5
    cost_N = (
        np.where(right_N, 2.0, 4.0 - keys_N / n_N)
        + rng.normal(0, 0.1, 400)
        + rng.normal(0, 1.0, 400) / n_N**0.5
    )
    test = fit_test(cost_N, n_N, keys_N, right_N)
    assert (test.right, test.wrong, test.effort_gain) == pytest.approx((2.0, 4.0, 1.0), abs=0.15)
    assert test.probability(2.0, 300, 50.0) > 0.95
    assert test.probability(3.8, 300, 50.0) < 0.05
    # What one key alone makes of a text is worth more than what the best of many does.
    assert test.probability(2.5, 40, 0.0) > test.probability(2.5, 40, 50.0)
    found_N = [test.probability(c, int(n), 50.0) > 0.5 for c, n in zip(cost_N, n_N, strict=True)]
    assert np.mean(found_N == right_N) > 0.9


def test_nothing_is_ever_certain() -> None:
    test = FitTest(2.0, 4.0, 1.0, 0.1, 1.0, 0.5, 1.0, 0.0)
    assert 0 < test.probability(1e4, 100, 50.0) < test.probability(0.0, 100, 50.0) < 1


def test_features_see_periods_order_and_repeats() -> None:
    def features(text: str):  # type: ignore[no-untyped-def]
        symbol_T = np.array([ENGLISH.letters.index(c) for c in text if c != " "])
        return measure(symbol_T, ENGLISH.letter_frequencies, np.arange(26))

    plain, moved = features(LETTERS), features(classical.columnar(LETTERS, [3, 1, 0, 2, 4]))
    turned = features(classical.polyalphabetic(LETTERS, [3, 20, 11, 7, 16, 1, 9], "vigenere"))
    assert plain.coincidence == moved.coincidence > 0.06 > turned.coincidence
    assert plain.as_they_stand == pytest.approx(moved.as_they_stand)
    assert turned.as_they_stand < 0 < plain.as_they_stand
    assert plain.followers > moved.followers + 0.5
    assert turned.period == 7
    counts = [
        np.unique(list(text), return_counts=True)[1] for text in (LETTERS, "abcdefghijklmnopqrstuvwxyz" * 8)
    ]
    assert [is_flat(count_S, ENGLISH.letter_frequencies) for count_S in counts] == [False, True]
    assert turned.periodicity > 5 > plain.periodicity


def test_a_classifier_learns_what_can_be_told_apart() -> None:
    rng = np.random.default_rng(0)
    n = len(classifier_input(measure(np.arange(20), ENGLISH.letter_frequencies, None), 0.5))
    unread = [
        Unread(kind, rng.normal(size=n) + 4 * np.eye(n)[place])
        for place, kind in enumerate(("random", "transposition", "homophonic"))
        for _ in range(40)
    ]
    classifier = fit_classifier(unread)
    assert accuracy(classifier, unread) > 0.95
    assert sum(classifier.of_inputs(unread[0].inputs).values()) == pytest.approx(1)


@pytest.mark.slow
def test_a_language_is_fitted_by_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_verdict, "LENGTHS", (200,))  # too long for the judge, and so quickly read
    monkeypatch.setattr(fit_verdict, "CHARACTER_LENGTHS", ())
    shares = {"substitution": 1.0, "columnar": 0.5, "random": 0.5, "other-language": 0.5}
    monkeypatch.setattr(fit_verdict, "SHARES", shares)
    monkeypatch.setattr(fit_verdict, "LEAST_READINGS", 1)
    shutil.copytree(ENGLISH.folder, tmp_path / "mine")
    for name, text in (("own", PLAIN), ("other", GERMAN)):
        (tmp_path / f"{name}.txt").write_text(f"{text} " * 3)
    sources = ["--valid", str(tmp_path / "own.txt"), "--foreign", str(tmp_path / "other.txt")]
    assert main(["language", "verdict", str(tmp_path / "mine"), *sources, "--texts", "4"]) == 0
    fitted = load_language(tmp_path / "mine")
    assert fitted.calibrations.spaced.fit != ENGLISH.calibrations.spaced.fit
    assert fitted.calibrations.characters == ENGLISH.calibrations.characters  # nothing was read as such
    assert set(fitted.unread_kinds.weights) == {"transposition", "random", "other-language"}
    assert fitted.letter_search == ENGLISH.letter_search


@pytest.mark.parametrize("text", ["b", "abab", "aabbccdd" * 3])
def test_a_few_symbols_are_no_homophones(text: str) -> None:
    assert "homophonic" not in Solver(use_judge=False).read([text])[0].verdict.kinds


@pytest.mark.parametrize("text", ["abc", "zebra", "Wkh fdw"])
def test_a_key_that_follows_the_alphabet_is_one_key_and_no_mixture(solver: Solver, text: str) -> None:
    found = solver.read([text])[0]
    assert found.verdict.kind in KINDS_IN_ORDER
    number = {letter: i for i, letter in enumerate(ENGLISH.letters)}
    pairs = {(number[symbol], number[plain]) for symbol, plain in found.key.items()}
    affine = [(a, b) for a in range(1, 26) for b in range(26) if all((a * x + b) % 26 == y for x, y in pairs)]
    assert affine
    if found.verdict.kind == "plain":
        assert found.plaintext == text
