"""Folders on a store that fails, delays and is killed at: whole, or not there."""

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import fsspec
import pytest

from lexinvariant.cli.compiled import keep_compiled_programs
from lexinvariant.errors import UserError
from lexinvariant.remote import (
    DamagedFileError,
    Lease,
    RemoteFolder,
    StoreError,
    cache,
    folder,
    is_remote,
    lease,
    local_copy,
    uploaded,
)
from tests.flaky_store import FlakyStore, KilledError

OLD = {"manifest.json": b"old", "part/a.bin": b"a" * 1000, "part/b.bin": b"the same"}
NEW = {"manifest.json": b"new", "part/b.bin": b"the same", "part/c.bin": b"c" * 3000}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a folder that is not there yet."""
    fsspec.register_implementation("flaky", FlakyStore, clobber=True)
    FlakyStore.heal()
    monkeypatch.setenv("LEXINVARIANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(folder, "FIRST_WAIT", 1e-4)
    yield f"flaky://{tmp_path}/store/mine"
    FlakyStore.heal()


def written(place: Path, files: dict[str, bytes]) -> dict[str, Path]:
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return {name: place / name for name in files}


def read(place: Path) -> dict[str, bytes]:
    return {
        path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()
    }


def on_the_store(store: str) -> Path:
    return Path(store.removeprefix("flaky://"))


def names_on_the_store(store: str) -> set[str]:
    return {str(Path(name).parent) for name in read(on_the_store(store) / "files")}


def test_what_is_an_address() -> None:
    assert is_remote("s3://bucket/run") and is_remote("memory://x") and is_remote("file:///x")
    assert not any(map(is_remote, ("data/mine", "/data/mine", "hub:pile", "bundled", Path("s3://bucket"), 3)))


def test_a_folder_comes_back_as_it_was_from_a_store_that_fails_and_delays(store: str, tmp_path: Path) -> None:
    RemoteFolder(store).upload(written(tmp_path / "old", OLD))
    assert read(local_copy(store)) == OLD
    assert read(local_copy(f"{store}/part/")) == {"a.bin": OLD["part/a.bin"], "b.bin": OLD["part/b.bin"]}
    RemoteFolder(store).upload(written(tmp_path / "new", NEW))
    assert read(local_copy(store)) == NEW
    assert names_on_the_store(store) == set(NEW), "what was replaced is deleted"
    assert FlakyStore.requests["put"] > len(OLD | NEW), "the store did not fail"


def test_any_store_of_fsspec_will_do(tmp_path: Path) -> None:
    for url in ("memory://bucket/mine", f"file://{tmp_path}/elsewhere/mine"):
        RemoteFolder(url).upload(written(tmp_path / "old", OLD))
        RemoteFolder(url).upload(written(tmp_path / "new", NEW))
        assert read(local_copy(url)) == NEW


def test_an_upload_killed_at_any_moment_leaves_the_old_folder_or_the_new(store: str, tmp_path: Path) -> None:
    old, new = written(tmp_path / "old", OLD), written(tmp_path / "new", NEW)
    seen = []
    for moment in range(1, 100):
        FlakyStore.heal(fails=False)
        RemoteFolder(store).upload(old)
        FlakyStore.heal(fails=False)
        FlakyStore.kill_at = moment
        try:
            RemoteFolder(store).upload(new)
            break
        except KilledError:
            FlakyStore.heal(fails=False)
            seen.append(read(local_copy(store)))
    else:
        pytest.fail("it has no end")
    assert [found == NEW for found in seen] == sorted(found == NEW for found in seen)
    assert all(found in (OLD, NEW) for found in seen) and OLD in seen and NEW in seen
    assert names_on_the_store(store) == set(NEW), "what the killed have left is deleted"


def test_a_first_upload_that_is_killed_leaves_nothing_to_read_and_is_gone_on_with(
    store: str, tmp_path: Path
) -> None:
    files = written(tmp_path / "many", {f"{i}.bin": bytes([i]) * 500 for i in range(20)})
    FlakyStore.heal(fails=False)
    FlakyStore.kill_at = 12
    with pytest.raises(KilledError):
        RemoteFolder(store).upload(files)
    FlakyStore.heal(fails=False)
    with pytest.raises(UserError, match="There is nothing of lexinvariant's at flaky"):
        local_copy(store)
    RemoteFolder(store).upload(files)
    assert FlakyStore.requests["put"] == 20 - 11, "11 were there, and half of another one"
    assert read(local_copy(store)) == read(tmp_path / "many")


def test_a_download_that_is_killed_is_gone_on_with_and_never_used(store: str, tmp_path: Path) -> None:
    FlakyStore.heal(fails=False)
    files = {f"{i:02}.bin": bytes([i]) * 500 for i in range(20)}
    RemoteFolder(store).upload(written(tmp_path / "many", files))
    begun = iter(range(100))

    def killed_at_the_tenth(path: str) -> None:
        if next(begun) >= 10:
            raise KilledError

    FlakyStore.before_read = killed_at_the_tenth
    with pytest.raises(KilledError):
        local_copy(store)
    FlakyStore.heal(fails=False)
    assert read(local_copy(store)) == files
    assert FlakyStore.requests["get"] == 10
    local_copy(store)
    assert FlakyStore.requests["get"] == 10, "once"


def test_two_processes_do_not_fetch_the_same(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FlakyStore.heal(fails=False)
    RemoteFolder(store).upload(written(tmp_path / "old", OLD))
    copies: list[Path] = []
    second = threading.Thread(target=lambda: copies.append(local_copy(store)))
    waits = iter([True])
    told = io.StringIO()  # pytest's capture loses what is written while it is read
    monkeypatch.setattr(sys, "stderr", told)

    def start_another(path: str) -> None:
        if next(waits, False):
            second.start()
            while "waiting for another process" not in told.getvalue() and second.is_alive():
                time.sleep(0.01)

    FlakyStore.before_read = start_another
    copies.append(local_copy(store))
    second.join()
    assert copies[0] == copies[1] and read(copies[0]) == OLD
    assert FlakyStore.requests["get"] == len(OLD)


class TestBound:
    """Copies make room for others: those of 1,000 bytes in a cache of 2,500."""

    HOLD = "import sys; from lexinvariant.remote import local_copy; print(local_copy(sys.argv[1]), flush=True); input()"

    @pytest.fixture(autouse=True)
    def small_cache(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LEXINVARIANT_CACHE_GB", "2.5e-6")
        monkeypatch.setattr(cache, "_kept", {})
        FlakyStore.heal(fails=False)

    def uploaded(self, tmp_path: Path, name: str) -> str:
        url = f"file://{tmp_path}/store/{name}"
        RemoteFolder(url).upload(written(tmp_path / name, {"a.bin": name.encode() * 1000}))
        return url

    def used_long_ago(self, copy: Path, when: int) -> None:
        """As if its process had ended then."""
        os.close(cache._kept.pop(copy))
        os.utime(cache._lock_of(copy), (when, when))

    def test_the_copy_that_was_not_used_for_longest_goes(self, tmp_path: Path) -> None:
        first, second, third, fourth = (self.uploaded(tmp_path, name) for name in "abcd")
        copies = [local_copy(first), local_copy(second)]
        for when, copy in enumerate(copies):
            self.used_long_ago(copy, when)
        self.used_long_ago(local_copy(first), 2)
        third_copy = local_copy(third)
        assert [copy.is_dir() for copy in copies] == [True, False]
        assert read(local_copy(first)) == {"a.bin": b"a" * 1000}
        # Both are in use: the cache grows beyond its bound.
        assert read(local_copy(fourth)) == {"a.bin": b"d" * 1000}
        assert copies[0].is_dir() and third_copy.is_dir()

    def test_what_was_replaced_goes(self, tmp_path: Path) -> None:
        url = f"file://{tmp_path}/store/mine"
        copies = []
        for i in range(4):
            RemoteFolder(url).upload(written(tmp_path / "x", {"a.bin": bytes([i]) * 1000}))
            copies.append(local_copy(url))
            self.used_long_ago(copies[-1], i)
        assert [copy.is_dir() for copy in copies] == [False, False, True, True]

    def test_what_another_process_uses_stays_until_it_ends(self, tmp_path: Path) -> None:
        first, second, third = (self.uploaded(tmp_path, name) for name in "abc")
        command = [sys.executable, "-c", self.HOLD, first]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
            assert user.stdout is not None
            used = Path(user.stdout.readline().rstrip())
            os.utime(cache._lock_of(used), (0, 0))
            self.used_long_ago(local_copy(second), 1)
            self.used_long_ago(local_copy(third), 2)
            assert read(used) == {"a.bin": b"a" * 1000}
            user.kill()
        local_copy(second)
        assert not used.exists()

    def test_a_kill_while_one_is_removed_leaves_no_part_of_it_to_use(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second, third = (self.uploaded(tmp_path, name) for name in "abc")
        for when, url in enumerate((first, second)):
            self.used_long_ago(local_copy(url), when)

        def kill(*_: object, **__: object) -> None:
            raise KilledError

        with monkeypatch.context() as patch, pytest.raises(KilledError):
            patch.setattr(cache.shutil, "rmtree", kill)
            local_copy(third)
        unfinished = [path for path in cache.copies_folder().glob("*/*.part") if path.is_dir()]
        assert len(unfinished) == 1
        (unfinished[0] / "a.bin").unlink()
        assert read(local_copy(first)) == {"a.bin": b"a" * 1000}

    @pytest.mark.parametrize("given", ["much", "nan", "-1"])
    def test_a_bound_that_is_none(self, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LEXINVARIANT_CACHE_GB", given)
        with pytest.raises(UserError, match=f"is a number of gigabytes, not '{given}'"):
            local_copy(self.uploaded(tmp_path, "a"))


def test_a_folder_that_is_replaced_while_it_is_read(store: str, tmp_path: Path) -> None:
    FlakyStore.heal(fails=False)
    RemoteFolder(store).upload(written(tmp_path / "old", OLD))
    new = written(tmp_path / "new", NEW)

    def replace(path: str) -> None:
        FlakyStore.before_read = None
        RemoteFolder(store).upload(new)

    FlakyStore.before_read = replace
    assert read(local_copy(store)) == NEW


@pytest.mark.parametrize("damage", ["other bytes", "missing"])
def test_a_damaged_file_is_refused(damage: str, store: str, tmp_path: Path) -> None:
    RemoteFolder(store).upload(written(tmp_path / "old", OLD))
    [path] = (on_the_store(store) / "files" / "part" / "a.bin").iterdir()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"b" * 1000)
    FlakyStore.heal(fails=False)
    with pytest.raises(DamagedFileError, match=r"part/a\.bin .*: upload the folder again") as told:
        local_copy(store)
    assert "\n" not in str(told.value)
    FlakyStore.heal()
    with uploaded(store, kind="folder", recognised_by="manifest.json", replaces=True) as again:
        written(again, OLD)
    assert read(local_copy(store)) == OLD


def test_a_file_is_damaged_if_two_answers_are_whatever_comes_between(store: str, tmp_path: Path) -> None:
    contents = RemoteFolder(store).upload(written(tmp_path / "old", {"a.bin": b"a" * 1000}))
    [path] = (on_the_store(store) / "files" / "a.bin").iterdir()
    path.write_bytes(b"b" * 1000)
    FlakyStore.heal(fails=False)
    answers = iter([True, False, False, True])

    def fails(path: str) -> None:
        if not next(answers):
            raise ConnectionError("no route to host")

    FlakyStore.before_read = fails
    with pytest.raises(DamagedFileError, match="does not have the hash"):
        RemoteFolder(store).download(contents, tmp_path / "copy")


@pytest.mark.parametrize(
    "name",
    [
        *("../outside", "/etc/outside", "a/../../b", "a\\..\\b", "C:x", ""),
        *("a/", "a//b", "./a", "a\nb", "a\0b", "\ud800", "/".join(["a"] * 2000)),
    ],
)
def test_contents_cannot_lie_outside(name: str, store: str, tmp_path: Path) -> None:
    RemoteFolder(store).upload(written(tmp_path / "old", OLD))
    contents = on_the_store(store) / "contents.json"
    record = json.loads(contents.read_text())
    record["files"][name] = record["files"]["manifest.json"]
    contents.write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"contents\.json is damaged"):
        local_copy(store)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": {"a": 1}}', "[" * 99]
)
def test_contents_that_are_none(text: str, store: str) -> None:
    on_the_store(store).mkdir(parents=True)
    (on_the_store(store) / "contents.json").write_text(text)
    with pytest.raises(UserError, match=r"contents\.json .*: upload the folder again\.$"):
        local_copy(store)


@pytest.mark.parametrize("url", ["file:///", "s3://", "memory://"])
def test_an_address_that_names_no_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"^{url} names no folder"):
        RemoteFolder(url)
    assert not list(tmp_path.iterdir())


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user is a number that nobody knows."""
    for name in ("LEXINVARIANT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda place: place)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    with pytest.raises(UserError, match="let LEXINVARIANT_CACHE name a folder"):
        local_copy("file:///anywhere")
    keep_compiled_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
    assert local_copy("~nobody/x") == Path("~nobody/x")


def test_a_store_that_never_works_is_told_in_one_sentence(store: str, tmp_path: Path) -> None:
    files = written(tmp_path / "old", OLD)
    FlakyStore.broken = ConnectionError("no route\nto host")
    with pytest.raises(
        StoreError, match=r"after 6 attempts .*no route to host.*: check the store and the network"
    ) as told:
        RemoteFolder(store).upload(files)
    assert "\n" not in str(told.value)
    assert FlakyStore.requests["find"] == 6
    FlakyStore.broken = PermissionError("403")
    with pytest.raises(StoreError, match="check your credentials"):
        RemoteFolder(store).contents()
    FlakyStore.broken = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(StoreError, match="free some space, or let LEXINVARIANT_CACHE"):
        RemoteFolder(store).contents()
    assert FlakyStore.requests["cat"] == 2, "that does not get better"


def test_a_missing_bucket_is_told(store: str) -> None:
    FlakyStore.broken = FileNotFoundError("mine")
    with pytest.raises(StoreError, match="create the bucket, or check its name"):
        RemoteFolder(store).write("lease.json", b"")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("wandb://a/b", "needs a package of its own: pip install wandbfs"),
        ("nonsense://a/b", "Protocol not known"),
    ],
)
def test_a_protocol_without_its_package_is_told(url: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        RemoteFolder(url)


class TestLease:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease, "RENEWED_EVERY", 0.02)
        monkeypatch.setattr(lease, "LOOK_EVERY", 0.02)
        monkeypatch.setattr(lease, "SILENCE", 10.0)

    def test_a_second_writer_is_refused_while_the_first_is_alive(
        self, store: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with Lease(RemoteFolder(store), "first"):
            told = r"\(process \d+\) is writing to flaky.*: wait for it, stop it"
            with pytest.raises(UserError, match=told), Lease(RemoteFolder(store), "second"):
                pytest.fail("two at once")
            assert "to see whether" in capsys.readouterr().err
        with Lease(RemoteFolder(store), "second"):
            pass
        assert not (on_the_store(store) / "lease.json").exists()

    def test_one_that_is_silent_is_taken_over_and_hears_of_it(
        self, store: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lease, "SILENCE", 0.2)
        with Lease(RemoteFolder(store), "first") as first:
            monkeypatch.setattr(first, "_write", lambda: None)
            with Lease(RemoteFolder(store), "second") as second:
                second.check()
                with pytest.raises(StoreError, match="has taken over"):
                    first.check()

    def test_what_a_kill_left_is_not_waited_for_by_its_own_nor_after_long(self, store: str) -> None:
        left = Lease(RemoteFolder(store), "a folder")
        left._write()
        with Lease(RemoteFolder(store), "a folder"):
            pass
        for when in ("1e9", "null", "1" + "0" * 400):
            left_by_another = f'{{"holder": "a machine", "token": "0", "time": {when}}}'
            RemoteFolder(store).write("lease.json", left_by_another.encode())
            with Lease(RemoteFolder(store), "another folder"):
                pass

    def test_what_a_lease_says_is_shown_as_plain_text(
        self, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(lease, "SILENCE", 0.05)
        record = {"holder": "\x1b]0;x\x07\n" + "y" * 1000, "token": "0", "time": time.time()}
        RemoteFolder(store).write("lease.json", json.dumps(record).encode())
        with Lease(RemoteFolder(store)):
            pass
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and "\x1b" not in told and len(told) < 400

    def test_of_two_that_begin_at_once_one_uploads(self, store: str, tmp_path: Path) -> None:
        """Both have seen nobody: the one that wrote its name last goes on."""
        FlakyStore.heal(fails=False)
        with pytest.raises(StoreError, match="has taken over"), upload_to(store) as folder:
            written(folder, OLD)
            RemoteFolder(store).write("lease.json", b'{"holder": "another", "token": "x", "time": 1e9}')
        assert RemoteFolder(store).contents() is None


def upload_to(store: str) -> AbstractContextManager[Path]:
    return uploaded(store, kind="corpus", recognised_by="manifest.json", replaces=True)


def test_what_a_killed_upload_leaves_on_this_machine_goes_with_the_next(store: str, tmp_path: Path) -> None:
    FlakyStore.heal(fails=False)
    waiting = tmp_path / "cache" / "uploads"
    with upload_to(store) as folder:
        written(folder, OLD)
        [staged] = waiting.iterdir()
        shutil.copytree(staged, left := staged.with_name(re.sub("partial-.*", "partial-1-abc", staged.name)))
    assert list(waiting.iterdir()) == [left]
    with upload_to(store) as folder:
        written(folder, NEW)
    assert not list(waiting.iterdir())
    assert read(local_copy(store)) == NEW
