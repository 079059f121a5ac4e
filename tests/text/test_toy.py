import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.text import Data, MarkovLanguage, open_data


@pytest.fixture(scope="module")
def language() -> MarkovLanguage:
    return MarkovLanguage()


def test_entropies_are_those_promised(language: MarkovLanguage) -> None:
    assert language.unigram_entropy == pytest.approx(2.2, abs=0.02)
    assert language.entropy_rate == pytest.approx(1.4, abs=0.02)
    assert np.allclose(language.stationary @ language.transition, language.stationary)


def test_generated_text_has_these_entropies(language: MarkovLanguage) -> None:
    tok_BT = language.split("train", 100)[np.arange(4000)].tok_BT
    pairs = np.zeros((12, 12))
    np.add.at(pairs, (tok_BT[:, :-1].ravel(), tok_BT[:, 1:].ravel()), 1)
    rows = pairs.sum(1, keepdims=True)
    assert np.abs(pairs / rows - language.transition).max() < 0.02
    assert np.abs(np.bincount(tok_BT[:, 0], minlength=12) / 4000 - language.stationary).max() < 0.03


def test_a_sequence_is_a_function_of_its_address(language: MarkovLanguage) -> None:
    short, long = language.split("valid", 20), language.split("valid", 50)
    piece_B = np.array([5, 0, 1_000_000])
    assert np.array_equal(short[piece_B].tok_BT, long[piece_B].tok_BT[:, :20])
    assert np.array_equal(short[[1_000_000]].tok_BT[0], short[piece_B].tok_BT[2])
    train = language.split("train", 20)[piece_B].tok_BT
    assert (train != short[piece_B].tok_BT).mean() > 0.5


def test_batches_resume_from_the_step_number(language: MarkovLanguage) -> None:
    train = language.split("train", 16)
    batch = train.batch(seed=1, step=7, size=8)
    assert batch.tok_BT.dtype == np.int32 and batch.mask_BT.all() and len(train) == 1 << 20
    assert np.array_equal(language.split("train", 16).batch(1, 7, 8, range(4, 8)).tok_BT, batch.tok_BT[4:])
    assert not np.array_equal(train.batch(2, 7, 8).piece_B, batch.piece_B)


def test_the_language_never_changes(language: MarkovLanguage) -> None:
    assert language.fingerprint == "97a47db6846d7ed51294ac7530db7a28bb0f608e306b616798bd0135ef43ca46"
    assert language.vocab.decode(language.split("test", 24)[[0]].tok_BT[0]) == "kheeeeheeeeeeeeejdiiiigh"


def test_open_data_and_errors(language: MarkovLanguage) -> None:
    data: Data = open_data("markov12")
    assert data.fingerprint == language.fingerprint and data.vocab_size == data.vocab.size == 12
    with pytest.raises(UserError, match="train, valid, test"):
        data.split("dev", 16)
    with pytest.raises(UserError, match="length of 1"):
        data.split("train", 0)
    with pytest.raises(IndexError):
        data.split("train", 4)[np.array([1 << 20])]
