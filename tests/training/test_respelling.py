"""Respelled text: spellings are new, and everything that does not hang on them stays."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.training.respelling import respell

TEXT = "The walker walks; he walked.\n\tint value = getValue(42) + value42; // the walker\nA->2\nB->3\nA->2"


def respelled(text: str, seed: int) -> str:
    tok_BT = jnp.asarray(np.frombuffer(text.encode(), np.uint8)[None].astype(np.int32))
    new_BT, respelled_B = jax.jit(respell, static_argnums=2)(jax.random.key(seed)[None], tok_BT, 1.0)
    assert np.asarray(respelled_B).all() and new_BT.dtype == tok_BT.dtype
    return bytes(np.asarray(new_BT[0], np.uint8)).decode()


def words(text: str) -> list[str]:
    return re.findall("[A-Za-z0-9]+", text)


@pytest.mark.parametrize("seed", range(5))
def test_a_word_has_one_spelling_and_different_words_have_different_ones(seed: int) -> None:
    old, new = words(TEXT), words(respelled(TEXT, seed))
    assert len(set(old)) == len(set(zip(old, new, strict=True))) == len(set(new))


def test_words_that_begin_alike_still_do_and_no_letter_has_a_meaning_of_its_own() -> None:
    new = words(respelled(TEXT, 0))
    walker, walks = new[1], new[2]
    assert walker[:4] == walks[:4] and walker[4] != walks[4]
    spellings = [words(respelled("seven seven ever", seed)) for seed in range(20)]
    assert all(first == second for first, second, _ in spellings)
    assert any(seven[1] != seven[3] for seven, _, _ in spellings)  # two e's


def test_what_is_no_word_stays_and_letters_keep_their_kind() -> None:
    new = respelled(TEXT, 1)
    kinds = [("[a-z]", "x"), ("[A-Z]", "X"), ("[0-9]", "0")]
    old_shape, new_shape = TEXT, new
    for kind, sign in kinds:
        old_shape, new_shape = re.sub(kind, sign, old_shape), re.sub(kind, sign, new_shape)
    assert new_shape == old_shape and new != TEXT


def test_about_the_share_is_respelled_and_the_rest_untouched() -> None:
    tok_BT = jnp.asarray(np.frombuffer(TEXT.encode(), np.uint8)[None].repeat(500, 0).astype(np.int32))
    new_BT, respelled_B = respell(jax.random.split(jax.random.key(0), 500), tok_BT, 0.3)
    changed_B = np.asarray((new_BT != tok_BT).any(axis=1))
    assert np.array_equal(changed_B, respelled_B)
    assert changed_B.mean() == pytest.approx(0.3, abs=0.07)
    assert len(np.unique(new_BT[changed_B], axis=0)) == changed_B.sum()  # each in its own way
