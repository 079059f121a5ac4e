"""Training speed and memory, in one run on the machine at hand: ceiling, preset and its relatives, a peer."""

import collections
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig, TrainConfig
from lexinvariant.presets import as_standard
from lexinvariant.text.batch import Batch
from lexinvariant.training.setup import build, device_batch
from lexinvariant.training.step import TrainState


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


class Step(Protocol):
    """Something to time."""

    def run(self) -> None:
        """Ask for one training step; it may still be under way afterwards."""

    def wait(self) -> None:
        """Until all steps are done."""

    def peak_bytes(self) -> int | None:
        """The most device memory that a step holds, if that is known."""


class TrainingStep:
    """A real training step, of tokens drawn evenly from the vocabulary."""

    def __init__(self, config: TrainConfig) -> None:
        setup = build(config)
        shape = (config.batch_size, config.model.context)
        tok_BT = np.random.default_rng(0).integers(config.model.vocab_size, size=shape, dtype=np.int32)
        batch = Batch(tok_BT, np.ones(shape, bool), np.ones(len(tok_BT), bool), np.arange(len(tok_BT)))
        self._batch = device_batch(batch, config.batch_size, setup.mesh)
        self._compiled = setup.train_step.lower(setup.abstract_state, self._batch).compile()
        self._fresh_state = setup.fresh_state
        self.state: TrainState | None = None

    def run(self) -> None:
        self.state, _ = self._compiled(self.state or self._fresh_state(), self._batch)

    def wait(self) -> None:
        jax.block_until_ready(self.state)

    def peak_bytes(self) -> int | None:
        """Of this step's program alone: the allocator's own peak would be that of the largest one so far."""
        memory = self._compiled.memory_analysis()
        if memory is None:
            return None
        inputs = memory.argument_size_in_bytes - memory.alias_size_in_bytes  # the state is written over
        return inputs + memory.output_size_in_bytes + memory.temp_size_in_bytes


def relatives(config: TrainConfig, quick: bool = False) -> list[TrainConfig]:
    """The preset; without its deciphering head; with Gaussian rows for the symbols that occur; the standard LM; and
    the definition taken at its word, a Gaussian row for every symbol and a softmax over all. If time is short, the
    preset and the standard LM.
    """
    if quick:
        return list(dict.fromkeys([config, as_standard(config)]))
    headless = config.changed({"model.decipher_head": False})
    gaussian = {"model.lexicon.kind": "gaussian", "model.lexicon.gaussian_share": 0.0}
    seen, naive = (headless.changed(gaussian | {"model.readout": readout}) for readout in ("seen", "full"))
    return list(dict.fromkeys([config, headless, seen, as_standard(config), naive]))


def describe(model: ModelConfig) -> str:
    name = "lexinvariant" if model.lexicon.is_lexinvariant else "standard"
    head = ", deciphering head" if model.decipher_head else ""
    return f"{name} ({model.lexicon.kind}, readout {model.readout}{head})"


def kernel_times(step: Step, steps: int) -> list[tuple[str, float, int]]:
    """(kernel, milliseconds a step, launches a step) on the accelerator, longest first."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(steps):
                step.run()
            step.wait()
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


def is_out_of_memory(error: RuntimeError) -> bool:
    """By jax (RESOURCE_EXHAUSTED: Out of memory ...) or by PyTorch (CUDA out of memory ...)."""
    return "out of memory" in str(error).lower() or "RESOURCE_EXHAUSTED" in str(error)


def measure(
    configs: list[TrainConfig], with_torch: bool, repeats: int, n_kernels: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Ceiling, a preset and its relatives, of which it is the first, and the peer, one after the other."""
    config, device = configs[0], jax.devices()[0]
    on_gpu = device.platform == "gpu"
    standard = as_standard(config)
    rows: list[dict[str, Any]] = []
    kernels: list[tuple[str, float, int]] = []

    def add(what: str, model: ModelConfig, make: Callable[[], Step]) -> None:
        """Time it. A step that does not fit has a row too, without times; what it needs may be known even so."""
        nonlocal kernels
        say(what)
        row: dict[str, Any] = {"what": what}
        rows.append(row)
        try:
            step = make()
            row["peak_bytes"] = step.peak_bytes()
            times = seconds_per_call(step.run, step.wait, calls=10 if on_gpu else 1, repeats=repeats)
            row["peak_bytes"] = step.peak_bytes()
            if n_kernels and len(rows) == 1:
                kernels = kernel_times(step, 3)[:n_kernels]
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            row["error"] = "out of memory"
            return
        seconds = statistics.median(times)
        flop = model.flop_per_token(model.context) * config.tokens_per_step
        row |= {
            "ms": seconds * 1e3,
            "ms_min": min(times) * 1e3,
            "ms_max": max(times) * 1e3,
            "flop_per_step": flop,
            "tflops": flop / seconds / 1e12,
            "tokens_per_second": config.tokens_per_step / seconds,
        }

    say("bf16 matmul ceiling")
    ceiling = matmul_ceiling(8192 if on_gpu else 1024)
    for relative in configs:
        add(describe(relative.model), relative.model, partial(TrainingStep, relative))
    if with_torch:
        from lexinvariant.bench.torch_peer import PeerStep

        add(
            "PyTorch peer (torch.compile)",
            standard.model,
            lambda: PeerStep(standard.model, standard.batch_size),
        )
    standard_ms = next(row.get("ms") for row in rows if row["what"] == describe(standard.model))
    for row in rows:
        if standard_ms and "ms" in row:
            row["times_standard"] = row["ms"] / standard_ms
    return {
        "device": device.device_kind,
        "jax": jax.__version__,
        "batch_size": config.batch_size,
        "context": config.model.context,
        "vocab_size": config.model.vocab_size,
        "ceiling_tflops": ceiling / 1e12,
        "rows": rows,
        "kernels": [{"name": name, "ms": ms, "launches": launches} for name, ms, launches in kernels],
    }
