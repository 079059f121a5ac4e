"""The section on symbol tasks puts the paper's numbers beside ours, whatever has been measured."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lexinvariant.experiments.intervals import wilson
from lexinvariant.experiments.rows import Provenance, RowWriter, read_rows
from lexinvariant.report.figures import save
from lexinvariant.report.section import Section, Table

from lexinvariant.report import synthetic

pytestmark = pytest.mark.xdist_group("report")


WHERE = Provenance("synthetic", seed=0, command="lexinvariant experiment synthetic", draws=1)


def answers(share: float, n: int = 1000) -> dict[str, Any]:
    low, high = wilson(share, n)
    return {"accuracy": share, "low": low, "high": high, "examples": n}


def write_tasks(
    folder: Path, *, baseline: bool, sweep: bool, characters: bool = True, records_share: float = 0.0
) -> None:
    vocab = "char128" if characters else "tokenizer-1234"
    about = {"label": "mixed", "group": f"mixed, {vocab}", "vocab": vocab, "characters": characters}
    about |= {"records_share": records_share}
    settings = {"LookUp": {"pairs": 3}, "Permutation": {"demonstrations": 1, "length": 3, "answer": 2}}
    with RowWriter(folder / "synthetic.jsonl", WHERE) as rows:
        for lexinvariant in (True, False) if baseline else (True,):
            who = about | {"name": "ours" if lexinvariant else "twin", "lexinvariant": lexinvariant}
            for drawn in ("even", "frequency"):
                for task, setting in settings.items():
                    share = {"LookUp": 0.8, "Permutation": 0.5}[task] / (1 if lexinvariant else 4)
                    n_symbols = setting.get("answer", 1)
                    rows.write(
                        "task", task=task, drawn=drawn, setting=setting, symbols=92, whole=share / 2,
                        with_separators=0.9, from_prompt=1.0, copied=0.1, by_position=[share] * n_symbols,
                        shown=[{"prompt": "A->2\nA->", "answer": "2\n", "written": "2\n"}],
                        **answers(share), **who,
                    )  # fmt: skip
            grid = [("LookUp", {"pairs": n}) for n in (1, 2, 4, 8)]
            for length in (2, 3):
                grid += [
                    ("Permutation", {"demonstrations": n, "length": length, "answer": length - 1})
                    for n in (1, 2, 4)
                ]
            for i, (task, setting) in enumerate(grid if sweep else []):
                rows.write(
                    "sweep", task=task, setting=setting, drawn="even", **answers(0.9 - 0.05 * i), **who
                )


def table(section: Section, beginning: str) -> Table:
    return next(t for t in section.tables if t.caption.startswith(beginning))


def test_the_papers_tables_stand_beside_ours_with_ratios(tmp_path: Path) -> None:
    write_tasks(tmp_path, baseline=True, sweep=False)
    section = synthetic.section(read_rows(tmp_path))
    assert section is not None
    even = {row[0]: row[1:] for row in table(section, "Accuracy with symbols drawn evenly").rows}
    assert even["paper: Pile, char"] == ("48.50%", "91.80%", "1.9x", "27.66%", "59.35%", "2.1x")
    assert even["paper: Github, 32k"][1] == "80.20%"
    assert even["ours: mixed, char128"][0].startswith("20.0% (17.6% to 22.6%)")
    assert even["ours: mixed, char128"][2] == even["ours: mixed, char128"][5] == "4.0x"
    assert "ours 4.0x" in even["mean ratio"][2]
    frequency = {row[0]: row[1:] for row in table(section, "Accuracy with symbols drawn by frequency").rows}
    assert frequency["paper: Wiki-40B, char"][:3] == ("75.55%", "63.45%", "0.8x")


def test_the_paper_says_four_times_on_average() -> None:
    """Its text: "an average of 4X improvement"; so the table has been copied well."""
    ratios = [
        line.accuracy(task, True) / line.accuracy(task, False)
        for line in synthetic.PAPER["even"]
        for task in synthetic.TASKS
    ]
    assert 3.5 < np.mean(ratios) < 5.5


def test_what_the_section_says_of_the_papers_lookup_numbers_is_so() -> None:
    def finer_than_a_twentieth(task: str) -> list[float]:
        numbers = [
            line.accuracy(task, li)
            for lines in synthetic.PAPER.values()
            for line in lines
            for li in (False, True)
        ]
        return [number for number in numbers if round(100 * number) % 5]

    assert not finer_than_a_twentieth("LookUp")
    assert len(finer_than_a_twentieth("Permutation")) > 12


def test_without_a_baseline_and_at_no_right_answer_at_all_there_is_no_ratio(tmp_path: Path) -> None:
    write_tasks(tmp_path, baseline=False, sweep=False)
    section = synthetic.section(read_rows(tmp_path))
    assert section is not None
    ours = table(section, "Accuracy with symbols drawn evenly").rows[0]
    assert ours[1] == "not measured"
    assert ours[3] == ""
    assert synthetic._times(0.5, 0.0) == "no finite ratio"


def test_runs_of_other_vocabularies_are_kept_and_equal_ones_replaced(tmp_path: Path) -> None:
    write_tasks(tmp_path, baseline=True, sweep=True)
    write_tasks(tmp_path, baseline=True, sweep=False, characters=False)
    write_tasks(tmp_path, baseline=False, sweep=False)
    section = synthetic.section(read_rows(tmp_path))
    assert section is not None
    names = [row[0] for row in table(section, "Accuracy with symbols drawn evenly").rows]
    assert names[:3] == ["ours: mixed, char128", "ours: mixed, tokenizer-1234", "paper: Pile, char"]
    assert [drawing.name for drawing in section.drawings] == [
        "synthetic-accuracy",
        "synthetic-sweep-mixed--char128",
    ]


@pytest.mark.parametrize("baseline", [True, False])
def test_the_figures_can_be_drawn(tmp_path: Path, baseline: bool) -> None:
    write_tasks(tmp_path, baseline=baseline, sweep=True)
    section = synthetic.section(read_rows(tmp_path))
    assert section is not None
    for drawing in section.drawings:
        saved = save(drawing, tmp_path / "figures")
        assert saved.svg_light != saved.svg_dark
        assert drawing.alt and drawing.caption


def test_without_rows_there_is_no_section() -> None:
    assert synthetic.section([]) is None


@pytest.mark.parametrize("share", [0.0, 0.037])
def test_it_is_said_when_records_have_taught_the_tasks(tmp_path: Path, share: float) -> None:
    write_tasks(tmp_path, baseline=False, sweep=False, records_share=share)
    section = synthetic.section(read_rows(tmp_path))
    assert section is not None
    told = [text for text in section.paragraphs if "records" in text]
    assert [("3.7% for mixed, char128" in text) for text in told] == ([True] if share else [])
