"""The likeliest continuation of many prompts at once.

At one draw of the lexicon it writes what `generate_tokens` writes as its temperature falls to nothing.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.continuation import DecodeState, decode_step, prefill
from lexinvariant.model.params import Params
from lexinvariant.model.ranks import check_prompt, n_ranks, symbols_by_rank, to_ranks
from lexinvariant.rng import evaluation_keys

MOST_BYTES = 2 << 30  # of keys and values, of all prompts and draws that are answered together


@jax.jit
def _likeliest(logp: list[jax.Array], total: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
    """(rank_B, each draw's new total_B), from each draw's logp_BR of the next rank and total_B of all before it.

    The rank is the likeliest by the average over draws of the probability of the whole sequence, as in scoring: each
    draw's vote is weighted by how well it has predicted what was read.
    """
    logp_KBR, total_KB = jnp.stack(logp), jnp.stack(total)
    weight_KB = jax.nn.log_softmax(total_KB, axis=0)
    rank_B = jnp.argmax(jax.nn.logsumexp(logp_KBR + weight_KB[:, :, None], axis=0), axis=1)
    chosen_KB = jnp.take_along_axis(logp_KBR, rank_B[None, :, None], axis=2)[:, :, 0]
    return rank_B, list(total_KB + chosen_KB)


def greedy_ranks(params: Params, config: ModelConfig, states: list[DecodeState], n_tokens: int) -> np.ndarray:
    """rank_BN: the likeliest ranks after prompts that were read under some draws, by all draws at once."""
    chosen = []
    total = [state.prompt_logp_B for state in states]
    for n in range(n_tokens):
        rank_B, total = _likeliest([state.logp_BR for state in states], total)
        chosen.append(np.asarray(rank_B))
        if n + 1 < n_tokens:
            states = [decode_step(params, config, state, rank_B) for state in states]
    return np.stack(chosen, axis=1)


def greedy_tokens(
    params: Params,
    config: ModelConfig,
    prompts: Sequence[np.ndarray],
    n_tokens: int,
    *,
    address_S: np.ndarray | None = None,
    seed: int = 0,
    draws: int = 1,
    batch_size: int = 16,
    dtype: str = "float32",
    pad_to: int = 0,
    advance: Callable[[int], None] = lambda n: None,
) -> np.ndarray:
    """tok_SN: the likeliest next token after each prompt, n_tokens times over.

    A prompt's lexicons come from its address (its number, unless told) and the number of the draw, so its
    continuation depends on no other prompt and on no batch size.
    Prompts are padded to the longest, or to `pad_to` tokens where that is more: calls of one length share a program.
    `advance` is told how many more prompts are done.
    """
    if n_tokens < 1 or draws < 1 or batch_size < 1:
        raise UserError(
            f"Greedy continuation needs n_tokens, draws and batch_size of at least 1: got {n_tokens}, {draws} and "
            f"{batch_size}."
        )
    for prompt_T in prompts:
        check_prompt(config, prompt_T, n_tokens)
    draws = draws if config.lexicon.is_random else 1
    address_S = np.arange(len(prompts)) if address_S is None else address_S
    longest = max(pad_to, *map(len, prompts)) if prompts else 0
    length = -(-longest // 8) * 8  # few shapes to compile, and ones that fused attention takes

    tok_SN = np.zeros((len(prompts), n_tokens), np.int64)
    batch_size = min(batch_size, max(len(prompts), 1), _most_prompts(config, length + n_tokens, draws, dtype))
    for start in range(0, len(prompts), batch_size):
        # The last batch is filled up with repeats that are cut off again: one shape, one compilation.
        index_B = np.minimum(np.arange(start, start + batch_size), len(prompts) - 1)
        rank_BT = np.zeros((batch_size, length), np.int32)
        for b, i in enumerate(index_B):
            rank_BT[b, : len(prompts[i])] = to_ranks(config, prompts[i])
        n_B = np.array([len(prompts[i]) for i in index_B], np.int32)
        states = [
            prefill(
                params,
                config,
                evaluation_keys(seed, jnp.asarray(address_S[index_B], jnp.uint32), k),
                rank_BT,
                n_B,
                n_ranks=n_ranks(config, length + n_tokens),
                max_new_tokens=n_tokens,
                score_prompts=draws > 1,
                dtype=dtype,
            )
            for k in range(draws)
        ]
        chosen_BN = greedy_ranks(params, config, states, n_tokens)
        for b, i in enumerate(index_B[: len(prompts) - start]):
            tok_SN[i] = symbols_by_rank(config, prompts[i], seed)[chosen_BN[b]]
        advance(min(batch_size, len(prompts) - start))
    return tok_SN


def _most_prompts(config: ModelConfig, length: int, draws: int, dtype: str) -> int:
    """How many prompts to read at a time, since what all draws have read is held in memory until they are answered."""
    numbers = 2 * config.n_layers * config.n_heads * config.head_dim * length
    return max(1, MOST_BYTES // (draws * numbers * jnp.dtype(dtype).itemsize))
