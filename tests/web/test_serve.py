"""`lexinvariant serve` as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from lexinvariant.cli.main import main
from lexinvariant.config import ModelConfig
from lexinvariant.model.params import is_spec, specs
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab


@pytest.mark.parametrize(("model", "names_words"), [("tiny_model", False), ("word_model", True)])
def test_the_command_serves_until_it_is_interrupted(
    model: str, names_words: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With a model of tokens, the bundled one of characters is beside it."""
    command = [
        sys.executable,
        "-m",
        "lexinvariant",
        "serve",
        "--model",
        str(request.getfixturevalue(model)),
        "--port",
        "0",
        "--no-warm-up",
    ]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            found = re.fullmatch(r"The page is at (http://127\.0\.0\.1:\d+) \(Ctrl-C stops it\)\.\n", line)
            assert found, line
            with urllib.request.urlopen(f"{found[1]}/api/health", timeout=30) as answer:
                health = json.load(answer)
            assert (health["model"], health["names_words"], health["symbols"]) == ("tiny", names_words, 128)
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "Stopped.\n", "")


def test_a_model_that_cannot_name_symbols_is_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ModelConfig(
        context=16, n_layers=1, width=16, n_heads=1, head_dim=16, hidden=16, decipher_head=False
    )
    params = jax.tree.map(lambda spec: jnp.zeros(spec.shape), specs(config), is_leaf=is_spec)
    save_model(tmp_path / "headless", config, params, CharVocab())
    assert main(["serve", "--model", str(tmp_path / "headless"), "--port", "0"]) == 2
    assert "This model cannot name symbols" in capsys.readouterr().err


def test_a_port_in_use_is_told_at_once(tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--model", str(tiny_model), "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert f"Cannot listen on 127.0.0.1 port {port}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--port", "70000"], "There is no port 70000"),
        (["--host", "no.such.host.invalid", "--port", "0"], "Cannot listen on no.such.host.invalid"),
        (["--time-limit", "0"], "leaves no time to answer"),
        (["--model", "nowhere/at/all", "--port", "0"], "There is no folder"),
    ],
)
def test_what_cannot_be_served(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
