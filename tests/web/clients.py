"""Many clients of one server at once: python tests/web/clients.py [--clients 50] [--model MODEL]

Starts `lexinvariant serve` and lets every client ask for a reading and a trace of a ciphertext of its own, 100 to 200
letters long, all at the same moment. Prints how many were answered, the seconds it took, and the server's memory.
"""

import argparse
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lexinvariant.web.examples import MESSAGE, NOTE
from lexinvariant.web.requests import EncipherRequest


def post(url: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def ciphertext(number: int) -> str:
    draw, text = random.Random(number), f"{MESSAGE} {NOTE}"
    start = draw.randrange(len(text) - 200)
    return EncipherRequest(text[start : start + draw.randint(100, 200)], "letters", seed=number).answer()[
        "ciphertext"
    ]


def memory(pid: int) -> int:
    """The most that a process has had resident, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--model", default="bundled")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "lexinvariant", "serve", "--port", "0", "--model", arguments.model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found, "the server did not start"
        url, together = found[0], threading.Barrier(arguments.clients)

        def client(number: int) -> tuple[int, int, float]:
            text = ciphertext(number)
            together.wait()
            began = time.monotonic()
            read, reading = post(f"{url}/api/decipher", {"text": text})
            traced, trace = post(f"{url}/api/trace", {"text": text})
            assert read != 200 or len(reading["plaintext"]) == len(text)
            assert traced != 200 or trace["cells"] == list(text)
            return read, traced, time.monotonic() - began

        try:
            while json.load(urllib.request.urlopen(f"{url}/api/health"))["status"] != "ready":
                time.sleep(0.5)
            before = memory(server.pid)
            with ThreadPoolExecutor(arguments.clients) as pool:
                answers = list(pool.map(client, range(arguments.clients)))
            good = sum(answer[:2] == (200, 200) for answer in answers)
            seconds = sorted(answer[2] for answer in answers)
            print(f"{good} of {len(answers)} clients were answered both times")
            print(f"seconds: median {seconds[len(seconds) // 2]:.1f}, slowest {seconds[-1]:.1f}")
            print(f"memory of the server at most: {before} MB before, {memory(server.pid)} MB after")
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
