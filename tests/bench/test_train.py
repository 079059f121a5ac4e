"""What the benchmark times is what it says it times."""

from dataclasses import replace
from typing import Any

import jax
import pytest

from lexinvariant.bench import train
from lexinvariant.bench.train import (
    TrainingStep,
    describe,
    kernel_times,
    matmul_ceiling,
    measure,
    relatives,
    seconds_per_call,
)
from lexinvariant.config import TrainConfig
from lexinvariant.presets import preset
from lexinvariant.training.setup import build

TINY = preset("tiny")
CONFIG = replace(
    TINY,
    model=replace(TINY.model, context=16, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=32),
    batch_size=8,
)


def test_warm_up_is_not_timed_and_every_group_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    clock = iter(range(100))
    monkeypatch.setattr("time.perf_counter", lambda: events.append("clock") or float(next(clock)))
    times = seconds_per_call(lambda: events.append("call"), lambda: events.append("wait"), calls=2, repeats=2)
    group = ["clock", "call", "call", "wait", "clock"]
    assert events == ["call"] * 3 + ["wait"] + group * 2
    assert times == [0.5, 0.5]


def test_ceiling_counts_the_flop_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexinvariant.bench.train.seconds_per_call", lambda *args, **kwargs: [2.0, 4.0, 8.0])
    assert matmul_ceiling(10) == 2 * 10**3 / 4.0


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "paper-32k",
            [
                "lexinvariant (gaussian, readout full)",
                "lexinvariant (gaussian, readout seen)",
                "standard (learned, readout full)",
            ],
        ),
        (
            "tokens-small",
            [
                "lexinvariant (annealed, readout seen, deciphering head)",
                "lexinvariant (annealed, readout seen)",
                "lexinvariant (gaussian, readout seen)",
                "standard (learned, readout full)",
                "lexinvariant (gaussian, readout full)",
            ],
        ),
    ],
)
def test_a_preset_is_measured_beside_its_relatives_and_none_twice(name: str, rows: list[str]) -> None:
    config = preset(name)
    all_of_them = relatives(config)
    assert [describe(relative.model) for relative in all_of_them] == rows
    assert all_of_them[0] == config
    for relative in all_of_them:
        assert (relative.model.vocab_size, relative.model.width) == (
            config.model.vocab_size,
            config.model.width,
        )


def test_in_a_hurry_the_preset_and_the_standard_model_are_timed() -> None:
    names = [describe(config.model) for config in relatives(preset("char-small"), quick=True)]
    assert names == [
        "lexinvariant (annealed, readout seen, deciphering head)",
        "standard (learned, readout full)",
    ]


class FakeStep:
    """Fits or does not."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config

    def run(self) -> None:
        if self.config.model.lexicon.kind == "gaussian":
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        if self.config.batch_size == 3:
            raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    def wait(self) -> None:
        pass

    def peak_bytes(self) -> int:
        return 10**9


def measure_fakes(monkeypatch: pytest.MonkeyPatch, config: TrainConfig) -> dict[str, Any]:
    monkeypatch.setattr(train, "TrainingStep", FakeStep)
    monkeypatch.setattr(train, "matmul_ceiling", lambda size: 1e12)
    return measure(relatives(config), with_torch=False, repeats=1, n_kernels=0, say=lambda what: None)


def test_a_step_that_does_not_fit_says_so_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {row["what"]: row for row in measure_fakes(monkeypatch, CONFIG)["rows"]}
    naive = rows.pop("lexinvariant (gaussian, readout full)")
    assert naive == rows.pop("lexinvariant (gaussian, readout seen)") | {"what": naive["what"]}
    assert (naive["error"], naive["peak_bytes"]) == ("out of memory", 10**9)
    assert "ms" not in naive
    assert len(rows) == 2
    assert all(row["tokens_per_second"] > 0 and row["times_standard"] > 0 for row in rows.values())


def test_any_other_failure_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="something else"):
        measure_fakes(monkeypatch, replace(CONFIG, batch_size=3))


@pytest.mark.slow
def test_a_timed_step_is_a_real_one() -> None:
    step = TrainingStep(CONFIG)
    step.run()
    before = jax.device_get(step.state.params.layers.up_DF)
    for _ in range(2):
        step.run()
    step.wait()
    assert int(step.state.step) == 3
    assert (before != jax.device_get(step.state.params.layers.up_DF)).any()
    assert kernel_times(step, 1) == []  # there are no GPU kernels here
    assert int(step.state.step) == 4


@pytest.mark.slow
def test_memory_is_that_of_each_step_and_tells_the_naive_construction() -> None:
    """At a large vocabulary the rows and the logits over all of it weigh more than everything else here."""
    n, model = 3000, CONFIG.model
    naive = relatives(CONFIG.changed({"model.vocab_size": n, "model.recall_width": 0}))[-1]
    steps = {readout: TrainingStep(naive.changed({"model.readout": readout})) for readout in ("full", "seen")}
    full, seen = (steps[readout].peak_bytes() for readout in ("full", "seen"))
    rows_a_device = CONFIG.batch_size // jax.device_count()
    assert full - seen > rows_a_device * n * (model.context + model.width) * 4
    state = build(naive).abstract_state
    assert seen > sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


@pytest.mark.slow
def test_the_peers_loss_is_finite_after_a_step() -> None:
    torch = pytest.importorskip("torch")
    from lexinvariant.bench.torch_peer import Decoder

    torch.manual_seed(0)
    model = Decoder(CONFIG.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    tokens = torch.randint(CONFIG.model.vocab_size, (8, CONFIG.model.context))
    first = model(tokens)
    first.backward()
    optimizer.step()
    second = model(tokens)
    assert torch.isfinite(first)
    assert torch.isfinite(second)
    assert second < first
