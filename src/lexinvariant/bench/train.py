"""Training speed, in one run on the machine at hand: ceiling, preset, the same with a fixed table, a peer."""

import collections
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import TrainConfig
from lexinvariant.presets import as_standard
from lexinvariant.training.setup import build, device_batch


def seconds_per_call(
    call: Callable[[], Any], wait: Callable[[], Any], calls: int, repeats: int
) -> list[float]:
    """Time groups of calls back to back, each group ended by waiting for the device; warm-up comes first."""
    for _ in range(3):
        call()
    wait()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - start) / calls)
    return times


def matmul_ceiling(size: int, repeats: int = 5) -> float:
    """FLOP/s of a square bfloat16 product of random matrices: the most that this device can do."""
    key_a, key_b = jax.random.split(jax.random.key(0))
    a = jax.random.normal(key_a, (size, size), jnp.bfloat16)
    b = jax.random.normal(key_b, (size, size), jnp.bfloat16)
    product = jax.jit(jnp.matmul)
    latest: list[jax.Array] = [a]

    def call() -> None:
        latest[0] = product(a, b)

    def wait() -> None:
        latest[0].block_until_ready()

    times = seconds_per_call(call, wait, calls=10, repeats=repeats)
    return 2 * size**3 / statistics.median(times)


def training_step(config: TrainConfig) -> tuple[Callable[[], None], Callable[[], None]]:
    """(run one real training step on random tokens, wait for the device)."""
    setup = build(config)
    shape = (config.batch_size, config.model.context)
    tok_BT = np.random.default_rng(0).integers(config.model.vocab_size, size=shape, dtype=np.int32)
    batch = device_batch(tok_BT, np.ones(shape, bool), config.batch_size, setup.mesh)
    latest = [setup.fresh_state()]

    def step() -> None:
        latest[0], _ = setup.train_step(latest[0], batch)

    return step, lambda: jax.block_until_ready(latest[0])


def kernel_times(
    step: Callable[[], None], wait: Callable[[], None], steps: int
) -> list[tuple[str, float, int]]:
    """(kernel, milliseconds a step, launches a step) on the accelerator, longest first."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(steps):
                step()
            wait()
        trace = next(Path(folder).rglob("*.xplane.pb"))
        data = jax.profiler.ProfileData.from_file(str(trace))
        total: collections.defaultdict[str, float] = collections.defaultdict(float)
        launches: collections.defaultdict[str, int] = collections.defaultdict(int)
        for plane in data.planes:
            if not plane.name.startswith("/device:GPU"):
                continue
            for line in plane.lines:
                if not line.name.startswith("Stream"):
                    continue
                for event in line.events:
                    total[event.name] += event.duration_ns / 1e6 / steps
                    launches[event.name] += 1
    return [(name, ms, launches[name] // steps) for name, ms in sorted(total.items(), key=lambda kv: -kv[1])]


def measure(
    config: TrainConfig, with_torch: bool, repeats: int, n_kernels: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Ceiling, preset, learned twin and peer, one after the other."""
    device = jax.devices()[0]
    on_gpu = device.platform == "gpu"
    flop = config.model.flop_per_token(config.model.context) * config.tokens_per_step
    rows: list[dict[str, Any]] = []

    def add(what: str, step: Callable[[], None], wait: Callable[[], None]) -> None:
        say(what)
        times = seconds_per_call(step, wait, calls=10 if on_gpu else 1, repeats=repeats)
        seconds = statistics.median(times)
        rows.append(
            {
                "what": what,
                "ms": seconds * 1e3,
                "ms_min": min(times) * 1e3,
                "ms_max": max(times) * 1e3,
                "tflops": flop / seconds / 1e12,
                "tokens_per_second": config.tokens_per_step / seconds,
            }
        )

    say("bf16 matmul ceiling")
    ceiling = matmul_ceiling(8192 if on_gpu else 1024)
    step, wait = training_step(config)
    add(f"lexinvariant ({config.model.lexicon.kind})", step, wait)
    kernels = kernel_times(step, wait, 3)[:n_kernels] if n_kernels else []
    del step, wait  # its state leaves the device before the next one comes
    add("the same, learned lexicon", *training_step(as_standard(config)))
    if with_torch:
        from lexinvariant.bench import torch_peer

        add("PyTorch peer (torch.compile)", *torch_peer.make_step(config.model, config.batch_size))
    return {
        "device": device.device_kind,
        "jax": jax.__version__,
        "batch_size": config.batch_size,
        "context": config.model.context,
        "flop_per_step": flop,
        "ceiling_tflops": ceiling / 1e12,
        "rows": rows,
        "kernels": [{"name": name, "ms": ms, "launches": launches} for name, ms, launches in kernels],
    }
