"""The command line as a whole: it lists, it suggests, and it never shows a traceback."""

import errno
import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import lexinvariant
from lexinvariant.cli import main as command_line
from lexinvariant.cli.demo import SAMPLE, told_of_training
from lexinvariant.cli.main import COMMANDS, main
from lexinvariant.presets import preset
from lexinvariant.processes import python_command
from lexinvariant.text import Manifest, Shard


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_without_a_command_all_commands_are_listed(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    for name, what in COMMANDS.items():
        assert f"  {name} " in out
        assert what in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lexinvariant {lexinvariant.__version__}\n"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_tells_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main([name, "--help"])
    except SystemExit as ended:
        status = ended.code
    assert status == 0
    assert f"lexinvariant {name}" in capsys.readouterr().out


@pytest.mark.parametrize(("wrong", "right"), [("trian", "train"), ("scroe", "score"), ("exprot", "export")])
def test_an_unknown_command_is_answered_with_the_likely_one(
    wrong: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([wrong]) == 2
    captured = capsys.readouterr()
    assert (
        captured.err == f"lexinvariant: There is no command {wrong!r}: did you mean `lexinvariant {right}`?\n"
    )
    assert captured.out == ""


def test_an_unknown_option_is_answered_with_the_likely_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "tiny", "--model.n-headz", "3"])
    assert ended.value.code == 2
    assert "--model.n-heads" in capsys.readouterr().err


def raise_in_data(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def fail(argv: list[str]) -> int:
        raise error

    monkeypatch.setattr(importlib.import_module("lexinvariant.cli.data"), "main", fail)
    return main(["data"])


def test_an_interrupt_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raise_in_data(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


def test_what_the_system_refuses_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raise_in_data(monkeypatch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/file")) == 2
    assert capsys.readouterr().err == "lexinvariant: No space left on device (/full/file).\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 7 TiB"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes."),
    ],
    ids=["numpy", "jax"],
)
def test_too_little_memory_is_told_in_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raise_in_data(monkeypatch, error) == 2
    said = capsys.readouterr().err
    assert said.startswith("lexinvariant: There is too little memory (") and said.count("\n") == 1
    assert "7" in said and "--accumulate" in said
    with pytest.raises(RuntimeError):
        raise_in_data(monkeypatch, RuntimeError("another"))


def test_a_current_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = shlex.join(python_command("lexinvariant.cli.main", "main", "data", "prepare", "sums:9", "rel"))
    done = subprocess.run(
        ["bash", "-c", f"cd {gone}; rmdir {gone}; {command}"],
        env={**os.environ, "PYTHONPATH": str(Path(lexinvariant.__file__).absolute().parents[1])},
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert "the current folder was removed, so change to another one." in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_streams_that_are_closed_or_full_end_no_work(closed: str, tmp_path: Path) -> None:
    text = tmp_path / "text.jsonl"
    text.write_text('{"text": "some words"}\n' * 100)  # so few that there is something to warn of
    for command in ("data prepare", "tokenizer train --size 300"):
        out = tmp_path / command.split()[0]
        script = f"{sys.executable} -P -m lexinvariant {command} {text} {out} {closed}"
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, check=False, text=True, timeout=120
        )
        assert done.returncode == 0 and "Traceback" not in done.stderr
        assert list(out.iterdir())


@pytest.mark.parametrize("command", ["--help", "train tiny --help", "data --help"])
def test_output_that_has_no_room_is_told(command: str) -> None:
    script = f"{sys.executable} -P -m lexinvariant {command} > /dev/full"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "lexinvariant: No space left on device.\n")


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        raise_in_data(monkeypatch, ZeroDivisionError())


def test_the_module_runs_and_passes_its_status_on() -> None:
    command = [sys.executable, "-m", "lexinvariant"]
    listed = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, command_line.usage(), "")
    wrong = subprocess.run(
        [*command, "train", "tinny"], capture_output=True, check=False, text=True, timeout=120
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "lexinvariant: There is no preset 'tinny': did you mean 'tiny'?\n"


def test_a_character_that_cannot_be_printed_is_no_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lexinvariant", "decipher", "★☆● ★☆● ★☆", "--top", "0"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "?=" in done.stdout  # the key, in symbols that ASCII does not have


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m lexinvariant --help | head -n 1",
        shell=True,
        check=False,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == "usage: lexinvariant COMMAND [options]\n"


def test_the_demo_samples_no_more_than_its_model_was_trained_on() -> None:
    prompt, n_tokens = SAMPLE
    assert len(prompt) + n_tokens <= preset("char-tiny").model.context, "more brings a warning"


def test_the_demo_tells_what_was_read_and_not_what_there_is() -> None:
    shard = Shard("train-00000", 1, 9_447_358, "", "", "")
    manifest = Manifest(
        "char128", 128, "uint8", (), 0, 0, {}, {"train": (shard,), "valid": (), "test": ()}, ""
    )
    config = preset("char-tiny").changed({"steps": 200, "batch_size": 16, "model.context": 128})
    assert told_of_training(config, manifest) == "It was trained on 409,600 of its 9,447,358 characters."
