"""Storage that fails, is slow or changes what was written, and clocks that jump: nothing is lost, and nothing is wrong
in silence. A few faults in `make test`, dozens at every place in `make soak`.
"""

import errno
import gc
import io
import os
import random
import resource
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from lexinvariant.cli.main import main
from lexinvariant.config import LexiconConfig
from lexinvariant.decipher.language import load_language
from lexinvariant.errors import UserError
from lexinvariant.model.weights import load_weights, save_model
from lexinvariant.text import CharVocab, open_data, train_tokenizer
from lexinvariant.training.metrics import read_metrics
from tests.soak.scale import SOAK
from tests.tiny_models import TINY, random_params
from tests.training.test_loop import SHORT, compiled, contents, model  # noqa: F401

PREPARE = ["data", "prepare", "text.txt", "corpus", "--valid-fraction", "0.2", "--test-fraction", "0.2"]
TOKENIZER = ["tokenizer", "train", "text.txt", "tokenizer", "--size", "280"]
TRAIN = [*SHORT, "--out", "run"]
COMMANDS = {"data": PREPARE, "tokenizer": TOKENIZER} | ({"training": TRAIN} if SOAK else {})
CALLS = ("mkdir", "replace", "rename", "fsync", "unlink", "rmdir", "open")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the cat and the hat\n\nthe dog and the fog sat there\n\n" * 60)
    return tmp_path


@contextmanager
def counted_calls(fault: Callable[[int, str], None]) -> Iterator[list[str]]:
    """`fault(number, name)` is asked before every call that changes what is on the disk."""
    made: list[str] = []

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            writes = name != "io.open" or any(sign in str((*args, *kwargs.values())[1:]) for sign in "wax+")
            if writes:
                made.append(name)
                fault(len(made), name)
            return function(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counting(name, getattr(os, name)))
        patch.setattr(io, "open", counting("io.open", io.open))
        yield made


def run(command: list[str]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what could not be tidied up is told so
        status = main(command)
        gc.collect()  # Orbax leaves coroutines behind where a call fails
        return status


def result(command: list[str]) -> Any:
    if command is TRAIN:
        rows = read_metrics(Path("run/metrics.jsonl"))
        return model(Path("run")), [(row["step"], row["kind"], row["loss"]) for row in rows]
    folder = Path(command[3])
    return {name: data for name, data in contents(folder).items() if "verified" not in name}


def clear() -> None:
    for name in ("corpus", "tokenizer", "run"):
        shutil.rmtree(name, ignore_errors=True)


def told(capsys: pytest.CaptureFixture[str]) -> None:
    """What was printed is one sentence, beside lines of progress."""
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert sum(line.startswith("lexinvariant: ") for line in error.splitlines()) == 1, error


@pytest.mark.parametrize("what", COMMANDS)
def test_a_call_that_fails_costs_nothing(what: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of the calls fails: the command says so, or does without, and works when it is given again."""
    command, chance = COMMANDS[what], random.Random(what)
    with counted_calls(lambda number, name: None) as made:
        assert run(command) == 0
    whole = result(command)
    failing = range(1, len(made) + 1)
    for at in chance.sample(failing, min(60 if SOAK else 2, len(made))):
        clear()

        def fail(number: int, name: str, at: int = at) -> None:
            if number == at:
                raise OSError(errno.EIO, os.strerror(errno.EIO), f"call {at}, {name}")

        capsys.readouterr()
        with counted_calls(fail):
            status = run(command)
        assert status in (0, 2), (at, made[at - 1])
        if status == 2:
            told(capsys)
            assert run([*command, "--overwrite"] if what == "tokenizer" else command) == 0, (at, made[at - 1])
        assert result(command) == whole, (at, made[at - 1])


@pytest.mark.parametrize("what", COMMANDS)
def test_files_that_may_not_grow_are_told(what: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a full disk, at whatever byte it happens to be full."""
    command, chance = COMMANDS[what], random.Random(what)
    assert run(command) == 0
    whole, limits = result(command), resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(path.stat().st_size for path in Path().rglob("*") if path.is_file())
    for _ in range(40 if SOAK else 1):
        clear()
        capsys.readouterr()
        resource.setrlimit(resource.RLIMIT_FSIZE, (chance.randrange(largest), limits[1]))
        try:
            status = run(command)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        if status == 2:
            told(capsys)
        else:
            assert status == 0
        if status == 2 or what == "training":
            assert run([*command, "--overwrite"] if what == "tokenizer" else command) == 0
        assert result(command) == whole


@pytest.mark.parametrize("what", COMMANDS)
def test_a_slow_disk_and_a_clock_that_jumps(
    what: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, chance, real = COMMANDS[what], random.Random(what), time.time
    assert run(command) == 0
    whole = result(command)
    for jump in (100.0, 10_000.0, 1e9) if SOAK else (1e9,):
        clear()
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda jump=jump: real() + chance.uniform(-jump, jump))
            patch.setattr(time, "time_ns", lambda: int(1e9 * time.time()))
            with counted_calls(lambda number, name: time.sleep(0.003)):
                status = run(command)
        if status:
            assert what == "training"  # Orbax may take a jump in the midst of a save for a disk that hangs
            told(capsys)
            assert run(command) == 0
        assert result(command) == whole
    # Files of tomorrow and of 1970 are read as any others.
    for path in Path().rglob("*"):
        stamp = chance.choice([0, real() + 1e6])
        os.utime(path, (stamp, stamp))
    if what == "training":
        shutil.rmtree("run/model")
        assert run(command) == 0 and result(command) == whole
    elif what == "data":
        open_data("corpus")


# What is read of each kind of folder, to be compared.
def read_corpus(folder: Path) -> Any:
    corpus = open_data(folder)
    return [corpus.split(name, 8)[np.arange(4)].tok_BT.tolist() for name in ("train", "valid")]


def read_run(folder: Path) -> Any:
    shutil.rmtree(folder / "model", ignore_errors=True)
    if run([*SHORT, "--out", str(folder), "--run.no-tensorboard"]):
        raise UserError("The run cannot go on.")
    return model(folder)


def read_model(folder: Path) -> Any:
    found = load_weights(folder)
    return [np.asarray(value).tobytes() for value in jax.tree.leaves(found.params)], found.config


def read_language(folder: Path) -> Any:
    language = load_language(folder)
    return [int(language.ngram(name).cost_G.sum(dtype=np.int64)) for name in ("spaced", "unspaced")]


FILES_OF_A_RUN = ("checkpoints/*/**/*", "metrics.jsonl", "config.json", "vocab.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of every kind."""
    place = tmp_path_factory.mktemp("whole")
    (place / "text.txt").write_text("the cat and the hat\n\nthe dog and the fog sat there\n\n" * 60)
    text = str(place / "text.txt")
    assert main(["data", "prepare", text, str(place / "corpus"), "--valid-fraction", "0.2"]) == 0
    if SOAK:
        assert main([*SHORT, "--out", str(place / "run"), "--run.no-tensorboard"]) == 0
    config = replace(TINY, context=8, lexicon=LexiconConfig(kind="permuted"), readout="seen")
    save_model(place / "model", config, random_params(config), CharVocab())
    train_tokenizer([text], place / "tokenizer", size=280)
    shutil.copytree(load_language().folder, place / "language")
    return place


@pytest.mark.parametrize(
    ("kind", "files", "read"),
    [
        ("corpus", "*.tokens", read_corpus),
        ("corpus", "*.documents", read_corpus),
        ("corpus", "manifest.json", read_corpus),
        ("corpus", "vocab.json", read_corpus),
        ("model", "model.safetensors", read_model),
        ("language", "*spaced.xz", read_language),
        *([("run", files, read_run) for files in FILES_OF_A_RUN] if SOAK else []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_flipped_bit_is_told_or_does_no_harm(
    kind: str, files: str, read: Callable[[Path], Any], whole: Path, tmp_path: Path
) -> None:
    chance = random.Random(files)
    expected = read(Path(shutil.copytree(whole / kind, tmp_path / "same")))
    told = 0
    flips = 30 if SOAK else 1
    for number in range(flips):
        bad = Path(shutil.copytree(whole / kind, tmp_path / f"bad{number}"))
        path = chance.choice(sorted(path for path in bad.glob(files) if path.is_file()))
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            found = read(bad)
        except UserError:
            told += 1
        else:
            assert found == expected, path
    if "." in files and not files.endswith(("json", "jsonl")):  # where every bit counts
        assert told == flips
