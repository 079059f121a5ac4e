"""Configurations survive JSON, refuse what they do not know, and say what is wrong with a value."""

import dataclasses
import json
from typing import Any

import pytest

from lexinvariant.config import LexiconConfig, ModelConfig, TrainConfig, from_dict, to_json
from lexinvariant.errors import UserError
from lexinvariant.presets import PRESETS

CHANGED = TrainConfig(
    model=ModelConfig(width=64, n_heads=4, head_dim=16, lexicon=LexiconConfig(kind="mixed", p=0.125)),
    steps=12,
    seed=99,
)


@pytest.mark.parametrize(
    "config",
    [TrainConfig(), CHANGED, *(preset.config for preset in PRESETS.values())],
    ids=["default", "changed", *PRESETS],
)
def test_json_and_back_is_the_same(config: TrainConfig) -> None:
    assert from_dict(TrainConfig, json.loads(to_json(config))) == config


def test_what_json_leaves_out_has_its_default() -> None:
    assert from_dict(TrainConfig, {"model": {"vocab_size": 7}}) == TrainConfig(
        model=ModelConfig(vocab_size=7)
    )


@pytest.mark.parametrize(
    "values", [{"stepz": 1}, {"model": {"stepz": 1}}, {"model": {"lexicon": {"stepz": 1}}}]
)
def test_an_unknown_field_is_an_error_at_any_depth(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"does not know \(stepz\)"):
        from_dict(TrainConfig, values)


@pytest.mark.parametrize("p", [-0.01, 1.01, float("nan")])
def test_a_share_outside_zero_to_one_is_an_error(p: float) -> None:
    with pytest.raises(UserError, match="from 0 to 1"):
        LexiconConfig(p=p)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_the_ends_of_the_range_are_allowed(p: float) -> None:
    assert LexiconConfig(p=p).p == p


@pytest.mark.parametrize(
    "name", ["vocab_size", "context", "n_layers", "width", "n_heads", "head_dim", "hidden"]
)
@pytest.mark.parametrize("value", [0, -3])
def test_sizes_below_one_are_errors_that_name_the_field(name: str, value: int) -> None:
    with pytest.raises(UserError, match=rf"model\.{name} is {value}: .*at least 1"):
        ModelConfig(**{name: value})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"width": 1000}, "8 heads x 128 is 1024, not 1000: change --model.n-heads"),
        ({"attention": "cudnn", "attention_dropout": 0.1}, "no dropout inside: set --model.attention xla"),
        ({"smeared_keys": True, "n_heads": 1, "head_dim": 1024}, "even --model.n-heads"),
    ],
)
def test_settings_that_do_not_go_together_are_errors(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ModelConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0 and steps is 250000: give both at least 1"),
        ({"steps": 0}, "steps is 0"),
        ({"accumulate": 0}, "in 0 equal parts"),
        ({"batch_size": 10, "accumulate": 4}, "A batch of 10 cannot be accumulated in 4 equal parts"),
        ({"decipher_every": 0}, "one position in 0: choose --decipher-every"),
        ({"decipher_every": 3}, "A context of 512 has no equal shares of one position in 3"),
    ],
)
def test_a_run_that_cannot_be_is_an_error(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TrainConfig(**fields)


def test_configurations_are_frozen_and_usable_as_keys() -> None:
    assert {CHANGED: 1}[dataclasses.replace(CHANGED)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        CHANGED.steps = 3  # type: ignore[misc]


def test_derived_sizes() -> None:
    config = ModelConfig(n_layers=3, width=8, n_heads=2, head_dim=4, hidden=10)
    assert config.n_matmul_parameters == 3 * (4 * 8 * 8 + 2 * 8 * 10)
    assert config.flop_per_token(20) == 6 * config.n_matmul_parameters + 12 * 3 * 2 * 4 * 20
    assert TrainConfig(model=config, batch_size=6).tokens_per_step == 6 * 512
