"""Differences between models are those of the same texts, and every regulariser has its line: numbers by hand."""

from typing import Any

import pytest

from lexinvariant.report.draw import draw
from lexinvariant.results.figure import Line, Reference
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.regularised_model import (
    LossByPass,
    Perturbed,
    RegularisedModel,
    Regulariser,
)
from lexinvariant.results.regulariser import section
from lexinvariant.results.rows import Rows
from lexinvariant.results.text_sums import TextSums


def row(
    kind: str, p: float, seed: int = 0, *, added: float = 0.0, share: float = 0.0, **changes: Any
) -> RegularisedModel:
    """A model that needs `added` nats a token more than 1, 2 and 9 on three texts."""
    loss = TextSums([10 * (nats + added) for nats in (1.0, 2.0, 9.0)], [10.0] * 3)
    new_word = {"first": loss, "second": loss, "later": TextSums([0.0] * 3, [0.0] * 3)}
    fields: dict[str, Any] = {
        "label": "broad",
        "split": "test",
        "sequences": 3,
        "context": 40,
        "model": MeasuredModel(
            f"{kind}-{p}-{seed}", f"{kind}{p}{seed}{share}", "standard", "words", 400, False
        ),
        "regulariser": Regulariser(kind, p, share),
        "training_seed": seed,
        "loss": loss,
        "tasks": {"LookUp": Share(0.2 + p / 2, 100)},
        "by_rank": {"1-10": new_word, "10,001+": new_word},
        "robustness": {"made-up words": Perturbed(3, 0, 0.2, loss, loss, new_word)},
        "by_pass": None,
    }
    return RegularisedModel(**fields | changes)


ROWS = [
    row("mixed", 0.5, added=1.0),
    row("mixed", 0.2, added=0.25),
    row("mixed", 0.2, seed=1, added=0.75),
    row("mixed", 0.2, share=0.3, added=0.1),
    row("token-permuted by type", 0.2, added=-0.5),
    row("none", 0.0),
    row("none", 0.0, seed=1, added=0.25),
    row("lexinvariant", 1.0, added=3.0),
]


def test_ratios_weigh_texts_by_their_size() -> None:
    found = TextSums([1.0, 30.0], [1.0, 3.0]).estimate()
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((31 / 4, 1.0, 10.0))
    assert TextSums([0.0], [0.0]).estimate() is None


def test_a_constant_difference_is_sure_though_the_losses_are_not() -> None:
    """Texts differ by 8 nats, and one model always needs a quarter more than the other."""
    ours, theirs = ROWS[1].loss, ROWS[5].loss
    own, difference = ours.estimate(), ours.minus(theirs)
    assert own is not None and own.high - own.low > 5
    assert difference is not None
    assert (difference.value, difference.low, difference.high) == pytest.approx((0.25, 0.25, 0.25))


def test_every_regulariser_has_a_line_that_starts_at_the_model_without_one() -> None:
    found = section(Rows(ROWS))
    assert found is not None
    by_p, by_rank = found.figures
    loss, lookup = ({mark.name: mark for mark in by_p.panels[i].marks} for i in (0, 1))
    assert list(loss) == ["mixed", "mixed, p falls to 0", "token-permuted by type"]
    mixed, annealed = loss["mixed"], loss["mixed, p falls to 0"]
    assert isinstance(mixed, Line) and isinstance(annealed, Line)
    assert list(mixed.x) == [0.0, 0.2, 0.5]
    assert list(mixed.y) == pytest.approx([0.0, (0.25 + 0.5) / 2, 1.0]), "against the same seed, and averaged"
    assert mixed.low is not None and mixed.low[0] == pytest.approx(-0.25), "seeds lie that far apart"
    assert (list(annealed.x), annealed.line, mixed.line) == ([0.2], False, True)
    accuracy = lookup["mixed"]
    assert isinstance(accuracy, Line) and list(accuracy.y) == pytest.approx([0.2, 0.3, 0.45])
    assert isinstance(lookup["lexinvariant"], Reference) and lookup["lexinvariant"].at == pytest.approx(0.7)
    assert len(by_p.panels) == 12
    rank = {mark.name: mark for mark in by_rank.panels[0].marks if isinstance(mark, Line)}
    assert set(rank) == {"mixed, p = 0.2", "mixed, p = 0.2 falling to 0", "token-permuted by type, p = 0.2"}
    # Seed 0 against seed 0 (0.25) and seed 1 against seed 1 (0.5).
    assert list(rank["mixed, p = 0.2"].y) == pytest.approx([0.375, 0.375])
    for figure in found.figures:
        draw(figure, "dark")


def test_a_model_that_was_told_nothing_does_not_hide_the_others() -> None:
    found = section(Rows([*ROWS, row("mixed", 1.0, added=9.0)]))
    assert found is not None
    loss, lookup = found.figures[0].panels[:2]
    low, high = loss.y.limits
    assert low is not None and -1 < low < -0.5 and high is not None and 1.0 < high < 1.5
    assert lookup.y.limits == (None, None), "accuracies have room for all"


def test_tables_compare_models_of_the_same_seed() -> None:
    found = section(Rows(ROWS))
    assert found is not None
    overview, robustness, ranks = found.tables
    against = {(cells[1], cells[2]): cells[4] for cells in overview.rows}
    assert overview.header[4] == "Against none"
    assert against["mixed, p = 0.2", "0"] == "0.250 (0.250 to 0.250)"
    assert against["mixed, p = 0.2", "1"] == "0.500 (0.500 to 0.500)"
    assert against["mixed, p = 0.2 falling to 0", "0"].startswith("0.100 ")
    assert against["none", "0"] == "" and against["none", "1"].startswith("0.250 "), "how far seeds lie apart"
    assert len(overview.rows) == len(robustness.rows) == len(ranks.rows) == len(ROWS)
    assert ranks.header[3:5] == ("1-10, first", "1-10, second")
    assert ranks.rows[0][3] == "4.00"


def test_models_measured_on_other_texts_are_not_compared() -> None:
    found = section(
        Rows([row("none", 0.0), row("mixed", 0.2, sequences=4, loss=TextSums([1.0] * 4, [1.0] * 4))])
    )
    assert found is not None
    assert [cells[4] for cells in found.tables[0].rows] == ["", ""]


@pytest.mark.parametrize(
    ("steps_a_pass", "x", "label"), [(4.0, [1.0, 2.0], "passes"), (None, [4, 8], "step")]
)
def test_loss_by_pass_is_drawn_by_pass_where_passes_are_known(
    steps_a_pass: float | None, x: list[float], label: str
) -> None:
    run = row("none", 0.0, by_pass=LossByPass([4, 8], [3.0, 2.5], steps_a_pass))
    found = section(Rows([run]))
    assert found is not None
    panel = found.figures[-1].panels[0]
    [line] = panel.marks
    assert isinstance(line, Line) and list(line.x) == x and panel.x.label.startswith(label)


def test_one_model_without_robustness_is_shown_too() -> None:
    found = section(Rows([row("none", 0.0, robustness={}, by_rank={}, tasks={})]))
    assert found is not None and len(found.tables) == 2
    assert found.figures == [], "there is nothing to compare"
    assert section(Rows([])) is None
