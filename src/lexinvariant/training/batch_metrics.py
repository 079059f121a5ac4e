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
    """Of predicting the next symbol, and of the deciphering head: by causal states, in hindsight and for the symbol to
    come. None for what the model does not have or what was not asked.
    """

    prediction: TokenSums
    deciphering: TokenSums | None = None
    hindsight: TokenSums | None = None
    next_deciphering: TokenSums | None = None
    seen: TokenSums | None = None  # prediction of symbols that have occurred before in their sequence
    new: TokenSums | None = None  # and of those that have not


def sum_over_tokens(
    loss_BT: jax.Array, mask_BT: jax.Array, correct_BT: jax.Array | None = None, every: int = 1
) -> TokenSums:
    """The sums of a whole context, or of one position in `every` of it."""
    length = mask_BT.shape[1]
    n_tail = -(-tail_length(length * every) // every)
    tail_BT = mask_BT & (jnp.arange(length) >= length - n_tail)
    return TokenSums(
        loss=jnp.sum(loss_BT, where=mask_BT),
        tokens=jnp.sum(mask_BT),
        tail_loss=jnp.sum(loss_BT, where=tail_BT),
        tail_tokens=jnp.sum(tail_BT),
        correct=None if correct_BT is None else jnp.sum(correct_BT, where=mask_BT),
        tail_correct=None if correct_BT is None else jnp.sum(correct_BT, where=tail_BT),
    )


_NAMES = {
    "prediction": ("loss", ""),
    "deciphering": ("decipher_loss", "deciphered"),
    "hindsight": ("hindsight_loss", "hindsight_deciphered"),
    "next_deciphering": ("decipher_next_loss", "next_deciphered"),
    "seen": ("seen_loss", ""),
    "new": ("new_loss", ""),
}
"""What the mean loss and the accuracy of each of a batch's sums are called."""


def batch_means(sums: BatchSums) -> dict[str, Any]:
    """Losses in nats per token and shares of symbols deciphered, in all and at the end of the context."""
    means: dict[str, Any] = {}
    for part, names in _NAMES.items():
        means |= token_means(getattr(sums, part), *names)
    if sums.new is not None:
        means["new_share"] = sums.new.tokens / jnp.maximum(sums.prediction.tokens, 1)
        means["tail_new_share"] = sums.new.tail_tokens / jnp.maximum(sums.prediction.tail_tokens, 1)
    return means


def means_of_nothing(sums: BatchSums) -> set[str]:
    """Names of the means above that no token counts in: their 0 would look like a triumph."""
    found: set[str] = set()
    for part, names in _NAMES.items():
        token_sums: TokenSums | None = getattr(sums, part)
        if token_sums is not None:
            found |= set() if token_sums.tokens else set(names)
            found |= set() if token_sums.tail_tokens else {f"tail_{name}" for name in names}
    return found if sums.prediction.tail_tokens else found | {"tail_new_share"}


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
