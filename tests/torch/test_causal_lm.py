"""transformers reads our folders, and we read its."""

# ruff: noqa: E402 (what needs PyTorch is imported once it is known to be there)

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.api import load
from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.folder import BUNDLED, find_model
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab, HuggingFaceVocab, train_tokenizer
from tests.tiny_models import TINY, random_params

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'lexinvariant[torch]'")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install 'lexinvariant[torch]'"
)

import lexinvariant.torch  # it registers our models
from lexinvariant.torch import LexinvariantForCausalLM

TEXT = "the cat and the hat and the cat sat there, the cat that sat there"
STANDARD = replace(TINY, n_layers=2, context=64, lexicon=LexiconConfig(kind="learned"), smeared_keys=True)
CONFIGS = {
    "regularised": replace(STANDARD, lexicon=LexiconConfig(kind="token-permuted")),
    "counting": replace(STANDARD, count_occurrences=True),
}


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> HuggingFaceVocab:
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "text.txt").write_text("the cat and the hat and the cat sat there " * 20)
    return train_tokenizer([str(folder / "text.txt")], folder / "tokenizer.json", size=270)


def export(folder: Path, config: ModelConfig, vocab: HuggingFaceVocab, **how: Any) -> Path:
    config = replace(config, vocab_size=vocab.size)
    save_model(folder, config, random_params(config, scale=0.5), vocab, notes={"step": 3}, **how)
    return folder


def open_model(folder: Path, **how: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, **how)


@pytest.fixture(scope="module", params=CONFIGS)
def folder(
    request: pytest.FixtureRequest, vocab: HuggingFaceVocab, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return export(tmp_path_factory.mktemp("model"), CONFIGS[request.param], vocab)


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return open_model(folder)


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


def test_logits_and_loss_are_ours(folder: Path, model: Any, tokenizer: Any) -> None:
    assert isinstance(model, LexinvariantForCausalLM) and not model.training
    ours = load(folder)
    ids = tokenizer(TEXT, return_tensors="pt").input_ids
    assert ids[0].tolist() == ours.vocab.encode(TEXT).tolist()
    assert tokenizer.decode(ids[0]) == TEXT
    output = model(ids, labels=ids, output_hidden_states=True)
    logp = torch.log_softmax(output.logits, dim=2)[0].detach().numpy()
    np.testing.assert_allclose(
        logp, ours.logits(TEXT).log_probs[1:], atol=1e-4
    )  # row 0 is the start vector's
    assert output.loss.item() == pytest.approx(-ours.score(TEXT)[0][1:].mean(), abs=1e-4)
    assert len(output.hidden_states) == 3
    np.testing.assert_allclose(output.hidden_states[-1][0].detach(), ours.hidden_states(TEXT), atol=1e-4)
    assert model(ids, return_dict=False)[0].shape == output.logits.shape
    torch.testing.assert_close(model(ids, logits_to_keep=2).logits, output.logits[:, -2:])


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8", "int6"])
def test_every_precision_is_read(tmp_path: Path, vocab: HuggingFaceVocab, precision: str) -> None:
    folder = export(tmp_path, CONFIGS["regularised"], vocab, precision=precision)
    ids = torch.from_numpy(vocab.encode(TEXT).astype(np.int64))[None]
    expected = lexinvariant.torch.load(folder).logits(TEXT).log_probs[1:]
    found = torch.log_softmax(open_model(folder)(ids).logits, dim=2)[0].detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    half = open_model(folder, dtype=torch.bfloat16)
    assert half.dtype == torch.bfloat16
    found = torch.log_softmax(half(ids).logits, dim=2)[0].detach().numpy()
    assert 1e-4 < np.abs(found - expected).max() < 0.3


def test_padding_on_either_side_changes_nothing(model: Any) -> None:
    text = torch.tensor([[5, 6, 7, 5, 6, 8, 5]])
    expected = model(text).logits
    pad = torch.full((1, 3), 5)
    on, off = torch.ones_like(text), torch.zeros_like(pad)
    right = model(torch.cat([text, pad], 1), attention_mask=torch.cat([on, off], 1)).logits[:, :7]
    left = model(torch.cat([pad, text], 1), attention_mask=torch.cat([off, on], 1)).logits[:, 3:]
    torch.testing.assert_close(right, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(left, expected, atol=1e-5, rtol=1e-5)


def test_generation_is_ours_with_and_without_a_cache(folder: Path, model: Any) -> None:
    ours = load(folder)
    prompts = [np.array([5, 6, 7, 5, 6]), np.array([9, 8])]
    expected = greedy_tokens(ours.params, ours.config, prompts, 12)
    ids = torch.tensor([[5, 6, 7, 5, 6], [0, 0, 0, 9, 8]])
    mask = torch.tensor([[1] * 5, [0, 0, 0, 1, 1]])
    counting = ours.config.count_occurrences
    for use_cache in (None,) if counting else (True, False):
        how = {} if use_cache is None else {"use_cache": use_cache}
        found = model.generate(ids, attention_mask=mask, max_new_tokens=12, do_sample=False, **how)
        assert found[:, 5:].tolist() == expected.tolist()
    if counting:
        with pytest.raises(UserError, match="give use_cache=False"):
            model.generate(ids[:1], max_new_tokens=3, use_cache=True)
    else:
        beams = [model.generate(ids[:1], max_new_tokens=6, num_beams=3, use_cache=on) for on in (True, False)]
        assert beams[0].tolist() == beams[1].tolist()


def test_a_saved_model_is_read_by_transformers_and_by_us(
    folder: Path, model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ids = torch.tensor([[5, 6, 7, 5, 6]])
    torch.testing.assert_close(open_model(tmp_path)(ids).logits, model(ids).logits)
    ours, again = load(folder), load(tmp_path)
    assert again.config == ours.config
    np.testing.assert_array_equal(again.score(TEXT)[0], ours.score(TEXT)[0])
    assert json.loads((tmp_path / "config.json").read_text())["notes"] == {"step": 3}


def test_training_reaches_every_parameter_that_predicts(folder: Path) -> None:
    model = open_model(folder).train()
    ids = torch.tensor([[5, 6, 7, 5, 6, 8, 5, 6, 7]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(5):
        loss = model(ids, labels=ids).loss
        loss.backward()
        losses.append(loss.item())
        untouched = {name for name, value in model.named_parameters() if value.grad is None}
        optimizer.step()
        optimizer.zero_grad()
    assert untouched == {"start_D"}
    assert losses[-1] < losses[0]


def test_fresh_parameters_are_of_a_model_that_can_be_trained() -> None:
    config = transformers.AutoConfig.for_model("lexinvariant", model=asdict(STANDARD))
    assert (config.vocab_size, config.num_hidden_layers, config.hidden_size) == (128, 2, 16)
    model = transformers.AutoModelForCausalLM.from_config(config)
    ids = torch.arange(40)[None]
    assert model(ids, labels=ids).loss.item() == pytest.approx(np.log(128), abs=1.5)


def test_a_lexinvariant_model_is_sent_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lexinvariant\.torch\.load\(FOLDER\)"):
        open_model(find_model(BUNDLED))
    config = replace(STANDARD, readout="seen")
    save_model(tmp_path, config, random_params(config), CharVocab())
    with pytest.raises(UserError, match="has the readout 'seen'"):
        open_model(tmp_path)


def test_a_folder_from_before_model_types_can_be_brought_up_to_date(
    tmp_path: Path, vocab: HuggingFaceVocab
) -> None:
    old = export(tmp_path / "old", STANDARD, vocab)
    description = json.loads((old / "config.json").read_text())
    del description["model_type"], description["architectures"]
    (old / "config.json").write_text(json.dumps(description))
    LexinvariantForCausalLM.from_pretrained(old).save_pretrained(tmp_path / "new")
    assert isinstance(open_model(tmp_path / "new"), LexinvariantForCausalLM)
