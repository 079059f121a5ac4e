"""The section on symbol tasks puts the paper's numbers beside ours, whatever has been measured."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.report.draw import draw, save
from lexinvariant.results import paper
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import ROLES, MeasuredModel
from lexinvariant.results.rows import Provenance, Rows, RowWriter, read_rows
from lexinvariant.results.section import Section, Table
from lexinvariant.results.synthetic import (
    ROWS,
    TASKS,
    Setting,
    Shown,
    SweepResult,
    TaskName,
    TaskResult,
    section,
)

WHERE = Provenance("synthetic", seed=0, command="lexinvariant experiment synthetic", draws=1)
SETTINGS: dict[TaskName, Setting] = {
    "LookUp": Setting(pairs=3),
    "Permutation": Setting(demonstrations=1, length=3, answer=2),
}


def write_tasks(
    folder: Path,
    *,
    baseline: bool = False,
    sweep: bool = False,
    characters: bool = True,
    records_share: float = 0.0,
    standard: float = 0.25,
    label: str = "mixed",
) -> Section:
    """A lexinvariant model with 80% and 50% right, and a standard one with `standard` times as much."""
    vocab = "char128" if characters else "tokenizer-1234"
    with RowWriter(folder / "synthetic.jsonl", WHERE) as rows:
        for role in ROLES if baseline else ROLES[:1]:
            name = "ours" if role == "lexinvariant" else "twin"
            size = 128 if characters else 32_000
            about: dict[str, Any] = {
                "model": MeasuredModel(name, "", role, vocab, size, characters, records_share),
                "label": label, "symbols": 92, "prompt_tokens": 20, "with_separators": 0.9, "from_prompt": 1.0,
                "copied": 0.1, "shown": [Shown("A->2\nA->", "2\n", "2\n")],
            }  # fmt: skip
            for drawn in ("even", "frequency"):
                for task, setting in SETTINGS.items():
                    share = {"LookUp": 0.8, "Permutation": 0.5}[task] * (1 if name == "ours" else standard)
                    rows.write(
                        TaskResult(
                            task=task, setting=setting, drawn=drawn, accuracy=Share(share, 1000), whole=share / 2,
                            by_position=[share] * (setting.answer or 1), **about,
                        )
                    )  # fmt: skip
            grid: list[tuple[TaskName, Setting]] = [("LookUp", Setting(pairs=n)) for n in (1, 2, 4, 8)]
            for length in (2, 3):
                grid += [("Permutation", Setting(None, n, length, length - 1)) for n in (1, 2, 4)]
            for i, (task, setting) in enumerate(grid if sweep else []):
                rows.write(
                    SweepResult(
                        task=task, setting=setting, drawn="even", accuracy=Share(0.9 - 0.05 * i, 1000), whole=0.3,
                        by_position=[0.9], **about,
                    )
                )  # fmt: skip
    made = section(read_rows(folder, ROWS))
    assert made is not None
    return made


def table(made: Section, beginning: str) -> Table:
    return next(t for t in made.tables if t.caption.startswith(beginning))


def test_the_papers_tables_stand_beside_ours_with_ratios(tmp_path: Path) -> None:
    made = write_tasks(tmp_path, baseline=True)
    even = {row[0]: row[1:] for row in table(made, "Accuracy with symbols drawn uniformly").rows}
    assert even["paper: Pile, char"] == ("48.50%", "91.80%", "1.9x", "27.66%", "59.35%", "2.1x")
    assert even["paper: Github, 32k"][1] == "80.20%"
    assert even["ours: mixed, 128 characters"][0].startswith("20.0% (17.6% to 22.6%)")
    assert even["ours: mixed, 128 characters"][2] == even["ours: mixed, 128 characters"][5] == "4.0x"
    assert "ours 4.0x" in even["mean ratio"][2]
    frequency = {row[0]: row[1:] for row in table(made, "Accuracy with symbols drawn by frequency").rows}
    assert frequency["paper: Wiki-40B, char"][:3] == ("75.55%", "63.45%", "0.8x")


def test_the_paper_says_four_times_on_average() -> None:
    """Its text: "an average of 4X improvement"; so the table has been copied well."""
    ratios = [
        line.accuracy(task, "lexinvariant") / line.accuracy(task, "standard")
        for line in paper.SYNTHETIC["even"]
        for task in TASKS
    ]
    assert 3.5 < np.mean(ratios) < 5.5
    assert paper.SYNTHETIC_RATIO == 4


def test_what_the_section_says_of_the_papers_lookup_numbers_is_so() -> None:
    def finer_than_a_twentieth(task: str) -> list[float]:
        numbers = [
            line.accuracy(task, role)
            for lines in paper.SYNTHETIC.values()
            for line in lines
            for role in ROLES
        ]
        return [number for number in numbers if round(100 * number) % 5]

    assert not finer_than_a_twentieth("LookUp")
    assert len(finer_than_a_twentieth("Permutation")) > 12


def test_without_a_baseline_and_at_no_right_answer_at_all_there_is_no_ratio(tmp_path: Path) -> None:
    made = write_tasks(tmp_path)
    ours = table(made, "Accuracy with symbols drawn uniformly").rows[0]
    assert ours[1] == "not measured"
    assert ours[3] == ""
    made = write_tasks(tmp_path, baseline=True, standard=0.0)
    *_, mean = rows = table(made, "Accuracy with symbols drawn uniformly").rows
    assert rows[0][3] == "no finite ratio"
    assert "ours" not in mean[3]
    assert len(made.findings) == 2  # and none about ratios


def test_runs_of_other_vocabularies_are_kept_and_equal_ones_replaced(tmp_path: Path) -> None:
    write_tasks(tmp_path, baseline=True, sweep=True)
    write_tasks(tmp_path, baseline=True, characters=False)
    made = write_tasks(tmp_path)
    names = [row[0] for row in table(made, "Accuracy with symbols drawn uniformly").rows]
    assert names[:3] == ["ours: mixed, 128 characters", "ours: mixed, 32,000 tokens", "paper: Pile, char"]
    assert [figure.name for figure in made.figures] == [
        "synthetic-accuracy",
        "synthetic-sweep-mixed-128-characters",
    ]


@pytest.mark.parametrize("baseline", [True, False])
def test_the_figures_can_be_drawn(tmp_path: Path, baseline: bool) -> None:
    made = write_tasks(tmp_path, baseline=baseline, sweep=True)
    for figure in made.figures:
        saved = save(figure, tmp_path / "figures")
        assert saved.svg_light != saved.svg_dark
        assert figure.alt and figure.caption
    lookup, *permutations = draw(made.figures[1], "dark").axes
    legend = lookup.get_legend()
    assert legend is not None
    # Measured lines first, then what guessing gives.
    told = [*ROLES[: 1 + baseline], "any value in the table"]
    assert [text.get_text() for text in legend.get_texts()] == told
    assert [axes.get_title(loc="left") for axes in permutations] == [
        f"Permutation, {role}" for role in ROLES[: 1 + baseline]
    ]


def test_the_papers_bars_are_hatched_and_stand_beside_ours(tmp_path: Path) -> None:
    [axes] = draw(write_tasks(tmp_path, baseline=True).figures[0], "light").axes
    heights = {
        (bars.get_label(), bool(bars.patches[0].get_hatch())): [bar.get_height() for bar in bars.patches]
        for bars in axes.containers
        if hasattr(bars, "patches")
    }
    assert heights == {
        ("lexinvariant", False): pytest.approx([80, 50, 80, 50]),
        ("lexinvariant, paper", True): [91.80, 59.35, 90.95, 60.47],
        ("standard", False): pytest.approx([20, 12.5, 20, 12.5]),
        ("standard, paper", True): [48.50, 27.66, 72.80, 40.63],
    }
    assert [tick.get_text() for tick in axes.get_xticklabels()][:2] == ["LookUp\neven", "Permutation\neven"]


def test_without_rows_there_is_no_section() -> None:
    assert section(Rows([])) is None


@pytest.mark.parametrize("share", [0.0, 0.037])
def test_it_is_said_when_records_have_taught_the_tasks(tmp_path: Path, share: float) -> None:
    made = write_tasks(tmp_path, records_share=share)
    told = [text for text in made.paragraphs if "records" in text]
    assert [("3.7% for mixed, 128 characters" in text) for text in told] == ([True] if share else [])
    assert all(("made-up tables" in finding.note) == bool(share) for finding in made.findings)
    assert all((finding.verdict == "not comparable") == bool(share) for finding in made.findings)


def test_the_first_screen_compares_with_the_papers_corpus_and_its_mean_ratio(tmp_path: Path) -> None:
    lookup, permutation, ratio = write_tasks(tmp_path, baseline=True).findings
    assert (lookup.paper, lookup.ours, lookup.verdict) == (pytest.approx(0.918), 0.8, "not reached")
    assert (permutation.paper, permutation.ours) == (pytest.approx(0.5935), 0.5)
    assert (ratio.paper, ratio.ours, ratio.verdict) == (4.0, pytest.approx(4.0), "reached")
    assert permutation.note == "beside Pile, char; demonstrations: 1 (not given in the paper)"
    wiki, *_ = write_tasks(tmp_path / "wiki", label="wiki alone", characters=False).findings
    assert (wiki.paper, wiki.verdict) == (pytest.approx(0.5935), "reached")


def test_a_mean_ratio_of_one_task_alone_is_not_compared_with_that_of_both(tmp_path: Path) -> None:
    *_, ratio = write_tasks(tmp_path, baseline=True, standard=0.015).findings  # 0.75% of Permutation
    assert (ratio.verdict, ratio.ours) == ("not comparable", pytest.approx(1 / 0.015))
    assert ratio.note.startswith("LookUp alone, where the paper's mean is 5.9")
