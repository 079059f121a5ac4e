"""The loop: read, step, look, save. `train` is all there is to a run.

The run's folder holds config.json, checkpoints/, metrics.jsonl, tensorboard/ and, at the end, model/. A run that
was stopped or killed goes on from its newest checkpoint when the same command is given again, and ends with the
same parameters as a run that was never stopped: everything is a function of the step number.
"""

import dataclasses
import json
import math
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import jax

from lexinvariant.config import TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.files import expand_user, read_json_object, write_whole
from lexinvariant.locks import lock_folder
from lexinvariant.model.weights import save_model
from lexinvariant.settings import to_json
from lexinvariant.text import Data, HuggingFaceVocab, Pieces, Split, WeightedPieces, open_data, parse_weights
from lexinvariant.training import init
from lexinvariant.training.checkpoint import CheckpointStore
from lexinvariant.training.evaluate import Evaluation, counting_metrics, evaluate
from lexinvariant.training.hosts import Agreement, differs_between_hosts, from_first_host, on_first_host
from lexinvariant.training.metrics import MetricsLog, NoLog
from lexinvariant.training.progress import TrainProgress
from lexinvariant.training.setup import TrainSetup, build, device_batch
from lexinvariant.training.sharding import host_rows
from lexinvariant.training.spikes import (
    LOSSES,
    MOST_SKIPPED,
    SKIPPED,
    LossSpike,
    SpikeWatch,
    batch_number,
    notes_for_model,
)
from lexinvariant.training.step import TrainState

CONFIG = "config.json"
SECONDS_OF_ONE_REQUEST = 1.0
STOP_SIGNALS = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a call of `train` ended."""

    step: int
    finished: bool
    """Otherwise it was asked to stop and saved: the same call goes on, and until then there is no model."""
    folder: Path
    evaluation: Evaluation | None
    is_ours_to_tell: bool = True
    """Of several hosts that train together, one writes and speaks."""

    @property
    def model_folder(self) -> Path:
        return self.folder / "model"


def train(
    config: TrainConfig, folder: str | Path, name: str = "train", on_saved: Callable[[], None] | None = None
) -> Outcome:
    """Run, or go on with, the training that `config` describes, in `folder`; `on_saved` hears of every checkpoint.

    A signal to stop (Ctrl-C) makes it save and return, with `finished` false.
    """
    folder = expand_user(folder)
    data = open_data(_data_path(config))
    if config.init:  # whose settings are not to be changed to fit the data
        init.check_vocabulary(config.init, data.vocab, config.data.path)
    _check_vocabulary(config, data)
    config = _with_special_tokens_exempt(config, data)
    train_pieces = _training_pieces(config, data)
    valid_pieces = data.split("valid", config.model.context, packed=config.data.packed)
    notes = {
        "config": json.loads(to_json(config)),
        "data": data.fingerprint,
        "tokens_by_tag": data.tokens_by_tag,
        SKIPPED: [],
        LOSSES: [],
    }

    _check_hosts(config, data, folder)
    setup = build(config)
    is_first = jax.process_index() == 0
    if is_first:
        _make_folders(folder)
    with (
        _only_run_in(folder),
        CheckpointStore(
            folder / "checkpoints",
            keep_last=config.run.keep_last,
            keep_best=config.run.keep_best,
            on_sealed=on_saved or (lambda: None),
        ) as store,
        _stop_signals() as stop,
    ):
        state = _resume(setup, store, notes)
        start = int(state.step)
        # Of what is on the disk one host tells the others: a shared disk may show them different things.
        [has_model] = from_first_host([(folder / "model" / "model.safetensors").exists()])
        if start == 0 and is_first:
            write_whole(folder / CONFIG, to_json(config))
            data.vocab.save(folder)
        if start == config.steps and has_model:
            if is_first:
                print(
                    f"{name}: the run in {folder} is finished already, there is nothing to do",
                    file=sys.stderr,
                )
            return Outcome(start, True, folder, None, is_first)
        flop_per_token = config.model.flop_per_token(config.model.context)
        with (
            closing(MetricsLog(folder, start, config.run.tensorboard) if is_first else NoLog()) as log,
            TrainProgress(
                name, config.steps, start, config.tokens_per_step, flop_per_token, quiet=not is_first
            ) as progress,
        ):
            if start:
                progress.print_line(f"{name}: going on from step {start} in {folder}")
            counting = counting_metrics(config.model, valid_pieces, config.run.eval_sequences)
            run = _Run(config, setup, train_pieces, valid_pieces, store, notes, log, progress, counting)
            if config.init and start == 0:
                _evaluate(run, 0, state)  # what the weights were worth before, to compare with in the end
            state, last = _train_steps(run, state, stop)
        finished = int(state.step) == config.steps
        if finished:
            params = on_first_host(state.params)
            if params is not None:
                save_model(
                    folder / "model",
                    config.model,
                    params,
                    data.vocab,
                    notes={"step": config.steps, **notes_for_model(notes)},
                )
    return Outcome(int(state.step), finished, folder, last, is_first)


def _check_hosts(config: TrainConfig, data: Data, folder: Path) -> None:
    """With other seeds hosts would mix up two runs, and with other steps or folders wait for each other for ever."""
    settings = to_json(config.changed({"data.path": ""}))  # that may lie elsewhere, if it is the same
    if differs_between_hosts(f"{settings} {data.fingerprint} {folder.absolute()}"):
        raise UserError(
            "The processes of this run were given different settings, data or folders: start all with the same command."
        )


def _make_folders(folder: Path) -> None:
    """What is wrong with them is told now, and not when the first checkpoint is to be written."""
    if not (folder / "checkpoints").exists():
        _check_config(folder / CONFIG)
    try:
        str(folder.absolute()).encode()  # Orbax takes no others
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    except UnicodeEncodeError as error:
        raise UserError(f"{str(folder)!r} is a name that is not UTF-8: give another --out.") from error
    except OSError as error:
        raise UserError(
            f"A run cannot be in {folder} ({error.strerror or error}: {error.filename}): give another --out."
        ) from error


def _check_config(path: Path) -> None:
    """A model's folder or a project of another kind has a config.json too, which a run that begins would replace."""
    if path.exists() and "optimizer" not in read_json_object(path, "give another --out, or remove it."):
        raise UserError(f"{path} is not that of a run: give another --out, it will not be touched.")


def _only_run_in(folder: Path) -> AbstractContextManager[None]:
    """Two runs in one folder would overwrite each other's checkpoints; the hosts of one run have one that writes."""
    told = f"Another process is training in {folder}: wait for it, stop it, or give another --out."
    return lock_folder(folder, told) if jax.process_index() == 0 else nullcontext()


class _Run(NamedTuple):
    """What stays the same from step to step."""

    config: TrainConfig
    setup: TrainSetup
    train_pieces: Split
    valid_pieces: Split
    store: CheckpointStore
    notes: dict[str, Any]
    log: MetricsLog | NoLog
    progress: TrainProgress
    counting: dict[str, float]


def _train_steps(run: _Run, state: TrainState, stop: list[int]) -> tuple[TrainState, Evaluation | None]:
    """Train to the end, or until told to stop; returns the state and the newest evaluation."""
    deadline = time.monotonic() + 60 * (run.config.run.stop_after_minutes or math.inf)
    while True:
        try:
            return _train_until_spike(run, state, stop, deadline)
        except LossSpike as found:
            spike = found
        state = _go_back(run, spike)


def _go_back(run: _Run, spike: LossSpike) -> TrainState:
    """To the newest checkpoint, from where the batch of the spike is left out; and if it comes again, the one before.

    Checkpoints note what was left out. A run that is killed before the next one meets the same spike and does the same.
    """
    restored = run.store.restore(run.setup.abstract_state)
    state = run.setup.fresh_state() if restored is None else restored[1]
    run.notes[LOSSES] = [] if restored is None else restored[2].get(LOSSES, [])
    start, skipped = int(state.step), run.notes[SKIPPED]
    bad = spike.step - 1
    while bad in skipped:
        bad -= 1
    what = f"The loss is {spike.loss:.4g} at step {spike.step}, where {spike.usual:.4g} is usual"
    if bad < start or len(skipped) >= MOST_SKIPPED:
        raise UserError(
            f"{what}, although {len(skipped)} batch(es) were left out: lower --optimizer.rate or set "
            "--optimizer.clip-norm 1, and start in a new folder."
        )
    skipped.append(bad)
    run.log.rewind(start)
    run.progress.print_line(
        f"{what}: going back to step {start}, and leaving out the batch of step {bad + 1}."
    )
    return state


def _train_until_spike(
    run: _Run, state: TrainState, stop: list[int], deadline: float
) -> tuple[TrainState, Evaluation | None]:
    config, every = run.config, run.config.run
    rows = host_rows(config.batch_size)
    first = step = saved = int(state.step)
    watch, unseen = SpikeWatch(every.spike_factor, run.notes[LOSSES]), deque[tuple[int, jax.Array]]()

    def look(until: int) -> None:
        """At the losses of all steps so far."""
        losses = [unseen.popleft() for _ in range(len(unseen)) if unseen[0][0] <= until]
        watch.look((at, float(loss)) for at, loss in jax.device_get(losses))
        run.notes[LOSSES] = watch.losses

    pending: tuple[int, dict[str, jax.Array]] | None = None
    evaluation: Evaluation | None = None
    agreement = Agreement(run.setup.mesh)
    while step < config.steps and not agreement.any_host(bool(stop)):
        number = batch_number(step, config.steps, run.notes[SKIPPED])
        batch = run.train_pieces.batch(config.seed, number, config.batch_size, rows)
        on_device = device_batch(batch, config.batch_size, run.setup.mesh)
        with jax.transfer_guard("disallow"):  # a hidden transfer would make the device wait
            state, metrics = run.setup.train_step(state, on_device)
        step += 1
        unseen.append((step, metrics["loss"]))
        if step == first + 1:
            jax.block_until_ready(metrics)
            run.progress.restart_clock(step)  # compiling is not training
        if time.monotonic() > deadline:
            stop.append(0)
        evaluates = step % every.eval_every == 0 or step == config.steps
        saves = step % every.save_every == 0 or step == config.steps

        # Metrics are read one step late: by then they are there, and the next step is already queued.
        if pending is not None:
            look(pending[0])
            _report(run, *pending)
        pending = (step, metrics) if step % every.log_every == 0 else None
        if evaluates or saves:
            look(step)  # here there is a pause anyway, and a loss of NaN must not be saved
            _report(run, step, metrics)
            pending = None
            if evaluates:
                evaluation = _evaluate(run, step, state)
            if saves:
                measured = evaluation.metrics["loss"] if evaluates and evaluation else None
                run.store.save(step, state, notes=run.notes, metric=measured)
                saved = step
            run.progress.restart_clock(step)
    if step != saved:  # asked to stop between two saves
        look(step)
        if pending is not None:
            _report(run, *pending)
        _refuse_nan(step, jax.device_get(metrics))
        run.store.save(step, state, notes=run.notes)
    run.store.wait()
    return state, evaluation


def _report(run: _Run, step: int, metrics: dict[str, jax.Array]) -> None:
    values = {name: float(value) for name, value in jax.device_get(metrics).items()}
    _refuse_nan(step, values)
    run.log.write(step, "train", values | run.progress.update(step, values))


def _refuse_nan(step: int, metrics: Mapping[str, Any]) -> None:
    wrong = sorted(name for name, value in metrics.items() if math.isnan(value))
    if wrong:
        what = "The loss" if "loss" in wrong else f"The metric {wrong[0]}"
        raise UserError(
            f"{what} is not a number at step {step}: lower --optimizer.rate or set --optimizer.clip-norm 1, and "
            "start in a new folder."
        )


def _evaluate(run: _Run, step: int, state: TrainState) -> Evaluation:
    config = run.config
    evaluation = evaluate(
        state.params,
        config.model,
        run.valid_pieces,
        sequences=config.run.eval_sequences,
        batch_size=config.batch_size,
        seed=config.seed,
        dtype=config.dtype,
        mesh=run.setup.mesh,
    )
    _refuse_nan(step, evaluation.metrics)
    by_position = {"loss_by_position": evaluation.loss_by_position}
    run.log.write(step, "valid", evaluation.all_metrics | run.counting | by_position)
    run.progress.print_line(_valid_line(step, evaluation))
    return evaluation


def _valid_line(step: int, evaluation: Evaluation) -> str:
    metrics = evaluation.metrics
    line = f"step {step}: valid loss {metrics['loss']:.4f}, "
    if "tail_loss" not in metrics:
        return line + "and no text reaches the end of the context"
    line += f"end of context {metrics['tail_loss']:.4f} (perplexity {evaluation.tail_perplexity:.3f})"
    if "tail_deciphered" in metrics:
        line += f", {metrics['tail_deciphered']:.1%} of symbols deciphered there"
    return line


def _resume(setup: TrainSetup, store: CheckpointStore, notes: dict[str, Any]) -> TrainState:
    """The newest good checkpoint of the same run, or a fresh state."""
    restored = store.restore(
        setup.abstract_state, check=lambda old: _check_same_run(store.folder.parent, old, notes)
    )
    if restored is None:
        return setup.fresh_state()
    _, state, old = restored
    notes |= {name: old.get(name, []) for name in (SKIPPED, LOSSES)}
    return state


def _check_same_run(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    if old["data"] != new["data"]:
        raise UserError(f"The run in {folder} was trained on other data: give its data, or another --out.")
    changed = [
        name
        for name in _differences(old["config"], new["config"])
        if not name.startswith(("run.", "data.path", "sharding."))
    ]
    if changed == ["steps"]:
        raise UserError(
            f"The run in {folder} is one of {old['config']['steps']} steps, which its learning rate follows: give the "
            f"same --steps, or another --out (--init {folder / 'model'} begins there with the weights of this one)."
        )
    if changed:
        raise UserError(
            f"The run in {folder} has other settings ({', '.join(changed[:4])}): give the same ones to continue it, or "
            "another --out."
        )


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of the settings that differ."""
    names = []
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name), new.get(name)
        if isinstance(a, dict) and isinstance(b, dict):
            names += _differences(a, b, f"{prefix}{name}.")
        elif a != b:
            names.append(prefix + name)
    return names


def _data_path(config: TrainConfig) -> str:
    if not config.data.path:
        raise UserError(
            "No data was given: pass --data DIR, a folder written by `lexinvariant data prepare`."
        )
    return config.data.path


def _training_pieces(config: TrainConfig, data: Data) -> Split:
    pieces = data.split("train", config.model.context, packed=config.data.packed)
    if not config.data.weights:
        return pieces
    if not isinstance(pieces, Pieces):
        raise UserError(f"{config.data.path} has no tags to weigh: leave out --data.weights.")
    return WeightedPieces(pieces, parse_weights(config.data.weights))


def _check_vocabulary(config: TrainConfig, data: Data) -> None:
    if data.vocab_size > config.model.vocab_size:
        raise UserError(
            f"The data has a vocabulary of {data.vocab_size} and the model one of {config.model.vocab_size}: set "
            f"--model.vocab-size {data.vocab_size}."
        )


def _with_special_tokens_exempt(config: TrainConfig, data: Data) -> TrainConfig:
    """A regulariser leaves the tokenizer's special tokens alone: they have a meaning that no text can tell."""
    if not (config.model.lexicon.is_regulariser and isinstance(data.vocab, HuggingFaceVocab)):
        return config
    exempt = sorted({*config.model.lexicon.exempt, *data.vocab.special_ids})
    return config.changed({"model.lexicon.exempt": tuple(exempt)})


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """A list that gets the signal's number when the process is asked to end: the loop then saves and returns."""
    received: list[int] = []
    previous: dict[int, Any] = {}
    asked = math.inf

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        # Asked twice: do not make the user wait. A scheduler may send one request to a process and to its parent, which
        # passes it on.
        if time.monotonic() - asked > SECONDS_OF_ONE_REQUEST:
            signal.signal(number, previous[number])
            signal.raise_signal(number)
        asked = min(asked, time.monotonic())
        received.append(number)

    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                previous[number] = signal.signal(number, note)
    except ValueError:
        pass  # not the main thread: signals are someone else's business
    try:
        yield received
    finally:
        for caught, handler in previous.items():
            signal.signal(caught, handler)
