"""Languages as data: English as it comes, and one that nobody speaks, built by the command and deciphered."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.cli.main import main
from lexinvariant.decipher import solve
from lexinvariant.decipher.alphabet import make_puzzle
from lexinvariant.decipher.build_language import build_language
from lexinvariant.decipher.fit_calibration import ValidationText, fit_calibrations
from lexinvariant.decipher.language import Language, load_language
from lexinvariant.decipher.samples import draw_samples
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError
from lexinvariant.text.letters import letters_only, unspaced

LETTERS = "աբգդեզէըթժիլխծկհձղճմ"  # 20 letters of Armenian, in a language of our own


def made_up_sentences(n: int, seed: int) -> str:
    """Sentences of a small grammar: article, adjective, noun, verb and their kin, words drawn by Zipf's law."""
    lexicon = random.Random(0)
    vowels, consonants = "աեէըի", "բգդզթժլխծկհձղճմ"
    weight = [1 / (1 + i) for i in range(len(consonants))]

    def word(n_syllables: int) -> str:
        drawn = lexicon.choices(consonants, weight, k=2 * n_syllables)
        ends = [c if lexicon.random() < 0.3 else "" for c in drawn[1::2]]
        return "".join(c + lexicon.choice(vowels) + end for c, end in zip(drawn[::2], ends, strict=True))

    sizes = {"article": (4, [1]), "adjective": (80, [2, 3]), "noun": (200, [1, 2, 3]), "verb": (80, [2])}
    classes = {kind: [word(lexicon.choice(n)) for _ in range(size)] for kind, (size, n) in sizes.items()}
    draw = random.Random(seed)

    def pick(kind: str) -> str:
        words = classes[kind]
        return draw.choices(words, [1 / (1 + i) for i in range(len(words))])[0]

    out = []
    for _ in range(n):
        phrase = lambda: [pick("article"), *[pick("adjective")] * (draw.random() < 0.4), pick("noun")]  # noqa: E731
        out.append(
            " ".join([*phrase(), pick("verb"), *phrase()]).capitalize() + draw.choice([".", ".", "!", ","])
        )
    return " ".join(out)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Language:
    folder = tmp_path_factory.mktemp("language")
    (folder / "text.txt").write_text(made_up_sentences(8000, seed=1), "utf-8")
    (folder / "valid.txt").write_text(made_up_sentences(800, seed=2), "utf-8")
    command = [
        "language",
        "build",
        "ours",
        "--text",
        str(folder / "text.txt"),
        "--valid",
        str(folder / "valid.txt"),
    ]
    assert main([*command, "--out", str(folder / "ours"), "--texts", "2"]) == 0
    return load_language(folder / "ours")


def test_english_is_what_the_code_was_about() -> None:
    english = load_language("english")
    assert english is load_language()
    text = "Déjà vu: it's 1 O'Clock\tin\nKøbenhavn…"
    assert english.letters_only(text) == letters_only(text)
    assert english.unspaced(text) == unspaced(text)
    assert (english.letter("Q"), english.letter("é"), english.letter("qu")) == ("q", None, None)
    assert english.letter_search.band(44) != english.letter_search.band(45)
    assert english.letter_search.band(10**6).below is None


def test_a_saved_language_is_read_back(tmp_path: Path) -> None:
    english = replace(load_language(), name="copy", folds={"é": "e", "ß": "ss"}, folder=tmp_path)
    english.save()
    again = load_language(tmp_path)
    assert again == english
    assert again.letters_only("Café Maß") == "cafe mass"
    assert make_puzzle("CAFé", again).symbols == ("c", "a", "f", "e")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda values: values.pop("letters"), "letters"),
        (lambda values: values["judging"].update(hurry=1), "unknown field hurry"),
        (lambda values: values.update(letters="aab"), "not an alphabet"),
        (lambda values: values.update(capitals="AB"), "26 letters and 2 capitals"),
        (lambda values: values.update(trace_decay="slow"), "trace_decay is 'slow': give a number"),
        (lambda values: values.update(folds=[]), r"folds is \[\]: give a table"),
        (lambda values: values["calibrations"].update(spaced=3), "not a language of this version"),
        (lambda values: values["calibrations"]["spaced"].update(slope=float("nan")), "slope is nan"),
        (lambda values: values.update(letters=json.loads("[" * 99 + "]" * 99)), "nested more than 64"),
    ],
)
def test_a_damaged_description_is_said_to_be_so(change, why: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    values = json.loads((load_language().folder / "language.json").read_text())
    change(values)
    (tmp_path / "language.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=why):
        load_language(tmp_path)


@pytest.mark.slow
def test_the_command_finds_the_letters_of_the_text(made_up: Language) -> None:
    assert made_up.letters == "".join(sorted(LETTERS))
    assert made_up.capitals == made_up.letters.upper()
    assert (made_up.name, made_up.judge, made_up.model) == ("ours", None, None)
    assert set(LETTERS + LETTERS.upper() + " .!,") <= set(made_up.characters)
    assert made_up.ngram("spaced").order == 5
    table, plain = made_up.ngram("spaced-short"), made_up.letters_only(made_up_sentences(3, seed=6))
    assert table.alphabet == made_up.letters + " "
    assert table.nats(plain) < table.nats(plain[::-1])
    fitted, english = made_up.letter_search, load_language().letter_search
    assert fitted.stuck_above_spaced != english.stuck_above_spaced
    assert 0.5 < fitted.stuck_above_spaced < fitted.not_language_above < np.log(20)
    assert made_up.calibrations.spaced != load_language().calibrations.spaced
    assert made_up.calibrations.spaced.fit.right < load_language().calibrations.spaced.fit.right


@pytest.mark.slow
def test_a_calibration_is_fitted_again(made_up: Language, tmp_path: Path) -> None:
    valid = str(made_up.folder.parent / "valid.txt")
    calibrations = made_up.calibrations
    wrong = replace(calibrations, spaced=replace(calibrations.spaced, slope=9.0, shift=-5.0))
    shutil.copytree(made_up.folder, tmp_path / "ours")
    replace(made_up, folder=tmp_path / "ours", calibrations=wrong).save()
    command = ["language", "calibrate", str(tmp_path / "ours"), "--valid", valid, "--texts", "2"]
    assert main([*command, "--only", "spaced"]) == 0
    fitted = load_language(tmp_path / "ours").calibrations
    assert fitted.spaced.slope != 9.0 and fitted.spaced.fit == calibrations.spaced.fit
    assert replace(fitted, spaced=calibrations.spaced) == calibrations
    assert main([*command, "--only", "judge_spaced"]) == 2  # it has no judge


def test_a_calibration_is_not_fitted_on_nothing(tmp_path: Path) -> None:
    """What is said again and again is not shown to the judge."""
    english = load_language()
    text = ValidationText(english, ["the same words again and " * 40], n=1)
    with pytest.raises(UserError, match="give more text"):
        fit_calibrations(english, None, text, lambda line: None, ["judge_spaced"])


def test_a_language_that_nobody_speaks_is_deciphered(made_up: Language) -> None:
    held_out = [made_up.letters_only(made_up_sentences(800, seed=3))]
    solver = Solver(language=made_up)
    for length, most in ((100, 0.03), (200, 0.01)):
        samples = draw_samples(held_out, "spaced", made_up, length, 6, seed=0)
        readings = solver.read([sample.cipher for sample in samples])
        wrong = [
            a != b
            for sample, reading in zip(samples, readings, strict=True)
            for a, b in zip(sample.plain, reading.plaintext, strict=True)
            if a != " "
        ]
        assert np.mean(wrong) <= most


@pytest.mark.slow
def test_capitals_signs_and_other_symbols_are_read_in_it_too(
    made_up: Language, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = made_up_sentences(12, seed=4)
    letters, moved = made_up.letters, made_up.letters[7:] + made_up.letters[:7]
    cipher = plain.translate(str.maketrans(letters + letters.upper(), moved + moved.upper()))
    assert main(["decipher", cipher, "--language", str(made_up.folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plaintext"] == plain
    latin = made_up.letters_only(plain).translate(str.maketrans(letters, "qwertyuiopasdfghjklz"))
    assert Solver(language=made_up).read([latin])[0].plaintext == made_up.letters_only(plain)


@pytest.mark.slow
def test_workers_read_in_the_same_language(made_up: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "MIN_TEXTS_FOR_WORKERS", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    plain = made_up_sentences(12, seed=4)
    assert [r.plaintext for r in Solver(language=made_up).read([plain, plain])] == [plain, plain]


@pytest.mark.slow
def test_an_alphabet_may_be_given_and_a_judge(tmp_path: Path) -> None:
    """In Latin letters, which the English judge knows, though it has not read the language."""
    latin = str.maketrans(LETTERS + LETTERS.upper(), "abcdefghijklmnopqrst" + "ABCDEFGHIJKLMNOPQRST")
    for name, n in (("text", 3000), ("valid", 300)):
        (tmp_path / f"{name}.txt").write_text(made_up_sentences(n, seed=n).translate(latin))
    english = load_language()
    said: list[str] = []
    built = build_language(
        "ours",
        [str(tmp_path / "text.txt")],
        [str(tmp_path / "valid.txt")],
        tmp_path / "ours",
        letters="tsrqponmlkjihgfedcba",
        judge=english.folder / "judge",
        n_texts=2,
        quick=True,
        log=said.append,
    )
    assert built.letters == "tsrqponmlkjihgfedcba"
    assert any("quick" in line for line in said)
    assert built.judging == english.judging
    for evidence in ("spaced", "unspaced", "judge_spaced", "judge_unspaced", "characters"):
        assert built.calibrations.of(evidence) != english.calibrations.of(evidence)  # type: ignore[arg-type]
    text = made_up_sentences(3, seed=0).translate(latin)
    assert Solver(language=built).key_posterior(text).evidence == "judge_spaced"
    assert Solver(language=built, use_judge=False).key_posterior(text).evidence == "spaced"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--text", "short.txt", "--valid", "valid.txt"], "letters of text and at least 20,000 are needed"),
        (["--text", "text.txt", "--valid", "short.txt"], "letters of validation text and at least 5,000"),
        (["--text", "text.txt", "--valid", "valid.txt", "--alphabet", "abc"], "are not in the alphabet abc"),
        (
            ["--text", "text.txt", "--valid", "valid.txt", "--out", "there"],
            "there exists: give another --out",
        ),
        (["--text", "text.txt", "--valid", "valid.txt", "--out", "there", "--overwrite"], "there exists"),
        (["--text", "text.txt", "--valid", "valid.txt", "--judge", "there"], "there holds no model"),
        (["--text", "text.txt", "--valid", "valid.txt", "--model", "./nowhere"], "no folder"),
        (["--text", "text.txt", "--valid", "valid.txt", "--texts", "0"], "whole numbers from 1 on"),
    ],
)
def test_what_cannot_be_built_in_one_sentence(
    arguments: list[str],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    for name, n in (("text", 900), ("valid", 300), ("short", 5)):
        Path(f"{name}.txt").write_text(made_up_sentences(n, seed=5), "utf-8")
    assert main(["language", "build", "ours", *arguments]) == 2
    assert why in capsys.readouterr().err
    assert not list(Path().glob("ours*"))


def test_show_tells_what_a_language_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["language", "show"]) == 0
    shown = capsys.readouterr().out
    assert "letters: abcdefghijklmnopqrstuvwxyz" in shown
    assert "judge: yes; model: bundled" in shown
