"""The section on words puts the paper's one example beside ours, whatever has been measured."""

from pathlib import Path
from typing import Any

import pytest
from lexinvariant.experiments.intervals import wilson
from lexinvariant.experiments.rows import Provenance, RowWriter, read_rows
from lexinvariant.report.figures import save
from lexinvariant.report.section import Section, Table

from lexinvariant.report import semantic

pytestmark = pytest.mark.xdist_group("report")


WHERE = Provenance("semantic", seed=0, command="lexinvariant experiment semantic", draws=1)


def answers(share: float, n: int = 1000) -> dict[str, Any]:
    low, high = wilson(share, n)
    return {"accuracy": share, "low": low, "high": high, "examples": n}


def write_questions(folder: Path, *, baseline: bool, characters: bool = False) -> None:
    vocab = "char128" if characters else "tokenizer-1234"
    about = {"group": f"simple.jsonl, {vocab}", "characters": characters}
    with RowWriter(folder / "semantic.jsonl", WHERE) as rows:
        for lexinvariant in (True, False) if baseline else (True,):
            share = 0.6 if lexinvariant else 0.9
            who = about | {"name": "ours" if lexinvariant else "twin", "lexinvariant": lexinvariant}
            groups = {
                name: {"questions": 20, **{k: v for k, v in answers(share, 20).items() if k != "examples"}}
                for name in ("animal", "drink", "food", "piece of clothing")
            }
            counts = dict.fromkeys(("once", "3 times or more"), groups["drink"])
            rows.write(
                "accuracy", questions=80, accuracy={"mean": share, "sum": share - 0.1},
                interval={"mean": wilson(share, 80), "sum": wilson(share - 0.1, 80)}, free_right=0.3,
                free_right_interval=wilson(0.3, 80), free_named=0.5, most_frequent=0.26, by_category=groups,
                by_count=counts, chosen_by_place=[0.2, 0.3, 0.25, 0.25], passages=900, skipped=41, **who,
            )  # fmt: skip
            options = ["restaurants", "music", "coffee", "father"]
            rows.write("example", example="paper", fits=False, prompt_tokens=1523, **who)
            rows.write(
                "example", example="ours", fits=True, prompt_tokens=300, options=options, right=2, chosen=2,
                logp=[-4, -3, -2, -5], tokens=[2, 1, 1, 1], written=" - coffee[new]", **who,
            )  # fmt: skip


def table(section: Section, beginning: str) -> Table:
    return next(t for t in section.tables if t.caption.startswith(beginning))


def test_the_papers_example_stands_beside_ours(tmp_path: Path) -> None:
    write_questions(tmp_path, baseline=True)
    section = semantic.section(read_rows(tmp_path))
    assert section is not None
    paper, too_long, ours, *_ = table(section, "The paper's one example").rows
    assert paper[2:] == ("coffee", "' - coffee. and i'")
    assert "does not fit the context (1,523 tokens)" in too_long[1]
    assert ours[1:] == (
        "restaurants -2.00, music -3.00, coffee -2.00, father -5.00",
        "coffee",
        "' - coffee[new]'",
    )
    accuracy = table(section, "Questions answered rightly").rows
    assert accuracy[0][2].startswith("60.0% (")
    assert accuracy[0][-1] == "25%"
    assert "41 of 900 (ours)" in section.paragraphs[1]


def test_a_model_of_characters_is_called_what_it_is(tmp_path: Path) -> None:
    write_questions(tmp_path, baseline=False, characters=True)
    section = semantic.section(read_rows(tmp_path))
    assert section is not None
    assert "spells its answers out" in section.paragraphs[-1]


@pytest.mark.parametrize("baseline", [True, False])
def test_the_figures_can_be_drawn(tmp_path: Path, baseline: bool) -> None:
    write_questions(tmp_path, baseline=baseline)
    section = semantic.section(read_rows(tmp_path))
    assert section is not None
    for drawing in section.drawings:
        saved = save(drawing, tmp_path / "figures")
        assert saved.svg_light != saved.svg_dark
        assert drawing.alt and drawing.caption


def test_without_rows_there_is_no_section() -> None:
    assert semantic.section([]) is None
