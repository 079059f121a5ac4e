"""The section on convergence: the newest run of each corpus, and the paper's numbers beside ours."""

from pathlib import Path
from typing import Any

import numpy as np

from lexinvariant.report.draw import draw, save
from lexinvariant.results.convergence import ROWS, Curve, Gap, PartLosses, SeenAndNew, section
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.perplexity import Averaging, Band, PartBand
from lexinvariant.results.rows import Provenance, Rows, RowWriter, read_rows
from lexinvariant.results.section import Section

WHERE = Provenance("convergence", seed=0, command="lexinvariant experiment convergence", draws=1)
N = 50


def averages(values: np.ndarray) -> dict[Averaging, Band]:
    def band(factor: float) -> Band:
        return Band(*((factor * share * values).tolist() for share in (1.0, 0.9, 1.1)))

    return {"geometric": band(1), "arithmetic": band(2)}


def part(nats: float) -> PartBand:
    return PartBand([None] * 9 + [nats] * (N - 9), [None] * 9 + [nats - 0.1] * (N - 9), [nats + 0.1] * N)


def write(
    path: Path,
    label: str,
    end: float,
    *,
    baseline: bool = True,
    vocab_size: int = 128,
    context: int = 79,
    new_share: float = 0.001,
    counting: float | None = None,
) -> Rows:
    """One run of the experiment, whose lexinvariant curve ends at `end` and whose standard one at half of it."""
    setting: dict[str, Any] = {
        "label": label, "split": "test", "sequences": 7, "window": 30, "context": context,
    }  # fmt: skip
    ours = np.geomspace(10 * end, end, N)
    with RowWriter(path / "convergence.jsonl", WHERE) as writer:
        roles: dict[Any, np.ndarray] = {"lexinvariant": ours, "standard": np.full(N, end / 2)}
        for role, values in list(roles.items())[: 1 + baseline]:
            writer.write(
                Curve(
                    **setting, model=MeasuredModel(f"{role} model", "", role, "char128", vocab_size, True),
                    curves=averages(values), last_symbol_perplexity=1.01 * end, nats=[], nats_deviation=[],
                    counting_perplexity=counting if role == "lexinvariant" else None,
                )
            )  # fmt: skip
        if baseline:
            writer.write(Gap(**setting, curves=averages(ours / (end / 2) - 1), names=["ours", "theirs"]))
        losses = [
            PartLosses(MeasuredModel("m", "", role, "v", vocab_size, True), part(seen), part(new))
            for role, seen, new in (("lexinvariant", 2.0, 11.0), ("standard", 1.5, 6.0))[: 1 + baseline]
        ]
        writer.write(
            SeenAndNew(
                **setting,
                new_share=[new_share] * N,
                floor=[end / 10] * N,
                unseen_nats=[10.3] * N,
                losses=losses,
                seen_difference=part(0.5) if baseline else None,
            )
        )
    return read_rows(path, ROWS)


def made(rows: Rows) -> Section:
    found = section(rows)
    assert found is not None
    return found


def words(rows: Rows) -> str:
    cells = [cell for table in made(rows).tables for row in table.rows for cell in row]
    return "\n".join([*made(rows).paragraphs, *cells])


def names(rows: Rows) -> list[str]:
    return [figure.name for figure in made(rows).figures]


def test_without_rows_there_is_no_section() -> None:
    assert section(Rows([])) is None


def test_our_numbers_stand_beside_the_papers(tmp_path: Path) -> None:
    rows = write(tmp_path, "stdlib", 3.71)
    text = words(rows)
    for number in ("37.10 / 74.20", "3.71 / 7.42", "3.75 (78)", "1.85 / 3.71", "3.38 (511)", "2.00 (511)"):
        assert number in text, number
    for number in ("19.00 / 38.00", "9", "1.00 / 2.00", "under 1", "2.00 / 3.00", "1.69"):
        assert number in text.split("\n"), number
    assert names(rows) == ["convergence", "convergence-gap"]  # one corpus has nothing to be compared with


def test_the_newest_run_of_each_corpus_is_shown(tmp_path: Path) -> None:
    write(tmp_path, "code", 9.99)
    write(tmp_path, "prose", 4.44)
    rows = write(tmp_path, "code", 2.22)
    text = words(rows)
    assert "2.22 / 4.44" in text
    assert "4.44 / 8.88" in text
    assert "9.99" not in text
    assert names(rows) == ["convergence", "convergence-corpora", "convergence-gap"]
    part = made(rows)
    panels, together, gap = (draw(figure, "dark") for figure in part.figures)
    assert [axes.get_title(loc="left") for axes in panels.axes] == ["code", "prose"]
    for axes, end in zip(panels.axes, (2.22, 4.44), strict=True):
        assert [line.get_ydata()[-1] for line in axes.lines] == [end, end / 2]
        assert axes.get_yscale() == "log"
        low, high = axes.get_ylim()
        assert low < 1.0
        assert high > 44.4
    assert [line.get_ydata()[-1] for line in together.axes[0].lines] == [2.22, 4.44]
    assert [text.get_text() for text in gap.legends[0].get_texts()] == ["code", "prose", "twice the standard"]
    assert "2.22" in part.figures[1].alt


def test_a_newer_run_without_a_baseline_has_no_gap(tmp_path: Path) -> None:
    write(tmp_path, "code", 3.0)
    rows = write(tmp_path, "code", 2.5, baseline=False)
    assert names(rows) == ["convergence"]
    assert "standard model" not in "\n".join(cell for t in made(rows).tables for r in t.rows for cell in r)
    write(tmp_path, "prose", 4.0)
    figure = draw(made(read_rows(tmp_path, ROWS)).figures[0], "dark")
    # The first panel has no standard curve; the legend is of all panels.
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["lexinvariant", "standard"]


def test_vocabularies_that_differ_have_their_own_scales(tmp_path: Path) -> None:
    for label, end, size in (("a", 2.0, 128), ("b", 3.0, 128), ("c", 2.5, 128), ("d", 700.0, 32_128)):
        rows = write(tmp_path, label, end, vocab_size=size)
    part = made(rows)
    figure = draw(part.figures[0], "dark")
    assert len(figure.axes) == 4  # two rows of three places, two of them empty
    assert figure.axes[0].get_ylim()[1] < 100 < figure.axes[3].get_ylim()[0]
    assert all(len(shown.alt) > 40 for shown in part.figures)
    saved = save(part.figures[0], tmp_path / "figures")
    assert saved.svg_light != saved.svg_dark


def test_the_first_screen_compares_with_the_paper(tmp_path: Path) -> None:
    at_end, ratio = made(write(tmp_path, "stdlib", 3.5)).findings
    assert (at_end.paper, at_end.ours, at_end.verdict) == (3.38, 3.5, "not comparable")  # of another text
    assert at_end.note == "not the paper's text"
    assert (ratio.ours, ratio.verdict) == (2.0, "not reached")
    assert len(at_end.curve) == N


def test_seen_and_new_tokens_are_shown_apart_where_many_are_new(tmp_path: Path) -> None:
    rows = write(tmp_path, "characters", 3.0)
    assert "convergence-seen" not in names(rows)
    assert not any("floor" in paragraph for paragraph in made(rows).paragraphs)
    rows = write(tmp_path, "tokens", 300.0, vocab_size=32_000, new_share=0.3)
    assert names(rows)[-1] == "convergence-seen"
    made_part = made(rows)
    assert any("floor" in paragraph for paragraph in made_part.paragraphs)
    panels = made_part.figures[0].panels
    assert [any("floor" in mark.name for mark in panel.marks) for panel in panels] == [False, True]  # type: ignore[union-attr]
    losses, shares = made_part.figures[-1].panels
    assert (losses.title, shares.title) == ("tokens", "New tokens")
    assert draw(made_part.figures[-1], "light").axes
    [cells] = made_part.tables[-1].rows
    assert cells[2:] == ("30.0%", "30.00", "2.000", "1.500", "1.65", "11.000", "6.000", "10.300")
    *_, ratio = made_part.findings
    assert len(made_part.findings) == 3  # the paper gives no perplexity of tokens
    assert ratio.verdict == "not comparable"
    assert "another vocabulary: 32,000" in ratio.note and "1.65 on tokens seen before; 30%" in ratio.note


def test_a_corpus_in_several_contexts_has_a_panel_each(tmp_path: Path) -> None:
    write(tmp_path, "broad", 300.0, vocab_size=32_000, new_share=0.3)
    write(tmp_path, "broad", 200.0, vocab_size=32_000, new_share=0.2, context=2048)
    rows = write(tmp_path, "wiki", 250.0, vocab_size=32_000, new_share=0.2, baseline=False)
    titles = ["broad, context 79", "broad, context 2,048", "wiki"]
    first, *_, apart = made(rows).figures
    assert [panel.title for panel in first.panels] == titles
    assert [panel.title for panel in apart.panels] == [*titles, "New tokens"]
    assert made(rows).tables[-1].rows[2][6] == "no standard model"
    assert len(draw(apart, "light").axes) == 4


def test_a_model_that_has_not_left_the_plateau_is_told(tmp_path: Path) -> None:
    learned = section(write(tmp_path, "learned", 4.0, counting=20.0))
    assert learned is not None
    assert not any("has not learned" in paragraph for paragraph in learned.paragraphs)
    assert "not learned yet" not in learned.findings[0].note
    stuck = section(write(tmp_path, "short", 24.0, counting=20.0))
    assert stuck is not None
    [told] = [paragraph for paragraph in stuck.paragraphs if "has not learned" in paragraph]
    assert told.startswith("lexinvariant model has not learned to infer what symbols mean (short)")
    assert (
        "no better than counting symbols does (3.18 and 3.00 nats" in told and "train --init bundled" in told
    )
    assert sum("counting them reaches 20.00" in finding.note for finding in stuck.findings) == 1
    verdicts = [finding.verdict for finding in stuck.findings if finding.measure.startswith("Ratio")]
    assert verdicts == ["not reached", "not comparable"]  # with a standard model that has learned as little
