"""The model's posterior over the key after every symbol, from one causal pass over the text.

At each position the deciphering head says what the symbol just read stands for, given all that stands before it. A
symbol's row is what the head said at its occurrences so far, each one counting less (the language's `trace_decay`, a
half) than the one after it: a later occurrence has seen everything an earlier one had, so adding them up evenly would
count evidence twice, while the last one alone flickers. (Over 40 pieces of held-out prose and code the true character
costs 0.78 nats a symbol after 512 symbols so, 0.80 with the last occurrence alone and 0.85 with an almost even mean.)
Rows and columns are then balanced (Sinkhorn), because no two symbols stand for one character (homophones apart): that
takes 0.15 nats off, the largest gain of all. More than one draw of the lexicon changes less than 0.01 nats, so one is
drawn.

S symbols of the key, T positions, F context lengths (frames) looked at, C characters, K draws, V vocabulary.
"""

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from lexinvariant.config import ModelConfig
from lexinvariant.decipher.alphabet import KEPT, Alphabet, check_cribs, make_puzzle
from lexinvariant.decipher.language import Language, load_language
from lexinvariant.decipher.notation import Notation
from lexinvariant.decipher.votes import check_head
from lexinvariant.errors import UserError
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.model.weights import Weights
from lexinvariant.rng import Stream, key_at, keys_for_rows

LENGTHS = (64, 128, 256, 384, 512)
"""Texts are padded to these, so that few programs are compiled."""
MAX_TABLE = 400_000  # numbers in a trace's table: an answer stays well below a megabyte
_MIN_SHOWN = 0.04  # a printable character to which no symbol ever gives this probability is left out
_MIN_P, _SINKHORN_ROUNDS = 1e-9, 40  # balancing needs every pairing possible that no crib rules out

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """p_FSC[f, s, c]: that symbol s stands for character c, once `lengths[f]` symbols are read; zero before s occurs.

    Letters are all there; of the printable characters those that are never likely are left out, so that a row may sum
    to less than 1.
    """

    cells: tuple[str, ...]
    """The text that was read, one piece a symbol."""
    symbol_T: NDArray[np.int64]
    """The row of each position's symbol, or KEPT."""
    symbols: tuple[str, ...]
    characters: tuple[str, ...]
    lengths: tuple[int, ...]
    p_FSC: Floats
    n_symbols: int
    """Length of the whole text; `cells` are the beginning of it that fits the model's context."""
    seconds: float

    @property
    def note(self) -> str | None:
        if len(self.cells) == self.n_symbols:
            return None
        return f"Shown for the first {len(self.cells):,} of {self.n_symbols:,} symbols, as many as it reads at once."

    def best(self, length: int) -> dict[str, tuple[str, float]]:
        """After `length` symbols: the likeliest character of every symbol seen, and its probability."""
        p_SC = self.p_FSC[int(np.searchsorted(self.lengths, length, side="right")) - 1]
        best_S = p_SC.argmax(axis=1)
        return {
            symbol: (self.characters[c], float(p_SC[s, c]))
            for s, (symbol, c) in enumerate(zip(self.symbols, best_S, strict=True))
            if p_SC[s].any()
        }

    def to_json(self) -> dict[str, Any]:
        """Probabilities as bytes (255 is certain) in base64, row by row, one context length after another."""
        table = np.round(self.p_FSC * 255).astype(np.uint8)
        return {
            "cells": list(self.cells),
            "symbol": self.symbol_T.tolist(),
            "symbols": list(self.symbols),
            "characters": list(self.characters),
            "lengths": list(self.lengths),
            "table": base64.b64encode(table.tobytes()).decode("ascii"),
            "n_symbols": self.n_symbols,
            "note": self.note,
            "seconds": round(self.seconds, 3),
        }


@partial(jax.jit, static_argnames=("config", "draws"))
def _symbol_logp(params: Params, config: ModelConfig, tok_T: jax.Array, draws: int, seed: int) -> jax.Array:
    """logp_TV of what each symbol is, averaged over draws of the lexicon."""
    tok_KT = jnp.broadcast_to(tok_T, (draws, len(tok_T)))
    key_K = keys_for_rows(key_at(seed, Stream.EVAL, 0), jnp.arange(draws))
    h_KTD = forward(params, config, tok_KT, key_K).h_BTD
    logp_KTV = jax.nn.log_softmax(decipher_logits(params, config, h_KTD), axis=2)
    return jax.nn.logsumexp(logp_KTV, axis=0) - jnp.log(float(draws))


def trace(
    model: Weights,
    text: str | Sequence[str],
    cribs: Mapping[str, str] | None = None,
    *,
    crib_text: str | None = None,
    alphabet: Alphabet = "auto",
    unspaced: bool = False,
    notation: Notation = "auto",
    language: Language | None = None,
    draws: int = 1,
    seed: int = 0,
) -> Trace:
    """Read the text once and tell what is known of its key after every symbol.

    The text is taken apart as the solver does it (alphabet.py). Cribs are certain, and `crib_text`, the known
    beginning of the plaintext.
    """
    started = time.monotonic()
    check_head(model)
    language = load_language() if language is None else language
    puzzle = make_puzzle(text, language, alphabet, unspaced, notation)
    known = check_cribs(puzzle, cribs or {}, crib_text)
    names = list(model.vocab.decode(range(model.vocab.size)))
    # Where the model does not know all letters of the language, it is asked about all that it knows.
    only_letters = puzzle.kind != "ascii" and set(language.letters) <= {*names}
    columns = list(language.letters) if only_letters else names
    shared = puzzle.is_homophonic and only_letters
    known = {symbol: plain for symbol, plain in known.items() if plain in columns}
    most = model.config.vocab_size if shared else min(len(columns), model.config.vocab_size)
    if len(puzzle.symbols) > most:
        raise UserError(
            f"The text has {len(puzzle.symbols)} different symbols and the model knows {most}: give a text in fewer."
        )

    cells, symbol_T = puzzle.cells[: model.config.context], puzzle.symbol_T[: model.config.context]
    tok_T = np.zeros(_padded_length(len(cells)), np.int32)
    tok_T[: len(cells)] = _tokens(cells, symbol_T, len(puzzle.symbols), model.config.vocab_size)
    logp_TV = np.asarray(_symbol_logp(model.params, model.config, jnp.asarray(tok_T), draws, seed))
    logp_TC = logp_TV[: len(cells), [names.index(name) for name in columns]].astype(np.float64)

    # Symbols are numbered by first occurrence, so those that a long text brings later are the last ones.
    n_symbols = int(symbol_T.max(initial=KEPT)) + 1
    lengths = context_lengths(len(cells), max(1, n_symbols) * len(columns))
    score_FSC, seen_FS = decayed_scores(symbol_T, logp_TC, n_symbols, lengths, language.trace_decay)
    crib = {s: columns.index(name) for s, name in known.items() if s < n_symbols}
    p_FSC = soft_keys(score_FSC, seen_FS, crib, shared)
    likely_C = (p_FSC.max(axis=(0, 1), initial=0) >= _MIN_SHOWN) | only_letters
    return Trace(
        cells=tuple(cells),
        symbol_T=symbol_T,
        symbols=puzzle.symbols[:n_symbols],
        characters=tuple(name for name, likely in zip(columns, likely_C, strict=True) if likely),
        lengths=tuple(int(n) for n in lengths),
        p_FSC=p_FSC[:, :, likely_C],
        n_symbols=len(puzzle.cells),
        seconds=time.monotonic() - started,
    )


def _padded_length(n: int) -> int:
    return next((length for length in LENGTHS if n <= length), -(-n // LENGTHS[-1]) * LENGTHS[-1])


def _tokens(cells: Sequence[str], symbol_T: NDArray[np.int64], n_symbols: int, vocab_size: int) -> list[int]:
    """What the model reads: the numbers of symbols, and numbers of their own for what is kept.

    It takes a vocabulary's worth of them; a text with more kept characters than that has the last ones read as one.
    """
    kept: dict[str, int] = {}
    for cell, s in zip(cells, symbol_T, strict=True):
        if s == KEPT:
            kept.setdefault(cell, min(n_symbols + len(kept), vocab_size - 1))
    return [kept[cell] if s == KEPT else int(s) for cell, s in zip(cells, symbol_T, strict=True)]


def context_lengths(n: int, table: int) -> NDArray[np.int64]:
    """The context lengths to look at: every one where the answer stays small, else evenly spread up to the last."""
    count = min(n, max(2, MAX_TABLE // table))
    return np.unique(np.linspace(1, n, count).round().astype(np.int64))


def decayed_scores(
    symbol_T: NDArray[np.int64], logp_TC: Floats, n_symbols: int, lengths: NDArray[np.int64], decay: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """(score_FSC, seen_FS): the decaying sum of each symbol's log-probabilities, at each context length."""
    score_SC = np.zeros((n_symbols, logp_TC.shape[1]))
    seen_S = np.zeros(n_symbols, bool)
    scores, seen = [], []
    looked_at = set(lengths.tolist())
    for t, s in enumerate(symbol_T):
        if s != KEPT:
            score_SC[s] = logp_TC[t] + decay * score_SC[s]
            seen_S[s] = True
        if t + 1 in looked_at:
            scores.append(score_SC.copy())
            seen.append(seen_S.copy())
    return np.stack(scores), np.stack(seen)


def soft_keys(
    score_FSC: Floats, seen_FS: NDArray[np.bool_], crib: Mapping[int, int], shared: bool = False
) -> Floats:
    """The key in probabilities at each context length: symbol s is known to be character crib[s], the others share the
    rest. `shared`: a character may have several symbols, so each is on its own.
    """
    taken = () if shared else crib.values()
    free_S = np.array([s for s in range(score_FSC.shape[1]) if s not in crib], int)[:, None]
    free_C = np.array([c for c in range(score_FSC.shape[2]) if c not in taken], int)
    share = each_alone if shared else sinkhorn
    p_FSC = np.zeros_like(score_FSC)
    p_FSC[:, free_S, free_C] = share(score_FSC[:, free_S, free_C], seen_FS[:, free_S[:, 0]])
    for s, c in crib.items():
        p_FSC[:, s, c] = seen_FS[:, s]
    return p_FSC


def each_alone(score_FSC: Floats, seen_FS: NDArray[np.bool_]) -> Floats:
    """Rows of symbols seen sum to 1, whatever the others are."""
    p_FSC = np.exp(score_FSC - score_FSC.max(axis=2, keepdims=True, initial=-np.inf)) * seen_FS[..., None]
    return p_FSC / _not_zero(p_FSC.sum(axis=2, keepdims=True))


def sinkhorn(score_FSC: Floats, seen_FS: NDArray[np.bool_]) -> Floats:
    """Rows of symbols seen sum to 1, and no character is given more than once in all.

    The symbols that have not occurred share one more row, which takes what the others leave of each character.
    """
    p_FSC = np.exp(score_FSC - score_FSC.max(axis=2, keepdims=True, initial=-np.inf))
    p_FSC = np.where(seen_FS[..., None], np.maximum(p_FSC, _MIN_P), 0.0)
    unseen_F1 = score_FSC.shape[2] - seen_FS.sum(axis=1, keepdims=True)
    rest_FC = np.ones((len(p_FSC), score_FSC.shape[2])) * (unseen_F1 > 0)
    for _ in range(_SINKHORN_ROUNDS):
        total_FC = _not_zero(p_FSC.sum(axis=1) + rest_FC)
        p_FSC, rest_FC = p_FSC / total_FC[:, None], rest_FC / total_FC
        p_FSC = p_FSC / _not_zero(p_FSC.sum(axis=2, keepdims=True))
        rest_FC = rest_FC * unseen_F1 / _not_zero(rest_FC.sum(axis=1, keepdims=True))
    return p_FSC


def _not_zero(total: Floats) -> Floats:
    return np.where(total > 0, total, 1.0)
