"""Every command with arguments that nobody should give: it says in a sentence what is wrong, with status 2."""

import io
import os
import shlex
import shutil
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.cli.completion import words_after
from lexinvariant.cli.document import pages
from lexinvariant.cli.main import main
from lexinvariant.text import prepare
from tests.fuzz.conftest import MORE

fuzz = settings.get_profile("fuzz")
LONGEST = 60  # seconds until it is called hanging
SAYS_NO = {("decipher", 3), ("plan", 1)}
"""Commands that leave with a status of their own: a text that was not read, a run that would not fit."""
COMMANDS = tuple(tuple(page) for page in pages() if page)
# A command that lacks nothing comes so far as to look at its options.
WHOLE = tuple(
    tuple(shlex.split(line))
    for line in (
        "decipher 'abc def'",
        "decipher --file text.txt",
        "score model abc",
        "generate model abc --n-tokens 3",
        "evaluate model --data corpus --sequences 2",
        "semantic 'blick wug' --model model",
        "data prepare text.txt out",
        "data check corpus",
        "tokenizer train text.txt tokenizer --size 270",
        "train tiny",
        "train tiny --distributed localhost:1,1,0",
        "plan tiny --mesh 2x2",
        "train char-tiny --data corpus",
        "train --init model --data corpus",
        "export folder out",
        "report folder",
        "reproduce char-tiny --data corpus",
        "serve --port 0 --model model",
        "bench train",
        "language show",
    )
)
NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1", "1e400", "9" * 30, "0x10", "1_0", "½", "٣", "1,2", "1.5")
WORDS = ("", " ", "a", "None", "true", "auto", "bundled", "char-tiny", "💀", "e\u0301\u200d", "--", "-x", "=")
PATHS = (
    "missing",
    "missing/too",
    "folder",
    "empty",
    "bytes",
    "text.txt",
    "pipe",
    "dangling",
    "corpus",
    "model",
)
# What would take minutes when all is well: that a command comes so far is enough.
WORK = (
    "lexinvariant.training.loop.build",
    "lexinvariant.cli.train.run_in_cluster",
    "lexinvariant.bench.train.measure",
    "lexinvariant.experiments.registry.Experiment.run",
    "lexinvariant.experiments.reproduce.run_all",
    "lexinvariant.decipher.solve.Solver.read",
    "lexinvariant.decipher.build_language.build_language",
    "lexinvariant.decipher.fit_verdict.fit_verdict",
    "lexinvariant.web.service.Service.__init__",
)


class WorkBeganError(Exception):
    """The arguments were good enough to begin with."""


@cache
def options_of(*command: str) -> list[str]:
    return words_after(*command)[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Path]:
    """A folder with something of every sort, which is the current one."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "text.txt").write_text("the cat and the hat\n\nthe dog and the fog\n" * 20)
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nowhere")
    shutil.copytree(tiny_model, folder / "model")
    prepare([str(folder / "text.txt")], folder / "corpus", progress=False)
    for command in (*COMMANDS, *WHOLE):
        options_of(*command[:2])  # imports modules that draw numbers, which a strategy may not

    def begin(*_: Any, **__: Any) -> None:
        raise WorkBeganError

    with pytest.MonkeyPatch.context() as patch, Path(os.devnull).open() as nothing:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr("sys.stdin", nothing)
        for name in WORK:
            patch.setattr(name, begin)
        yield folder


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def hang(*_: Any) -> None:
        raise AssertionError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    values = st.sampled_from(NUMBERS) | st.sampled_from(WORDS) | st.sampled_from(PATHS) | st.text(max_size=3)
    values = values.filter(lambda value: "\0" not in value)  # which no system passes on
    whole = draw(st.booleans())
    command = draw(st.sampled_from(WHOLE if whole else COMMANDS))
    line = [*command] if whole else [*command, *draw(st.lists(values, max_size=3))]
    for _ in range(draw(st.integers(1 if whole else 0, 3))):
        if options := options_of(*command[:2]):
            line.append(draw(st.sampled_from(options)))
        line += [draw(values)] if whole else draw(st.lists(values, max_size=2))
    return line


@settings(fuzz, max_examples=MORE or 50)
@given(line=command_lines())
def test_every_command(place: Path, line: list[str]) -> None:
    told = io.StringIO()
    with warnings.catch_warnings(), within(LONGEST), redirect_stderr(told):
        warnings.simplefilter("ignore")
        try:
            status: Any = main(line)
        except SystemExit as end:  # tyro's way of saying that an option is none
            status = end.code
        except WorkBeganError:
            return
    assert status in (0, 2) or (line[0], status) in SAYS_NO, line
    if status == 2 and told.getvalue().startswith("lexinvariant: "):
        assert told.getvalue().count("\n") == 1, told.getvalue()
