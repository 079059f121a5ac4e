"""`lexinvariant evaluate`, on models that were never trained."""

import json
import math
from pathlib import Path

import pytest

from lexinvariant.cli.main import main
from lexinvariant.text import LetterVocab, prepare
from tests.tiny_models import save_random_model

FEW = ("--data", "markov12", "--sequences", "4", "--batch-size", "4")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_random_model(
        tmp_path_factory.mktemp("evaluate"), LetterVocab(12), "permuted", "seen", context=24
    )


def test_numbers_are_printed_and_written(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for lexicon in ("permuted", "gaussian"):
        out = tmp_path / f"{lexicon}.json"
        assert main(["evaluate", model, *FEW, "--lexicon", lexicon, "--out", str(out)]) == 0
        found[lexicon] = json.loads(out.read_text())
        assert found[lexicon]["lexicon"] == lexicon and len(found[lexicon]["loss_by_position"]) == 24
        assert f"{math.exp(found[lexicon]['tail_loss']):.4f}" in capsys.readouterr().out
    assert found["permuted"]["loss"] != found["gaussian"]["loss"]
    assert main(["evaluate", model, *FEW]) == 0  # its own lexicon
    assert f"{found['permuted']['loss']:.4f}" in capsys.readouterr().out


def test_what_does_not_fit_is_said(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fresh = save_random_model(tmp_path, LetterVocab(12), "gaussian", "seen", context=24)
    assert main(["evaluate", fresh, *FEW, "--lexicon", "permuted"]) != 0
    assert "no learned table" in capsys.readouterr().err
    small = save_random_model(tmp_path / "small", LetterVocab(5), "permuted", "seen", context=24)
    assert main(["evaluate", small, *FEW]) != 0
    assert "a vocabulary of 12 and the model one of 5" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--sequences", "--batch-size"])
@pytest.mark.parametrize("number", ["0", "-1"])
def test_numbers_that_cannot_be(
    model: str, option: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", model, *FEW, option, number]) == 2
    assert capsys.readouterr().err == f"lexinvariant: {option} is {number}: give a number of at least 1.\n"


def test_a_standard_model_does_not_read_another_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    standard = save_random_model(tmp_path, LetterVocab(20), "learned", "full", context=24)
    assert main(["evaluate", standard, *FEW]) == 2
    assert "the data is in letters12 and the model reads letters20: prepare" in capsys.readouterr().err


def test_of_short_texts_nothing_is_told_at_the_end_of_the_context(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "text.jsonl"
    texts = {"long": "abcd" * 30, "short": "abca"}
    records = [{"text": text, "source": f"{tag}:{i}"} for tag, text in texts.items() for i in range(3)]
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    prepare([str(source)], tmp_path / "data", vocab="letters12", valid=[str(source)])
    few = ["--data", str(tmp_path / "data"), "--sequences", "4", "--batch-size", "4", "--by-tag"]
    assert main(["evaluate", model, *few]) == 0
    long, short = capsys.readouterr().out.splitlines()[-4:-2]
    assert float(long.split()[2]) > 1 and short.split() == ["short", "3", "-"]


def test_json_is_one_object_with_all_numbers(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "numbers.json"
    assert main(["evaluate", model, *FEW, "--json", "--out", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(out.read_text())
    assert (printed["model"], printed["split"], printed["lexicon"]) == (model, "valid", "permuted")
    assert printed["tail_perplexity"] == pytest.approx(math.exp(printed["tail_loss"]))
    assert len(printed["loss_by_position"]) == 24 and printed["sequences"] == 4
    seen, new, share = (printed[f"tail_{name}"] for name in ("seen_loss", "new_loss", "new_share"))
    assert (1 - share) * seen + share * new == pytest.approx(printed["tail_loss"], rel=1e-5)


def test_kinds_of_text_are_measured_apart(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "text.jsonl"
    texts = {"even": "abcd" * 30, "odd": "aabbac" * 20}
    records = [{"text": text, "source": f"{tag}:{i}"} for tag, text in texts.items() for i in range(3)]
    source.write_text("".join(json.dumps(record) + "\n" for record in records))
    prepare([str(source)], tmp_path / "data", vocab="letters12", valid=[str(source)])
    few = ["--sequences", "4", "--batch-size", "4", "--by-tag"]
    assert main(["evaluate", model, "--data", str(tmp_path / "data"), *few, "--json"]) == 0
    by_tag = json.loads(capsys.readouterr().out)["by_tag"]
    assert by_tag.keys() == {"even", "odd"} and by_tag["even"]["loss"] != by_tag["odd"]["loss"]
    assert main(["evaluate", model, "--data", str(tmp_path / "data"), *few]) == 0
    *_, head, even, odd, _, note = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["tag", "contexts"] and even.startswith("even")
    # Of the 15 pieces of each kind as many were measured as --sequences says.
    assert odd.split()[:2] == ["odd", "4"] and f"{by_tag['odd']['tail_perplexity']:.4f}" in odd
    assert "up to 4 contexts of its own" in note
    assert main(["evaluate", model, *FEW, "--by-tag"]) == 2
    assert "markov12 has no separate kinds of text" in capsys.readouterr().err


def test_the_bundled_model_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert "`bundled`" in capsys.readouterr().out
    # Its vocabulary is larger than the toy language's: it predicts that, but it has other names for its symbols.
    assert main(["evaluate", "bundled", "--data", "markov12", "--sequences", "1", "--batch-size", "1"]) == 0
    printed = capsys.readouterr()
    assert "tail_perplexity" in printed.out and "decipher" not in printed.out
    assert "markov12 is in letters12 and bundled names symbols of char128: how well it names" in printed.err


def test_symbols_of_the_models_own_vocabulary_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = save_random_model(tmp_path, LetterVocab(12), "permuted", "seen", context=24, decipher_head=True)
    assert main(["evaluate", named, *FEW]) == 0
    printed = capsys.readouterr()
    assert "tail_deciphered" in printed.out and printed.err == ""
