"""A folder or an archive of BIG-bench tasks: finds every task.json, and puts the subtasks of a task together."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from lexinvariant.errors import UserError
from lexinvariant.experiments.bigbench_tasks import (
    Example,
    Subtask,
    Task,
    UnusableTaskError,
    name_rng,
    parse_subtask,
)

TASK_FILE = "task.json"
LARGEST_FILE = 256 << 20
MOST_NOTES = 5


def read_tasks(source: Path, keep: int, seed: int) -> tuple[list[Task], dict[str, str]]:
    """All tasks, with at most so many examples a file, and why each of the others cannot be run.

    The rest of a file's examples is let go of at once: the whole benchmark does not fit into every memory.
    """
    found: dict[PurePosixPath, Subtask | str] = {}
    for file in find_task_files(source):
        try:
            if file.trouble:
                raise UnusableTaskError(file.trouble)
            subtask = parse_subtask("", file.data)
            found[file.place] = replace(
                subtask, examples=_thinned(subtask.examples, keep, str(file.place), seed)
            )
        except UnusableTaskError as why:
            found[file.place] = str(why)
    if not found:
        raise UserError(
            f"{source} has no {TASK_FILE}: give a folder, or a tar archive of one, with a folder for each task."
        )
    names = task_names(found, source.name)
    grouped: dict[str, dict[str, Subtask | str]] = {}
    for place in sorted(found):
        task, subtask_name = names.get(place, (str(place.parent), ""))
        grouped.setdefault(task, {})[subtask_name] = found[place]
    tasks, skipped = [], {}
    for name, members in grouped.items():
        try:
            tasks.append(_gather(name, members))
        except UnusableTaskError as why:
            skipped[name] = str(why)
    return tasks, skipped


def _thinned(examples: Sequence[Example], keep: int, place: str, seed: int) -> Sequence[Example]:
    chosen = name_rng(place, seed).permutation(len(examples))[:keep]
    return [examples[index] for index in sorted(chosen)]


def _gather(name: str, members: Mapping[str, Subtask | str]) -> Task:
    """Subtasks as one task, by the metric that most of them have."""
    usable = {sub: each for sub, each in members.items() if isinstance(each, Subtask)}
    if not usable:
        raise UnusableTaskError(next(str(why) for why in members.values()))
    metric = Counter(each.metrics[0] for each in usable.values()).most_common(1)[0][0]
    notes = [
        f"{sub or 'The task'} was left out: {why}" for sub, why in members.items() if isinstance(why, str)
    ]
    notes += [
        f"{sub} was left out: it is scored by {each.metrics[0]} and the others by {metric}."
        for sub, each in usable.items()
        if each.metrics[0] != metric
    ]
    subtasks = [
        replace(each, name=f"{name}/{sub}" if sub else name)
        for sub, each in usable.items()
        if each.metrics[0] == metric
    ]
    told = Counter(note for subtask in subtasks for note in subtask.notes)
    notes += [f"{note[:-1]} (in {n} subtasks)." if n > 1 else note for note, n in told.items()]
    if len(notes) > MOST_NOTES:
        notes = [*notes[:MOST_NOTES], f"{len(notes) - MOST_NOTES} more such notes."]
    return Task(name, subtasks, tuple(notes))


@dataclass(frozen=True)
class TaskFile:
    """A task.json that was found, and its bytes unless it may not be read."""

    place: PurePosixPath
    data: bytes = b""
    trouble: str = ""


def find_task_files(source: Path) -> Iterator[TaskFile]:
    """Every task.json below a folder or in a tar archive, one at a time; nothing is unpacked to the disk."""
    if source.is_dir():
        for path in sorted(source.rglob(TASK_FILE)):
            place = PurePosixPath(path.relative_to(source).as_posix())
            try:
                yield TaskFile(place, *_within_size(path.stat().st_size, path.read_bytes))
            except OSError as error:
                yield TaskFile(place, trouble=f"It cannot be read ({error.strerror}).")
    elif source.is_file() and tarfile.is_tarfile(source):
        yield from _find_in_archive(source)
    else:
        raise UserError(
            f"{source} is neither a folder nor a tar archive of BIG-bench tasks: give one with a {TASK_FILE} in a "
            "folder for each task."
        )


def _find_in_archive(source: Path) -> Iterator[TaskFile]:
    try:
        with tarfile.open(source) as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                if place.name != TASK_FILE:
                    continue
                if place.is_absolute() or ".." in place.parts:
                    yield TaskFile(place, trouble="Its path leads out of the archive.")
                elif not member.isreg():
                    yield TaskFile(place, trouble="It is a link and no file.")
                else:
                    file = archive.extractfile(member)
                    assert file is not None
                    yield TaskFile(place, *_within_size(member.size, file.read))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{source} is a damaged archive ({error}): fetch it again.") from error


def _within_size(size: int, read: Callable[[], bytes]) -> tuple[bytes, str]:
    if size <= LARGEST_FILE:
        return read(), ""
    return (
        b"",
        f"It has {size >> 20:,} MiB and the most is {LARGEST_FILE >> 20}: give a part of its examples.",
    )


def task_names(places: Iterable[PurePosixPath], source: str) -> dict[PurePosixPath, tuple[str, str]]:
    """(task, subtask) of every file within the source; folders that all have in common, such as `benchmark_tasks`, are
    no part of it."""
    inside = {
        place: place.parent.parts for place in places if ".." not in place.parts and not place.is_absolute()
    }
    common = 0
    while (
        all(len(parts) > common + 1 for parts in inside.values())
        and len({parts[: common + 1] for parts in inside.values()}) == 1
    ):
        common += 1
    names = {place: (parts[common:] or (source,)) for place, parts in inside.items()}
    return {place: (parts[0], "/".join(parts[1:])) for place, parts in names.items()}
