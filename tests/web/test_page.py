"""The page in a real Chromium: the system's own, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from lexinvariant.decipher.classical import affine, columnar, polyalphabetic
from lexinvariant.text.letters import unspaced
from lexinvariant.web.examples import NOTE
from tests.decipher.test_which_alphabet import C

if TYPE_CHECKING:
    from tests.web.conftest import Site

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the browser's driver is missing: pip install playwright"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here: apt install chromium")
TEXT = "Ubzk zk rnz vfnvrl. Dcoo zd rl erl bfokv?"
SENTENCE = NOTE[: NOTE.index(".") + 1]  # it fits the model's context


def in_groups(letters: str, size: int = 5) -> str:
    return " ".join(letters[start : start + size] for start in range(0, len(letters), size))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def served_by() -> str:
    """Which server the page is of; tests of another one say so."""
    return "site"


@pytest.fixture
def visit(browser: Any, served_by: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens the page; afterwards nothing may have been complained about, and nothing asked of other hosts."""
    site: Site = request.getfixturevalue(served_by)
    contexts, complaints = [], []

    def visit(path: str = "/", **settings: Any) -> Any:
        context = browser.new_context(**{"reduced_motion": "reduce", **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on(
            "console",
            lambda message: message.type in ("error", "warning") and complaints.append(message.text),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: request.url.startswith(site.url) or complaints.append(request.url))
        page.on(
            "requestfailed",
            lambda request: "ERR_ABORTED" in request.failure or complaints.append(request.url),
        )
        page.goto(site.url + path)
        page.wait_for_selector(".chip")
        return page

    visit.complaints = complaints
    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def decipher(page: Any, text: str = TEXT, alphabet: str = "letters") -> None:
    page.fill("#text", text)
    page.select_option("#alphabet", alphabet)
    page.click("#go")
    settle(page)


def settle(page: Any) -> None:
    page.wait_for_selector(
        "body:not(.busy)"
    )  # a function would be a string to evaluate, which our policy forbids


def read(page: Any) -> str:
    """What the large letters of the text say."""
    return page.eval_on_selector_all("#stage b", "all => all.map(b => b.textContent).join('')")


def move(page: Any, position: int) -> None:
    page.locator("#slider").focus()
    page.evaluate(
        "at => { const s = document.getElementById('slider'); s.value = at; s.dispatchEvent(new Event('input')); }",
        position,
    )


def heat(page: Any) -> str:
    return page.evaluate("document.getElementById('map').toDataURL()")


def test_a_text_is_deciphered_and_the_slider_goes_back_in_time(visit: Any) -> None:
    page = visit()
    decipher(page)
    n = len(TEXT)
    assert page.get_attribute("#slider", "max") == str(n + 1)
    assert page.input_value("#slider") == str(n + 1)  # without motion, the solution stands there at once
    solution = page.inner_text("#plaintext")
    assert len(solution) == n
    assert solution[4] == " "
    assert page.inner_text("#moment").startswith(
        ("Solution", "No reading")
    )  # the text is short, and hardly English
    assert "The plaintext:" in page.inner_text("#news")
    rows = page.locator("#rows button").count()
    assert rows == len({c for c in TEXT.lower() if c.isalpha()})

    end = heat(page)
    move(page, 3)
    assert heat(page) != end
    assert page.inner_text("#moment").startswith("3 of")
    assert page.locator("#stage .cell.unread").count() == sum(c.isalpha() for c in TEXT[3:])
    assert page.get_attribute("#slider", "aria-valuetext") == page.inner_text("#moment")
    move(page, 0)
    assert read(page).lower() == "".join(TEXT.split()).lower()  # nothing is read: only the cipher is there


def test_playing_reads_on_and_ends_at_the_solution(visit: Any) -> None:
    page = visit(reduced_motion="no-preference")
    page.fill("#text", TEXT)
    page.click("#go")
    page.wait_for_selector("#play.playing")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    page.click("#play")
    at = int(page.input_value("#slider"))
    assert at <= len(TEXT)
    assert page.get_attribute("#play", "aria-label") == "Play"
    page.click("#play")
    page.wait_for_selector("body.solved")
    assert page.get_attribute("#play", "aria-label") == "Play"
    assert page.get_attribute("#solution", "aria-pressed") == "true"


def test_a_symbol_is_pinned_and_freed_again(visit: Any) -> None:
    page = visit()
    decipher(page)
    page.locator("#stage .cell", has_text="z").first.click()
    page.fill("#pin-to", "q")
    page.click(".pin button[type=submit]")
    page.wait_for_selector("#stage .cell.pinned")
    settle(page)
    pinned = page.locator("#stage .cell.pinned b").all_inner_texts()
    assert pinned == ["q"] * TEXT.count("z")
    assert (
        page.locator("#rows button[aria-pressed=true]").get_attribute("aria-label").startswith("z: q, pinned")
    )
    assert "1 pinned" in page.inner_text("#facts")
    assert "z pinned to q" in page.inner_text("#news")

    page.locator("#rows button").filter(has_text="k").first.click()
    page.fill("#pin-to", "q")
    page.click(".pin button[type=submit]")
    assert "z is already pinned to q" in page.inner_text("#inspector [role=alert]")

    page.locator("#stage .cell.pinned").first.click()
    page.get_by_role("button", name="Unpin", exact=True).click()
    page.wait_for_selector("#stage .cell.pinned", state="detached")
    assert page.locator("#stage .cell.pinned").count() == 0


def test_what_is_wrong_with_a_pin_is_said_beside_it(visit: Any) -> None:
    page = visit()
    page.fill("#crib-text", "This ")
    decipher(page)
    assert page.inner_text("#plaintext").startswith("This is")  # the known beginning
    page.locator("#stage .cell", has_text="z").first.click()
    page.fill("#pin-to", "q")
    page.click(".pin button[type=submit]")
    page.wait_for_selector("#inspector [role=alert]:not([hidden])")
    settle(page)
    assert "contradicts itself: z cannot be both" in page.inner_text("#inspector [role=alert]")
    assert page.locator("#stage .cell.pinned").count() == 0
    assert page.inner_text("#plaintext").startswith("This is")  # as before
    assert page.is_hidden("#trouble")
    visit.complaints.clear()  # the browser notes the answers of 422


def paste(page: Any, text: str) -> None:
    """As people do: over everything that stood there."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.focus("#text")
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")


def test_numbers_are_noticed_and_the_next_text_is_looked_at_anew(visit: Any) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    paste(page, "17 4 117 23 4 17 8 8 23 17")
    assert page.inner_text("#length") == "10 symbols, 5 different"
    page.click("#go")
    page.wait_for_selector("#rows button")
    settle(page)
    assert page.locator("#stage .cell.token").count() == 10
    assert set(page.locator("#rows button .from").all_inner_texts()) == {"17", "4", "117", "23", "8"}
    page.select_option("#notation", "tokens")  # what somebody chose holds for this text alone
    page.select_option("#alphabet", "letters")
    paste(page, TEXT)
    assert (page.input_value("#notation"), page.input_value("#alphabet")) == ("auto", "auto")
    assert page.inner_text("#length").startswith(f"{len(TEXT)} characters")
    page.click("#go")
    settle(page)
    assert len(page.inner_text("#plaintext")) == len(TEXT)


def test_the_verdict_comes_first_and_says_why(visit: Any) -> None:
    page = visit()
    page.fill("#text", "khoor zruog wkhuh")
    page.click("#go")
    settle(page)
    assert (
        page.inner_text("#verdict-sentence") == "A Caesar cipher: English, every letter shifted by 3 (ROT-3)."
    )
    assert page.inner_text("#verdict-figure") == "Over 99% of the symbols are expected to be right."
    assert page.get_attribute("#verdict", "data-status") == "read"
    assert page.inner_text("#news").startswith("A Caesar cipher")
    page.click("#why summary")
    assert "nats a letter" in page.inner_text("#reasons")
    boxes = [page.locator(place).bounding_box() for place in ("#verdict", "#stage")]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]


def test_a_text_that_no_key_of_symbols_gives_is_shown_letter_by_letter(visit: Any) -> None:
    page = visit()
    page.click('.chip:has-text("Vigenere\'s way")')
    settle(page)
    assert "the key word lantern" in page.inner_text("#verdict-sentence")
    assert page.inner_text("#plaintext").startswith("meet me by the old stone bridge")
    assert page.locator("#stage .cell.unread").count() == 0
    assert "there is no key of symbols to show, and nothing to pin" in page.inner_text("#map-about")
    page.locator("#stage .cell").first.click()
    for of_a_key in ("#map", "#rows", "#inspector", "#slider"):
        assert page.is_hidden(of_a_key)
    decipher(page)
    assert page.is_visible("#map")
    assert page.is_visible("#pin-to")
    assert page.inner_text("#map-about").startswith("Each row is a symbol")


def test_a_text_whose_letters_alone_were_read_is_shown_with_all_else_as_it_is(visit: Any) -> None:
    page = visit()
    decipher(page, C, "auto")
    assert page.inner_text("#verdict-sentence") == "Plain text: this is English already."
    begins = page.text_content("#plaintext")  # as much as fits the model's context
    assert len(begins) > 100
    assert C.startswith(begins)


def shown(page: Any) -> tuple[str, str]:
    """The text as it is seen, and as it is said."""
    cells = "all => all.map(e => e.className === 'gap' ? ' ' : e.firstChild.textContent).join('')"
    return page.eval_on_selector_all("#stage .cell, #stage .gap", cells), page.text_content("#plaintext")


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE[::-1],
        SENTENCE.replace("keeper", "π keeper")[::-1],  # a letter that was not enciphered
        columnar(SENTENCE, [3, 0, 5, 2, 6, 1, 4]),  # with its spaces and points
        in_groups(columnar(unspaced(SENTENCE), [3, 0, 5, 2, 6, 1, 4])),
        polyalphabetic(
            SENTENCE.lower().replace("keeper", "π keeper"), [11, 0, 13, 19, 4, 17, 13], "vigenere"
        ),
    ],
    ids=["reversed", "reversed-with-pi", "columns", "columns-in-groups", "vigenere-with-pi"],
)
def test_what_no_key_of_symbols_gives_is_shown_as_the_server_read_it(
    visit: Any, site: Site, text: str
) -> None:
    reading = site.post("/api/decipher", {"text": text}).json
    assert reading["verdict"]["status"] == "read"
    assert reading["letter_confidence"]
    page = visit()
    decipher(page, text, "auto")
    assert shown(page) == (reading["plaintext"], reading["plaintext"])
    n_letters = page.locator("#stage .cell:not(.kept)").count()
    assert n_letters == len(reading["letter_confidence"])  # each has its own


def test_accents_that_a_reading_leaves_out_are_read_as_the_letters_below_them(visit: Any, site: Site) -> None:
    plain = (
        "Venez demain matin au vieux moulin sur la rivière, avant que les marchands n'ouvrent leurs étals."
    )
    text = affine(plain, 1, 3)
    reading = site.post("/api/decipher", {"text": text, "language": "french"}).json
    assert reading["folded"]
    page = visit()
    page.get_by_label("Language").select_option("french")
    decipher(page, text, "auto")
    assert shown(page) == (reading["plaintext"], reading["plaintext"])
    assert page.locator("#stage .cell.unread").count() == 0
    assert set(page.locator("#rows button .from").all_inner_texts()) == set(reading["key"])
    move(page, len(text))  # what the model itself believes, in small letters where the text has them
    assert shown(page)[1][1:].islower()


def test_a_text_that_no_key_of_symbols_gives_is_not_played_as_if_one_did(visit: Any) -> None:
    page = visit("/#columns", reduced_motion="no-preference")
    page.wait_for_selector("#rows button", state="attached")
    assert page.evaluate("document.body.classList.contains('solved')")
    assert page.inner_text("#plaintext").startswith("thekeeperofthelighthouse")


def test_what_stands_beside_the_curves_does_not_overlap(visit: Any) -> None:
    page = visit()
    page.evaluate(
        """async () => {
          const { Inspector } = await import("/inspector.js");
          const inspector = new Inspector({});
          const sign = { characters: [..."gjpqy"], size: 5, rows: [{ symbol: "x" }] };
          const asLikely = { lengths: [1, 2], table: Array(10).fill(0.2), places: [[0, 1]], n: 2 };
          inspector.build({ ...sign, ...asLikely }, 0, false);
          document.getElementById("result").hidden = false;
        }"""
    )

    def boxes(place: str) -> list[dict[str, float]]:
        found = [element.bounding_box() for element in page.locator(f".story{place}").all()]
        return sorted(found, key=lambda box: box["y"])

    [whole], [caption] = boxes(""), boxes(" text.foot")
    labels, ticks = boxes(" text:not(.foot)"), boxes(" .tick")
    assert (len(labels), len(ticks)) == (5, 2)
    assert all(tick["y"] + tick["height"] <= caption["y"] for tick in ticks)
    assert all(a["y"] + a["height"] <= b["y"] + 0.5 for a, b in pairwise(labels))
    assert all(label["x"] + label["width"] <= whole["x"] + whole["width"] for label in labels)


def test_examples_of_one_group_stand_beside_its_title(visit: Any) -> None:
    page = visit(viewport={"width": 800, "height": 900})
    chips = [chip.bounding_box() for chip in page.locator(".chips").first.locator(".chip").all()]
    firsts = [b for a, b in pairwise(chips) if b["y"] > a["y"]]
    assert firsts  # there are several rows
    assert {chip["x"] for chip in firsts} == {chips[0]["x"]}


def test_the_language_is_told_and_can_be_chosen(visit: Any) -> None:
    page = visit()
    names = page.locator("#language option").all_inner_texts()
    assert (names[0], len(names)) == ("work it out", 16)
    page.click('.chip:has-text("In German")')
    settle(page)
    assert page.inner_text("#verdict-sentence").endswith("one letter of German.")
    assert page.inner_text("#verdict-language").startswith("Language: German (")
    assert page.inner_text("#plaintext").startswith("komm morgen früh zur alten mühle")
    assert "Language: German" in page.inner_text("#news")
    page.fill("#text", "Guten Morgen")
    page.get_by_label("Language").select_option("german")
    page.click("#go")
    settle(page)
    assert page.inner_text("#verdict-sentence") == "Plain text: this is German already."
    assert page.inner_text("#verdict-language") == "Language: German."


def test_a_link_holds_the_text_and_what_is_said_of_it(visit: Any) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"], viewport={"width": 390, "height": 800})
    page.fill("#text", "khoor & zruog #1 + ?")
    page.get_by_label("Language").select_option("english")
    page.check("#unspaced")
    page.click("#go")
    settle(page)
    page.click("#share")
    page.wait_for_selector("#share:text('Copied')")
    link = page.evaluate("navigator.clipboard.readText()")
    assert page.url == link
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    other = visit(link[link.index("/#") :])
    settle(other)
    other.wait_for_selector("#rows button")
    assert other.input_value("#text") == "khoor & zruog #1 + ?"
    assert (other.input_value("#language"), other.is_checked("#unspaced")) == ("english", True)
    assert other.inner_text("#plaintext") == page.inner_text("#plaintext")


def test_what_a_link_says_and_nobody_knows_is_told(visit: Any) -> None:
    page = visit("/#text=khoor+zruog&language=klingon&notation=foo&unspaced=maybe&crib=a&alphabet=letters")
    settle(page)
    page.wait_for_selector("#rows button")
    left_out = "notation=foo, language=klingon, unspaced=maybe, crib=a."
    assert page.inner_text("#trouble").endswith(f"unknown here and were left out: {left_out}")
    assert (page.input_value("#language"), page.input_value("#alphabet")) == ("auto", "letters")
    page.click("#go")
    settle(page)
    assert page.is_hidden("#trouble")


def test_a_known_word_that_did_not_help_is_told(visit: Any) -> None:
    page = visit()
    page.fill("#crib-words", "stop")
    decipher(page, "Wkh nhbv duh xqghu wkh vwrqh.")
    assert "put in as whole words" in page.inner_text("#note")


def test_signs_of_several_characters_stay_whole(visit: Any) -> None:
    page = visit()
    page.fill("#text", "\u2764\ufe0f\U0001f1ea\U0001f1fa \u2764\ufe0f")
    assert page.inner_text("#length") == "4 characters, 3 different"
    page.click("#go")
    page.wait_for_selector("#rows button")
    settle(page)
    assert page.locator("#rows button").count() == 2
    assert page.locator("#stage .cell.token").count() == 0


def test_the_button_keeps_the_focus_while_it_works(visit: Any) -> None:
    page = visit()
    page.fill("#text", TEXT)
    page.locator("#go").press("Enter")
    page.wait_for_selector("#rows button")
    settle(page)
    assert page.evaluate("document.activeElement.id") == "go"


def test_the_keyboard_alone_is_enough(visit: Any) -> None:
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.locator("#text").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#rows button")
    settle(page)
    for _ in range(40):  # on to the list of symbols
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('row-label')"):
            break
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    symbol = label.split(":")[0]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "pin-to"
    page.keyboard.type("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#stage .cell.pinned")
    settle(page)
    assert page.evaluate("document.activeElement.id") == "pin-to"
    assert f"{symbol} pinned to j" in page.inner_text("#news")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(
        f"{symbol}: j, pinned"
    )


def test_text_is_never_html(visit: Any) -> None:
    page = visit()
    evil = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
    decipher(page, evil, "ascii")
    assert page.title() == "lexinvariant: watch a model break a cipher"
    assert page.locator("main script, #stage img").count() == 0
    move(page, 0)
    assert read(page).replace("␣", " ") == evil
    assert "<" in page.locator("#rows button .from").all_inner_texts()


def test_light_and_dark_differ_and_both_can_be_read(visit: Any) -> None:
    maps = []
    for scheme in ("light", "dark"):
        page = visit(color_scheme=scheme)
        decipher(page)
        maps.append(heat(page))
        contrast = page.evaluate(
            """() => {
              const light = (css) => {
                const [r, g, b] = css.match(/[\\d.]+/g).slice(0, 3).map((v) => {
                  const c = Number(v) / 255;
                  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
                });
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const behind = light(getComputedStyle(document.querySelector('.card')).backgroundColor);
              const swatches = [...document.querySelectorAll('.swatch, .legend, .moment, h2')];
              return swatches.map((e) => {
                const front = light(getComputedStyle(e).color);
                return (Math.max(front, behind) + 0.05) / (Math.min(front, behind) + 0.05);
              });
            }"""
        )
        assert min(contrast) >= 4.5
    assert maps[0] != maps[1]


def test_a_text_of_one_s_own_is_enciphered_and_read(visit: Any) -> None:
    page = visit()
    page.check("input[value=encipher]", force=True)
    assert page.input_value("#text") == ""  # the example's text was not theirs
    page.fill("#text", "Nobody knows what this says.")
    page.select_option("#into", "shapes")
    page.click("#go")
    page.wait_for_selector("#rows button")
    settle(page)
    assert page.input_value("#text").split(" ")[0][1] == page.input_value("#text").split(" ")[0][3]  # nObOdy
    assert len(page.input_value("#text")) == len("nobody knows what this says")
    assert "The key is known here" in page.inner_text("#facts")


def test_the_paper_s_examples_are_one_click_away(visit: Any) -> None:
    page = visit()
    assert page.locator(".chips").nth(1).locator(".chip").count() == 4
    page.click("text=A zat in the pazk")
    page.wait_for_selector("#rows button")
    settle(page)
    assert page.locator("#rows button[aria-pressed=true]").get_attribute("aria-label").startswith("z:")
    assert "pazk with a zat" in page.input_value("#text")


def test_a_phone_has_no_sideways_scrolling(visit: Any) -> None:
    page = visit(viewport={"width": 360, "height": 740})
    decipher(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_what_goes_wrong_is_said(visit: Any) -> None:
    page = visit()
    page.fill("#text", "  ")
    page.click("#go")
    assert "Paste a ciphertext first" in page.inner_text("#trouble")
    assert visit.complaints == []
    page.fill("#text", "".join(map(chr, range(0x4E00, 0x4E00 + 130))))
    page.click("#go")
    page.wait_for_selector("#trouble:not([hidden])")
    settle(page)
    assert "130 different" in page.inner_text("#trouble")
    assert page.is_hidden("#result")
    # The browser itself notes answers of 4xx; those are all that may be there.
    assert all("status of 422" in complaint for complaint in visit.complaints)
    visit.complaints.clear()


def test_every_control_has_a_name(visit: Any) -> None:
    page = visit()
    decipher(page)
    tree = page.locator("body").aria_snapshot()
    controls = [
        line.strip()
        for line in tree.splitlines()
        if line.strip().startswith(
            ("- button", "- slider", "- textbox", "- combobox", "- checkbox", "- radio", "- img")
        )
    ]
    assert len(controls) > 20
    assert not [control for control in controls if '"' not in control]


def test_without_a_model_of_words_nothing_speaks_of_them(visit: Any) -> None:
    page = visit()
    page.wait_for_selector(".health[data-status=ready]")
    assert page.is_hidden("#words-mode")
    assert page.is_hidden("#words")
    assert page.locator("text=made-up words").filter(visible=True).count() == 0


@pytest.mark.parametrize("served_by", ["word_site"])
def test_a_text_in_made_up_words_is_read(visit: Any) -> None:
    page = visit()
    page.check("input[name=mode][value=words]")
    assert page.input_value("#text") == ""
    page.click("#go")
    assert "Paste a text first" in page.inner_text("#trouble")
    page.check("#make-up")
    page.fill("#text", "The name of the object is <b>a name</b>, and the value of the object is a value.")
    assert page.inner_text("#length") == "19 words, 9 different"
    page.click("#go")
    page.wait_for_selector("#words-text .cell")
    settle(page)
    assert page.is_hidden("#empty")
    assert page.is_hidden("#result")
    assert not page.is_checked("#make-up")  # the text that stands there now is in made-up words
    cells = page.locator("#words-text .cell")
    assert cells.count() == 19
    assert page.locator("#words-text .mark").all_inner_texts() == ["<", ">", "</", ">,", "."]
    first, *_, last = page.locator("#word-list .from").all_inner_texts()
    assert len({first, last}) == 2
    assert cells.first.locator("i").text_content() == first  # the commonest word
    cells.first.hover()
    assert page.locator("#words-text .cell.marked").count() == 4
    assert "The right word is “the”." in page.inner_text("#word-body .says")
    assert "of 19 are right" in page.inner_text("#words-facts")
    cells.nth(1).hover()
    assert "The right word is “name”." in page.inner_text("#word-body .says")
    assert page.locator("#word-body .word-bar").count() == 5
    assert "words expected to be right" in page.inner_text("#news")

    page.check("input[name=mode][value=decipher]")
    decipher(page)
    assert page.is_hidden("#words")
    assert page.locator("#rows button").count() > 0


@pytest.mark.parametrize("served_by", ["word_site"])
def test_the_page_of_words_fits_a_phone(visit: Any) -> None:
    page = visit("/#words", viewport={"width": 390, "height": 800})
    page.wait_for_selector("#words-text .cell")
    assert page.is_checked("input[name=mode][value=words]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.fill("#text", "too few")
    page.click("#go")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "The text has 2 words" in page.inner_text("#trouble")
    visit.complaints.clear()  # the browser notes the answer of 422
