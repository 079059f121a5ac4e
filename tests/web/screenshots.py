"""Takes the pictures of the page that stand in the docs: python tests/web/screenshots.py --model MODEL

Starts `lexinvariant serve`, opens it in the system's Chromium and writes page-light.png and page-dark.png (and, with
--phone, page-phone.png) to docs/figures. Look at them before keeping them.
"""

import argparse
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
LARGEST = 250_000
# name, example, share of the text that is read (1 is the solution), colours, width
PICTURES = (
    ("page-light", "message", 0.42, "light", 1280),
    ("page-dark", "bat", 0.8, "dark", 1280),
)
PHONE = ("page-phone", "shapes", 1.0, "light", 390)


def take(browser: Browser, url: str, wanted: tuple[str, str, float, str, int], out: Path) -> None:
    name, example, share, scheme, width = wanted
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{url}/#{example}")
    page.wait_for_selector("#rows button", timeout=300_000)
    page.wait_for_selector("body:not(.busy)", timeout=300_000)
    page.wait_for_selector(".health[data-status=ready]", timeout=600_000)
    page.evaluate(
        """share => {
          const slider = document.getElementById('slider');
          slider.value = Math.round(share * slider.max);
          slider.dispatchEvent(new Event('input'));
        }""",
        share,
    )
    path = out / f"{name}.png"
    page.screenshot(path=str(path), full_page=True)
    context.close()
    with Image.open(path) as picture:
        few = with_few_colours(picture.convert("RGB"))
    few.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    assert size < LARGEST, f"{path} is larger than {LARGEST:,} bytes"


def with_few_colours(picture: Image.Image) -> Image.Image:
    """In 256 colours, a third of the bytes: the commonest as they are, and the rest, however rare, by its likes."""
    counted = picture.getcolors(picture.width * picture.height)
    colours = [colour for _, colour in sorted(counted, reverse=True)]
    common, rare = colours[:150], colours[150:]
    strip = Image.new("RGB", (max(1, len(rare)), 1))
    strip.putdata(rare or [(0, 0, 0)])
    kinds = strip.quantize(106, Image.Quantize.MAXCOVERAGE).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette([*(value for colour in common for value in colour), *kinds])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--out", type=Path, default=FIGURES)
    parser.add_argument("--phone", action="store_true")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "lexinvariant", "serve", "--port", "0", "--model", arguments.model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found, "the server did not start"
        try:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
            for picture in (*PICTURES, PHONE) if arguments.phone else PICTURES:
                take(browser, found[0], picture, arguments.out)
            browser.close()
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
