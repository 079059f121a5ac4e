"""What is measured of a batch: sums over tokens, so that microbatches and batches add up, and means in the end."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


def tail_length(context: int) -> int:
    """How many positions are "the end of the context": 100, as in the paper, or a fifth of a short context."""
    return min(100, -(-context // 5))


class TokenSums(NamedTuple):
    """Over all positions that count, and over those of them at the end of the context (tail)."""

    loss: jax.Array
    tokens: jax.Array
    tail_loss: jax.Array
    tail_tokens: jax.Array
    correct: jax.Array | None  # how often the likeliest symbol was the right one, where that was measured
    tail_correct: jax.Array | None


class BatchSums(NamedTuple):
    """Of predicting the next symbol, and of the deciphering head by causal states and in hindsight; None for what the
    model does not have.
    """

    prediction: TokenSums
    deciphering: TokenSums | None = None
    hindsight: TokenSums | None = None


def sum_over_tokens(loss_BT: jax.Array, mask_BT: jax.Array, correct_BT: jax.Array | None = None) -> TokenSums:
    length = mask_BT.shape[1]
    tail_BT = mask_BT & (jnp.arange(length) >= length - tail_length(length))
    return TokenSums(
        loss=jnp.sum(loss_BT, where=mask_BT),
        tokens=jnp.sum(mask_BT),
        tail_loss=jnp.sum(loss_BT, where=tail_BT),
        tail_tokens=jnp.sum(tail_BT),
        correct=None if correct_BT is None else jnp.sum(correct_BT, where=mask_BT),
        tail_correct=None if correct_BT is None else jnp.sum(correct_BT, where=tail_BT),
    )


def batch_means(sums: BatchSums) -> dict[str, Any]:
    """Losses in nats a token and shares of symbols deciphered, in all and at the end of the context."""
    return (
        token_means(sums.prediction, "loss", "")
        | token_means(sums.deciphering, "decipher_loss", "deciphered")
        | token_means(sums.hindsight, "hindsight_loss", "hindsight_deciphered")
    )


def token_means(sums: TokenSums | None, loss: str, accuracy: str) -> dict[str, Any]:
    """Means under these names; none, if nothing was measured."""
    if sums is None:
        return {}
    sums = jax.tree.map(lambda x: x.astype(jnp.float32), sums)
    n, n_tail = jnp.maximum(sums.tokens, 1), jnp.maximum(sums.tail_tokens, 1)
    metrics = {loss: sums.loss / n, f"tail_{loss}": sums.tail_loss / n_tail}
    if sums.correct is not None and sums.tail_correct is not None:
        metrics |= {accuracy: sums.correct / n, f"tail_{accuracy}": sums.tail_correct / n_tail}
    return metrics
