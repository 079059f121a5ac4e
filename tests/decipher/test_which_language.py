"""Other languages: read with their own letters and without, found out, named, and never at the expense of English."""

from collections import Counter
from pathlib import Path

import pytest

import lexinvariant
from lexinvariant.decipher import classical, which_language
from lexinvariant.decipher.cipher import random_cipher
from lexinvariant.decipher.describe_language import describe_language
from lexinvariant.decipher.language import Language, bundled_languages, load_language
from lexinvariant.decipher.samples import enciphered_pairs
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.which_language import can_hold, letters_of, share_of_foreign
from lexinvariant.results.paper_texts import PAPER_TEXTS

GERMAN = (
    "Der alte Wärter stieg die Treppe hinauf, während draußen der Sturm größer wurde und die Schiffe näher an die "
    "Felsen trieben; niemand hörte die Glocke, und über dem Wasser lag dichter Nebel."
)
SPANISH = (
    "La niña abrió la ventana muy temprano para mirar el mar, pero aquella mañana no había ningún barco en el puerto "
    "y todos los vecinos se habían marchado ya hacia el otro lado de la montaña."
)
FRENCH = (
    "Le vieux gardien du phare monta les marches et alluma la lampe, parce que les nuages arrivaient sur la mer et que "
    "les navires devaient être rentrés avant la nuit."
)
RUSSIAN = (
    "Старый смотритель маяка поднялся по лестнице и зажёг лампу, потому что над морем уже собирались тучи и корабли "
    "должны были вернуться домой до наступления ночи."
)
ENGLISH = (
    "the old keeper climbed the stairs and lit the lamp because clouds were gathering over the sea and the ships had "
    "to be home before night"
)


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(use_judge=False)


def spelling(name: str, number: int) -> Language:
    return load_language(name).spellings[number]


def error_rate(plain: str, read: str) -> float:
    pairs = enciphered_pairs(plain, read, "spaced")
    return sum(a != b for a, b in pairs) / len(pairs)


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("german", 0, GERMAN),
        ("german", 1, GERMAN),
        ("french", 0, FRENCH),
        ("spanish", 1, SPANISH),
        ("russian", 0, RUSSIAN),
    ],
)
def test_a_text_is_read_in_its_language_and_the_language_is_named(
    solver: Solver, name: str, number: int, text: str
) -> None:
    written = spelling(name, number)
    plain = written.letters_only(text)
    cipher = random_cipher(number, alphabet=written.letters).encipher(plain)
    found = solver.read([cipher])[0]
    assert (found.verdict.status, found.verdict.language) == ("read", name)
    assert found.verdict.languages[name] > 0.9
    assert sum(found.verdict.languages.values()) == pytest.approx(1, abs=0.01)
    assert name.capitalize() in found.verdict.sentence
    assert error_rate(plain, found.plaintext) <= 0.03


@pytest.mark.parametrize(("number", "kind"), [(0, "vigenere"), (1, "vigenere"), (1, "columnar")])
def test_other_kinds_of_ciphers_are_read_in_other_languages(solver: Solver, number: int, kind: str) -> None:
    written = spelling("german", number)
    plain = written.unspaced(GERMAN)
    key = [written.letters.index(c) for c in "lampe"]
    by_alphabets = classical.polyalphabetic(plain, key, "vigenere", written.letters)
    cipher = by_alphabets if kind == "vigenere" else classical.columnar(plain, [3, 0, 4, 2, 1])
    found = solver.read([cipher])[0]
    assert (found.verdict.status, found.verdict.kind, found.verdict.language) == ("read", kind, "german")
    assert found.plaintext == plain
    assert found.spaced is not None and found.spaced.startswith("der alte w")
    assert found.verdict.languages["german"] > 0.9


def test_two_scripts_in_one_text_are_no_reading(solver: Solver) -> None:
    """More signs than letters, with spaces that mean nothing: the puzzle is taken apart anew on the way."""
    found = solver.read(["rrxlcbtmsouentjb eyknpixגvfbגezcsh bגxtגorggotleqm אאאjhfpj joaדqdtozx"])[0]
    assert found.verdict.status == "unread"


def test_a_short_plain_text_is_told_in_any_language(solver: Solver) -> None:
    found = solver.read(["Guten Morgen, wie geht es Ihnen?"])[0]
    assert found.verdict.sentence == "Plain text: this is German already."


def test_a_language_may_be_given_and_its_numbers_are_letters_too() -> None:
    plain = spelling("german", 0).letters_only(GERMAN)
    number = {
        letter: str(i + 10)
        for i, letter in enumerate(random_cipher(4, alphabet="".join(sorted(set(plain)))).written)
    }
    cipher = "  ".join(" ".join(number[c] for c in word) for word in plain.replace(" ", "|").split("|"))
    found = Solver(language=load_language("german")).read([cipher])[0]
    assert error_rate(plain.replace(" ", ""), found.plaintext.replace(" ", "")) <= 0.05
    assert found.verdict.languages == {}  # it was not found out


def test_plain_text_of_another_language_is_said_to_be_so(solver: Solver) -> None:
    found = solver.read([GERMAN])[0]
    assert (found.verdict.kind, found.verdict.language, found.plaintext) == ("plain", "german", GERMAN)


def test_readable_english_is_compared_with_nothing(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(which_language, "_quick_key_nats", lambda attempts: pytest.fail("it was compared"))
    found = solver.read([random_cipher(5).encipher(ENGLISH)])[0]
    assert (found.verdict.language, found.plaintext) == ("english", ENGLISH)
    assert list(found.verdict.languages) == ["english"]


def test_letters_of_another_alphabet_may_be_signs_for_english(solver: Solver) -> None:
    greek = str.maketrans(
        "".join(sorted(set(ENGLISH) - {" "})), "αβγδεζηθικλμνξοπρστυφχψω"[: len(set(ENGLISH)) - 1]
    )
    found = solver.read([ENGLISH.translate(greek)])[0]
    assert (found.verdict.language, found.plaintext) == ("english", ENGLISH)


def test_letters_rule_languages_out() -> None:
    english, polish, russian = load_language(), spelling("polish", 0), spelling("russian", 0)
    latin, cyrillic, accented = letters_of("Any LETTERS!"), letters_of("Любые буквы"), letters_of("ąęśż" * 5)
    assert can_hold(latin, english) and can_hold(latin, polish) and not can_hold(latin, russian)
    assert can_hold(cyrillic, russian) and not can_hold(cyrillic, english)
    assert can_hold(accented, polish) and not can_hold(accented, spelling("polish", 1))
    assert can_hold(Counter(), russian)  # numbers, emoji
    assert share_of_foreign(letters_of("caf\u00e9"), english) == 0.25


def test_spellings_fold_as_puzzle_makers_do() -> None:
    folded = {
        "german": ("Größe, Übermut", "groesse uebermut"),
        "french": ("Où est l'œuvre garçon", "ou est l oeuvre garcon"),
        "polish": ("Źdźbło łąki", "zdzblo laki"),
        "turkish": ("Işık, İĞNE", "isik igne"),
        "greek": ("Ο άνθρωπος ἀγαθὸς", "ο ανθρωποσ αγαθοσ"),
    }
    for name, (text, written) in folded.items():
        assert spelling(name, 1).letters_only(text) == written
    assert spelling("turkish", 0).letters_only("Işık, İĞNE") == "ışık iğne"
    assert spelling("greek", 0).letters_only("ἀγαθὸς ὁρῶ") == "αγαθός ορώ"


def test_given_folds_come_before_lost_accents() -> None:
    language = describe_language("ours", ["ä ö é ł ABC xyz" * 9], "abcdelxyzo", None, {"ä": "ae"}, None)
    assert language.letters_only("Äöéł") == "aeoel"


def test_all_languages_fit_the_package() -> None:
    package = Path(lexinvariant.__file__).parent
    assert len(bundled_languages()) == 15
    for name in bundled_languages():
        if name != "english":
            assert sum(p.stat().st_size for p in load_language(name).folder.rglob("*.*")) < 1.5e6
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in files) < 50e6


def test_a_reading_is_no_likelier_than_its_language(solver: Solver) -> None:
    names = "ahmedbrigittechididmitriesperanzafatimagiorgoshiroshiingridjavierkatarzynalaszlo"
    verdict = solver.read([random_cipher(1).encipher(names)])[0].verdict
    assert len(verdict.languages) > 5
    assert verdict.probability <= verdict.languages[verdict.language or ""] + 1e-4
    assert verdict.status != "read"


def test_a_text_that_a_key_for_english_reads_dearly_is_compared_with_other_languages(solver: Solver) -> None:
    """As a right plaintext may be found under another language's n-grams, without accents at least."""
    french = (
        "Le conseil municipal a decide mardi soir de reporter la fermeture des deux bibliotheques du centre, apres que "
        "des centaines d'habitants sont venus protester dans la salle. Le maire a promis une nouvelle etude avant la "
        "fin de l'annee, mais les economies prevues restent necessaires."
    )
    for text in (french, random_cipher(2).encipher(french)):
        verdict = solver.read([text])[0].verdict
        assert (verdict.language, verdict.status) == ("french", "read")


def test_plain_text_keeps_its_accents(solver: Solver) -> None:
    """It is read in the spelling without them where that costs less."""
    french = (
        "Longtemps, je me suis couché de bonne heure. Parfois, à peine ma bougie éteinte, mes yeux se fermaient si "
        "vite que je n'avais pas le temps de me dire : Je m'endors."
    )
    found = solver.read([french])[0]
    assert (found.verdict.kind, found.verdict.language) == ("plain", "french")
    assert found.plaintext == french


@pytest.mark.slow
def test_more_symbols_than_letters_may_be_code_whatever_other_languages_make_of_them() -> None:
    java = next(text.text for text in PAPER_TEXTS if text.name == "Java")
    found = Solver().read([random_cipher(0).encipher(java)])[0]
    assert (found.verdict.kind, found.verdict.language) == ("substitution", "english")
    wrong = sum(a != b for a, b in zip(found.plaintext, java, strict=True))
    assert wrong < 0.2 * len(java)
