"""Learning curves, from the metrics.jsonl of runs."""

from pathlib import Path

from matplotlib.figure import Figure

from lexinvariant.report.figures import Drawing, Theme, label, save, series_style
from lexinvariant.text import MarkovLanguage
from lexinvariant.training.metrics import read_metrics


def demo_figure(folder: Path) -> Path:
    """The demo's two runs side by side; returns the picture's path."""
    tiny = read_metrics(folder / "tiny" / "metrics.jsonl")
    standard = read_metrics(folder / "standard" / "metrics.jsonl")
    language = MarkovLanguage()
    by_position = [row for row in tiny if row["kind"] == "valid"][-1]["loss_by_position"]

    def draw(figure: Figure, theme: Theme) -> None:
        learning, reading = figure.subplots(1, 2)
        for i, (name, rows) in enumerate(
            (("lexinvariant, 12 symbols", tiny), ("standard, stdlib", standard))
        ):
            train = [(row["step"], row["tail_loss"]) for row in rows if row["kind"] == "train"]
            learning.plot(*zip(*train, strict=True), label=name, **series_style(i, theme))
        label(learning, "Learning", "step", "loss at the end of the context (nats)")
        learning.set_ylim(bottom=0)
        learning.legend()

        reading.plot(by_position, label="lexinvariant model", **series_style(0, theme))
        limits = (
            ("knowing only how often symbols occur", language.unigram_entropy),
            ("knowing the language and every name", language.entropy_rate),
        )
        for i, (name, nats) in enumerate(limits, start=2):
            reading.axhline(nats, label=name, **series_style(i, theme) | {"marker": ""})
        label(reading, "Reading one renamed sequence", "position", "loss (nats)")
        reading.set_ylim(bottom=0)
        reading.legend(loc="lower left")

    drawing = Drawing(
        name="learning",
        alt="Loss of the two models by training step, and of the lexinvariant one by position in the sequence.",
        caption="The further a lexinvariant model reads, the better it knows what the symbols stand for.",
        draw=draw,
        size=(10.0, 4.2),
    )
    return save(drawing, folder).png
