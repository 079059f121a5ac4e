"""Several processes train one model as one process would; one that is lost stops the others and costs no result."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from lexinvariant import presets
from lexinvariant.cli.main import main
from lexinvariant.config import ShardingConfig
from lexinvariant.errors import UserError
from lexinvariant.processes import python_command
from lexinvariant.text import open_data
from lexinvariant.training import distributed, hosts, loop, sharding
from lexinvariant.training.distributed import Cluster, find_cluster
from lexinvariant.training.metrics import read_metrics

STEPS = 8
COMMAND = shlex.split(
    "train tiny --model.context 16 --model.width 16 --model.n-heads 2 --model.head-dim 8 --model.hidden 32 "
    "--model.n-layers 1 --model.lexicon.kind gaussian --model.readout full --model.no-smeared-keys --batch-size 8 "
    f"--sharding.fsdp 8 --run.eval-sequences 8 --run.log-every 1 --steps {STEPS} --run.save-every 2 "
    f"--run.eval-every {STEPS} --run.no-tensorboard"
)
HEARTBEAT = 8  # seconds
ON_ONE_DEVICE = ["--sharding.fsdp", "1", "--sharding.data", "1"]
LOST = "lexinvariant: Training was ended"


class Ended(NamedTuple):
    code: int
    said: str


class Pair:
    """Two processes of one run, with four devices each."""

    def __init__(self, folder: Path, cache: Path) -> None:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        flags = os.environ["XLA_FLAGS"].replace("device_count=8", "device_count=4")
        settings = {"JAX_COMPILATION_CACHE_DIR": str(cache), "XLA_FLAGS": flags}
        settings["JAX_PERSISTENT_COMPILATION_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        self.processes = [
            subprocess.Popen(
                [
                    *python_command("lexinvariant.cli.main", "main", *COMMAND, "--out", str(folder)),
                    *("--distributed", f"localhost:{port},2,{i}", "--heartbeat-seconds", str(HEARTBEAT)),
                ],
                env=os.environ | settings,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for i in range(2)
        ]

    def ended(self, seconds: float = 120) -> list[Ended]:
        try:
            said = [process.communicate(timeout=seconds)[0] for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        return [Ended(p.returncode, text) for p, text in zip(self.processes, said, strict=True)]


class Story(NamedTuple):
    """A run of two processes: one was killed, and both were started again."""

    folder: Path
    seconds_to_stop: float
    first: list[Ended]
    left: Path  # a copy of what the kill has left
    second: list[Ended]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run in one process on one device."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert main([*COMMAND, *ON_ONE_DEVICE, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder, cache = tmp_path_factory.mktemp("pair") / "run", tmp_path_factory.mktemp("compiled")
    pair = Pair(folder, cache)
    deadline = time.monotonic() + 120
    while not (folder / "checkpoints" / "step_000000002").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    pair.processes[1].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    first = pair.ended()
    seconds = time.monotonic() - killed
    left = Path(shutil.copytree(folder, folder.parent / "left"))
    return Story(folder, seconds, first, left, Pair(folder, cache).ended())


def losses(folder: Path) -> dict[str, list[float]]:
    rows = read_metrics(folder / "metrics.jsonl")
    return {
        kind: [row["loss"] for row in rows if row["kind"] == kind]
        + [row["step"] for row in rows if row["kind"] == kind]
        for kind in ("train", "valid")
    }


def assert_same_result(folder: Path, expected: Path) -> None:
    ours, theirs = losses(folder), losses(expected)
    assert len(ours["train"]) == 2 * STEPS
    for kind in ours:
        np.testing.assert_allclose(ours[kind], theirs[kind], rtol=1e-5)
    one, other = (load_file(where / "model" / "model.safetensors") for where in (folder, expected))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_a_killed_process_stops_the_other_with_a_sentence(story: Story) -> None:
    survivor, victim = story.first
    assert victim.code == -signal.SIGKILL
    assert survivor.code == distributed.TRY_AGAIN
    assert survivor.said.splitlines()[-1].startswith(LOST)
    assert "the run continues from its newest checkpoint" in survivor.said.splitlines()[-1]
    assert story.seconds_to_stop < 60


@pytest.mark.slow
def test_started_again_they_end_as_one_process_would(story: Story, alone: Path) -> None:
    assert [ended.code for ended in story.second] == [0, 0], story.second
    start = re.search(r"going on from step (\d+)", story.second[0].said)
    assert start and 2 <= int(start[1]) < STEPS
    assert_same_result(story.folder, alone)


@pytest.mark.slow
def test_one_process_goes_on_with_what_two_have_left(story: Story, alone: Path) -> None:
    assert main([*COMMAND, *ON_ONE_DEVICE, "--out", str(story.left)]) == 0
    assert_same_result(story.left, alone)


@pytest.mark.slow
def test_one_process_speaks_and_both_write_checkpoints_that_one_has_sealed(story: Story) -> None:
    spoken = [[line for line in e.said.splitlines() if "[Gloo]" not in line] for e in story.second]
    assert any("Done: the model is in" in line for line in spoken[0])
    assert spoken[1] == []
    state = story.folder / "checkpoints" / f"step_{STEPS:09d}"
    manifest = json.loads((state / "manifest.json").read_text())
    written = {path.relative_to(state).as_posix() for path in state.rglob("*") if path.is_file()}
    assert manifest.keys() == written - {"manifest.json"}
    for process in ("ocdbt.process_0", "ocdbt.process_1"):
        assert any(process in name for name in manifest), "each process has written its shards"


def in_a_child(does: str) -> subprocess.Popen[str]:
    """A process that runs `does` as its child's training, without jax."""
    code = f"""
import os, signal, sys, time
from lexinvariant.training import distributed
def train(*_):
    print(os.getpid(), flush=True)
    {does}
distributed._work_as_one_of_many = train
sys.exit(distributed.run_in_cluster(distributed.Cluster(), 5, lambda: 0))
"""
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(
    ("does", "code", "says"),
    [
        ("return 0", 0, ""),
        ("raise distributed.UserError('So not.')", 2, "lexinvariant: So not."),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("os.abort()", 75, "lexinvariant: Training was ended (SIGABRT): another process"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            75,
            "ended by SIGKILL (there may have been too little memory)",
        ),
        ("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)", 128 + signal.SIGTERM, ""),
    ],
)
def test_whatever_ends_training_its_parent_says_so(does: str, code: int, says: str) -> None:
    process = in_a_child(does)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert says in said and bool(said) == bool(says)


def test_training_does_not_outlive_its_parent() -> None:
    process = in_a_child("time.sleep(60)")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=30)  # ends when the child, too, has closed what it writes to
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(child, 0)
            time.sleep(0.05)


def test_all_hosts_stop_after_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = sharding.make_mesh(ShardingConfig(data=8))
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    agreement = hosts.Agreement(mesh)
    assert [agreement.any_host(yes) for yes in (False, True, False, False)] == [False, False, True, False]
    here = jax.make_array_from_callback(
        (8,),
        jax.sharding.NamedSharding(mesh, sharding.BATCH),
        lambda index: np.arange(8)[index] == 5,  # one device of one host says yes
    )
    monkeypatch.setattr(hosts, "to_devices", lambda array, mesh: here)
    assert [agreement.any_host(False) for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1", "SLURM_STEP_NODELIST": "a"}, None),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"}, None),  # the batch script itself, not a task of srun
        ({"SLURM_NTASKS": "8", "SLURM_STEP_NODELIST": "a[1-2]"}, {}),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_MCA_orte_hnp_uri": "x"}, None),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_MCA_orte_hnp_uri": "x"}, {}),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None),  # any pod
        ({"TPU_WORKER_HOSTNAMES": "t0"}, None),
        ({"TPU_WORKER_HOSTNAMES": "t0,t1"}, {}),
    ],
)
def test_schedulers_that_start_several_processes_are_recognised(
    environment: Mapping[str, str], arguments: dict[str, Any] | None
) -> None:
    assert find_cluster("", environment) == (None if arguments is None else Cluster(arguments))
    assert find_cluster("no", environment) is None
    explicit = {"coordinator_address": "a:1", "num_processes": 3, "process_id": 2}
    assert find_cluster("a:1,3,2", environment) == Cluster(explicit)


@pytest.mark.parametrize(
    ("tasks", "visible", "local", "mine"),
    [
        ("8(x4)", "0,1,2,3,4,5,6,7", "3", [3]),
        ("1(x4)", "0,1,2,3,4,5,6,7", "0", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("2", "0,1,2,3", "1", [2, 3]),
        ("8(x4)", "0", "5", [0]),  # bound by the scheduler: every process sees its own alone
    ],
)
def test_processes_of_one_node_share_its_gpus(tasks: str, visible: str, local: str, mine: list[int]) -> None:
    environment = {"SLURM_NTASKS": "32", "SLURM_STEP_NODELIST": "a[1-4]", "SLURM_LOCALID": local}
    environment |= {"SLURM_STEP_TASKS_PER_NODE": tasks, "CUDA_VISIBLE_DEVICES": visible}
    assert find_cluster("", environment) == Cluster({"local_device_ids": mine})


@pytest.mark.parametrize(("tasks", "local"), [("0", "0"), ("2", "x"), ("2", None)])
def test_a_scheduler_that_does_not_say_which_gpus_are_whose(tasks: str, local: str | None) -> None:
    environment = {"SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "a", "SLURM_STEP_TASKS_PER_NODE": tasks}
    environment |= {"CUDA_VISIBLE_DEVICES": "0,1"} | ({"SLURM_LOCALID": local} if local else {})
    assert find_cluster("", environment) == Cluster({})


def test_hosts_with_other_settings_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    seen: list[np.ndarray[Any, Any]] = []

    def gathered(here: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The first time that of a host with the same, and then of the first time."""
        seen.append(here)
        return np.stack([here, seen[0]])

    monkeypatch.setattr(hosts.multihost_utils, "process_allgather", gathered)
    config, data = presets.preset("tiny"), open_data("markov12")
    loop._check_hosts(config, data, tmp_path)
    loop._check_hosts(config.changed({"data.path": "elsewhere"}), data, tmp_path)
    for other in (config.changed({"seed": 5}), config.changed({"run.save_every": 3})):
        with pytest.raises(UserError, match="start all with the same command"):
            loop._check_hosts(other, data, tmp_path)
    with pytest.raises(UserError, match="start all with the same command"):
        loop._check_hosts(config, data, tmp_path / "other")


@pytest.mark.parametrize(
    "environment",
    [{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "0"}, {"PMI_SIZE": "2"}],
)
def test_where_the_others_cannot_be_found_without_a_package_it_is_named(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install '(jax.k8s.|mpi4py)', or give --distributed"):
        find_cluster("", environment)
    monkeypatch.setattr(distributed, "find_spec", lambda name: True)
    method = {"cluster_detection_method": "mpi4py"} if "PMI_SIZE" in environment else {}
    assert find_cluster("", environment) == Cluster(method)


@pytest.mark.parametrize(
    "wrong",
    [
        *("localhost", "localhost:1", "localhost:1,2", "localhost:1,2,2", "a:b,2,1"),
        *("localhost:0,2,1", "localhost:65536,2,1", "localhost:٣,2,1", "localhost:1,99999999,1"),
    ],
)
def test_a_place_among_processes_that_cannot_be(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tiny", "--distributed", wrong]) == 2
    assert "--distributed is coordinator:port,N,i" in capsys.readouterr().err


def test_a_heartbeat_of_years(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "tiny", "--distributed", "a:1,1,0", "--heartbeat-seconds", "99999999999"]) == 2
    assert "give at most 86400" in capsys.readouterr().err


def test_devices_that_no_axis_uses_are_told_where_there_are_several_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UserError, match="leaves some of the 8 devices of 2 processes without work"):
        sharding.make_mesh(ShardingConfig(data=4))
