"""Checkpoints that survive a kill at any moment, a full disk and a rotten byte.

A checkpoint is one folder, and it appears under its name in one rename, only after all of it is on disk:

    run/step_000000200/state/         the arrays, written by Orbax
    run/step_000000200/record.json    step, metric, the caller's notes, and shape and dtype of every array
    run/step_000000200/manifest.json  sha256 of every other file
    run/.unfinished/                  what is being written or thrown away; anything found here is rubbish

So a folder with a step's name and without a manifest is damaged, not unfinished. Training is deterministic, and
falling back to an older checkpoint costs time but changes no result.

Of several hosts each writes the shards that it has. Orbax lets host 0 go on only when all of them have done so, and
host 0 hashes and renames: a kill before that, of whichever host, leaves rubbish in .unfinished, and after it a whole
checkpoint.
"""

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import shutil
import warnings
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

from lexinvariant.errors import UserError
from lexinvariant.files import read_json_object
from lexinvariant.training.hosts import from_first_host

PyTree = Any
Restored = tuple[int, PyTree, dict[str, Any]]  # step, state, notes

LONGEST_CAUSE = 200  # characters of another library's complaint
_STATE, _RECORD, _MANIFEST, _UNFINISHED = "state", "record.json", "manifest.json", ".unfinished"


def _is_no_orbax_chatter(record: logging.LogRecord) -> bool:
    # What Orbax logs with a traceback it also raises, and `CheckpointStore.wait` brings that to the user.
    from_orbax = "orbax" in Path(record.pathname).parts
    return not from_orbax or (record.levelno >= logging.ERROR and not record.exc_info)


logging.getLogger("absl").addFilter(_is_no_orbax_chatter)


class CheckpointStore:
    """The checkpoints of one run. One process (or one group of JAX hosts) writes; anyone may read.

    Opening and restoring change nothing on disk, so a store may be opened on a run that is still training. `on_sealed`
    is called in the background when a checkpoint is in its place; it should not take long.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep_last: int = 3,
        keep_best: int = 1,
        on_sealed: Callable[[], None] = lambda: None,
    ) -> None:
        if keep_last < 1 or keep_best < 0:
            raise ValueError(f"keep_last must be at least 1 and keep_best 0, not {keep_last} and {keep_best}")
        self.folder = Path(folder).absolute()  # Orbax takes no relative paths
        self._unfinished = self.folder / _UNFINISHED
        self._keep_last, self._keep_best, self._on_sealed = keep_last, keep_best, on_sealed
        self._orbax = ocp.StandardCheckpointer()
        self._publisher = futures.ThreadPoolExecutor(1, thread_name_prefix="publish_checkpoint")
        self._pending: tuple[int, futures.Future[None]] | None = None
        self._settled: set[int] = set()  # steps that this store has written, or verified and restored
        self._damaged: set[int] = set()

    def save(self, step: int, state: PyTree, *, notes: dict[str, Any], metric: float | None = None) -> None:
        """Copy `state` to host memory and return; writing, hashing and tidying go on in the background.

        Waits for the save before it, and raises what went wrong there. A lower `metric` is better. Saving a
        step twice does nothing the second time, because the step decides the state.
        """
        self.wait()
        if step in self._settled:
            return
        with jax.transfer_guard("allow"):  # the training loop forbids transfers that nobody asked for
            leaves = _named_leaves(state)
            arrays = {k: v if isinstance(v, jax.Array) else jnp.array(v) for k, v in leaves.items()}
            metric = None if metric is None else float(metric)
            record = {"step": step, "metric": metric, "notes": notes, "arrays": _describe(arrays)}
            record_json = json.dumps(record, indent=1)
            staged = _path(self._unfinished, step)
            try:
                self._sweep()
                if jax.process_index() == 0:
                    staged.mkdir(parents=True)
                self._orbax.save(staged / _STATE, arrays)
            except OSError as error:
                self._sweep()
                raise self._explain(step, error) from error
        self._pending = step, self._publisher.submit(self._publish, step, staged, record_json)

    def restore(
        self,
        abstract_state: PyTree,
        step: int | None = None,
        check: Callable[[dict[str, Any]], None] = lambda notes: None,
    ) -> Restored | None:
        """The step, state and notes of the newest undamaged checkpoint (or of `step`); None if there is none.

        `check` sees the notes before anything else is compared, and raises what is wrong in words of the caller's.
        `abstract_state` has a `jax.ShapeDtypeStruct` for every array, whose sharding need not be the one the
        array was saved with; without one, the array goes to the first device.
        """
        self.wait()
        # One host looks and tells the others: the files are read once, and all restore the same step.
        chosen = self._newest_undamaged(step) if jax.process_index() == 0 else None
        [chosen_step] = from_first_host([-1 if chosen is None else chosen])
        if chosen_step < 0:
            return None
        state, notes = self._load(chosen_step, abstract_state, check)
        self._settled.add(chosen_step)
        return chosen_step, state, notes

    def _newest_undamaged(self, step: int | None) -> int | None:
        found = _step_folders(self.folder)
        if step is not None and step not in found:
            raise UserError(f"There is no checkpoint of step {step} in {self.folder}: there are {found}.")
        damage: dict[int, str] = {}
        for candidate in reversed(found) if step is None else [step]:
            if reason := _find_damage(_path(self.folder, candidate)):
                damage[candidate] = reason
                self._damaged.add(candidate)
                self._settled.discard(candidate)
                continue
            for bad, why in damage.items():
                message = f"Checkpoint {bad} in {self.folder} is damaged ({why}): using {candidate} instead."
                warnings.warn(message, stacklevel=3)
            return candidate
        if not damage:
            return None
        listing = ", ".join(f"{bad} ({why})" for bad, why in damage.items())
        remedy = "use another folder to start anew" if step is None else f"the others are {self.steps()}"
        raise UserError(f"No undamaged checkpoint was found in {self.folder}, but {listing}: {remedy}.")

    def steps(self) -> list[int]:
        """The finished checkpoints, oldest first, less those that `restore` found damaged."""
        return [step for step in _finished_steps(self.folder) if step not in self._damaged]

    def best_step(self) -> int | None:
        """The checkpoint with the lowest metric, the newer of equals."""
        return next(iter(self._best_first()), None)

    def wait(self) -> None:
        """Return when the last save is durable, or raise what went wrong with it as a `UserError`."""
        if self._pending is None:
            return
        step, future = self._pending
        futures.wait([future])
        self._pending = None
        if error := future.exception():
            raise self._explain(step, error) from error
        self._settled.add(step)

    def close(self) -> None:
        """Wait, and let go of the threads."""
        try:
            self.wait()
        finally:
            self._publisher.shutdown()
            self._orbax.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except UserError as save_error:
            if error is None:
                raise
            error.add_note(str(save_error))  # raise the first error, with the failed save as a note

    def _publish(self, step: int, staged: Path, record_json: str) -> None:
        """In the background: once Orbax is done on every host, seal the checkpoint and give it its name."""
        try:
            self._orbax.wait_until_finished()
            if jax.process_index() == 0:
                (staged / _RECORD).write_text(record_json, encoding="utf-8")
                files = [path for path in staged.rglob("*") if path.is_file()]
                manifest = {path.relative_to(staged).as_posix(): _sha256(path) for path in files}
                (staged / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
                for path in [*staged.rglob("*"), staged]:
                    _sync(path)
                if _path(self.folder, step).exists():  # damaged, or of a branch that was left
                    self._discard(step)
                staged.rename(_path(self.folder, step))
                _sync(self.folder)
                self._damaged.discard(step)
                self._drop_superseded(step)
                self._on_sealed()
        finally:
            self._sweep()

    def _sweep(self) -> None:
        if jax.process_index() == 0:
            shutil.rmtree(self._unfinished, ignore_errors=True)

    def _drop_superseded(self, newest: int) -> None:
        steps = self.steps()
        keep = {newest, *steps[-self._keep_last :], *self._best_first()[: self._keep_best]}
        for step in {*steps, *self._damaged}.intersection(_step_folders(self.folder)) - keep:
            self._discard(step)
            self._damaged.discard(step)

    def _discard(self, step: int) -> None:
        # A rename is one system call and deleting is many: a kill leaves no half checkpoint under its name.
        _path(self.folder, step).rename(self._unfinished / f"discarded_{step}")

    def _best_first(self) -> list[int]:
        metrics = {}
        for step in self.steps():
            with contextlib.suppress(UserError):  # damaged, and so never the best
                metric = _read_record(self.folder, step)["metric"]
                if isinstance(metric, float) and math.isfinite(metric):
                    metrics[step] = metric
        return sorted(metrics, key=lambda step: (metrics[step], -step))

    def _load(
        self, step: int, abstract_state: PyTree, check: Callable[[dict[str, Any]], None]
    ) -> tuple[PyTree, dict[str, Any]]:
        record = _read_record(self.folder, step)
        check(record["notes"])
        wanted = _named_leaves(abstract_state)
        if differences := _differences(record["arrays"], _describe(wanted)):
            raise UserError(
                f"Checkpoint {step} in {self.folder} was made with another model or optimiser config "
                f"({differences}): use the config it was made with, or another folder."
            )
        first = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        targets = {
            name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=getattr(x, "sharding", None) or first)
            for name, x in wanted.items()
        }
        with jax.transfer_guard("allow"):
            arrays = self._orbax.restore(_path(self.folder, step) / _STATE, targets)
        state = jax.tree.unflatten(jax.tree.structure(abstract_state), [arrays[name] for name in wanted])
        return state, record["notes"]

    def _explain(self, step: int, error: BaseException) -> UserError:
        steps = self.steps()
        safe = f"checkpoints {steps} are intact" if steps else "there is no earlier one"
        if _says(error, errno.ENOSPC, errno.EDQUOT):
            return UserError(
                f"The disk is full, so checkpoint {step} could not be written to {self.folder} ({safe}): "
                "free some space and run again to resume."
            )
        if _says(error, errno.EFBIG):
            return UserError(
                f"Files may not become as large as checkpoint {step} needs in {self.folder} ({safe}): raise the limit "
                "(ulimit -f) or use another disk, and run again to resume."
            )
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        shown = cause if len(cause) <= LONGEST_CAUSE else cause[:LONGEST_CAUSE] + "..."
        return UserError(
            f"Checkpoint {step} could not be written to {self.folder} ({safe}; the system said: {shown}): check the "
            "disk and run again to resume."
        )


def read_notes(folder: Path, step: int | None = None) -> dict[str, Any]:
    """The notes saved with the newest checkpoint whose record is undamaged (or with `step`)."""
    for candidate in reversed(_finished_steps(folder)) if step is None else [step]:
        if _find_damage(_path(folder, candidate), only=_RECORD) is None:
            return _read_record(folder, candidate)["notes"]
    steps = _finished_steps(folder)
    if step is not None and steps:
        others = ", ".join(map(str, steps))
        raise UserError(
            f"There is no readable checkpoint of step {step} in {folder}: there are those of {others}."
        )
    raise UserError(f"There is no readable checkpoint in {folder}: name the folder of a training run.")


def _path(folder: Path, step: int) -> Path:
    return Path(folder) / f"step_{step:09d}"


def _step_folders(folder: Path) -> list[int]:
    return sorted(int(path.name[-9:]) for path in Path(folder).glob("step_" + 9 * "[0-9]"))


def _finished_steps(folder: Path) -> list[int]:
    return [step for step in _step_folders(folder) if (_path(folder, step) / _MANIFEST).is_file()]


def _read_record(folder: Path, step: int) -> dict[str, Any]:
    path = _path(folder, step) / _RECORD
    record = read_json_object(path, "remove the checkpoint.")
    if not {"step", "metric", "notes", "arrays"} <= record.keys():
        raise UserError(f"{path} is damaged: remove the checkpoint.")
    return record


def _named_leaves(tree: PyTree) -> dict[str, Any]:
    """Leaves by names such as `params.layers.0.w`: neither Orbax nor a message then needs our classes."""
    with_paths = jax.tree_util.tree_leaves_with_path(tree)
    leaves = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in with_paths}
    if len(leaves) != len(with_paths):
        raise ValueError("two leaves of the state have the same dotted name")
    return leaves


def _describe(arrays: dict[str, Any]) -> dict[str, str]:
    return {name: f"{jnp.dtype(leaf.dtype).name}{list(leaf.shape)}" for name, leaf in arrays.items()}


def _differences(saved: dict[str, str], wanted: dict[str, str], show: int = 3) -> str:
    differ = [name for name in wanted | saved if saved.get(name) != wanted.get(name)]
    pairs = [(name, saved.get(name, "absent"), wanted.get(name, "absent")) for name in differ[:show]]
    shown = [f"{name} is {there} there and {here} here" for name, there, here in pairs]
    return ", ".join(shown + ([f"and {len(differ) - show} more differ"] if len(differ) > show else []))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no fsync for folders
            raise
    finally:
        os.close(handle)


def _find_damage(checkpoint: Path, only: str | None = None) -> str | None:
    """What is wrong with a checkpoint, in a few words, or None if every file is as it was written."""
    try:
        if not (checkpoint / _MANIFEST).is_file():
            return f"{_MANIFEST} is missing"
        manifest = read_json_object(checkpoint / _MANIFEST, "it is left out")
        if _RECORD not in manifest:
            return f"{_MANIFEST} is incomplete"
        for name in manifest if only is None else [only]:
            if not (checkpoint / name).is_file():
                return f"{Path(name).name} is missing"
            if _sha256(checkpoint / name) != manifest[name]:
                return f"{name} does not have the hash it was written with"
    except (OSError, ValueError, UserError) as error:
        return f"unreadable: {error}"
    return None


def _says(error: BaseException | None, *codes: int) -> bool:
    """Whether the system gave one of these reasons: by its words, because TensorStore passes on these and no errno."""
    reasons = [os.strerror(code) for code in codes]
    while error is not None and not any(words in str(error) for words in reasons):
        error = error.__cause__ or error.__context__
    return error is not None
