"""A run may be stopped, killed and damaged, and ends as if nothing had happened; or it says what is wrong."""

import dataclasses
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from lexinvariant.cli.main import main
from lexinvariant.config import TrainConfig
from lexinvariant.locks import lock_folder
from lexinvariant.text import prepare, train_tokenizer
from lexinvariant.text.batch import Batch
from lexinvariant.text.toy import MarkovPieces
from lexinvariant.training import loop
from lexinvariant.training.checkpoint import read_notes
from lexinvariant.training.metrics import MetricsLog, read_metrics
from lexinvariant.training.setup import TrainSetup
from lexinvariant.training.spikes import LossSpike, SpikeWatch

TOY = shlex.split(
    "train tiny --model.context 16 --model.width 16 --model.n-heads 2 --model.head-dim 8 --model.hidden 32 "
    "--model.n-layers 1 --model.lexicon.kind gaussian --model.readout full --model.no-smeared-keys "
    "--batch-size 8 --sharding.data 1 --run.eval-sequences 8 --run.log-every 1"
)
SHORT = [*TOY, "--steps", "6", "--run.save-every", "2", "--run.eval-every", "3"]
LONG = [*TOY, "--steps", "60", "--run.save-every", "5", "--run.eval-every", "20"]
GO_ON = "give the same command to continue"


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Compile each program once for all runs of this file, in this process and in others."""
    folder = tmp_path_factory.mktemp("compiled")
    before = {name: jax.config.values[name] for name in _settings(folder)}
    for name, value in _settings(folder).items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield folder
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def _settings(cache: Path) -> dict[str, object]:
    return {
        "jax_compilation_cache_dir": str(cache),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }


def train(folder: Path, *options: str, command: list[str] = SHORT) -> int:
    return main([*command, "--out", str(folder), *options])


def model(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


def checkpoints(folder: Path) -> list[int]:
    return sorted(int(path.name[-9:]) for path in (folder / "checkpoints").glob("step_*"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert train(folder) == 0
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


class TestWholeRun:
    def test_leaves_its_settings_metrics_checkpoints_and_model(self, whole: Path) -> None:
        assert json.loads((whole / "config.json").read_text())["model"]["width"] == 16
        assert {path.name for path in (whole / "model").iterdir()} == {
            "config.json",
            "model.safetensors",
            "vocab.json",
        }
        assert 6 in checkpoints(whole)
        rows = read_metrics(whole / "metrics.jsonl")
        assert [row["step"] for row in rows if row["kind"] == "train"] == [1, 2, 3, 4, 5, 6]
        assert [row["step"] for row in rows if row["kind"] == "valid"] == [3, 6]
        assert len(rows[-1]["loss_by_position"]) == 16
        assert {"tail_seen_loss", "tail_new_loss", "tail_new_share"} <= rows[-1].keys()

    def test_notes_in_the_model_tell_where_it_comes_from(self, whole: Path) -> None:
        notes = json.loads((whole / "model" / "config.json").read_text())["notes"]
        assert notes["step"] == 6
        assert notes["config"]["optimizer"]["name"] == "adamw"

    def test_called_again_does_nothing_and_says_so(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = contents(copy)
        assert train(copy) == 0
        captured = capsys.readouterr()
        assert "finished already" in captured.err
        assert f"the model is in {copy}/model" in captured.out
        assert contents(copy) == before

    def test_called_again_writes_a_model_that_a_kill_prevented(self, copy: Path) -> None:
        expected = model(copy)
        shutil.rmtree(copy / "model")
        assert train(copy) == 0
        assert model(copy) == expected


class TestInPieces:
    @pytest.mark.slow
    def test_ends_as_the_whole_run_does(
        self, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for step in range(1, 6):
            assert train(tmp_path, "--run.stop-after-minutes", "1e-9") == 0
            captured = capsys.readouterr()
            assert f"Stopped and saved at step {step}: {GO_ON}." in captured.out
            assert checkpoints(tmp_path)[-1] == step
            if step > 1:
                assert f"going on from step {step - 1}" in captured.err
        assert train(tmp_path) == 0
        assert model(tmp_path) == model(whole)
        pieces, one = (read_metrics(folder / "metrics.jsonl") for folder in (tmp_path, whole))
        assert [(row["step"], row["kind"], row["loss"]) for row in pieces] == [
            (row["step"], row["kind"], row["loss"]) for row in one
        ]

    def test_a_step_that_was_not_evaluated_does_not_inherit_an_older_loss(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = MetricsLog.write

        def write_and_stop(self: MetricsLog, step: int, kind: str, metrics: dict[str, Any]) -> None:
            write(self, step, kind, metrics)
            if step == 4:  # its evaluation was at step 3
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(MetricsLog, "write", write_and_stop)
        assert train(tmp_path, "--run.save-every", "3") == 0
        records = {
            step: json.loads((tmp_path / f"checkpoints/step_{step:09d}/record.json").read_text())
            for step in checkpoints(tmp_path)
        }
        assert list(records) in ([3, 4], [3, 5])
        assert records.pop(3)["metric"] > 0
        assert [record["metric"] for record in records.values()] == [None]


def test_a_regulariser_leaves_the_tokenizers_special_tokens_alone(tmp_path: Path) -> None:
    text, words, run = tmp_path / "text.txt", tmp_path / "words", tmp_path / "run"
    text.write_text("".join(f"the cat number {i} sat on the mat number {i * i}\n" for i in range(200)))
    tokenizer = train_tokenizer([str(text)], words, size=300).tokenizer
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.add_tokens(["caterpillar"])
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.save(str(words / "tokenizer.json"))
    prepare([str(text)], tmp_path / "data", vocab=str(words), progress=False)
    options = ["--data", str(tmp_path / "data"), "--model.vocab-size", "303", "--model.lexicon.kind", "mixed"]
    assert train(run, *options, "--model.lexicon.exempt", "5", "--steps", "1") == 0
    for config in (run / "config.json", run / "model" / "config.json"):
        assert json.loads(config.read_text())["model"]["lexicon"]["exempt"] == [5, 300, 302]
    assert train(run, *options, "--model.lexicon.exempt", "5", "--steps", "1") == 0, (
        "the same command goes on"
    )


class TestOtherRunInTheSameFolder:
    @pytest.mark.parametrize(
        ("option", "value", "named"),
        [
            ("--seed", "1", "seed"),
            ("--optimizer.rate", "0.5", "optimizer.rate"),
            ("--model.norm-eps", "0.1", "model.norm_eps"),
            (
                "--steps",
                "7",
                "is one of 6 steps, which its learning rate follows: give the same --steps, or another",
            ),
            ("--model.hidden", "48", "has other settings (model.hidden)"),
            ("--standard", "", "(model.lexicon.kind)"),
        ],
    )
    def test_other_settings_are_refused_and_nothing_is_lost(
        self, copy: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, named: str
    ) -> None:
        before = contents(copy)
        assert train(copy, option, *([value] if value else [])) == 2
        error = capsys.readouterr().err
        assert named in error
        assert str(copy) in error
        assert error.count("\n") == 1
        assert contents(copy) == before

    def test_other_data_are_refused_and_nothing_is_lost(
        self, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "text.txt").write_text("abcdefghijkl\n" * 500)
        prepare([str(tmp_path / "text.txt")], tmp_path / "corpus", vocab="letters12", progress=False)
        before = contents(copy)
        assert train(copy, "--data", str(tmp_path / "corpus")) == 2
        assert "was trained on other data" in capsys.readouterr().err
        assert contents(copy) == before

    def test_how_often_it_saves_may_change(self, copy: Path) -> None:
        assert train(copy, "--run.save-every", "3", "--run.log-every", "2") == 0


class TestDamage:
    def test_corrupt_newest_checkpoint_costs_time_and_no_result(self, copy: Path) -> None:
        expected = model(copy)
        shutil.rmtree(copy / "model")
        newest = copy / "checkpoints" / f"step_{checkpoints(copy)[-1]:09d}"
        largest = max((path for path in newest.rglob("*") if path.is_file()), key=lambda p: p.stat().st_size)
        data = bytearray(largest.read_bytes())
        data[len(data) // 2] ^= 1
        largest.write_bytes(data)
        with pytest.warns(UserWarning, match="Checkpoint 6 .* is damaged .*: using 4 instead"):
            assert train(copy) == 0
        assert model(copy) == expected
        assert [row["step"] for row in read_metrics(copy / "metrics.jsonl") if row["kind"] == "train"] == [
            1,
            2,
            3,
            4,
            5,
            6,
        ]


class TestLossSpikes:
    """A batch of rubbish: the loss jumps at it, and the step that it makes ruins the parameters."""

    BAD, STEPS = 36, 42

    @pytest.fixture
    def poisoned(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Numbers of batches that are rubbish."""
        numbers = [self.BAD]
        read, built = MarkovPieces.batch, loop.build

        def batch(self: MarkovPieces, seed: int, step: int, size: int, rows: range) -> Batch:
            found = read(self, seed, step, size, rows)
            return found._replace(tok_BT=np.zeros_like(found.tok_BT)) if step in numbers else found

        def build(config: TrainConfig) -> TrainSetup:
            setup = built(config)

            def step(state: Any, batch: Any) -> Any:
                is_bad = not np.asarray(jax.device_get(batch.tok_BT)).any()
                state, metrics = setup.train_step(state, batch)
                if is_bad:
                    with jax.transfer_guard("allow"):
                        state = dataclasses.replace(state, params=jax.tree.map(jnp.zeros_like, state.params))
                        metrics = metrics | {"loss": 3 * metrics["loss"] + 9}
                return state, metrics

            return setup._replace(train_step=step)

        monkeypatch.setattr(MarkovPieces, "batch", batch)
        monkeypatch.setattr(loop, "build", build)
        return numbers

    @classmethod
    def command(cls, log_every: int = 1) -> list[str]:
        every = f"--run.save-every 10 --run.eval-every {cls.STEPS} --run.log-every {log_every}"
        return [*TOY, "--steps", str(cls.STEPS), *every.split()]

    @pytest.fixture(scope="class")
    @classmethod
    def expected(cls, tmp_path_factory: pytest.TempPathFactory) -> bytes:
        """What comes out if the batch after the run's end is read in place of the bad one from the beginning."""
        folder, read = tmp_path_factory.mktemp("expected"), MarkovPieces.batch

        def batch(pieces: MarkovPieces, seed: int, step: int, size: int, rows: range) -> Batch:
            return read(pieces, seed, cls.STEPS if step == cls.BAD else step, size, rows)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MarkovPieces, "batch", batch)
            assert train(folder, command=cls.command()) == 0
        return model(folder)

    def test_the_run_goes_back_and_leaves_the_batch_out(
        self, expected: bytes, poisoned: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = tmp_path / "run"
        assert train(run, command=self.command()) == 0
        said = capsys.readouterr().err
        assert "at step 37, where" in said
        assert said.count("going back to step 30, and leaving out the batch of step 37") == 1
        assert model(run) == expected
        assert read_notes(run / "checkpoints")["skipped_batches"] == [36]
        steps = [row["step"] for row in read_metrics(run / "metrics.jsonl") if row["kind"] == "train"]
        assert steps == list(range(1, self.STEPS + 1))

    def test_it_does_not_matter_how_often_a_run_looks_nor_when_it_was_stopped(
        self, expected: bytes, poisoned: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run, command = tmp_path / "run", self.command(log_every=4)
        with monkeypatch.context() as patch:
            patch.setattr(MetricsLog, "write", _stopping_at(24))
            assert train(run, command=command) == 0
        assert checkpoints(run)[-1] < 30
        assert train(run, command=command) == 0
        assert model(run) == expected

    def test_a_loss_that_stays_high_ends_the_run(
        self, poisoned: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        poisoned.extend(range(self.STEPS, self.STEPS + 20))
        assert train(tmp_path / "run", command=self.command()) == 2
        assert "batch(es) were left out: lower --optimizer.rate" in capsys.readouterr().err
        assert max(checkpoints(tmp_path / "run")) == 30

    @pytest.mark.parametrize("loss", [2.01, float("inf"), float("nan")])
    def test_what_a_spike_is(self, loss: float) -> None:
        usual = [1.0] * 31 + [50.0]
        with pytest.raises(LossSpike) as found:
            SpikeWatch(2.0, usual).look([(33, 1.9), (34, loss)])
        assert (found.value.step, found.value.usual) == (34, 1.0)
        for none in (
            SpikeWatch(0.0, usual),
            SpikeWatch(2.0, usual[:-1]),
        ):  # off; too little known of what is usual
            none.look([(32, loss)])

    def test_small_losses_may_double(self) -> None:
        SpikeWatch(2.0, [0.1] * 32).look([(33, 1.0)])
        with pytest.raises(LossSpike):
            SpikeWatch(2.0, [0.1] * 32).look([(33, 1.2)])


def _stopping_at(at: int) -> Any:
    write = MetricsLog.write

    def write_and_stop(self: MetricsLog, step: int, kind: str, metrics: dict[str, Any]) -> None:
        write(self, step, kind, metrics)
        if step == at:
            os.kill(os.getpid(), signal.SIGTERM)

    return write_and_stop


class TestRunsThatCannotBe:
    def test_a_loss_that_is_not_a_number(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert train(tmp_path, "--optimizer.rate", "1e38", "--optimizer.warmup-steps", "0") == 2
        error = capsys.readouterr().err
        assert "The loss is not a number at step" in error
        assert "--optimizer.rate" in error
        assert not (tmp_path / "model").exists()

    @pytest.mark.parametrize("name", ["decipher_loss", "gradient_norm"])
    def test_any_metric_that_is_not_a_number(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        built = loop.build

        def spoiling(config: TrainConfig) -> TrainSetup:
            setup = built(config)

            def step(state: Any, batch: Any) -> Any:
                state, metrics = setup.train_step(state, batch)
                return state, metrics | {name: np.float32("nan")}

            return setup._replace(train_step=step)

        monkeypatch.setattr(loop, "build", spoiling)
        assert train(tmp_path) == 2
        assert f"The metric {name} is not a number at step 1" in capsys.readouterr().err
        assert not (tmp_path / "model").exists()
        assert checkpoints(tmp_path) == []

    def test_a_run_in_a_folder_where_another_is_training(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = contents(copy)
        with lock_folder(copy, ""):
            assert train(copy) == 2
        assert capsys.readouterr().err == (
            f"lexinvariant: Another process is training in {copy}: wait for it, stop it, or give another --out.\n"
        )
        assert contents(copy) == before
        assert train(copy) == 0

    def test_a_folder_that_is_something_else(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A model's config.json, or that of any other project, is not written over."""
        (tmp_path / "config.json").write_text('{"format": 1, "model": {}}')
        before = contents(tmp_path)
        assert train(tmp_path) == 2
        assert "config.json is not that of a run: give another --out" in capsys.readouterr().err
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("kind", ["file", "link", "checkpoints", "name", "nothing"])
    def test_a_place_that_takes_no_checkpoints_is_told_before_the_first_step(
        self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(MarkovPieces, "batch", lambda *_: pytest.fail("it has begun"))
        folder = tmp_path / ("run" if kind != "name" else os.fsdecode(b"\xff"))
        if kind == "file":
            folder.write_text("")
        elif kind == "link":
            folder.symlink_to(folder)
        elif kind == "checkpoints":
            folder.mkdir()
            (folder / "checkpoints").write_text("")
        assert main([*SHORT, "--out", "" if kind == "nothing" else str(folder)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "give another --out" in said or "given no name" in said

    def test_no_data(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "char-tiny", "--out", str(tmp_path / "run")]) == 2
        assert "No data was given: pass --data DIR" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()

    def test_data_that_are_not_there(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert train(tmp_path / "run", "--data", str(tmp_path / "nowhere")) == 2
        assert "nowhere" in capsys.readouterr().err

    def test_a_vocabulary_larger_than_the_models(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert train(tmp_path, "--model.vocab-size", "5") == 2
        assert (
            "a vocabulary of 12 and the model one of 5: set --model.vocab-size 12" in capsys.readouterr().err
        )

    def test_an_out_that_is_a_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "run").write_text("mine")
        assert train(tmp_path / "run") == 2
        assert str(tmp_path / "run") in capsys.readouterr().err
        assert (tmp_path / "run").read_text() == "mine"


def environment(cache: Path) -> dict[str, str]:
    """For other processes: this file's compiled programs."""
    return os.environ | {name.upper(): str(value) for name, value in _settings(cache).items()}


class Process:
    """`python -m lexinvariant train ...` in a process of its own."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._before = checkpoints(folder)
        self._log = folder.with_suffix(".log").open("w+")
        command = [sys.executable, "-m", "lexinvariant", *LONG, "--out", str(folder)]
        self._process = subprocess.Popen(
            command, env=environment(cache), stdout=self._log, stderr=subprocess.STDOUT
        )

    def wait_for_checkpoint(self) -> None:
        """Until the process has written one of its own, or has ended."""
        while self._process.poll() is None and checkpoints(self.folder)[-1:] <= self._before[-1:]:
            time.sleep(0.01)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        code = self._process.wait(timeout=300)
        self._log.seek(0)
        text = self._log.read()
        self._log.close()
        return code, text


@pytest.fixture(scope="module")
def never_killed(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Path:
    folder = tmp_path_factory.mktemp("never_killed") / "run"
    code, text = Process(folder, compiled).end()
    assert code == 0, text
    return folder


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_with_the_same_parameters(
    never_killed: Path, tmp_path: Path, compiled: Path
) -> None:
    folder, moments = tmp_path / "run", random.Random(0)
    kills = 0
    for _ in range(3):
        process = Process(folder, compiled)
        process.wait_for_checkpoint()
        time.sleep(moments.uniform(0, 0.3))
        process.send(signal.SIGKILL)
        code, text = process.end()
        assert code in (0, -signal.SIGKILL), text
        kills += code != 0
    assert kills >= 2
    code, text = Process(folder, compiled).end()
    assert code == 0, text
    assert model(folder) == model(never_killed)
    losses, expected = (
        {(row["step"], row["kind"]): row["loss"] for row in read_metrics(run / "metrics.jsonl")}
        for run in (folder, never_killed)
    )
    assert losses == expected


def test_a_terminal_that_is_closed_is_a_request_to_stop_unless_under_nohup() -> None:
    with loop._stop_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop == [signal.SIGHUP]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with loop._stop_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop == []
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
def test_a_run_asked_to_stop_saves_and_goes_on_later(
    never_killed: Path, tmp_path: Path, compiled: Path
) -> None:
    folder = tmp_path / "run"
    process = Process(folder, compiled)
    process.wait_for_checkpoint()
    process.send(signal.SIGTERM)
    code, text = process.end()
    assert code == 0, text
    assert GO_ON in text
    assert "Traceback" not in text
    assert not (folder / "model").exists()
    saved = checkpoints(folder)[-1]
    assert f"saved at step {saved}:" in text

    code, text = Process(folder, compiled).end()
    assert code == 0, text
    assert f"going on from step {saved} " in text
    assert model(folder) == model(never_killed)
