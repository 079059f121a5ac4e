"""The page carries everything inside itself, and says what is beside what."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lexinvariant.report.page
from lexinvariant.errors import UserError
from lexinvariant.experiments import registry
from lexinvariant.report.markdown import fill_document, write_markdown
from lexinvariant.report.page import LONGEST_OPEN_TABLE, thumbnail, write_report
from lexinvariant.results.section import Finding, Section, Table

pytestmark = pytest.mark.xdist_group("report")  # one worker, so that the page is made once


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
def page(rows: Path) -> tuple[Path, Page]:
    path = write_report(rows)
    return path, Page(path.read_text())


def test_it_is_self_contained(page: tuple[Path, Page]) -> None:
    path, parsed = page
    sources = [a.get("src") or a.get("srcset") or "" for tag, a in parsed.tags if tag in ("img", "source")]
    assert len(sources) == 6  # three figures, light and dark
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in parsed.tags}
    assert not re.search(r'(?:src|href)="https?:', path.read_text())


def test_it_is_accessible(page: tuple[Path, Page]) -> None:
    _, parsed = page
    assert all(len(a["alt"] or "") > 40 for tag, a in parsed.tags if tag == "img")
    assert ("html", {"lang": "en"}) in parsed.tags
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("figcaption") == 3
    assert tags.count("caption") == tags.count("table")
    assert {a["scope"] for tag, a in parsed.tags if tag == "th"} == {"row", "rowgroup", "col"}
    assert "prefers-color-scheme: dark" in page[0].read_text()


def test_it_begins_with_what_the_paper_found_and_what_we_found(page: tuple[Path, Page]) -> None:
    text = " ".join(" ".join(page[1].words).split())
    assert text.index("Does it reproduce the paper?") < text.index("Contents")
    assert "Numbers that the paper gives: 1 not reached, 2 not comparable." in text
    for words in ("Perplexity at the end of the context (prose)", "3.38", "3.30", "reached", "2.00", "1.69"):
        assert words in text[: text.index("Contents")]
    assert (
        "lexinvariant experiment convergence" in text[text.index("Every run whose rows are in this folder") :]
    )
    assert "code <&> more" in text  # escaped, and shown as typed


def test_contents_lead_to_the_sections(page: tuple[Path, Page]) -> None:
    places = {a["id"] for _, a in page[1].tags if a.get("id")}
    links = [a["href"] or "" for tag, a in page[1].tags if tag == "a"]
    assert len(links) == 3  # of the summary, and of the contents
    assert {link.removeprefix("#") for link in links} <= places


def test_figures_are_also_files(page: tuple[Path, Page]) -> None:
    folder = page[0].parent / "figures"
    for name in ("convergence", "convergence-corpora", "convergence-gap"):
        assert (folder / f"{name}.svg").read_bytes().startswith(b"<?xml")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_without_rows_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no folder"):
        write_report(tmp_path / "none")
    with pytest.raises(UserError, match="no rows of a known experiment"):
        write_report(tmp_path)


def test_long_tables_are_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Path) -> None:
    def table(n: int) -> Table:
        return Table(f"table of {n}", ("n",), [(str(i),) for i in range(n)])

    extra = Section(
        "Added", ["One paragraph."], [], [table(LONGEST_OPEN_TABLE), table(LONGEST_OPEN_TABLE + 1)]
    )
    shown = Section("Shown", ["Another."], [], [])
    monkeypatch.setattr(lexinvariant.report.page, "read_sections", lambda folder: ([], [extra, shown]))
    text = write_report(tmp_path).read_text()
    assert text.count("<details>") == 1
    assert f"{LONGEST_OPEN_TABLE + 1} rows: table of {LONGEST_OPEN_TABLE + 1}</summary>" in text
    assert "Does it reproduce the paper?" not in text  # where nothing can be compared


def test_small_figures_hold_the_papers_number() -> None:
    finding = Finding("m", 2.0, 1.0, ".1f", curve=[5.0, 3.0, 1.0])
    small = thumbnail(finding)
    assert small.points.split() == ["0.0,3.0", "72.0,21.0", "144.0,39.0"]
    assert small.paper_y == pytest.approx(30.0)
    bars = thumbnail(replace(finding, curve=()))
    assert bars.ours_width == pytest.approx(bars.paper_width / 2)


def test_tables_as_markdown(rows: Path, tmp_path: Path) -> None:
    text = write_markdown(rows).read_text()
    assert "| Perplexity at the end of the context (prose) | 3.38 | 3.30 | not comparable |" in text
    assert "## Convergence to standard language models" in text
    document = tmp_path / "results.md"
    start, end = "<!-- table: summary -->\n", "<!-- end -->"
    document.write_text(f"Before.\n\n{start}old\n{end}\n\nAfter.\n")
    assert fill_document(rows, document) == 1
    filled = document.read_text()
    assert filled.startswith(
        "Before.\n\n<!-- table: summary -->\n| Part | Measure | Paper | Ours | Verdict | Note |\n"
        "| --- | --- | ---: | ---: | --- | --- |"
    )
    assert filled.endswith("|\n<!-- end -->\n\nAfter.\n") and "old" not in filled
    assert fill_document(rows, document) == 1
    assert document.read_text() == filled  # nothing changes the second time
    document.write_text(f"<!-- table: nonsense-1 -->\n{end}")
    with pytest.raises(UserError, match="asks for the table 'nonsense-1'"):
        fill_document(rows, document)
    document.write_text("Nothing but words.\n")
    with pytest.raises(UserError, match="has no place for a table"):
        fill_document(rows, document)


def test_every_experiment_has_rows_and_a_section_of_its_own() -> None:
    kinds = [(kind.experiment, kind.kind) for e in registry.EXPERIMENTS for kind in e.row_kinds]
    assert len(set(kinds)) == len(kinds)
    for experiment in registry.EXPERIMENTS:
        assert experiment.row_kinds
        assert {kind.experiment for kind in experiment.row_kinds} == {experiment.name}
        assert experiment.section(registry.Rows([])) is None


def test_report_results_and_theory_do_not_import_jax() -> None:
    code = (
        "import sys, lexinvariant.report.page, lexinvariant.experiments.theory, lexinvariant.theory; "
        "from lexinvariant.experiments.registry import EXPERIMENTS; [e.row_kinds for e in EXPERIMENTS]; "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    source = Path(lexinvariant.report.page.__file__).parents[1]
    for file in [file for room in ("report", "results", "theory") for file in (source / room).glob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "jax" for name in names), file


def test_a_document_is_filled_whole_and_keeps_its_line_ends(rows: Path, tmp_path: Path) -> None:
    document = tmp_path / "results.md"
    document.write_bytes(b"Before.\r\n<!-- table: summary -->\r\n<!-- end -->\r\n")
    assert fill_document(rows, document) == 1
    filled = document.read_bytes()
    assert filled.count(b"\n") == filled.count(b"\r\n") > 4
    document.write_bytes(b"\xff")
    with pytest.raises(UserError, match="is not UTF-8"):
        fill_document(rows, document)
    pipe = tmp_path / "pipe.md"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="not a regular file: give a Markdown document"):
        fill_document(rows, pipe)
