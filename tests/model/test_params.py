"""One table of parameters: names, shapes, first values and gradients agree."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model import params as model_params

SMALL = ModelConfig(vocab_size=9, context=16, n_layers=3, width=16, n_heads=2, head_dim=8, hidden=24)
FULL = replace(
    SMALL,
    lexicon=LexiconConfig(kind="permuted"),
    readout="seen",
    smeared_keys=True,
    qk_scale_init=5.0,
    decipher_head=True,
    decipher_hidden=6,
    decipher_next=True,
)
SIZES = {"V": 9, "D": 16, "N": 2, "E": 16, "F": 24, "W": 32, "P": 6}


@pytest.fixture(scope="module")
def full_params() -> model_params.Params:
    return model_params.init(FULL, seed=3)


def test_the_end_of_every_name_tells_its_shape(full_params: model_params.Params) -> None:
    for name, value in model_params.flatten_named(full_params):
        suffix = name.rpartition("_")[2] if "_" in name else ""
        stacked = (3,) if name.startswith("layers.") else ()
        assert value.shape == (*stacked, *(SIZES[axis] for axis in suffix)), name
        assert value.dtype == jnp.float32, name


def test_names_are_dotted_and_distinct(full_params: model_params.Params) -> None:
    names = [name for name, _ in model_params.flatten_named(full_params)]
    assert len(set(names)) == len(names)
    assert {"embedding.table_VD", "embedding.scale", "layers.up_DF", "start_D", "decipher.down_PV"} <= set(
        names
    )
    assert {"decipher.next_DP", "decipher.next_bias_P"} <= set(names)


def test_the_table_of_parameters_tells_their_number_and_shapes(full_params: model_params.Params) -> None:
    assert model_params.count(FULL) == sum(leaf.size for leaf in jax.tree.leaves(full_params))
    shapes = jax.tree.map(lambda x: (x.shape, x.dtype), full_params)
    assert shapes == jax.tree.map(lambda x: (x.shape, x.dtype), model_params.abstract(FULL))


def test_what_a_model_does_without_is_absent() -> None:
    plain = model_params.specs(replace(SMALL, normalize_qk=False))
    assert plain.embedding.table_VD is None
    assert plain.unseen_D is None
    assert plain.decipher is None
    assert plain.layers.smear_N is None
    assert plain.layers.qk_scale_N is None
    assert model_params.specs(replace(FULL, decipher_next=False)).decipher.next_DP is None


def test_a_channel_affine_has_one_number_a_channel() -> None:
    assert model_params.specs(SMALL).embedding.scale.shape == ()
    by_channel = replace(SMALL, lexicon=LexiconConfig(affine="channel"))
    assert model_params.specs(by_channel).embedding.scale.shape == (16,)
    assert model_params.specs(by_channel).embedding.bias.shape == (16,)


def test_adding_parameters_leaves_the_others_as_they_were(full_params: model_params.Params) -> None:
    fewer = dict(model_params.flatten_named(model_params.init(SMALL, seed=3)))
    more = dict(model_params.flatten_named(full_params))
    assert fewer.keys() < more.keys()
    for name in fewer.keys() - {"layers.qk_scale_N"}:
        np.testing.assert_array_equal(fewer[name], more[name], err_msg=name)


def test_every_parameter_and_seed_has_its_own_draw(full_params: model_params.Params) -> None:
    layers = full_params.layers
    matrices = [layers.query_DE, layers.key_DE, layers.value_DE, layers.out_ED]
    matrices.append(model_params.init(FULL, seed=4).layers.query_DE)
    drawn = [np.asarray(matrix).reshape(3 * 16, 16) for matrix in matrices]
    blocks = np.concatenate([np.split(matrix, 3) for matrix in drawn])
    assert len({block.tobytes() for block in blocks}) == len(blocks)


def test_first_values(full_params: model_params.Params) -> None:
    layers = full_params.layers
    np.testing.assert_array_equal(layers.attention_norm_D, np.ones((3, 16)))
    np.testing.assert_array_equal(layers.qk_scale_N, np.full((3, 2), 5.0))
    np.testing.assert_array_equal(layers.smear_N, [[3.0, -3.0]] * 3)
    np.testing.assert_array_equal(full_params.start_D, np.zeros(16))
    np.testing.assert_array_equal(full_params.unseen_D, np.zeros(16))
    assert full_params.embedding.scale == 1.0
    assert full_params.embedding.bias == 0.0
    assert np.std(np.asarray(full_params.embedding.table_VD)) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(("name", "n_inputs"), [("up_DF", 16), ("down_FD", 24), ("position_WN", 32)])
def test_matrices_start_truncated_normal_of_fan_in_variance_one(
    full_params: model_params.Params, name: str, n_inputs: int
) -> None:
    value = np.asarray(getattr(full_params.layers, name)) * math.sqrt(n_inputs)
    assert np.std(value) == pytest.approx(1.0, abs=5 / math.sqrt(2 * value.size))
    assert np.abs(value).max() <= 2 / 0.8796256 + 1e-5


def test_unstacking_gives_the_layers_and_its_gradient_stacks(full_params: model_params.Params) -> None:
    layers = full_params.layers
    singles = model_params.unstack(layers)
    assert len(singles) == 3
    np.testing.assert_array_equal(singles[1].up_DF, layers.up_DF[1])

    def weighted(parts: tuple[model_params.Layer, ...]) -> jax.Array:
        return sum((i + 1) * jnp.sum(part.up_DF**2) + jnp.sum(part.smear_N) for i, part in enumerate(parts))

    def by_index(stacked: model_params.Layer) -> tuple[model_params.Layer, ...]:
        return tuple(jax.tree.map(lambda x, i=i: x[i], stacked) for i in range(3))

    ours = jax.jit(jax.grad(lambda x: weighted(model_params.unstack(x))))(layers)
    plain = jax.jit(jax.grad(lambda x: weighted(by_index(x))))(layers)
    jax.tree.map(np.testing.assert_array_equal, ours, plain)
