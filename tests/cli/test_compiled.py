"""What jax compiles is kept from one command to the next."""

import os
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.cli import train
from lexinvariant.cli.main import main
from lexinvariant.errors import UserError


def _stop(*_: Any) -> int:
    raise UserError(os.environ.get("JAX_COMPILATION_CACHE_DIR", "nowhere"))


@pytest.mark.parametrize(
    "command", ["train tiny", "evaluate bundled --data markov12", "experiment uncertainty"]
)
def test_commands_that_compile_for_long_keep_what_they_compile(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that goes on, or a second model of the same shape, waits for no compiler."""
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_COMPILATION_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(train, "_train", _stop)
    monkeypatch.setattr("lexinvariant.api.load", _stop)
    monkeypatch.setattr("lexinvariant.experiments.uncertainty.run", _stop)
    assert main(command.split()) == 2
    assert str(tmp_path / "lexinvariant" / "compiled") in capsys.readouterr().err.replace("\n", "")
