"""PyTorch computes what jax does."""

# ruff: noqa: E402 (what needs PyTorch is imported once it is known to be there)

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.api import Model, load
from lexinvariant.config import LexiconConfig
from lexinvariant.errors import UserError
from lexinvariant.model.lexicon import draw_by_rank, rows_at
from lexinvariant.model.params import flatten_named, specs
from lexinvariant.model.ranks import to_ranks
from lexinvariant.model.scoring import score_tokens
from lexinvariant.model.weights import Precision, save_model
from lexinvariant.rng import Stream, key_at
from lexinvariant.text import CharVocab
from tests.tiny_models import TINY, random_params

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'lexinvariant[torch]'")
pytest.importorskip("transformers", reason="transformers is missing: pip install 'lexinvariant[torch]'")

import lexinvariant.torch as lexinvariant_torch
from lexinvariant.torch.lexicon import embed, first_occurrence, occurrence_statistics
from lexinvariant.torch.parameters import parameter_shapes
from lexinvariant.torch.transformer import KeyValues, trunk

TEXT = "a cat sat on the mat, and that cat sat there; a mat, a hat!"
BASE = replace(TINY, n_layers=2, context=64)
PERMUTED = LexiconConfig(kind="permuted")
MODELS = {
    "bundled-like": replace(
        BASE,
        lexicon=LexiconConfig(kind="annealed"),
        readout="seen",
        recall_width=6,
        smeared_keys=True,
        decipher_head=True,
        decipher_hidden=12,
        hindsight_layers=2,
    ),
    "counting": replace(
        BASE,
        lexicon=PERMUTED,
        readout="seen",
        recall_width=6,
        count_occurrences=True,
        smeared_keys=True,
        decipher_head=True,
        decipher_next=True,
        decipher_hidden=12,
    ),
    "gaussian": replace(BASE, lexicon=LexiconConfig(kind="gaussian", affine="channel"), logit_scale="vocab"),
    "standard": replace(
        BASE, lexicon=LexiconConfig(kind="learned"), smeared_keys=True, count_occurrences=True
    ),
    "regularised": replace(BASE, lexicon=LexiconConfig(kind="mixed"), bias_before_scale=False),
    "rotary": replace(BASE, smeared_keys=True, positions="rotary", decipher_head=True, hindsight_layers=1),
    "plain attention": replace(BASE, lexicon=LexiconConfig(kind="token-permuted"), normalize_qk=False),
}


FEW = ["bundled-like", "counting", "standard"]  # jax takes seconds to compile a program for each


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Model, Any]]:
    """Each model in jax, and the same folder read by PyTorch."""
    made = {}
    for name, config in MODELS.items():
        folder = tmp_path_factory.mktemp("pair")
        model = Model(config, random_params(config, scale=0.5), CharVocab())
        save_model(folder, config, model.params, model.vocab)
        made[name] = model, lexinvariant_torch.load(folder)
    return made


@pytest.fixture(params=FEW)
def pair(request: pytest.FixtureRequest, pairs: dict[str, tuple[Model, Any]]) -> tuple[Model, Any]:
    return pairs[request.param]


def table_of(model: Model, key: jax.Array) -> "torch.Tensor":
    """The rows that jax draws from a key, in the order of ranks: what PyTorch takes in place of its own draw."""
    size = model.config.vocab_size
    rank_11 = jnp.zeros((1, 1), jnp.int32)
    drawn, row_1V = draw_by_rank(
        model.config, model.params.embedding, key[None], rank_11, size, jnp.dtype("float32")
    )
    return torch.from_numpy(np.array(rows_at(drawn.table, row_1V)[0]))


def scoring_table(model: Model) -> "torch.Tensor":
    return table_of(model, key_at(0, Stream.EVAL, 0, 0))


def test_parameters_have_the_names_and_shapes_of_the_file() -> None:
    for config in MODELS.values():
        expected = {name: spec.shape for name, spec in flatten_named(specs(config))}
        assert parameter_shapes(config) == expected


@pytest.mark.parametrize("name", MODELS)
def test_scores_agree(pairs: dict[str, tuple[Model, Any]], name: str) -> None:
    model, in_torch = pairs[name]
    texts = [TEXT, TEXT[:33]]
    for expected, found in zip(
        model.score(texts), in_torch.score(texts, table=scoring_table(model)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.std(model.score(TEXT)[0]) > 1e-2  # there is something to agree about


def test_distributions_and_states_agree(pair: tuple[Model, Any]) -> None:
    model, in_torch = pair
    table = scoring_table(model)
    expected, found = model.logits(TEXT), in_torch.logits(TEXT, table=table)
    assert found.symbols == expected.symbols
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=2e-4)
    states = in_torch.hidden_states(TEXT, table=table)
    assert states.shape == (len(TEXT), model.config.width) and states.dtype == np.float32
    np.testing.assert_allclose(states, model.hidden_states(TEXT), atol=1e-4)


def test_bfloat16_agrees_as_far_as_it_goes(pairs: dict[str, tuple[Model, Any]]) -> None:
    model, in_torch = pairs["bundled-like"]
    tok_T = model._encode(TEXT, model._alphabet(TEXT))
    [exact] = score_tokens(model.params, model.config, [tok_T])
    [expected] = score_tokens(model.params, model.config, [tok_T], dtype="bfloat16")
    [found] = replace(in_torch, dtype=torch.bfloat16).score(TEXT, table=scoring_table(model))
    rounding = np.abs(expected - exact).mean()
    assert 0 < np.abs(found - expected).mean() < 4 * rounding + 1e-3


def test_the_head_names_symbols_alike(pair: tuple[Model, Any]) -> None:
    model, in_torch = pair
    if not model.config.decipher_head:
        with pytest.raises(UserError, match="cannot name symbols"):
            in_torch.posterior(TEXT)
        return
    long_text = TEXT * 3  # in windows
    key = jax.random.fold_in(key_at(0, Stream.EVAL, 0), 0)
    for text in (TEXT, long_text):
        expected, found = model.posterior(text), in_torch.posterior(text, table=table_of(model, key))
        assert (found.symbols, found.characters) == (expected.symbols, expected.characters)
        np.testing.assert_allclose(found.probs, expected.probs, atol=1e-4)
        assert expected.probs.max() > 3 / 128


def test_the_likeliest_continuation_is_the_same(pair: tuple[Model, Any]) -> None:
    model, in_torch = pair
    expected = model.generate(TEXT[:30], 20, top_k=1)
    found = in_torch.generate(TEXT[:30], 20, top_k=1, table=table_of(model, key_at(0, Stream.SAMPLE, 0)))

    def pattern(text: str) -> list[int]:
        """What a new symbol is called is drawn, so that only equality of symbols can be compared."""
        if not model.config.lexicon.is_lexinvariant:
            return list(text.encode())
        return to_ranks(model.config, np.array([ord(character) for character in TEXT[:30] + text])).tolist()

    assert pattern(found) == pattern(expected)
    assert in_torch.generate("", 5, seed=1) == in_torch.generate("", 5, seed=1)


def test_reading_in_parts_gives_the_states_of_reading_at_once(pair: tuple[Model, Any]) -> None:
    _, in_torch = pair
    config, network = in_torch.config, in_torch.network
    tok_1T = torch.tensor([list(TEXT.encode())])
    rank_1T, table = network.ranks(tok_1T), torch.randn(128, 16)
    cache, parts = KeyValues(), []
    with torch.no_grad():
        for start, end in ((0, 20), (20, 21), (21, len(TEXT))):
            x = embed(network, config, rank_1T[:, :end], table, dtype=torch.float32, n_new=end - start)
            parts.append(trunk(network, config, x, cache=cache))
        whole = network(tok_1T, table)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-4, rtol=1e-4)
    assert cache.get_seq_length() == len(TEXT)


def test_a_lexinvariant_model_scores_renamed_texts_bit_for_bit_alike(pair: tuple[Model, Any]) -> None:
    model, in_torch = pair
    renamed = TEXT.translate({ord(character): 0x4E00 + ord(character) for character in set(TEXT)})
    if not model.config.lexicon.is_lexinvariant:
        assert np.any(in_torch.score(TEXT)[0] != in_torch.score(TEXT.upper())[0])
        return
    first, _, second = in_torch.score([TEXT, "banana", renamed], draws=3)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(in_torch.score(renamed, draws=3)[0], first)
    np.testing.assert_array_equal(in_torch.hidden_states(renamed), in_torch.hidden_states(TEXT))
    assert np.any(in_torch.score(TEXT, seed=1)[0] != in_torch.score(TEXT)[0])
    assert np.any(in_torch.hidden_states(TEXT, draw=1) != in_torch.hidden_states(TEXT))


def test_symbols_are_numbered_and_counted_as_they_come() -> None:
    tok_BT = torch.tensor([[7, 3, 7, 9, 3, 3], [1, 1, 1, 2, 2, 0]])
    assert first_occurrence(tok_BT).tolist() == [[0, 1, 0, 2, 1, 1], [0, 0, 0, 1, 1, 2]]
    last = occurrence_statistics(tok_BT)[0, -1].tolist()
    assert last == [2, 1, 0, 0, 3]  # came twice, one ago, none more often, never after itself, three symbols


@pytest.mark.parametrize("precision", ["int8", "int6"])
def test_a_file_in_fewer_bits_is_read_as_jax_reads_it(tmp_path: Path, precision: Precision) -> None:
    config = MODELS["bundled-like"]
    save_model(tmp_path, config, random_params(config, 0.5), CharVocab(), precision=precision)
    in_torch = lexinvariant_torch.load(tmp_path)
    in_jax = load(tmp_path)
    np.testing.assert_allclose(
        in_torch.score(TEXT, table=scoring_table(in_jax))[0], in_jax.score(TEXT)[0], atol=1e-4
    )


@pytest.mark.slow
def test_the_bundled_model_agrees() -> None:
    in_jax, in_torch = load(), lexinvariant_torch.load()
    assert repr(in_torch).startswith(
        "lexinvariant.torch.model.Model(annealed lexicon, 32 layers x 256, 26,401,930"
    )
    text = TEXT * 3
    np.testing.assert_allclose(
        in_torch.score(text, table=scoring_table(in_jax))[0], in_jax.score(text)[0], atol=1e-4
    )
    assert in_torch.score(text, draws=2)[0].mean() > -2.2  # its own draws: a text it can predict


def test_bad_input_is_told_in_one_sentence(pairs: dict[str, tuple[Model, Any]], tmp_path: Path) -> None:
    _, in_torch = pairs["standard"]
    with pytest.raises(UserError, match=r"shape \(3, 16\) and this model's is \(128, 16\)"):
        in_torch.score(TEXT, table=torch.zeros(3, 16))
    with pytest.raises(UserError, match="Give a text or a list of texts"):
        in_torch.score(3)
    with pytest.raises(UserError, match="The text is empty"):
        in_torch.hidden_states("")
    with pytest.raises(UserError, match=r"temperature is 0: .* or top_k=1"):
        in_torch.generate("a", 3, temperature=0)
    with pytest.raises(UserError, match=r"no config.json"):
        lexinvariant_torch.load(tmp_path)
    for method in (in_torch.score, in_torch.logits, in_torch.hidden_states):
        with pytest.warns(
            UserWarning, match="A text has 65 tokens, and the model was trained on 64"
        ) as caught:
            method("a" * 65)
        assert caught[0].filename == __file__


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    config = MODELS["standard"]
    save_model(tmp_path / "one", config, random_params(config), CharVocab())
    other = replace(config, n_layers=1)
    save_model(tmp_path / "two", other, random_params(other), CharVocab())
    (tmp_path / "two" / "config.json").replace(tmp_path / "one" / "config.json")
    with pytest.raises(UserError, match=r"does not fit its config\.json"):
        lexinvariant_torch.load(tmp_path / "one")


def test_no_jax_is_needed(tmp_path: Path) -> None:
    config = MODELS["bundled-like"]
    save_model(tmp_path, config, random_params(config), CharVocab())
    code = f"""
import sys
sys.modules["jax"] = None  # importing it fails
import lexinvariant.torch
model = lexinvariant.torch.load({str(tmp_path)!r})
print(len(model.score("abab", draws=2)[0]), len(model.posterior("abab").symbols), len(model.generate("ab", 3)))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["4", "2", "3"], run.stderr
