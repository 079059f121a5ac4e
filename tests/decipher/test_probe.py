"""A probe learns, is the same whether interrupted or not, and reads only the model it belongs to."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from lexinvariant.api import Model
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.decipher.probe import (
    Probe,
    ProbeConfig,
    ProbeParams,
    head_namer,
    load_probe,
    probe_logits,
    train_probe,
)
from lexinvariant.errors import UserError
from lexinvariant.model import params as model_params
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.text import MarkovLanguage
from lexinvariant.text.batch import Batch
from tests.tiny_models import TINY

T, V, D = 16, 12, TINY.width
MODEL = replace(TINY, vocab_size=V, context=T, lexicon=LexiconConfig(kind="permuted"), readout="seen")
STANDARD = replace(MODEL, lexicon=LexiconConfig(kind="learned"))
CONFIG = ProbeConfig(steps=12, batch_size=8)
TRAIN = MarkovLanguage().split("train", T)


class Stopped:
    """A split whose reader presses Ctrl-C at a step."""

    length = T

    def __init__(self, step: int) -> None:
        self._step = step

    def __len__(self) -> int:
        return len(TRAIN)

    def __getitem__(self, piece_B: np.ndarray, /) -> Batch:
        return TRAIN[piece_B]

    def batch(self, seed: int, step: int, size: int, rows: slice | range = slice(None)) -> Batch:
        if step == self._step:
            raise KeyboardInterrupt
        return TRAIN.batch(seed, step, size, rows)


def trained(
    path: Path, model: ModelConfig = MODEL, config: ProbeConfig = CONFIG, pieces: object = TRAIN
) -> Probe:
    params = model_params.init(model, 0)
    return train_probe(params, model, pieces, config, path, about=("model", "data"))  # type: ignore[arg-type]


def same_bits(a: ProbeParams, b: ProbeParams) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> tuple[Probe, Path]:
    path = tmp_path_factory.mktemp("probe") / "new folder" / "probe.safetensors"
    return trained(path), path


def test_where_names_are_known_it_learns_to_read_them(tmp_path: Path) -> None:
    """A standard model's states hold the token, so a probe that learns at all names nearly every one."""
    config = ProbeConfig(steps=80, batch_size=16, rate=1e-2, hidden=24)
    probe = trained(tmp_path / "probe.safetensors", STANDARD, config)
    assert probe.metrics["deciphered"] > 0.95
    assert probe.metrics["loss"] < 0.3
    assert probe.params.up_DP.shape == (D, 24)


def test_where_names_are_drawn_anew_it_beats_chance_and_no_more(tmp_path: Path) -> None:
    """An untrained lexinvariant model tells little but how often symbols occur. Were its lexicon the same for every
    sequence, its states would hold the token as a standard model's do.
    """
    language = MarkovLanguage()
    config = ProbeConfig(steps=80, batch_size=16, rate=1e-2)
    metrics = trained(tmp_path / "probe.safetensors", config=config).metrics
    assert language.entropy_rate < metrics["loss"] < np.log(V)
    assert 1 / V < metrics["deciphered"] < language.stationary.max() + 0.2


def test_it_is_two_layers_and_a_table(probe: tuple[Probe, Path]) -> None:
    params, h_BTD = probe[0].params, jnp.linspace(-1, 1, 2 * 3 * D).reshape(2, 3, D)
    assert {name: value.shape for name, value in vars(params).items()} == {
        "up_DP": (D, D),
        "up_bias_P": (D,),
        "down_PD": (D, D),
        "down_bias_D": (D,),
        "table_VD": (V, D),
    }
    hidden = jax.nn.gelu(h_BTD @ params.up_DP + params.up_bias_P)
    expected = (hidden @ params.down_PD + params.down_bias_D) @ params.table_VD.T / 4
    np.testing.assert_allclose(probe[0].namer.logits(h_BTD), expected, rtol=1e-4, atol=1e-5)
    assert probe_logits(params, h_BTD.astype(jnp.bfloat16)).dtype == jnp.float32


def test_it_is_saved_and_loaded_bit_for_bit(probe: tuple[Probe, Path]) -> None:
    trained_probe, path = probe
    loaded = load_probe(path)
    assert same_bits(loaded.params, trained_probe.params)
    assert (loaded.config, loaded.model_hash, loaded.data) == (CONFIG, "model", "data")
    assert loaded.metrics == trained_probe.metrics
    assert sorted(file.name for file in path.parent.iterdir()) == ["probe.safetensors"]


def test_interrupted_it_leaves_no_probe_and_goes_on_to_the_same_one(
    probe: tuple[Probe, Path], tmp_path: Path
) -> None:
    path = tmp_path / "probe.safetensors"
    with pytest.raises(KeyboardInterrupt):
        trained(path, pieces=Stopped(7))
    assert [file.name for file in tmp_path.iterdir()] == ["probe.safetensors.unfinished"]
    with pytest.raises(KeyboardInterrupt):
        trained(path, pieces=Stopped(9))
    goes_on = trained(path)
    assert same_bits(goes_on.params, probe[0].params)
    assert goes_on.metrics == probe[0].metrics
    assert [file.name for file in tmp_path.iterdir()] == ["probe.safetensors"]


def test_the_state_of_another_training_is_not_gone_on_with(probe: tuple[Probe, Path], tmp_path: Path) -> None:
    path = tmp_path / "probe.safetensors"
    with pytest.raises(KeyboardInterrupt):
        trained(path, config=replace(CONFIG, seed=1), pieces=Stopped(7))
    assert same_bits(trained(path).params, probe[0].params)


def test_seed_and_step_decide_everything(probe: tuple[Probe, Path], tmp_path: Path) -> None:
    other = trained(tmp_path / "other.safetensors", config=replace(CONFIG, seed=1))
    assert not same_bits(other.params, probe[0].params)


def test_the_model_is_frozen(probe: tuple[Probe, Path], tmp_path: Path) -> None:
    params = model_params.init(MODEL, 0)
    before = jax.tree.map(np.array, params)
    train_probe(params, MODEL, TRAIN, CONFIG, tmp_path / "p.safetensors", about=("m", "d"))
    jax.tree.map(np.testing.assert_array_equal, params, before)


def test_the_head_serves_in_its_place() -> None:
    config = replace(MODEL, decipher_head=True, decipher_hidden=8)
    model = Model(config, model_params.init(config, 0), MarkovLanguage().vocab)
    h_BTD = jnp.linspace(-1, 1, 2 * 3 * D).reshape(2, 3, D)
    logits_BTV = head_namer(model).logits(h_BTD)
    assert logits_BTV.shape == (2, 3, V)
    expected = decipher_logits(model.params, model.config, h_BTD)
    np.testing.assert_allclose(logits_BTV, expected, rtol=1e-5, atol=1e-6)


def test_without_a_head_it_says_so() -> None:
    model = Model(MODEL, model_params.init(MODEL, 0), MarkovLanguage().vocab)
    with pytest.raises(UserError, match=r"mine has no deciphering head: give a probe \(.* --namer probe\)"):
        head_namer(model, "mine")


def test_a_probe_of_another_model_is_refused(probe: tuple[Probe, Path]) -> None:
    probe[0].check(MODEL, "model")
    with pytest.raises(UserError, match="trained on another model"):
        probe[0].check(MODEL, "other")
    wider = replace(MODEL, width=32, head_dim=16)
    with pytest.raises(UserError, match="width 16 as 12 symbols and the model has width 32 and 12 symbols"):
        probe[0].check(wider, "model")


def test_what_is_no_probe_is_refused(probe: tuple[Probe, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no probe at"):
        load_probe(tmp_path / "none.safetensors")
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes(probe[1].read_bytes()[:-10])
    with pytest.raises(UserError, match="damaged or no probe"):
        load_probe(torn)
    save_file({"x": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="not a probe of this version"):
        load_probe(tmp_path / "other.safetensors")


def test_sizes_are_checked() -> None:
    with pytest.raises(UserError, match="at least one step"):
        ProbeConfig(steps=0)
