"""From a run to a model that can be loaded without any training state."""

from dataclasses import replace
from pathlib import Path

from lexinvariant.config import ShardingConfig, TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.files import expand_user
from lexinvariant.model.folder import BUNDLED, find_model, read_description
from lexinvariant.model.weights import Precision, load_weights, save_model
from lexinvariant.remote import local_copy
from lexinvariant.settings import from_dict
from lexinvariant.text import load_vocab
from lexinvariant.text.manifest import MANIFEST_FILE
from lexinvariant.training.checkpoint import CheckpointStore, read_notes
from lexinvariant.training.setup import build
from lexinvariant.training.spikes import notes_for_model


def _check_out(out: Path) -> None:
    """A model is written to a folder of its own, or in place of another: files of a run, a corpus or anything else
    would be lost, or taken for a part of it."""
    if not out.is_dir():
        return
    # What is hidden is not in the way: what a killed export has left, or the .git of a repository for the model.
    if all(path.name.startswith(".") for path in out.iterdir()):
        return
    if (out / MANIFEST_FILE).exists():  # also where an older release has put a model among the shards
        raise UserError(f"{out} is a prepared corpus: choose another folder, it will not be touched.")
    if not (out / "config.json").exists():
        raise UserError(
            f"{out} is not empty and holds no model: choose another folder, it will not be touched."
        )
    try:
        read_description(out)
    except UserError as error:
        raise UserError(
            f"{out} has a config.json that is not a model's: choose another folder, it will not be touched."
        ) from error


def export(
    place: str | Path, out: str | Path, *, precision: Precision = "float32", step: int | None = None
) -> int | None:
    """Write the newest (or the given, or with step=-1 the best) checkpoint of a run as a model, and return its step; or
    a model that was exported before, in another precision."""
    run = Path(place) if place == BUNDLED else local_copy(place)
    checkpoints, out = run / "checkpoints", expand_user(out)
    _check_out(out)
    if checkpoints.is_dir():
        return _export_run(run, checkpoints, out, precision, step)
    folder = find_model(place)
    if not (folder / "config.json").exists():
        raise UserError(f"{place} is neither the folder of a run nor that of a model: give one of these.")
    if step is not None:
        raise UserError(f"{place} is a model, which has no other steps: leave out the step, or give its run.")
    if out.resolve() == folder.resolve():
        raise UserError(f"{place} would be written over itself: give another folder to write to.")
    weights = load_weights(folder)
    notes = read_description(folder).get("notes")
    save_model(out, weights.config, weights.params, weights.vocab, precision=precision, notes=notes)
    return None


def _export_run(run: Path, checkpoints: Path, out: Path, precision: Precision, step: int | None) -> int:
    with CheckpointStore(checkpoints) as store:
        if step == -1:
            step = store.best_step()
        notes = read_notes(checkpoints, step)
        config = from_dict(TrainConfig, notes["config"])
        one_device = replace(config, sharding=ShardingConfig(data=1, fsdp=1))
        restored = store.restore(build(one_device).abstract_state, step)
    if restored is None:
        raise UserError(f"{run} has no checkpoint yet: train on, it is saved every run.save_every steps.")
    found, state, _ = restored
    save_model(
        out,
        config.model,
        state.params,
        load_vocab(run),
        precision=precision,
        notes={"step": found, **notes_for_model(notes)},
    )
    return found
