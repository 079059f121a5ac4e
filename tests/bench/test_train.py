"""What the benchmark times is what it says it times."""

from dataclasses import replace

import jax
import pytest

from lexinvariant.bench.train import kernel_times, matmul_ceiling, seconds_per_call, training_step
from lexinvariant.presets import preset

TINY = preset("tiny")
CONFIG = replace(
    TINY,
    model=replace(TINY.model, context=16, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=32),
    batch_size=8,
)


pytestmark = pytest.mark.usefixtures("compile_quickly")


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


@pytest.mark.slow
def test_a_timed_step_is_a_real_one() -> None:
    step, wait = training_step(CONFIG)
    state = next(
        cell.cell_contents for cell in step.__closure__ or () if isinstance(cell.cell_contents, list)
    )
    before = jax.device_get(state[0].params.start_D), jax.device_get(state[0].params.layers.up_DF)
    for _ in range(3):
        step()
    wait()
    assert int(state[0].step) == 3
    assert (before[1] != jax.device_get(state[0].params.layers.up_DF)).any()
    assert kernel_times(step, wait, 1) == []  # there are no GPU kernels here
    assert int(state[0].step) == 4


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
