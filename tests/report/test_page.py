"""The page carries everything inside itself, and says what is beside what."""

import ast
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import lexinvariant.report.page
from lexinvariant.errors import UserError
from lexinvariant.experiments.rows import Provenance, RowWriter, read_rows
from lexinvariant.report.figures import (
    COLOURS,
    DASHES,
    INK,
    MARKERS,
    Drawing,
    Theme,
    label,
    save,
    series_style,
    shared_legend,
)
from lexinvariant.report.page import SECTIONS, write_report
from lexinvariant.report.theory import drawings, smoothed_perplexity

pytestmark = pytest.mark.xdist_group("report")  # one worker, so that the page is made once

GRID = [1, 4, 16, 64]
WHERE = Provenance("theory", seed=0, command="lexinvariant experiment theory <&> --quick", data_hash="abc")


def fill(folder: Path, *, model: bool = False) -> None:
    """A small set of rows of every kind."""
    falling = [1.0, 0.5, 0.25, 0.125]
    with RowWriter(folder / "theory.jsonl", WHERE) as writer:
        for name in ("markov", "ngram", "near", "symmetric"):
            for d in (3, 5):
                writer.write(
                    "convergence", language=name, label=name, d=d, texts=2, context=GRID,
                    l1_mean=[0.0] * 4 if (name, d) == ("symmetric", 3) else falling, l1_max=falling,
                    entropy_mean=falling, delta=0.05, bound_sharp=[2, 2, 1, 0.5],
                    bound_expected=[2, 1, 0.5, 0.3],
                )  # fmt: skip
            writer.write("exponents", language=name, in_T={3: -0.9, 5: -0.8}, in_d=None, fitted_from=4)
        writer.write("exponents", language="worst", in_T={2: -0.49}, in_d=0.61, fitted_from=4)
        writer.write("worst", d=2, context=GRID, l1_mean=falling, texts=5, bound_expected=[2, 1, 0.6, 0.4])
        epsilon = {"printed": [2, 2, 2, 1], "repaired": [2, 2, 1.5, 1], "sharp": falling}
        needed = {"printed": 10**12, "repaired": 10**11, "sharp": 12345}
        writer.write("bound", d=8, delta=0.05, context=GRID, epsilon=epsilon, context_for_tenth=needed)
        nats = np.linspace(3.3, 1.25, 40)
        limit = {"d": 27, "order": 3, "particles": 64, "key_surprise": nats}
        writer.write("limit", text=0, nats=nats, known_nats=nats - 0.5, **limit)
        if model:
            writer.write("model", text=0, nats=nats + 0.1, name="tiny")
        writer.write(
            "bench", what="enumeration", d=8, length=512, keys=40320, wall_seconds=2.4, bar_seconds=5.0
        )


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Page]:
    folder = tmp_path_factory.mktemp("rows")
    fill(folder, model=True)
    path = write_report(folder)
    return path, Page(path.read_text())


def test_it_is_self_contained(page: tuple[Path, Page]) -> None:
    path, parsed = page
    sources = [a.get("src") or a.get("srcset") or "" for tag, a in parsed.tags if tag in ("img", "source")]
    assert len(sources) == 10  # five figures, light and dark
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in parsed.tags}
    assert not re.search(r'(?:src|href)="https?:', path.read_text())


def test_it_is_accessible(page: tuple[Path, Page]) -> None:
    _, parsed = page
    assert all(len(a["alt"] or "") > 40 for tag, a in parsed.tags if tag == "img")
    assert ("html", {"lang": "en"}) in parsed.tags
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("figcaption") == 5
    assert tags.count("caption") == tags.count("table")
    assert {a["scope"] for tag, a in parsed.tags if tag == "th"} == {"row", "col"}
    assert "prefers-color-scheme: dark" in page[0].read_text()


def test_our_numbers_stand_beside_the_papers(page: tuple[Path, Page]) -> None:
    text = " ".join(page[1].words)
    for number in ("-0.49 (d=2)", "-0.25", "0.61", "12,345", "1,000,000,000,000", "3.38", "2.00", "2.4 s"):
        assert number in text
    nats = np.linspace(3.3, 1.25, 40)
    assert f"{np.exp(nats[-10:].mean()):.2f}" in text
    assert "trained model" in text.lower()
    assert "lexinvariant experiment theory <&> --quick" in text  # escaped, and shown as typed


def test_figures_are_also_files(page: tuple[Path, Page]) -> None:
    folder = page[0].parent / "figures"
    for name in ("convergence", "entropy", "worst", "bounds", "limit"):
        assert (folder / f"theory-{name}.svg").read_bytes().startswith(b"<?xml")
        assert (folder / f"theory-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_rows_give_the_same_figure(page: tuple[Path, Page], tmp_path: Path) -> None:
    drawing = next(d for d in drawings(read_rows(page[0].parent)) if d.name == "theory-worst")
    saved = save(drawing, tmp_path)
    assert saved.svg_light == (page[0].parent / "figures" / "theory-worst.svg").read_bytes()
    assert saved.svg_dark == (page[0].parent / "figures" / "theory-worst.dark.svg").read_bytes()


def test_without_rows_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no folder"):
        write_report(tmp_path / "none")
    with pytest.raises(UserError, match="no rows of a known experiment"):
        write_report(tmp_path)


def test_a_section_is_one_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RowWriter(tmp_path / "other.jsonl", Provenance("other", seed=0, command="")) as writer:
        writer.write("point", n=1)
    extra = lexinvariant.report.page.Section("Added later", ["One paragraph."])
    monkeypatch.setattr(lexinvariant.report.page, "SECTIONS", [*SECTIONS, lambda rows: extra])
    assert "<h2>Added later</h2>" in write_report(tmp_path).read_text()


def test_series_differ_without_colour() -> None:
    looks = [series_style(index, "light") for index in range(6)]
    assert len({(str(look["linestyle"]), look["marker"]) for look in looks}) == 6
    assert len(set(map(str, DASHES))) == len(set(MARKERS)) == len(set(COLOURS["dark"])) == 6


def test_each_theme_has_its_own_colours(tmp_path: Path) -> None:
    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for index in range(6):
            axes.plot([0, 1], [index, 1], label=str(index), **series_style(index, theme))
        label(axes, "title", "x (units)", "y (units)")
        shared_legend(figure)

    saved = save(Drawing("one", "alt", "caption", draw), tmp_path)
    light, dark = saved.svg_light.decode().lower(), saved.svg_dark.decode().lower()
    for here, there, mine, other in ((light, dark, "light", "dark"), (dark, light, "dark", "light")):
        for colour in (*COLOURS[mine], *INK[mine]):
            assert colour in here, (mine, colour)
            assert colour not in there, (other, colour)


def test_smoothed_perplexity_is_the_papers_moving_average() -> None:
    nats = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]])
    np.testing.assert_allclose(smoothed_perplexity(nats, 2), np.exp([2.0, 3.0, 4.0]))
    np.testing.assert_allclose(smoothed_perplexity(nats, 100), np.exp([3.0]))


def test_report_and_theory_do_not_import_jax() -> None:
    code = (
        "import sys, lexinvariant.report.page, lexinvariant.experiments.theory, lexinvariant.theory; "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    source = Path(lexinvariant.report.page.__file__).parent
    for file in [*source.glob("*.py"), *(source.parent / "theory").glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "jax" for name in names), file


def test_a_legend_of_many_long_names_stays_inside_the_figure() -> None:
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for index in range(6):
        axes.plot([0, 1], [index, 0], label=f"run {index}: with a long name", **series_style(index, "light"))
    shared_legend(figure)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
