"""The experiment's numbers, on models whose answers are known from the text alone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.cli import experiment as command
from lexinvariant.config import LexiconConfig, ModelConfig, TrainConfig
from lexinvariant.decipher.cipher import encipher, random_cipher, random_keys
from lexinvariant.decipher.key import NONE, majority, number_symbols
from lexinvariant.decipher.probe import hindsight_namer
from lexinvariant.errors import UserError
from lexinvariant.experiments.cipher_key import Options, training_flop
from lexinvariant.experiments.evaluated_model import held_out, open_model
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.model import params as model_params
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.weights import save_model
from lexinvariant.report.draw import draw
from lexinvariant.results.cipher_key import KeyProbabilities, Precision, ProbeTraining, Setup, WholeKey
from lexinvariant.results.rows import Row, Rows
from lexinvariant.settings import to_json
from lexinvariant.text import CharVocab, LetterVocab, prepare
from tests.tiny_models import TINY, random_params

T, V, WINDOW = 40, 128, 12
LETTERS = np.arange(ord("a"), ord("z") + 1)
CONFIG = replace(
    TINY,
    vocab_size=V,
    context=T,
    lexicon=LexiconConfig(kind="permuted"),
    readout="seen",
    decipher_head=True,
    decipher_hidden=8,
)
SENTENCE = (
    "the quick brown fox jumps over a lazy dog and many sheep; Zoe sees every new tree, he never sleeps"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a model that names everything at random and one that names everything e."""
    folder = tmp_path_factory.mktemp("cipher-key")
    rng = np.random.default_rng(0)
    draws = [rng.choice(SENTENCE.split(), 40) for _ in range(40)]
    texts = [{"text": "\n".join(words), "source": f"lines:{i}"} for i, words in enumerate(draws[::2])]
    texts += [{"text": " ".join(words), "source": f"prose:{i}"} for i, words in enumerate(draws[1::2])]
    (folder / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    prepare([str(folder / "texts.jsonl")], folder / "data", test_fraction=0.2, progress=False)
    params = model_params.init(CONFIG, 0)
    head = params.decipher
    assert head is not None
    notes = {"step": 10, "config": json.loads(to_json(TrainConfig(model=CONFIG, batch_size=4)))}
    save_model(folder / "random", CONFIG, params, CharVocab(), notes=notes)
    bias_V = jnp.zeros(V).at[ord("e")].set(3.0)
    always_e = replace(head, down_PV=jnp.zeros_like(head.down_PV), down_bias_V=bias_V)
    save_model(folder / "e", CONFIG, replace(params, decipher=always_e), CharVocab())
    return folder


def options(place: Path, out: Path, **changed: Any) -> Options:
    settings: dict[str, Any] = {"model": str(place / "random"), "data": str(place / "data"), "out": out}
    settings |= {"sequences": 11, "batch_size": 4, "window": WINDOW}
    settings |= {"soft_window": 10, "soft_starts": (0, 30, 400)}
    return Options(**settings | changed)


def run(chosen: Options, **rest: Any) -> Rows:
    return Rows(find_experiment("cipher-key").run(chosen, **rest))


def numbers(rows: Rows, *kinds: type[Row]) -> list[Row]:
    """Rows of these kinds; rows are equal where their numbers are, wherever they come from."""
    return [row for row in rows if isinstance(row, kinds)]


@pytest.fixture(scope="module")
def always_e(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    said: list[str] = []
    chosen = options(place, tmp_path_factory.mktemp("e"), model=str(place / "e"))
    rows = run(chosen, command="the command", log=said.append)
    assert any(line.endswith("left out: those that begin at 400.") for line in said)
    assert any(line.startswith("head: the last window names") for line in said)
    assert list(read_all_rows(chosen.out)) == list(rows)
    return rows


def test_precision_of_a_head_that_always_says_e(place: Path, always_e: Rows) -> None:
    """Right is one of the letters in the window where there is an e, and none where there is none."""
    tok_ST = held_out(open_model(str(place / "e")), str(place / "data"), "test", 11).tok_ST
    assert tok_ST.shape == (11, T)
    expected = []
    for w in range(T - WINDOW + 1):
        windows = [set(row[w : w + WINDOW]) & set(LETTERS) for row in tok_ST.tolist()]
        expected.append(np.mean([(ord("e") in letters) / len(letters) for letters in windows]))
    [row] = always_e.of(Precision)
    np.testing.assert_allclose([share.value or 0 for share in row.precision], expected, atol=1e-6)
    assert row.start == list(range(T - WINDOW + 1))
    assert row.last.value == pytest.approx(expected[-1])
    assert row.named_rightly == pytest.approx((tok_ST[:, -WINDOW:] == ord("e")).mean())
    seen = [set(row) for row in tok_ST[:, -WINDOW:].tolist()]
    assert row.last_all_symbols.value == pytest.approx(np.mean([(ord("e") in s) / len(s) for s in seen]))
    letters = [set(row[-WINDOW:]) & set(LETTERS) for row in tok_ST.tolist()]
    assert row.last_by_text == pytest.approx([(ord("e") in s) / len(s) for s in letters], abs=1e-6)


def test_the_kind_of_each_text_is_told(place: Path, always_e: Rows) -> None:
    texts = held_out(open_model(str(place / "e")), str(place / "data"), "test", 11)
    [setup] = always_e.of(Setup)
    assert setup.kinds == ["lines" if ord("\n") in row else "prose" for row in texts.tok_ST.tolist()]
    assert len(set(setup.kinds)) == 2


def test_symbols_that_stand_for_words_have_no_names(place: Path, tmp_path: Path) -> None:
    """Of such texts no key can be told, and none is asked for."""
    texts = str(place / "texts.jsonl")
    prepare([texts], tmp_path / "data", test=[texts, f"{texts}?fold=words"], progress=False)
    rows = run(options(place, tmp_path / "rows", data=str(tmp_path / "data"), sequences=1000))
    [setup] = rows.of(Setup)
    assert set(setup.kinds) == {"lines", "prose"}
    prepare([texts], tmp_path / "words", test=[f"{texts}?fold=words"], progress=False)
    with pytest.raises(
        UserError, match=r"Symbols stand for words in all of the test split .* other text too"
    ):
        run(options(place, tmp_path / "rows", data=str(tmp_path / "words")))


def test_the_whole_key_of_that_head(always_e: Rows) -> None:
    [setup], [key] = always_e.of(Setup), always_e.of(WholeKey)
    cipher = random_cipher(0)
    assert setup.symbols == cipher.alphabet
    assert cipher.encipher(setup.truth) == cipher.alphabet
    assert {name for name in key.named if name} == {"e"}
    assert key.right == 1
    written_e = setup.truth.index("e")
    votes_CA = np.array(key.votes)
    assert votes_CA[:, cipher.alphabet.index("e")].sum() == votes_CA.sum()
    assert votes_CA.sum() == pytest.approx(11 * always_e.of(Precision)[0].symbols_seen)
    assert key.confused_with[written_e] is None
    assert {name for i, name in enumerate(key.confused_with) if i != written_e and name} == {"e"}
    assert set(cipher.decipher(setup.example).split()[1:-1]) <= set(SENTENCE.split())


def test_the_soft_key_of_that_head(always_e: Rows) -> None:
    soft = always_e.of(KeyProbabilities)
    assert [row.start for row in soft] == [0, 30]
    p_e = np.exp(3) / (np.exp(3) + V - 1)
    p_other = (1 - p_e) / (V - 1)
    expected = np.full(26, p_other)
    expected[ord("e") - ord("a")] = p_e
    for row in soft:
        for matrix_row, others, n in zip(row.matrix, row.others, row.sequences_by_symbol, strict=True):
            if n:
                np.testing.assert_allclose(matrix_row, expected, atol=2e-6)
                assert others == pytest.approx((V - 26) * p_other, abs=2e-6)
            else:
                assert others is None and set(matrix_row) == {None}
        assert 0 < sum(n > 0 for n in row.sequences_by_symbol) <= 26


def test_provenance_and_compute(place: Path, always_e: Rows, tmp_path: Path) -> None:
    [setup] = always_e.of(Setup)
    origin = setup.origin
    assert (origin.command, origin.draws, origin.experiment) == ("the command", 1, "cipher-key")
    assert origin.model_hash and origin.data_hash
    assert setup.training_flop is None  # this model has no notes
    notes = {"step": 10, "config": {"batch_size": 4}}
    assert training_flop(CONFIG, notes) == 10 * 4 * T * CONFIG.flop_per_token(T)


@pytest.fixture(scope="module")
def random_rows(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return run(options(place, tmp_path_factory.mktemp("random")))


def test_the_batch_size_does_not_matter(place: Path, tmp_path: Path, random_rows: Rows) -> None:
    others = run(options(place, tmp_path, batch_size=7))
    assert numbers(others, Setup, Precision, WholeKey) == numbers(random_rows, Setup, Precision, WholeKey)
    for row, other in zip(random_rows.of(KeyProbabilities), others.of(KeyProbabilities), strict=True):
        np.testing.assert_allclose(np.array(row.matrix, float), np.array(other.matrix, float), atol=2e-6)
    assert random_rows.of(Setup)[0].training_flop == 10 * 4 * T * CONFIG.flop_per_token(T)


def test_to_a_lexinvariant_model_all_keys_are_the_same(
    place: Path, tmp_path: Path, random_rows: Rows
) -> None:
    evaluated = open_model(str(place / "random"))
    text = held_out(evaluated, str(place / "data"), "test", 4)
    names = []
    for number in (0, 1):
        cipher_ST = encipher(random_keys(0, np.array([number]), LETTERS, V), text.tok_ST)
        batches = forward_batches(evaluated.model.params, CONFIG, cipher_ST, text.piece_S, batch_size=4)
        [(_, reading)] = list(batches)
        names.append(
            np.asarray(decipher_logits(evaluated.model.params, evaluated.model.config, reading.h_BTD))
        )
    np.testing.assert_array_equal(names[0], names[1])
    assert len(np.unique(names[0].argmax(axis=2))) > 5
    fresh = run(options(place, tmp_path, fresh_keys=True))
    assert numbers(fresh, Precision) == numbers(random_rows, Precision)
    [setup] = fresh.of(Setup)
    assert setup.truth == setup.symbols


def test_in_hindsight_a_window_is_named_by_all_that_was_read_at_its_end(place: Path, tmp_path: Path) -> None:
    config = replace(CONFIG, hindsight_layers=1)
    save_model(tmp_path / "later", config, random_params(config), CharVocab())
    rows = run(options(place, tmp_path, model=str(tmp_path / "later"), soft_starts=(30,)))
    head, later = rows.of(Precision)
    assert (head.namer, later.namer) == ("head", "hindsight")
    assert later.start == [0, 25, T - WINDOW]
    evaluated = open_model(str(tmp_path / "later"))
    text = held_out(evaluated, str(place / "data"), "test", 11)
    cipher_ST = encipher(random_keys(0, np.zeros(1, np.int64), LETTERS, V), text.tok_ST)
    start = 25
    read_ST = cipher_ST[:, : start + WINDOW]  # there is nothing else to know
    [(_, reading)] = list(
        forward_batches(evaluated.model.params, config, read_ST, text.piece_S, batch_size=11)
    )
    name_ST = np.asarray(hindsight_namer(evaluated.model).logits(reading.h_BTD)).argmax(axis=2)
    symbol_SN = number_symbols(text.tok_ST[:, start : start + WINDOW], LETTERS, V)
    name_SC = majority(symbol_SN, name_ST[:, start:], 26, V)
    seen_S = (name_SC != NONE).sum(axis=1)
    expected = np.mean((name_SC == LETTERS).sum(axis=1) / seen_S)
    assert later.precision[1].value == pytest.approx(expected, abs=1e-6)


def test_a_probe_is_trained_kept_and_used_again(place: Path, tmp_path: Path) -> None:
    chosen = options(place, tmp_path, namer="both", probe_steps=3, probe_batch_size=2, sequences=4)
    said: list[str] = []
    rows = run(chosen, log=said.append)
    assert [row.namer for row in rows.of(Precision)] == ["head", "probe"]
    [probe] = rows.of(ProbeTraining)
    assert probe.config.steps == 3 and 0 < probe.metrics["loss"] < 20
    part = find_experiment("cipher-key").section(rows)
    assert part is not None and "3 steps of 2 sequences" in part.paragraphs[-1]
    [file] = tmp_path.glob("probe-*.safetensors")
    assert any("Training a probe" in line for line in said)
    said.clear()
    again = run(chosen, log=said.append)
    assert any("used again" in line for line in said)
    run(replace(chosen, probe_steps=2))  # a shorter trial has a file of its own
    assert file in (files := list(tmp_path.glob("probe-*.safetensors"))) and len(files) == 2
    said.clear()
    run(chosen, log=said.append)
    assert any("used again" in line for line in said)
    loaded = run(replace(chosen, namer="probe", probe=file, out=tmp_path / "elsewhere"))
    probes = [
        [row for row in numbers(r, Precision, WholeKey) if getattr(row, "namer", "") == "probe"]
        for r in (rows, again, loaded)
    ]
    assert probes[0] == probes[1] == probes[2]
    with pytest.raises(UserError, match="trained on another model"):
        run(replace(chosen, model=str(place / "e"), probe=file))


def test_the_section_is_drawn_from_what_was_written(place: Path, tmp_path: Path) -> None:
    run(options(place, tmp_path, window=None))
    rows = read_all_rows(tmp_path)
    [setup] = rows.of(Setup)
    assert setup.window == T // 4  # a context that is short for the paper's window
    part = find_experiment("cipher-key").section(rows)
    assert part is not None
    for figure in part.figures:
        assert len(draw(figure, "light").axes) >= len(figure.panels)
    names = ["cipher-key-precision", "cipher-key-matrices", "cipher-key-soft"]
    assert [figure.name for figure in part.figures] == names
    assert len(part.tables) == 5
    assert len(part.findings) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": T + 1}, "window of 41 symbols does not fit the model's context of 40"),
        ({"window": 0}, "window of 0"),
        ({"data": "markov12"}, "a vocabulary of 12 symbols and random one of 128"),
        ({"sequences": 0}, "--sequences"),
        ({"temperature": 0.0}, "temperature of 0"),
        ({"namer": "probe", "probe": Path("none.safetensors")}, "There is no probe at none.safetensors"),
    ],
)
def test_wrong_options(place: Path, tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(options(place, tmp_path, **changed))


@pytest.mark.parametrize(
    ("config", "vocab", "message"),
    [
        (replace(CONFIG, decipher_head=False), CharVocab(), "other has no deciphering head: give a probe"),
        (replace(CONFIG, lexicon=LexiconConfig(kind="learned")), CharVocab(), "not a lexinvariant model"),
        (replace(CONFIG, vocab_size=12), LetterVocab(12), "is about characters"),
    ],
)
def test_models_that_do_not_serve(
    place: Path, tmp_path: Path, config: ModelConfig, vocab: Any, message: str
) -> None:
    save_model(tmp_path / "other", config, model_params.init(config, 0), vocab)
    with pytest.raises(UserError, match=message):
        run(options(place, tmp_path, model=str(tmp_path / "other")))
    shutil.rmtree(tmp_path / "other")


def test_the_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["cipher-key", "--help"])
    assert stop.value.code == 0
    assert "example: lexinvariant experiment cipher-key" in capsys.readouterr().out
