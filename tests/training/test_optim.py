"""The optimisers are optax's, whatever the layers' arrangement in memory."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig, OptimizerConfig
from lexinvariant.model import params as model_params
from lexinvariant.model.params import Params
from lexinvariant.training.optim import clip_by_block_rms, make_optimizer, orthogonalize, rate_schedule

STEPS = 5
# Layers' matrices of 128 x 128 and 128 x 160 are factored; norms, the position bias and the table are not.
MODEL = ModelConfig(
    vocab_size=12,
    n_layers=3,
    width=128,
    n_heads=2,
    head_dim=64,
    hidden=160,
    lexicon=LexiconConfig(kind="permuted"),
    smeared_keys=True,
    readout="seen",
)


@pytest.fixture(autouse=True)
def optax_mixes_types() -> Iterator[None]:
    with jax.numpy_dtype_promotion("standard"):
        yield


def unstacked(tree: Params) -> dict[str, Any]:
    """The same arrays, every layer's on its own."""
    flat = {}
    for name, value in model_params.flatten_named(tree):
        if name.startswith("layers."):
            flat |= {f"{name}.{layer}": value[layer] for layer in range(len(value))}
        else:
            flat[name] = value
    return flat


def random_like(tree: Params, seed: int, scale: float) -> Params:
    """Layer l is 4**l times as large as layer 0, so that mixing up the layers' sizes cannot go unseen."""
    rng = np.random.default_rng(seed)
    tree = jax.tree.map(lambda x: jnp.asarray(scale * rng.normal(size=x.shape), jnp.float32), tree)

    def by_layer(x: jax.Array) -> jax.Array:
        return x * 4.0 ** jnp.arange(len(x), dtype=jnp.float32).reshape(-1, *[1] * (x.ndim - 1))

    return replace(tree, layers=jax.tree.map(by_layer, tree.layers))


def walk(optimizer: optax.GradientTransformation, params: Any, gradients: list[Any]) -> Any:
    update = jax.jit(optimizer.update)
    state = optimizer.init(params)
    for gradient in gradients:
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    return params


@pytest.fixture(scope="module")
def start() -> Params:
    return random_like(model_params.abstract(MODEL), seed=0, scale=0.05)


@pytest.fixture(scope="module")
def gradients(start: Params) -> list[Params]:
    # The first is small and the next are large: Adafactor's clipping, which is relative to the past, has work.
    return [
        random_like(start, seed=1 + i, scale=scale) for i, scale in enumerate([1e-3, 3.0, 0.1, 30.0, 1.0])
    ]


def assert_same(stacked: Params, expected: dict[str, Any], start: Params) -> None:
    before = unstacked(start)
    for name, value in unstacked(stacked).items():
        np.testing.assert_allclose(value, expected[name], rtol=2e-5, atol=1e-7, err_msg=name)
        assert not np.array_equal(value, before[name]), f"{name} did not move"


def test_adafactor_of_stacked_layers_is_optax_adafactor_of_separate_ones(
    start: Params, gradients: list[Params]
) -> None:
    config = OptimizerConfig(name="adafactor", rate=0.01, warmup_steps=2)
    reference = optax.adafactor(
        rate_schedule(config, STEPS),
        min_dim_size_to_factor=128,
        decay_rate=0.8,
        clipping_threshold=1.0,
        momentum=0.9,
        eps=1e-30,
    )
    apart = walk(reference, unstacked(start), [unstacked(gradient) for gradient in gradients])
    assert_same(walk(make_optimizer(config, STEPS), start, gradients), apart, start)


def test_layers_of_hindsight_are_clipped_one_by_one_too() -> None:
    config = replace(MODEL, width=2, n_heads=1, head_dim=2, smeared_keys=False)
    config = replace(config, decipher_head=True, hindsight_layers=2)
    ones = jax.tree.map(
        lambda spec: jnp.ones(spec.shape), model_params.specs(config), is_leaf=model_params.is_spec
    )
    assert ones.hindsight is not None
    steep = replace(ones.hindsight, up_DF=ones.hindsight.up_DF.at[1].set(50.0))
    clipped, _ = clip_by_block_rms(1.0).update(replace(ones, hindsight=steep), optax.EmptyState())
    assert clipped.hindsight is not None
    np.testing.assert_allclose(clipped.hindsight.up_DF, 1.0, rtol=1e-6)


def test_adafactor_factors_the_large_matrices_of_every_layer_and_only_those(start: Params) -> None:
    state = make_optimizer(OptimizerConfig(name="adafactor"), STEPS).init(start)
    factored = next(part for part in jax.tree.leaves(state, is_leaf=lambda x: hasattr(x, "v_row")))
    assert factored.v_row.layers.up_DF.shape[0] == factored.v_col.layers.up_DF.shape[0] == MODEL.n_layers
    assert {factored.v_row.layers.up_DF.size, factored.v_col.layers.up_DF.size} == {
        MODEL.n_layers * 128,
        MODEL.n_layers * 160,
    }
    assert factored.v.layers.up_DF.size == 1
    assert factored.v.embedding.table_VD.shape == start.embedding.table_VD.shape
    assert factored.v.layers.position_WN.shape == start.layers.position_WN.shape


def test_adamw_is_optax_adamw(start: Params, gradients: list[Params]) -> None:
    config = OptimizerConfig(name="adamw", rate=0.01, warmup_steps=2, beta1=0.8, beta2=0.9, weight_decay=0.1)
    reference = optax.adamw(rate_schedule(config, STEPS), b1=0.8, b2=0.9, weight_decay=0.1)
    apart = walk(reference, unstacked(start), [unstacked(gradient) for gradient in gradients])
    assert_same(walk(make_optimizer(config, STEPS), start, gradients), apart, start)


def test_muon_of_stacked_layers_is_optax_muon_of_separate_ones_and_adamw_moves_the_rest(
    start: Params, gradients: list[Params]
) -> None:
    config = OptimizerConfig(name="muon", rate=0.01, warmup_steps=2, muon_beta=0.8, weight_decay=0.1)
    matrices = {"query_DE", "key_DE", "value_DE", "out_ED", "up_DF", "down_FD"}
    axes = {
        name: optax.contrib.MuonDimensionNumbers() if set(name.split(".")) & matrices else None
        for name in unstacked(start)
    }
    reference = optax.contrib.muon(
        rate_schedule(config, STEPS),
        beta=0.8,
        weight_decay=0.1,
        adam_b2=0.95,
        muon_weight_dimension_numbers=axes,
        consistent_rms=0.2,
    )
    apart = walk(reference, unstacked(start), [unstacked(gradient) for gradient in gradients])
    assert_same(walk(make_optimizer(config, STEPS), start, gradients), apart, start)


def test_muon_turns_every_singular_value_of_an_update_into_nearly_one(
    start: Params, gradients: list[Params]
) -> None:
    config = OptimizerConfig(name="muon", rate=1.0, warmup_steps=0, schedule="constant")
    moved = walk(make_optimizer(config, 1), start, gradients[:1])
    for layer in range(MODEL.n_layers):
        update = np.asarray(moved.layers.up_DF[layer] - start.layers.up_DF[layer])
        values = np.linalg.svd(update / (0.2 * max(update.shape) ** 0.5), compute_uv=False)
        assert 0.6 < values.min() <= values.max() < 1.3


def test_clip_norm_bounds_the_whole_gradient(start: Params, gradients: list[Params]) -> None:
    config = OptimizerConfig(name="adamw", rate=0.01, warmup_steps=0)
    norms = [float(optax.tree.norm(gradient)) for gradient in gradients]
    bound = sorted(norms)[2]
    shares = [min(1.0, bound / norm) for norm in norms]
    clipped = [
        jax.tree.map(lambda x, share=share: x * share, gradient)
        for gradient, share in zip(gradients, shares, strict=True)
    ]
    result = walk(make_optimizer(replace(config, clip_norm=bound), STEPS), start, gradients)
    assert_same(result, unstacked(walk(make_optimizer(config, STEPS), start, clipped)), start)
    unclipped = walk(make_optimizer(config, STEPS), start, gradients)
    assert float(jnp.max(jnp.abs(unclipped.start_D - result.start_D))) > 1e-4


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 4])
def test_rate_rises_from_the_first_step_to_the_peak_and_falls_to_its_final_share(
    schedule: str, warmup: int
) -> None:
    config = OptimizerConfig(rate=0.02, final_rate_share=0.1, schedule=schedule, warmup_steps=warmup)
    rates = np.array([float(rate_schedule(config, 20)(step)) for step in range(21)])
    assert rates[0] == pytest.approx(0.02 / max(warmup, 1))
    assert rates.argmax() == max(warmup - 1, 0)
    assert rates.max() == pytest.approx(0.02) == rates[max(warmup - 1, 0)]
    assert np.all(np.diff(rates[:warmup]) > 0)
    if schedule == "constant":
        assert rates[warmup:] == pytest.approx(0.02)
    else:
        assert rates[20] == pytest.approx(0.002)
        assert np.all(np.diff(rates[warmup:]) < 0)


def test_cosine_and_linear_decay_meet_halfway_and_differ_elsewhere() -> None:
    cosine, linear = (
        rate_schedule(OptimizerConfig(rate=1.0, warmup_steps=0, schedule=schedule), 100)
        for schedule in ("cosine", "linear")
    )
    assert float(cosine(50)) == pytest.approx(float(linear(50))) == pytest.approx(0.55)
    assert float(cosine(25)) == pytest.approx(0.1 + 0.9 * (1 + np.cos(np.pi / 4)) / 2)
    assert float(linear(25)) == pytest.approx(0.775)


def test_orthogonalizing_in_bfloat16_is_that_in_float32_but_for_rounding() -> None:
    """Both shapes of a stack, tall and wide, and a stack of each; singular values over three orders of magnitude."""
    rng = np.random.default_rng(0)

    def stack(layers: int, rows: int, columns: int) -> jax.Array:
        spectrum = np.logspace(0, -2, min(rows, columns))
        left = [np.linalg.qr(rng.normal(size=(rows, len(spectrum))))[0] for _ in range(layers)]
        right = [np.linalg.qr(rng.normal(size=(columns, len(spectrum))))[0] for _ in range(layers)]
        return jnp.asarray(
            np.stack([(u * spectrum) @ v.T for u, v in zip(left, right, strict=True)]), jnp.float32
        )

    stacks = [stack(2, 32, 48), stack(3, 48, 32), stack(2, 32, 32)]
    exact, rounded = (
        jax.jit(partial(orthogonalize, dtype=dtype))(stacks) for dtype in ("float32", "bfloat16")
    )
    for x, one, other in zip(stacks, exact, rounded, strict=True):
        assert one.shape == other.shape == x.shape
        assert other.dtype == jnp.float32
        assert np.linalg.norm(one - other) < 0.03 * np.linalg.norm(one)
        for values in np.linalg.svd(np.asarray(other), compute_uv=False):
            assert 0.5 < values.min() <= values.max() < 1.3
