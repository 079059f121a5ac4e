"""Bins, bits and the grid of names, against numbers worked out by hand."""

from typing import Any

import numpy as np
import pytest

from lexinvariant.report.draw import draw
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.naming import (
    OCCURRENCES,
    RANKS,
    FollowedText,
    FollowedToken,
    Guess,
    Named,
    Namer,
    Score,
    Unicity,
    section,
    shown_token,
    unicity_points,
)
from lexinvariant.results.rows import Rows

MODEL = MeasuredModel("ours", "h", "lexinvariant", "words", 32_000, False)


def test_every_number_falls_into_the_bin_that_names_it() -> None:
    assert OCCURRENCES.names == ["1", "2", "3-4", "5-8", "9-16", "17+"]
    numbers = {1: "1", 2: "2", 3: "3-4", 4: "3-4", 5: "5-8", 16: "9-16", 17: "17+", 400: "17+"}
    found = OCCURRENCES.index(np.array(list(numbers)))
    assert [OCCURRENCES.names[i] for i in found] == list(numbers.values())
    assert RANKS.names[RANKS.index(np.array([1000]))[0]] == "301-1,000"
    assert RANKS.names[RANKS.index(np.array([10_001]))[0]] == "10,001+"
    assert (RANKS.short_names[0], RANKS.short_names[4], RANKS.short_names[-1]) == ("≤10", "≤1k", ">10k")


def test_bits_of_key_and_text_are_counted_as_shannon_does() -> None:
    """Of 8 symbols: 3 different ones in the first 64 tokens and 4 in all 80, at half a bit a token."""
    types_ST = np.repeat([[3, 4]], (64, 16), axis=1)
    first, whole = unicity_points(types_ST, np.full((1, 80), 0.5), 8)
    assert (first.tokens, first.types, whole.tokens, whole.types) == (64, 3.0, 80, 4.0)
    assert first.key_bits == pytest.approx(np.log2(8 * 7 * 6))
    assert whole.text_bits == pytest.approx(80 * (3 - 0.5))
    assert whole.ratio == pytest.approx(200 / np.log2(8 * 7 * 6 * 5))
    two = unicity_points(np.array([[1] * 64, [3] * 64]), np.zeros((2, 64)), 8)[-1]
    assert two.key_bits == pytest.approx((3 + np.log2(8 * 7 * 6)) / 2), (
        "a mean over keys, not the key of a mean"
    )


def test_a_token_is_shown_without_its_blank_and_short() -> None:
    shown = {" the": "the", " ": "␣", "\n": "↵", "ing": "ing", " internationalisation": "internatio…"}
    assert {token: shown_token(token) for token in shown} == shown


def score(named: float) -> Score:
    return Score(Share(named, 50), Share(min(1.0, 2 * named), 50), 1.5)


def named(namer: Namer, share: float) -> Named:
    about: dict[str, Any] = {"label": "broad", "split": "test", "sequences": 5, "context": 40}
    return Named(
        **about,
        model=MODEL,
        namer=namer,
        window=10,
        at_end=score(share),
        by_occurrence={"1": score(0.0), "2": score(2 * share)},
        by_rank={"1-10": score(2 * share), "10,001+": score(0.0)},
        share_by_position=[0.1, share],
    )


def followed(token: str, p_right: list[float], hindsight: float | None = None) -> FollowedToken:
    guesses = [[Guess(" of", 0.6), Guess(token, p)] for p in p_right]
    return FollowedToken(
        token,
        3,
        list(range(len(p_right))),
        guesses,
        p_right,
        [Guess(token, 0.9)] if hindsight else [],
        hindsight,
    )


def test_the_grid_has_the_first_occurrences_and_the_last() -> None:
    tokens = [followed(" to", [0.01 * i for i in range(20)], 0.7), followed(" cat", [0.0, 0.05], 0.1)]
    rows = Rows(
        [named("so far", 0.3), FollowedText(label="a story", model=MODEL, n_tokens=99, tokens=tokens)]
    )
    found = section(rows)
    assert found is not None
    grid = found.figures[0]
    [panel] = grid.panels
    assert panel.x.names == ["1", "2", "3", "4", "5", "6", "7", "8", "last", "hindsight"]
    assert panel.y.names == ["to (20)", "cat (2)"]
    [cells] = panel.marks
    values = np.asarray(cells.cells)  # type: ignore[union-attr]
    np.testing.assert_allclose(values[0], [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.19, 0.7])
    np.testing.assert_allclose(values[1], [0.0, 0.05, *[np.nan] * 6, 0.05, 0.1])
    assert grid.alt.endswith("last: to (20) of 0.19, cat (2) of 0.05.")
    texts = [text.get_text() for text in draw(grid, "light").axes[0].texts]
    assert texts.count("of") == 9 + 3
    assert texts[9] == "to"


def test_all_ways_of_naming_stand_side_by_side() -> None:
    about: dict[str, Any] = {"label": "broad", "split": "test", "sequences": 5, "context": 40}
    points = unicity_points(np.full((1, 40), 20), np.full((1, 40), 5.0), 32_000)
    rows = [named("so far", 0.3), named("in hindsight", 0.4), named("left contexts", 0.5)]
    found = section(Rows([*rows, Unicity(**about, model=MODEL, points=points)]))
    assert found is not None
    end, by_occurrence, by_rank, unicity = found.tables
    assert [row[4].split()[0] for row in end.rows] == ["30.0%", "40.0%", "50.0%"]
    named_at_second = [
        cell
        for cell, head in zip(by_occurrence.rows[1], by_occurrence.header, strict=True)
        if "Named" in head
    ]
    assert named_at_second == ["60.0%", "80.0%", "100.0%"]
    assert [row[:2] for row in by_rank.rows] == [("1-10", "50.0%"), ("10,001+", "50.0%")]
    assert unicity.rows[0][-1] == f"{points[0].ratio:.2f}"
    assert any("Shannon" in paragraph for paragraph in found.paragraphs)
    assert len(draw(found.figures[0], "dark").axes) == 3
    assert section(Rows([])) is None
