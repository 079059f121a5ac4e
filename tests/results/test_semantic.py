"""The section on words puts the paper's one example beside ours, whatever has been measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.report.draw import draw, save
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel, Role
from lexinvariant.results.rows import Provenance, Rows, RowWriter, read_rows
from lexinvariant.results.section import Section, Table
from lexinvariant.results.semantic import (
    ROWS,
    Accuracy,
    Answer,
    ExampleAnswered,
    Kind,
    Reading,
    Sort,
    section,
)

WHERE = Provenance("semantic", seed=0, command="lexinvariant experiment semantic", draws=1)
OURS = Answer(
    passage=-1, asked="paper's wording", category="drink", options=["restaurants", "music", "coffee", "father"],
    right=2, counts=[4, 1, 1, 1],
    logp=[-4.2, -3, -2, -5], tokens=[2, 1, 1, 1],
    head=[-9, -2.5, -3, -8], written=" - coffee[new]",
)  # fmt: skip


def write_questions(
    folder: Path, *, baseline: bool, characters: bool = False, papers: Answer | None = None
) -> Section:
    vocab = "char128" if characters else "tokenizer-1234"
    readings: list[tuple[Role, Reading]] = [("lexinvariant", "plain")]
    readings += [("standard", "plain"), ("standard", "enciphered")] if baseline else []
    asked: list[tuple[Sort, Kind]] = [("stories", "paper's wording")]
    asked += [] if characters else [("templates", "class"), ("templates", "frame")]
    with RowWriter(folder / "semantic.jsonl", WHERE) as rows:
        for role, reading in readings:
            ours = role == "lexinvariant"
            name, share = ("ours", 0.6) if ours else ("twin", 0.9 if reading == "plain" else 0.25)
            model = MeasuredModel(name, "", role, vocab, 32_000, characters)
            for sort, kind in asked:
                groups = dict.fromkeys(("animal", "drink", "food", "piece of clothing"), Share(share, 20))
                counts = dict.fromkeys(("once", "3 times or more"), Share(share, 20))
                n = 80 if kind != "frame" else 240
                value = share if kind != "frame" else share / 2
                plain = reading == "plain"
                rows.write(
                    Accuracy(
                        model=model, text=f"some {sort}", shots=0, reading=reading, sort=sort, asked=kind,
                        by_mean_token=Share(value, n), by_whole_option=Share(value - 0.1, n),
                        by_calibrated=Share(0.7, n) if ours else None,
                        by_head=Share(0.31, n) if ours and not characters else None,
                        free_right=Share(0.3, n) if plain else None, free_named=0.5 if plain else None,
                        most_frequent=0.26, by_category=groups, by_times=counts,
                        chosen_by_place=[0.2, 0.3, 0.25, 0.25], passages=900, skipped=41,
                    )
                )  # fmt: skip
            for example, tokens, answer in (("paper", 1523, papers), ("ours", 300, OURS)):
                about: Any = {
                    "model": model,
                    "text": example,
                    "shots": 0,
                    "reading": reading,
                    "example": example,
                }
                rows.write(ExampleAnswered(**about, prompt_tokens=tokens, answer=answer))
    made = section(read_rows(folder, ROWS))
    assert made is not None
    return made


def table(made: Section, beginning: str) -> Table:
    return next(t for t in made.tables if t.caption.startswith(beginning))


def test_the_papers_example_stands_beside_ours(tmp_path: Path) -> None:
    made = write_questions(tmp_path, baseline=True)
    paper, *rows = table(made, "The paper's one example").rows
    assert (paper[2], paper[-1]) == ("coffee", "' - coffee. and i'")
    measured = dict(zip((row[0] for row in rows), rows, strict=True))
    too_long = measured["ours (lexinvariant), the paper's passage"]
    assert "does not fit the context (1,523 tokens)" in too_long[1]
    ours = measured["ours (lexinvariant), a passage of our own, same options"]
    assert ours[1:] == (
        "restaurants -2.10, music -3.00, coffee -2.00, father -5.00",
        "coffee",
        "music",
        "' - coffee[new]'",
    )


def test_accuracy_is_told_by_sort_kind_measure_and_category(tmp_path: Path) -> None:
    made = write_questions(tmp_path, baseline=True)
    accuracy = table(made, "Questions answered correctly").rows
    questions = ("stories, paper's wording", "templates, class", "templates, frame")
    assert [row[1] for row in accuracy] == [question for question in questions for _ in range(3)]
    assert [cell[:5] for cell in accuracy[0][3:8]] == ["60.0%", "50.0%", "70.0%", "31.0%", "30.0%"]
    assert accuracy[0][-1] == "25%"
    enciphered = accuracy[-1]
    assert enciphered[0].startswith("twin (standard), enciphered text, ")
    assert enciphered[5:9] == ("", "", "", "")  # neither a head nor free words
    categories = table(made, "By category")
    assert len(categories.header) == 1 + 3 * 2  # models and readings, by sort
    assert categories.rows[0][0] == "animal"
    assert "41 of 900 (ours)" in made.paragraphs[1]
    assert "its use" in " ".join(made.paragraphs)


def test_solved_questions_are_another_figure(tmp_path: Path) -> None:
    write_questions(tmp_path, baseline=False)
    rows = list(read_rows(tmp_path, ROWS))
    shown = [replace(row, shots=3) if isinstance(row, Accuracy) else row for row in rows]
    made = section(Rows([*rows, *shown]))
    assert made is not None
    assert len(made.figures) == 2
    assert "3 solved questions first" in made.figures[1].caption
    assert any("With 3 solved questions" in paragraph for paragraph in made.paragraphs)


def test_a_model_of_characters_is_called_what_it_is(tmp_path: Path) -> None:
    made = write_questions(tmp_path, baseline=False, characters=True)
    assert "spells its answers out" in made.paragraphs[-1]


@pytest.mark.parametrize("baseline", [True, False])
def test_the_figures_can_be_drawn(tmp_path: Path, baseline: bool) -> None:
    made = write_questions(tmp_path, baseline=baseline)
    for figure in made.figures:
        saved = save(figure, tmp_path / "figures")
        assert saved.svg_light != saved.svg_dark
        assert figure.alt and figure.caption
    kinds, stories, templates = draw(made.figures[0], "light").axes
    assert [tick.get_text() for tick in kinds.get_yticklabels()] == [
        "stories, paper's wording (80)",
        "templates, class (80)",
        "templates, frame (240)",
    ]
    assert [tick.get_text() for tick in stories.get_yticklabels()][:2] == ["animal (20)", "drink (20)"]
    assert [tick.get_text() for tick in templates.get_yticklabels()][:2] == ["animal (40)", "drink (40)"]
    assert kinds.yaxis_inverted()  # the first on top


def test_the_first_screen_has_the_papers_question_and_how_many_like_it_are_right(tmp_path: Path) -> None:
    assert write_questions(tmp_path / "too-long", baseline=True).findings == []
    [right] = write_questions(tmp_path / "right", baseline=True, papers=OURS).findings
    assert (right.paper, right.ours, right.verdict) == (1, 1, "reached")
    assert right.note == "it answers coffee; 60% of 80 questions like it are right, chance 25%"
    [wrong] = write_questions(tmp_path / "wrong", baseline=False, papers=replace(OURS, right=1)).findings
    assert (wrong.ours, wrong.verdict) == (0, "not reached")
