import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.text import CharVocab, LetterVocab, load_vocab
from lexinvariant.text.vocab import dtype_for


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_comes_back_unchanged(text: str) -> None:
    vocab = CharVocab()
    assert vocab.fold(text) == (text, 0)
    assert vocab.decode(vocab.encode(text)) == text


@given(st.text())
def test_any_text_folds_to_ascii(text: str) -> None:
    vocab = CharVocab()
    folded, dropped = vocab.fold(text)
    assert folded.isascii() and 0 <= dropped <= len(text)
    assert vocab.decode(vocab.encode(text)) == folded
    assert vocab.fold(folded) == (folded, 0)


@pytest.mark.parametrize(
    ("text", "folded", "dropped"),
    [
        ("“It’s”", '"It\'s"', 0),
        ("a – b — c…", "a - b -- c...", 0),
        ("Café naïve Ångström", "Cafe naive Angstrom", 0),
        ("cafe\u0301", "cafe", 0),
        ("ﬁne ﬂag æther Straße Łódź", "fine flag aether Strasse Lodz", 0),
        ("a\u00a0b\u2003c\u200bd", "a b cd", 0),
        ("x ≠ y ≤ ½", "x != y <= 1/2", 0),
        ("line\r\nend", "line\r\nend", 0),
        ("α and 漢字!", " and !", 3),
        ("lone \ud800 surrogate", "lone  surrogate", 1),
        ("\x7f\x00", "\x7f\x00", 0),
    ],
)
def test_folding(text: str, folded: str, dropped: int) -> None:
    assert CharVocab().fold(text) == (folded, dropped)


def test_folding_is_fast_on_mostly_ascii_text() -> None:
    text = ("A plain sentence of some fifty ordinary characters, " * 20 + "“quoted” – café. ") * 4000
    began = time.perf_counter()
    CharVocab().encode(text)
    assert (
        len(text) / (time.perf_counter() - began) > 20e6
    )  # characters a second; about 200e6 when nothing else runs


def test_ids_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match="128"):
        CharVocab().decode([65, 128])
    with pytest.raises(ValueError, match="12"):
        LetterVocab(12).decode([-1])


@pytest.mark.parametrize(
    ("size", "name"),
    [
        (12, "uint8"),
        (256, "uint8"),
        (257, "uint16"),
        (65536, "uint16"),
        (65537, "uint32"),
        (250_002, "uint32"),
    ],
)
def test_dtype_holds_every_id(size: int, name: str) -> None:
    assert dtype_for(size).name == name
    assert np.array(size - 1).astype(dtype_for(size)) == size - 1


@pytest.mark.parametrize("vocab", [CharVocab(), LetterVocab(12)])
def test_save_and_load(tmp_path: Path, vocab: CharVocab | LetterVocab) -> None:
    vocab.save(tmp_path / "saved")
    loaded = load_vocab(tmp_path / "saved")
    assert (loaded.name, loaded.size) == (vocab.name, vocab.size)
    assert loaded.decode(loaded.encode("abcabc")) == "abcabc"
    assert load_vocab(vocab.name).size == vocab.size


def test_letters() -> None:
    assert LetterVocab(12).decode([0, 11, 2]) == "alc"
    assert LetterVocab(3).fold("abcd!") == ("abc", 2)


def test_mistyped_vocabularies(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="did you mean 'char128'"):
        load_vocab("char-128")
    with pytest.raises(UserError, match=r"did you mean .*tokenizer\.json\?"):
        load_vocab(str(tmp_path / "tokeniser.json"))
    with pytest.raises(UserError, match="does not exist either"):
        load_vocab(tmp_path / "nowhere" / "tokenizer.json")
    with pytest.raises(UserError, match="is not a vocabulary"):
        load_vocab("what is this?")
    with pytest.raises(UserError, match="not a Hugging Face tokenizer file"):
        load_vocab(tmp_path / "tokenizer.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"holds no tokenizer\.json"):
        load_vocab(tmp_path / "empty")
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(UserError, match=r"vocab\.json is not valid JSON"):
        load_vocab(tmp_path)
