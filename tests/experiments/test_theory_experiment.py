"""The theory experiment writes rows that satisfy the theory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.theory import Options
from lexinvariant.report.draw import draw
from lexinvariant.results.rows import Row, Rows
from lexinvariant.results.theory import Bench, Convergence, Exponents, Worst
from lexinvariant.results.theory_limit import Limit, ModelCurve


def small(out: Path, **changes: Any) -> Options:
    return Options(out=out, quick=True, length=24, **changes)


def run(options: Options, **rest: Any) -> list[Row]:
    return find_experiment("theory").run(options, **rest)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Rows:
    out = tmp_path_factory.mktemp("theory")
    said: list[str] = []
    options = small(out, model=str(tiny_model), draws=3)
    written = run(options, command="lexinvariant experiment theory --quick", log=said.append)
    assert list(read_all_rows(out)) == written
    assert any("worst case" in line for line in said)
    return Rows(written)


def test_every_language_and_size_is_there(rows: Rows) -> None:
    names = {(row.language, row.d) for row in rows.of(Convergence)}
    assert names == {(name, d) for name in ("markov", "ngram", "near", "symmetric") for d in (3, 5)}
    assert {row.kind for row in rows} == {"convergence", "exponents", "worst", "bound", "limit", "model"}
    assert all(row.origin.data_hash and row.origin.command.endswith("--quick") for row in rows)


def test_measured_curves_obey_the_theorems(rows: Rows) -> None:
    for row in rows.of(Convergence):
        assert np.all(np.array(row.l1_max) <= np.array(row.bound_sharp) * (1 + 1e-6))
        assert np.all(np.array(row.regret_max) <= row.log_factorial * (1 + 1e-6))  # rows keep seven digits
        assert row.context[-1] == 24
    for worst in rows.of(Worst):
        assert np.all(np.array(worst.l1_mean) <= np.array(worst.bound_expected) * (1 + 1e-6))
    [hardest] = [row for row in rows.of(Exponents) if row.language == "worst"]
    assert all(-0.65 < value < -0.35 for value in hardest.in_T.values())


def test_the_limit_improves_with_context(rows: Rows) -> None:
    [row] = rows.of(Limit)
    assert row.d == 27
    assert row.nats[0] == pytest.approx(np.log(27))  # nothing is known before the first symbol
    assert len(row.nats) == len(row.known_nats) == 24
    assert row.key_surprise[-1] < row.key_surprise[0]


def test_a_trained_model_is_scored_on_the_same_text(rows: Rows) -> None:
    [row] = rows.of(ModelCurve)
    assert (row.origin.draws, row.name, len(row.nats)) == (3, "tiny", 24)
    assert row.nats[0] == pytest.approx(np.log(128))  # one of all the symbols, each as likely
    assert row.origin.model_hash


def test_the_section_is_drawn_from_what_was_written(rows: Rows, tmp_path: Path) -> None:
    part = find_experiment("theory").section(rows)
    assert part is not None
    assert len(part.figures) == 5
    for figure in part.figures:
        assert draw(figure, "light").axes
    assert len(part.tables) == 4
    assert len(part.findings) == 1


@pytest.mark.slow
def test_the_kernels_are_timed(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("the cat sat on the mat")
    rows = Rows(run(Options(out=tmp_path, length=8, order=2, eval_text=short, bench=True)))
    assert [(row.what, row.d, row.keys, row.length) for row in rows.of(Bench)] == [
        ("enumeration", 8, 40320, 512),
        ("particles", 27, 4096, 22),
    ]
    assert all(row.wall_seconds > 0 and row.origin.draws is None for row in rows.of(Bench))
    part = find_experiment("theory").section(rows)
    assert part is not None
    assert [table.caption for table in part.tables] == ["Time of the two kernels"]


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
    with pytest.raises(UserError, match="An order-9 table over 27 symbols is too large"):
        run(small(tmp_path, order=9))
    assert not list(tmp_path.glob("*.jsonl"))  # before any work
    for option in ("texts", "draws"):
        with pytest.raises(UserError, match=f"--{option} is 0: give at least 1"):
            run(small(tmp_path, **{option: 0}))
