"""Words spelled anew: text in which no spelling is known beforehand, only what the text itself shows.

A lexinvariant model that knows a language well reads short and strange texts as that language. In a respelled sequence
each letter and digit is shifted within its kind by a number that hangs on the word's letters before it and on nothing
else. So a word has one spelling throughout, different words have different ones, words that begin alike still do, and
everything between the words stays.
"""

import jax
import jax.numpy as jnp
import numpy as np

_KINDS = ((ord("a"), 26), (ord("A"), 26), (ord("0"), 10))
_FIRST_V, _SIZE_V = np.zeros(128, np.uint32), np.ones(128, np.uint32)
for _first, _size in _KINDS:
    _FIRST_V[_first : _first + _size], _SIZE_V[_first : _first + _size] = _first, _size


def _prefix_hash(tok_BT: jax.Array, in_word_BT: jax.Array) -> jax.Array:
    """A number for the letters of the word before each position; 0 at the beginning of a word.

    h = factor * h + letter + 1 within a word and 0 outside: affine maps, whose composition is associative.
    """
    factor_BT = jnp.where(in_word_BT, jnp.uint32(0x9E3779B1), jnp.uint32(0))
    add_BT = jnp.where(in_word_BT, tok_BT.astype(jnp.uint32) + jnp.uint32(1), jnp.uint32(0))

    def then(
        first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        return second[0] * first[0], second[0] * first[1] + second[1]

    _, hash_BT = jax.lax.associative_scan(then, (factor_BT, add_BT), axis=1)
    return jnp.pad(hash_BT[:, :-1], ((0, 0), (1, 0)))


def _scrambled(x: jax.Array) -> jax.Array:
    """Every bit of the result hangs on every bit of the number (the finalizer of MurmurHash3)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def respell(key_B: jax.Array, tok_BT: jax.Array, share: float) -> tuple[jax.Array, jax.Array]:
    """(tok_BT, respelled_B): ASCII sequences, a random share of them with every word spelled anew."""
    key_B2 = jax.vmap(jax.random.split)(key_B)
    respelled_B = jax.vmap(lambda key: jax.random.bernoulli(key, share))(key_B2[:, 0])
    salt_B = jax.vmap(jax.random.bits)(key_B2[:, 1])
    first_BT, size_BT = jnp.asarray(_FIRST_V)[tok_BT], jnp.asarray(_SIZE_V)[tok_BT]
    in_word_BT = size_BT > 1
    shift_BT = _scrambled(_prefix_hash(tok_BT, in_word_BT) ^ salt_B[:, None]) % size_BT
    letter_BT = (tok_BT.astype(jnp.uint32) - first_BT + shift_BT) % size_BT
    new_BT = jnp.where(in_word_BT, first_BT + letter_BT, tok_BT.astype(jnp.uint32)).astype(tok_BT.dtype)
    return jnp.where(respelled_B[:, None], new_BT, tok_BT), respelled_B
