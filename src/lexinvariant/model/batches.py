"""Many sequences through a model in batches of one shape, for whatever is measured at every position."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import ForwardOutput, forward
from lexinvariant.rng import evaluation_keys


@partial(jax.jit, static_argnames=("config", "dtype"))
def _forward(
    params: Params, config: ModelConfig, tok_BT: jax.Array, key_B: jax.Array, dtype: str
) -> ForwardOutput:
    return forward(params, config, tok_BT, key_B, dtype=jnp.dtype(dtype))


def forward_batches(
    params: Params,
    config: ModelConfig,
    tok_ST: np.ndarray,
    address_S: np.ndarray,
    *,
    seed: int = 0,
    draw: int = 0,
    batch_size: int = 16,
    dtype: str = "float32",
) -> Iterator[tuple[slice, ForwardOutput]]:
    """Read the sequences in order; yields which ones, and the model's output for them (on the device).

    A sequence's lexicon comes from its address (the number of its piece) and the draw's number, so that
    nothing measured depends on the batch size or on the other sequences.
    """
    batch_size = min(batch_size, len(tok_ST))
    for start in range(0, len(tok_ST), batch_size):
        rows = slice(start, min(start + batch_size, len(tok_ST)))
        n_real = rows.stop - start
        # The last batch is filled up with repeats that are cut off again: one shape, one compilation.
        index_B = np.minimum(np.arange(start, start + batch_size), len(tok_ST) - 1)
        key_B = evaluation_keys(seed, jnp.asarray(address_S[index_B]), draw)
        output = _forward(params, config, jnp.asarray(tok_ST[index_B]), key_B, dtype)
        yield rows, ForwardOutput(*(value[:n_real] for value in output))
