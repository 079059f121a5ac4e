"""The models that come with the package."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import lexinvariant
from lexinvariant.config import TrainConfig
from lexinvariant.experiments.symbol_tasks import (
    LookUp,
    Permutation,
    alphabet_of,
    make_examples,
)
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.folder import WEIGHTS, read_description
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.presets import preset
from lexinvariant.settings import from_dict

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
    assert size(WEIGHTS / "languages" / "english") <= 10_500_000  # 3.2 of tables, 7.2 of the judge


@pytest.mark.parametrize(
    ("name", "folder"), [("char-small", "char-small"), ("judge", "languages/english/judge")]
)
def test_they_were_trained_as_their_presets_say(name: str, folder: str) -> None:
    notes = read_description(WEIGHTS / folder)["notes"]
    made_by, says = from_dict(TrainConfig, notes["config"]), preset(name)
    assert replace(made_by, data=says.data, run=says.run, sharding=says.sharding) == says
    assert notes["step"] == says.steps


def test_it_is_noted_what_it_has_read() -> None:
    tokens_by_tag = read_description(WEIGHTS / "char-small")["notes"]["tokens_by_tag"]
    assert set(tokens_by_tag) >= {"wiki", "book", "java", "code-python", "maths", "table", "law", "words"}
    assert "records" not in tokens_by_tag, "what it knows of LookUp it has from text alone"


@pytest.fixture(scope="module")
def model() -> lexinvariant.Model:
    return lexinvariant.load()


@pytest.mark.parametrize("kind", ["permuted", "gaussian"])
def test_it_deciphers_english_under_either_lexicon(
    model: lexinvariant.Model, kind: Literal["permuted", "gaussian"]
) -> None:
    config = replace(model.config, lexicon=replace(model.config.lexicon, kind=kind))
    tok_ST = model.vocab.encode(TEXT[:384])[None].astype(np.int32)
    _, output = next(forward_batches(model.params, config, tok_ST, np.array([7])))
    read_BT = np.ones(tok_ST.shape, np.bool_)
    at_once, later = (
        np.asarray(decipher_logits(model.params, config, output.h_BTD, read))[0].argmax(axis=1) == tok_ST[0]
        for read in (None, read_BT)
    )
    assert at_once[:10].mean() < 0.5 < 0.9 < at_once[-100:].mean()
    assert later.mean() > 0.95, "in hindsight the first symbols are known too"
    # Reading on, it predicts English far better than at first, and better than any count of letters could.
    nats_T = -np.asarray(output.logp_BT)[0]
    assert nats_T[-100:].mean() < 1.6 < nats_T[:50].mean()


def test_it_reasons_about_symbols_that_mean_nothing(model: lexinvariant.Model) -> None:
    for task, least in ((LookUp(), 0.8), (Permutation(demonstrations=8), 0.5)):
        examples = make_examples(task, alphabet_of(model.vocab), 16, seed=0)
        prompts, length = list(examples.prompt_ST), examples.answer_SN.shape[1]
        written_SN = greedy_tokens(model.params, model.config, prompts, length, draws=4)
        assert examples.mark(written_SN).accuracy >= least


def test_a_renamed_text_has_the_same_probability(model: lexinvariant.Model) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    renamed = TEXT[:120].translate(str.maketrans(letters, letters[7:] + letters[:7]))
    first, second = model.score([TEXT[:120], renamed])
    assert np.array_equal(first, second)
