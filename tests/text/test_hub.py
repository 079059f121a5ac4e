import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

from lexinvariant.errors import UserError
from lexinvariant.text import read_documents, train_tokenizer

NOWHERE = "http://127.0.0.1:9"  # a port that refuses connections


def load_in_new_process(spec: str, endpoint: str, home: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; from lexinvariant.text import load_vocab; from lexinvariant.errors import UserError\n"
        "try: vocab = load_vocab(sys.argv[1])\n"
        "except UserError as error: sys.exit(f'UserError: {error}')\n"
        "print(vocab.name, vocab.size)"
    )
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, spec],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_network_fails_fast_and_in_one_sentence(tmp_path: Path) -> None:
    began = time.monotonic()
    result = load_in_new_process("t5-base", NOWHERE, tmp_path)
    assert result.stderr.startswith("UserError: 'google-t5/t5-base' is neither a local file nor in the cache")
    assert result.stderr.count("\n") == 1
    assert time.monotonic() - began < 15


@pytest.fixture
def small_hub(tmp_path: Path) -> Iterator[str]:
    """A server that answers as the Hub does for one repository with a tokenizer, over real HTTP."""
    train_tokenizer(["stdlib:code?limit=3"], tmp_path / "served.json", size=300)
    body = (tmp_path / "served.json").read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            found = self.path == "/someone/words/resolve/main/tokenizer.json" or "/0123" in self.path
            self.send_response(200 if found or self.path == "/" else 404)
            if found:
                self.send_header("ETag", '"abc"')
                self.send_header("X-Repo-Commit", "0123456789" * 4)
                self.send_header("Content-Length", str(len(body)))
            else:
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_tokenizer_by_name_then_from_the_cache(small_hub: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    fetched = load_in_new_process("someone/words", small_hub, home)
    assert fetched.stdout == "someone/words 300\n", fetched.stderr
    assert load_in_new_process("someone/words", NOWHERE, home).stdout == "someone/words 300\n"
    unknown = load_in_new_process("someone/wrods", small_hub, home)
    assert "UserError: the Hugging Face Hub has no public repository 'someone/wrods'" in unknown.stderr


def test_datasets_without_package_or_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'lexinvariant\[hub\]'"):
        next(read_documents("hub:pile"))
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace())
    monkeypatch.setattr(constants, "ENDPOINT", NOWHERE)
    with pytest.raises(UserError, match="hub:pile cannot be read: connect to the network"):
        next(read_documents("hub:pile"))
    with pytest.raises(UserError, match="names no dataset"):
        next(read_documents("hub:"))


def test_dataset_records(monkeypatch: pytest.MonkeyPatch, small_hub: str) -> None:
    # `datasets` is an extra and streams from the real Hub alone, so here its one function is stood in for.
    calls: list[Any] = []

    def load_dataset(*args: Any, **options: Any) -> Iterator[dict[str, str]]:
        calls.append((args, options))
        yield {"code" if args[0] == "parquet" else "text": "first", "path": "x"}
        if args[0] == "broken/one":
            raise ConnectionResetError("the network went away")
        yield {"code" if args[0] == "parquet" else "text": "second", "path": "y"}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setattr(constants, "ENDPOINT", small_hub)
    assert list(read_documents("hub:wiki40b?split=validation")) == [
        ("first", "wiki40b:validation/0"),
        ("second", "wiki40b:validation/1"),
    ]
    assert [document.text for document in read_documents("hub:github?limit=1")] == ["first"]
    assert [document.text for document in read_documents("hub:some/one:cfg?field=path")] == ["x", "y"]
    assert calls[0] == (("google/wiki40b", "en"), {"split": "validation", "streaming": True})
    assert calls[1][1]["data_files"] == "hf://datasets/codeparrot/github-code-clean/data/train-*.parquet"
    assert calls[2][0] == ("some/one", "cfg")
    with pytest.raises(UserError, match=r"with \?field=NAME"):
        list(read_documents("hub:some/one?field=words"))
    with pytest.raises(UserError, match="the network went away"):
        list(read_documents("hub:broken/one"))
