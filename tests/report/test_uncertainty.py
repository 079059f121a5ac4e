"""The section on uncertainty: heat maps of posteriors, with the truth marked."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from lexinvariant.experiments.rows import Provenance, Row, RowWriter, read_rows
from lexinvariant.report.figures import Drawing, Theme, house_style, save
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lexinvariant.report.uncertainty import LETTERS, columns_of, name_of, section

WHERE = Provenance("uncertainty", seed=0, command="lexinvariant experiment uncertainty", draws=8)
THEMES: tuple[Theme, Theme] = ("light", "dark")


def values(label: str, truth: str | None, shares: list[dict[str, float]], **changes: Any) -> dict[str, Any]:
    """A row in which each occurrence gives the characters their shares, and what is left to all others evenly."""
    posterior_OV = np.zeros((len(shares), 128))
    for posterior_V, share in zip(posterior_OV, shares, strict=True):
        posterior_V += (1 - sum(share.values())) / (128 - len(share))
        for character, p in share.items():
            posterior_V[ord(character)] = p
    return {
        "label": label,
        "name": "tiny",
        "reader": "head",
        "text": "",
        "symbol": "z",
        "truth": truth,
        "temperature": 1.0,
        "paper_says": "something",
        "position": [10 * o for o in range(len(shares))],
        "word": [f"word{o}z" for o in range(len(shares))],
        "posterior": posterior_OV,
        "untempered": posterior_OV,
    } | changes


BAT = values("bat", "b", [{"b": 0.1, "h": 0.3}, {"b": 0.9, " ": 0.05}])
JAVA = values("Java", "{", [{":": 0.6}, {"{": 0.7, "\n": 0.2}], temperature=2.0)


def write(folder: Path, *rows: dict[str, Any]) -> list[Row]:
    with RowWriter(folder / "uncertainty.jsonl", WHERE) as writer:
        for row in rows:
            writer.write("posterior", **row)
    return read_rows(folder)


def drawn(drawing: Drawing, theme: Theme = "light") -> Figure:
    with house_style(theme):
        figure = plt.figure(figsize=drawing.size, layout="constrained")
        drawing.draw(figure, theme)
    plt.close(figure)
    return figure


def column_names(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels()]


def test_without_rows_there_is_no_section() -> None:
    assert section([]) is None


def test_the_papers_texts_share_a_figure_and_others_have_their_own(tmp_path: Path) -> None:
    write(tmp_path, BAT, JAVA)
    write(tmp_path, values("My text!", None, [{"q": 0.5}], paper_says=None))
    rows = write(tmp_path, values("bat", "b", [{"b": 0.77}]))  # read again, alone
    part = section(rows)
    assert part is not None
    assert [drawing.name for drawing in part.drawings] == ["uncertainty", "uncertainty-my-text"]
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
        figure = drawn(part.drawings[0], theme)
        bat, java, bar = figure.axes
        assert bar.get_ylabel() == "probability"
        names = column_names(bat)
        assert names == [*LETTERS, "␣", "rest"]
        shown_OC = np.asarray(bat.collections[0].get_array())
        np.testing.assert_allclose(shown_OC.sum(axis=1), 1)
        assert shown_OC[0, names.index("h")] == pytest.approx(0.3)
        assert shown_OC[1, names.index("b")] == pytest.approx(0.9)
        assert column_names(java) == ["↵", ":", "{", "rest"]
        assert [text.get_text() for text in java.get_yticklabels()] == ["word0z    1", "word1z   11"]
        for axes, truth in ((bat, "b"), (java, "{")):
            [frame] = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
            assert frame.get_x() == column_names(axes).index(truth)
            assert frame.get_height() == 2
        top, bottom = sorted(bat.get_ylim(), reverse=True)
        assert bat.get_ylim() == (top, bottom)  # the first occurrence is above
        # Lightness goes one way, so the map can be read without colour.
        ramp = bat.collections[0].get_cmap()(np.linspace(0, 1, 50))[:, :3] @ [0.2126, 0.7152, 0.0722]
        assert (np.diff(ramp) < 0).all() if theme == "light" else (np.diff(ramp) > 0).all()


def test_noticeable_characters_get_a_column() -> None:
    assert columns_of(BAT) == [*LETTERS, " "]
    assert columns_of(values("t", None, [{"?": 0.5, "Q": 0.019}])) == [*LETTERS, "?"]
    assert columns_of(values("t", "Q", [{"e": 0.5}])) == ["e", ":", "Q", "{"]
    flat = values("t", ":", [{chr(33 + i): 0.021 for i in range(45)}])
    assert len(columns_of(flat)) == 34
    assert {":", "{"} <= set(columns_of(flat))


def test_every_character_can_be_seen() -> None:
    assert [name_of(character) for character in "a {\n\t\x07"] == ["a", "␣", "{", "↵", "⇥", "0x07"]


def test_figures_are_drawn_whatever_the_text(tmp_path: Path) -> None:
    # Dollar signs are no mathematics, and of many occurrences only some are named.
    dollars = values("$a$", "$", [{"$": 0.5}] * 60, word=["$x$z"] * 60, paper_says=None)
    part = section(write(tmp_path, dollars))
    assert part is not None
    saved = save(part.drawings[0], tmp_path / "figures")
    assert saved.png.is_file()
    figure = drawn(part.drawings[0])
    assert len(figure.axes[0].get_yticks()) == 30
    assert figure.axes[0].get_title(loc="left").startswith(r"\$a\$: z stands for \$")
