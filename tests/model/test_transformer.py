"""The trunk against an independent float64 implementation, and each of its parts and switches."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model import transformer
from lexinvariant.model.attention import apply_dropout
from lexinvariant.model.lexicon import first_occurrence
from lexinvariant.model.params import Params, is_spec, specs

B, T = 2, 24
PAPER = ModelConfig(vocab_size=9, context=T, n_layers=2, width=16, n_heads=2, head_dim=8, hidden=24)
TOK = np.random.default_rng(0).integers(0, 9, (B, T)).astype(np.int32)
KEYS = jax.random.split(jax.random.key(5), B)
ONE_LAYER = replace(PAPER, n_layers=1)
SWITCHED = {
    "logits by vocabulary": replace(ONE_LAYER, logit_scale="vocab"),
    "bias after scale": replace(ONE_LAYER, bias_before_scale=False),
    "affine a channel": replace(ONE_LAYER, lexicon=LexiconConfig(affine="channel")),
    "plain dot products": replace(ONE_LAYER, normalize_qk=False),
    "smeared keys": replace(ONE_LAYER, smeared_keys=True),
    "rotary positions": replace(ONE_LAYER, smeared_keys=True, positions="rotary"),
}


def random_params(config: ModelConfig) -> Params:
    """Every parameter from its own name, so that variants share what they have in common."""

    def fill(path: Any, spec: Any) -> jax.Array:
        name = jax.tree_util.keystr(path)
        rng = np.random.default_rng(list(name.encode()))
        middle = 4.0 if "scale" in name else 0.0  # symbols differ, and attention tells them apart
        return jnp.asarray(rng.normal(middle, 0.7, spec.shape), jnp.float32)

    return jax.tree_util.tree_map_with_path(fill, specs(config), is_leaf=is_spec)


_forward = partial(jax.jit, static_argnames=("config", "dtype"))(transformer.forward)


def rms(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def t5_bucket(distance: int) -> int:
    if distance < 16:
        return distance
    return min(31, 16 + int(np.log(distance / 16) / np.log(128 / 16) * 16))


def turned(x_TK: np.ndarray) -> np.ndarray:
    """Each pair of numbers as one complex number, times a power of its own unit number."""
    half = x_TK.shape[1] // 2
    unit_K = np.exp(1j * 10_000.0 ** (-np.arange(half) / half))
    pair_TK = (x_TK[:, :half] + 1j * x_TK[:, half:]) * unit_K ** np.arange(len(x_TK))[:, None]
    return np.concatenate([pair_TK.real, pair_TK.imag], axis=1)


def reference(config: ModelConfig, params: Params, table_BVD: np.ndarray, rank_BT: np.ndarray) -> tuple:
    """(logp_BT, h_BTD) in float64, written from the paper's recipe with loops over heads and positions."""
    p = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    states, scores = [], []
    for table_VD, rank_T in zip(table_BVD.astype(np.float64), rank_BT, strict=True):
        x = table_VD[rank_T] * p.embedding.scale + p.embedding.bias
        for i in range(config.n_layers):
            layer = jax.tree.map(lambda leaf, i=i: leaf[i], p.layers)
            n = rms(x) * layer.attention_norm_D
            mixed = []
            for head in range(config.n_heads):
                part = slice(head * config.head_dim, (head + 1) * config.head_dim)
                q, k, v = (n @ w[:, part] for w in (layer.query_DE, layer.key_DE, layer.value_DE))
                if config.normalize_qk:
                    q, k = (y / np.sqrt(np.sum(y**2, axis=1, keepdims=True) + 1e-6) for y in (q, k))
                    scale = layer.qk_scale_N[head]
                else:
                    scale = config.head_dim**-0.5
                if config.smeared_keys:
                    m = 1 / (1 + np.exp(-layer.smear_N[head]))
                    k = np.stack([(1 - m) * k[t] + (m * k[t - 1] if t else 0) for t in range(T)])
                if config.positions == "rotary":
                    q, k = turned(q), turned(k)
                out = np.zeros_like(v)
                for t in range(T):
                    bias = np.zeros(t + 1)
                    if config.positions == "bias":
                        bias = np.array([layer.position_WN[t5_bucket(t - s), head] for s in range(t + 1)])
                    together = config.normalize_qk and config.bias_before_scale
                    logits = scale * (k[: t + 1] @ q[t] + (bias if together else 0)) + (
                        0 if together else bias
                    )
                    weight = np.exp(logits - logits.max())
                    out[t] = weight / weight.sum() @ v[: t + 1]
                mixed.append(out)
            x = x + np.concatenate(mixed, axis=1) @ layer.out_ED
            x = x + np.maximum(rms(x) * layer.mlp_norm_D @ layer.up_DF, 0) @ layer.down_FD
        h = rms(x) * p.final_norm_D
        divisor = np.sqrt(config.width if config.logit_scale == "width" else config.vocab_size)
        logits_TV = np.concatenate([p.start_D[None], h[:-1]]) @ table_VD.T / divisor
        normaliser = np.log(np.sum(np.exp(logits_TV), axis=1))
        states.append(h)
        scores.append(logits_TV[np.arange(T), rank_T] - normaliser)
    return np.stack(scores), np.stack(states)


def drawn_gaussian() -> tuple[np.ndarray, np.ndarray]:
    table_BVD = jax.vmap(lambda key: jax.random.normal(key, (9, 16), jnp.float32))(KEYS)
    return np.asarray(table_BVD), np.asarray(first_occurrence(jnp.asarray(TOK)))


def relative_error(ours: Any, expected: np.ndarray) -> float:
    return float(np.abs(np.asarray(ours, np.float64) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("config", [PAPER, *SWITCHED.values()], ids=["paper", *SWITCHED])
def test_forward_equals_an_independent_float64_implementation(config: ModelConfig) -> None:
    params = random_params(config)
    logp_BT, h_BTD = reference(config, params, *drawn_gaussian())
    output = _forward(params, config, TOK, KEYS)
    assert relative_error(output.h_BTD, h_BTD) < 1e-4
    assert relative_error(output.logp_BT, logp_BT) < 1e-4


@pytest.mark.parametrize("config", SWITCHED.values(), ids=SWITCHED)
def test_every_switch_changes_the_result(config: ModelConfig) -> None:
    scores = [reference(c, random_params(c), *drawn_gaussian())[0] for c in (ONE_LAYER, config)]
    assert relative_error(*scores) > 1e-2


def test_one_number_a_channel_can_be_the_scalar_affine() -> None:
    params = random_params(ONE_LAYER)
    wide = jax.tree.map(lambda number: jnp.full(16, number), params.embedding)
    ours = _forward(replace(params, embedding=wide), SWITCHED["affine a channel"], TOK, KEYS).logp_BT
    expected, _ = reference(ONE_LAYER, params, *drawn_gaussian())
    assert relative_error(ours, expected) < 1e-4


def test_the_future_does_not_alter_the_past() -> None:
    params, changed = random_params(PAPER), TOK.copy()
    changed[:, 15:] = (changed[:, 15:] + 1) % 9
    before, after = (_forward(params, PAPER, tok, KEYS) for tok in (TOK, changed))
    np.testing.assert_array_equal(before.h_BTD[:, :15], after.h_BTD[:, :15])
    np.testing.assert_array_equal(before.logp_BT[:, :15], after.logp_BT[:, :15])
    assert np.all(np.any(np.asarray(before.h_BTD != after.h_BTD)[:, 15:], axis=2))


def test_bfloat16_differs_by_rounding_only() -> None:
    config = replace(SWITCHED["smeared keys"], lexicon=LexiconConfig(kind="learned"))
    params = random_params(config)
    logp_BT, h_BTD = reference(config, params, np.stack([np.asarray(params.embedding.table_VD)] * B), TOK)
    half = _forward(params, config, TOK, KEYS, dtype=jnp.bfloat16)
    assert half.h_BTD.dtype == jnp.bfloat16
    assert half.logp_BT.dtype == jnp.float32
    assert 1e-4 < relative_error(half.h_BTD, h_BTD) < 0.05
    assert relative_error(half.logp_BT, logp_BT) < 0.03


def test_dropout_acts_only_when_a_key_is_given() -> None:
    config, params = replace(ONE_LAYER, dropout=0.2, attention_dropout=0.2), random_params(ONE_LAYER)
    expected, _ = reference(ONE_LAYER, params, *drawn_gaussian())
    assert relative_error(_forward(params, config, TOK, KEYS).logp_BT, expected) < 1e-4
    first, again, other = (
        np.asarray(
            _forward(params, config, TOK, KEYS, dropout_key_B=jax.random.split(jax.random.key(k), B)).h_BTD
        )
        for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    assert np.mean(first == 0) == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize("which", ["dropout", "attention_dropout"])
def test_what_is_dropped_of_a_row_does_not_depend_on_the_batch(which: str) -> None:
    config, params = replace(PAPER, **{which: 0.3}), random_params(PAPER)
    tok, keys, dropout_keys = np.tile(TOK, (2, 1)), jnp.tile(KEYS, 2), jax.random.split(jax.random.key(1), 4)
    four = np.asarray(_forward(params, config, tok, keys, dropout_key_B=dropout_keys).h_BTD)
    two = _forward(params, config, tok[1:3], keys[1:3], dropout_key_B=dropout_keys[1:3]).h_BTD
    np.testing.assert_allclose(two, four[1:3], rtol=1e-4, atol=1e-5)
    assert np.abs(four[0] - four[2]).max() > 0.1, "the same text and lexicon under another key"


def test_dropping_keeps_the_mean() -> None:
    x = jnp.ones((100, 100))
    key_B = jax.random.split(jax.random.key(0), 100)
    dropped = np.asarray(apply_dropout(x, 0.25, key_B))
    np.testing.assert_allclose(np.unique(dropped), [0, 4 / 3], rtol=1e-6)
    assert dropped.mean() == pytest.approx(1, abs=0.03)
    np.testing.assert_array_equal(apply_dropout(x, 0.0, key_B), x)


def test_the_gradient_of_relu_is_that_of_the_formula() -> None:
    x = jnp.asarray([-2.0, -0.0, 0.0, 0.5, 3.0])
    np.testing.assert_array_equal(transformer.relu(x), [0, 0, 0, 0.5, 3])
    dy = jnp.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(jax.vjp(transformer.relu, x)[1](dy)[0], [0, 0, 0, 4, 5])


@jax.jit
def _gradients_of_both(x: jax.Array, scale: jax.Array, dy: jax.Array) -> tuple:
    def plain(x: jax.Array, scale: jax.Array) -> jax.Array:
        return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-6) * scale[:, None]

    ours, pullback = jax.vjp(lambda *args: transformer.unit_norm(*args, 1e-6), x, scale)
    formula, plain_pullback = jax.vjp(plain, x, scale)
    return (ours, *pullback(dy)), (formula, *plain_pullback(dy))


def test_the_gradients_of_unit_norm_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    x, dy = (rng.normal(size=(2, 5, 3, 4)).astype(np.float32) for _ in range(2))
    x[0, 0] *= 1e-4  # where eps matters
    ours, formula = _gradients_of_both(x, rng.normal(size=3).astype(np.float32), dy)
    for mine, expected in zip(ours, formula, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-4, atol=1e-5)


def test_smearing_equals_a_loop() -> None:
    rng = np.random.default_rng(0)
    k, previous = (
        rng.normal(size=(2, 6, 3, 4)).astype(np.float32),
        rng.normal(size=(2, 1, 3, 4)).astype(np.float32),
    )
    s = np.array([-30.0, 0.4, 30.0], np.float32)
    smeared = np.asarray(transformer.smear(jnp.asarray(k), jnp.asarray(previous), jnp.asarray(s)))
    m = (1 / (1 + np.exp(-s)))[:, None]
    before = previous[:, 0]
    for t in range(6):
        np.testing.assert_allclose(smeared[:, t], (1 - m) * k[:, t] + m * before, rtol=1e-5, atol=1e-6)
        before = k[:, t]
    np.testing.assert_allclose(smeared[:, 1:, 2], k[:, :-1, 2], rtol=1e-6)


def test_rms_norm_makes_the_mean_square_one_in_either_precision() -> None:
    x = np.random.default_rng(0).normal(size=(3, 64)) * 100
    for dtype, tolerance in ((jnp.float32, 1e-5), (jnp.bfloat16, 2e-2)):
        normed = transformer.rms_norm(jnp.asarray(x, dtype), 1e-6)
        assert normed.dtype == dtype
        np.testing.assert_allclose(np.mean(np.asarray(normed, np.float64) ** 2, axis=1), 1, rtol=tolerance)
