"""What the documents tell readers to do works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lexinvariant import __version__
from lexinvariant.report.markdown import fill_document

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.slow
def test_the_python_tutorial_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(blocks) >= 8
    (tmp_path / "tutorial.py").write_text("\n".join(blocks))
    environment = dict(os.environ)
    del environment["XLA_FLAGS"]  # a user has one device, and a compiler whose programs run faster
    run = subprocess.run(
        [sys.executable, "tutorial.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"[5-9]\d% of the characters of other texts are named correctly", run.stdout), run.stdout


def test_the_tables_of_the_results_are_those_of_the_rows(tmp_path: Path) -> None:
    document, copy = ROOT / "docs" / "results.md", tmp_path / "results.md"
    copy.write_text(document.read_text())
    assert fill_document(ROOT / "docs" / "rows", copy) >= 5
    assert copy.read_text() == document.read_text(), (
        "run `lexinvariant report docs/rows --fill docs/results.md`"
    )


def test_examples_of_answers_are_of_this_version() -> None:
    shown = re.findall(r'"version": "([^"]*)"', (ROOT / "docs" / "api.md").read_text())
    assert shown == [__version__]


def test_every_promise_is_held_by_a_test_that_exists() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    rows = [row for row in text.partition("## Measured")[0].splitlines() if row.startswith("| ")]
    promises = [row for row in rows if not row.startswith(("| promise", "| ---"))]
    assert len(promises) >= 30
    for row in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for file, name in named:
            assert re.search(rf"def {name}\(", (ROOT / file).read_text("utf-8")), f"{file} has no {name}"


def prose(document: Path) -> str:
    return re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)


def anchors(document: Path) -> set[str]:
    """Those that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in LINK.findall(prose(document)):
        place = document.parent / target if target else document
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), f"{target}#{anchor}"
