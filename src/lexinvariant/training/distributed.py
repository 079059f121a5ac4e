"""Several processes that train one model: how they find each other, and what one says when another is lost.

Where jax works on several hosts, the loss of one ends all others from within, by `abort()` and whatever Python does: a
process cannot say then what has happened. So training runs in a child, and its parent, which has no part in the run,
passes signals on to it and has the last word. Nothing here imports jax before the child is there: jax does not
survive a fork.
"""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lexinvariant.errors import UserError, exit_code

ALONE = "no"  # what --distributed is given on a machine that only looks like one of many
LONGEST_CAUSE = 200  # characters of what jax says
SECONDS_TO_FINISH = 3600  # the others wait so long for host 0 to write the model and the curves
GO_ON = "Give the same command to all processes, as many as you like: the run continues from its newest checkpoint."
TRY_AGAIN = 75  # the exit code of a run that only has to be started again (EX_TEMPFAIL of sysexits.h)


@dataclass(frozen=True)
class Cluster:
    """How this process finds the others: what jax.distributed.initialize is given."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_certain: bool = True
    """A machine with a TPU may be one of many, and only jax can tell."""


def find_cluster(wanted: str, environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that --distributed names, or that a scheduler has started this process in; None for one alone."""
    if wanted == ALONE:
        return None
    if wanted:
        return Cluster(_parse(wanted))

    def several(name: str) -> bool:
        return environment.get(name, "").isdecimal() and int(environment[name]) > 1

    if several("SLURM_NTASKS") and "SLURM_STEP_NODELIST" in environment:
        return Cluster(_share_of_gpus(environment, "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"))
    if several("OMPI_COMM_WORLD_SIZE") and "OMPI_MCA_orte_hnp_uri" in environment:
        return Cluster(
            _share_of_gpus(environment, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
        )
    if several("OMPI_COMM_WORLD_SIZE") or several("PMI_SIZE"):
        return Cluster({"cluster_detection_method": "mpi4py"} | _needs("mpi4py", "mpi4py"))
    hosts = environment.get("TPU_PROCESS_ADDRESSES") or environment.get("TPU_WORKER_HOSTNAMES") or ""
    if "," in hosts or several("MEGASCALE_NUM_SLICES"):
        return Cluster()
    if {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= environment.keys():
        return Cluster(_needs("kubernetes", "jax[k8s]"))
    has_tpu = Path("/dev/accel0").exists() or Path("/dev/vfio/0").exists()
    return Cluster(is_certain=False) if has_tpu and find_spec("libtpu") is not None else None


def _parse(wanted: str) -> dict[str, Any]:
    found = re.fullmatch(r"([^\s,]+:(\d{1,5})),(\d{1,7}),(\d{1,7})", wanted, re.ASCII)
    if not found or not 0 < int(found[2]) < 65536 or not int(found[4]) < int(found[3]):
        raise UserError(
            f"--distributed is coordinator:port,N,i (the address of process 0, the number of processes, and which of "
            f"them this is, from 0) or {ALONE}, not {wanted!r}."
        )
    return {"coordinator_address": found[1], "num_processes": int(found[3]), "process_id": int(found[4])}


def _needs(module: str, package: str) -> dict[str, Any]:
    if find_spec(module) is None:
        raise UserError(
            f"This process looks like one of many, and finding the others needs a package: pip install '{package}', or "
            f"give --distributed coordinator:port,N,i, or --distributed {ALONE} to train alone."
        )
    return {}


def _share_of_gpus(environment: Mapping[str, str], local: str, per_node: str) -> dict[str, Any]:
    """Left alone, jax gives every process one GPU of its node, also where there are more GPUs than processes."""
    visible = [gpu for gpu in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
    tasks = re.fullmatch(r"([1-9]\d*)(\(x\d+\))?", environment.get(per_node, ""), re.ASCII)
    if not visible or not tasks or not environment.get(local, "").isdecimal():
        return {}
    n_tasks = int(tasks[1])
    if len(visible) % n_tasks:  # the scheduler has given every process its own
        return {"local_device_ids": list(range(len(visible)))}
    each = len(visible) // n_tasks
    first = int(environment[local]) * each
    return {"local_device_ids": list(range(first, first + each))}


def run_in_cluster(cluster: Cluster, heartbeat_seconds: int, work: Callable[[], int]) -> int:
    """Do the work as one process of several, in a child; returns the exit code. In the child it never returns."""
    if not hasattr(os, "fork"):
        _join(cluster, heartbeat_seconds)
        return work()
    parent_is_there, parent = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(parent)
            threading.Thread(target=_end_without_parent, args=(parent_is_there,), daemon=True).start()
            code = exit_code(lambda: _work_as_one_of_many(cluster, heartbeat_seconds, work))
        except BaseException:  # nothing of this process may go on as the parent
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not through Python's own end: there jax would wait for all others, and they for this process.
            os._exit(code)
    os.close(parent_is_there)
    passed_on: set[int] = set()

    def pass_on(number: int, _: Any) -> None:
        passed_on.add(number)
        os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, pass_on)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code >= 0:
        return code
    if -code in passed_on:  # so early that nothing was there to save, or asked twice
        return 128 - code
    if -code == signal.SIGABRT:
        return _say_that_others_are_lost("SIGABRT")
    why = " (there may have been too little memory)" if -code == signal.SIGKILL else ""
    print(f"lexinvariant: Training was ended by {signal.Signals(-code).name}{why}. {GO_ON}", file=sys.stderr)
    return TRY_AGAIN


def _say_that_others_are_lost(cause: str) -> int:
    print(
        f"lexinvariant: Training was ended ({cause}): another process of the run has ended or cannot be reached, and "
        f"what it printed may say why. {GO_ON}",
        file=sys.stderr,
    )
    return TRY_AGAIN


def _end_without_parent(parent_is_there: int) -> None:
    os.read(parent_is_there, 1)  # nothing is ever written: this is the end of the file
    os._exit(1)


def _work_as_one_of_many(cluster: Cluster, heartbeat_seconds: int, work: Callable[[], int]) -> int:
    import jax

    try:
        _join(cluster, heartbeat_seconds)
        code = work()
        jax.distributed.shutdown()
        return code
    except jax.errors.JaxRuntimeError as error:
        if not re.search("gloo|nccl|connect|heartbeat|coordination|barrier", str(error), re.IGNORECASE):
            raise
        return _say_that_others_are_lost(_shortened(error))


def _join(cluster: Cluster, heartbeat_seconds: int) -> None:
    """Find the other processes. From now on jax's devices are those of all of them."""
    import jax

    jax.config.update("jax_enable_preemption_service", False)  # the loop itself listens for SIGTERM
    # On CPUs two programs that run at once would mix up what they send to other hosts.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    try:
        jax.distributed.initialize(
            **cluster.arguments,
            heartbeat_timeout_seconds=heartbeat_seconds,
            shutdown_timeout_seconds=SECONDS_TO_FINISH,
        )
    except (RuntimeError, ValueError) as error:
        if not cluster.is_certain:
            return
        raise UserError(
            f"The processes of the run did not find each other ({_shortened(error)}): start all of "
            "them with the same coordinator, or give --distributed coordinator:port,N,i."
        ) from error


def _shortened(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_CAUSE]
