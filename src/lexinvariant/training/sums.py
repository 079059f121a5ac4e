"""What is measured of a batch: sums, so that parts of a batch and batches add up, and means in the end."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


def tail_length(context: int) -> int:
    """How many positions are "the end of the context": 100, as in the paper, or a fifth of a short context."""
    return min(100, -(-context // 5))


class Sums(NamedTuple):
    """Over all positions that count, and over those of them at the end of the context."""

    nats: jax.Array
    tokens: jax.Array
    tail_nats: jax.Array
    tail_tokens: jax.Array
    right: jax.Array | None  # best guesses that are right, where somebody guessed
    tail_right: jax.Array | None


class BatchSums(NamedTuple):
    """What the model predicted, and what its head named symbols; None for what it does not do."""

    predicted: Sums
    named: Sums | None = None
    in_hindsight: Sums | None = None


def sum_up(nats_BT: jax.Array, counts_BT: jax.Array, right_BT: jax.Array | None = None) -> Sums:
    """Reduce what was measured at every position."""
    length = counts_BT.shape[1]
    tail_BT = counts_BT & (jnp.arange(length) >= length - tail_length(length))
    return Sums(
        nats=jnp.sum(nats_BT, where=counts_BT),
        tokens=jnp.sum(counts_BT),
        tail_nats=jnp.sum(nats_BT, where=tail_BT),
        tail_tokens=jnp.sum(tail_BT),
        right=None if right_BT is None else jnp.sum(right_BT, where=counts_BT),
        tail_right=None if right_BT is None else jnp.sum(right_BT, where=tail_BT),
    )


def means(sums: BatchSums) -> dict[str, Any]:
    """Losses in nats a token and shares of symbols named rightly, in all and at the end of the context."""
    return (
        means_of(sums.predicted, "loss", "")
        | means_of(sums.named, "decipher_loss", "deciphered")
        | means_of(sums.in_hindsight, "hindsight_loss", "hindsight_deciphered")
    )


def means_of(sums: Sums | None, loss: str, right: str) -> dict[str, Any]:
    """One part's means, under these names; none, if it was not measured."""
    if sums is None:
        return {}
    sums = jax.tree.map(lambda x: x.astype(jnp.float32), sums)
    n, n_tail = jnp.maximum(sums.tokens, 1), jnp.maximum(sums.tail_tokens, 1)
    metrics = {loss: sums.nats / n, f"tail_{loss}": sums.tail_nats / n_tail}
    if sums.right is not None and sums.tail_right is not None:
        metrics |= {right: sums.right / n, f"tail_{right}": sums.tail_right / n_tail}
    return metrics
