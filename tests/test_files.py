"""What can be written is found out before long work, and leaves nothing behind."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lexinvariant.cli.main import main
from lexinvariant.errors import UserError
from lexinvariant.files import check_can_fill, check_can_write, write_remedy


def test_a_place_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    check_can_fill(tmp_path / "new" / "folder")
    check_can_write(tmp_path / "new.json")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.json").write_text("old")
    check_can_write(tmp_path / "old.json")
    assert (tmp_path / "old.json").read_text() == "old"


@pytest.mark.parametrize("check", [check_can_fill, check_can_write])
def test_a_file_in_the_way(check: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        UserError, match=r"written to .* \(Not a directory: .*/file\): choose another place\."
    ):
        check(tmp_path / "file" / "below" / "out")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be written \(Is a directory\)"):
        check_can_write(tmp_path)


def test_the_remedy_is_that_of_the_cause() -> None:
    said = {code: write_remedy(OSError(code, os.strerror(code))) for code in (errno.ENOSPC, errno.EROFS)}
    assert said[errno.ENOSPC] == "free some space or choose another place"
    assert "free some space" not in said[errno.EROFS] and "can only be read" in said[errno.EROFS]
    assert write_remedy(OSError(errno.EACCES, "")) == "choose another place"


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("bench train --preset tiny --out", "lexinvariant.bench.train.measure"),
        ("demo --out", "lexinvariant.decipher.solve.Solver"),
        ("experiment theory --quick --out", "lexinvariant.experiments.theory.run"),
        ("evaluate bundled --data markov12 --out", "lexinvariant.training.evaluate.evaluate"),
        ("tokenizer train stdlib", "lexinvariant.text.tokenizer._texts"),
    ],
)
def test_commands_find_out_before_they_work(
    command: str,
    work: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(work, lambda *_, **__: pytest.fail("it has begun"))
    (tmp_path / "file").write_text("")
    assert main([*command.split(), str(tmp_path / "file" / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lexinvariant: Nothing can be written to ") and said.count("\n") == 1
