"""`data prepare`, `train`, `evaluate` and `export` on a store that fails: another machine ends with the same model."""

import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from lexinvariant.api import load
from lexinvariant.cli.main import main
from lexinvariant.remote import RemoteFolder, folder, lease, local_copy
from lexinvariant.report import curves
from lexinvariant.text import Pieces, open_data
from lexinvariant.text.batch import Batch
from lexinvariant.training import mirror
from tests.flaky_store import FlakyStore, KilledError

TINY = shlex.split(
    "train tiny --model.context 16 --model.width 16 --model.n-heads 2 --model.head-dim 8 --model.hidden 32 "
    "--model.n-layers 1 --model.lexicon.kind gaussian --model.readout full --model.no-smeared-keys "
    "--model.no-decipher-head --model.vocab-size 128 --batch-size 8 --sharding.data 1 --run.eval-sequences 8 "
    "--run.log-every 1 --steps 6 --run.save-every 2 --run.eval-every 6 --run.no-tensorboard"
)


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile each program once for all runs of this file."""
    settings = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module", autouse=True)
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fsspec.register_implementation("flaky", FlakyStore, clobber=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "FIRST_WAIT", 1e-4)
        patch.setattr(lease, "LOOK_EVERY", 0.02)
        patch.setattr(lease, "SILENCE", 0.1)
        patch.setattr(curves, "run_figure", lambda run: shutil.copy(run / "config.json", run / "curves.png"))
        yield tmp_path_factory.mktemp("bucket")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """To go on, on a machine that may be another."""

    def use(name: str) -> None:
        monkeypatch.setenv("LEXINVARIANT_CACHE", str(tmp_path / name))
        FlakyStore.heal()

    use("first")
    yield use
    FlakyStore.heal(fails=False)


@pytest.fixture(scope="module")
def data(bucket: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = tmp_path_factory.mktemp("texts")
    for i in range(20):
        (texts / f"{i}.txt").write_text(f"This is text number {i}.\n" * 20)
    url = f"flaky://{bucket}/corpus"
    assert main(["data", "prepare", str(texts), url, "--valid-fraction", "0.2"]) == 0
    return url


@pytest.fixture(scope="module")
def expected(data: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model of a run that nothing happened to, from the same text."""
    run = tmp_path_factory.mktemp("local") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEXINVARIANT_CACHE", str(run.parent / "cache"))
        assert main([*TINY, "--data", data, "--out", str(run)]) == 0
    return (run / "model" / "model.safetensors").read_bytes()


def train(data: str, out: str) -> int:
    return main([*TINY, "--data", data, "--out", out])


def model_at(url: str, tmp_path: Path) -> bytes:
    contents = RemoteFolder(url).contents()
    assert contents is not None
    RemoteFolder(url).download(contents.below("model"), tmp_path / "fetched", inside="model")
    return (tmp_path / "fetched" / "model.safetensors").read_bytes()


def names_at(url: str) -> set[str]:
    contents = RemoteFolder(url).contents()
    return set() if contents is None else set(contents.files)


def at_step(monkeypatch: pytest.MonkeyPatch, step: int, do: Callable[[], None]) -> None:
    """Have something happen when the batch of a step is read."""
    batch = Pieces.batch

    def and_more(self: Pieces, seed: int, number: int, *rest: object) -> Batch:
        if self.name == "train" and number == step:
            do()
        return batch(self, seed, number, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Pieces, "batch", and_more)


def wait_for(url: str, step: int) -> None:
    began = time.monotonic()
    while f"checkpoints/step_{step:09d}/record.json" not in names_at(url):
        assert time.monotonic() - began < 60
        time.sleep(0.01)


class TestCorpus:
    def test_is_opened_wherever_it_is_named(
        self, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        corpus = open_data(data)
        assert corpus.split("train", 16).batch(0, 0, 4).tok_BT.shape == (4, 16)
        assert main(["data", "check", data]) == 0
        assert capsys.readouterr().out.startswith(f"{data} is whole: train ")

    def test_is_replaced_only_when_asked_and_by_its_kind(
        self, bucket: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "text.txt").write_text("some text\n" * 100)
        command = ["data", "prepare", str(tmp_path / "text.txt"), f"flaky://{bucket}/replaced"]
        assert main(command) == 0
        before = open_data(command[-1]).fingerprint
        (tmp_path / "text.txt").write_text("other text\n" * 100)
        assert main(command) == 2
        assert "holds a prepared corpus already" in capsys.readouterr().err
        assert open_data(command[-1]).fingerprint == before
        assert main([*command, "--overwrite"]) == 0
        assert open_data(command[-1]).fingerprint != before
        RemoteFolder(f"flaky://{bucket}/replaced").upload({"config.json": tmp_path / "text.txt"})
        assert main([*command, "--overwrite"]) == 2
        assert "is not a prepared corpus" in capsys.readouterr().err

    def test_without_its_store_there_is_one_sentence(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        FlakyStore.broken = ConnectionError("no route to host")
        (tmp_path / "text.txt").write_text("some text\n" * 100)
        assert main(["data", "prepare", str(tmp_path / "text.txt"), "flaky:///bucket/x"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("lexinvariant: flaky:///bucket/x: ") and error.count("\n") == 1


class TestRun:
    def test_killed_it_goes_on_elsewhere_to_the_same_model(
        self,
        data: str,
        expected: bytes,
        bucket: Path,
        tmp_path: Path,
        machine: Callable[[str], None],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        url = f"flaky://{bucket}/killed"

        def kill() -> None:
            wait_for(url, 4)
            raise KilledError

        with monkeypatch.context() as patch, pytest.raises(KilledError):
            at_step(patch, 5, kill)
            train(data, url)
        assert not [name for name in names_at(url) if name.startswith("model/")]
        machine("second")
        capsys.readouterr()
        assert train(data, url) == 0
        told = capsys.readouterr()
        assert "going on from step 4" in told.err and f"Copied to {url}." in told.out
        assert model_at(url, tmp_path) == expected
        assert {"config.json", "vocab.json", "metrics.jsonl", "curves.png"} <= names_at(url)

        # Newest checkpoint spoilt on the store: a third machine does its steps again.
        FlakyStore.heal(fails=False)  # what fails again and again is not known to be spoilt
        for path in (bucket / "killed/files/checkpoints/step_000000006/record.json").iterdir():
            path.write_bytes(b"x" + path.read_bytes()[1:])
        machine("third")
        with pytest.warns(UserWarning, match="using 4 instead"):
            assert train(data, url) == 0
        told = capsys.readouterr()
        assert "step_000000006/record.json" in told.err and "going on from step 4" in told.err
        assert model_at(url, tmp_path) == expected

        # Finished is finished, wherever.
        machine("third")
        assert train(data, url) == 0
        assert "finished already" in capsys.readouterr().err
        assert load(f"{url}/model").config.vocab_size == 128
        exported = f"flaky://{bucket}/exported"
        assert main(["export", url, exported]) == 0
        assert (local_copy(exported) / "model.safetensors").read_bytes() == expected
        assert main(["export", url, url]) == 2, "a run is no model, and is not replaced by one"

    def test_a_store_that_fails_does_not_end_it(
        self,
        data: str,
        expected: bytes,
        bucket: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        url = f"flaky://{bucket}/failing"

        def fail() -> None:
            FlakyStore.broken = ConnectionError("no route to host")

        with monkeypatch.context() as patch:
            at_step(patch, 1, fail)
            assert train(data, url) == 2
        error = capsys.readouterr().err
        local = mirror.RunMirror(url).folder
        assert "warning: the run was not copied to" in error
        assert f"lexinvariant: The last copy of the run failed, and all of it is in {local}" in error
        assert (local / "model" / "model.safetensors").read_bytes() == expected
        FlakyStore.heal()
        assert train(data, url) == 0
        assert model_at(url, tmp_path) == expected

        # The store has fallen behind, as if this machine had gone on without it: nothing is done again.
        contents = RemoteFolder(url).contents()
        assert contents is not None
        few = {
            name: local / name for name in contents.files if "step_000000006" not in name and "/" not in name
        }
        RemoteFolder(url).upload(few)
        assert train(data, url) == 0
        assert "finished already" in capsys.readouterr().err
        assert model_at(url, tmp_path) == expected

        # Another run has taken the address, or nobody: what is to happen with this one is for a person to say.
        RemoteFolder(url).upload({"config.json": local / "vocab.json"})
        assert train(data, url) == 2
        assert "has a different run from" in capsys.readouterr().err
        shutil.rmtree(bucket / "failing")
        assert train(data, url) == 2
        assert "remove that folder to start anew" in capsys.readouterr().err

    def test_is_not_begun_without_the_store(self, data: str, capsys: pytest.CaptureFixture[str]) -> None:
        FlakyStore.broken = ConnectionError("no route to host")
        assert main(["train", "tiny", "--out", "flaky:///bucket/x"]) == 2
        assert capsys.readouterr().err.count("\n") == 1

    def test_several_hosts_need_a_disk(
        self, data: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(jax, "process_count", lambda: 2)
        assert main(["train", "tiny", "--out", "flaky:///bucket/x"]) == 2
        assert "give an --out on a disk that they share" in capsys.readouterr().err

    def test_a_corpus_is_not_taken_for_a_run(self, data: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "tiny", "--out", data]) == 2
        assert "is not a run's folder" in capsys.readouterr().err
