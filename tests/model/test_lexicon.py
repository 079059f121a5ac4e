"""A lexicon is drawn for each sequence from its own key, and each kind draws what it says."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.config import LEXICON_KINDS, LexiconConfig, ModelConfig, check_every_kind
from lexinvariant.errors import UserError
from lexinvariant.model import lexicon as lexica
from lexinvariant.model import permutation
from lexinvariant.model import readout as readouts
from lexinvariant.model.params import EmbeddingParams
from tests.tiny_models import random_params

V, D, B, T, P = 20, 8, 64, 20, 0.4
KINDS = tuple(LEXICON_KINDS)
MODEL = ModelConfig(vocab_size=V, width=D, n_heads=1, head_dim=D, hidden=D)
TABLE = (np.random.default_rng(0).normal(size=(V, D)) * np.linspace(0.5, 3, V)[:, None]).astype(np.float32)
EMBEDDING = EmbeddingParams(jnp.asarray(TABLE), jnp.float32(2.0), jnp.float32(0.25), None)
TOK = np.random.default_rng(1).integers(0, V, (B, T)).astype(np.int32)
EVERY_SYMBOL = np.tile(np.arange(V, dtype=np.int32), (B, 1))
KEYS = jax.random.split(jax.random.key(7), B)
SHARED_KEY = jax.random.key(8)


@partial(jax.jit, static_argnames="config")
def _draw(
    config: LexiconConfig, keys: jax.Array, tok: jax.Array, curriculum: lexica.Curriculum
) -> lexica.Lexicon:
    return lexica.draw_lexicon(
        config, MODEL, EMBEDDING, keys, tok, dtype=jnp.dtype("float32"), curriculum=curriculum
    )


def drawn(
    kind: str,
    tok: np.ndarray = TOK,
    keys: jax.Array = KEYS,
    hi: float = np.inf,
    now: float | None = None,
    **fields: Any,
) -> lexica.Lexicon:
    """`now` is the share p of this step, where it is not that of the configuration."""
    curriculum = lexica.Curriculum(np.float32(hi), None if now is None else np.float32(now), SHARED_KEY)
    return jax.tree.map(np.asarray, _draw(LexiconConfig(kind=kind, p=P, **fields), keys, tok, curriculum))


def numbered_by_first_occurrence(row: list[int]) -> list[int]:
    order = list(dict.fromkeys(row))
    return [order.index(symbol) for symbol in row]


sequences = st.lists(st.lists(st.integers(0, 6), min_size=12, max_size=12), min_size=3, max_size=3)


@settings(deadline=None, max_examples=60)
@given(sequences)
def test_first_occurrence_numbers_symbols_as_they_come(rows: list[list[int]]) -> None:
    tok = np.array(rows, np.int32)
    expected = [numbered_by_first_occurrence(row) for row in rows]
    np.testing.assert_array_equal(jax.jit(lexica.first_occurrence)(tok), expected)
    places = [[row.index(symbol) for symbol in row] for row in rows]
    np.testing.assert_array_equal(jax.jit(lexica.first_position)(tok), places)


def rows_of_each(lexicon: lexica.Lexicon) -> np.ndarray:
    """What each sequence reads: the vectors themselves."""
    return np.asarray(lexica.rows_at(jax.tree.map(jnp.asarray, lexicon.table), lexicon.input_BT))


@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_does_not_depend_on_place_or_neighbours(kind: str) -> None:
    order = np.append(np.arange(B)[:0:-1], 1)
    original, moved = drawn(kind, hi=0.8), drawn(kind, TOK[order], KEYS[order], hi=0.8)
    np.testing.assert_array_equal(rows_of_each(original)[order], rows_of_each(moved))
    np.testing.assert_array_equal(original.target_BT[order], moved.target_BT)


@pytest.mark.parametrize("kind", ["gaussian", "permuted"])
def test_a_draw_does_not_depend_on_the_size_of_the_batch(kind: str) -> None:
    together, alone = drawn(kind), drawn(kind, TOK[5:6], KEYS[5:6])
    np.testing.assert_array_equal(rows_of_each(together)[5:6], rows_of_each(alone))


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_draw_anew_unless_nothing_is_drawn(kind: str) -> None:
    same_text = np.tile(TOK[:1], (B, 1))
    distinct = len({sequence.tobytes() for sequence in rows_of_each(drawn(kind, same_text))})
    assert distinct == (1 if kind == "learned" else B)


@pytest.mark.parametrize("kind", ["gaussian", "permuted"])
def test_renamed_sequences_draw_the_same_rows(kind: str) -> None:
    renaming = np.random.default_rng(2).permutation(V).astype(np.int32)
    original, renamed = drawn(kind), drawn(kind, renaming[TOK])
    jax.tree.map(np.testing.assert_array_equal, original, renamed)


def test_learned_is_the_table_itself() -> None:
    lexicon = drawn("learned")
    np.testing.assert_array_equal(lexicon.input_BT, TOK)
    np.testing.assert_array_equal(lexicon.target_BT, TOK)
    np.testing.assert_array_equal(lexicon.table, np.asarray(EMBEDDING.table_VD))


def test_gaussian_rows_are_standard_normal_and_the_kth_symbol_uses_the_kth() -> None:
    lexicon = drawn("gaussian")
    assert lexicon.table.shape == (B, V, D)
    assert lexicon.table.mean() == pytest.approx(0, abs=0.04)
    assert lexicon.table.var() == pytest.approx(1, abs=0.06)
    np.testing.assert_array_equal(
        lexicon.input_BT, [numbered_by_first_occurrence(row) for row in TOK.tolist()]
    )
    np.testing.assert_array_equal(lexicon.target_BT, lexicon.input_BT)


def test_permuted_gives_distinct_symbols_distinct_rows_of_the_table() -> None:
    lexicon = drawn("permuted", EVERY_SYMBOL)
    np.testing.assert_array_equal(np.sort(lexicon.input_BT, axis=1), EVERY_SYMBOL)
    np.testing.assert_array_equal(lexicon.target_BT, lexicon.input_BT)
    np.testing.assert_array_equal(lexicon.table, np.asarray(EMBEDDING.table_VD))
    assert np.mean(lexicon.input_BT == EVERY_SYMBOL) == pytest.approx(1 / V, abs=0.03)


def test_annealed_without_end_permutes_every_symbol() -> None:
    rows = drawn("annealed", EVERY_SYMBOL, hi=np.inf).input_BT
    np.testing.assert_array_equal(np.sort(rows, axis=1), EVERY_SYMBOL)
    assert np.mean(rows == EVERY_SYMBOL) == pytest.approx(1 / V, abs=0.03)


def test_annealed_with_a_small_share_leaves_most_at_home() -> None:
    rows = drawn("annealed", EVERY_SYMBOL, hi=0.2).input_BT
    np.testing.assert_array_equal(np.sort(rows, axis=1), EVERY_SYMBOL)
    assert 0.88 < np.mean(rows == EVERY_SYMBOL) < 0.99


def test_annealed_draws_each_sequences_share_from_nothing_to_the_limit() -> None:
    away = np.mean(drawn("annealed", EVERY_SYMBOL, hi=1.0).input_BT != EVERY_SYMBOL, axis=1)
    assert away.min() < 0.15
    assert away.max() > 0.8
    assert away.mean() == pytest.approx(0.5 - 1 / V, abs=0.1)


@pytest.mark.parametrize("kind", ["permuted", "annealed"])
def test_a_share_of_the_sequences_may_have_gaussian_rows(kind: str) -> None:
    lexicon, without = (drawn(kind, gaussian_share=share) for share in (0.3, 0.0))
    np.testing.assert_array_equal(lexicon.input_BT, without.input_BT)
    fresh_B = (lexicon.table != np.asarray(EMBEDDING.table_VD)).any(axis=(1, 2))
    assert fresh_B.mean() == pytest.approx(0.3, abs=0.15)
    fresh_BVD = lexicon.table[fresh_B]
    assert (fresh_BVD != np.asarray(EMBEDDING.table_VD)).all()
    assert len(np.unique(fresh_BVD, axis=0)) == fresh_B.sum()  # every sequence has rows of its own
    assert abs(fresh_BVD.mean()) < 0.06 and fresh_BVD.std() == pytest.approx(1, abs=0.06)
    assert LexiconConfig(kind=kind, gaussian_share=0.3).at_evaluation == LexiconConfig(kind="permuted")


def test_mixed_replaces_a_share_of_the_rows_by_random_ones_of_the_same_norm() -> None:
    lexicon = drawn("mixed", EVERY_SYMBOL)
    np.testing.assert_array_equal(lexicon.input_BT, EVERY_SYMBOL)
    read_BVD = rows_of_each(lexicon)
    is_random_BV = np.any(read_BVD != TABLE, axis=2)
    np.testing.assert_array_equal(is_random_BV, lexicon.table.is_random_BV)
    assert is_random_BV.mean() == pytest.approx(P, abs=0.06)
    assert len(np.unique(is_random_BV, axis=0)) > B // 2
    np.testing.assert_allclose(
        np.linalg.norm(read_BVD, axis=2), np.tile(np.linalg.norm(TABLE, axis=1), (B, 1)), rtol=1e-5
    )
    random_BVD = np.where(is_random_BV[:, :, None], read_BVD / np.linalg.norm(TABLE, axis=1)[:, None], 0)
    assert np.abs(random_BVD[is_random_BV].mean(axis=0)).max() < 0.1
    # What two sequences have for one symbol is uncorrelated: V symbols have B rows each, and not one.
    cosine_VBB = np.einsum("avd,bvd->vab", random_BVD, random_BVD)
    both_VBB = is_random_BV.T[:, :, None] & is_random_BV.T[:, None, :] & ~np.eye(B, dtype=bool)
    assert abs(cosine_VBB[both_VBB].mean()) < 0.05


@pytest.mark.parametrize("readout", ["full", "seen"])
def test_a_mixed_table_reads_out_as_if_every_sequence_had_its_own(readout: str) -> None:
    """Against a table a sequence, written out: the same log-probabilities and the same gradient of the table."""
    config = replace(MODEL, readout=readout, context=7, lexicon=LexiconConfig(kind="mixed", p=P))
    params = random_params(config)
    h_BTD = jax.random.normal(jax.random.key(3), (B, 7, D))

    def log_likelihood(table_VD: jax.Array, *, written_out: bool) -> jax.Array:
        lexicon = lexica.draw_lexicon(
            config.lexicon,
            config,
            replace(EMBEDDING, table_VD=table_VD),
            KEYS,
            TOK[:, :7],
            dtype=jnp.dtype("float32"),
            curriculum=lexica.Curriculum(shared_key=SHARED_KEY),
        )
        if written_out:
            lexicon = lexicon._replace(table=lexica.rows_at(lexicon.table, EVERY_SYMBOL))
            assert lexicon.table.shape == (B, V, D)
        return readouts.log_likelihood(params, config, lexicon, h_BTD).sum(axis=1)

    lean, plain = (
        jax.jit(jax.value_and_grad(lambda t, w=written_out: log_likelihood(t, written_out=w).sum()))(TABLE)
        for written_out in (False, True)
    )
    np.testing.assert_allclose(lean[0], plain[0], rtol=1e-5)
    np.testing.assert_allclose(lean[1], plain[1], rtol=1e-4, atol=1e-4)


REGULARISERS = [{"kind": "mixed"}, *({"kind": "token-permuted", "unit": u} for u in ("position", "type"))]


@pytest.mark.parametrize("fields", REGULARISERS, ids=str)
def test_exempt_symbols_are_read_as_themselves_and_no_other_turns_into_one(fields: dict[str, Any]) -> None:
    exempt = (0, 3, V - 1)
    lexicon = drawn(**fields, tok=EVERY_SYMBOL, now=1.0, exempt=exempt)
    is_exempt_V = np.isin(np.arange(V), exempt)
    is_own_BV = np.all(rows_of_each(lexicon) == TABLE, axis=2)
    assert is_own_BV[:, is_exempt_V].all()
    if fields["kind"] == "mixed":
        assert not is_own_BV[:, ~is_exempt_V].any()
    else:
        np.testing.assert_array_equal(np.sort(lexicon.input_BT, axis=1), EVERY_SYMBOL)
        assert is_own_BV[:, ~is_exempt_V].mean() == pytest.approx(1 / (V - 3), abs=0.03)


@pytest.mark.parametrize("fields", REGULARISERS, ids=str)
def test_a_share_of_nothing_is_the_learned_table(fields: dict[str, Any]) -> None:
    """Whatever the configuration says: the curriculum has the last word."""
    lexicon = drawn(**fields, now=0.0)
    np.testing.assert_array_equal(rows_of_each(lexicon), TABLE[TOK])
    np.testing.assert_array_equal(lexicon.target_BT, TOK)


def images_of_symbols(rows: np.ndarray) -> list[set[int]]:
    """For each sequence and symbol in it, the rows that stood for it."""
    return [
        set(row[sequence == symbol].tolist())
        for row, sequence in zip(rows, TOK, strict=True)
        for symbol in np.unique(sequence)
    ]


def test_token_permuted_by_type_replaces_a_symbol_always_or_never() -> None:
    rows = drawn("token-permuted", unit="type").input_BT
    assert {len(images) for images in images_of_symbols(rows)} == {1}
    by_type = drawn("token-permuted", EVERY_SYMBOL, unit="type").input_BT != EVERY_SYMBOL
    assert by_type.mean() == pytest.approx(P * (1 - 1 / V), abs=0.06)


def test_token_permuted_by_position_replaces_a_symbol_now_and_then_by_one_other() -> None:
    rows = drawn("token-permuted", unit="position").input_BT
    assert {len(images) for images in images_of_symbols(rows)} == {1, 2}
    assert np.mean(rows != TOK) == pytest.approx(P * (1 - 1 / V), abs=0.05)


def test_token_permuted_predicts_what_it_is_told_to() -> None:
    permuted = drawn("token-permuted")
    np.testing.assert_array_equal(permuted.target_BT, permuted.input_BT)
    original = drawn("token-permuted", permute_targets=False)
    np.testing.assert_array_equal(original.target_BT, TOK)
    np.testing.assert_array_equal(original.input_BT, permuted.input_BT)
    assert np.any(original.input_BT != TOK)


@pytest.mark.parametrize(
    ("kind", "used", "is_lexinvariant"),
    [
        ("gaussian", "gaussian", True),
        ("permuted", "permuted", True),
        ("annealed", "permuted", True),
        ("learned", "learned", False),
        ("mixed", "learned", False),
        ("token-permuted", "learned", False),
    ],
)
def test_noise_that_only_regularises_is_off_at_evaluation(
    kind: str, used: str, is_lexinvariant: bool
) -> None:
    config = LexiconConfig(kind=kind, affine="channel")
    assert config.at_evaluation == LexiconConfig(kind=used, affine="channel")
    assert config.is_lexinvariant == is_lexinvariant


@pytest.mark.parametrize(
    ("kind", "readout", "length", "rows"),
    [
        ("gaussian", "seen", 10, 10),
        ("gaussian", "seen", 99, 50),
        ("gaussian", "full", 10, 50),
        ("permuted", "seen", 10, 50),
    ],
)
def test_only_symbols_that_can_occur_need_a_gaussian_row(
    kind: str, readout: str, length: int, rows: int
) -> None:
    assert LEXICON_KINDS[kind].n_rows(50, length, readout) == rows


LARGE = 5000
"""A vocabulary that is permuted without sorting all of it."""


@pytest.mark.parametrize("kind", ["permuted", "annealed", "token-permuted"])
def test_of_a_large_vocabulary_every_symbol_still_has_a_row_of_its_own(kind: str) -> None:
    assert LARGE > permutation.LARGEST_SORTED
    model = replace(MODEL, vocab_size=LARGE)
    tok = np.random.default_rng(3).integers(LARGE - 30, LARGE, (B, T)).astype(np.int32)
    config = LexiconConfig(kind=kind, p=1.0, unit="type")
    draw = jax.jit(partial(lexica.draw_lexicon, config, model, EMBEDDING, dtype=jnp.dtype("float32")))
    rows = np.asarray(draw(KEYS, tok).input_BT)
    assert rows.min() >= 0 and rows.max() < LARGE
    for sequence, row in zip(tok.tolist(), rows.tolist(), strict=True):
        assert numbered_by_first_occurrence(row) == numbered_by_first_occurrence(sequence)
    assert np.mean(rows) == pytest.approx(LARGE / 2, rel=0.05)
    if kind == "permuted":
        renamed = np.asarray(draw(KEYS, LARGE - 1 - tok).input_BT)
        np.testing.assert_array_equal(renamed, rows)


def test_annealing_a_large_vocabulary_moves_a_share_of_each_sequence() -> None:
    tok = np.tile(np.arange(0, LARGE, 10, dtype=np.int32), (B, 1))
    draw = partial(lexica.draw_lexicon, LexiconConfig(kind="annealed"), replace(MODEL, vocab_size=LARGE))
    draw = partial(draw, EMBEDDING, dtype=jnp.dtype("float32"), curriculum=lexica.Curriculum(np.float32(0.8)))
    rows = jax.jit(draw)(KEYS, tok)
    away = np.mean(np.asarray(rows.input_BT) != tok, axis=1)
    assert away.min() < 0.1 and 0.7 < away.max() < 0.9
    assert away.mean() == pytest.approx(0.4, abs=0.1)
    assert all(len(set(row)) == len(row) for row in np.asarray(rows.input_BT).tolist())


@pytest.mark.parametrize("kind", ["permuted", "annealed"])
def test_of_a_large_vocabulary_only_the_symbols_that_occur_may_get_gaussian_rows(kind: str) -> None:
    """Sequences of 10 of 20 symbols: the `seen` readout needs 10 rows, and every symbol reads what it read before."""
    model, tok = replace(MODEL, readout="seen"), TOK[:, :10]
    lexicon = LexiconConfig(kind=kind, gaussian_share=0.3)
    few, plain = (
        jax.jit(partial(lexica.draw_lexicon, config, model, EMBEDDING, dtype=jnp.dtype("float32")))(KEYS, tok)
        for config in (lexicon, replace(lexicon, gaussian_share=0.0))
    )
    assert few.table.shape == (B, 10, D)
    np.testing.assert_array_equal(few.input_BT, [numbered_by_first_occurrence(row) for row in tok.tolist()])
    read_BTD, learned_BTD = (
        np.asarray(lexica.rows_at(drawn.table, drawn.input_BT)) for drawn in (few, plain)
    )
    is_learned_B = (read_BTD == learned_BTD).all(axis=(1, 2))
    assert 1 - is_learned_B.mean() == pytest.approx(0.3, abs=0.15)
    fresh_BTD = read_BTD[~is_learned_B]
    assert not (fresh_BTD == learned_BTD[~is_learned_B]).any()
    rows = np.unique(fresh_BTD.reshape(-1, D), axis=0)  # one for each symbol of each sequence
    assert len(rows) == sum(len(set(row)) for row in tok[~is_learned_B].tolist())
    assert rows.mean() == pytest.approx(0, abs=0.1) and rows.std() == pytest.approx(1, abs=0.1)


def test_a_kind_that_was_forgotten_somewhere_is_an_error() -> None:
    some = {kind: None for kind in KINDS if kind != "mixed"}
    with pytest.raises(TypeError, match=r"Some table and LexiconKind differ in \['mixed'\]"):
        check_every_kind(some, "Some table")
    with pytest.raises(TypeError, match=r"\['new'\]"):
        check_every_kind(dict.fromkeys((*KINDS, "new")), "Some table")


def test_an_unknown_kind_is_answered_with_all_that_there_are() -> None:
    with pytest.raises(UserError, match="no lexicon kind 'foo': it is one of gaussian, learned, permuted"):
        LexiconConfig(kind="foo")
