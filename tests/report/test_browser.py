"""The report in a real Chromium: nothing is cut off, on a phone, a tablet, a desk and on paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.report.page import write_report

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the browser's driver is missing: pip install playwright"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here: apt install chromium"),
    pytest.mark.xdist_group("report"),
]
CUT_OFF = """() => [...document.querySelectorAll("main *")]
    .filter(e => !e.closest("thead") && !e.closest("svg") && e.checkVisibility())
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.tagName + ": " + e.textContent.trim().slice(0, 60))"""


@pytest.fixture(scope="module")
def address(rows: Path) -> str:
    return write_report(rows).resolve().as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_cut_off_at_the_right_edge(browser: Any, address: str, width: int, theme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
    page.goto(address)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert page.evaluate(CUT_OFF) == []
    assert page.locator("h1").is_visible()
    ink, paper = page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    assert ink != paper
    page.close()


def test_the_first_screen_answers_the_question(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    first = page.locator(".findings tbody tr:not(.part)").first
    assert first.bounding_box()["y"] < 400
    assert "3.38" in first.text_content() and "not comparable" in first.text_content()
    box = first.locator("svg polyline").bounding_box()
    assert box["width"] > 50 and box["height"] > 5  # the small figure is really there
    page.get_by_role("link", name="Provenance").click()
    assert page.evaluate("location.hash") == "#provenance"
    page.close()


def test_a_phone_has_its_cells_under_their_names(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(address)
    cell = page.locator(".findings td[data-label=Ours]").first
    assert (
        page.evaluate("cell => getComputedStyle(cell, '::before').content", cell.element_handle()) == '"Ours"'
    )
    assert page.locator("thead").first.bounding_box()["height"] <= 2
    page.close()


def test_paper_gets_all_of_it(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
