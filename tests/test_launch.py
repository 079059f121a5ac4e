"""The jobs in launch/ are well formed and say what the program understands."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from lexinvariant.training.distributed import TRY_AGAIN, find_cluster

LAUNCH = Path(__file__).parents[1] / "launch"


def test_the_kubernetes_job_starts_as_many_processes_as_it_tells_them() -> None:
    jobset = yaml.safe_load((LAUNCH / "jobset.yaml").read_text())
    [job] = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    pod = spec["template"]["spec"]
    [command] = pod["containers"][0]["args"]
    assert command.startswith("exec lexinvariant train ")
    place = re.search(r"--distributed (\S+)", command)
    assert place
    cluster = find_cluster(place[1].replace("$JOB_COMPLETION_INDEX", "3"), {})
    assert cluster is not None
    assert cluster.arguments["num_processes"] == spec["parallelism"] == spec["completions"]
    first_pod = f"{jobset['metadata']['name']}-{job['name']}-0-0.{jobset['metadata']['name']}"
    assert cluster.arguments["coordinator_address"].split(":")[0] == first_pod
    [rule] = spec["podFailurePolicy"]["rules"]
    assert TRY_AGAIN not in rule["onExitCodes"]["values"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("code", "finished", "requeued"),
    [(0, True, False), (0, False, True), (TRY_AGAIN, False, True), (2, False, False)],
)
def test_the_slurm_job_comes_back_until_the_model_is_there(
    code: int, finished: bool, requeued: bool, tmp_path: Path
) -> None:
    for name, does in (("srun", f'echo "$@"; exit {code}'), ("scontrol", 'echo "scontrol $@"')):
        (tmp_path / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / name).chmod(0o755)
    if finished:
        (tmp_path / "out" / "model").mkdir(parents=True)
        (tmp_path / "out" / "model" / "model.safetensors").touch()
    run = subprocess.run(
        ["bash", str(LAUNCH / "slurm.sbatch"), "tiny", "data", str(tmp_path / "out"), "--steps", "3"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code
    assert f"lexinvariant train tiny --data data --out {tmp_path}/out --steps 3\n" in run.stdout
    assert ("scontrol requeue 7" in run.stdout) == requeued
