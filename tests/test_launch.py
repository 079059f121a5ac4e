"""The jobs in launch/ are well formed and say what the program understands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lexinvariant.remote import RemoteFolder
from lexinvariant.training.distributed import TRY_AGAIN, find_cluster

LAUNCH = Path(__file__).parents[1] / "launch"
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def test_the_kubernetes_job_starts_as_many_processes_as_it_tells_them() -> None:
    jobset = yaml.safe_load((LAUNCH / "jobset.yaml").read_text())
    [job] = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    pod = spec["template"]["spec"]
    [command] = pod["containers"][0]["args"]
    assert "lexinvariant train " in command
    place = re.search(r"--distributed (\S+)", command)
    assert place
    cluster = find_cluster(place[1].replace("$JOB_COMPLETION_INDEX", "3"), {})
    assert cluster is not None
    assert cluster.arguments["num_processes"] == spec["parallelism"] == spec["completions"]
    first_pod = f"{jobset['metadata']['name']}-{job['name']}-0-0.{jobset['metadata']['name']}"
    assert cluster.arguments["coordinator_address"].split(":")[0] == first_pod
    [rule] = spec["podFailurePolicy"]["rules"]
    assert TRY_AGAIN not in rule["onExitCodes"]["values"]


@needs_bash
@pytest.mark.parametrize(
    ("does", "finished", "ends_with"),
    [
        ("exit 0", True, 0),
        ("exit 0", False, TRY_AGAIN),
        (f"exit {TRY_AGAIN}", False, TRY_AGAIN),
        ("exit 2", False, 2),
        # Asked to stop it takes its time to save, and is waited for.
        (
            "trap 'sleep 0.3; touch saved; exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.05; done",
            False,
            TRY_AGAIN,
        ),
    ],
)
def test_a_pod_that_has_saved_and_stopped_starts_again(
    does: str, finished: bool, ends_with: int, tmp_path: Path
) -> None:
    [job] = yaml.safe_load((LAUNCH / "jobset.yaml").read_text())["spec"]["replicatedJobs"]
    [container] = job["template"]["spec"]["template"]["spec"]["containers"]
    [script] = container["args"]
    (tmp_path / "lexinvariant").write_text(f"#!/bin/bash\n{does}\n")
    (tmp_path / "lexinvariant").chmod(0o755)
    if finished:
        (tmp_path / "runs" / "mine" / "model").mkdir(parents=True)
        (tmp_path / "runs" / "mine" / "model" / "model.safetensors").touch()
    run = subprocess.run(
        [*container["command"], script.replace("/runs/", f"{tmp_path}/runs/")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "JOB_COMPLETION_INDEX": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == ends_with, run.stderr
    assert (tmp_path / "saved").exists() == ("TERM" in does)


def run_slurm_job(tmp_path: Path, out: str, code: int, **environment: str) -> bool:
    """What the job's script does after `srun` has ended with a status: whether it comes back."""
    stubs = {
        "srun": f'echo "$@"; exit {code}',
        "scontrol": 'echo "scontrol $@"',
        "python3": f'exec {sys.executable} "$@"',
    }
    for name, does in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / name).chmod(0o755)
    ours = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        ["bash", str(LAUNCH / "slurm.sbatch"), "tiny", "data", out, "--steps", "3"],
        env=ours | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code
    assert f"lexinvariant train tiny --data data --out {out} --steps 3\n" in run.stdout
    return "scontrol requeue 7" in run.stdout


@needs_bash
@pytest.mark.parametrize(
    ("code", "finished", "requeued"),
    [(0, True, False), (0, False, True), (TRY_AGAIN, False, True), (2, False, False)],
)
def test_the_slurm_job_comes_back_until_the_model_is_there(
    code: int, finished: bool, requeued: bool, tmp_path: Path
) -> None:
    if finished:
        (tmp_path / "out" / "model").mkdir(parents=True)
        (tmp_path / "out" / "model" / "model.safetensors").touch()
    assert run_slurm_job(tmp_path, str(tmp_path / "out"), code) == requeued


@needs_bash
def test_the_slurm_job_looks_for_the_model_on_a_store(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store/run"
    assert run_slurm_job(tmp_path, url, 0), "nothing is there yet"
    (tmp_path / "file").touch()
    RemoteFolder(url).upload({"config.json": tmp_path / "file"})
    assert run_slurm_job(tmp_path, url, TRY_AGAIN)
    RemoteFolder(url).upload({"model/model.safetensors": tmp_path / "file"})
    assert not run_slurm_job(tmp_path, url, 0)
    assert not run_slurm_job(tmp_path, "nosuch://bucket/run", 0), "a store that does not tell is for a person"


@needs_bash
def test_the_slurm_job_does_not_come_back_for_ever(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert run_slurm_job(tmp_path, out, TRY_AGAIN, SLURM_RESTART_COUNT="99")
    assert not run_slurm_job(tmp_path, out, TRY_AGAIN, SLURM_RESTART_COUNT="100")
