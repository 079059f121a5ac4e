"""The section says what its rows say, with the paper's number beside ours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lexinvariant.experiments.rows import Provenance, Row, RowWriter
from lexinvariant.report.figures import save
from lexinvariant.report.section import Section, Table

from lexinvariant.report.cipher_key import section
from lexinvariant.report.page import SECTIONS

LETTERS = "abcdefgh"  # a short alphabet: letters along the axes take most of the time of drawing
N = len(LETTERS)
TRUTH = LETTERS[1:] + "a"  # a is written h, b is written a, ...


def fill(path: Path, *readers: str, model: str = "m", last: float = 0.99, **changed: Any) -> list[Row]:
    """One run: f (written e) is read as a comma in one text of four, a and h are lost."""
    where = Provenance("cipher-key", 0, "lexinvariant experiment cipher-key", model, "d", 1)
    setup = {
        "model": "small",
        "sequences": 4,
        "context": 512,
        "vocab_size": 128,
        "matrix_parameters": 25_000_000,
        "training_flop": 4.0e17,
        "window": 100,
        "fresh_keys": False,
        "symbols": LETTERS,
        "truth": TRUTH,
    }
    rows = []
    with RowWriter(path, where) as writer:
        rows.append(writer.write("setup", **setup | changed))
        if "probe" in readers:
            config = {"steps": 300, "batch_size": 8, "rate": 1e-3}
            rows.append(writer.write("probe", config=config, metrics={"tail_deciphered": 0.125}))
        for reader in readers:
            start = np.arange(0, 413, 103 if reader == "hindsight" else 1)
            precision = np.linspace(0.5, last, len(start))
            rows.append(
                writer.write(
                    "precision", reader=reader, start=start, precision=precision,
                    half_width=np.full(len(start), 0.004),
                    last=last, last_half_width=0.004, last_by_text=[1.0, 1.0, 0.4, None], last_all_symbols=0.91,
                    last_all_symbols_half_width=0.01, named_rightly=0.9712, symbols_seen=18.0,
                )
            )  # fmt: skip
            votes = 4 * np.roll(np.eye(N, dtype=int), 1, axis=1)
            votes[4, 5] = 3
            votes[7] = 0
            named: list[str | None] = [*TRUTH[:6], ",", None]
            confused = [None] * 4 + [","] + [None] * 3
            rows.append(
                writer.write(
                    "key", reader=reader, named=named, right=6, seen=7, votes=votes,
                    votes_for_others=[0] * 4 + [1, 0, 0, 0], confused_with=confused,
                )
            )  # fmt: skip
            for start in (0, 400):
                matrix = np.full((N, N), 1 / 128)
                matrix[7] = np.nan
                others = np.where(np.arange(N) < 7, 1 - N / 128, np.nan)
                rows.append(
                    writer.write(
                        "soft", reader=reader, start=start, window=50, temperature=1.0, matrix=matrix,
                        others=others, sequences_by_symbol=[4] * 7 + [0], on_truth=0.25 + start / 1000,
                    )
                )  # fmt: skip
    return rows


def made(rows: list[Row]) -> Section:
    found = section(rows)
    assert found is not None
    return found


def cells(table: Table) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def test_no_rows_no_section(tmp_path: Path) -> None:
    assert section([]) is None
    assert section(fill(tmp_path / "a.jsonl")) is None  # interrupted before it measured anything
    assert section in SECTIONS


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
    assert results["Precision of the last window of 100"] == ("99.80% ± 0.40", "99.6%")
    assert results["Letters of the whole key right"][0] == "6 of 8"
    first = next(w for w, p in enumerate(np.linspace(0.5, 0.998, 413)) if p >= 0.996)
    assert results["First start with the paper's 99.6%"][0] == f"{first}"
    assert results["Texts"] == ("4", "1,000")
    assert results["Texts whose last window is all right"][0] == "2 of 3"
    assert results["Texts whose last window is mostly wrong"][0] == "1 of 3"
    assert results["Parameters in the layers' matrices"] == ("25M", "151M")
    paper = 250_000 * 64 * 512 * (6 * 150_994_944 + 12 * 12 * 1024 * 512)
    assert results["Compute of the model's training (FLOP)"] == (
        f"4.0e+17 ({4e17 / paper:.1%} of the paper's)",
        f"{paper:.1e}",
    )
    assert results["Symbols of the last 100 named rightly, every occurrence"][0] == "97.12%"
    by_start = cells(tables[1])
    assert list(by_start) == ["0", "100", "200", "300", "400", "412 (last)"]
    assert by_start["0"] == ("50.00% ± 0.40",)


def test_a_model_that_never_gets_there_and_has_no_notes(tmp_path: Path) -> None:
    results = cells(made(fill(tmp_path / "a.jsonl", "head", training_flop=None)).tables[0])
    assert results["First start with the paper's 99.6%"][0] == "nowhere"
    assert results["Compute of the model's training (FLOP)"][0] == "unknown"


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
    assert cells(both)["Precision of the last window of 100"][:2] == ("99.00% ± 0.40", "90.00% ± 0.40")
    newer = fill(tmp_path / "c.jsonl", "head", model="another", last=0.7)
    alone = made(head + probe + newer).tables[0]
    assert cells(alone)["Precision of the last window of 100"] == ("70.00% ± 0.40", "99.6%")


def test_figures_are_drawn_in_both_themes(tmp_path: Path) -> None:
    drawings = made(fill(tmp_path / "a.jsonl", "head", "probe")).drawings
    assert [d.name for d in drawings] == ["cipher-key-precision", "cipher-key-matrices", "cipher-key-soft"]
    for drawing in drawings:
        saved = save(drawing, tmp_path)
        assert saved.svg_light.startswith(b"<?xml") and saved.svg_dark != saved.svg_light
        assert len(drawing.alt) > 60 and len(drawing.caption) > 60
    assert "6 of 8 right" in drawings[1].alt
    assert "50.00% at the start, 99.00% at the end" in drawings[0].alt


def test_fresh_keys_are_told_apart(tmp_path: Path) -> None:
    one = made(fill(tmp_path / "a.jsonl", "head"))
    many = made(fill(tmp_path / "b.jsonl", "head", fresh_keys=True, truth=LETTERS))
    assert "all with the same key" in one.paragraphs[0] and "a key of its own" in many.paragraphs[0]
    assert one.drawings[1].caption.startswith("The whole key")
    assert many.drawings[1].caption.startswith("What each letter is taken for")


def test_an_interrupted_run_hides_no_older_one(tmp_path: Path) -> None:
    rows = fill(tmp_path / "a.jsonl", "head") + fill(tmp_path / "b.jsonl", model="another")
    assert cells(made(rows).tables[0])["Precision of the last window of 100"][0] == "99.00% ± 0.40"


@pytest.mark.parametrize(("value", "shown"), [(None, "none"), (1.0, "100.00% ± 0.40")])
def test_texts_without_letters_and_readers_without_errors_draw_too(
    tmp_path: Path, value: float | None, shown: str
) -> None:
    rows = fill(tmp_path / "a.jsonl", "head")
    half = value and 0.004
    for row in rows:
        if row["kind"] == "precision":
            row |= {
                "precision": [value] * 413,
                "half_width": [half] * 413,
                "last": value,
                "last_half_width": half,
            }
    found = made(rows)
    save(found.drawings[0], tmp_path)
    assert cells(found.tables[0])["Precision of the last window of 100"][0] == shown
