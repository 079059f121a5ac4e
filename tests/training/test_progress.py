"""What a person sees of a run."""

import pytest

from lexinvariant.training import progress
from lexinvariant.training.progress import TrainProgress


@pytest.mark.parametrize(("tokens", "shown"), [(64, "64 tok"), (9_000, "9,000 tok"), (25_000, "25k tok")])
def test_slow_training_has_a_speed_too(
    tokens: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter((0.0, 1.0))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    with TrainProgress("run", 1, 0, tokens, 1.0) as line:
        line.update(1, {"loss": 1.0, "tail_loss": 1.0})
    assert shown in capsys.readouterr().err
