"""`lexinvariant plan` prints what a run would take, and says where it does not fit."""

import re

import pytest

from lexinvariant.cli.main import main
from lexinvariant.presets import preset


def test_what_a_run_takes_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "tiny", "--mesh", "4x8", "--device", "h200", "--tokens", "1e9"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("tiny on 4 x 8 H200, 32 x 96 tokens per step\n")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines()[1:])
    assert rows["parameters"].endswith("GB") and "GB of 141" in rows["memory"]
    assert re.fullmatch(r"tokens +[0-9.]+ minutes, [0-9.]+ device hours", rows["1e+09"])
    assert not re.search(r"\b0\.0+ ", out), "a small number has digits that say something"
    assert main(["plan", "tiny", "--device", "h200", "--tokens", "1e15"]) == 0
    assert " days, " in capsys.readouterr().out.splitlines()[-2]


def test_a_model_too_small_to_predict_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "tiny", "--device", "h200"]) == 0
    out = capsys.readouterr().out
    layers = preset("tiny").model.n_layers
    assert (
        f"Too small to predict by its FLOP: a step is taken to last {1 + 0.05 * layers:.1f} ms all the same"
        in out
    )
    rate = float(re.search(r"tokens per second +([\d,]+)", out)[1].replace(",", ""))  # type: ignore[index]
    assert rate == pytest.approx(32 * 96 / (1e-3 + 50e-6 * layers), abs=1)
    assert re.search(r"tokens +\d\.?\d* seconds$", out, re.MULTILINE)
    assert main(["plan", "char-small", "--device", "h200"]) == 0
    assert "Too small" not in capsys.readouterr().out


def test_what_does_not_fit_is_told_with_what_would(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "tiny", "--hbm", "0.01"]) == 1
    assert re.search(
        r"does not fit \(.* GB needed, 0.01 available\): --accumulate \d+ would fit\.",
        capsys.readouterr().out,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--mesh", "8"], "--mesh is two numbers of devices such as 8x4, not '8'"),
        (["--mesh", "0x8"], "--mesh is two numbers of devices such as 8x4, not '0x8'"),
        (["--device", "h10"], "There is no device 'h10' here: did you mean 'h100'?"),
        (["--mesh", "1x5", "--batch-size", "5"], "--sharding.fsdp 5 does not divide the width 64"),
        (["--mesh", "8x8"], "A batch of 32 in 1 part(s) cannot be split over 64 devices"),
        (["--utilisation", "2"], "--hbm and --tokens are at least 0"),
        (["--hbm", "nan"], "--hbm is nan: give a finite number"),
        (["--tokens", "inf"], "--tokens is inf: give a finite number"),
    ],
)
def test_plans_that_cannot_be(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "tiny", *options]) == 2
    assert capsys.readouterr().err.startswith(f"lexinvariant: {sentence}")


def test_without_a_preset_options_and_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 0
    out = capsys.readouterr().out
    for word in ("--mesh DATAxFSDP", "tpu-v5p", "tokens-7b"):
        assert word in out
