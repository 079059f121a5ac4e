"""Configurations survive JSON, refuse what they do not know, and say what is wrong with a value."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.config import LexiconConfig, ModelConfig, TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.presets import PRESETS
from lexinvariant.settings import from_dict, to_json

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
    with pytest.raises(UserError, match=r"from 0 to 1|p is nan: give a finite number"):
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
        ({"batch_size": 0}, "batch_size is 0: give a number of at least 1"),
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


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": {"norm_eps": float("nan")}}, "model.norm_eps is nan: give a finite number"),
        ({"model": {"norm_eps": 0.0}}, "model.norm_eps is 0.0: give a number above 0"),
        ({"model": {"attention": "magic"}}, "model.attention is 'magic': it is one of auto, xla, cudnn"),
        ({"model": {"width": "64"}}, "model.width is '64': give a whole number"),
        ({"model": {"context": 10**9}}, "model.context is 1000000000: give at most 1048576"),
        ({"model": {"n_layers": 2.5}}, "model.n_layers is 2.5: give a whole number"),
        ({"model": {"n_layers": True}}, "model.n_layers is True: give a whole number"),
        ({"model": {"smeared_keys": 1}}, "model.smeared_keys is 1: give true or false"),
        ({"model": {"width": {"lexicon": {}}}}, "model.width is .*: give a whole number"),
        ({"model": {"lexicon": 3}}, "its settings are not an object"),
        ({"model": {"lexicon": {"exempt": "abc"}}}, "lexicon.exempt is 'abc': give a list"),
        ({"model": {"lexicon": {"exempt": [1, "a"]}}}, "lexicon.exempt is 'a': give a whole number"),
        ({"model": {"lexicon": {"kind": ["gaussian"]}}}, "There is no lexicon kind"),
        ({"model": {"position_buckets": 0}}, "model.position_buckets is 0: give a number of at least 2"),
        ({"model": {"position_max_distance": 16}}, "model.position_max_distance is 16"),
        ({"model": {"dropout": 1.0}}, "model.dropout is 1.0: give a share"),
        ({"optimizer": {"rate": float("inf")}}, "optimizer.rate is inf: give a finite number"),
        ({"run": {"log_every": 0}}, "run.log_every is 0: give a number of at least 1"),
        ({"run": {"stop_after_minutes": float("nan")}}, "run.stop_after_minutes is nan"),
        ({"run": {"spike_factor": -1.0}}, "run.spike_factor is -1.0: give a number above 1, or 0"),
        ({"data": {"path": 3}}, "data.path is 3: give a text"),
        ({"sharding": {"data": -1}}, "sharding.data is -1: give a number of at least 0"),
        ({"steps": 3_000_000_000}, "steps is 3000000000: give a number of at most 2147483647"),
        ({"batch_size": 10**30}, "batch_size is 10*: give a number of at most"),
        ({"model": {"vocab_size": 10**12}}, "model.vocab_size is 10*: give a number of at most"),
        ({"model": {"hindsight_layers": 10**6}}, "model.hindsight_layers is 1000000: give at most 1024"),
        ({"optimizer": {"warmup_steps": 10**12}}, "optimizer.warmup_steps is 10*: give a number of at most"),
        ({"optimizer": {"beta1": 1.5}}, "optimizer.beta1 is 1.5: give a number from 0 to below 1"),
        (
            {"optimizer": {"final_rate_share": -5.0}},
            "optimizer.final_rate_share is -5.0: give a number of at least 0",
        ),
        ({"seed": 1 << 70}, "seed is .*: give a number of at most 63 bits"),
        ([], "its settings are not an object"),
    ],
)
def test_wrong_types_and_numbers_that_are_none_are_told_in_one_sentence(wrong: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        from_dict(TrainConfig, wrong)
    assert "\n" not in str(caught.value)


def test_configurations_are_frozen_and_usable_as_keys() -> None:
    assert {CHANGED: 1}[dataclasses.replace(CHANGED)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        CHANGED.steps = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("model.contxt", "did you mean 'model.context'?"),
        ("modl.context", "did you mean 'model.context'?"),
        ("model.lexicon.knd", "did you mean 'model.lexicon.kind'?"),
        ("eval_every", "did you mean 'run.eval_every'?"),
        ("contxt", "did you mean 'model.context'?"),
        ("steps.more", "a setting has no parts."),
        ("something", "`lexinvariant train tiny --help` lists all."),
    ],
)
def test_a_mistyped_setting_is_answered_with_its_whole_name(name: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        CHANGED.changed({name: 3})
    assert str(caught.value) == f"There is no setting {name!r}: {hint}"


def test_a_group_of_settings_cannot_be_a_value_and_have_parts() -> None:
    with pytest.raises(UserError, match=r"model\.lexicon is 'gaussian': give settings of its own"):
        CHANGED.changed({"model.lexicon": "gaussian", "model.lexicon.p": 0.1})
    with pytest.raises(UserError, match="no setting 3"):
        CHANGED.changed({3: 4})  # type: ignore[dict-item]


def test_settings_that_are_places_may_be_paths() -> None:
    changed = CHANGED.changed({"data.path": Path("data") / "mine", "init": Path("bundled")})
    assert (changed.data.path, changed.init) == (str(Path("data") / "mine"), "bundled")
    assert from_dict(TrainConfig, json.loads(to_json(changed))) == changed


def test_derived_sizes() -> None:
    config = ModelConfig(n_layers=3, width=8, n_heads=2, head_dim=4, hidden=10)
    assert config.n_matmul_parameters == 3 * (4 * 8 * 8 + 2 * 8 * 10)
    assert config.flop_per_token(20) == 6 * config.n_matmul_parameters + 12 * 3 * 2 * 4 * 20
    assert TrainConfig(model=config, batch_size=6).tokens_per_step == 6 * 512
