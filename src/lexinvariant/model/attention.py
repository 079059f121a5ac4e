"""Attention with T5's relative position bias: cuDNN's fused kernel on GPUs, plain XLA elsewhere."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.model.position import distance_buckets

MASKED = -1e30  # a finite minus infinity: its softmax is 0 and its gradient is not NaN


def bias_by_distance(position_WN: jax.Array, n: int, max_distance: int) -> jax.Array:
    """bias_NT of every distance. A masked sum: its gradient is one too, not a scatter."""
    buckets = distance_buckets(n, position_WN.shape[0], max_distance)
    is_bucket_1TW = (buckets[:, None] == np.arange(position_WN.shape[0]))[None]
    return jnp.sum(jnp.where(is_bucket_1TW, position_WN.astype(jnp.float32).T[:, None], 0.0), axis=2)


def toeplitz(bias_NT: jax.Array) -> jax.Array:
    """bias_NTS[n, t, s] = bias_NT[n, t - s] for s <= t, and 0 for the rest.

    Row t is [b_t ... b_1 b_0 0 ...]: the row [b_0 0 ... 0 b_(T-1) ... b_1], of length 2T, turned by t. Repeating
    it and cutting the repetition into rows of 2T-1 turns each row by one more. These are reshapes, and so is
    their gradient, where indexing would give a scatter-add.
    """
    n_heads, length = bias_NT.shape
    zeros_NT = jnp.zeros((n_heads, length), bias_NT.dtype)
    turned = jnp.concatenate([bias_NT[:, :1], zeros_NT, bias_NT[:, :0:-1]], axis=1)
    repeated = jnp.broadcast_to(turned[:, None, :], (n_heads, length, 2 * length)).reshape(n_heads, -1)
    rows = repeated[:, : length * (2 * length - 1)].reshape(n_heads, length, 2 * length - 1)
    return rows[:, :, :length]


def bidirectional_toeplitz(past_NT: jax.Array, future_NT: jax.Array) -> jax.Array:
    """bias_NTS[n, t, s] = past_NT[n, t - s] for s <= t, and future_NT[n, s - t] for s > t."""
    future_NT = future_NT.at[:, 0].set(0.0)  # a position's distance to itself, 0, has its bias from past_NT
    return toeplitz(past_NT) + jnp.swapaxes(toeplitz(future_NT), 1, 2)


def rotate(x_BTNK: jax.Array, position_BT: jax.Array) -> jax.Array:
    """Rotary positions (Su et al., 2021): pairs of a head's numbers turned by angles that grow with the position, each
    pair at a speed of its own, so that products of queries and keys depend on distances alone.
    """
    half = x_BTNK.shape[3] // 2
    speed = 10_000.0 ** -(np.arange(half, dtype=np.float32) / half)
    angle_BT1K = position_BT.astype(jnp.float32)[:, :, None, None] * speed
    a, b = jnp.split(x_BTNK.astype(jnp.float32), 2, axis=3)
    cos, sin = jnp.cos(angle_BT1K), jnp.sin(angle_BT1K)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=3).astype(x_BTNK.dtype)


def causal_attention(
    q_BTNK: jax.Array,
    k_BTNK: jax.Array,
    v_BTNK: jax.Array,
    bias_NTS: jax.Array | None,
    implementation: Literal["xla", "cudnn"],
    dropout: float = 0.0,
    dropout_key_B: jax.Array | None = None,
) -> jax.Array:
    """Attention of every position over itself and those before; scales are already in q and in the bias."""
    if implementation == "cudnn":
        bias_1NTS = None if bias_NTS is None else bias_NTS.astype(q_BTNK.dtype)[None]
        return jax.nn.dot_product_attention(
            q_BTNK, k_BTNK, v_BTNK, bias=bias_1NTS, scale=1.0, is_causal=True, implementation="cudnn"
        )
    length = q_BTNK.shape[1]
    causal_TS = jnp.tril(jnp.ones((length, length), bool))
    return _masked_attention(q_BTNK, k_BTNK, v_BTNK, bias_NTS, causal_TS, dropout, dropout_key_B)


def bidirectional_attention(
    q_BTNK: jax.Array,
    k_BTNK: jax.Array,
    v_BTNK: jax.Array,
    bias_NTS: jax.Array | None,
    read_BT: jax.Array,
    implementation: Literal["xla", "cudnn"] = "xla",
) -> jax.Array:
    """Attention of every position over all positions of `read_BT`, a prefix, before it and after it."""
    if implementation == "cudnn":
        bias_1NTS = None if bias_NTS is None else bias_NTS.astype(q_BTNK.dtype)[None]
        # At least one, as attention over nothing would be NaN, and no mask stops the gradient of that.
        n_read_B = jnp.maximum(jnp.sum(read_BT, axis=1, dtype=jnp.int32), 1)
        return jax.nn.dot_product_attention(
            q_BTNK,
            k_BTNK,
            v_BTNK,
            bias=bias_1NTS,
            key_value_seq_lengths=n_read_B,
            scale=1.0,
            implementation="cudnn",
        )
    return _masked_attention(q_BTNK, k_BTNK, v_BTNK, bias_NTS, read_BT[:, None, None, :])


def _masked_attention(
    q_BTNK: jax.Array,
    k_BTNK: jax.Array,
    v_BTNK: jax.Array,
    bias_NTS: jax.Array | None,
    mask: jax.Array,
    dropout: float = 0.0,
    dropout_key_B: jax.Array | None = None,
) -> jax.Array:
    logits_BNTS = jnp.einsum("btnk,bsnk->bnts", q_BTNK, k_BTNK, preferred_element_type=jnp.float32)
    if bias_NTS is not None:
        logits_BNTS += bias_NTS
    logits_BNTS = jnp.where(mask, logits_BNTS, MASKED)
    weight_BNTS = apply_dropout(jax.nn.softmax(logits_BNTS, axis=-1), dropout, dropout_key_B)
    return jnp.einsum("bnts,bsnk->btnk", weight_BNTS.astype(v_BTNK.dtype), v_BTNK)


def cached_attention(
    q_B1NK: jax.Array,
    k_B1NK: jax.Array,
    v_B1NK: jax.Array,
    past_k_BSNK: jax.Array,
    past_v_BSNK: jax.Array,
    n_past_B: jax.Array,
    bias_NS: jax.Array | None,
) -> jax.Array:
    """Attention of one new position over itself and the first n_past of the cached ones; bias_NS by distance.

    The new key and value stand beside the cache and are not written into it: one copy less.
    """
    distance_BS = n_past_B[:, None] - jnp.arange(past_k_BSNK.shape[1])
    past_BNS = jnp.einsum("bnk,bsnk->bns", q_B1NK[:, 0], past_k_BSNK, preferred_element_type=jnp.float32)
    now_BN1 = jnp.einsum("bonk,bonk->bno", q_B1NK, k_B1NK, preferred_element_type=jnp.float32)
    if bias_NS is not None:
        past_BNS += bias_NS[:, jnp.maximum(distance_BS, 0)].swapaxes(0, 1)
        now_BN1 += bias_NS[:, :1]
    past_BNS = jnp.where(distance_BS[:, None] > 0, past_BNS, MASKED)
    weight = jax.nn.softmax(jnp.concatenate([past_BNS, now_BN1], axis=2)).astype(v_B1NK.dtype)
    mixed_BNK = jnp.einsum("bns,bsnk->bnk", weight[:, :, :-1], past_v_BSNK) + weight[:, :, -1:] * v_B1NK[:, 0]
    return mixed_BNK[:, None]


def apply_dropout(x: jax.Array, rate: float, key_B: jax.Array | None) -> jax.Array:
    """Dropout with a key for each sequence: its mask does not depend on what else is in the batch."""
    if key_B is None or rate == 0:
        return x
    kept = jax.vmap(lambda key: jax.random.bernoulli(key, 1 - rate, x.shape[1:]))(key_B)
    return jnp.where(kept, x / (1 - rate), 0).astype(x.dtype)


def choose_implementation(
    wanted: str, dtype: jnp.dtype, *, has_dropout: bool = False
) -> Literal["xla", "cudnn"]:
    """`auto` is cuDNN where it can run: on a GPU, in 16-bit, without dropout inside."""
    if wanted == "auto":
        can_run = jax.default_backend() == "gpu" and jnp.dtype(dtype).itemsize == 2 and not has_dropout
        return "cudnn" if can_run else "xla"
    return "cudnn" if wanted == "cudnn" else "xla"
