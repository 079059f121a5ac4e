"""All experiments on one pair of models, in order; what is done already is not done again."""

from __future__ import annotations

import importlib
import json
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from lexinvariant.experiments import (
    cipher_key,
    convergence,
    semantic,
    synthetic,
    theory,
    training,
    uncertainty,
)
from lexinvariant.experiments.evaluated_model import open_model, open_pair
from lexinvariant.experiments.rows import hash_bytes
from lexinvariant.text import CharVocab, HuggingFaceVocab

Say = Callable[[str], None]
DONE = "done.json"


@dataclass(frozen=True)
class Materials:
    """What the experiments are run on, and how large."""

    model: str
    baseline: str | None
    data: str
    out: Path
    quick: bool = False
    """Sizes for minutes on a CPU, in place of the paper's."""
    runs: tuple[Path, ...] = ()
    """Training runs whose curves are to be shown."""
    data_text: str | None = None
    """Simple English for the semantic experiment."""
    seed: int = 0
    batch_size: int = 16
    dtype: Literal["float32", "bfloat16"] = "float32"


def plan(materials: Materials) -> Iterator[tuple[str, Any]]:
    """(name, options) of every experiment that fits the model's vocabulary, the paper's sizes first and foremost."""
    m, quick = materials, materials.quick
    model = open_model(m.model).model
    common: dict[str, Any] = {
        "model": m.model,
        "out": m.out,
        "seed": m.seed,
        "batch_size": m.batch_size,
        "dtype": m.dtype,
    }
    window = min(100, model.config.context // 4)
    if m.runs:
        yield "training", training.Options(m.runs, out=m.out)
    yield (
        "convergence",
        convergence.Options(
            data=m.data, baseline=m.baseline, sequences=20 if quick else 100, window=window, **common
        ),
    )
    is_characters = isinstance(model.vocab, CharVocab)
    if is_characters and model.config.decipher_head:
        yield (
            "cipher-key",
            cipher_key.Options(
                data=m.data,
                sequences=40 if quick else 1000,
                window=window,
                reader="head" if quick else "both",
                **common,
            ),
        )
        yield "uncertainty", uncertainty.Options(draws=2 if quick else 8, **common)
    is_tokens = isinstance(model.vocab, HuggingFaceVocab)
    if is_characters or is_tokens:
        yield (
            "synthetic",
            synthetic.Options(
                data=m.data, baseline=m.baseline, examples=100 if quick else 1000, sweep=not quick, **common
            ),
        )
    if is_tokens or (
        is_characters and not quick
    ):  # the paper's setting is tokens; spelling out takes its time
        yield (
            "semantic",
            semantic.Options(
                baseline=m.baseline, data_text=m.data_text, prompts=40 if quick else 200, **common
            ),
        )
    yield "theory", theory.Options(out=m.out, quick=quick, seed=m.seed)


def run_all(materials: Materials, say: Say) -> None:
    """Run what has not been run with the same models and settings; interrupting loses at most one experiment."""
    if materials.baseline:
        open_pair(materials.model, materials.baseline)  # complains before hours of work, not after
    models = [open_model(place).hash for place in (materials.model, materials.baseline) if place]
    steps = list(plan(materials))
    path = materials.out / DONE
    done: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    for number, (name, options) in enumerate(steps, start=1):
        signature = hash_bytes(json.dumps([models, asdict(options)], default=str).encode())
        if done.get(name) == signature:
            say(f"[{number}/{len(steps)}] {name}: done before")
            continue
        say(f"[{number}/{len(steps)}] {name}")
        began = time.perf_counter()
        experiment = importlib.import_module(f"lexinvariant.experiments.{name.replace('-', '_')}")
        experiment.run(options, command=command_of(name, options), say=lambda line: say(f"    {line}"))
        done[name] = signature
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(done, indent=2) + "\n")
        draft.replace(path)
        say(f"    {name} took {time.perf_counter() - began:.0f} s")


def command_of(name: str, options: Any) -> str:
    """The command line that runs the same experiment by itself."""
    default = {field.name: field.default for field in fields(options)}
    words = ["lexinvariant", "experiment", name]
    for field, value in asdict(options).items():
        if value == default[field] or value is None:
            continue
        flag = "--" + field.replace("_", "-")
        if field == "runs":
            words += map(str, value)
        elif isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif isinstance(value, tuple):
            words += [flag, *map(str, value)]
        else:
            words += [flag, str(value)]
    return shlex.join(words)
