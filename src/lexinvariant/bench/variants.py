"""Variants of one training step, timed in turns, so that a machine that slows down slows them all down alike."""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from lexinvariant.bench.train import Step, TrainingStep, is_out_of_memory, kernel_times, matmul_ceiling
from lexinvariant.config import ModelConfig, TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.model import levers
from lexinvariant.presets import as_standard

# What changes the step itself, or is XLA's to decide; off unless named.
SETTINGS: dict[str, dict[str, Any]] = {
    "heads2": {"decipher_every": 2},
    "heads4": {"decipher_every": 4},
    "nohindsight": {"model.hindsight_layers": 0},
    "nohead": {"model.decipher_head": False},
    "norecall": {"model.recall_width": 0},
    "adamw": {"optimizer.name": "adamw"},
}
COMPILER: dict[str, dict[str, Any]] = {
    "triton": {"xla_gpu_enable_triton_gemm": True},
    "noblock": {"xla_gpu_experimental_enable_fusion_block_level_rewriter": False},
    "nograph": {"xla_gpu_enable_command_buffer": ""},
}


def parse(name: str) -> tuple[str, set[str], list[str]]:
    """(base, levers, extras) of "all", "none", "all-muon", "none+muon", "twin", "twin-muon", "all+heads2", "peer"."""
    base, *changes = re.split(r"(?=[+-])", name)
    if base not in ("all", "none", "twin", "peer"):
        raise UserError(f"A variant starts with all, none, twin or peer, not {base!r}.")
    on = set() if base == "none" else set(levers.LEVERS)
    extras = []
    for change in changes:
        sign, what = change[0], change[1:]
        if what in levers.LEVERS:
            on = on | {what} if sign == "+" else on - {what}
        elif sign == "+" and what in SETTINGS | COMPILER:
            extras.append(what)
        else:
            known = ", ".join([*levers.LEVERS, *SETTINGS, *COMPILER])
            raise UserError(f"There is no {what!r} to be changed in variant {name!r}: there are {known}.")
    return base, on, extras


def make_step(name: str, config: TrainConfig) -> tuple[ModelConfig, Callable[[], Step]]:
    """The model that the variant trains, and how its step is built."""
    base, on, extras = parse(name)
    if base == "peer":
        from lexinvariant.bench.torch_peer import PeerStep

        model = as_standard(config).model
        return model, lambda: PeerStep(model, config.batch_size)
    for extra in extras:
        config = config.changed(SETTINGS.get(extra, {}))
    if base == "twin":
        config = as_standard(config)
    options = {key: value for extra in extras for key, value in COMPILER.get(extra, {}).items()}

    def build() -> Step:
        with levers.only(on):
            return TrainingStep(config, options)

    return config.model, build


def measure_variants(
    config: TrainConfig, names: Sequence[str], repeats: int, n_kernels: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Each variant is compiled and warmed up; then rounds of ten steps of each, one variant after the other."""
    device = jax.devices()[0]
    calls = 10 if device.platform == "gpu" else 1
    rows: list[dict[str, Any]] = []
    steps: dict[str, Step] = {}
    times: dict[str, list[float]] = {name: [] for name in names}
    made = {
        name: make_step(name, config) for name in names
    }  # a misspelt name is found before anything is compiled
    say("bf16 matmul ceiling")
    ceiling = matmul_ceiling(8192 if calls > 1 else 1024)
    for name, (model, build) in made.items():
        say(f"compiling {name}")
        start = time.perf_counter()
        row: dict[str, Any] = {"what": name, "flop_per_step": model.flop_per_token(model.context)}
        rows.append(row)
        try:
            step = build()
            for _ in range(2):
                step.run()
            step.wait()
        except Exception as error:
            row["error"] = "out of memory" if is_out_of_memory_error(error) else first_line(error)
        else:
            steps[name] = step
        row["compile_s"] = time.perf_counter() - start
    for round_ in range(repeats):
        say(f"round {round_ + 1}")
        for name, step in steps.items():
            step.run()
            step.wait()
            start = time.perf_counter()
            for _ in range(calls):
                step.run()
            step.wait()
            times[name].append((time.perf_counter() - start) / calls)
    kernels: list[tuple[str, float, int]] = []
    for row in rows:
        name = row["what"]
        flop = row.pop("flop_per_step") * config.tokens_per_step
        if name not in steps:
            continue
        seconds = statistics.median(times[name])
        row |= {
            "peak_bytes": steps[name].peak_bytes(),
            "ms": seconds * 1e3,
            "ms_min": min(times[name]) * 1e3,
            "ms_max": max(times[name]) * 1e3,
            "flop_per_step": flop,
            "tflops": flop / seconds / 1e12,
            "tokens_per_second": config.tokens_per_step / seconds,
        }
        if n_kernels and not kernels and name != "peer":
            kernels = kernel_times(steps[name], 3)[:n_kernels]
    twin_ms = next((row.get("ms") for row in rows if row["what"] == "twin"), None)
    for row in rows:
        if twin_ms and "ms" in row:
            row["times_standard"] = row["ms"] / twin_ms
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


def is_out_of_memory_error(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and is_out_of_memory(error)


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160] if str(error).strip() else ''}"
