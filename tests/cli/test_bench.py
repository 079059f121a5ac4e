"""`lexinvariant bench train` measures what it names."""

import json
from pathlib import Path

import pytest

from lexinvariant.cli.main import main


@pytest.mark.slow
def test_the_numbers_of_every_row_are_written_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "bench.json"
    command = ["bench", "train", "--preset", "tiny", "--quick", "--repeats", "1", "--no-torch"]
    assert main([*command, "--batch-size", "8", "--n-layers", "1", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    result = json.loads(out.read_text())
    assert [row["what"] for row in result["rows"]] == [
        "lexinvariant (permuted, readout seen)",
        "standard (learned, readout full)",
    ]
    assert (result["preset"], result["batch_size"], result["context"]) == ("tiny", 8, 96)
    assert result["ceiling_tflops"] > 0
    for row in result["rows"]:
        assert row["ms_min"] <= row["ms"] <= row["ms_max"]
        assert row["tflops"] == pytest.approx(row["flop_per_step"] / row["ms"] / 1e9)
        assert row["tokens_per_second"] == pytest.approx(8 * 96 / row["ms"] * 1e3)
        assert row["times_standard"] == pytest.approx(row["ms"] / result["rows"][1]["ms"])
        assert row["peak_bytes"] > 100_000
        assert f"{row['ms']:.2f}" in shown
    assert f"Wrote {out}." in shown.replace("\n", "")


def test_an_unknown_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train", "--preset", "tinny"]) == 2
    assert "did you mean 'tiny'?" in capsys.readouterr().err
    for option, value in (("--repeats", "0"), ("--kernels", "-3")):
        assert main(["bench", "train", "--preset", "tiny", option, value]) == 2
        assert f"{option} is {value}: give a number of at least" in capsys.readouterr().err


def test_solvers_are_measured_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "decipher", "--texts", "3"]) == 2
    assert "lexinvariant experiment decipher" in capsys.readouterr().err.replace("\n", " ")
