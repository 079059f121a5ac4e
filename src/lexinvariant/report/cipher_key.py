"""Figures and tables of the cipher-key experiment: the newest run, and older ones that only differ in the reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lexinvariant.config import TrainConfig
from lexinvariant.experiments.rows import Row, latest_of_each
from lexinvariant.report.figures import COLOURS, GREY, INK, Drawing, Theme, label, series_style
from lexinvariant.report.section import Section, Table

NAME = "cipher-key"
PAPER_PRECISION = 0.996
"""Section Recovering Substitution Ciphers: average precision of the last window over 1,000 input sequences."""
PAPER_TRAINING = TrainConfig()
"""The defaults are the paper's model and schedule."""
ALIKE = ("model_hash", "data_hash", "seed", "sequences", "window", "fresh_keys")
"""Runs that agree in these are shown together."""
OTHERS = "+"
"""Name of the column for all symbols that are no letters of the key."""
NOT_GIVEN = "not given"


def section(rows: list[Row]) -> Section | None:
    """Recovering substitution ciphers, where its rows are there."""
    mine = [row for row in rows if row["experiment"] == NAME]
    measured = {row["run"] for row in mine if row["kind"] == "precision"}  # an interrupted run has none
    setups = [row for row in mine if row["kind"] == "setup" and row["run"] in measured]
    if not setups:
        return None
    newest = max(setups, key=lambda row: row["run"])
    runs = {row["run"] for row in setups if all(row[name] == newest[name] for name in ALIKE)}
    mine = [row for row in mine if row["run"] in runs]
    precision, keys, soft = (
        latest_of_each(mine, NAME, kind, "reader") for kind in ("precision", "key", "soft")
    )
    probes = [row for row in mine if row["kind"] == "probe"]
    drawings = [_curves(newest, precision)]
    drawings += [_matrices(newest, keys)] if keys else []
    drawings += [_soft(newest, soft)] if soft else []
    tables = [_results(newest, precision, keys), _by_start(precision)]
    tables += [_letters(newest, keys)] if keys else []
    tables += [_soft_table(soft)] if soft else []
    in_hindsight = any(row["reader"] == "hindsight" for row in precision)
    paragraphs = _paragraphs(newest, probes, in_hindsight)
    return Section("Recovering substitution ciphers", paragraphs, drawings, tables)


def _paragraphs(setup: Row, probes: list[Row], in_hindsight: bool) -> list[str]:
    keys = "each text has a key of its own" if setup["fresh_keys"] else "all with the same key"
    paragraphs = [
        f"{setup['sequences']:,} texts of {setup['context']} symbols have their lowercase letters enciphered, {keys}. "
        f"The model {setup['model']} has to reckon with all permutations of its {setup['vocab_size']} symbols, not "
        "only of the letters. At each position a reader names the symbol just read, from the model's final state; "
        "each cipher letter in a window is then given the name that most of its occurrences in the window were given "
        "(if two are even, the one given last).",
        "Precision is the share of the cipher letters seen in the window that are named rightly; it is averaged over "
        "texts, those without a letter in the window left out, with a 95% confidence interval (normal approximation). "
        "To a lexinvariant model all keys are the same, and these numbers do not depend on which was drawn.",
    ]
    if in_hindsight:
        paragraphs.append(
            "In hindsight the same head names symbols by states that know all of the text up to the end of the window, "
            "and nothing after it; the paper's probe, like the head as it reads, knows what came before a symbol."
        )
    for row in probes[-1:]:
        config, metrics = row["config"], row["metrics"]
        paragraphs.append(
            f"The probe is the paper's: two layers and an output table of its own, on the frozen model. It was "
            f"trained for {config['steps']:,} steps of {config['batch_size']} sequences (paper: 10,000 steps) with "
            f"AdamW at {config['rate']:g}, and at its last step named {metrics['tail_deciphered']:.1%} of the symbols "
            "at the end of the context rightly."
        )
    return paragraphs


def _percent(share: float | None, half_width: float | None = None) -> str:
    if share is None:
        return "none"
    return f"{share:.2%}" + ("" if half_width is None else f" ± {100 * half_width:.2f}")


def _reader_name(reader: str) -> str:
    names = {"head": "joint head", "hindsight": "joint head, in hindsight", "probe": "frozen probe"}
    return names.get(reader, reader)


def _curves(setup: Row, precision: list[Row]) -> Drawing:
    def draw(figure: Figure, theme: Theme) -> None:
        rising, falling = figure.subplots(1, 2)
        for index, row in enumerate(precision):
            start = np.array(row["start"])
            mean, half = (np.array(row[name], dtype=float) for name in ("precision", "half_width"))
            if np.isnan(mean).all():
                continue
            half = np.nan_to_num(half)
            style = series_style(index, theme)
            name = _reader_name(row["reader"])
            rising.plot(start, 100 * mean, label=name, **style)
            top = np.minimum(100 * (mean + half), 100)
            rising.fill_between(
                start, 100 * (mean - half), top, color=style["color"], alpha=0.25, linewidth=0
            )
            # No error at all has no place on a log axis.
            wrong = np.where(mean < 1, 100 * (1 - mean), np.nan)
            if np.isnan(wrong).all():
                continue
            falling.plot(start, wrong, label=name, **style)
            falling.fill_between(
                start,
                np.maximum(100 * (1 - mean - half), 1e-3),
                100 * (1 - mean + half),
                color=style["color"],
                alpha=0.25,
                linewidth=0,
            )
        papers = {"color": GREY[theme], "linestyle": (0, (1, 1.5)), "linewidth": 1.6}
        rising.axhline(100 * PAPER_PRECISION, label="paper, last window", **papers)
        falling.axhline(100 * (1 - PAPER_PRECISION), label="paper, last window", **papers)
        falling.set_yscale("log")
        ticks = [0.1, 0.2, 0.4, 1, 2, 5, 10, 20, 50, 100]
        falling.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        falling.minorticks_off()
        falling.set_ylim(_lowest_error(precision), 100)
        rising.set_ylim(0, 102)
        where = "start of the window (symbols read before it)"
        label(
            rising, "Letters of the key named rightly", where, f"precision in {setup['window']} symbols (%)"
        )
        label(falling, "The same, as errors", where, "letters named wrongly (%, log scale)")
        rising.legend(loc="lower right")

    last = "; ".join(
        f"{_reader_name(row['reader'])}: {_percent(row['precision'][0])} at the start, {_percent(row['last'])} at "
        "the end"
        for row in precision
    )
    return Drawing(
        "cipher-key-precision",
        f"Two curves over the start of the window. Left, precision of the voted key rises towards 100%: {last}. "
        "Right, the same as errors on a log scale, beside the paper's 0.4%.",
        f"Precision of the key voted on in a window of {setup['window']} symbols, by where the window begins; mean of "
        f"{setup['sequences']:,} texts, band: 95% confidence interval. Dotted: the paper's {PAPER_PRECISION:.1%} for "
        "the last window.",
        draw,
        (10.0, 4.2),
    )


def _lowest_error(precision: list[Row]) -> float:
    """The bottom of the log axis: below the paper's error and below ours, where ours is not zero."""
    errors = [1 - value for row in precision for value in row["precision"] if value is not None and value < 1]
    return 100 * 0.6 * min([1 - PAPER_PRECISION, *errors])


def _square(axes: Axes, setup: Row, columns: str, title: str, size: float) -> None:
    """A key matrix: cipher letters down, what they stand for across, as in the paper."""
    symbols = setup["symbols"]
    axes.set_xticks(range(len(columns)), list(columns), family="monospace", fontsize=size)
    axes.set_yticks(range(len(symbols)), list(symbols), family="monospace", fontsize=size)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(symbols) - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.tick_params(length=0, pad=1.5)
    axes.tick_params(axis="x", pad=size)
    for name in axes.get_xticklabels():  # letters stand on one line, with or without tails
        name.set_verticalalignment("baseline")
    axes.set_title(title, loc="left")


def _down(setup: Row) -> str:
    return "letter stood for" if setup["fresh_keys"] else "cipher letter"


def _matrices(setup: Row, keys: list[Row]) -> Drawing:
    symbols, truth = setup["symbols"], setup["truth"]

    def draw(figure: Figure, theme: Theme) -> None:
        ink, mark = INK[theme][0], COLOURS[theme][1]
        panels = figure.subplots(1, 1 + len(keys), squeeze=False)[0]
        true_columns = [symbols.index(letter) for letter in truth]
        right = {"marker": "s", "s": 34, "color": ink, "linewidth": 0, "zorder": 3}
        panels[0].scatter(true_columns, range(len(truth)), **right)
        _square(panels[0], setup, symbols + OTHERS, "Truth", 8)
        panels[0].set_ylabel(_down(setup))
        for axes, row in zip(panels[1:], keys, strict=True):
            rights: list[tuple[int, int]] = []
            wrongs: list[tuple[int, int]] = []
            for place, (named, true) in enumerate(zip(row["named"], truth, strict=True)):
                column = symbols.index(named) if named and named in symbols else len(symbols)
                if named is None:
                    axes.axhspan(place - 0.5, place + 0.5, color=GREY[theme], alpha=0.3, linewidth=0)
                else:
                    (rights if named == true else wrongs).append((column, place))
            if rights:
                axes.scatter(*zip(*rights, strict=True), **right)
            if wrongs:
                axes.scatter(*zip(*wrongs, strict=True), marker="X", s=46, color=mark, linewidth=0, zorder=3)
            _square(axes, setup, symbols + OTHERS, f"Majority vote, {_reader_name(row['reader'])}", 8)
        for axes in panels:
            axes.set_xlabel("stands for")
        handles = [
            Line2D([], [], marker="s", color=ink, linestyle="", label="right"),
            Line2D([], [], marker="X", color=mark, linestyle="", markersize=8, label="wrong"),
            Patch(color=GREY[theme], alpha=0.3, label="in no last window"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)

    found = "; ".join(
        f"{_reader_name(row['reader'])}: {row['right']} of {len(symbols)} right" for row in keys
    )
    what = "What each letter is taken for, all keys together" if setup["fresh_keys"] else "The whole key"
    return Drawing(
        "cipher-key-matrices",
        f"Key matrices side by side, cipher letters down and letters across: the truth, and the vote. {found}.",
        f"{what}, voted on by the last windows of all {setup['sequences']:,} texts (each text has one vote a "
        f"letter), beside the truth. Column {OTHERS}: anything that is no lowercase letter. {found}.",
        draw,
        (4.6 * (1 + len(keys)), 5.2),
    )


def _heat_colours(theme: Theme) -> Colormap:
    """From paper to ink by way of the first colour: steadily darker (or lighter), so it reads in greyscale."""
    ink, paper = INK[theme]
    colours = LinearSegmentedColormap.from_list("key", [paper, COLOURS[theme][0], ink], N=256)
    return colours.with_extremes(bad=(GREY[theme], 0.3))


def _soft(setup: Row, soft: list[Row]) -> Drawing:
    readers = list(dict.fromkeys(row["reader"] for row in soft))
    by_reader = [[row for row in soft if row["reader"] == reader] for reader in readers]
    across = max(map(len, by_reader))
    symbols = setup["symbols"]

    def draw(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(len(readers), across, squeeze=False)
        colours = _heat_colours(theme)
        image: Any = None
        for line, members in zip(panels, by_reader, strict=True):
            for axes, row in zip(line, members, strict=False):
                p_CA = np.column_stack(
                    [np.array(row["matrix"], dtype=float), np.array(row["others"], dtype=float)]
                )
                image = axes.imshow(np.ma.masked_invalid(p_CA), cmap=colours, vmin=0, vmax=1, aspect="equal")
                axes.grid(visible=False)
                axes.axvline(len(symbols) - 0.5, color=GREY[theme], linewidth=0.6)
                title = f"symbols {row['start']} to {row['start'] + row['window'] - 1}"
                _square(axes, setup, symbols + OTHERS, title, 6.5)
                axes.set_xlabel("stands for")
            for axes in line[len(members) :]:
                axes.remove()
            line[0].set_ylabel(
                _down(setup) if len(readers) == 1 else f"{_reader_name(members[0]['reader'])}\n{_down(setup)}"
            )
        bar = figure.colorbar(image, ax=list(figure.axes), label="probability", shrink=0.7, pad=0.01)
        bar.outline.set_linewidth(0.5)

    temperatures = " and ".join(sorted({f"{row['temperature']:g}" for row in soft}))
    path = ", ".join(f"{row['on_truth']:.2f} from {row['start']}" for row in by_reader[0])
    return Drawing(
        "cipher-key-soft",
        "Key matrices as probabilities, for windows ever later in the text: first spread out, then one strong cell a "
        f"row. Mean probability of the truth ({_reader_name(readers[0])}): {path}.",
        f"The key as probabilities at temperature {temperatures}, as in the paper: logits averaged over a cipher "
        f"letter's occurrences in the window, softmax over all {setup['vocab_size']} symbols, mean of the texts that "
        f"have the letter there. Column {OTHERS}: all symbols that are no lowercase letters, together. Grey rows: a "
        "letter in none of the windows.",
        draw,
        (3.0 * across + 1.0, 3.5 * len(readers)),
    )


def _results(setup: Row, precision: list[Row], keys: list[Row]) -> Table:
    key_of = {row["reader"]: row for row in keys}
    paper_flop = _paper_flop()

    def whole(row: Row) -> str:
        key = key_of.get(row["reader"])
        return "none" if key is None else f"{key['right']} of {len(setup['symbols'])}"

    def reached(row: Row) -> str:
        starts = [
            s for s, p in zip(row["start"], row["precision"], strict=True) if (p or 0) >= PAPER_PRECISION
        ]
        return f"{starts[0]}" if starts else "nowhere"

    flop = setup["training_flop"]
    measures: list[tuple[str, Callable[[Row], str], str]] = [
        (
            f"Precision of the last window of {setup['window']}",
            lambda row: _percent(row["last"], row["last_half_width"]),
            f"{PAPER_PRECISION:.1%}",
        ),
        ("First start with the paper's 99.6%", reached, NOT_GIVEN),
        (
            "Texts whose last window is all right",
            lambda row: _texts(row, lambda share: share == 1),
            NOT_GIVEN,
        ),
        (
            "Texts whose last window is mostly wrong",
            lambda row: _texts(row, lambda share: share < 0.5),
            NOT_GIVEN,
        ),
        ("Letters of the whole key right", whole, "nearly all (a figure)"),
        (
            "The same precision over every symbol seen, not only lowercase letters",
            lambda row: _percent(row["last_all_symbols"], row["last_all_symbols_half_width"]),
            NOT_GIVEN,
        ),
        (
            f"Symbols of the last {setup['window']} named rightly, every occurrence",
            lambda row: _percent(row["named_rightly"]),
            NOT_GIVEN,
        ),
        ("Texts", lambda row: f"{setup['sequences']:,}", "1,000"),
        (
            "Parameters in the layers' matrices",
            lambda row: f"{setup['matrix_parameters'] / 1e6:.0f}M",
            f"{PAPER_TRAINING.model.n_matmul_parameters / 1e6:.0f}M",
        ),
        (
            "Compute of the model's training (FLOP)",
            lambda row: "unknown" if flop is None else f"{flop:.1e} ({flop / paper_flop:.1%} of the paper's)",
            f"{paper_flop:.1e}",
        ),
    ]
    cells = [(name, *(ours(row) for row in precision), paper) for name, ours, paper in measures]
    header = ("Measure", *(f"Ours, {_reader_name(row['reader'])}" for row in precision), "Paper, probe")
    caption = (
        "Recovering the key. ± is half of the 95% confidence interval, in points. FLOP: 6N + 12 layers x width x "
        "context a token for both, layers of hindsight counted, readout and head or probe not. The texts are not the "
        "paper's."
    )
    return Table(caption, header, cells)


def _texts(row: Row, counts: Callable[[float], bool]) -> str:
    shares = [share for share in row["last_by_text"] if share is not None]
    return f"{sum(map(counts, shares)):,} of {len(shares):,}"


def _paper_flop() -> float:
    model = PAPER_TRAINING.model
    tokens = PAPER_TRAINING.steps * PAPER_TRAINING.tokens_per_step
    return float(tokens) * model.flop_per_token(model.context)


def _by_start(precision: list[Row]) -> Table:
    def at(row: Row, start: int) -> str:
        place = row["start"].index(start)
        return _percent(row["precision"][place], row["half_width"][place])

    shared = sorted(set.intersection(*(set(row["start"]) for row in precision)))
    last = shared[-1]
    places = [start for start in shared if start % 100 == 0 or start == last]
    cells = [
        (f"{start}" + (" (last)" if start == last else ""), *(at(row, start) for row in precision))
        for start in places
    ]
    header = ("Start of the window", *(f"Ours, {_reader_name(row['reader'])}" for row in precision))
    return Table("Precision by where the window begins; the paper shows its curve as a figure", header, cells)


def _shown(character: str | None) -> str:
    names = {" ": "space", "\n": "newline", "\t": "tab", None: "none"}
    return names.get(character) or (
        character if character and character.isprintable() else ascii(character)[1:-1]
    )


def _letters(setup: Row, keys: list[Row]) -> Table:
    found = []
    for row in keys:
        votes_CA = np.array(row["votes"])
        seen_C = votes_CA.sum(axis=1) + np.array(row["votes_for_others"])
        for c, true in enumerate(setup["truth"]):
            right = int(votes_CA[c, setup["symbols"].index(true)])
            wrong = int(seen_C[c]) - right
            if wrong:
                written = "" if setup["fresh_keys"] else f" (written {setup['symbols'][c]})"
                cells = (
                    f"{true}{written}",
                    _reader_name(row["reader"]),
                    f"{seen_C[c]:,}",
                    _percent(right / seen_C[c]),
                    _shown(row["confused_with"][c]),
                )
                found.append((wrong, cells))
    found.sort(key=lambda item: -item[0])
    header = ("Letter", "Reader", "Last windows that have it", "Named rightly", "Most often mistaken for")
    caption = "Letters that last windows get wrong, most errors first; the others are always right."
    return Table(caption, header, [cells for _, cells in found])


def _soft_table(soft: list[Row]) -> Table:
    cells = [
        (
            f"{row['start']} to {row['start'] + row['window'] - 1}",
            _reader_name(row["reader"]),
            f"{row['temperature']:g}",
            f"{row['on_truth']:.3f}",
        )
        for row in soft
    ]
    header = ("Symbols", "Reader", "Temperature", "Probability of the truth")
    return Table("Mean probability that the soft keys give to what a letter stands for", header, cells)
