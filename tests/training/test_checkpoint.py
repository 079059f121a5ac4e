"""What a run may rely on: exact state, the right ones kept, and no damage that goes unnoticed."""

import errno
import functools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lexinvariant.errors import UserError
from lexinvariant.training import checkpoint
from lexinvariant.training.checkpoint import CheckpointStore, read_notes


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    table: jax.Array
    layers: tuple[dict[str, jax.Array], ...]
    gain: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    step: jax.Array
    params: Params
    opt: Any


def make_params(width: int = 8) -> Params:
    keys = jax.random.split(jax.random.key(0), 3)
    layers = tuple({"w": jax.random.normal(key, (width, width))} for key in keys[:2])
    return Params(
        jax.random.normal(keys[2], (130, width)), layers, jnp.linspace(-1, 3, width, dtype=jnp.bfloat16)
    )


@jax.numpy_dtype_promotion("standard")  # optax itself is not strict about either
@jax.numpy_rank_promotion("allow")
def make_state(optimiser: optax.GradientTransformation, width: int = 8) -> State:
    """A state whose moments are not zeros, so that mixing up two leaves cannot go unseen."""
    params = make_params(width)
    opt = optimiser.init(params)
    for _ in range(2):
        updates, opt = optimiser.update(jax.tree.map(jnp.square, params), opt, params)
        params = optax.apply_updates(params, updates)
    return State(jnp.int32(2), params, opt)


def small(step: int) -> dict[str, jax.Array]:
    return {"w": jnp.full(3000, step, jnp.float32) / 7, "step": jnp.int32(step)}


def abstract(state: Any, sharding: jax.sharding.Sharding | None = None) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), state)


SMALL = abstract(small(0))


def assert_same_bits(got: Any, want: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def filled(folder: Path, steps: list[int]) -> None:
    with CheckpointStore(folder, keep_last=len(steps)) as store:
        for step in steps:
            store.save(step, small(step), notes={"at": step})


def largest_file(folder: Path, step: int) -> Path:
    return max(
        (p for p in (folder / f"step_{step:09d}").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size
    )


def flip_one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("optimiser", [optax.adamw(1e-2), optax.adafactor(1e-2, min_dim_size_to_factor=8)])
def test_a_state_comes_back_bit_for_bit(tmp_path: Path, optimiser: optax.GradientTransformation) -> None:
    state = make_state(optimiser)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {"float32", "bfloat16", "int32"}
    with CheckpointStore(tmp_path) as store:
        store.save(2, state, notes={"config": {"width": 8}, "loss": 0.1})
    with CheckpointStore(tmp_path) as store:
        restored = store.restore(abstract(state))
    assert restored is not None
    step, got, notes = restored
    assert step == 2 and notes == {"config": {"width": 8}, "loss": 0.1} == read_notes(tmp_path)
    assert_same_bits(got, state)


def test_python_numbers_come_back_as_arrays(tmp_path: Path) -> None:
    state = {"step": 7, "scale": 0.1, "w": jnp.ones(3)}
    with CheckpointStore(tmp_path) as store:
        store.save(7, state, notes={})
        restored = store.restore(jax.eval_shape(lambda: state))
    assert restored is not None
    assert_same_bits(restored[1], {"step": jnp.int32(7), "scale": jnp.float32(0.1), "w": jnp.ones(3)})


def test_an_empty_or_absent_folder_has_nothing_to_restore(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with CheckpointStore(folder) as store:
            assert store.restore(SMALL) is None
            assert store.steps() == [] and store.best_step() is None
        with pytest.raises(UserError, match="no readable checkpoint"):
            read_notes(folder)
    assert not list(tmp_path.iterdir())


def test_the_last_and_the_best_are_kept(tmp_path: Path) -> None:
    metrics = {1: 5.0, 2: 2.0, 3: 1.0, 4: 3.0, 5: float("nan"), 6: 4.0, 7: None}
    with CheckpointStore(tmp_path, keep_last=2, keep_best=2) as store:
        for step, metric in metrics.items():
            store.save(step, small(step), notes={}, metric=metric)
        store.wait()
        assert store.steps() == [2, 3, 6, 7]
        assert store.best_step() == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"step_{s:09d}" for s in (2, 3, 6, 7)]


def test_an_older_step_can_be_asked_for_and_trained_on(tmp_path: Path) -> None:
    filled(tmp_path, [10, 20, 30])
    assert read_notes(tmp_path, 20) == {"at": 20}
    with CheckpointStore(tmp_path, keep_last=2, keep_best=0) as store:
        restored = store.restore(SMALL, step=10)
        assert restored is not None and restored[0] == 10
        assert_same_bits(restored[1], small(10))
        with pytest.raises(UserError, match=re.escape("no checkpoint of step 11")):
            store.restore(SMALL, step=11)
        store.save(15, small(15), notes={})  # not among the last two, and yet what was just asked for
        store.save(20, small(21), notes={})  # another branch: the new state takes the name
        restored = store.restore(SMALL, step=20)
    assert restored is not None
    assert_same_bits(restored[1], small(21))


def test_saving_a_step_again_leaves_it_alone(tmp_path: Path) -> None:
    with CheckpointStore(tmp_path) as store:
        store.save(1, small(1), notes={})
        store.wait()
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        store.save(1, small(1), notes={})
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


def test_a_save_is_seen_only_when_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holds the background thread just before it hashes: `save` has returned, and nobody may see the step."""
    hash_file, may_hash = checkpoint._sha256, threading.Event()
    hashing_threads = set()

    def held(path: Path) -> str:
        hashing_threads.add(threading.current_thread())
        assert may_hash.wait(10)
        return hash_file(path)

    with CheckpointStore(tmp_path) as store, CheckpointStore(tmp_path) as reader:
        store.save(1, small(1), notes={})
        store.wait()
        monkeypatch.setattr(checkpoint, "_sha256", held)
        store.save(2, small(2), notes={})
        while not hashing_threads:
            time.sleep(0.001)
        assert threading.main_thread() not in hashing_threads
        assert store.steps() == reader.steps() == [1]
        may_hash.set()
        store.wait()
        assert store.steps() == reader.steps() == [1, 2]


def test_a_strict_loop_may_donate_the_state_right_after_save(tmp_path: Path) -> None:
    advance = jax.jit(lambda x: x + 1, donate_argnums=0)
    state = {"w": advance(jnp.zeros(2_000_000)), "epoch": 3}
    target = jax.eval_shape(lambda: state)
    with CheckpointStore(tmp_path) as store, jax.transfer_guard("disallow"):
        store.save(1, state, notes={})
        for _ in range(5):
            state = {"w": advance(state["w"]), "epoch": 3}
        restored = store.restore(target)
    assert restored is not None
    assert_same_bits(restored[1], {"w": jnp.ones(2_000_000), "epoch": jnp.int32(3)})


def test_what_a_kill_leaves_half_deleted_is_not_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as if killed before each deletion
        with CheckpointStore(tmp_path, keep_last=1) as store:
            for step in (1, 2, 3):
                store.save(step, small(step), notes={})
            store.wait()
            assert store.steps() == [3]
    assert (tmp_path / ".unfinished").exists()
    with CheckpointStore(tmp_path, keep_last=1) as store:
        store.save(4, small(4), notes={})
    assert [path.name for path in tmp_path.iterdir()] == ["step_000000004"]


def test_one_wrong_bit_is_noticed_and_the_one_before_is_used(tmp_path: Path) -> None:
    filled(tmp_path, [1, 2, 3])
    flip_one_bit(largest_file(tmp_path, 3))
    with CheckpointStore(tmp_path, keep_last=2, keep_best=0) as store:
        with pytest.warns(UserWarning, match="Checkpoint 3 in .* is damaged .*: using 2 instead"):
            restored = store.restore(SMALL)
        assert restored is not None and restored[0] == 2
        assert_same_bits(restored[1], small(2))
        assert store.steps() == [1, 2]
        for _ in range(2):  # the resumed run comes by again, and mends it
            store.save(3, small(3), notes={})
            restored = store.restore(SMALL)
            assert restored is not None and restored[0] == 3
            assert store.steps() == [2, 3]
            flip_one_bit(largest_file(tmp_path, 3))
            with pytest.warns(UserWarning, match="using 2 instead"):
                store.restore(SMALL)


@pytest.mark.parametrize("file", ["state/_METADATA", "state/manifest.ocdbt", "record.json", "manifest.json"])
def test_a_wrong_bit_in_any_file_is_noticed(tmp_path: Path, file: str) -> None:
    filled(tmp_path, [1, 2])
    flip_one_bit(tmp_path / "step_000000002" / file)
    with CheckpointStore(tmp_path) as store, pytest.warns(UserWarning, match="using 1 instead"):
        restored = store.restore(SMALL)
    assert restored is not None and restored[0] == 1


def test_truncated_missing_and_unsealed_checkpoints_are_passed_over(tmp_path: Path) -> None:
    filled(tmp_path, [1, 2, 3, 4, 5])
    (tmp_path / "step_000000005" / "manifest.json").unlink()
    os.truncate(largest_file(tmp_path, 4), 100)
    largest_file(tmp_path, 3).unlink()
    shutil.rmtree(tmp_path / "step_000000002")
    (tmp_path / "step_000000002").mkdir()
    with CheckpointStore(tmp_path, keep_last=2) as store:
        with pytest.warns(UserWarning, match="using 1 instead") as caught:
            restored = store.restore(SMALL)
        assert restored is not None and restored[0] == 1
        assert len(caught) == 4 and "manifest.json is missing" in str(caught[0].message)
        store.save(6, small(6), notes={})
        store.wait()
        assert store.steps() == [1, 6]
    assert len(list(tmp_path.iterdir())) == 2  # the damaged ones went when a newer good one was there


def test_when_everything_is_damaged_the_user_is_told(tmp_path: Path) -> None:
    filled(tmp_path, [1, 2])
    for step in (1, 2):
        flip_one_bit(largest_file(tmp_path, step))
    before = sorted(tmp_path.rglob("*"))
    with CheckpointStore(tmp_path) as store:
        with pytest.raises(UserError, match=r"No undamaged checkpoint .* 2 \(.*\), 1 \("):
            store.restore(SMALL)
        with pytest.raises(UserError, match=r"No undamaged checkpoint .* 1 \("):
            store.restore(SMALL, step=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_another_config_is_named(tmp_path: Path) -> None:
    state, wider = make_state(optax.sgd(0.1), 8), make_state(optax.sgd(0.1), 16)
    with CheckpointStore(tmp_path) as store:
        store.save(1, state, notes={})
        with pytest.raises(UserError) as error:
            store.restore(abstract(wider))
        message = str(error.value)
        assert r"params.table is float32[130, 8] there and float32[130, 16] here" in message
        assert "and 1 more differ" in message and "\n" not in message
        with pytest.raises(UserError, match=r"opt.* is absent there"):
            store.restore(abstract(make_state(optax.adam(0.1), 8)))
        halved = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, jnp.bfloat16), state)
        with pytest.raises(UserError, match=r"float32.* there and bfloat16.* here"):
            store.restore(halved)


def test_a_run_may_resume_on_another_mesh(tmp_path: Path) -> None:
    if jax.device_count() < 8:
        pytest.skip("needs 8 devices: XLA_FLAGS=--xla_force_host_platform_device_count=8")
    devices = np.array(jax.devices()[:8])
    tall = NamedSharding(Mesh(devices.reshape(4, 2), ("data", "fsdp")), PartitionSpec("fsdp", "data"))
    flat = NamedSharding(Mesh(devices[:2], ("data",)), PartitionSpec(None, "data"))
    values = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) / 3
    with CheckpointStore(tmp_path) as store:
        store.save(1, {"w": jax.device_put(values, tall)}, notes={})
        for sharding in (flat, tall, None):
            target = {"w": jax.ShapeDtypeStruct(values.shape, jnp.float32, sharding=sharding)}
            restored = store.restore(target)
            assert restored is not None
            assert restored[1]["w"].sharding == (
                sharding or jax.sharding.SingleDeviceSharding(jax.devices()[0])
            )
            assert_same_bits(restored[1], {"w": values})


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs leave to mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_costs_nothing_already_written(tiny_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    def incompressible(step: int) -> dict[str, jax.Array]:
        return {"w": jax.random.normal(jax.random.key(step), (350_000,))}

    with CheckpointStore(tiny_disk, keep_last=5) as store:
        store.save(1, incompressible(1), notes={})
        store.save(2, incompressible(2), notes={})
        store.save(3, incompressible(3), notes={})
        with pytest.raises(
            UserError, match=r"The disk is full, so checkpoint 3 .*\[1, 2\] are intact"
        ) as error:
            store.wait()
        assert "\n" not in str(error.value)
        assert sorted(path.name for path in tiny_disk.iterdir()) == ["step_000000001", "step_000000002"]
        restored = store.restore(abstract(incompressible(0)))
        assert restored is not None and restored[0] == 2
        assert_same_bits(restored[1], incompressible(2))
        shutil.rmtree(tiny_disk / "step_000000001")  # the user makes room
        store.save(3, incompressible(3), notes={})
        store.wait()
        assert store.steps() == [2, 3]
    assert not caplog.records  # one sentence for the user, and not a page of tracebacks before it


def test_a_limit_on_the_size_of_files_is_told_in_one_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, [1])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with CheckpointStore(tmp_path) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            store.save(2, {"w": jax.random.normal(jax.random.key(0), (350_000,))}, notes={})
            with pytest.raises(UserError) as error:
                store.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    sentence = str(error.value)
    assert (
        sentence.startswith("Files may not become as large as checkpoint 2 needs") and "ulimit -f" in sentence
    )
    assert "\n" not in sentence and "[1] are intact" in sentence
    assert not caplog.records


def test_what_another_library_says_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def complain(path: Path) -> str:
        raise ValueError("ABORTED: " + "source locations [tensorstore/internal] " * 100)

    monkeypatch.setattr(checkpoint, "_sha256", complain)
    store = CheckpointStore(tmp_path)
    store.save(1, {"w": jnp.zeros(3)}, notes={})
    with pytest.raises(UserError, match=r"could not be written .*check the disk") as error:
        store.close()
    assert len(str(error.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize("name", ["manifest.json", "record.json"])
def test_json_without_a_bottom_is_damage_like_any_other(tmp_path: Path, name: str) -> None:
    filled(tmp_path, [1, 2])
    newest = tmp_path / "step_000000002"
    (newest / name).write_text("[" * 100_000)
    if name == "record.json":  # and whoever wrote it knew the hash
        manifest = json.loads((newest / "manifest.json").read_text())
        manifest[name] = checkpoint._sha256(newest / name)
        (newest / "manifest.json").write_text(json.dumps(manifest))
    with CheckpointStore(tmp_path) as store:
        assert store.best_step() is None
        if name == "manifest.json":
            with pytest.warns(UserWarning, match=r"Checkpoint 2 .* is damaged"):
                assert store.restore(abstract(small(0))) is not None
        else:
            with pytest.raises(UserError, match=r"record\.json is not valid JSON"):
                store.restore(abstract(small(0)))


def test_a_failed_save_is_told_at_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, [1])

    def no_space(path: Path) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(checkpoint, "_sha256", no_space)
    with CheckpointStore(tmp_path) as store:
        store.save(2, small(2), notes={})
        with pytest.raises(UserError, match="The disk is full, so checkpoint 2"):
            store.save(3, small(3), notes={})
    with pytest.raises(KeyError) as error, CheckpointStore(tmp_path) as store:
        store.save(2, small(2), notes={})
        raise KeyError("what really went wrong")
    assert any("The disk is full" in note for note in error.value.__notes__)
    assert [path.name for path in tmp_path.iterdir()] == ["step_000000001"]


# One process pays for the imports and forks a saver for every line it reads; the test kills the savers.
FORKING_SAVERS = """
import os, sys, warnings
from pathlib import Path
warnings.filterwarnings("ignore", message=".*fork")
import jax, jax.numpy as jnp
from lexinvariant.training.checkpoint import CheckpointStore

def resume_and_save_for_ever():
    def move(s):
        return {"w": s["w"] * 0.999 + s["step"].astype("float32"), "step": s["step"] + 1}

    advance = jax.jit(move, donate_argnums=0)
    start = {"w": jnp.linspace(0, 1, 50_000), "step": jnp.int32(0)}
    store = CheckpointStore(Path(sys.argv[1]), keep_last=2, keep_best=1)
    found = store.restore(jax.eval_shape(lambda: start))
    step, state = (0, start) if found is None else found[:2]
    while True:
        step, state = step + 1, advance(state)
        store.save(step, state, notes={"at": step}, metric=(step * 7) % 11)
        os.write(1, b"%d\\n" % os.getpid())

for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            resume_and_save_for_ever()
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    os.write(1, b"dead\\n")
"""


def test_killed_at_any_moment_a_run_resumes_as_if_it_never_was(tmp_path: Path) -> None:
    advance = jax.jit(lambda s: {"w": s["w"] * 0.999 + s["step"].astype("float32"), "step": s["step"] + 1})
    uninterrupted = [{"w": jnp.linspace(0, 1, 50_000), "step": jnp.int32(0)}]
    chance, reached, amid_a_save, time_of_one_save = random.Random(0), 0, 0, 0.0
    command = [sys.executable, "-c", FORKING_SAVERS, str(tmp_path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    environment = os.environ | {"JAX_PLATFORMS": jax.default_backend()}
    with subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as savers:
        assert savers.stdin is not None and savers.stdout is not None
        end_savers = functools.partial(os.killpg, savers.pid, signal.SIGKILL)
        watchdog = threading.Timer(120, end_savers)  # or a saver that hangs would hang the test
        watchdog.start()
        try:
            for _ in range(16):
                savers.stdin.write("\n")
                returned = chance.randint(1, 3)  # calls of `save`: all but the last are then durable
                for _ in range(returned):
                    began = time.perf_counter()
                    pid = int(savers.stdout.readline())
                if returned > 1:
                    time_of_one_save = time.perf_counter() - began
                time.sleep(chance.random() * time_of_one_save)
                os.kill(pid, signal.SIGKILL)
                while savers.stdout.readline() != "dead\n":
                    pass
                amid_a_save += (tmp_path / ".unfinished").exists()
                with CheckpointStore(tmp_path) as store:
                    restored = store.restore(abstract(uninterrupted[0]))
                step, state, notes = restored or (0, uninterrupted[0], {"at": 0})
                while len(uninterrupted) <= step:
                    uninterrupted.append(advance(uninterrupted[-1]))
                assert step >= reached + returned - 1
                assert notes == {"at": step}
                assert_same_bits(state, uninterrupted[step])
                reached = step
        finally:
            watchdog.cancel()
            end_savers()
    assert amid_a_save >= 4  # or the kills missed what they were aimed at
