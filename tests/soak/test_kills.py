"""A run that is killed a hundred times, on a machine that has other work, ends as one that nothing happened to."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.training.metrics import read_metrics
from tests.soak.scale import SOAK
from tests.training.test_loop import TOY, checkpoints, model

KILLS = 100
STEPS = 4_000
COMMAND = [*TOY, "--steps", str(STEPS), "--run.save-every", "20", "--run.eval-every", "500"]
# One process pays for the imports and forks a run for every line that it reads: jax itself starts in the run.
FORKING_RUNS = """
import json, os, sys, warnings
warnings.filterwarnings("ignore", message=".*fork")
import jax
from lexinvariant.cli.main import main
from lexinvariant.training import loop

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(json.loads(line)))
    os.write(1, b"%d\\n" % pid)
    _, status = os.waitpid(pid, 0)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not SOAK, reason="minutes of being killed: make soak")
def test_a_run_that_is_killed_a_hundred_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    with subprocess.Popen([sys.executable, "-c", FORKING_RUNS], env=environment, **pipes) as runs:
        assert runs.stdin is not None and runs.stdout is not None
        answers = runs.stdout

        def start(folder: Path) -> int:
            assert runs.stdin is not None
            runs.stdin.write(json.dumps([*COMMAND, "--out", str(folder)]) + "\n")
            return int(answers.readline())

        try:
            start(tmp_path / "never")
            assert int(answers.readline()) == 0
            moments, kills, moved = random.Random(), 0, 0
            while kills < KILLS:
                before = checkpoints(tmp_path / "killed")[-1:]
                pid = start(tmp_path / "killed")
                # Some die before they have done anything, some between two saves, and some in the midst of one.
                patience = moments.uniform(0, 3)
                until = time.monotonic() + 60
                while patience > 1 and checkpoints(tmp_path / "killed")[-1:] <= before:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                time.sleep(patience / 10)
                os.kill(pid, signal.SIGKILL)
                assert int(answers.readline()) == -signal.SIGKILL, (
                    "the run ended before it was killed: more STEPS"
                )
                kills += 1
                moved += checkpoints(tmp_path / "killed")[-1:] > before
            start(tmp_path / "killed")
            assert int(answers.readline()) == 0
        finally:
            runs.kill()
            for process in busy:
                process.kill()
    with capsys.disabled():
        print(f"\n{kills} kills, {moved} of them after a further checkpoint")
    assert moved > KILLS / 4
    assert model(tmp_path / "killed") == model(tmp_path / "never")
    losses, expected = (
        [(row["step"], row["kind"], row["loss"]) for row in read_metrics(tmp_path / name / "metrics.jsonl")]
        for name in ("killed", "never")
    )
    assert losses == expected
