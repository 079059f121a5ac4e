"""`lexinvariant decipher`: what it prints, and one sentence for what it cannot read."""

import io
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from lexinvariant.cli import decipher
from lexinvariant.cli.main import main
from lexinvariant.decipher.classical import polyalphabetic
from lexinvariant.decipher.decipherment import Decipherment
from lexinvariant.decipher.verdict import Verdict

# "When the old keeper ..." with every letter moved three places on.
CIPHER = (
    "Zkhq wkh rog nhhshu ri wkh oljkwkrxvh khdug wkh vwrup frplqj ryhu wkh zdwhu, kh folpehg wkh vwdluv zlwk klv odps "
    "dqg klv errn, dqg vdw grzq wr zdlw iru wkh vklsv wkdw zrxog qhhg klp ehiruh wkh pruqlqj; qrqh ri wkhp fdph."
)
PLAIN = (
    "When the old keeper of the lighthouse heard the storm coming over the water, he climbed the stairs with his lamp "
    "and his book, and sat down to wait for the ships that would need him before the morning; none of them came."
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


def test_a_process_reads_standard_input_and_tells_json() -> None:
    command = [sys.executable, "-m", "lexinvariant", "decipher", "-", "--json", "--top", "1"]
    run = subprocess.run(command, input=CIPHER + "\n", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["plaintext"] == PLAIN
    assert told["key"]["h"] == "e"
    assert told["confidence"]["h"] > 0.9
    assert len(told["alternatives"]) == 1


def test_the_plaintext_comes_first_then_the_key_and_how_sure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decipher", CIPHER, "--top", "0", "--crib", "h=e", "--crib", "W=T"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        PLAIN + "\n\nA Caesar cipher: English, every letter shifted by 3 (ROT-3).\nkey:  d=a "
    )
    assert "\nwhy:  The reading costs " in shown
    assert "h=e 100%" in shown
    assert f"of {sum(c.isalpha() for c in PLAIN)} symbols are expected to be right" in shown
    assert "\x1b" not in shown


def test_a_sign_of_several_characters_is_one_symbol(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decipher", "\u2764\ufe0f\U0001f1ea\U0001f1fa \u2764\ufe0f", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["key"]) == {"\u2764\ufe0f", "\U0001f1ea\U0001f1fa"}
    assert len(told["plaintext"]) == 4


def test_numbers_parted_by_spaces_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    letters = [c for c in PLAIN.lower() if c.isalpha()]
    (tmp_path / "numbers.txt").write_text(" ".join(str(ord(c) - 60) for c in letters) + "\n")
    assert main(["decipher", "--file", str(tmp_path / "numbers.txt"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["plaintext"], told["notation"]) == ("".join(letters), "numbers")
    assert told["spaced"].startswith("when the old keeper")


def test_what_is_no_reading_has_its_own_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=120)
    assert main(["decipher", "".join(drawn), "--language", "english"]) == 3
    assert capsys.readouterr().out.startswith("Not read. ")


def test_a_key_word_is_told_and_letters_keep_their_case(capsys: pytest.CaptureFixture[str]) -> None:
    turning = polyalphabetic(PLAIN.lower(), [11, 4, 12, 14, 13], "vigenere")
    turning = "".join(c.upper() if plain.isupper() else c for c, plain in zip(turning, PLAIN, strict=True))
    assert main(["decipher", turning]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{PLAIN}\n\nA Vigenere cipher: English, letters shifted by the key word lemon")
    assert "\nkey:" not in out
    assert main(["decipher", turning, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["key"], told["confidence"]) == ({}, {})
    assert len(told["letter_confidence"]) == sum(c.isalpha() for c in PLAIN)
    assert min(told["letter_confidence"]) > 0.9


def test_many_puzzles_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blank = f"{CIPHER}\n\n{PLAIN}\n  \n\n---\n"
    (tmp_path / "puzzles").write_text(blank)
    assert main(["decipher", "--file", str(tmp_path / "puzzles"), "--many"]) == 3
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:2] for row in rows] == [
        ["puzzle", "verdict"],
        ["1", "caesar"],
        ["2", "plain"],
        ["3", rows[3].split()[1]],
    ]
    lines = [json.dumps({"text": CIPHER, "name": "first"}), json.dumps({"text": PLAIN})]
    (tmp_path / "puzzles").write_text("\n".join(lines))
    assert main(["decipher", "--file", str(tmp_path / "puzzles"), "--many", "--json", "--crib", "q=n"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["name"], one["verdict"]["kind"]) for one in told] == [("first", "caesar"), ("2", "plain")]
    assert [one["note"] for one in told] == [None, "The text has no 'q': a crib for that changes nothing."]
    (tmp_path / "puzzles").write_text('{"text": 3}')
    assert main(["decipher", "--file", str(tmp_path / "puzzles"), "--many"]) == 2
    assert "Line 1 is not a puzzle" in capsys.readouterr().err


def test_brackets_and_controls_of_puzzles_are_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps({"text": f"[/zkhq] :grj: {CIPHER}", "name": "[/x]"}),
        json.dumps({"text": CIPHER, "name": "[red]\x1b[2J"}),
    ]
    (tmp_path / "puzzles").write_text("\n".join(lines))
    assert main(["decipher", "--file", str(tmp_path / "puzzles"), "--many"]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[/x] ")
    assert "[/when] :dog: When" in first
    assert second.startswith("[red]\u241b[2J ")


def test_a_puzzle_without_a_bottom_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "puzzles").write_text('{"text": "abc", "meta": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert main(["decipher", "--file", str(tmp_path / "puzzles"), "--many"]) == 2
    assert "Line 1 is not a puzzle" in capsys.readouterr().err


def read_as(
    plaintext: str, key: dict[str, str], confidence: dict[str, float], cells: str | tuple[str, ...]
) -> Decipherment:
    verdict = Verdict("read", "substitution", "It is one.", 1.0, {}, "english", {}, ["Because."])
    symbol_of = {cell: cell.lower() for cell in cells if cell.lower() in key}
    return Decipherment(
        verdict, 0.617, plaintext, None, key, confidence, [], "characters", cells, symbol_of, 0.5
    )


def test_a_terminal_shows_confidence_in_colours() -> None:
    key, confidence = {"a": "t", "b": "e", "c": "a"}, {"a": 0.95, "b": 0.7, "c": 0.2}
    reading = read_as("Tea x", key, confidence, "Abc x")
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    decipher.show(reading, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[32mT\x1b[0m" in shown
    assert "\x1b[33me\x1b[0m" in shown
    assert "\x1b[1;4;31ma\x1b[0m x" in shown
    assert "61.7% of 3 symbols" in shown


def test_a_terminal_shows_signs_of_several_characters_as_they_are() -> None:
    heart, family = "\u2764\ufe0f", "\U0001f469\u200d\U0001f467"
    cells = ("A", heart, "b", " ", family)
    reading = read_as(f"T{heart}e {family}", {"a": "t", "b": "e"}, {"a": 0.95, "b": 0.2}, cells)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    decipher.show(reading, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"\x1b[32mT\x1b[0m{heart}\x1b[1;4;31me\x1b[0m {family}\n" in shown
    assert "of 2 symbols" in shown


def test_a_text_cannot_steer_the_terminal() -> None:
    cells = ("A", "\x1b", "b", "\x9b")
    reading = read_as("T\x1be\x9b", {"a": "t", "b": "e"}, {"a": 0.95, "b": 0.2}, cells)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    decipher.show(reading, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[32mT\x1b[0m\u241b\x1b[1;4;31me\x1b[0m\ufffd\n" in shown


def test_a_terminal_of_no_width_shows_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert main(["decipher", CIPHER]) == 0
    assert capsys.readouterr().out.startswith(PLAIN)


def test_a_process_without_standard_input_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["decipher", "-"]) == 2
    assert "- is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([""], "give a TEXT"),
        ([], "give a TEXT"),
        (["abc", "--file", "many.txt"], "A TEXT and --file many.txt are both given"),
        (["abc", "--crib", "a"], "CIPHER=plain"),
        (["abc", "--crib", "a=x", "--crib", "b=x"], "cannot both stand for x"),
        (["abc", "--crib", "a=x", "--crib", "a=y"], "cannot be both x and y"),
        (["abc", "--top", "-1"], "not a number of readings"),
        (["abc", "def", "ghi"], "in quotes"),
        (["abc def", "--crib-word", "lighthouse"], "fits nowhere"),
        (["abc def", "--crib-word", "!"], "no letters"),
        (["123 456", "--alphabet", "letters", "--crib", "1=?"], "one letter"),
        (["abc", "--model", "./nowhere"], "no folder"),
        (["abc", "--language", "./nowhere"], "no language 'nowhere'"),
    ],
)
def test_bad_arguments_in_one_sentence(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["decipher", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("data", "why"), [(b"\xff\xfeabc", "not UTF-8"), (b"ab\0cd", "binary"), (b"", "empty")]
)
def test_bad_files_in_one_sentence(
    data: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(data)
    assert main(["decipher", "--file", str(tmp_path / "file")]) == 2
    assert why in capsys.readouterr().err


def test_a_crib_may_be_about_the_equals_sign() -> None:
    assert decipher._cribs(["==e", "a=="]) == {"=": "e", "a": "="}
    assert decipher._cribs(["12=e,,=t,7=x"]) == {"12": "e", ",": "t", "7": "x"}
    assert decipher._cribs([" =e", "e= ,b=c"]) == {" ": "e", "e": " ", "b": "c"}


def test_spaces_between_cribs_say_nothing() -> None:
    assert decipher._cribs(["y = e, v =t ,x= a"]) == {"y": "e", "v": "t", "x": "a"}
    assert decipher._cribs(["= = e, , = t,  =s"]) == {"=": "e", ",": "t", " ": "s"}


def test_what_is_known_and_did_not_help_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decipher", "khoor zruog", "--crib", "m=h,K=h,q=x"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("hello world")
    assert shown.err == "note: The text has no 'm' or 'q': a crib for that changes nothing.\n"
    assert main(["decipher", "Wkh nhbv duh xqghu wkh vwrqh.", "--crib-word", "stop", "--json"]) == 0
    assert "whole words" in json.loads(capsys.readouterr().out)["note"]
    assert main(["decipher", "Wkh nhbv duh xqghu wkh vwrqh.", "--crib-word", "stone", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["note"] is None
