"""Figures and tables of the synthetic reasoning tasks: the newest run of every corpus and vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lexinvariant.experiments.rows import Row, latest_of_each
from lexinvariant.report.figures import COLOURS, GREY, Drawing, Theme, label, series_style
from lexinvariant.report.section import Section, Table

TASKS = ("LookUp", "Permutation")
DRAWN = {"even": "drawn evenly", "frequency": "drawn by frequency"}
MODELS = {True: "lexinvariant", False: "standard"}
STANDS_FOR = {"wiki": "Wiki-40B", "code": "Github"}
"""The paper's corpus that training data of this name is compared with; all other data with the Pile."""
GUESS = "any value of the table"
LINE_END = "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"


class Paper(NamedTuple):
    """One line of the paper's tables, in percent."""

    corpus: str
    vocab: str
    lookup_standard: float
    lookup_lexinvariant: float
    permutation_standard: float
    permutation_lexinvariant: float

    def accuracy(self, task: str, lexinvariant: bool) -> float:
        by_model = {"LookUp": self[2:4], "Permutation": self[4:6]}[task]
        return float(by_model[int(lexinvariant)])


PAPER = {
    "even": (
        Paper("Pile", "char", 48.50, 91.80, 27.66, 59.35),
        Paper("Pile", "32k", 21.45, 92.10, 22.84, 55.63),
        Paper("Wiki-40B", "char", 38.25, 59.70, 20.77, 60.51),
        Paper("Wiki-40B", "32k", 8.75, 59.35, 9.94, 50.91),
        Paper("Github", "char", 42.40, 86.65, 21.03, 71.59),
        Paper("Github", "32k", 4.25, 80.20, 8.59, 67.39),
    ),
    "frequency": (
        Paper("Pile", "char", 72.80, 90.95, 40.63, 60.47),
        Paper("Pile", "32k", 61.20, 90.95, 40.55, 54.55),
        Paper("Wiki-40B", "char", 75.55, 63.45, 42.71, 59.86),
        Paper("Wiki-40B", "32k", 41.05, 57.95, 26.81, 51.86),
        Paper("Github", "char", 66.00, 86.75, 36.62, 70.77),
        Paper("Github", "32k", 59.25, 78.45, 37.46, 65.04),
    ),
}
"""Accuracies of the paper: `even` in its section "Synthetic Reasoning Tasks", `frequency` in its appendix "Synthetic
Reasoning Task". Models of 150M parameters, 1,000 examples."""


def section(rows: list[Row]) -> Section | None:
    """The synthetic reasoning tasks, where their rows are there."""
    tasks = latest_of_each(rows, "synthetic", "task", "group")
    sweep = latest_of_each(rows, "synthetic", "sweep", "group")
    if not tasks:
        return None
    drawings = [_bars(tasks)]
    drawings += [_sweep(group) for group in _by_group(sweep).values()]
    return Section("Synthetic reasoning tasks", _paragraphs(tasks), drawings, _tables(tasks))


def _by_group(rows: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def _vocab(row: Row) -> str:
    return "char" if row["characters"] else "32k"


def _beside(row: Row) -> Paper:
    """The paper's line for the corpus that ours stands in for, with the same kind of vocabulary."""
    corpus = STANDS_FOR.get(row["label"], "Pile")
    return next(line for line in PAPER[row["drawn"]] if (line.corpus, line.vocab) == (corpus, _vocab(row)))


def _find(rows: list[Row], task: str, drawn: str, lexinvariant: bool) -> Row | None:
    wanted = (task, drawn, lexinvariant)
    return next((r for r in rows if (r["task"], r["drawn"], r["lexinvariant"]) == wanted), None)


def _setting(row: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in row["setting"].items())


def _paragraphs(tasks: list[Row]) -> list[str]:
    settings = sorted({f"{row['task']}: {_setting(row)}" for row in tasks})
    symbols = sorted({f"{row['symbols']:,} of {row['vocab']}" for row in tasks})
    taught = {row["group"]: row["records_share"] for row in tasks if row.get("records_share", 0) > 0}
    paragraphs = [
        "In LookUp a table of arrows is given (A->2, C->4, G->5, one a line) and then a key again (C->), and its value "
        "should follow. In Permutation sequences are rewritten in one and the same way (A 2 C->C A), and one more is "
        "to be (4 1 D->). The symbols mean nothing, so that nothing but the context can help. The model writes its "
        "answer greedily, token by token and with the separators; the accuracy is the share of the answers' symbols "
        "that are right at their place, separators not counted. A wrong symbol stays in the text and can spoil those "
        "after it.",
        "The paper gives no table sizes and no numbers of demonstrations. Used here are those of the examples that it "
        f"prints ({'; '.join(settings)}), so the numbers stand side by side but are not of the same test; the sweep "
        "shows how much the sizes matter. All LookUp accuracies of the paper are multiples of 0.05%, as if 2,000 "
        "tokens had been counted in its 1,000 examples, where this form of the task has one symbol an answer; should "
        "the second have been the line end, its numbers compare to the column with separators.",
        f"Symbols ({'; '.join(symbols)}) are printable and have no character of a separator; keys of a table differ, "
        "and so do the symbols of a sequence, while values are drawn freely. Intervals are Wilson's at 95%, and an "
        "example counts as one trial. Lexicons averaged over: "
        f"{' or '.join(str(n) for n in sorted({row['draws'] for row in tasks}))}.",
    ]
    if taught:
        shares = "; ".join(f"{share:.1%} for {group}" for group, share in taught.items())
        paragraphs.append(
            f"Made-up records were part of the text that some models were trained on ({shares}). They teach the form "
            "of both tasks, so that these models' accuracies do not tell what a model of text picks up by itself, as "
            "the paper's do."
        )
    return paragraphs


def _percent(row: Row | None) -> str:
    return (
        f"{row['accuracy']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        if row is not None
        else "not measured"
    )


def _times(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.1f}x" if theirs > 0 else "no finite ratio"


def _ratio(rows: list[Row], task: str, drawn: str) -> str:
    pair = _find(rows, task, drawn, True), _find(rows, task, drawn, False)
    return _times(pair[0]["accuracy"], pair[1]["accuracy"]) if pair[0] and pair[1] else ""


def _tables(tasks: list[Row]) -> list[Table]:
    header = (
        "Trained on, vocabulary",
        *(f"{t} {what}" for t in TASKS for what in ("standard", "lexinvariant", "ratio")),
    )
    tables = []
    for drawn, words in DRAWN.items():
        groups = {
            name: rows for name, rows in _by_group(tasks).items() if any(r["drawn"] == drawn for r in rows)
        }
        if not groups:
            continue
        cells = []
        for name, rows in groups.items():
            cells.append((f"ours: {name}", *(cell for task in TASKS for cell in _ours(rows, task, drawn))))
        for line in PAPER[drawn]:
            theirs = [(line.accuracy(task, False), line.accuracy(task, True)) for task in TASKS]
            cells.append(
                (
                    f"paper: {line.corpus}, {line.vocab}",
                    *(cell for s, li in theirs for cell in (f"{s:.2f}%", f"{li:.2f}%", _times(li, s))),
                )
            )
        cells.append(("mean ratio", *_mean_ratios(groups, drawn)))
        tables.append(Table(f"Accuracy with symbols {words}, ours and the paper's", header, cells))
    return [*tables, _positions(tasks), _written(tasks)]


def _ours(rows: list[Row], task: str, drawn: str) -> tuple[str, str, str]:
    standard, lexinvariant = _find(rows, task, drawn, False), _find(rows, task, drawn, True)
    return _percent(standard), _percent(lexinvariant), _ratio(rows, task, drawn)


def _mean_ratios(groups: dict[str, list[Row]], drawn: str) -> tuple[str, ...]:
    cells: list[str] = []
    for task in TASKS:
        paper = np.mean([line.accuracy(task, True) / line.accuracy(task, False) for line in PAPER[drawn]])
        ours = [
            li["accuracy"] / standard["accuracy"]
            for rows in groups.values()
            if (li := _find(rows, task, drawn, True))
            and (standard := _find(rows, task, drawn, False))
            and standard["accuracy"] > 0
        ]
        mine = f", ours {np.mean(ours):.1f}x" if ours else ""
        cells += ["", "", f"paper {paper:.1f}x{mine}"]
    return tuple(cells)


def _positions(tasks: list[Row]) -> Table:
    most = max(len(row["by_position"]) for row in tasks)
    header = (
        "Task, symbols, model",
        *(f"symbol {i + 1}" for i in range(most)),
        "all symbols of the answer",
        "with separators",
        "symbols taken from the prompt",
        "wrong: another line's answer",
    )
    cells = []
    for row in tasks:
        shares = [f"{share:.1%}" for share in row["by_position"]]
        cells.append(
            (
                f"{row['task']}, {DRAWN[row['drawn']]}, {row['name']} ({MODELS[row['lexinvariant']]})",
                *shares,
                *[""] * (most - len(shares)),
                f"{row['whole']:.1%}",
                f"{row['with_separators']:.1%}",
                f"{row['from_prompt']:.1%}",
                f"{row['copied']:.1%}",
            )
        )
    return Table("Accuracy by position in the answer, and of whole answers", header, cells)


def _written(tasks: list[Row]) -> Table:
    def shown(text: str) -> str:
        return text.replace("\n", LINE_END)

    cells = [
        (f"{row['task']}, {row['name']}", shown(e["prompt"]), shown(e["answer"]), shown(e["written"]))
        for row in tasks
        if row["drawn"] == "even"
        for e in row["shown"][:3]
    ]
    caption = f"The first examples ({LINE_END} is a line end)"
    return Table(caption, ("Task, model", "Prompt", "Right answer", "Written"), cells)


def _bars(tasks: list[Row]) -> Drawing:
    groups = _by_group(tasks)

    def draw(figure: Figure, theme: Theme) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(groups), sharey=True))
        for axes, (name, rows) in zip(panels, groups.items(), strict=True):
            _bar_panel(axes, rows, theme)
            label(axes, name, "", "")
        panels[0].set_ylabel("answer symbols right (%)")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4)

    said = "; ".join(
        f"{row['name']} {row['task']} {DRAWN[row['drawn']]} {row['accuracy']:.1%}" for row in tasks
    )
    return Drawing(
        "synthetic-accuracy",
        f"Bars of the accuracy of each model in LookUp and Permutation, beside the paper's. Ours: {said}.",
        "Accuracy in LookUp and Permutation, with symbols drawn evenly or by frequency, with 95% intervals; hatched "
        "bars are the paper's (the corpus that ours stands in for, the same kind of vocabulary), whose table sizes and "
        "numbers of demonstrations are not known.",
        draw,
        (max(8.0, 5.0 * len(groups)), 4.8),
    )


def _bar_panel(axes: Axes, rows: list[Row], theme: Theme) -> None:
    pairs = [
        (task, drawn)
        for drawn in DRAWN
        for task in TASKS
        if _find(rows, task, drawn, True) or _find(rows, task, drawn, False)
    ]
    width = 0.2
    for index, lexinvariant in enumerate((True, False)):
        colour = COLOURS[theme][index]
        for x, (task, drawn) in enumerate(pairs):
            # A label once a series, and a place kept for what was not measured.
            first = x == 0
            place = x + (2 * index - 1.5) * width
            paper = _beside(rows[0] | {"drawn": drawn}).accuracy(task, lexinvariant)
            row = _find(rows, task, drawn, lexinvariant)
            if row is not None:
                height = 100 * row["accuracy"]
                reach = [[height - 100 * row["low"]], [100 * row["high"] - height]]
                axes.bar(place, height, width, color=colour, label=MODELS[lexinvariant] if first else None)
                axes.errorbar(
                    place, height, np.maximum(reach, 0), color=GREY[theme], capsize=3, linewidth=1.2
                )
                axes.text(place, 100 * row["high"] + 1, f"{height:.1f}", ha="center", fontsize=7.5)
            axes.bar(
                place + width,
                paper,
                width,
                facecolor="none",
                edgecolor=colour,
                hatch="///",
                label=f"{MODELS[lexinvariant]}, paper" if first else None,
            )
            axes.text(place + width, paper + 1, f"{paper:.1f}", ha="center", fontsize=7.5)
    axes.set_xticks(range(len(pairs)), [f"{task}\n{drawn}" for task, drawn in pairs])
    axes.set_ylim(0, 105)
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)


def _sweep(rows: list[Row]) -> Drawing:
    models = [flag for flag in (True, False) if any(row["lexinvariant"] == flag for row in rows)]
    lookup = [row for row in rows if row["task"] == "LookUp"]
    permutation = [row for row in rows if row["task"] == "Permutation"]

    def draw(figure: Figure, theme: Theme) -> None:
        panels = np.atleast_1d(figure.subplots(1, 1 + len(models), sharey=True))
        for flag in models:
            mine = [row for row in lookup if row["lexinvariant"] == flag]
            _line(panels[0], mine, "pairs", MODELS[flag], 0 if flag else 1, theme)
        pairs = np.array(sorted({row["setting"]["pairs"] for row in lookup}), float)
        if len(pairs):
            panels[0].plot(pairs, 100 / pairs, color=GREY[theme], linestyle=(0, (2, 2)), label=GUESS)
        _axis(panels[0], "LookUp", "lines of the table", sorted({row["setting"]["pairs"] for row in lookup}))
        for axes, flag in zip(panels[1:], models, strict=True):
            mine = [row for row in permutation if row["lexinvariant"] == flag]
            for index, length in enumerate(sorted({row["setting"]["length"] for row in mine})):
                line = [row for row in mine if row["setting"]["length"] == length]
                name = f"{length} symbols, answer of {line[0]['setting']['answer']}"
                _line(axes, line, "demonstrations", name, index + len(MODELS), theme)
            ticks = sorted({row["setting"]["demonstrations"] for row in mine})
            _axis(axes, f"Permutation, {MODELS[flag]}", "demonstrations", ticks)
        panels[0].set_ylabel("answer symbols right (%)")
        for axes in panels:
            axes.set_ylim(-2, 102)
            # Measured lines first: their error bars would put them behind the plain line.
            named = sorted(
                zip(*axes.get_legend_handles_labels(), strict=True), key=lambda pair: pair[1] == GUESS
            )
            axes.legend(*zip(*named, strict=True), loc="upper center", bbox_to_anchor=(0.5, -0.14))

    ends = "; ".join(f"{row['name']} {row['task']} {_setting(row)}: {row['accuracy']:.0%}" for row in rows)
    return Drawing(
        "synthetic-sweep-" + "".join(c if c.isalnum() else "-" for c in rows[0]["group"]),
        f"Accuracy in LookUp by lines of the table and in Permutation by demonstrations. {ends}.",
        f"How the sizes that the paper leaves open change the accuracy ({rows[0]['group']}; {rows[0]['examples']} "
        "examples a point, symbols drawn evenly, 95% intervals). Dotted: what guessing among the table's values "
        "would give.",
        draw,
        (4.2 * (1 + len(models)), 5.4),
    )


def _line(axes: Axes, rows: list[Row], by: str, name: str, index: int, theme: Theme) -> None:
    if not rows:
        return
    rows = sorted(rows, key=lambda row: row["setting"][by])
    x = [row["setting"][by] for row in rows]
    y = 100 * np.array([row["accuracy"] for row in rows])
    reach = np.abs(100 * np.array([[row["low"] for row in rows], [row["high"] for row in rows]]) - y)
    style = series_style(index, theme)
    style.pop("markevery")
    axes.errorbar(x, y, reach, label=name, capsize=2.5, elinewidth=1, **style)


def _axis(axes: Axes, title: str, x: str, ticks: list[int]) -> None:
    label(axes, title, x, "")
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
