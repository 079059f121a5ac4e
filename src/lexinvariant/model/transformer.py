"""The trunk: x_BTD -> h_BTD, and the forward function that training, scoring and probing share.

Shapes stand in names: B batch, T time (S the time attended to), V vocabulary, R rows of a drawn table, D width,
N heads, K head dimension, F hidden width. The parameters' own axes are told in params.py.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model.attention import (
    apply_dropout,
    bias_by_distance,
    bidirectional_attention,
    bidirectional_toeplitz,
    cached_attention,
    causal_attention,
    choose_implementation,
    rotate,
    toeplitz,
)
from lexinvariant.model.embedding import embed
from lexinvariant.model.layout import gathered, keep_rows_alone, split_by_row
from lexinvariant.model.lexicon import NO_CURRICULUM, Curriculum, draw_lexicon
from lexinvariant.model.params import Layer, Params, unstack
from lexinvariant.model.readout import log_likelihood
from lexinvariant.rng import fold_in_rows


def rms_norm(x: jax.Array, eps: float) -> jax.Array:
    """Without its scale, which goes into the matrix that follows (`fold_norm_scale`): there its gradient is cheap."""
    x32 = x.astype(jnp.float32)
    return (x32 * jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + eps)).astype(x.dtype)


def fold_norm_scale(scale_D: jax.Array, *matrices: jax.Array, dtype: Any) -> jax.Array:
    """Matrices side by side that read a normed input, with the norm's scale on their rows."""
    together = jnp.concatenate(matrices, axis=1) if len(matrices) > 1 else matrices[0]
    return (scale_D[:, None] * together).astype(dtype)


@jax.custom_vjp
def relu(x: jax.Array) -> jax.Array:
    """ReLU whose gradient looks at the output, so that only the output is kept, and the product before it gives that
    at once. The gradient asks for `!= 0`, because XLA turns `relu(x) > 0` into `x > 0`, and then keeps both."""
    return jnp.maximum(x, 0)


relu.defvjp(lambda x: (relu(x),) * 2, lambda y, dy: (jnp.where(y != 0, dy, 0),))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def unit_norm(x_BTNK: jax.Array, scale_N: jax.Array, eps: float) -> jax.Array:
    """L2-normalised over the head dimension, times a scale a head; float32 inside."""
    return _unit_norm_forward(x_BTNK, scale_N, eps)[0]


def _unit_norm_forward(x_BTNK: jax.Array, scale_N: jax.Array, eps: float) -> tuple[jax.Array, Any]:
    x32 = x_BTNK.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.sum(x32 * x32, axis=-1, keepdims=True) + eps)
    return (x32 * inverse * scale_N[:, None]).astype(x_BTNK.dtype), (x_BTNK, scale_N)


def _unit_norm_backward(eps: float, kept: Any, dy_BTNK: jax.Array) -> tuple[jax.Array, jax.Array]:
    # By hand, because the scale's gradient is then a sum of the row products that dx needs anyway, where
    # automatic differentiation would sum over all of dy once more.
    x_BTNK, scale_N = kept
    x32, dy32 = x_BTNK.astype(jnp.float32), dy_BTNK.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.sum(x32 * x32, axis=-1, keepdims=True) + eps)
    along = inverse * jnp.sum(x32 * dy32, axis=-1, keepdims=True)
    dx = scale_N[:, None] * inverse * (dy32 - x32 * inverse * along)
    return dx.astype(x_BTNK.dtype), jnp.sum(along[..., 0], axis=(0, 1))


unit_norm.defvjp(_unit_norm_forward, _unit_norm_backward)


def smear(k_BTNK: jax.Array, previous_B1NK: jax.Array, smear_N: jax.Array) -> jax.Array:
    """Mix into each key the key before it: k_t := (1-m) k_t + m k_(t-1), m one a head."""
    m_N1 = jax.nn.sigmoid(smear_N)[:, None]
    before_BTNK = jnp.concatenate([previous_B1NK, k_BTNK[:, :-1]], axis=1)
    mixed_BTNK = (1 - m_N1) * k_BTNK.astype(jnp.float32) + m_N1 * before_BTNK.astype(jnp.float32)
    return mixed_BTNK.astype(k_BTNK.dtype)


def project(layer: Layer, config: ModelConfig, n_BTD: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Queries, keys (not yet smeared) and values; the head's scale is in the queries.

    Queries and keys come out of one product, values out of their own: they go to attention as they are, and
    taking them out of a joint product would copy them.
    """
    by_head = (*n_BTD.shape[:2], config.n_heads, config.head_dim)
    qk = n_BTD @ fold_norm_scale(layer.attention_norm_D, layer.query_DE, layer.key_DE, dtype=n_BTD.dtype)
    v = n_BTD @ fold_norm_scale(layer.attention_norm_D, layer.value_DE, dtype=n_BTD.dtype)
    q_BTNK, k_BTNK = (part.reshape(by_head) for part in jnp.split(qk, 2, axis=2))
    if config.normalize_qk:
        q_BTNK = unit_norm(q_BTNK, layer.qk_scale_N, config.norm_eps)
        k_BTNK = unit_norm(k_BTNK, jnp.ones(config.n_heads), config.norm_eps)
    else:
        q_BTNK = q_BTNK * config.head_dim**-0.5
    return q_BTNK, k_BTNK, v.reshape(by_head)


def position_bias(layer: Layer, config: ModelConfig, table_WN: jax.Array | None, n: int) -> jax.Array | None:
    """bias_NT for each distance, with the head's scale on it where the paper's reference code has it; none where
    positions are rotary."""
    if table_WN is None:
        return None
    bias_NT = bias_by_distance(table_WN, n, config.position_max_distance)
    scaled = config.normalize_qk and config.bias_before_scale
    return bias_NT * layer.qk_scale_N[:, None] if scaled else bias_NT


def mlp(layer: Layer, config: ModelConfig, x_BTD: jax.Array) -> jax.Array:
    # One product of matrices over M = B*T rows, which XLA fuses with the ReLU.
    n_MD = rms_norm(x_BTD, config.norm_eps).reshape(-1, config.width)
    hidden_MF = relu(n_MD @ fold_norm_scale(layer.mlp_norm_D, layer.up_DF, dtype=x_BTD.dtype))
    return (hidden_MF @ layer.down_FD.astype(x_BTD.dtype)).reshape(x_BTD.shape)


class KeyValues(NamedTuple):
    """Keys and values as attention takes them; or a cache of them for all layers, along a first axis that the
    names leave out, as in params.py.
    """

    k_BSNK: jax.Array
    v_BSNK: jax.Array
    unsmeared_k_BSNK: jax.Array  # before `smear`; a cache has the newest alone, which the next key mixes in


def attend(
    layer: Layer,
    config: ModelConfig,
    q_BTNK: jax.Array,
    k_BTNK: jax.Array,
    v_BTNK: jax.Array,
    read_BT: jax.Array | None,
    cache: KeyValues | None,
    n_cached_B: jax.Array | None,
    dropout_key_B: jax.Array | None,
) -> jax.Array:
    """mixed_BTNK: the values that each position attends to; over what, `block` tells."""
    length = q_BTNK.shape[1] if cache is None else cache.k_BSNK.shape[1]
    past_NT = position_bias(layer, config, layer.position_WN, length)
    if cache is not None:
        assert n_cached_B is not None
        past_NT = None if past_NT is None else past_NT.astype(jnp.float32)
        return cached_attention(q_BTNK, k_BTNK, v_BTNK, cache.k_BSNK, cache.v_BSNK, n_cached_B, past_NT)
    if read_BT is not None:
        future_NT = position_bias(layer, config, layer.future_WN, length)
        bias_NTS = None
        if past_NT is not None and future_NT is not None:
            bias_NTS = bidirectional_toeplitz(past_NT, future_NT)
        implementation = choose_implementation(config.attention, q_BTNK.dtype)
        return bidirectional_attention(q_BTNK, k_BTNK, v_BTNK, bias_NTS, read_BT, implementation)
    rate = 0.0 if dropout_key_B is None else config.attention_dropout
    implementation = choose_implementation(config.attention, q_BTNK.dtype, has_dropout=rate > 0)
    bias_NTS = None if past_NT is None else toeplitz(past_NT)
    return causal_attention(q_BTNK, k_BTNK, v_BTNK, bias_NTS, implementation, rate, dropout_key_B)


def block(
    layer: Layer,
    config: ModelConfig,
    x_BTD: jax.Array,
    *,
    dropout_key_B: jax.Array | None = None,
    read_BT: jax.Array | None = None,
    cache: KeyValues | None = None,
    n_cached_B: jax.Array | None = None,
) -> tuple[jax.Array, KeyValues]:
    """Pre-norm attention and MLP, each added to the residual stream; and x's own keys and values, to be cached.

    Attention is causal. With `read_BT` it is over all of those positions, before and after. With a cache, x is one
    position after the first n_cached of the cache, over which attention is too.
    """
    keys = (None,) * 3 if dropout_key_B is None else tuple(fold_in_rows(dropout_key_B, i) for i in range(3))
    n_BTD = apply_dropout(rms_norm(x_BTD, config.norm_eps), config.dropout, keys[0])
    q_BTNK, unsmeared_BTNK, v_BTNK = project(layer, config, n_BTD)
    k_BTNK = unsmeared_BTNK
    if config.smeared_keys:
        before_B1NK = jnp.zeros_like(k_BTNK[:, :1]) if cache is None else cache.unsmeared_k_BSNK
        k_BTNK = smear(unsmeared_BTNK, before_B1NK, layer.smear_N)
    if config.positions == "rotary":
        position_BT = jnp.arange(x_BTD.shape[1])[None] if n_cached_B is None else n_cached_B[:, None]
        q_BTNK, k_BTNK = rotate(q_BTNK, position_BT), rotate(k_BTNK, position_BT)
    mixed_BTNK = attend(layer, config, q_BTNK, k_BTNK, v_BTNK, read_BT, cache, n_cached_B, keys[1])
    x_BTD = x_BTD + mixed_BTNK.reshape(x_BTD.shape) @ layer.out_ED.astype(x_BTD.dtype)
    x_BTD = x_BTD + apply_dropout(mlp(layer, config, x_BTD), config.dropout, keys[2])
    return x_BTD, KeyValues(k_BTNK, v_BTNK, unsmeared_BTNK)


def final_norm(params: Params, config: ModelConfig, x_BTD: jax.Array) -> jax.Array:
    n_BTD = rms_norm(x_BTD, config.norm_eps).astype(jnp.float32)
    return (n_BTD * params.final_norm_D).astype(x_BTD.dtype)


def trunk(
    params: Params, config: ModelConfig, x_BTD: jax.Array, dropout_key_B: jax.Array | None = None
) -> jax.Array:
    """The layers one after the other; dropout has a key a sequence, and below it one a layer."""

    def key_B(layer: int | jax.Array) -> jax.Array | None:
        return None if dropout_key_B is None else fold_in_rows(dropout_key_B, layer)

    def through(x_BTD: jax.Array, layer: Layer, i: int | jax.Array) -> jax.Array:
        return split_by_row(block(gathered(layer), config, x_BTD, dropout_key_B=key_B(i))[0])

    n_rows, length = x_BTD.shape[:2]
    through = keep_rows_alone(through, n_rows, n_rows * length)
    x_BTD = split_by_row(x_BTD)
    if jax.default_backend() == "cpu":
        # A scan compiles in a fraction of the time, and costs a CPU nothing; it costs a GPU a third of its speed.
        def scanned(x_BTD: jax.Array, each: tuple[Layer, jax.Array]) -> tuple[jax.Array, None]:
            return through(x_BTD, *each), None

        x_BTD, _ = jax.lax.scan(scanned, x_BTD, (params.layers, jnp.arange(config.n_layers)))
    else:
        for i, layer in enumerate(unstack(params.layers)):
            x_BTD = through(x_BTD, layer, i)
    return apply_dropout(final_norm(params, config, x_BTD), config.dropout, key_B(config.n_layers))


class ForwardOutput(NamedTuple):
    """What the model makes of a batch."""

    logp_BT: jax.Array  # log-probability of every symbol given those before it, nats
    h_BTD: jax.Array  # final state at every symbol, having read it


def forward(
    params: Params,
    config: ModelConfig,
    tok_BT: jax.Array,
    key_B: jax.Array,
    *,
    lexicon: LexiconConfig | None = None,
    curriculum: Curriculum = NO_CURRICULUM,
    dropout_key_B: jax.Array | None = None,
    dtype: Any = jnp.float32,
) -> ForwardOutput:
    """Draw a lexicon for each sequence from its key, read the sequences and score them.

    Training passes its own lexicon and curriculum; the default is the one that a trained model is used with.
    """
    used = lexicon or config.lexicon.at_evaluation
    drawn = draw_lexicon(used, config, params.embedding, key_B, tok_BT, dtype=dtype, curriculum=curriculum)
    h_BTD = trunk(params, config, embed(params.embedding, drawn, dtype), dropout_key_B)
    return ForwardOutput(log_likelihood(params, config, drawn, h_BTD), h_BTD)
