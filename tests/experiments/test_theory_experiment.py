"""The theory experiment writes rows that satisfy the theory."""

from pathlib import Path

import numpy as np
import pytest
from lexinvariant.experiments.rows import Row, read_rows

from lexinvariant.errors import UserError
from lexinvariant.experiments.theory import Options, run


def small(out: Path, **changes: object) -> Options:
    return Options(out=out, quick=True, length=24, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    out = tmp_path_factory.mktemp("theory")
    said: list[str] = []
    written = run(small(out), command="lexinvariant experiment theory --quick", say=said.append)
    assert read_rows(out / "theory.jsonl") == written
    assert any("worst case" in line for line in said)
    return written


def kind(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["kind"] == name]


def test_every_language_and_size_is_there(rows: list[Row]) -> None:
    names = {(row["language"], row["d"]) for row in kind(rows, "convergence")}
    assert names == {(name, d) for name in ("markov", "ngram", "near", "symmetric") for d in (3, 5)}
    assert {row["kind"] for row in rows} == {"convergence", "exponents", "worst", "bound", "limit"}
    assert all(row["data_hash"] and row["command"].endswith("--quick") for row in rows)


def test_measured_curves_obey_the_theorems(rows: list[Row]) -> None:
    for row in kind(rows, "convergence"):
        assert np.all(np.array(row["l1_max"]) <= np.array(row["bound_sharp"]))
        assert np.all(np.array(row["regret_max"]) <= row["log_factorial"] + 1e-9)
        assert row["context"][-1] == 24
    for row in kind(rows, "worst"):
        assert np.all(np.array(row["l1_mean"]) <= np.array(row["bound_expected"]))
    [worst] = [row for row in kind(rows, "exponents") if row["language"] == "worst"]
    assert all(-0.65 < value < -0.35 for value in worst["in_T"].values())


def test_the_limit_improves_with_context(rows: list[Row]) -> None:
    [row] = kind(rows, "limit")
    assert row["d"] == 27
    assert row["nats"][0] == pytest.approx(np.log(27))  # nothing is known before the first symbol
    assert len(row["nats"]) == len(row["known_nats"]) == 24
    assert row["key_surprise"][-1] < row["key_surprise"][0]


def test_a_trained_model_is_scored_on_the_same_text(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lexinvariant.experiments import theory

    for name in ("_convergence", "_worst"):  # not about the model, and slow
        monkeypatch.setattr(theory, name, lambda *arguments: None)
    rows = run(small(tmp_path / "out", model=str(tiny_model), draws=3))
    [row] = kind(rows, "model")
    assert (row["draws"], row["name"], len(row["nats"])) == (3, "tiny", 24)
    assert row["nats"][0] == pytest.approx(np.log(128))  # one of all the symbols, each as likely
    assert row["model_hash"]


def test_the_text_is_the_users(tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("too short")
    with pytest.raises(UserError, match="fewer than --length"):
        run(small(tmp_path, text=file))
    with pytest.raises(UserError, match="no source at"):
        run(small(tmp_path, text=tmp_path / "none.txt"))
    with pytest.raises(UserError, match="There is no folder"):
        run(small(tmp_path, model=str(tmp_path / "none")))
    with pytest.raises(UserError, match="--length"):
        run(Options(out=tmp_path, length=2))
