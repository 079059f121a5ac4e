"""`lexinvariant plan` prints what a run would take, and says where it does not fit."""

import re
import subprocess
import sys

import pytest

from lexinvariant.cli.main import main
from lexinvariant.config import ModelConfig
from lexinvariant.model.folder import find_model, read_description
from lexinvariant.model.params import count
from lexinvariant.presets import as_standard, preset
from lexinvariant.settings import from_dict


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


def parameters(out: str) -> str:
    return re.search(r"^parameters +(\S+)$", out, re.MULTILINE)[1]  # type: ignore[index]


def of_model(config: ModelConfig) -> str:
    return f"{count(config) / 1e6:,.1f}M"


def test_a_run_that_starts_from_weights_is_planned_with_their_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundled = from_dict(ModelConfig, read_description(find_model("bundled"))["model"])
    for words, batch in (
        (["char-tiny", "--init", "bundled"], 16),
        (["finetune"], 8),
        (["--init", "bundled"], 8),
        (["--batch-size", "2", "--init=bundled"], 2),
    ):
        assert main(["plan", *words]) == 0
        out = capsys.readouterr().out
        assert f", {batch} x {bundled.context} tokens per step" in out.splitlines()[0]
        assert parameters(out) == of_model(bundled)
    assert main(["plan", "char-tiny", "--init", "nosuchmodel"]) == 2
    assert capsys.readouterr().err.startswith("lexinvariant: There is no folder nosuchmodel: give a model's")
    for option in (["--standard"], ["--regularise", "mixed"], ["--model.lexicon.kind", "learned"]):
        assert main(["plan", "char-tiny", "--init", "bundled", *option]) == 2
        said = "bundled is a lexinvariant model and the run trains a standard one: leave out " + option[0]
        assert capsys.readouterr().err == f"lexinvariant: {said}.\n"


@pytest.mark.parametrize(
    "options", [["--standard"], ["--regularise", "mixed", "--p", "0.2"], ["--regularise", "token-permuted"]]
)
def test_the_standard_twin_is_planned_as_it_is_trained(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    config = preset("char-small")
    assert main(["plan", "char-small", "--device", "h200", *options]) == 0
    planned, twin = parameters(capsys.readouterr().out), of_model(as_standard(config).model)
    assert planned == twin != of_model(config.model), "a twin has neither recall nor a head"


def test_help_loads_no_jax() -> None:
    code = (
        "import sys\nfrom lexinvariant.cli.main import main\nassert main(['plan', '--help']) == 0\n"
        "try:\n    main(['plan', 'tiny', '--help'])\nexcept SystemExit:\n    pass\nassert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


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
        (["--p", "0.2"], "--p is the share of tokens that --regularise randomises: give --regularise too"),
        (["--regularise", "mixed", "--no-standard"], "--regularise trains a standard model, and"),
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
