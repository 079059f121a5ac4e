"""The models that come with the package."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lexinvariant
from lexinvariant.config import TrainConfig, from_dict
from lexinvariant.model.reading import readings
from lexinvariant.model.readout import decipher_logits
from lexinvariant.model.weights import WEIGHTS, read_description
from lexinvariant.presets import preset

TEXT = (
    "The harbour was quiet that evening, and the boats lay side by side without a sound. An old man sat on the wall "
    "and mended a net, as he had done every evening for forty years. He did not look up when the strangers came down "
    "the steps; he had seen many of them come, and he had seen all of them leave again before the winter. The oldest "
    "of the three asked him the way to the lighthouse, and he pointed with his needle, without a word. "
)


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_they_are_as_small_as_they_are_said_to_be() -> None:
    assert size(WEIGHTS / "char-small") <= 25_000_000
    assert size(WEIGHTS / "reader") + size(WEIGHTS / "ngram") <= 10_000_000


@pytest.mark.parametrize("name", ["char-small", "reader"])
def test_they_were_trained_as_their_presets_say(name: str) -> None:
    notes = read_description(WEIGHTS / name)["notes"]
    made_by, says = from_dict(TrainConfig, notes["config"]), preset(name)
    assert replace(made_by, data=says.data, run=says.run, sharding=says.sharding) == says
    assert notes["step"] == says.steps


@pytest.fixture(scope="module")
def model() -> lexinvariant.Model:
    return lexinvariant.load()


def test_the_head_names_the_symbols_of_english_once_it_has_read_a_while(model: lexinvariant.Model) -> None:
    tok_ST = model.vocab.encode(TEXT[:384])[None].astype(np.int32)
    _, reading = next(readings(model.params, model.config, tok_ST, np.array([7])))
    named_T = np.asarray(decipher_logits(model.params, reading.h_BTD))[0].argmax(axis=1)
    right_T = named_T == tok_ST[0]
    assert right_T[:10].mean() < 0.5 < 0.9 < right_T[-100:].mean()
    # Reading on, it predicts English far better than at first, and better than any count of letters could.
    nats_T = -np.asarray(reading.logp_BT)[0]
    assert nats_T[-100:].mean() < 1.6 < nats_T[:50].mean()


def test_a_renamed_text_has_the_same_probability(model: lexinvariant.Model) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    renamed = TEXT[:120].translate(str.maketrans(letters, letters[7:] + letters[:7]))
    first, second = model.score([TEXT[:120], renamed])
    assert np.array_equal(first, second)
