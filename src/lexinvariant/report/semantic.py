"""Figures and tables of semantic deciphering: the newest run of every text and vocabulary."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lexinvariant.experiments.rows import Row, latest_of_each
from lexinvariant.report.figures import GREY, Drawing, Theme, label, series_style, shared_legend
from lexinvariant.report.section import Section, Table

CHANCE = 0.25
PAPER_ANSWER, PAPER_CONTINUATION = "coffee", " - coffee. and i"
"""What the paper's model (32k vocabulary, trained on the Pile) wrote after its one example: its section "Semantic
Deciphering", in full in the appendix "Semantic Deciphering Full Example"."""
MODELS = {True: "lexinvariant", False: "standard"}
COUNTS = ("once", "twice", "3 times or more")
PASSAGES = {"paper": "the paper's passage", "ours": "a passage of our own, same options"}


def section(rows: list[Row]) -> Section | None:
    """Semantic deciphering, where its rows are there."""
    accuracies = latest_of_each(rows, "semantic", "accuracy", "group")
    if not accuracies:
        return None
    shown = {row["run"] for row in accuracies}
    examples = [row for row in latest_of_each(rows, "semantic", "example", "group") if row["run"] in shown]
    drawings = [_drawing(group) for group in _by_group(accuracies).values()]
    tables = [_accuracy_table(accuracies), _example_table(examples), _place_table(accuracies)]
    return Section("Semantic deciphering", _paragraphs(accuracies), drawings, tables)


def _by_group(rows: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def _paragraphs(rows: list[Row]) -> list[str]:
    spelled = sorted({row["name"] for row in rows if row["characters"]})
    out = [
        "To a lexinvariant model every word is new in every text. The paper asks one after a short story which of four "
        "of its words is a drink, and it answers coffee. Here many such questions are asked, in the paper's wording: "
        "a passage in plain words, then one of its words of some category among three of its words of others. The "
        "option that the model finds likeliest next is its answer, by the likelihood of the mean token or of the whole "
        "option; a guess is right once in four, and options that tie for the best count in equal parts.",
        "A model need not understand a passage to do better than chance if the right word stands out by its number; so "
        "the table also tells how often the option that occurs most in the passage is right. In what a lexinvariant "
        "model writes freely, [new] is a symbol that it has not read: to it, all of those are one. Passages that do "
        "not have words of four categories were left out: "
        + "; ".join(f"{row['skipped']:,} of {row['passages']:,} ({row['name']})" for row in rows)
        + ".",
    ]
    if spelled:
        out.append(
            f"{' and '.join(spelled)} reads characters: it knows letters of the passage rather than words, and spells "
            "its answers out. This is not the paper's setting, which is a vocabulary of 32,000 tokens."
        )
    return out


def _share(value: float, interval: list[float]) -> str:
    return f"{value:.1%} ({interval[0]:.1%} to {interval[1]:.1%})"


def _accuracy_table(rows: list[Row]) -> Table:
    header = (
        "Model, text",
        "Questions",
        "By the mean token",
        "By the whole option",
        "Freely written: right",
        "Freely written: an option",
        "The most frequent option",
        "Chance",
    )
    cells = [
        (
            f"{row['name']} ({MODELS[row['lexinvariant']]}), {row['group']}",
            f"{row['questions']:,}",
            _share(row["accuracy"]["mean"], row["interval"]["mean"]),
            _share(row["accuracy"]["sum"], row["interval"]["sum"]),
            _share(row["free_right"], row["free_right_interval"]),
            f"{row['free_named']:.1%}",
            f"{row['most_frequent']:.1%}",
            f"{CHANCE:.0%}",
        )
        for row in rows
    ]
    return Table("Questions answered rightly, with Wilson's 95% intervals", header, cells)


def _example_table(rows: list[Row]) -> Table:
    header = ("Model, passage", "Log-probability of each option (nats a token)", "Answer", "Writes")
    cells = [("the paper's model, the paper's passage", "not told", PAPER_ANSWER, repr(PAPER_CONTINUATION))]
    for row in rows:
        who = f"{row['name']} ({MODELS[row['lexinvariant']]}), {PASSAGES[row['example']]}"
        if not row["fits"]:
            cells.append((who, f"does not fit the context ({row['prompt_tokens']:,} tokens)", "", ""))
            continue
        each = zip(row["options"], row["logp"], row["tokens"], strict=True)
        told = ", ".join(f"{option} {logp / n:.2f}" for option, logp, n in each)
        cells.append((who, told, row["options"][row["chosen"]], repr(row["written"])))
    return Table("The paper's one example: which of the four is a drink? Right is coffee.", header, cells)


def _place_table(rows: list[Row]) -> Table:
    cells = [
        (f"{row['name']}, {row['group']}", *(f"{share:.1%}" for share in row["chosen_by_place"]))
        for row in rows
    ]
    header = ("Model, text", "first", "second", "third", "fourth")
    return Table("Which place of the list is chosen (right answers are placed evenly)", header, cells)


def _drawing(rows: list[Row]) -> Drawing:
    def draw(figure: Figure, theme: Theme) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(5, 4))
        names = sorted({name for row in rows for name in row["by_category"]}, reverse=True)
        counts = [name for name in reversed(COUNTS) if any(name in row["by_count"] for row in rows)]
        _dots(left, rows, "by_category", names, theme)
        _dots(right, rows, "by_count", counts, theme)
        label(left, "By category asked for", "questions answered rightly (%)", "")
        label(right, "By occurrences of the right word", "questions answered rightly (%)", "")
        shared_legend(figure)

    first = rows[0]
    alt = "; ".join(
        f"{row['name']}: "
        + ", ".join(f"{name} {value['accuracy']:.0%}" for name, value in row["by_category"].items())
        for row in rows
    )
    return Drawing(
        "semantic-" + "".join(c if c.isalnum() else "-" for c in first["group"]),
        f"Accuracy by category and by how often the right word occurs in the passage. {alt}.",
        f"Share of questions answered rightly (by the likelihood of the mean token) with 95% intervals; the number of "
        f"questions stands beside each name. Dotted: chance, one in four. Text: {first['group']}.",
        draw,
        (9.5, 4.8),
    )


def _dots(axes: Axes, rows: list[Row], kind: str, names: list[str], theme: Theme) -> None:
    """One line a name, one dot and interval a model."""
    place_of = {name: place for place, name in enumerate(names)}
    for index, row in enumerate(rows):
        mine = [(name, value) for name, value in row[kind].items() if name in place_of]
        y = [place_of[name] + 0.18 * ((len(rows) - 1) / 2 - index) for name, _ in mine]
        x = 100 * np.array([value["accuracy"] for _, value in mine])
        ends = 100 * np.array([[value["low"] for _, value in mine], [value["high"] for _, value in mine]])
        style = series_style(index, theme) | {"linestyle": "none", "markersize": 6.5}
        style.pop("markevery")
        name = f"{row['name']} ({MODELS[row['lexinvariant']]})"
        axes.errorbar(x, y, xerr=np.abs(ends - x), label=name, capsize=3, elinewidth=1.3, **style)
    axes.axvline(100 * CHANCE, label="chance", color=GREY[theme], linestyle=(0, (2, 2)), linewidth=1.4)
    numbers = [max(row[kind].get(name, {"questions": 0})["questions"] for row in rows) for name in names]
    axes.set_yticks(range(len(names)), [f"{name} ({n})" for name, n in zip(names, numbers, strict=True)])
    axes.set_xlim(-2, 102)
    axes.set_ylim(-0.6, len(names) - 0.4)
