"""One step: what the loss is, what it depends on, and that parts add up to the whole."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, TrainConfig
from lexinvariant.model import params as model_params
from lexinvariant.model.decipher_head import decipher_next_logits
from lexinvariant.model.params import Params
from lexinvariant.model.readout import predictors
from lexinvariant.model.transformer import forward
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.training.batch_metrics import BatchSums, batch_means, sum_over_tokens, tail_length
from lexinvariant.training.step import DeviceBatch, batch_sums, loss_gradient, microbatch_loss
from tests.tiny_models import TINY, random_params

B, T, V = 8, 12, 9
MODEL = replace(
    TINY,
    vocab_size=V,
    context=T,
    lexicon=LexiconConfig(kind="gaussian"),
    readout="seen",
    smeared_keys=True,
    decipher_head=True,
    decipher_hidden=8,
    hindsight_layers=1,
)
CONFIG = TrainConfig(model=MODEL, batch_size=B, steps=10, dtype="float32", decipher_weight=0.3)


@pytest.fixture(scope="module")
def params() -> Params:
    return random_params(MODEL, scale=0.3)


@pytest.fixture(scope="module")
def batch() -> DeviceBatch:
    """Rows of different lengths, one of them empty: parts with different numbers of tokens."""
    tok_BT = np.random.default_rng(1).integers(V, size=(B, T), dtype=np.int32)
    length_B = np.array([T, 5, T, 0, 1, T, 7, 3])
    mask_BT = np.arange(T) < length_B[:, None]
    row_B = jnp.arange(B, dtype=jnp.int32)
    return DeviceBatch(jnp.asarray(tok_BT), jnp.asarray(mask_BT), jnp.ones(B, bool), row_B)


compiled_gradient = jax.jit(loss_gradient, static_argnames="config")


@partial(jax.jit, static_argnames="config")
def loss_of(
    params: Params, config: TrainConfig, batch: DeviceBatch, step: jax.Array
) -> tuple[jax.Array, BatchSums]:
    return microbatch_loss(params, config, batch, step, jnp.sum(batch.mask_BT).astype(jnp.float32))


@pytest.fixture(scope="module")
def whole(params: Params, batch: DeviceBatch) -> tuple[Params, BatchSums]:
    return compiled_gradient(params, CONFIG, batch, jnp.int32(3))


def assert_close(actual: Any, expected: Any, rtol: float = 1e-5) -> None:
    named = zip(model_params.flatten_named(actual), model_params.flatten_named(expected), strict=True)
    for (name, x), (_, y) in named:
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("parts", [2, 4])
def test_gradient_in_parts_is_the_gradient_of_the_whole(
    params: Params, batch: DeviceBatch, whole: tuple[Params, BatchSums], parts: int
) -> None:
    grads, sums = compiled_gradient(params, replace(CONFIG, accumulate=parts), batch, jnp.int32(3))
    assert_close(grads, whole[0])
    np.testing.assert_allclose(jax.tree.leaves(sums), jax.tree.leaves(whole[1]), rtol=1e-5)


REGULARISED = replace(
    CONFIG,
    model=replace(MODEL, lexicon=LexiconConfig(kind="mixed", p=0.5), readout="full", decipher_head=False),
)


def test_random_rows_that_a_step_shares_are_shared_by_its_parts(batch: DeviceBatch) -> None:
    params = random_params(REGULARISED.model, scale=0.3)
    (grads, sums), (in_two, sums_in_two) = (
        compiled_gradient(params, replace(REGULARISED, accumulate=parts), batch, jnp.int32(3))
        for parts in (1, 2)
    )
    assert_close(in_two, grads)
    np.testing.assert_allclose(jax.tree.leaves(sums_in_two), jax.tree.leaves(sums), rtol=1e-5)


def test_p_at_the_end_of_its_annealing_is_that_of_a_standard_model(batch: DeviceBatch) -> None:
    annealed = REGULARISED.changed({"model.lexicon.p_anneal_share": 0.5})
    standard = REGULARISED.changed({"model.lexicon.kind": "learned"})
    params = random_params(REGULARISED.model, scale=0.3)

    def loss(config: TrainConfig, step: int) -> float:
        return float(loss_of(params, config, batch, jnp.int32(step))[0])

    assert loss(annealed, 3) == loss(REGULARISED, 3) != loss(standard, 3)
    assert loss(annealed, 9) != loss(REGULARISED, 9)
    assert loss(annealed, 10) == pytest.approx(loss(standard, 10), rel=1e-5)


def test_dropout_in_parts_is_the_dropout_of_the_whole(params: Params, batch: DeviceBatch) -> None:
    dropping = replace(CONFIG, model=replace(MODEL, dropout=0.3, attention_dropout=0.3))
    (grads, sums), (in_two, sums_in_two) = (
        compiled_gradient(params, replace(dropping, accumulate=parts), batch, jnp.int32(3))
        for parts in (1, 2)
    )
    assert_close(in_two, grads)
    np.testing.assert_allclose(jax.tree.leaves(sums_in_two), jax.tree.leaves(sums), rtol=1e-5)
    _, without = compiled_gradient(params, CONFIG, batch, jnp.int32(3))
    _, next_step = compiled_gradient(params, dropping, batch, jnp.int32(4))
    losses = [float(each.prediction.loss) for each in (sums, without, next_step)]
    assert np.ptp(losses) > 1e-2 < abs(losses[0] - losses[2])


def test_every_parameter_has_a_gradient(whole: tuple[Params, BatchSums]) -> None:
    still = [name for name, value in model_params.flatten_named(whole[0]) if not np.any(value)]
    assert still == ["start_D"]  # under the `seen` readout the first symbol is always "another"


def test_loss_is_the_mean_over_unmasked_tokens(
    params: Params, batch: DeviceBatch, whole: tuple[Params, BatchSums]
) -> None:
    key_B = keys_for_rows(key_at(CONFIG.seed, Stream.LEXICON, 3), batch.row_B)
    logp_BT = np.asarray(jax.jit(forward, static_argnums=1)(params, MODEL, batch.tok_BT, key_B).logp_BT)
    mask_BT = np.asarray(batch.mask_BT)
    assert float(batch_means(whole[1])["loss"]) == pytest.approx(-logp_BT[mask_BT].mean(), rel=1e-5)
    tail = mask_BT & (np.arange(T) >= T - tail_length(T))
    assert float(batch_means(whole[1])["tail_loss"]) == pytest.approx(-logp_BT[tail].mean(), rel=1e-5)


def test_masked_tokens_have_no_influence(
    params: Params, batch: DeviceBatch, whole: tuple[Params, BatchSums]
) -> None:
    other = batch._replace(tok_BT=jnp.where(batch.mask_BT, batch.tok_BT, (batch.tok_BT + 4) % V))
    assert not np.array_equal(other.tok_BT, batch.tok_BT)
    grads, sums = compiled_gradient(params, CONFIG, other, jnp.int32(3))
    assert_close(grads, whole[0])
    np.testing.assert_allclose(jax.tree.leaves(sums), jax.tree.leaves(whole[1]), rtol=1e-6)


def test_unmasked_tokens_have_influence(
    params: Params, batch: DeviceBatch, whole: tuple[Params, BatchSums]
) -> None:
    other = batch._replace(tok_BT=batch.tok_BT.at[0, 6].set(batch.tok_BT[0, 5]))
    assert not np.array_equal(other.tok_BT, batch.tok_BT)
    _, sums = compiled_gradient(params, CONFIG, other, jnp.int32(3))
    assert abs(float(sums.prediction.loss - whole[1].prediction.loss)) > 1e-3


def test_a_row_has_the_same_loss_wherever_it_stands_in_the_batch(params: Params, batch: DeviceBatch) -> None:
    order = np.array([5, 2, 7, 0, 3, 6, 1, 4])
    _, sums = loss_of(params, CONFIG, batch, jnp.int32(3))
    _, shuffled = loss_of(params, CONFIG, jax.tree.map(lambda x: x[order], batch), jnp.int32(3))
    np.testing.assert_allclose(jax.tree.leaves(shuffled), jax.tree.leaves(sums), rtol=1e-5)


@pytest.mark.parametrize("what", ["seed", "step", "row"])
def test_lexicons_change_with_the_seed_the_step_and_the_row(
    params: Params, batch: DeviceBatch, what: str
) -> None:
    config = replace(CONFIG, seed=1) if what == "seed" else CONFIG
    other = batch._replace(row_B=batch.row_B + 8) if what == "row" else batch
    step = jnp.int32(4 if what == "step" else 3)
    _, sums = loss_of(params, CONFIG, batch, jnp.int32(3))
    _, different = loss_of(params, config, other, step)
    assert abs(float(different.prediction.loss - sums.prediction.loss)) > 1e-3


def test_deciphering_counts_with_its_weight(
    params: Params, batch: DeviceBatch, whole: tuple[Params, BatchSums]
) -> None:
    loss, sums = loss_of(params, CONFIG, batch, jnp.int32(3))
    without, same_sums = loss_of(params, replace(CONFIG, decipher_weight=0.0), batch, jnp.int32(3))
    assert sums.deciphering is not None and sums.hindsight is not None
    taught = float(sums.deciphering.loss + sums.hindsight.loss)
    assert float(sums.deciphering.loss) > 0 < float(sums.hindsight.loss)
    assert jax.tree.all(jax.tree.map(lambda a, b: a == b, same_sums, sums))
    assert float(loss - without) == pytest.approx(0.3 * taught / float(sums.prediction.tokens), rel=1e-4)

    unweighted, _ = compiled_gradient(params, replace(CONFIG, decipher_weight=0.0), batch, jnp.int32(3))
    twice, _ = compiled_gradient(params, replace(CONFIG, decipher_weight=0.6), batch, jnp.int32(3))
    assert not any(np.any(x) for x in jax.tree.leaves((unweighted.decipher, unweighted.hindsight)))
    assert_close(twice.decipher, jax.tree.map(lambda x: 2 * x, whole[0].decipher))
    assert_close(twice.hindsight, jax.tree.map(lambda x: 2 * x, whole[0].hindsight))


def test_share_of_deciphered_symbols_is_counted_over_unmasked_ones() -> None:
    mask_BT = jnp.arange(10) < jnp.array([[10], [4]])
    correct_BT = jnp.arange(10) % 2 == jnp.array([[0], [0]])
    deciphering = sum_over_tokens(jnp.full((2, 10), 2.0), mask_BT, correct_BT)
    hindsight = sum_over_tokens(jnp.full((2, 10), 3.0), mask_BT & (jnp.arange(10) < 9), correct_BT)
    next_deciphering = sum_over_tokens(jnp.full((2, 10), 4.0), mask_BT, ~correct_BT)
    sums = BatchSums(sum_over_tokens(jnp.ones((2, 10)), mask_BT), deciphering, hindsight, next_deciphering)
    found = {name: float(value) for name, value in batch_means(sums).items()}
    assert found == pytest.approx(
        {
            "loss": 1.0,
            "tail_loss": 1.0,
            "decipher_loss": 2.0,
            "tail_decipher_loss": 2.0,
            "deciphered": 7 / 14,
            "tail_deciphered": 1 / 2,
            "hindsight_loss": 3.0,
            "tail_hindsight_loss": 3.0,
            "hindsight_deciphered": 7 / 13,
            "tail_hindsight_deciphered": 1.0,
            "decipher_next_loss": 4.0,
            "tail_decipher_next_loss": 4.0,
            "next_deciphered": 7 / 14,
            "tail_next_deciphered": 1 / 2,
        }
    )


def test_the_head_at_one_position_in_three_sums_up_to_the_head_at_all(
    params: Params, batch: DeviceBatch
) -> None:
    @partial(jax.jit, static_argnames="every")
    def sums(every: int, first: int) -> BatchSums:
        output = forward(params, MODEL, batch.tok_BT, jax.random.split(jax.random.key(0), B))
        tok_BT, mask_BT = batch.tok_BT, batch.mask_BT
        return batch_sums(params, MODEL, output, tok_BT, mask_BT, mask_BT, mask_BT, every, first)

    parts, whole = [sums(3, first) for first in range(3)], sums(1, 0)
    for head in ("deciphering", "hindsight"):
        added = jax.tree.map(lambda *x: sum(x), *(getattr(part, head) for part in parts))
        np.testing.assert_allclose(added, getattr(whole, head), rtol=1e-5)
        assert len({float(getattr(part, head).loss) for part in parts}) == 3
    assert {float(part.prediction.loss) for part in parts} == {float(whole.prediction.loss)}


def test_the_head_learns_nothing_of_symbols_without_names(params: Params, batch: DeviceBatch) -> None:
    some = batch._replace(named_B=jnp.arange(B) != 1)
    without = batch._replace(tok_BT=batch.tok_BT.at[1].set(0), mask_BT=batch.mask_BT.at[1].set(False))
    _, found = loss_of(params, CONFIG, some, jnp.int32(3))
    _, expected = loss_of(params, CONFIG, without, jnp.int32(3))
    _, whole = loss_of(params, CONFIG, batch, jnp.int32(3))
    for head in ("deciphering", "hindsight"):
        for a, b in zip(
            jax.tree.leaves(getattr(found, head)), jax.tree.leaves(getattr(expected, head)), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    assert float(found.prediction.loss) == pytest.approx(float(whole.prediction.loss), rel=1e-5)


def test_positions_at_which_the_head_is_asked_stand_for_the_others(
    params: Params, batch: DeviceBatch
) -> None:
    config = replace(CONFIG, decipher_every=3)
    loss, sums = loss_of(params, config, batch, jnp.int32(4))
    without, _ = loss_of(params, replace(config, decipher_weight=0.0), batch, jnp.int32(4))
    assert sums.deciphering is not None and sums.hindsight is not None
    mask_BT = np.asarray(batch.mask_BT)
    assert int(sums.deciphering.tokens) == mask_BT[:, 1::3].sum() != mask_BT[:, ::3].sum()  # 4 % 3 is 1
    taught = float(sums.deciphering.loss + sums.hindsight.loss)
    assert float(loss - without) == pytest.approx(3 * 0.3 * taught / mask_BT.sum(), rel=1e-4)


def test_hindsight_apart_teaches_its_own_layers_and_the_head_alone(
    params: Params, batch: DeviceBatch, whole: tuple[Params, BatchSums]
) -> None:
    apart, sums = compiled_gradient(params, replace(CONFIG, hindsight_apart=True), batch, jnp.int32(3))
    np.testing.assert_allclose(jax.tree.leaves(sums), jax.tree.leaves(whole[1]), rtol=1e-5)
    for part in ("hindsight", "decipher"):
        assert_close(getattr(apart, part), getattr(whole[0], part))
    # The trunk's gradient is that of the loss without what is named in hindsight.
    without = replace(CONFIG, model=replace(MODEL, hindsight_layers=0))
    expected, _ = compiled_gradient(replace(params, hindsight=None), without, batch, jnp.int32(3))
    assert_close(apart.layers, expected.layers)
    assert np.abs(apart.layers.query_DE - whole[0].layers.query_DE).max() > 1e-5


def test_the_next_symbol_is_named_before_it_is_read() -> None:
    model = replace(MODEL, decipher_next=True, hindsight_layers=0)
    params = random_params(model, scale=0.3)
    tok_BT = jnp.asarray(np.random.default_rng(2).integers(V, size=(2, T), dtype=np.int32))
    row_B, mask_BT = jnp.arange(2), jnp.ones((2, T), bool)

    @jax.jit
    def named(tok_BT: jax.Array) -> tuple[jax.Array, BatchSums]:
        output = forward(params, model, tok_BT, keys_for_rows(jax.random.key(0), row_B))
        logits_BTV = decipher_next_logits(params, predictors(params, output.h_BTD))
        return jax.nn.log_softmax(logits_BTV), batch_sums(
            params, model, output, tok_BT, mask_BT, mask_BT, mask_BT
        )

    logp_BTV, sums = named(tok_BT)
    changed_BTV, _ = named(tok_BT.at[:, 7].set((tok_BT[:, 7] + 1) % V))
    np.testing.assert_allclose(changed_BTV[:, :8], logp_BTV[:, :8], atol=1e-5)
    assert np.abs(changed_BTV[:, 8:] - logp_BTV[:, 8:]).max() > 1e-3

    assert sums.deciphering is not None and sums.next_deciphering is not None
    chosen_BT1 = np.take_along_axis(np.asarray(logp_BTV), np.asarray(tok_BT)[:, :, None], axis=2)
    assert float(sums.next_deciphering.loss) == pytest.approx(-chosen_BT1.sum(), rel=1e-5)

    config = replace(CONFIG, model=model)
    batch = DeviceBatch(tok_BT, mask_BT, jnp.ones(2, bool), row_B)
    loss, sums = loss_of(params, config, batch, jnp.int32(3))
    without, _ = loss_of(params, replace(config, decipher_weight=0.0), batch, jnp.int32(3))
    assert sums.deciphering is not None and sums.next_deciphering is not None
    taught = float(sums.deciphering.loss + sums.next_deciphering.loss)
    assert float(loss - without) == pytest.approx(0.3 * taught / (2 * T), rel=1e-4)


def test_end_of_the_context_is_100_positions_or_a_fifth() -> None:
    assert {n: tail_length(n) for n in (1, 5, 6, 96, 500, 512, 4096)} == {
        1: 1,
        5: 1,
        6: 2,
        96: 20,
        500: 100,
        512: 100,
        4096: 100,
    }
