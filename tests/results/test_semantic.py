"""The section on words puts the paper's one example beside ours, whatever has been measured."""

from pathlib import Path

import pytest

from lexinvariant.report.draw import draw, save
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import ROLES, MeasuredModel
from lexinvariant.results.rows import Provenance, Rows, RowWriter, read_rows
from lexinvariant.results.section import Section, Table
from lexinvariant.results.semantic import ROWS, Accuracy, Answer, ExampleAnswered, section

WHERE = Provenance("semantic", seed=0, command="lexinvariant experiment semantic", draws=1)
OURS = Answer(
    passage=-1, category="drink", options=["restaurants", "music", "coffee", "father"], right=2, counts=[4, 1, 1, 1],
    logp=[-4.2, -3, -2, -5], tokens=[2, 1, 1, 1], written=" - coffee[new]",
)  # fmt: skip


def write_questions(folder: Path, *, baseline: bool, characters: bool = False) -> Section:
    vocab, text = "char128" if characters else "tokenizer-1234", "simple.jsonl"
    with RowWriter(folder / "semantic.jsonl", WHERE) as rows:
        for role in ROLES if baseline else ROLES[:1]:
            name, share = ("ours", 0.6) if role == "lexinvariant" else ("twin", 0.9)
            model = MeasuredModel(name, "", role, vocab, 32_000, characters)
            groups = dict.fromkeys(("animal", "drink", "food", "piece of clothing"), Share(share, 20))
            counts = dict.fromkeys(("once", "3 times or more"), Share(share, 20))
            rows.write(
                Accuracy(
                    model=model, text=text, by_mean_token=Share(share, 80), by_whole_option=Share(share - 0.1, 80),
                    free_right=Share(0.3, 80), free_named=0.5, most_frequent=0.26, by_category=groups,
                    by_times=counts, chosen_by_place=[0.2, 0.3, 0.25, 0.25], passages=900, skipped=41,
                )
            )  # fmt: skip
            rows.write(
                ExampleAnswered(model=model, text=text, example="paper", prompt_tokens=1523, answer=None)
            )
            rows.write(
                ExampleAnswered(model=model, text=text, example="ours", prompt_tokens=300, answer=OURS)
            )
    made = section(read_rows(folder, ROWS))
    assert made is not None
    return made


def table(made: Section, beginning: str) -> Table:
    return next(t for t in made.tables if t.caption.startswith(beginning))


def test_the_papers_example_stands_beside_ours(tmp_path: Path) -> None:
    made = write_questions(tmp_path, baseline=True)
    paper, too_long, ours, *_ = table(made, "The paper's one example").rows
    assert paper[2:] == ("coffee", "' - coffee. and i'")
    assert "does not fit the context (1,523 tokens)" in too_long[1]
    assert ours[1:] == (
        "restaurants -2.10, music -3.00, coffee -2.00, father -5.00",
        "coffee",
        "' - coffee[new]'",
    )
    accuracy = table(made, "Questions answered rightly").rows
    assert accuracy[0][2].startswith("60.0% (")
    assert accuracy[0][-1] == "25%"
    assert "41 of 900 (ours)" in made.paragraphs[1]


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
    left, right = draw(made.figures[0], "light").axes
    assert [tick.get_text() for tick in left.get_yticklabels()][:2] == ["animal (20)", "drink (20)"]
    assert [tick.get_text() for tick in right.get_yticklabels()] == ["once (20)", "3 times or more (20)"]
    assert left.yaxis_inverted()  # the first on top


def test_the_first_screen_has_no_number_of_the_papers_but_chance(tmp_path: Path) -> None:
    [finding] = write_questions(tmp_path, baseline=True).findings
    assert (finding.ours, finding.verdict) == (0.6, "no number in the paper")
    assert "chance: 25%" in finding.note


def test_without_rows_there_is_no_section() -> None:
    assert section(Rows([])) is None
