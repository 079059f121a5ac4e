"""`bench decipher`: its measures against oracles, and its rows and report."""

from pathlib import Path

import numpy as np
import pytest
from lexinvariant.report.figures import save

from lexinvariant.bench import decipher as bench
from lexinvariant.errors import UserError
from lexinvariant.report.decipher import section

TEXT = (
    "When the old keeper of the lighthouse heard the storm coming over the water he climbed the stairs with his lamp "
    "and his book and sat down to wait for the ships that would need him before the morning but none of them came "
    "and so he read about the quiet king and the lazy fox until the wind was still and the sun stood over the sea "
)


def test_measures_count_what_they_say() -> None:
    assert bench.error_rate("a bad", "a bed", "spaced") == 1 / 4
    assert bench.error_rate("a bad", "a bed", "ascii") == 1 / 5
    assert bench.key_accuracy("abca", "xbcx", "unspaced") == 2 / 3
    assert bench.error_rate("abc", "abc", "unspaced") == 0
    low, high = bench.interval([0.0, 1.0] * 50)
    assert low < 0.42 < 0.58 < high
    assert bench.interval([0.3] * 9) == pytest.approx((0.3, 0.3))


def test_reliability_counts_by_bin() -> None:
    told = bench.reliability([0.05, 0.93, 0.94, 1.0], [False, True, False, True], [1, 2, 3, 4])
    assert told["symbols"] == [1, 0, 0, 0, 0, 2, 0, 1]
    assert told["symbols_right"] == [0, 0, 0, 0, 0, 1, 0, 1]
    assert told["occurrences_right"] == [0, 0, 0, 0, 0, 2, 0, 4]
    assert told["sure"][5] == pytest.approx(1.87)


def test_rows_of_every_solver_on_the_same_texts_and_their_report(tmp_path: Path) -> None:
    source = tmp_path / "test.txt"
    source.write_text(TEXT * 3)
    said: list[str] = []
    options = bench.Options(
        str(source),
        tmp_path,
        lengths=(220,),
        settings=("spaced",),
        texts=2,
        peers=("annealer",),
        peer_texts=1,
        batch=2,
        fresh=1,
        annealer_swaps=500,
    )
    rows = bench.run(options, "the command", said.append)
    ours, sure, plain, batch, fresh = rows
    assert [row["kind"] for row in rows] == ["solver", "reliability", "solver", "batch", "fresh"]
    assert (ours["solver"], ours["n"], plain["solver"], plain["n"]) == ("lexinvariant", 2, "annealer", 1)
    assert ours["error"] < 0.02
    assert ours["error"] == pytest.approx(np.mean(ours["errors"]))
    assert ours["command"] == "the command"
    assert ours["data_hash"]
    assert sum(sure["symbols"]) > 2 * 15
    assert batch["n"] == 2
    assert 0.2 < fresh["median_seconds"] < 60
    assert any("annealer" in line for line in said)

    told = section(rows)
    assert told is not None
    assert any("220" in cell for row in told.tables[0].rows for cell in row)
    assert "2 texts of 200 symbols" in " ".join(told.paragraphs)
    saved = [save(drawing, tmp_path / "figures") for drawing in told.drawings]
    assert [s.png.name for s in saved] == ["decipher-errors.png", "decipher-reliability.png"]

    later = [row | {"setting": "ascii", "run": row["run"] + ", later"} for row in (ours, sure)]
    both = section([*rows, *later])
    assert both is not None
    assert len(both.drawings) == 2, "a later run of one setting replaces nothing of another"
    assert (len(told.tables), len(both.tables)) == (1, 2)


def test_an_unknown_peer_and_no_rows() -> None:
    with pytest.raises(UserError, match="no solver called 'nobody'"):
        bench.run(bench.Options(peers=("nobody",)))
    assert section([]) is None
