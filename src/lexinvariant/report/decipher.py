"""Solvers of substitution ciphers: symbol error rate by length beside peers, and whether confidence can be trusted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from lexinvariant.experiments.rows import Row, latest, latest_of_each
from lexinvariant.report.figures import GREY, Drawing, Theme, label, series_style, shared_legend
from lexinvariant.report.section import Section, Table

SOLVERS = ("lexinvariant", "annealer", "subbreaker", "cipher_solver")
NAMES = {"lexinvariant": "lexinvariant (ours)", "annealer": "plain annealer, same n-gram"}
TITLES = {"spaced": "spaces kept", "unspaced": "without spaces", "ascii": "all of ASCII permuted"}
FLOOR = 1e-4
"""Error rates below this are drawn on the lowest line: a text of 100 symbols cannot show them."""


def section(rows: list[Row]) -> Section | None:
    measured = latest_of_each(rows, "decipher", "solver", "setting")
    if not measured:
        return None
    sure = latest_of_each(rows, "decipher", "reliability", "setting")
    drawings = [_errors(measured)] if any(row["setting"] != "ascii" for row in measured) else []
    if sure:
        drawings.append(_reliability(sure))
    return Section(
        "Substitution ciphers: our solver beside others",
        [
            "In each setting every solver was given the same ciphertexts, enciphered held-out English, in one run. A "
            "text of length N has N characters: lower-case letters and single spaces where spaces are kept (only "
            "letters are enciphered, and only they count), letters alone where there are no spaces, and any printable "
            "characters where all of ASCII is permuted, the space too, which no other solver here can read.",
            *([_certain(sure)] if sure else []),
            *(_batch_line(row) for row in latest(rows, "decipher", "batch")),
            *(_fresh_line(row) for row in latest(rows, "decipher", "fresh")),
        ],
        drawings,
        _tables(measured),
    )


def _certain(rows: list[Row]) -> str:
    high = [i for i, edge in enumerate(rows[0]["edges"][:-1]) if edge >= 0.9]
    n = sum(row["symbols"][i] for row in rows for i in high)
    right = sum(row["symbols_right"][i] for row in rows for i in high)
    share = f"{right / n:.1%}" if n else "none"
    return (
        f"Of the {n:,.0f} symbols of keys that our solver gave 90% or more, {share} are right (the bar: 90%)."
    )


def _batch_line(row: Row) -> str:
    return (
        f"{row['n']:,} texts of {row['length']} symbols at once took {row['wall_seconds']:.1f} s, with a symbol error "
        f"rate of {row['error']:.2%}."
    )


def _fresh_line(row: Row) -> str:
    return (
        f"A command in a fresh process, with nothing compiled before, took {row['median_seconds']:.1f} s (median of "
        f"{row['n']}, texts of {row['length']} symbols)."
    )


def _errors(rows: list[Row]) -> Drawing:
    settings = [
        setting for setting in ("spaced", "unspaced") if any(row["setting"] == setting for row in rows)
    ]
    solvers = [name for name in SOLVERS if any(row["solver"] == name for row in rows)]

    def draw(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
        for axes, setting in zip(panels, settings, strict=True):
            mine = [row for row in rows if row["setting"] == setting]
            lengths = sorted({row["length"] for row in mine})
            for index, solver in enumerate(solvers):
                line = sorted((row for row in mine if row["solver"] == solver), key=lambda row: row["length"])
                if not line:
                    continue
                error = np.array([row["error"] for row in line])
                low, high = np.array([row["error_interval"] for row in line]).T
                shown = np.maximum(error, FLOOR)
                style = series_style(index, theme) | {"markevery": 1}
                axes.errorbar(
                    [row["length"] * (1 + 0.015 * (index - 1)) for row in line],
                    shown,
                    yerr=[shown - np.maximum(np.minimum(low, error), FLOOR), np.maximum(high, shown) - shown],
                    capsize=2.5,
                    elinewidth=1,
                    label=NAMES.get(solver, solver),
                    **style,
                )
            bars = {row["length"]: row["bar"] for row in mine if row["bar"] is not None}
            if bars:
                axes.plot(
                    list(bars),
                    np.maximum(list(bars.values()), FLOOR),
                    linestyle="none",
                    marker="_",
                    markersize=16,
                    markeredgewidth=2,
                    color=GREY[theme],
                    label="bar",
                )
            axes.set_xscale("log")
            axes.set_xticks(lengths, [str(length) for length in lengths])
            axes.minorticks_off()
            axes.set_yscale("log")
            ticks = [1, 0.1, 0.01, 0.001, FLOOR]
            axes.set_yticks(ticks, ["100%", "10%", "1%", "0.1%", "0.01% or less"])
            axes.set_ylim(FLOOR * 0.7, 1.3)
            label(axes, TITLES[setting], "length of the text (characters)", "symbol error rate")
        shared_legend(figure)

    ours = [row for row in rows if row["solver"] == "lexinvariant" and row["setting"] == settings[0]]
    numbers = ", ".join(f"{row['error']:.2%} at {row['length']}" for row in ours)
    return Drawing(
        "decipher-errors",
        f"Symbol error rate by length of the text for {len(solvers)} solvers; ours, {TITLES[settings[0]]}: {numbers}.",
        "Share of the enciphered symbols that are read wrongly, mean over texts with 95% bootstrap intervals. Grey "
        "dashes are the bars that this project set itself. Slow solvers were given the first few of our texts only; "
        "the table tells how many, and how ours did on just those.",
        draw,
        (9.5, 4.6),
    )


def _reliability(rows: list[Row]) -> Drawing:
    edges = rows[0]["edges"]
    groups = {setting: [row for row in rows if row["setting"] == setting] for setting in TITLES}

    def draw(figure: Figure, theme: Theme) -> None:
        axes, below = figure.subplots(1, 2, width_ratios=(3, 2))
        axes.plot([0, 1], [0, 1], color=GREY[theme], linewidth=1, label="perfectly calibrated")
        for index, (setting, mine) in enumerate((s, m) for s, m in groups.items() if m):
            n, right, sure = (
                np.sum([row[name] for row in mine], axis=0) for name in ("symbols", "symbols_right", "sure")
            )
            some = n >= 5  # a share of fewer says nothing
            share = right[some] / n[some]
            half = 1.96 * np.sqrt(np.maximum(share * (1 - share), 0.25 / n[some]) / n[some])
            style = series_style(index, theme) | {"markevery": 1}
            axes.errorbar(
                sure[some] / n[some],
                share,
                yerr=[np.minimum(half, share), np.minimum(half, 1 - share)],
                capsize=2.5,
                elinewidth=1,
                label=TITLES[setting],
                **style,
            )
            place = np.arange(len(n)) + 0.27 * (index - 1)
            below.bar(place, n / n.sum(), 0.25, color=style["color"], hatch=("", "//", "..")[index])
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.legend(loc="upper left")
        label(axes, "Confidence and truth", "confidence given to a symbol of the key", "share that is right")
        names = [f"{low:g}-{high:g}" for low, high in pairwise(edges)]
        below.set_xticks(np.arange(len(names)), names, rotation=60)
        label(below, "How often each is given", "confidence", "share of symbols")

    return Drawing(
        "decipher-reliability",
        "Share of symbols that are right against the confidence given to them, beside the diagonal of perfect "
        "calibration.",
        "Every symbol of every key counts once, over all lengths. Intervals are 95% (normal approximation); bins of "
        "fewer than five symbols are left out.",
        draw,
        (9.5, 4.4),
    )


def _tables(rows: list[Row]) -> list[Table]:
    ours = {(row["setting"], row["length"]): row["errors"] for row in rows if row["solver"] == "lexinvariant"}
    header = (
        "Length",
        "Solver",
        "Symbol error rate",
        "Ours, same texts",
        "95% interval",
        "Bar",
        "Key accuracy",
        "Solved",
        "Seconds",
        "Texts",
    )
    tables = []
    for setting, title in TITLES.items():
        mine = [row for row in rows if row["setting"] == setting]
        order = sorted(mine, key=lambda row: (row["length"], SOLVERS.index(row["solver"])))
        cells = [
            (
                str(row["length"]),
                NAMES.get(row["solver"], f"{row['solver']} {row['solver_version']}"),
                f"{row['error']:.2%}",
                f"{np.mean(ours[setting, row['length']][: row['n']]):.2%}"
                if (setting, row["length"]) in ours
                else "",
                f"{row['error_interval'][0]:.2%} to {row['error_interval'][1]:.2%}",
                "" if row["bar"] is None or row["solver"] != "lexinvariant" else f"{row['bar']:.2%}",
                f"{row['key_accuracy']:.3f}",
                f"{row['solved']:.0%}",
                f"{row['median_seconds']:.2f}",
                str(row["n"]),
            )
            for row in order
        ]
        if cells:
            tables.append(
                Table(
                    f"Solvers, {title}: seconds are the median of a text, one at a time, warm", header, cells
                )
            )
    return tables
