"""The object that users hold: texts in, numbers and texts out."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from lexinvariant.api import Model, load
from lexinvariant.config import LexiconConfig
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError
from lexinvariant.model import params as model_params
from lexinvariant.model.weights import Weights, save_model
from lexinvariant.reading import Posterior, distinct_symbols
from lexinvariant.text import CharVocab, LetterVocab, train_tokenizer
from tests.tiny_models import TINY, random_model, random_params


@pytest.fixture(scope="module")
def permuted() -> Model:
    return random_model(LetterVocab(12), "permuted", "seen", context=16)


@pytest.fixture(scope="module")
def standard() -> Model:
    return random_model(LetterVocab(12), "learned", "full", context=16)


@pytest.fixture(scope="module")
def tokenizer_model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "text.txt").write_text("the cat and the hat and the cat sat there " * 20)
    vocab = train_tokenizer([str(folder / "text.txt")], folder / "tokenizer.json", size=270)
    return random_model(vocab, "gaussian", "seen", context=16)


def test_one_text_is_a_list_of_one(permuted: Model) -> None:
    [alone] = permuted.score("a big bad")
    first, second = permuted.score(["a big bad", "banana"])
    assert alone.shape == (9,)
    assert second.shape == (6,)
    np.testing.assert_array_equal(first, alone)
    assert np.all(alone < 0)


def test_more_draws_and_other_seeds_are_passed_on(permuted: Model) -> None:
    scores = [permuted.score("a big bad", **how)[0] for how in ({}, {"draws": 4}, {"draws": 4}, {"seed": 1})]
    np.testing.assert_array_equal(scores[1], scores[2])
    assert len({score.tobytes() for score in scores}) == 3


@pytest.mark.parametrize("renamed", ["e cop coc", "αωβημ ωβν", "猫 犬鳥魚 犬象", "😀x🎉🎂🎈x🎉🎁"])
def test_any_characters_score_as_their_pattern_does(permuted: Model, renamed: str) -> None:
    order = {character: "abcdefghij"[i] for i, character in enumerate(dict.fromkeys(renamed))}
    plain = "".join(order[character] for character in renamed)
    assert plain != renamed
    scores = permuted.score([renamed, plain], draws=2)
    assert len(scores[0]) == len(renamed)
    np.testing.assert_array_equal(*scores)


def test_different_patterns_score_differently(permuted: Model) -> None:
    first, second = permuted.score(["abcabc", "abccba"])
    np.testing.assert_array_equal(first[:3], second[:3])
    assert np.all(first[3:] != second[3:])


def test_a_standard_model_reads_its_own_characters_only(standard: Model) -> None:
    with pytest.warns(UserWarning, match="does not know 2 of the text's 8 characters"):
        plain, with_noise, other = standard.score(["abacad", "a-baca!d", "babcbd"])
    np.testing.assert_array_equal(plain, with_noise)
    assert np.any(plain != other)


def test_more_characters_than_the_model_has_symbols_are_refused(permuted: Model) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(13))
    assert len(permuted.score(text[:12])[0]) == 12
    with pytest.raises(UserError, match="13 different characters and the model knows 12 symbols"):
        permuted.score(text)
    with pytest.raises(UserError, match="13 different characters"):
        permuted.generate(text, 3)


def test_an_empty_text_is_refused(permuted: Model) -> None:
    with pytest.raises(UserError, match="empty"):
        permuted.score("")


BEYOND = "ignore:The prompt and its continuation"


@pytest.mark.filterwarnings(BEYOND)
def test_a_continuation_is_written_in_the_prompts_characters_and_others_of_the_vocabulary(
    permuted: Model,
) -> None:
    prompt = "猫犬猫犬鳥猫"
    text = permuted.generate(prompt, 50, temperature=0.5)
    assert len(text) == 50
    assert set(text) <= set(prompt + "abcdefghijkl")
    assert set(text) & set(prompt)
    assert text == permuted.generate(prompt, 50, temperature=0.5)
    assert text != permuted.generate(prompt, 50, temperature=0.5, seed=1)


@pytest.mark.filterwarnings(BEYOND)
def test_a_standard_model_continues_in_its_vocabulary(standard: Model) -> None:
    text = standard.generate("abcd", 30)
    assert len(text) == 30
    assert set(text) <= set("abcdefghijkl")
    assert len(set(text)) > 2


def test_another_lexicon_keeps_the_weights(permuted: Model) -> None:
    gaussian = permuted.with_lexicon("gaussian")
    assert gaussian.config.lexicon.kind == "gaussian"
    assert permuted.config.lexicon.kind == "permuted"
    assert gaussian.params is permuted.params
    scores = [model.score("a big bad")[0] for model in (permuted, gaussian)]
    assert np.any(scores[0] != scores[1])


def test_a_model_without_a_table_cannot_have_it_permuted() -> None:
    model = random_model(CharVocab(), "gaussian", "full", context=16)
    assert model.with_lexicon("gaussian").config == model.config
    with pytest.raises(UserError, match="no learned table to be permuted: what fits it is gaussian"):
        model.with_lexicon("permuted")


def test_an_unknown_lexicon_is_answered_with_all_kinds(permuted: Model) -> None:
    with pytest.raises(
        UserError, match="'foo': it is one of gaussian, learned, permuted, annealed, mixed, token"
    ):
        permuted.with_lexicon("foo")  # type: ignore[arg-type]


def test_a_model_is_shown_in_one_short_line(permuted: Model) -> None:
    n = sum(leaf.size for leaf in jax.tree.leaves(permuted.params))
    assert repr(permuted) == (
        f"Model(permuted lexicon, 1 layers x 16, {n:,} parameters, letters12 vocabulary of 12, context 16)"
    )
    n_arrays = len(jax.tree.leaves(permuted.params))
    assert repr(permuted.params) == f"Params({n_arrays} arrays, {n:,} numbers)"
    assert repr(Weights(permuted.config, permuted.params, permuted.vocab)).startswith(
        "Weights(permuted lexicon"
    )
    assert len(repr(model_params.specs(permuted.config))) < 100  # a tree of anything else


ANSWERS = [
    ("permuted", "seen", 0),
    ("permuted", "seen", 4),
    ("gaussian", "seen", 0),
    ("gaussian", "full", 0),
    ("learned", "full", 0),
]


@pytest.mark.parametrize(("kind", "readout", "recall"), ANSWERS)
@pytest.mark.parametrize("draws", [1, 3])
def test_logits_are_distributions_whose_entries_at_the_text_are_its_score(
    kind: str, readout: str, recall: int, draws: int
) -> None:
    shape = replace(TINY, vocab_size=12, context=16, lexicon=LexiconConfig(kind=kind), readout=readout)
    config = replace(shape, recall_width=recall)
    model, text = Model(config, random_params(config), LetterVocab(12)), "abacabad"
    found = model.logits(text, draws=draws, seed=3)
    assert found.log_probs.shape == (9, 12)
    assert set(found.symbols) == set("abcdefghijkl")
    np.testing.assert_allclose(np.exp(found.log_probs).sum(axis=1), 1.0, rtol=1e-5)
    at_text = [found.log_probs[t, found.symbols.index(symbol)] for t, symbol in enumerate(text)]
    [score] = model.score(text, draws=draws, seed=3)
    np.testing.assert_allclose(at_text, score, rtol=1e-4, atol=2e-5)
    longer = [model.score(text + symbol, draws=draws, seed=3)[0][-1] for symbol in "ab"]
    np.testing.assert_allclose(found.log_probs[-1, :2], longer, rtol=1e-4, atol=2e-5)


def test_columns_of_logits_are_the_texts_own_symbols_then_others_that_are_alike(permuted: Model) -> None:
    found = permuted.logits("猫犬猫")
    assert found.symbols[:2] == ("猫", "犬") and len(found.symbols) == 12
    np.testing.assert_array_equal(found.log_probs[-1, 2:], found.log_probs[-1, 2])
    np.testing.assert_array_equal(found.log_probs, permuted.logits("aba").log_probs)


def test_a_tokenizers_model_has_logits_by_token(tokenizer_model: Model) -> None:
    found, ids = tokenizer_model.logits("the cat the cat"), tokenizer_model.vocab.encode("the cat the cat")
    assert found.log_probs.shape == (len(ids) + 1, tokenizer_model.config.vocab_size)
    assert [found.symbols[i] for i in ids] == [tokenizer_model.vocab.decode([i]) for i in ids]
    at_text = found.log_probs[np.arange(len(ids)), ids]
    np.testing.assert_allclose(at_text, tokenizer_model.score("the cat the cat")[0], rtol=1e-4, atol=2e-5)


def test_hidden_states_are_those_that_predict(permuted: Model) -> None:
    first, second = (permuted.hidden_states(text) for text in ("abab", "猫犬猫犬"))
    assert first.shape == (4, 16) and first.dtype == np.float32
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(permuted.hidden_states("ababc")[:4], first, rtol=1e-5, atol=1e-6)
    others = [permuted.hidden_states("abab", draw=1), permuted.hidden_states("abab", seed=1)]
    assert all(np.abs(other - first).max() > 1e-2 for other in others)
    first[0] = 0  # an array of one's own, as scores are
    standard = random_model(LetterVocab(12), "learned", "full", context=16)
    table_VD = np.asarray(standard.params.embedding.table_VD)
    logits = standard.hidden_states("abcd") @ table_VD.T / 4  # the square root of the width
    logp = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    np.testing.assert_allclose(standard.logits("abcd").log_probs[1:], logp, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hindsight_layers", [0, 1])
def test_a_posterior_is_what_the_head_says_of_every_symbol(hindsight_layers: int) -> None:
    config = replace(
        TINY,
        context=32,
        lexicon=LexiconConfig(kind="permuted"),
        readout="seen",
        decipher_head=True,
        decipher_hidden=8,
        hindsight_layers=hindsight_layers,
    )
    model = Model(config, random_params(config, 0.5), CharVocab())
    found = model.posterior("猫犬猫鳥犬猫")
    assert found.symbols == ("猫", "犬", "鳥") and len(found.characters) == 128
    assert found.probs.shape == (3, 128)
    np.testing.assert_allclose(found.probs.sum(axis=1), 1.0)
    row = found["犬"]
    assert list(row.values()) == sorted(row.values(), reverse=True)
    assert row["x"] == found.probs[1, ord("x")]
    assert found.best["犬"] == next(iter(row))
    np.testing.assert_array_equal(model.posterior(["10", "2", "10", "33", "2", "10"]).probs, found.probs)
    with pytest.raises(KeyError, match="not in the text"):
        found["x"]
    assert "犬" in found and "x" not in found and 3 not in found
    assert list(found) == ["猫", "犬", "鳥"] and len(found) == 3
    with pytest.raises(UserError, match="empty"):
        model.posterior("")


def test_what_holds_arrays_is_equal_to_itself_alone(permuted: Model) -> None:
    other = Model(permuted.config, permuted.params, permuted.vocab)
    posteriors = [Posterior(("a",), ("x", "y"), np.array([[0.5, 0.5]])) for _ in range(2)]
    for one, another in ((permuted, other), [permuted.logits("aba") for _ in range(2)], posteriors):
        assert one == one and one != another
        assert len({one, one, another}) == 2


def test_a_list_of_texts_is_no_list_of_symbols() -> None:
    config = replace(TINY, context=32, lexicon=LexiconConfig(kind="permuted"), decipher_head=True)
    model = Model(config, random_params(config), CharVocab())
    with pytest.raises(UserError, match="'gur png' in it looks like a text: give one text at a time"):
        model.posterior(["gur png", "gur qbt"])
    assert model.posterior(["12", "a ", " b", "#!", "1 2", "12"]).symbols == ("12", "a ", " b", "#!", "1 2")


def test_a_long_symbol_is_looked_at_once() -> None:
    started = time.monotonic()
    assert len(distinct_symbols(["a" * 200_000, "1 " * 100_000])) == 2
    assert time.monotonic() - started < 5


def test_a_model_of_letters_names_letters() -> None:
    config = replace(
        TINY, vocab_size=12, context=32, lexicon=LexiconConfig(kind="permuted"), decipher_head=True
    )
    found = Model(config, random_params(config), LetterVocab(12)).posterior("xyx")
    assert found.characters == tuple("abcdefghijkl") and found.probs.shape == (2, 12)


def test_a_model_without_a_head_has_no_posterior(permuted: Model) -> None:
    with pytest.raises(UserError, match="cannot name symbols"):
        permuted.posterior("abc")


@pytest.mark.parametrize(
    ("method", "argument", "sentence"),
    [
        ("score", 3, "Give a text or a list of texts to score, not a value of type int"),
        ("score", [1], "Give texts as str, not a value of type int"),
        ("score", None, "not a value of type NoneType"),
        ("score", b"abc", "Give a text or a list of texts to score, not a value of type bytes"),
        ("decipher", b"abc", "a list of symbols that are str, not a value of type bytes"),
        (
            "decipher",
            ["uryyb jbeyq", "gur png"],
            "a list of symbols, and 'uryyb jbeyq' in it looks like a text",
        ),
        ("logits", "", "The text is empty: give one that has symbols"),
        ("hidden_states", "", "The text is empty: give one that has symbols"),
        ("score", ["ab", ""], "Text 1 is empty: give one that has symbols"),
        ("generate", 3, "Give texts as str, not a value of type int"),
        ("logits", ["a"], "Give texts as str, not a value of type list"),
        ("hidden_states", b"a", "Give texts as str, not a value of type bytes"),
        ("decipher", 3, "a list of symbols that are str, not a value of type int"),
        ("decipher", ["a", 3], "a list of symbols that are str, not a value of type int"),
    ],
)
def test_wrong_types_are_told_in_one_sentence(
    permuted: Model, method: str, argument: object, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        getattr(permuted, method)(argument)


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        ("generate", {"temperature": float("nan")}, "temperature is nan: give a finite number"),
        ("generate", {"temperature": "hot"}, "temperature is 'hot': give a number"),
        ("generate", {"n_tokens": 2.5}, "n_tokens is 2.5: give a whole number"),
        ("generate", {"top_k": "3"}, "top_k is '3': give a whole number"),
        ("generate", {"seed": None}, "seed is None: give a whole number"),
        ("generate", {"seed": 1 << 64}, "seed is .* at most 63 bits"),
        ("score", {"draws": 1.5}, "draws is 1.5: give a whole number"),
        ("score", {"seed": "x"}, "seed is 'x': give a whole number"),
        ("score", {"seed": 1 << 64}, "seed is .* at most 63 bits"),
        ("logits", {"seed": 1 << 64}, "seed is .* at most 63 bits"),
        ("hidden_states", {"seed": 1 << 64}, "seed is .* at most 63 bits"),
        ("hidden_states", {"draw": -1}, "draw is -1: give a number of at least 0"),
        ("decipher", {"cribs": [("a", "b")]}, "Give cribs as a mapping"),
        ("decipher", {"cribs": {"a": 1}}, "Give cribs as a mapping"),
        ("decipher", {"crib_text": 3}, "Give crib_text as str, not a value of type int"),
        ("decipher", {"alphabet": "runes"}, "There is no alphabet 'runes'"),
        ("decipher", {"top": -1}, "top is -1: give a number of at least 0"),
        ("decipher", {"crib_words": "lighthouse"}, "Give crib_words as a list of words"),
        ("decipher", {"crib_words": [3]}, "Give crib_words as a list of words"),
        ("decipher", {"crib_words": None}, "Give crib_words as a list of words"),
        ("decipher", {"crib_words": ["x" * 999]}, "The word 'x{40}' fits nowhere"),
        ("decipher", {"cribs": {"": "e"}}, "'' "),
        ("decipher", {"notation": "runes"}, "There is no notation 'runes'"),
        ("decipher", {"unspaced": "no"}, "unspaced is of type str: give True or False"),
        ("decipher", {"language": 3}, "Give the language that .* returns, not a value of type int"),
        ("hidden_states", {"draw": 1 << 31}, "draw is 2147483648: give a number of at most 31 bits"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(
    permuted: Model, method: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        getattr(permuted, method)("abcabc", **options)


@pytest.mark.parametrize(("prompt", "n_tokens"), [("ab" * 10_000, 1), ("ab", 10**9)])
def test_more_tokens_than_can_be_attended_to_are_refused(permuted: Model, prompt: str, n_tokens: int) -> None:
    with pytest.raises(UserError, match="the most is 16384 together: shorten the prompt or ask for fewer"):
        permuted.generate(prompt, n_tokens)


def test_a_model_may_have_more_symbols_than_characters() -> None:
    config = replace(TINY, context=64, vocab_size=200, lexicon=LexiconConfig(kind="learned"), readout="full")
    standard = Model(config, random_params(config, scale=0.0), CharVocab())
    assert len(standard.generate("ab", 40)) < 40  # all are alike to it, and what has no name is left out
    lexinvariant = replace(config, lexicon=LexiconConfig(kind="permuted"))
    symbols = Model(lexinvariant, random_params(lexinvariant), CharVocab()).logits("\ue001ab").symbols
    assert symbols[:3] == ("\ue001", "a", "b")
    assert len(set(symbols)) == len(symbols) == 200


def test_other_wrong_types_are_told_in_one_sentence(permuted: Model) -> None:
    with pytest.raises(UserError, match="There is no lexicon kind 'foo'"):
        permuted.with_lexicon("foo")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="as str or Path, not a value of type int"):
        load(3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a list of texts to read, not a value of type str"):
        Solver().read("one text")
    assert permuted.generate("ab", 3, seed=-1) == permuted.generate("ab", 3, seed=-1)


def test_a_text_beyond_the_context_is_read_with_a_warning(permuted: Model) -> None:
    warning = "A text has 17 tokens, and the model was trained on 16 at a time"
    with pytest.warns(UserWarning, match=warning) as caught:
        assert [len(score) for score in permuted.score(["ab", "a" * 17])] == [2, 17]
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match=warning):
        permuted.logits("a" * 17)
    with pytest.warns(UserWarning, match=warning):
        permuted.hidden_states("a" * 17)
    with pytest.warns(
        UserWarning, match="The prompt and its continuation have 17 .* on 16 at a time: ask for fewer"
    ) as caught:
        assert len(permuted.generate("ab", 15)) == 15
    assert len(caught) == 1 and caught[0].filename == __file__
    assert len(permuted.generate("ab", 14)) == 14


def test_a_tokenizers_model_scores_tokens(tokenizer_model: Model) -> None:
    [score] = tokenizer_model.score("the cat the cat")
    n_tokens = len(tokenizer_model.vocab.encode("the cat the cat"))
    assert len(score) == n_tokens < len("the cat the cat")


def test_a_saved_model_scores_as_before(permuted: Model, tmp_path: Path) -> None:
    save_model(tmp_path, permuted.config, permuted.params, permuted.vocab)
    loaded = load(tmp_path)
    np.testing.assert_array_equal(loaded.score("a big bad")[0], permuted.score("a big bad")[0])
