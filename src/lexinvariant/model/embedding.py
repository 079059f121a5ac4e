"""From a drawn lexicon to x_BTD, what the layers read: the rows of the symbols and, in a model that counts them, what
their occurrences so far tell.

Attention averages, and so it counts badly; but how often a symbol has come, and its place among the others, is what
first tells what it stands for. Only equality of symbols is used, so a lexinvariant model stays one.

Q statistics of a symbol's occurrences, G their buckets; the other axes are those of transformer.py.
"""

import jax
import jax.numpy as jnp

from lexinvariant.model.lexicon import Lexicon, rows_at
from lexinvariant.model.params import OCCURRENCE_BUCKETS, EmbeddingParams


def embed(
    embedding: EmbeddingParams, lexicon: Lexicon, dtype: jnp.dtype, statistic_BTQ: jax.Array | None = None
) -> jax.Array:
    """x_BTD: the rows of the symbols read, through the learnable scale and bias.

    `statistic_BTQ` is that of the positions at hand, where symbols stand before them that are not in the lexicon.
    """
    row_BTD = rows_at(lexicon.table, lexicon.input_BT).astype(jnp.float32)
    x_BTD = row_BTD * embedding.scale + embedding.bias
    if embedding.occurrence_QGD is not None:
        if statistic_BTQ is None:
            statistic_BTQ = occurrence_statistics(lexicon.input_BT)
        # A product with one-hot rows: its gradient is a product too, not a scatter.
        onehot_BTQG = jax.nn.one_hot(logarithmic_bucket(statistic_BTQ), OCCURRENCE_BUCKETS)
        x_BTD += jnp.einsum("btqg,qgd->btd", onehot_BTQG, embedding.occurrence_QGD)
    return x_BTD.astype(dtype)


def occurrence_statistics(tok_BT: jax.Array) -> jax.Array:
    """statistic_BTQ, whole numbers: of the symbol at each position and those before it alone.

    How often it came before; how many positions ago it came last, 0 if it is new; how many symbols have come more
    often; how often it came before after the same symbol as now; how many different symbols have come.
    """
    position_T = jnp.arange(tok_BT.shape[1])
    equal_BTS = tok_BT[:, :, None] == tok_BT[:, None, :]
    same_BTS = equal_BTS & (position_T < position_T[:, None])
    times_BT = jnp.sum(same_BTS, axis=2)
    last_BT = jnp.max(jnp.where(same_BTS, position_T, -1), axis=2, initial=-1)
    gap_BT = jnp.where(last_BT < 0, 0, position_T - last_BT)
    # How often each symbol has come up to t; the symbols are told apart by the positions s where they are new.
    came_BTS = jnp.where((times_BT == 0)[:, None, :], jnp.cumsum(equal_BTS, axis=1, dtype=jnp.int32), 0)
    more_frequent_BT = jnp.sum(came_BTS > times_BT[:, :, None] + 1, axis=2)
    distinct_BT = jnp.sum(came_BTS > 0, axis=2)
    same_before_BTS = jnp.pad(same_BTS, ((0, 0), (1, 0), (1, 0)))[:, :-1, :-1]
    pair_BT = jnp.sum(same_BTS & same_before_BTS, axis=2)
    return jnp.stack([times_BT, gap_BT, more_frequent_BT, pair_BT, distinct_BT], axis=2)


def logarithmic_bucket(n: jax.Array) -> jax.Array:
    """0, 1, 2, 3-4, 5-8, 9-16, ...: exact where a difference of one means most."""
    edges_G = jnp.array([0, *(2**k for k in range(OCCURRENCE_BUCKETS - 2))])
    return jnp.sum(n[..., None] > edges_G, axis=-1)
