"""Every named run can be built, and is the size that its note says."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from lexinvariant.errors import UserError
from lexinvariant.model import params as model_params
from lexinvariant.presets import PRESETS, as_standard, preset
from lexinvariant.training.setup import build
from lexinvariant.training.step import DeviceBatch


@pytest.mark.parametrize("name", PRESETS)
@jax.numpy_dtype_promotion("standard")  # optax is not strict
def test_a_training_step_of_every_preset_traces_to_the_state_it_started_from(name: str) -> None:
    config = preset(name)
    setup = build(config)
    shape = (config.batch_size, config.model.context)
    batch = DeviceBatch(
        jax.ShapeDtypeStruct(shape, jnp.int32),
        jax.ShapeDtypeStruct(shape, jnp.bool_),
        jax.ShapeDtypeStruct(shape[:1], jnp.bool_),
        jax.ShapeDtypeStruct(shape[:1], jnp.int32),
    )
    state, metrics = jax.eval_shape(setup.train_step, setup.abstract_state, batch)

    def description(tree: Any) -> Any:
        return jax.tree.map(lambda x: (x.shape, x.dtype), tree)

    assert description(state) == description(setup.abstract_state)
    assert {"loss", "tail_loss", "gradient_norm", "rate"} <= metrics.keys()
    assert {(metric.shape, metric.dtype) for metric in metrics.values()} == {((), jnp.dtype("float32"))}


def test_the_papers_model_has_the_papers_size() -> None:
    model = preset("paper-char").model
    assert model.n_matmul_parameters == 150_994_944
    per_layer_and_token = model.n_heads * model.head_dim * 512
    assert model.flop_per_token(512) == 6 * 150_994_944 + 12 * 12 * per_layer_and_token
    beside_matrices = model_params.count(model) - model.n_matmul_parameters
    assert 0 < beside_matrices < 50_000


def test_the_fast_recipe_at_the_papers_size() -> None:
    paper, fast, small = (preset(name) for name in ("paper-char", "paper-fast", "char-small"))
    sizes = ("n_layers", "width", "n_heads", "head_dim", "hidden")
    assert [getattr(fast.model, name) for name in sizes] == [getattr(paper.model, name) for name in sizes]
    other = {name: getattr(small.model, name) for name in sizes}
    assert dataclasses.replace(fast.model, **other) == small.model
    tokens = preset("tokens-small")
    by_width = (tokens.model.width / fast.model.width) ** 0.5
    assert fast.optimizer.name == "muon"
    assert fast.optimizer.rate == pytest.approx(tokens.optimizer.rate * by_width, rel=0.05)


def test_the_papers_model_is_set_up_as_the_paper_has_it() -> None:
    config = preset("paper-char")
    assert (config.model.lexicon.kind, config.model.readout, config.model.logit_scale) == (
        "gaussian",
        "full",
        "width",
    )
    assert config.model.normalize_qk
    assert config.model.bias_before_scale
    assert not config.model.smeared_keys
    assert (config.steps, config.batch_size, config.model.context) == (250_000, 64, 512)
    assert (config.optimizer.name, config.optimizer.rate, config.optimizer.warmup_steps) == (
        "adafactor",
        0.01,
        1000,
    )
    assert preset("paper-32k").model.vocab_size == 32_128


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("tiny", 0.1),
        ("char-tiny", 0.6),
        ("char-small", 26),
        ("tokens-small", 22),
        ("judge", 7),
        ("paper-char", 151),
    ],
)
def test_a_preset_has_about_the_parameters_that_its_note_tells(name: str, millions: float) -> None:
    assert f"{millions}M parameters" in PRESETS[name].note
    assert preset(name).model.n_matmul_parameters / 1e6 == pytest.approx(millions, rel=0.05)


@pytest.mark.parametrize(
    ("typed", "meant"), [("tinny", "tiny"), ("paper_char", "paper-char"), ("char-smal", "char-small")]
)
def test_a_mistyped_preset_gets_the_nearest_name(typed: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"no preset '{typed}': did you mean '{meant}'"):
        preset(typed)


@pytest.mark.parametrize("name", ["", "zzz"])
def test_a_name_like_none_gets_all_of_them(name: str) -> None:
    with pytest.raises(UserError, match=f"There is no preset '{name}': choose from tiny, char-tiny, "):
        preset(name)


def differences(one: Any, other: Any, at: str = "") -> set[str]:
    if not dataclasses.is_dataclass(one):
        return set() if one == other else {at}
    names = [field.name for field in dataclasses.fields(one)]
    return {
        place
        for name in names
        for place in differences(getattr(one, name), getattr(other, name), f"{at}.{name}")
    }


@pytest.mark.parametrize("name", PRESETS)
def test_the_standard_model_differs_in_lexicon_readout_and_head_only(name: str) -> None:
    config = preset(name)
    standard = as_standard(config)
    assert differences(config, standard) <= {".model.lexicon.kind", ".model.readout", ".model.decipher_head"}
    assert standard.model.lexicon.kind == "learned"
    assert standard.model.readout == "full"
    assert not standard.model.decipher_head


def test_an_option_is_no_preset() -> None:
    with pytest.raises(UserError, match=r"--data stands where a preset belongs: give one .* --init MODEL"):
        preset("--data")
