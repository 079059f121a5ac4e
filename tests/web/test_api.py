"""The JSON interface, asked over real connections."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lexinvariant.results.paper_texts import PAPER_TEXTS
from lexinvariant.text.letters import letters_only
from lexinvariant.web import connection as web_connection
from lexinvariant.web.app import Limits
from lexinvariant.web.examples import MESSAGE, NOTE
from lexinvariant.web.worker import Worker

if TYPE_CHECKING:
    from tests.web.conftest import Site

TEXT = "Ubzk zk rnz vfnvrl. Dcoo zd rl erl bfokv?"


def test_a_reading(site: Site) -> None:
    answer = site.post("/api/decipher", {"text": TEXT, "cribs": {"z": "s"}, "alphabet": "letters", "top": 2})
    assert answer.status == 200
    reading = answer.json
    assert set(reading) >= {"plaintext", "key", "confidence", "alternatives", "seconds"}
    assert next(iter(reading)) == "verdict"
    assert set(reading["verdict"]) >= {"status", "kind", "sentence", "probability", "language", "parameters"}
    assert 0 <= reading["right"] <= 1
    assert len(reading["plaintext"]) == len(TEXT)
    assert reading["key"]["z"] == "s"
    assert reading["plaintext"][TEXT.index("z")] == "s"
    assert reading["plaintext"][4] == " "
    assert all(0 <= p <= 1 for p in reading["confidence"].values())
    assert reading["seconds"] >= 0


def test_a_trace(site: Site) -> None:
    trace = site.post("/api/trace", {"text": TEXT, "cribs": {"z": "s"}, "alphabet": "letters"}).json
    shape = tuple(len(trace[name]) for name in ("lengths", "symbols", "characters"))
    table = np.frombuffer(base64.b64decode(trace["table"]), np.uint8).reshape(shape)
    assert trace["cells"] == list(TEXT)
    z, s = trace["symbols"].index("z"), trace["characters"].index("s")
    assert table[-1, z, s] == 255
    assert (np.delete(table[-1, :, s], z) == 0).all()
    assert trace["note"] is None


def test_numbers_parted_by_spaces_are_symbols(site: Site) -> None:
    asked = {"text": "17 4 17\n 23 4", "cribs": {"17": "t"}}
    reading, traced = site.post("/api/decipher", asked).json, site.post("/api/trace", asked).json
    assert set(reading["key"]) == {"17", "4", "23"}
    assert reading["key"]["17"] == reading["plaintext"][0] == reading["plaintext"][2] == "t"
    assert len(reading["plaintext"]) == 5
    assert traced["cells"] == ["17", "4", "17", "23", "4"]
    assert traced["symbols"] == ["17", "4", "23"]


def test_a_sign_of_several_characters_is_one_symbol(site: Site) -> None:
    flag, family, heart = "\U0001f1ea\U0001f1fa", "\U0001f469\u200d\U0001f467", "\u2764\ufe0f"
    traced = site.post("/api/trace", {"text": f"{flag}{family} {heart}{flag}"}).json
    assert traced["cells"] == [flag, family, " ", heart, flag]
    assert traced["symbols"] == [flag, family, heart]
    reading = site.post("/api/decipher", {"text": f"{flag}{family} {heart}{flag}"}).json
    assert set(reading["key"]) == {flag, family, heart}


def test_a_known_beginning_is_certain(site: Site) -> None:
    asked = {"text": TEXT, "crib_text": "This is", "alphabet": "letters"}
    reading, traced = site.post("/api/decipher", asked).json, site.post("/api/trace", asked).json
    assert reading["plaintext"].startswith("This is")
    assert {reading["confidence"][symbol] for symbol in "ubzk"} == {1.0}
    shape = tuple(len(traced[name]) for name in ("lengths", "symbols", "characters"))
    table = np.frombuffer(base64.b64decode(traced["table"]), np.uint8).reshape(shape)
    assert table[-1, traced["symbols"].index("u"), traced["characters"].index("t")] == 255


def test_enciphering_can_be_undone_with_the_key_it_gives(site: Site) -> None:
    for into in ("letters", "ascii", "shapes"):
        answer = site.post("/api/encipher", {"text": MESSAGE, "into": into, "seed": 3}).json
        again = site.post("/api/encipher", {"text": MESSAGE, "into": into, "seed": 3}).json
        other = site.post("/api/encipher", {"text": MESSAGE, "into": into, "seed": 4}).json
        assert answer == again != other
        undone = "".join(answer["key"].get(symbol, symbol) for symbol in answer["ciphertext"])
        assert undone == (letters_only(MESSAGE) if into == "shapes" else MESSAGE)
    assert (
        site.post("/api/encipher", {"text": MESSAGE}).json
        != site.post("/api/encipher", {"text": MESSAGE}).json
    )


def test_letters_stay_letters_in_their_case_and_the_rest_is_kept(site: Site) -> None:
    secret = site.post("/api/encipher", {"text": MESSAGE, "seed": 1}).json["ciphertext"]
    for plain, written in zip(MESSAGE, secret, strict=True):
        assert (plain.isupper(), plain.islower()) == (written.isupper(), written.islower())
        assert plain.isalpha() or plain == written


def test_every_letter_of_a_text_is_enciphered(site: Site) -> None:
    """A letter that stays gives words away."""
    text = "Sch\u00f6ne Gru\u0308\u00dfe, \u041c\u043e\u0441\u043a\u0432\u0430!"
    kept = []
    for seed in range(5):
        answer = site.post("/api/encipher", {"text": text, "into": "letters", "seed": seed}).json
        plaintext = "Sch\u00f6ne Gr\u00fc\u00dfe, \u041c\u043e\u0441\u043a\u0432\u0430!"
        undone = "".join(answer["key"].get(symbol, symbol) for symbol in answer["ciphertext"])
        assert undone.lower() == plaintext.lower()
        kept.append({c for c, p in zip(answer["ciphertext"], plaintext, strict=True) if c == p})
    assert set.intersection(*kept) == set(" ,!")
    answer = site.post("/api/encipher", {"text": text, "into": "ascii", "seed": 1}).json
    assert "".join(answer["key"][symbol] for symbol in answer["ciphertext"]) == plaintext


def test_a_crib_for_a_symbol_that_does_not_occur_is_noted(site: Site) -> None:
    asked = {"text": "khoor Zruog", "alphabet": "letters"}
    reading = site.post("/api/decipher", asked | {"cribs": {"m": "h", "K": "h", "z": "w"}}).json
    assert reading["note"] == "The text has no 'm': a crib for that changes nothing."
    assert site.post("/api/decipher", asked | {"cribs": {"k": "h"}}).json["note"] is None
    as_signs = asked | {"alphabet": "ascii", "cribs": {"Z": "w", "z": "x"}}
    assert "no 'z':" in site.post("/api/decipher", as_signs).json["note"]


def test_a_trace_can_take_the_text_apart_as_the_reading_does(site: Site) -> None:
    asked = {"text": next(text.text for text in PAPER_TEXTS if text.name == "Java")}
    reading = site.post("/api/decipher", asked).json
    assert reading["alphabet"] in ("letters", "ascii")  # and not signs for letters, which it looks like
    trace = site.post("/api/trace", asked | {"alphabet": reading["alphabet"]}).json
    assert set(trace["symbols"]) <= set(reading["key"])
    assert set(site.post("/api/trace", asked).json["symbols"]) != set(trace["symbols"])


def test_a_trace_can_be_in_the_spelling_of_the_reading(site: Site) -> None:
    asked = {"text": "Yhqhc ghpdlq pdwlq dx ylhxa prxolq vxu od ulylèuh, hw Eulhq.", "language": "french"}
    reading = site.post("/api/decipher", asked).json
    assert (reading["verdict"]["kind"], reading["folded"]) == ("caesar", True)
    trace = site.post("/api/trace", asked | {"folded": reading["folded"]}).json
    assert set(trace["symbols"]) == set(reading["key"])
    assert "è" in site.post("/api/trace", asked).json["symbols"]
    assert not site.post("/api/decipher", {"text": TEXT}).json["folded"]
    english = {"text": TEXT, "alphabet": "letters"}  # it has one spelling
    traced, folded = (site.post("/api/trace", english | more).json for more in ({}, {"folded": True}))
    assert folded["table"] == traced["table"]


def test_the_examples(site: Site) -> None:
    examples = {example["name"]: example for example in site.get("/api/examples").json["examples"]}
    assert [examples[paper.name.lower()]["text"] for paper in PAPER_TEXTS] == [
        paper.text for paper in PAPER_TEXTS
    ]
    assert {example["focus"] for example in examples.values() if example["group"] == "paper"} == {"z"}
    letter = examples["message"]
    assert "".join(letter["key"].get(c, c) for c in letter["text"]) == MESSAGE
    together = examples["together"]
    assert together["unspaced"]
    assert "".join(together["key"][c] for c in together["text"]) == letters_only(NOTE).replace(" ", "")


def test_health(site: Site) -> None:
    health = site.get("/api/health").json
    assert health["status"] == "ready"
    assert (health["model"], health["symbols"], health["context"]) == ("tiny", 128, 128)


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/api/decipher", {}, 422, "'text' is missing"),
        ("/api/decipher", {"text": 7}, 422, "'text' must be a string"),
        ("/api/decipher", {"text": ""}, 422, ""),
        ("/api/trace", {"text": ""}, 422, "nothing to decipher"),
        ("/api/decipher", {"text": "abc", "crib": {}}, 422, "did you mean 'cribs'?"),
        ("/api/decipher", {"text": "abc", "cribs": ["a"]}, 422, "must be an object"),
        ("/api/decipher", {"text": "abc", "cribs": {"a": 1}}, 422, "must be an object"),
        ("/api/decipher", {"text": "abc", "cribs": {"a": "xy"}}, 422, "each symbol to one character"),
        ("/api/decipher", {"text": "abc", "cribs": {"a": "7"}}, 422, "a cannot stand for 7: give one letter"),
        ("/api/decipher", {"text": "abc", "cribs": {"7": "a"}}, 422, "7 is not a cipher symbol"),
        (
            "/api/decipher",
            {"text": "abc", "cribs": {"a": "x"}, "crib_text": "y"},
            422,
            "cannot be both x and y",
        ),
        ("/api/trace", {"text": "abc", "crib_text": "a c"}, 422, "' ' where b stands for a letter"),
        ("/api/trace", {"text": "abc", "crib_text": None}, 422, "'crib_text' must be a string"),
        ("/api/trace", {"text": "abc", "notation": 1}, 422, "'notation' must be one of 'auto'"),
        ("/api/trace", {"text": " \n", "notation": "tokens"}, 422, "nothing to decipher"),
        (
            "/api/trace",
            {"text": "\u212a", "alphabet": "letters"},
            422,
            "let every character be enciphered (alphabet ascii)",
        ),
        ("/api/decipher", {"text": "abc", "cribs": {"a": "x", "b": "x"}}, 422, ""),
        ("/api/trace", {"text": "abc", "cribs": {"a": "x", "b": "x"}}, 422, "cannot both stand for x"),
        ("/api/decipher", {"text": "abc", "alphabet": "greek"}, 422, "'auto', 'letters', 'ascii'"),
        ("/api/decipher", {"text": "abc", "unspaced": "yes"}, 422, "true or false"),
        ("/api/decipher", {"text": "abc", "top": -1}, 422, "from 0 to 20"),
        ("/api/decipher", {"text": "abc", "top": True}, 422, "from 0 to 20"),
        ("/api/decipher", {"text": "abc", "top": 1e999}, 422, "from 0 to 20"),
        ("/api/decipher", {"text": "\ud800"}, 422, "surrogate"),
        ("/api/trace", {"text": "abc", "cribs": {"\ud800": "a"}}, 422, "surrogate"),
        (
            "/api/trace",
            {"text": "".join(map(chr, range(0x4E00, 0x4E00 + 129)))},
            422,
            "129 different symbols",
        ),
        ("/api/trace", {"text": "abc", "alphabet": "letters", "cribs": {"x" * 9000: "a"}}, 422, "xxx… is no"),
        ("/api/trace", {"text": "abc", "x" * 9000: 1}, 422, "There is no field"),
        ("/api/encipher", {"text": "abc", "into": "runes"}, 422, "'letters', 'ascii', 'shapes'"),
        ("/api/encipher", {"text": "abc", "seed": -1}, 422, "whole number"),
        ("/api/decipher", ["abc"], 400, "not a JSON object"),
    ],
)
def test_a_wrong_question_gets_a_sentence(
    site: Site, path: str, body: Any, status: int, sentence: str
) -> None:
    answer = site.post(path, body)
    assert answer.status == status, answer.body
    assert set(answer.json) == {"error"}
    assert sentence in answer.json["error"]
    assert "Traceback" not in answer.json["error"]
    assert "\n" not in answer.json["error"]
    assert "--" not in answer.json["error"]  # options are the command's, not ours
    assert len(answer.json["error"]) < 300


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"text": "\xff"}', "not UTF-8 (byte 10)"),
        (b"[" * 15_000, "not JSON"),
        (b'{"text": "a", "top": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"text=abc", "not JSON"),
        (b"\x00\x01\x02", "not JSON"),
    ],
)
def test_what_is_no_json_is_refused(site: Site, body: bytes, sentence: str) -> None:
    answer = site.ask("POST", "/api/decipher", body, {"Content-Type": "application/json"})
    assert answer.status == 400
    assert sentence in answer.json["error"]


def test_other_types_are_refused_so_that_no_other_site_can_send_them_unasked(site: Site) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = site.ask("POST", "/api/decipher", b'{"text": "abc"}', {"Content-Type": kind})
        assert answer.status == 415
        assert "application/json" in answer.json["error"]
    preflight = site.ask("OPTIONS", "/api/decipher", headers={"Origin": "http://evil.example"})
    assert preflight.status == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


# Python's own urllib closes after every request, and who closes with a body half read resets the connection.
CLOSE = {"Content-Type": "application/json", "Connection": "close"}


@pytest.mark.parametrize("size", [20_001, 5_000_000, 30_000_000])
def test_a_large_body_is_refused(site: Site, size: int) -> None:
    body = json.dumps({"text": "a" * (size - 12)}).encode()
    for headers in ({"Content-Type": "application/json"}, CLOSE):
        answer = site.ask("POST", "/api/decipher", body, headers)
        assert answer.status == 413
        assert "larger than 20,000 bytes" in answer.json["error"]


def test_a_large_body_to_the_wrong_place_is_answered_too(site: Site) -> None:
    body = bytes(9_000_000)
    assert site.ask("POST", "/api/nothing", body, CLOSE).status == 404
    assert site.ask("POST", "/api/decipher", body, CLOSE | {"Content-Type": "text/plain"}).status == 415
    assert site.ask("POST", "/api/decipher", body, CLOSE | {"Host": "evil.example"}).status == 421


def test_a_body_of_no_said_length_is_read_up_to_the_limit(site: Site) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    parts = (b"x" * 10_000 for _ in range(900))
    connection.request("POST", "/api/decipher", parts, CLOSE)
    assert connection.getresponse().status == 413
    connection.close()


def test_who_asks_leave_to_send_too_much_gets_none(site: Site) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = f"POST /api/trace HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        connection.sendall(head.encode() + b"Content-Length: 30000\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_connection_that_does_not_say_what_it_wants_is_closed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (web_connection.HEAD_SECONDS, Limits().body_seconds) == (10, 15), (
        "docs/reliability.md promises these"
    )
    monkeypatch.setattr(web_connection, "HEAD_SECONDS", 0.3)
    host, port = site.url.removeprefix("http://").split(":")
    request = f"GET /api/health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    with ExitStack() as stack:
        half_open = [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=5)) for _ in range(4)
        ]
        for connection, beginning in zip(half_open, (b"", b"GET /", request[:-2], request), strict=True):
            connection.sendall(beginning)
        assert half_open[-1].recv(10_000).startswith(b"HTTP/1.1 200")
        half_open[-1].sendall(b"GET /")  # the beginning of another
        for connection in half_open:
            assert connection.recv(10_000) == b""
    assert site.get("/api/health").status == 200


def test_unknown_paths_and_methods(site: Site) -> None:
    for path in (
        "/nothing",
        "/api/nothing",
        "/../pyproject.toml",
        "/static/",
        "/%2e%2e/app.py",
        "/index.html",
    ):
        answer = site.get(path)
        assert answer.status == 404
        assert "There is nothing at" in answer.json["error"]
    answer = site.get("/api/decipher")
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    assert "GET is not possible" in answer.json["error"]
    assert site.ask("DELETE", "/").status == 405


def test_every_answer_carries_the_headers(site: Site) -> None:
    answers = [
        site.get("/"),
        site.get("/nothing"),
        site.post("/api/decipher", {}),
        site.get("/", Host="evil.example"),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]
    assert [answer.status for answer in answers] == [200, 404, 422, 421]


def test_a_rebound_name_learns_nothing(site: Site) -> None:
    answer = site.ask(
        "POST", "/api/trace", b'{"text": "abc"}', {"Host": "evil.example", "Content-Type": "application/json"}
    )
    assert answer.status == 421
    assert "does not answer for that host" in answer.json["error"]


@pytest.mark.parametrize(
    "request_text",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_and_the_connection_closed(site: Site, request_text: bytes) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request_text)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 400
        assert answer.headers["Connection"] == "close"
        assert b"Invalid HTTP request" in answer.read()
        assert connection.recv(1) == b""


def test_the_page_s_files(site: Site) -> None:
    page = site.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    text = page.body.decode()
    assert '<script type="module" src="/app.js">' in text
    assert "style=" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert site.get("/app.js").headers["content-type"].startswith("text/javascript")
    assert site.get("/style.css").headers["content-type"].startswith("text/css")
    assert site.get("/icon.svg").headers["content-type"] == "image/svg+xml"


def test_files_can_only_be_fetched(site: Site) -> None:
    for path in ("/", "/app.js"):
        head = site.ask("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == str(len(site.get(path).body))
        written = site.ask("POST", path, b"x")
        assert written.status == 405
        assert {"GET", "HEAD"} == set(written.headers["allow"].split(", "))
        assert f"POST is not possible at {path}" in written.json["error"]
    for path in ("/app.js%00", "/" + "x" * 300, "/..%2f..%2fapp.py", "/static/app.js"):
        assert site.get(path).status == 404


@pytest.mark.parametrize("wanted", ["bytes=5-2", "bytes=x-y", "lines=1-2", "bytes=9999999-", "bytes=0-0,2-2"])
def test_files_are_sent_whole(site: Site, wanted: str) -> None:
    for path in ("/", "/app.js"):
        whole = site.get(path, Range=wanted)
        assert (whole.status, whole.body) == (200, site.get(path).body)


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
def test_a_client_that_takes_no_answer_is_cut_off(
    site: Site, last: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(web_connection, "SEND_SECONDS", 0.3)
    host, port = site.url.removeprefix("http://").split(":")
    request = f"GET /app.js HTTP/1.1\r\nHost: {host}\r\n".encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.sendall((request + b"\r\n") * 2000 + request + last + b"\r\n")
        until = time.monotonic() + 10
        with pytest.raises(ConnectionError):
            while time.monotonic() < until:
                connection.send(b"\r\n")
                time.sleep(0.05)
    assert site.get("/api/health").status == 200
    assert not caplog.records


def test_a_question_asked_again_is_not_worked_on_again(serve_with: Any) -> None:
    asked = []

    def answer(question: Any) -> bytes:
        asked.append((type(question).__name__, question.cribs))
        return b"{}"

    with serve_with(Limits(), Worker(answer, n_threads=1)) as site:
        for cribs in ({"a": "x", "b": "y"}, {"b": "y", "a": "x"}, {"a": "x"}):
            for path in ("/api/trace", "/api/decipher"):
                assert site.post(path, {"text": "abc", "cribs": cribs}).status == 200
    both, one = {"a": "x", "b": "y"}, {"a": "x"}
    kinds = ("TraceRequest", "DecipherRequest")
    assert asked == [(kind, cribs) for cribs in (both, one) for kind in kinds]


def test_fifty_clients_at_once_are_all_answered(site: Site) -> None:
    texts = [f"{TEXT} {chr(ord('a') + i % 26)}{chr(ord('a') + i // 26)}" for i in range(50)]
    few = texts[:2]  # clients ask for the same text too, and searching all fifty would only take longer
    together = threading.Barrier(50)

    def client(text: str) -> tuple[int, int]:
        together.wait(30)
        reading = site.post("/api/decipher", {"text": few[texts.index(text) % 2], "alphabet": "letters"})
        traced = site.post("/api/trace", {"text": text, "alphabet": "letters"})
        assert len(reading.json["plaintext"]) == len(text)
        assert traced.json["cells"] == list(text)
        return reading.status, traced.status

    with ThreadPoolExecutor(50) as clients:
        assert list(clients.map(client, texts)) == [(200, 200)] * 50


class SlowDesk:
    """A worker that stands still until the gate is opened, with room for two more to wait."""

    def __init__(self) -> None:
        self.gate, self.began = threading.Event(), threading.Event()
        self.asked: list[str] = []
        self.worker = Worker(self.answer, most_waiting=2, n_threads=1)

    def answer(self, question: Any) -> bytes:
        self.asked.append(question.text)
        self.began.set()
        self.gate.wait(20)
        return b'{"late": true}'


@pytest.fixture
def slow(serve_with: Any) -> Iterator[tuple[Site, SlowDesk]]:
    desk = SlowDesk()
    with serve_with(Limits(seconds=0.5), desk.worker) as site:
        yield site, desk
        desk.gate.set()


def test_the_time_limit_and_the_full_queue(slow: tuple[Site, SlowDesk]) -> None:
    site, desk = slow

    def client(number: int) -> tuple[int, Any]:
        answer = site.post("/api/trace", {"text": f"abc {number}"})
        return answer.status, answer.json

    with ThreadPoolExecutor(8) as clients:
        first = clients.submit(client, 0)
        assert desk.began.wait(20)
        others = [clients.submit(client, number) for number in range(1, 8)]
        late = {"error": "No answer within 0.5 seconds: try again, or send a shorter text."}
        assert first.result() == (504, late)
        desk.gate.set()  # and those that waited have their time now
        answers = [other.result() for other in others]
    full = {"error": "Too many questions are waiting: try again in a moment."}
    assert answers.count((503, full)) == 5
    assert answers.count((200, {"late": True})) == 2


def test_who_waits_long_is_answered_as_long_as_the_queue_moves(
    serve_with: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(question: Any) -> bytes:
        time.sleep(0.05)
        return b"{}"

    monkeypatch.setattr("lexinvariant.web.app.LONGEST_WAIT", 2)  # 0.8 seconds, and the last one waits for 1.5
    with serve_with(Limits(seconds=0.4), Worker(answer, n_threads=1)) as site, ThreadPoolExecutor(30) as pool:
        asked = pool.map(lambda i: site.post("/api/trace", {"text": f"abc {i}"}).status, range(30))
        assert list(asked) == [200] * 30


def test_a_body_that_does_not_arrive_is_waited_for_only_so_long(serve_with: Any) -> None:
    def never(question: Any) -> bytes:
        raise AssertionError("half a question was asked")

    with serve_with(Limits(body_seconds=0.3), Worker(never)) as site:
        host, port = site.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = f"POST /api/trace HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            connection.sendall(head.encode() + b'Content-Length: 100\r\n\r\n{"text": "ab')
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            assert answer.status == 408
            assert "did not arrive in time" in json.loads(answer.read())["error"]
        assert site.get("/api/health").status == 200


def test_a_client_that_goes_takes_its_question_along(slow: tuple[Site, SlowDesk]) -> None:
    site, desk = slow

    def is_waiting(number: int) -> bool:
        return site.get("/api/health").json["waiting"] == number

    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(site.post, "/api/trace", {"text": "abc"})
        assert desk.began.wait(20)
        host, port = site.url.removeprefix("http://").split(":")
        leaving = http.client.HTTPConnection(host, int(port))
        leaving.request("POST", "/api/trace", b'{"text": "gone"}', {"Content-Type": "application/json"})
        while not is_waiting(1):
            time.sleep(0.01)
        leaving.close()
        until = time.monotonic() + 10
        while not is_waiting(0):
            assert time.monotonic() < until, "its question kept its place"
            time.sleep(0.01)
        assert first.result().status == 504
        desk.gate.set()
    assert site.post("/api/trace", {"text": "here"}).status == 200
    assert desk.asked == ["abc", "here"]


def test_what_nobody_foresaw_is_answered_without_a_traceback(
    serve_with: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(question: Any) -> bytes:
        raise ZeroDivisionError("secret detail")

    with serve_with(Limits(), Worker(broken)) as site:
        answer = site.post("/api/trace", {"text": "abc"})
        assert answer.status == 500
        assert "secret" not in answer.json["error"]
        assert site.get("/api/health").status == 200
    assert "secret detail" in caplog.text


def test_made_up_words_are_read(word_site: Site) -> None:
    plain = "The name of the object is a name,\nand the value of the object is a value."
    made_up = word_site.post("/api/encipher", {"text": plain, "into": "words", "seed": 3}).json
    answer = word_site.post("/api/words", {"text": made_up["ciphertext"], "top": 2})
    assert answer.status == 200
    read = answer.json
    words = [made_up["key"][row["word"]] for row in read["words"]]
    assert " ".join(words) == "the name of object is a and value"
    assert all(len(row["guesses"]) == 2 for row in read["words"])
    assert "".join(piece for piece, _ in read["pieces"]) == read["plaintext"]
    numbers = [number for _, number in read["pieces"] if number >= 0]
    assert numbers[:4] == [0, 1, 2, 0]
    assert len(numbers) == read["n_words"] == 17
    assert word_site.get("/api/health").json["names_words"] is True
    assert word_site.get("/api/examples").json["examples"][-1]["group"] == "words"


def test_questions_about_words_that_cannot_be_answered(site: Site, word_site: Site) -> None:
    refused = site.post("/api/words", {"text": "ab cd ab ef ab"})
    assert refused.status == 422
    assert "no model that names words" in refused.json["error"]
    assert site.get("/api/health").json["names_words"] is False
    few = word_site.post("/api/words", {"text": "ab"})
    assert (few.status, few.json["error"][:22]) == (422, "The text has one word,")
    for wrong, sentence in (
        (
            {"text": "ab cd " * 3_400},
            "Up to 20,000 characters of made-up words are read here at a time: send a shorter text, or use "
            "`lexinvariant semantic`.",
        ),
        ({"text": "ab", "top": 0}, "'top' must be a whole number from 1 to 20."),
        ({"text": "ab", "marks": True}, "There is no field 'marks': did you mean 'marks_too'?"),
        ({}, "The field 'text' is missing: give the text to be read."),
    ):
        answer = word_site.post("/api/words", wrong)
        assert (answer.status, answer.json["error"]) == (422, sentence)
