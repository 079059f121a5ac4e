"""A server under mixed load: whatever clients do, everyone is answered, and its memory does not grow."""

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import pytest

from lexinvariant.web.app import Limits
from tests.soak.load import Load
from tests.soak.scale import SOAK, SOAK_SECONDS
from tests.web.conftest import serve

CLIENTS = 100
REQUESTS = round(5_000 * min(1.0, SOAK_SECONDS / 600))
"""At least: a slow machine takes longer for them, and a quick one makes more."""


def address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    return parts.hostname, parts.port


def test_a_little_of_everything(tiny_model: Path) -> None:
    with serve(tiny_model, Limits(body_bytes=1_000_000)) as site:
        load = Load(address(site.url), longest=120)
        load.run(6, lambda n: n < 50)
    assert load.failures == []
    assert load.answered[200] > 20


def resident(pid: int) -> int:
    """Memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) // 1024


@pytest.mark.skipif(not SOAK, reason="minutes of load: make soak")
def test_hundred_clients_and_flat_memory(word_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "lexinvariant", "serve", "--port", "0", "--model", str(word_model)]
    command += ["--time-limit", "600"]  # the machine may have other work, and the limit has tests of its own
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found, "the server did not start"
            load, until = Load(address(found[0]), with_words=True), time.monotonic() + SOAK_SECONDS
            memory: list[tuple[int, int]] = []

            def watch() -> None:
                while server.poll() is None:
                    memory.append((load.n_begun, resident(server.pid)))
                    time.sleep(1)

            threading.Thread(target=watch, daemon=True).start()
            began = time.monotonic()
            load.run(CLIENTS, lambda n: n < REQUESTS or time.monotonic() < until)
            took = time.monotonic() - began
        finally:
            server.send_signal(signal.SIGINT)
    with capsys.disabled():
        report(load, memory, took)
    assert load.failures == []
    assert load.n_begun >= REQUESTS
    if SOAK_SECONDS >= 600:
        # Two fifths of the requests fill the bounded store of languages' tables (decipher/ngram_cache.py) and compile
        # programs; from then on memory has to stay.
        early, late = (median(part) for part in (fifths(memory)[2], fifths(memory)[-1]))
        assert late < 1.03 * early, fifths(memory)


def fifths(memory: list[tuple[int, int]]) -> list[list[int]]:
    """Memory during each fifth of the requests."""
    last = memory[-1][0]
    return [[mb for n, mb in memory if i * last <= 5 * n <= (i + 1) * last] for i in range(5)]


def report(load: Load, memory: list[tuple[int, int]], took: float) -> None:
    """What docs/reliability.md tells of this."""
    print(
        f"\n{load.n_begun} requests of {CLIENTS} clients in {took:.0f} s: {len(load.failures)} failed, {load.n_left} "
        f"given up by clients, {load.n_put_off} put off for a while; {dict(load.answered)}"
    )
    print(*load.failures, sep="\n")
    for kind, (n, *seconds) in load.percentiles().items():
        print(
            f"{kind:12} {n:6} times; seconds: "
            + "median {:.2f}, 95% {:.2f}, 99% {:.2f}, slowest {:.2f}".format(*seconds)
        )
    marks = [0, *range(500, load.n_begun, 500), load.n_begun]
    first = [next((mb for n, mb in memory if n >= mark), memory[-1][1]) for mark in marks]
    print(
        "memory in MB after so many requests:",
        ", ".join(f"{n}: {mb}" for n, mb in zip(marks, first, strict=True)),
    )
