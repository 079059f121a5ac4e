"""What a model's deciphering head makes of the tokens of a text, and what could be made of them at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from lexinvariant.results.figure import Axis, Figure, HeatMap, Line, Mark, Panel
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import MeasuredModel
from lexinvariant.results.prose import Prose, listed
from lexinvariant.results.rows import Row, Rows, beside, group_by
from lexinvariant.results.section import (
    Column,
    Section,
    Table,
    make_table,
    present,
    slug,
    visible,
)

Namer = Literal["so far", "in hindsight", "left contexts"]
"""The head by what came before; the head in hindsight of the whole context; and a standard model that is told all other
tokens, by the left contexts of all occurrences so far."""
NAMERS: tuple[Namer, ...] = get_args(Namer)
NAMED_BY: dict[Namer, str] = {
    "so far": "head, by what came before",
    "in hindsight": "head, in hindsight",
    "left contexts": "left contexts, if all other tokens were known",
}
SHOWN_OCCURRENCES = 8
"""Columns of the grid of words, beside the last occurrence."""
LONGEST_SHOWN = 11
words = Prose("naming")


@dataclass(frozen=True)
class Bins:
    """Whole numbers from 1 on, cut after each of the edges."""

    edges: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        starts = (1, *(edge + 1 for edge in self.edges))
        inside = [
            f"{low:,}" if low == high else f"{low:,}-{high:,}"
            for low, high in zip(starts, self.edges, strict=False)
        ]
        return [*inside, f"{starts[-1]:,}+"]

    @property
    def short_names(self) -> list[str]:
        """Short names, for an axis."""
        upto = [f"{edge}" if edge < 1000 else f"{edge // 1000}k" for edge in self.edges]
        return [*(f"≤{edge}" for edge in upto), f">{upto[-1]}"]

    def index(self, numbers: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.edges, numbers)


OCCURRENCES = Bins((1, 2, 4, 8, 16))
RANKS = Bins((10, 30, 100, 300, 1000, 3000, 10_000))


@dataclass(frozen=True)
class Score:
    """Of some tokens: how often the likeliest name, or one of the five likeliest, is the right one; and the loss."""

    named: Share
    among_five: Share
    nats: float


@dataclass(frozen=True, kw_only=True)
class OnText(Row):
    """What was measured on."""

    label: str
    """The corpus."""
    split: str
    sequences: int
    context: int
    model: MeasuredModel


@dataclass(frozen=True, kw_only=True)
class Named(OnText, experiment="naming", kind="named"):
    """How well tokens are named at the end of the context, over its last `window` tokens."""

    namer: Namer
    window: int
    at_end: Score
    by_occurrence: dict[str, Score]
    """By how often a token has occurred so far."""
    by_rank: dict[str, Score]
    """By the place of a token among all, the most frequent of the training text first."""
    share_by_position: list[float]
    """Named rightly among the `window` tokens that follow the first i."""


@dataclass(frozen=True)
class UnicityPoint:
    """Of the first `tokens` of a text: what is to be found out, and what the text says about it, in bits."""

    tokens: int
    types: float
    key_bits: float
    """The log of the number of ways to name the text's different tokens."""
    text_bits: float
    """What the standard model saves against a code that knows nothing: tokens x log2(V) less the model's bits."""

    @property
    def ratio(self) -> float:
        return self.text_bits / self.key_bits


@dataclass(frozen=True, kw_only=True)
class Unicity(OnText, experiment="naming", kind="unicity"):
    """Shannon's estimate of whether texts of a length have one solution; the model is the standard one."""

    points: list[UnicityPoint]


@dataclass(frozen=True)
class Guess:
    """A token, as text, and its probability."""

    token: str
    p: float


@dataclass(frozen=True)
class FollowedToken:
    """One token of a text: what the head takes it for, at each of its occurrences."""

    token: str
    rank: int
    positions: list[int]
    guesses: list[list[Guess]]
    """The likeliest of each occurrence."""
    p_right: list[float]
    hindsight: list[Guess]
    """The same of the last occurrence with the whole text read; empty where the model has no hindsight."""
    p_right_in_hindsight: float | None


@dataclass(frozen=True, kw_only=True)
class FollowedText(Row, experiment="naming", kind="text"):
    """A text in which some tokens were followed."""

    label: str
    model: MeasuredModel
    n_tokens: int
    tokens: list[FollowedToken]


ROWS = (Named, Unicity, FollowedText)


def section(rows: Rows) -> Section | None:
    """Naming tokens, where its rows are there."""
    named = rows.latest_of_each(Named, lambda row: row.label)
    if not named:
        return None
    unicity = beside(rows.latest_of_each(Unicity, lambda row: row.label), named)
    texts = rows.latest_of_each(FollowedText, lambda row: (row.label, row.model.hash))
    corpora = group_by(named, lambda row: row.label)
    return Section(
        "Naming tokens",
        words.paragraphs(draws=listed(row.origin.draws or 1 for row in named), unicity=bool(unicity)),
        [*map(_grid, texts), *(_curves(label, members) for label, members in corpora.items())],
        present(
            _end_table(named),
            *(_bin_table(label, members, "by_occurrence") for label, members in corpora.items()),
            *(_bin_table(label, members, "by_rank") for label, members in corpora.items()),
            _unicity_table(unicity) if unicity else None,
            *map(_guess_table, texts),
        ),
    )


def shown_token(token: str) -> str:
    """A token without the blank before it, and as it can be seen."""
    shown = "".join(map(visible, token[1:] if token[:1] == " " and len(token) > 1 else token))
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 1] + "…"


def _grid(row: FollowedText) -> Figure:
    """A row a token, a column an occurrence, in each cell the likeliest name; the analogue of the key matrix."""
    in_hindsight = any(token.hindsight for token in row.tokens)
    longest = min(SHOWN_OCCURRENCES, max(len(token.positions) for token in row.tokens))
    columns = [*map(str, range(1, longest + 1)), "last", *(["hindsight"] if in_hindsight else [])]
    cells = np.full((len(row.tokens), len(columns)), np.nan)
    labels = [[""] * len(columns) for _ in row.tokens]
    for r, token in enumerate(row.tokens):
        shown = [
            *zip(range(longest), token.p_right, token.guesses, strict=False),
            (longest, token.p_right[-1], token.guesses[-1]),
        ]
        if token.p_right_in_hindsight is not None:
            shown.append((longest + 1, token.p_right_in_hindsight, token.hindsight))
        for column, p, guesses in shown:
            cells[r, column] = p
            labels[r][column] = shown_token(guesses[0].token)
    panel = Panel(
        f"{row.label}: {row.n_tokens} tokens",
        [HeatMap(cells, divider=longest, labels=labels)],
        Axis("occurrence", names=columns),
        Axis(names=[f"{shown_token(token.token)} ({len(token.positions)})" for token in row.tokens]),
    )
    size = (2.3 + 0.88 * len(columns), 1.3 + 0.3 * len(row.tokens))
    name = f"naming-{slug(row.label)}-{slug(row.model.name)}"
    caption = words("grid", row=row, in_hindsight=in_hindsight)
    return Figure(
        name, caption, [panel], size=size, legend="none", colour_bar="probability of the right name"
    )


def _curves(label: str, members: list[Named]) -> Figure:
    """Shares named rightly, by position, by occurrences so far and by rank."""
    panels = [
        Panel(
            f"{label}: by position",
            [
                Line(NAMED_BY[row.namer], range(len(row.share_by_position)), row.share_by_position)
                for row in members
            ],
            Axis("context length (tokens)"),
            Axis("share named correctly", limits=(0.0, 1.03)),
        )
    ]
    for title, name, bins, ticks in (
        ("by occurrences so far", "by_occurrence", OCCURRENCES, OCCURRENCES.names),
        ("by rank in the training text", "by_rank", RANKS, RANKS.short_names),
    ):
        found_bins = {
            one: tick
            for one, tick in zip(bins.names, ticks, strict=True)
            if any(one in getattr(row, name) for row in members)
        }
        marks: list[Mark] = []
        for row in members:
            scores: Mapping[str, Score] = getattr(row, name)
            found = [(x, scores[one].named) for x, one in enumerate(found_bins) if one in scores]
            marks.append(
                Line(
                    NAMED_BY[row.namer],
                    [x for x, _ in found],
                    [share.value for _, share in found],
                    [share.low for _, share in found],
                    [share.high for _, share in found],
                    interval="bars",
                    every_marker=True,
                )
            )
        panels.append(
            Panel(title, marks, Axis(title[3:], names=list(found_bins.values())), Axis(limits=(0.0, 1.03)))
        )
    window = listed(row.window for row in members)
    figure = f"naming-shares-{slug(label)}"
    return Figure(figure, words("curves", window=window), panels, size=(15.0, 4.4), widths=(1, 0.9, 1.2))


def _end_table(named: list[Named]) -> Table:
    columns: list[Column[Named]] = [
        Column("Corpus", "label"),
        Column("Model", "model.name"),
        Column("Named by", lambda row: NAMED_BY[row.namer]),
        Column("Names", "model.vocab_size", ","),
        Column("Named correctly", "at_end.named"),
        Column("Among the five likeliest", "at_end.among_five"),
        Column("Nats", "at_end.nats", ".2f"),
        Column("Tokens (sequences)", lambda row: f"last {row.window} of {row.context:,} ({row.sequences:,})"),
    ]
    return make_table(words("end_table"), named, columns)


def _bin_table(label: str, members: list[Named], name: Literal["by_occurrence", "by_rank"]) -> Table:
    bins = OCCURRENCES if name == "by_occurrence" else RANKS
    by_namer: dict[Namer, dict[str, Score]] = {row.namer: getattr(row, name) for row in members}
    first = next(iter(by_namer.values()))
    total = sum(score.named.trials for score in first.values())

    def of(namer: Namer, measure: Callable[[Score], float]) -> Callable[[str], float]:
        return lambda one: measure(by_namer[namer][one])

    columns: list[Column[str]] = [
        Column("Occurrences so far" if name == "by_occurrence" else "Rank", lambda one: one),
        Column("Share of tokens", lambda one: first[one].named.trials / total, ".1%"),
    ]
    for namer in by_namer:
        columns += [
            Column(f"Named, {namer}", of(namer, lambda score: score.named.value), ".1%"),
            Column(f"Among five, {namer}", of(namer, lambda score: score.among_five.value), ".1%"),
            Column(f"Nats, {namer}", of(namer, lambda score: score.nats), ".2f"),
        ]
    return make_table(words(name, label=label), [one for one in bins.names if one in first], columns)


def _unicity_table(rows: list[Unicity]) -> Table:
    points = [(row, point) for row in rows for point in row.points]
    columns: list[Column[tuple[Unicity, UnicityPoint]]] = [
        Column("Corpus", lambda each: each[0].label),
        Column("Symbols", lambda each: each[0].model.vocab_size, ","),
        Column("Tokens read", lambda each: each[1].tokens, ","),
        Column("Distinct", lambda each: each[1].types, ".1f"),
        Column("Key (bits)", lambda each: each[1].key_bits, ",.0f"),
        Column("Text (bits)", lambda each: each[1].text_bits, ",.0f"),
        Column("Text / key", lambda each: each[1].ratio, ".2f"),
    ]
    return make_table(words("unicity_table"), points, columns)


def _guess_table(row: FollowedText) -> Table:
    def listed_guesses(guesses: list[Guess]) -> str:
        return ", ".join(f"{shown_token(guess.token)} {guess.p:.2f}" for guess in guesses) or "none"

    columns: list[Column[FollowedToken]] = [
        Column("Token", lambda token: shown_token(token.token)),
        Column("Rank", "rank", ","),
        Column("Occurrences", lambda token: len(token.positions)),
        Column("First taken for", lambda token: listed_guesses(token.guesses[0])),
        Column("At the end", lambda token: listed_guesses(token.guesses[-1])),
        Column("Right name, first", lambda token: token.p_right[0], ".3f"),
        Column("Right name, at the end", lambda token: token.p_right[-1], ".3f"),
    ]
    if any(token.hindsight for token in row.tokens):
        columns.append(Column("In hindsight", lambda token: listed_guesses(token.hindsight)))
    return make_table(words("guess_table", row=row), row.tokens, columns)


def unicity_points(types_ST: np.ndarray, bits_ST: np.ndarray, vocab_size: int) -> list[UnicityPoint]:
    """At 64, 128, ... and at the end: means over sequences of the bits of the key and of the text.

    types_ST: different tokens so far; bits_ST: the standard model's loss of each token.
    """
    length = types_ST.shape[1]
    lengths = [*(n for n in (64 << i for i in range(16)) if n < length), length]
    log_keys = np.cumsum(np.log2(np.arange(vocab_size, 0, -1)))  # of 1, 2, ... different tokens
    return [
        UnicityPoint(
            tokens=n,
            types=float(types_ST[:, n - 1].mean()),
            key_bits=float(log_keys[types_ST[:, n - 1] - 1].mean()),
            text_bits=float(n * math.log2(vocab_size) - bits_ST[:, :n].sum(axis=1).mean()),
        )
        for n in lengths
    ]
