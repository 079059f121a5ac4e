"""Where the state lies changes nothing but where the state lies."""

import math
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
import pytest

from lexinvariant.config import OptimizerConfig, RunConfig, ShardingConfig, TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.model.params import flatten_named, specs
from lexinvariant.presets import preset
from lexinvariant.text import MarkovLanguage
from lexinvariant.training.setup import build, device_batch
from lexinvariant.training.sharding import make_mesh
from lexinvariant.training.step import TrainState

STEPS = 4
TINY = preset("tiny")
CONFIG = replace(
    TINY,
    model=replace(
        TINY.model,
        context=16,
        n_layers=1,
        width=16,
        n_heads=2,
        head_dim=8,
        hidden=32,
        dropout=0.1,
        attention_dropout=0.1,
    ),
    optimizer=replace(TINY.optimizer, warmup_steps=1),
    run=RunConfig(),
    steps=STEPS,
    batch_size=8,
)
LAYOUTS = {"one": (1, 1), "data": (8, 1), "fsdp": (1, 8), "both": (2, 4)}


class Trained(NamedTuple):
    state: TrainState
    losses: list[float]
    compilations: int


def laid_out(data: int, fsdp: int, config: TrainConfig = CONFIG) -> TrainConfig:
    return replace(config, sharding=ShardingConfig(data=data, fsdp=fsdp))


def run(config: TrainConfig) -> Trained:
    setup = build(config)
    state = setup.fresh_state()
    pieces = MarkovLanguage().split("train", config.model.context)
    losses = []
    for step in range(STEPS):
        batch = pieces.batch(config.seed, step, config.batch_size)
        on_device = device_batch(batch, config.batch_size, setup.mesh)
        state, metrics = setup.train_step(state, on_device)
        losses.append(float(metrics["loss"]))
    return Trained(state, losses, setup.train_step._cache_size())  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def trained() -> dict[str, Trained]:
    return {name: run(laid_out(*layout)) for name, layout in LAYOUTS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["data", "fsdp", "both"])
def test_losses_are_the_same_on_any_number_of_devices(trained: dict[str, Trained], layout: str) -> None:
    np.testing.assert_allclose(trained[layout].losses, trained["one"].losses, rtol=1e-5)
    assert len(set(trained["one"].losses)) == STEPS


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_step_is_compiled_once(trained: dict[str, Trained], layout: str) -> None:
    assert trained[layout].compilations == 1


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["fsdp", "both"])
def test_fsdp_splits_matrices_and_their_moments_along_the_width(
    trained: dict[str, Trained], layout: str
) -> None:
    n = LAYOUTS[layout][1]
    state = trained[layout].state
    adam = next(part for part in jax.tree.leaves(state.optimizer, is_leaf=lambda x: hasattr(x, "mu")))
    for tree in (state.params, adam.mu, adam.nu):
        values = dict(flatten_named(tree))
        for name, spec in flatten_named(specs(CONFIG.model)):
            expected = [
                size // n if axis == "D" and len(spec.shape) > 1 else size
                for axis, size in zip(spec.axes, spec.shape, strict=True)
            ]
            shards = values[name].addressable_shards
            assert len(shards) == 8
            assert [list(shard.data.shape) for shard in shards] == [expected] * 8, name


@pytest.mark.slow
def test_fsdp_leaves_a_fraction_of_the_state_on_each_device(trained: dict[str, Trained]) -> None:
    def on_first_device(trained: Trained) -> int:
        return sum(
            math.prod(leaf.addressable_shards[0].data.shape) for leaf in jax.tree.leaves(trained.state)
        )

    assert on_first_device(trained["fsdp"]) < on_first_device(trained["one"]) / 4
    assert on_first_device(trained["data"]) == on_first_device(trained["one"])


def test_factored_moments_of_adafactor_are_on_every_device() -> None:
    model = replace(CONFIG.model, width=128, head_dim=64, hidden=256)
    config = replace(CONFIG, model=model, optimizer=OptimizerConfig(name="adafactor"))
    abstract = build(laid_out(1, 8, config)).abstract_state
    factored = next(
        part for part in jax.tree.leaves(abstract.optimizer, is_leaf=lambda x: hasattr(x, "v_row"))
    )
    assert factored.v_row.layers.up_DF.sharding.is_fully_replicated
    assert factored.v_col.layers.up_DF.sharding.is_fully_replicated
    assert factored.v.layers.position_WN.sharding.is_fully_replicated
    table = factored.v.embedding.table_VD
    assert table.sharding.shard_shape(table.shape) == (12, 16)


@pytest.mark.parametrize(
    ("data", "fsdp", "shape"),
    [(0, 1, (8, 1)), (0, 2, (4, 2)), (2, 0, (2, 4)), (0, 0, (1, 8)), (2, 2, (2, 2))],
)
def test_zero_takes_the_devices_that_the_other_axis_leaves(
    data: int, fsdp: int, shape: tuple[int, int]
) -> None:
    mesh = make_mesh(ShardingConfig(data=data, fsdp=fsdp))
    assert (mesh.shape["data"], mesh.shape["fsdp"]) == shape


@pytest.mark.parametrize(("data", "fsdp"), [(9, 1), (1, 9), (4, 4), (0, 16), (9, 0)])
def test_a_mesh_that_does_not_fit_is_refused(data: int, fsdp: int) -> None:
    with pytest.raises(UserError, match="8 device"):
        make_mesh(ShardingConfig(data=data, fsdp=fsdp))


def test_a_width_that_fsdp_does_not_divide_is_refused() -> None:
    model = replace(CONFIG.model, width=12, head_dim=6)
    with pytest.raises(UserError, match="does not divide the width 12"):
        build(laid_out(1, 8, replace(CONFIG, model=model)))


@pytest.mark.parametrize(("batch_size", "accumulate"), [(12, 1), (8, 2)])
def test_a_batch_that_does_not_split_evenly_is_refused(batch_size: int, accumulate: int) -> None:
    with pytest.raises(UserError, match="cannot be split over 8 devices"):
        build(laid_out(8, 1, replace(CONFIG, batch_size=batch_size, accumulate=accumulate)))
