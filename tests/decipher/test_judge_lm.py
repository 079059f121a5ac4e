"""The judge in NumPy: the same numbers as the model that was trained, each beginning read once."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from threadpoolctl import threadpool_info

from lexinvariant.api import Model
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.decipher.judge_lm import JudgeLM, load_judge, prefix_tree, single_threaded_blas
from lexinvariant.decipher.language import load_language
from lexinvariant.errors import UserError
from lexinvariant.model import params as model_params
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab

CONFIG = ModelConfig(
    context=64,
    n_layers=2,
    width=16,
    n_heads=2,
    head_dim=8,
    hidden=32,
    lexicon=LexiconConfig(kind="learned"),
    smeared_keys=True,
    position_buckets=8,
    position_max_distance=16,
)


def both(config: ModelConfig) -> tuple[Model, JudgeLM]:
    """A model with random weights, and the judge made of it."""
    rng = np.random.default_rng(0)
    params = jax.tree.map(
        lambda value: value + 0.3 * rng.normal(size=value.shape).astype(np.float32),
        model_params.init(config, seed=0),
    )
    tensors = {name: np.asarray(value) for name, value in model_params.flatten_named(params)}
    return Model(config, params, CharVocab()), JudgeLM(config, tensors, {chr(i): i for i in range(128)})


@pytest.mark.parametrize(
    "config", [CONFIG, replace(CONFIG, bias_before_scale=False, logit_scale="vocab", context=16)]
)
def test_readings_cost_what_the_model_says(config: ModelConfig) -> None:
    model, judge = both(config)
    texts = [
        "it was the best of times",
        "it was the best of tidal",
        "of times it was best hey",
        "it was the best of times",
    ]
    seen = [" " + text[: judge.max_characters] for text in texts]
    wanted = [-logp[1:].sum() for logp in model.score(seen)]
    np.testing.assert_allclose(judge.nats(texts), wanted, rtol=1e-4)
    np.testing.assert_allclose(judge.nats(texts[1:2]), wanted[1:2], rtol=1e-4)


def test_each_beginning_is_a_node() -> None:
    tok_NT = np.frombuffer(b"catcowcutdog", np.uint8).reshape(4, 3).astype(np.int64)
    node_NT, place_U = prefix_tree(tok_NT)
    assert node_NT.tolist() == [[0, 1, 2], [0, 3, 4], [0, 5, 6], [7, 8, 9]]
    assert bytes(tok_NT.ravel()[place_U].tolist()) == b"catowutdog"


def test_the_english_judge_prefers_english() -> None:
    judge = load_language().judge
    assert judge is not None
    english, other = judge.nats(
        ["the quick brown fox jumps over the lazy dog", "the quick brown fov jumps oxer the lazy dog"]
    )
    assert english < other - 5
    assert english / 43 < 2


def test_only_a_standard_model_reads() -> None:
    with pytest.raises(UserError, match="standard model"):
        JudgeLM(replace(CONFIG, lexicon=LexiconConfig(kind="permuted")), {}, {})


def test_products_get_their_cores_back() -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    with single_threaded_blas():
        assert set(threads()) <= {1}
    assert threads() == before


def test_a_judge_must_know_the_letters(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no token for 'ä'"):
        load_judge(load_language().folder / "judge", "aä")
    with pytest.raises(UserError, match="holds no model"):
        load_judge(tmp_path, "ab")


@pytest.mark.parametrize("damage", ["missing", "cut", "layers"])
def test_a_judge_that_does_not_fit_its_configuration_is_refused(tmp_path: Path, damage: str) -> None:
    config = replace(CONFIG, n_layers=1)
    save_model(tmp_path, config, model_params.init(config, seed=0), CharVocab())
    load_judge(tmp_path, "abc")
    tensors = load_file(tmp_path / "model.safetensors")
    if damage == "missing":
        del tensors["final_norm_D"]
    elif damage == "cut":
        tensors["layers.up_DF"] = tensors["layers.up_DF"][:, :, :3].copy()
    else:
        description = json.loads((tmp_path / "config.json").read_text())
        description["model"]["n_layers"] = 99
        (tmp_path / "config.json").write_text(json.dumps(description))
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"does not fit its config\.json: export the judge again"):
        load_judge(tmp_path, "abc")
