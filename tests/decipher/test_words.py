"""Naming the words of a text by a model of tokens: what it sees, what it says, and what it cannot read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.api import Model, load
from lexinvariant.decipher import words as reading_words
from lexinvariant.decipher.votes import Window
from lexinvariant.decipher.word_cipher import encipher_words
from lexinvariant.decipher.words import SHARPENING, word_names
from lexinvariant.errors import UserError
from lexinvariant.text import HuggingFaceVocab
from tests.tiny_models import random_params

TEXT = 'The value of the name is the object, and "the object is a value". If an object has a name,\nthe NAME is a name.'


@pytest.fixture(scope="module")
def model(word_model: Path) -> Model:
    return load(word_model)


@pytest.fixture(scope="module")
def with_hindsight(model: Model) -> Model:
    config = replace(model.config, hindsight_layers=1)
    return Model(config, random_params(config, scale=0.3), model.vocab)


def vocab_of(model: Model) -> HuggingFaceVocab:
    assert isinstance(model.vocab, HuggingFaceVocab)
    return model.vocab


def test_names_are_whole_words_in_small_letters(model: Model) -> None:
    names, name_V = word_names(vocab_of(model))
    token_of = {model.vocab.decode([v]): v for v in range(model.vocab.size)}
    assert {"the", "object", "of"} <= set(names)
    assert len(set(names)) == len(names)
    assert all(name.isalpha() and name == name.lower() for name in names)
    assert names[name_V[token_of[" the"]]] == names[name_V[token_of[" The"]]] == "the"
    for no_word in (",", "\n", "0", "ect"):  # the last one only ever ends words
        assert name_V[token_of[no_word]] == len(names)
    with_marks, name_V = word_names(vocab_of(model), marks_too=True)
    assert set(names) < set(with_marks)
    assert with_marks[name_V[token_of[","]]] == ","


@pytest.mark.parametrize("which", ["model", "with_hindsight"])
def test_a_reading_does_not_depend_on_what_the_words_are(which: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(which)
    plain = model.read_words(TEXT)
    for seed in (0, 1):
        enciphered = encipher_words(TEXT, seed)
        reading = model.read_words(enciphered.ciphertext)
        assert [enciphered.key[word] for word in reading.words] == list(plain.words)
        assert (reading.probs == plain.probs).all()
        assert list(reading.key.values()) == list(plain.key.values())
        assert reading.plaintext(0.0) == plain.plaintext(0.0)


def test_probabilities_and_a_key_without_doubles(model: Model) -> None:
    reading = model.read_words(TEXT, draws=2)
    assert reading.words[:4] == ("the", "value", "of", "name")
    assert dict(zip(reading.words, reading.counts, strict=True))["the"] == 5
    assert np.allclose(reading.probs.sum(axis=1), 1)
    assert (reading.probs > 0).all()
    assert len(set(reading.key.values())) == len(reading.words)
    assert list(reading.key) == list(reading.words)
    best = reading.best("the", 4)
    assert list(best.values()) == sorted(reading.probs[0], reverse=True)[:4]
    assert reading.confidence["the"] == reading.probs[0, reading.names.index(reading.key["the"])]
    expected = sum(n * reading.confidence[w] for w, n in zip(reading.words, reading.counts, strict=True))
    assert reading.n_expected == pytest.approx(expected)
    assert (model.read_words(TEXT).probs != reading.probs).any()


def test_what_the_head_says_is_gathered_by_word(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Ab ab cd, cd Ab": the head says "the" or "of", in any form, at occurrences of ab, and "the" at those of cd."""
    vocab = vocab_of(model)
    token_of = {vocab.decode([v]): v for v in range(vocab.size)}

    def said(**probability: float) -> np.ndarray:
        p_V = np.full(model.config.vocab_size, 1e-12)
        for name, p in probability.items():
            p_V[token_of[name.replace("_", " ")]] = p
        return np.log(p_V)

    seen = []

    def head(_: Any, symbol_T: np.ndarray, *__: Any, **___: Any) -> Iterator[tuple[Window, np.ndarray]]:
        seen.append(symbol_T.tolist())
        rows = [
            said(_The=0.4, _the=0.2, _of=0.4),
            said(_the=0.4, _of=0.6),
            said(_the=0.6, _a=0.4),
            said(_the=1.0),
            said(_the=0.6, _a=0.4),
            said(_of=0.9, _the=0.1),
        ]
        yield Window(symbol_T, len(symbol_T), slice(None)), np.array(rows, np.float32)

    monkeypatch.setattr(reading_words, "read_windows", head)
    reading = model.read_words("Ab ab cd, cd Ab")
    assert seen == [
        [0, 1, 2, 3, 2, 4]
    ]  # with a blank and without, capital and small are told apart; the comma is one
    sharp = np.array([1.1 / 3, 1.9 / 3]) ** 3**SHARPENING
    assert reading.best("ab", 2) == pytest.approx(
        dict(zip(("of", "the"), sharp[::-1] / sharp.sum(), strict=True))
    )
    assert reading.key == {"ab": "of", "cd": "the"}
    assert reading.plaintext() == "Of of the, the Of"
    assert reading.plaintext(likely=0.7) == "Ab ab cd, cd Ab"
    assert reading.n_right({"ab": "of", "cd": "a"}) == 3


def test_every_word_of_a_long_text_is_named(model: Model) -> None:
    text = encipher_words(" ".join(TEXT.split() * 10) + " last words of all").ciphertext
    reading = model.read_words(text)
    assert np.allclose(reading.probs.sum(axis=1), 1)
    last = reading.probs[-1]
    assert last.max() > 2 / len(reading.names)  # something was said of it
    assert reading.plaintext(1.0) == text


def test_marks_are_named_where_they_were_made_up(model: Model) -> None:
    reading = model.read_words("ab cd zz ef zz ab 17 qq", marks_too=True)
    assert "17" in reading.words
    assert "," in reading.names
    assert len(set(reading.key.values())) == len(reading.words)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The text has no word"),
        ("17 - 18", "The text has no word"),
        ("one", "The text has one word"),
        ("so very few words", "The text has 4 words"),
        (
            " ".join(encipher_words(" ".join(f"a{'b' * n}" for n in range(1200))).key),
            "different words and at most",
        ),
    ],
)
def test_texts_that_cannot_be_read(model: Model, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        model.read_words(text)


def test_models_that_cannot_name_words(model: Model, tiny_model: Path) -> None:
    characters = load(tiny_model)
    standard = replace(
        model, config=replace(model.config, lexicon=replace(model.config.lexicon, kind="learned"))
    )
    headless = replace(model, params=replace(model.params, decipher=None))
    small = replace(model, config=replace(model.config, vocab_size=500))
    for unfit, why in (
        (characters, "reads characters"),
        (standard, "a standard model"),
        (headless, "no deciphering head"),
        (small, "tokenizer.json is not its own"),
    ):
        with pytest.raises(UserError, match=why):
            unfit.read_words(TEXT)
    with pytest.raises(UserError, match="0 draws"):
        model.read_words(TEXT, draws=0)
    with pytest.raises(UserError, match="texts as str"):
        model.read_words(["a", "b"])  # type: ignore[arg-type]
