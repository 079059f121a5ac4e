"""The section on uncertainty: heat maps of posteriors, with the truth marked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from scipy.special import softmax

from lexinvariant.report.draw import Theme, draw, save
from lexinvariant.results.rows import Provenance, Rows, RowWriter, read_rows
from lexinvariant.results.section import visible
from lexinvariant.results.uncertainty import (
    LETTERS,
    ROWS,
    Posterior,
    columns_of,
    section,
    shown_word,
    tempered,
)

WHERE = Provenance("uncertainty", seed=0, command="lexinvariant experiment uncertainty", draws=8)
THEMES: tuple[Theme, Theme] = ("light", "dark")


def posterior(label: str, truth: str | None, shares: list[dict[str, float]], **changes: Any) -> Posterior:
    """A row in which each occurrence gives the characters their shares, and what is left to all others evenly."""
    p_OV = np.zeros((len(shares), 128))
    for p_V, share in zip(p_OV, shares, strict=True):
        p_V += (1 - sum(share.values())) / (128 - len(share))
        for character, p in share.items():
            p_V[ord(character)] = p
    values: dict[str, Any] = {"temperature": 1.0, "text": "zest\n" * len(shares), "symbol": "z"} | changes
    return Posterior(label=label, truth=truth, name="tiny", namer="head", untempered=p_OV.tolist(), **values)


LINES = "zip, then\nzest"  # the symbol at 0 and at 10
BAT = posterior("bat", "b", [{"b": 0.1, "h": 0.3}, {"b": 0.9, " ": 0.05}], text=LINES)
JAVA = posterior("Java", "{", [{":": 0.6}, {"{": 0.7, "\n": 0.2}], text=LINES)


def write(folder: Path, *rows: Posterior) -> Rows:
    with RowWriter(folder / "uncertainty.jsonl", WHERE) as writer:
        for row in rows:
            writer.write(row)
    return read_rows(folder, ROWS)


def column_names(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels()]


def test_without_rows_there_is_no_section() -> None:
    assert section(Rows([])) is None


def test_the_papers_texts_share_a_figure_and_others_have_their_own(tmp_path: Path) -> None:
    write(tmp_path, BAT, JAVA)
    write(tmp_path, posterior("My text!", None, [{"q": 0.5}]))
    rows = write(tmp_path, posterior("bat", "b", [{"b": 0.77}]))  # read again, alone
    part = section(rows)
    assert part is not None
    assert [figure.name for figure in part.figures] == ["uncertainty", "uncertainty-my-text"]
    cells = [row for table in part.tables for row in table.rows]
    assert [row[0] for row in cells] == ["bat", "Java", "My text!", "bat", "Java", "Java", "My text!"]
    text = "\n".join(cell for row in cells for cell in row)
    assert "b 0.77" in text
    assert "b 0.90" not in text
    assert "the head of tiny" in part.paragraphs[1]


def test_a_cell_is_as_dark_as_it_is_likely(tmp_path: Path) -> None:
    part = section(write(tmp_path, BAT, JAVA))
    assert part is not None
    for theme in THEMES:
        figure = draw(part.figures[0], theme)
        bat, java, bar = figure.axes
        assert bar.get_ylabel() == "probability"
        assert (bat.get_ylabel(), java.get_ylabel()) == ("occurrence, symbols read", "")
        names = column_names(bat)
        assert names == [*LETTERS, "␣", "rest"]
        shown_OC = np.asarray(bat.collections[0].get_array())
        np.testing.assert_allclose(shown_OC.sum(axis=1), 1)
        assert shown_OC[0, names.index("h")] == pytest.approx(0.3)
        assert shown_OC[1, names.index("b")] == pytest.approx(0.9)
        assert column_names(java) == ["↵", ":", "{", "rest"]
        assert [text.get_text() for text in java.get_yticklabels()] == ["zip, then    1", "zest   11"]
        for axes, truth in ((bat, "b"), (java, "{")):
            [frame] = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
            assert frame.get_x() == column_names(axes).index(truth) - 0.5
            assert frame.get_height() == 2
        top, bottom = sorted(bat.get_ylim(), reverse=True)
        assert bat.get_ylim() == (top, bottom)  # the first occurrence is above
        # Lightness goes one way, so the map can be read without colour.
        ramp = bat.collections[0].get_cmap()(np.linspace(0, 1, 50))[:, :3] @ [0.2126, 0.7152, 0.0722]
        assert (np.diff(ramp) < 0).all() if theme == "light" else (np.diff(ramp) > 0).all()


def test_noticeable_characters_get_a_column() -> None:
    assert columns_of(BAT) == [*LETTERS, " "]
    assert columns_of(posterior("t", None, [{"?": 0.5, "Q": 0.019}])) == [*LETTERS, "?"]
    assert columns_of(posterior("t", "Q", [{"e": 0.5}])) == ["e", ":", "Q", "{"]
    flat = posterior("t", ":", [{chr(33 + i): 0.021 for i in range(45)}])
    assert len(columns_of(flat)) == 34
    assert {":", "{"} <= set(columns_of(flat))


def test_every_character_can_be_seen() -> None:
    assert [visible(character) for character in "a {\n\t\x07"] == ["a", "␣", "{", "↵", "⇥", "0x07"]


def test_figures_are_drawn_whatever_the_text(tmp_path: Path) -> None:
    # Dollar signs are no mathematics, and of many occurrences only some are named.
    dollars = posterior("$a$", "$", [{"$": 0.5}] * 60, text="$x$z\n" * 60)
    part = section(write(tmp_path, dollars))
    assert part is not None
    saved = save(part.figures[0], tmp_path / "figures")
    assert saved.png.is_file()
    figure = draw(part.figures[0], "light")
    assert sum(bool(text.get_text()) for text in figure.axes[0].get_yticklabels()) == 30
    assert figure.axes[0].get_title(loc="left").startswith(r"\$a\$: z stands for \$")


def test_the_first_screen_says_how_many_of_the_papers_texts_are_resolved(tmp_path: Path) -> None:
    part = section(write(tmp_path, BAT, posterior("Java", "{", [{":": 0.6, "{": 0.3}])))
    assert part is not None
    [finding] = part.findings
    assert (finding.paper, finding.ours, finding.verdict) == (2, 1, "not reached")
    assert finding.note.endswith("bat 0.90, Java 0.30")
    own = section(write(tmp_path / "own", posterior("mine", "b", [{"b": 0.9}])))
    assert own is not None and not own.findings


def test_a_temperature_divides_logits() -> None:
    logits_OV = np.random.default_rng(0).normal(size=(3, 5))
    np.testing.assert_allclose(tempered(softmax(logits_OV, axis=1), 2.5), softmax(logits_OV / 2.5, axis=1))
    np.testing.assert_array_equal(tempered(np.array([[0.5, 0.5, 0.0]]), 3.0), [[0.5, 0.5, 0.0]])


@pytest.mark.parametrize(
    ("text", "position", "shown"),
    [
        ("if x)z\n  y", 5, "if x)z"),
        ("a line that is too long to be shown, with a zat. And more", 44, "zat."),
        ("a line that is too long to be shown, with a cez", 46, "cez"),
        ("short\nanother line, and one that is longer than the other z\nend", 58, "z"),
    ],
)
def test_an_occurrence_is_named_by_its_line_or_its_word(text: str, position: int, shown: str) -> None:
    assert text[position] == "z"
    assert shown_word(text, position) == shown
