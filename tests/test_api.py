"""The object that users hold: texts in, numbers and texts out."""

from pathlib import Path

import numpy as np
import pytest

from lexinvariant.api import Model, load
from lexinvariant.errors import UserError
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab, LetterVocab, train_tokenizer
from tests.tiny_models import random_model

pytestmark = pytest.mark.usefixtures("compile_quickly")


@pytest.fixture(scope="module")
def permuted() -> Model:
    return random_model(LetterVocab(12), "permuted", "seen", context=16)


@pytest.fixture(scope="module")
def standard() -> Model:
    return random_model(LetterVocab(12), "learned", "full", context=16)


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
    with pytest.raises(UserError, match="no learned table"):
        model.with_lexicon("permuted")


def test_a_tokenizers_model_scores_tokens(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat and the hat and the cat sat there " * 20)
    vocab = train_tokenizer([str(tmp_path / "text.txt")], tmp_path / "tokenizer.json", size=270)
    model = random_model(vocab, "gaussian", "seen", context=16)
    [score] = model.score("the cat the cat")
    assert len(score) == len(vocab.encode("the cat the cat")) < len("the cat the cat")


def test_a_saved_model_scores_as_before(permuted: Model, tmp_path: Path) -> None:
    save_model(tmp_path, permuted.config, permuted.params, permuted.vocab)
    loaded = load(tmp_path)
    np.testing.assert_array_equal(loaded.score("a big bad")[0], permuted.score("a big bad")[0])
