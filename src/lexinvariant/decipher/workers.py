"""Many texts on all cores: processes of our own, since NumPy's short calls hold the interpreter's lock.

A worker is given its texts through a pipe, so that nothing is asked of the caller's program (multiprocessing would
import it again) and jax, which does not survive a fork, is not in the way.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lexinvariant.processes import python_command

if TYPE_CHECKING:
    from lexinvariant.decipher.decipherment import Decipherment
    from lexinvariant.decipher.solve import Solver

Texts = Sequence[str | Sequence[str]]


def read_on_all_cores(solver: Solver, texts: Texts, options: Mapping[str, Any]) -> list[Decipherment]:
    """Deal the texts out to this process and one for every other core; returns one decipherment a text."""
    n_parts = min(os.cpu_count() or 1, len(texts))
    command = python_command("lexinvariant.decipher.workers", "main")
    # A copy that has read no tables: a worker reads them itself.
    language = None if solver.finds_language else replace(solver.language)
    workers = []
    for part in range(1, n_parts):
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert worker.stdin is not None
        with suppress(BrokenPipeError):  # it is dead already: see below
            pickle.dump((texts[part::n_parts], language, dict(options)), worker.stdin)
            worker.stdin.close()
        workers.append(worker)
    out: list[Any] = [None] * len(texts)
    out[::n_parts] = _read_one_by_one(solver, texts[::n_parts], options)
    for part, worker in enumerate(workers, start=1):
        assert worker.stdout is not None
        answer = worker.stdout.read()
        worker.stdout.close()
        # A worker that was killed, say for want of memory, leaves its texts to us.
        done = worker.wait() == 0
        mine = texts[part::n_parts]
        out[part::n_parts] = pickle.loads(answer) if done else _read_one_by_one(solver, mine, options)
    return out


def _read_one_by_one(solver: Solver, texts: Texts, options: Mapping[str, Any]) -> list[Decipherment]:
    return [solver.read([text], **options)[0] for text in texts]


def main() -> None:
    """Read texts, their language and options from standard input, write decipherments to standard output."""
    from lexinvariant.decipher.solve import Solver

    texts, language, options = pickle.load(sys.stdin.buffer)
    solver = Solver(language=language, use_judge=False)
    pickle.dump(_read_one_by_one(solver, texts, options), sys.stdout.buffer)
