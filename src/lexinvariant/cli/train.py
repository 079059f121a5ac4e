"""`lexinvariant train PRESET`: train a model, or resume a run."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from lexinvariant import presets
from lexinvariant.checks import whole_number
from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.cli.run_settings import RunSettings, run_config, words_of
from lexinvariant.config import TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.files import check_name
from lexinvariant.remote import is_remote
from lexinvariant.text import load_vocab
from lexinvariant.text.frequency import advice, still_counting
from lexinvariant.training.distributed import find_cluster, run_in_cluster

LONGEST_HEARTBEAT = 86_400  # seconds


@dataclass(frozen=True)
class Arguments:
    """Train a model, or resume the run in --out. Every setting of the preset is an option.

    examples:
      lexinvariant train char-small --data data/mixed --out runs/mine --steps 4000
      lexinvariant train --init bundled --data data/mine --out runs/mine
    """

    data: str = ""
    """Short for --data.path."""
    out: Annotated[str, tyro.conf.arg(metavar="PATH")] = ""
    """The run's folder, with checkpoints, metrics and, at the end, model/. On an object store (s3://bucket/run) it is
    a copy of a local one, updated after every save, from which another machine can continue."""
    settings: Annotated[RunSettings, tyro.conf.arg(name="")] = field(default_factory=RunSettings)
    distributed: str = ""
    """coordinator:port,N,i: this is process i (from 0) of N that train together, with process 0 at that address. Not
    needed under Slurm, MPI and Kubernetes and on Cloud TPUs, where processes find each other; `no` trains alone
    there."""
    heartbeat_seconds: int = 30
    """When several processes train together, one that is silent for this long is considered lost, and the others
    stop."""


def overview() -> str:
    width = max(map(len, presets.PRESETS))
    listed = "\n".join(f"  {name:<{width}}  {p.note}" for name, p in presets.PRESETS.items())
    return f"""usage: lexinvariant train PRESET --data DIR [--out DIR] [options]

Train a model, or resume a run: the same command continues where it stopped.

presets:
{listed}

`lexinvariant train PRESET --help` lists every setting.

examples:
  lexinvariant train tiny
  lexinvariant train char-tiny --data data/stdlib --out runs/mine
  lexinvariant train char-tiny --data data/stdlib --standard --out runs/mine-standard
  lexinvariant train tokens-small --data data/mine --regularise token-permuted --p 0.2 --out runs/regularised
  lexinvariant train --init bundled --data data/mine --out runs/mine
  lexinvariant train paper-char --data data/pile --sharding.fsdp 8 --batch-size 128 --accumulate 2
  lexinvariant train char-small --data s3://bucket/mixed --out s3://bucket/runs/mine
"""


def summary(valid: list[dict[str, Any]], vocab: str) -> list[str]:
    """What a finished run has come to, from what it measured on held-out text of this vocabulary."""
    if not valid:
        return []
    first, last = valid[0], valid[-1]
    lines = []
    if first["step"] == 0:
        lines.append(f"Before: {_in_words(first)}. After: {_in_words(last)}.")
    if "tail_counting_loss" in last:
        missing = still_counting(
            last["tail_loss"],
            last["tail_counting_loss"],
            last.get("tail_deciphered"),
            last["tail_counting_named"],
        )
        if missing:
            remedy = advice(vocab)
            lines.append(
                f"It has not learned to infer what symbols mean: at the end of the context {missing}. "
                f"{remedy[0].upper()}{remedy[1:]}."
            )
    return lines


def _in_words(row: dict[str, Any]) -> str:
    words = f"perplexity {row['tail_perplexity']:.2f} at the end of the context"
    return words + (f", {row['tail_deciphered']:.1%} of symbols named" if "tail_deciphered" in row else "")


def main(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(overview(), end="")
        return 0
    words = words_of(argv)

    def read(defaults: RunSettings) -> Arguments:
        default = Arguments(out=f"runs/{words.preset}", settings=defaults)
        return tyro.cli(
            Arguments, args=words.options, default=default, prog=f"lexinvariant train {words.preset}"
        )

    arguments = read(RunSettings(config=presets.preset(words.preset)))
    if whole_number(arguments.heartbeat_seconds, "--heartbeat-seconds", least=1) > LONGEST_HEARTBEAT:
        raise UserError(
            f"--heartbeat-seconds is {arguments.heartbeat_seconds}: give at most {LONGEST_HEARTBEAT}."
        )
    keep_compiled_programs()  # a run that goes on compiles nothing again
    cluster = find_cluster(arguments.distributed, os.environ)

    def train() -> int:
        return _train(
            words.preset, arguments, run_config(words, arguments.settings, lambda d: read(d).settings)
        )

    return train() if cluster is None else run_in_cluster(cluster, arguments.heartbeat_seconds, train)


def _train(name: str, arguments: Arguments, config: TrainConfig) -> int:
    if arguments.data:
        config = config.changed({"data.path": arguments.data})
    if not is_remote(arguments.out):
        return _train_in(Path(check_name(arguments.out)), config, name)

    import jax  # not for --help

    from lexinvariant.training.mirror import RunMirror

    if jax.process_count() > 1:
        raise UserError(
            f"Several hosts write their parts of a checkpoint to one disk, and {arguments.out} is not a disk: give "
            "an --out on a disk that they share."
        )
    mirror = RunMirror(arguments.out)
    with mirror.open():
        code = _train_in(mirror.folder, config, name, mirror.copy_soon)
    print(f"Copied to {mirror.url}.")
    return code


def _train_in(
    folder: Path, config: TrainConfig, name: str, on_saved: Callable[[], None] = lambda: None
) -> int:
    from lexinvariant.report.curves import run_figure
    from lexinvariant.training.loop import train  # loads jax: not for --help
    from lexinvariant.training.metrics import read_metrics

    outcome = train(config, folder, name, on_saved)
    if not outcome.is_ours_to_tell:
        return 0
    rows = read_metrics(folder / "metrics.jsonl")
    curves = f", its curves in {run_figure(folder)}" if any(row["kind"] == "train" for row in rows) else ""
    if outcome.finished:
        print(f"Done: the model is in {outcome.model_folder}{curves}.")
        with suppress(KeyError):  # a row that a bad disk has spoilt says nothing
            vocab = load_vocab(outcome.model_folder).name
            for line in summary([row for row in rows if row["kind"] == "valid"], vocab):
                print(line)
    elif outcome.step == 0:
        print(
            "Stopped before the first step, so there was nothing to save: give the same command to start again."
        )
    else:
        print(f"Stopped and saved at step {outcome.step}: give the same command to continue.")
    return 0
