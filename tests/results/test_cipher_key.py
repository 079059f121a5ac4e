"""The section says what its rows say, with the paper's number beside ours."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.experiments.registry import find_experiment
from lexinvariant.report.draw import draw, save
from lexinvariant.results.cipher_key import (
    ROWS,
    KeyProbabilities,
    Precision,
    ProbeSettings,
    ProbeTraining,
    Setup,
    WholeKey,
    section,
)
from lexinvariant.results.intervals import MeanShare
from lexinvariant.results.rows import Provenance, Row, Rows, RowWriter
from lexinvariant.results.section import Section, Table

LETTERS = "abcdefgh"  # a short alphabet: letters along the axes take most of the time of drawing
N = len(LETTERS)
TRUTH = LETTERS[1:] + "a"  # a is written h, b is written a, ...


def fill(path: Path, *namers: str, model: str = "m", last: float = 0.99, **changed: Any) -> list[Row]:
    """One run: f (written e) is read as a comma in one text of four, a and h are lost."""
    where = Provenance("cipher-key", 0, "lexinvariant experiment cipher-key", model, "d", 1)
    setup: dict[str, Any] = {
        "model": "small", "sequences": 4, "pieces": [0, 1, 2, 3], "context": 512, "vocab_size": 128,
        "matrix_parameters": 25_000_000, "training_flop": 4.0e17, "split": "test", "dtype": "float32", "window": 100,
        "fresh_keys": False, "symbols": LETTERS, "truth": TRUTH, "example": "",
    }  # fmt: skip
    rows: list[Row] = [Setup(**setup | changed)]
    if "probe" in namers:
        config = ProbeSettings(steps=300, batch_size=8, hidden=0, rate=1e-3, seed=0, dtype="float32")
        rows.append(ProbeTraining(config=config, trained_on="d", metrics={"tail_deciphered": 0.125}))
    for namer in namers:
        start = np.arange(0, 413, 103 if namer == "hindsight" else 1).tolist()
        shares = [MeanShare(p, p - 0.004, p + 0.004) for p in np.linspace(0.5, last, len(start)).tolist()]
        rows.append(
            Precision(
                namer=namer, start=start, precision=shares, last_by_text=[1.0, 1.0, 0.4, None],
                last_all_symbols=MeanShare(0.91, 0.9, 0.92), named_rightly=0.9712, symbols_seen=18.0,
            )
        )  # fmt: skip
        votes = 4 * np.roll(np.eye(N, dtype=int), 1, axis=1)
        votes[4, 5] = 3
        votes[7] = 0
        rows.append(
            WholeKey(
                namer=namer, named=[*TRUTH[:6], ",", None], right=6, votes=votes.tolist(),
                votes_for_others=[0] * 4 + [1, 0, 0, 0], confused_with=[None] * 4 + [","] + [None] * 3,
            )
        )  # fmt: skip
        for begin in (0, 400):
            matrix: list[list[float | None]] = [[None if row == 7 else 1 / 128] * N for row in range(N)]
            rows.append(
                KeyProbabilities(
                    namer=namer, start=begin, window=50, temperature=1.0, matrix=matrix,
                    others=[1 - N / 128] * 7 + [None], sequences_by_symbol=[4] * 7 + [0], on_truth=0.25 + begin / 1000,
                )
            )  # fmt: skip
    with RowWriter(path, where) as writer:
        return [writer.write(row) for row in rows]


def made(rows: list[Row]) -> Section:
    found = section(Rows(rows))
    assert found is not None
    return found


def ranged(share: float) -> str:
    return f"{share:.2%} ({share - 0.004:.2%} to {share + 0.004:.2%})"


def cells(table: Table) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def test_no_rows_no_section(tmp_path: Path) -> None:
    assert section(Rows([])) is None
    assert section(Rows(fill(tmp_path / "a.jsonl"))) is None  # interrupted before it measured anything
    assert find_experiment("cipher-key").row_kinds == ROWS


def test_hindsight_stands_beside_the_head_where_both_have_a_window(tmp_path: Path) -> None:
    found = made(fill(tmp_path / "a.jsonl", "head", "hindsight", last=0.998))
    assert found.tables[0].header[1:3] == ("Ours, joint head", "Ours, joint head, in hindsight")
    assert list(cells(found.tables[1])) == ["0", "412 (last)"]
    assert any("In hindsight the same head" in text for text in found.paragraphs)
    alone = made(fill(tmp_path / "b.jsonl", "head"))
    assert not any("hindsight" in text for text in alone.paragraphs)


def test_ours_stands_beside_the_papers(tmp_path: Path) -> None:
    tables = made(fill(tmp_path / "a.jsonl", "head", last=0.998)).tables
    results = cells(tables[0])
    assert tables[0].header == ("Measure", "Ours, joint head", "Paper, probe")
    assert results["Precision of the last window of 100"] == ("99.80% (99.40% to 100.20%)", "99.6%")
    # The eighth letter occurs in no last window: nobody could tell it.
    assert results["Letters of the whole key right, of those in a last window"][0] == "6 of 7"
    first = next(w for w, p in enumerate(np.linspace(0.5, 0.998, 413)) if p >= 0.996)
    assert results["First start with the paper's 99.6%"][0] == f"{first}"
    assert results["Texts"] == ("4", "1,000")
    assert results["Texts with the whole last window right"][0] == "2 of 3"
    assert results["Texts with most of the last window wrong"][0] == "1 of 3"
    assert results["Parameters in the layers' matrices"] == ("25M", "151M")
    paper = 250_000 * 64 * 512 * (6 * 150_994_944 + 12 * 12 * 1024 * 512)
    assert results["Compute of the model's training (FLOP)"] == (
        f"4.0e+17 ({100 * 4e17 / paper:.1f}% of the paper's)",
        f"{paper:.1e}",
    )
    assert results["Symbols of the last 100 named correctly, every occurrence"][0] == "97.12%"
    by_start = cells(tables[1])
    assert list(by_start) == ["0", "100", "200", "300", "400", "412 (last)"]
    assert by_start["0"] == ("50.00% (49.60% to 50.40%)",)


def test_a_small_model_is_not_rounded_to_nothing(tmp_path: Path) -> None:
    small = fill(tmp_path / "a.jsonl", "head", matrix_parameters=580_000, training_flop=3.2e14)
    results = cells(made(small).tables[0])
    assert results["Parameters in the layers' matrices"][0] == "0.58M"
    assert results["Compute of the model's training (FLOP)"][0] == "3.2e+14 (0.0040% of the paper's)"


def test_a_model_that_never_gets_there_and_has_no_notes(tmp_path: Path) -> None:
    results = cells(made(fill(tmp_path / "a.jsonl", "head", training_flop=None)).tables[0])
    assert results["First start with the paper's 99.6%"][0] == "nowhere"
    assert results["Compute of the model's training (FLOP)"][0] == "unknown"


def test_kinds_of_text_stand_apart(tmp_path: Path) -> None:
    tables = made(fill(tmp_path / "a.jsonl", "head", kinds=["code", "book", "book", "code"])).tables
    by_kind = cells(tables[1])
    assert tables[1].header == (
        "Kind of text", "Texts with a letter", "Precision, joint head", "All right, joint head",
    )  # fmt: skip
    half = 1.959963984540054 * 0.3 * 2**0.5 / 2**0.5  # of 1 and 0.4
    assert by_kind["book"] == ("2", f"70.00% ({0.7 - half:.2%} to 100.00%)", "1")
    assert by_kind["code"] == ("1", "100.00%", "1")
    of_one_kind = made(fill(tmp_path / "b.jsonl", "head", kinds=["book"] * 4)).tables
    assert [table.header[0] for table in of_one_kind][:2] == ["Measure", "Start of the window"]


def test_letters_that_go_wrong_are_named(tmp_path: Path) -> None:
    letters = made(fill(tmp_path / "a.jsonl", "head")).tables[2]
    assert letters.rows == [("f (written e)", "joint head", "4", "75.00%", ",")]


def test_a_probe_says_how_it_was_trained(tmp_path: Path) -> None:
    found = made(fill(tmp_path / "a.jsonl", "head", "probe"))
    assert found.tables[0].header == ("Measure", "Ours, joint head", "Ours, frozen probe", "Paper, probe")
    assert "300 steps of 8 sequences" in found.paragraphs[-1] and "12.5%" in found.paragraphs[-1]
    soft = made(fill(tmp_path / "b.jsonl", "head", "probe")).tables[3]
    assert [row[0] for row in soft.rows] == ["0 to 49", "400 to 449"] * 2
    assert [row[-1] for row in soft.rows] == ["0.250", "0.650"] * 2


def test_runs_alike_are_shown_together_and_others_replaced(tmp_path: Path) -> None:
    head = fill(tmp_path / "a.jsonl", "head")
    probe = fill(tmp_path / "b.jsonl", "probe", last=0.9)
    both = made(head + probe).tables[0]
    assert both.header[1:3] == ("Ours, joint head", "Ours, frozen probe")
    assert cells(both)["Precision of the last window of 100"][:2] == (ranged(0.99), ranged(0.9))
    newer = fill(tmp_path / "c.jsonl", "head", model="another", last=0.7)
    alone = made(head + probe + newer).tables[0]
    assert cells(alone)["Precision of the last window of 100"] == (ranged(0.7), "99.6%")


def test_figures_are_drawn_in_both_themes(tmp_path: Path) -> None:
    figures = made(fill(tmp_path / "a.jsonl", "head", "probe")).figures
    assert [figure.name for figure in figures] == [
        "cipher-key-precision",
        "cipher-key-matrices",
        "cipher-key-soft",
    ]
    for figure in figures:
        saved = save(figure, tmp_path)
        assert saved.svg_light.startswith(b"<?xml") and saved.svg_dark != saved.svg_light
        assert len(figure.alt) > 60 and len(figure.caption) > 60
    assert "6 of 7 letters that occur there right" in figures[1].caption
    assert "joint head from 50 to 99" in figures[0].alt


def test_fresh_keys_are_told_apart(tmp_path: Path) -> None:
    one = made(fill(tmp_path / "a.jsonl", "head"))
    many = made(fill(tmp_path / "b.jsonl", "head", fresh_keys=True, truth=LETTERS))
    assert "all with the same key" in one.paragraphs[0] and "a key of its own" in many.paragraphs[0]
    assert one.figures[1].caption.startswith("The whole key")
    assert many.figures[1].caption.startswith("What each letter is taken for")


def test_an_interrupted_run_hides_no_older_one(tmp_path: Path) -> None:
    rows = fill(tmp_path / "a.jsonl", "head") + fill(tmp_path / "b.jsonl", model="another")
    assert cells(made(rows).tables[0])["Precision of the last window of 100"][0] == ranged(0.99)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (MeanShare(None, None, None), "none"),
        (MeanShare(1.0, 0.996, 1.0), "100.00% (99.60% to 100.00%)"),
        (MeanShare(0.5, None, None), "50.00%"),  # of a single text
    ],
)
def test_texts_without_letters_and_namers_without_errors_draw_too(
    tmp_path: Path, share: MeanShare, shown: str
) -> None:
    rows = fill(tmp_path / "a.jsonl", "head")
    rows = [replace(row, precision=[share] * 413) if isinstance(row, Precision) else row for row in rows]
    found = made(rows)
    save(found.figures[0], tmp_path)
    assert cells(found.tables[0])["Precision of the last window of 100"][0] == shown
    assert len(found.findings) == (0 if share.value is None else 1)


def test_a_namer_with_fewer_windows_leaves_its_places_empty(tmp_path: Path) -> None:
    rows = fill(tmp_path / "a.jsonl", "head") + fill(tmp_path / "b.jsonl", "probe")[:-1]
    heat_maps = draw(made(rows).figures[2], "light").axes[:-1]  # the last is the colour bar
    assert [axes.get_title(loc="left") for axes in heat_maps] == [
        "symbols 0 to 49",
        "symbols 400 to 449",
        "symbols 0 to 49",
    ]
    assert heat_maps[2].get_ylabel() == "frozen probe\ncipher letter"


def test_the_first_screen_compares_with_the_paper(tmp_path: Path) -> None:
    head, probe = made(fill(tmp_path / "a.jsonl", "head", "probe", last=0.994)).findings
    assert (head.paper, head.ours, head.verdict) == (0.996, 0.994, "within noise")
    assert (len(head.curve), "frozen probe" in probe.measure) == (413, True)
    assert made(fill(tmp_path / "b.jsonl", "head", last=0.9)).findings[0].verdict == "not reached"
    [hindsight] = made(fill(tmp_path / "c.jsonl", "hindsight", last=0.999)).findings
    assert hindsight.verdict == "not comparable" and "knows what follows" in hindsight.note
