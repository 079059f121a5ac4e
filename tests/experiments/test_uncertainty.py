"""What a symbol is taken for, with heads whose answer is known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.decipher.probe import Probe, ProbeConfig, ProbeParams, save_probe
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import open_model
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.uncertainty import Options
from lexinvariant.model.batches import forward_batches
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.params import Params
from lexinvariant.model.weights import save_model
from lexinvariant.report.draw import draw as draw_figure
from lexinvariant.results.paper_texts import PAPER_TEXTS, SYMBOL
from lexinvariant.results.uncertainty import Posterior
from lexinvariant.text import CharVocab, Vocab, train_tokenizer
from tests.tiny_models import random_params

T = 24
CONFIG = ModelConfig(
    vocab_size=128,
    context=T,
    n_layers=1,
    width=8,
    n_heads=2,
    head_dim=4,
    hidden=12,
    lexicon=LexiconConfig("permuted"),
    readout="seen",
    decipher_head=True,
    decipher_hidden=6,
)


def save(folder: Path, config: ModelConfig, params: Params, vocab: Vocab | None = None) -> str:
    save_model(folder, config, params, vocab or CharVocab())
    return str(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save(tmp_path_factory.mktemp("models") / "random", CONFIG, random_params(CONFIG))


def small(out: Path, model: str, **changes: Any) -> Options:
    return Options(model=model, out=out, **({"draws": 2, "batch_size": 1} | changes))


def run(options: Options, **rest: Any) -> list[Posterior]:
    rows = find_experiment("uncertainty").run(options, **rest)
    return [row for row in rows if isinstance(row, Posterior)]


def posterior(out: Path, model: str, text: str, **changes: Any) -> np.ndarray:
    [row] = run(small(out, model, text=text, **changes))
    return row.p_OV


@pytest.fixture(scope="module")
def papers(model: str, tmp_path_factory: pytest.TempPathFactory) -> list[Posterior]:
    out = tmp_path_factory.mktemp("papers")
    said: list[str] = []
    rows = run(small(out, model), command="lexinvariant experiment uncertainty", log=said.append)
    assert list(read_all_rows(out)) == rows
    assert (
        sum("an occurrence beyond that is read with the 24 symbols that end in it" in line for line in said)
        == 4
    )
    assert sum("the truth, 'b', goes from" in line for line in said) == 1
    return rows


def test_the_papers_four_texts_are_read_by_default(papers: list[Posterior]) -> None:
    assert [(row.label, row.truth, row.temperature) for row in papers] == [
        ("bat", "b", 1.0),
        ("rat", "r", 1.0),
        ("Java", "{", 2.0),
        ("Python", ":", 3.0),
    ]
    assert [len(row.words) for row in papers] == [7, 6, 6, 7]
    assert papers[1].words == ["pazk", "zat.", "zat", "zight", "nevez", "befoze."]
    assert papers[3].words[-3:] == ["elsez", "elsez", "def func2()z"]
    assert all(row.namer == "head" and row.origin.draws == 2 and row.name == "random" for row in papers)


def test_every_row_is_a_distribution(papers: list[Posterior]) -> None:
    for row in papers:
        for values_OV in (row.p_OV, np.array(row.untempered)):
            assert values_OV.shape == (len(row.positions), 128)
            np.testing.assert_allclose(values_OV.sum(axis=1), 1, rtol=1e-5)  # rows keep seven digits
            assert (values_OV >= 0).all()
        same = np.allclose(row.p_OV, row.untempered)
        assert same == (row.temperature == 1)
        assert [row.text[i] for i in row.positions] == ["z"] * row.text.count("z")


def test_the_papers_texts_are_one_to_one_ciphers() -> None:
    for one in PAPER_TEXTS:
        assert one.text.isascii()
        assert one.truth not in one.text  # else two symbols would stand for one character
        assert SYMBOL in one.text
    assert (
        "mid - 1 \n      return binary_search() \n" in PAPER_TEXTS[-1].text
    )  # spaces at line ends, as printed


def test_occurrences_are_read_where_they_stand(model: str, tmp_path: Path) -> None:
    text = "xzyzz, zoo"
    [row] = run(small(tmp_path, model, text=text))
    assert row.positions == [1, 3, 4, 7]
    evaluated = open_model(model)
    tok_1T = np.zeros((1, T), np.int32)
    tok_1T[0, : len(text)] = [ord(character) for character in text]
    expected_OV = np.zeros((4, 128))
    for draw in range(2):
        [(_, reading)] = forward_batches(evaluated.model.params, CONFIG, tok_1T, np.zeros(1, int), draw=draw)
        logits_BTV = np.asarray(
            decipher_logits(evaluated.model.params, evaluated.model.config, reading.h_BTD)
        )
        expected_OV += softmax(logits_BTV[0, [1, 3, 4, 7]], axis=1) / 2
    np.testing.assert_allclose(row.p_OV, expected_OV, atol=1e-5)


def test_only_the_pattern_up_to_an_occurrence_counts(model: str, tmp_path: Path) -> None:
    def first(text: str) -> np.ndarray:
        return posterior(tmp_path, model, text)[0]

    bad = first("a bad zoo")
    np.testing.assert_allclose(first("a bad zebra"), bad, atol=1e-6)  # what follows does not count
    np.testing.assert_array_equal(first("e pet zoo"), bad)  # nor do names: other symbols in the same pattern
    assert np.abs(first("a bab zoo") - bad).max() > 1e-3
    ending_in_a = posterior(tmp_path, model, "a bad aoo", symbol="a")
    assert np.abs(ending_in_a[-1] - bad).max() > 1e-3


def test_beyond_the_context_an_occurrence_is_read_with_the_window_that_ends_in_it(
    model: str, tmp_path: Path
) -> None:
    text = "the zebra, and then some more of it until another zebra"
    at = text.rindex("z")
    assert at > T
    whole = posterior(tmp_path, model, text)
    np.testing.assert_allclose(whole[1], posterior(tmp_path, model, text[at - T + 1 : at + 1])[0], atol=1e-6)
    np.testing.assert_allclose(whole[0], posterior(tmp_path, model, text[:20])[0], atol=1e-6)


def test_nothing_depends_on_the_batch_size(model: str, papers: list[Posterior], tmp_path: Path) -> None:
    for one, other in zip(papers, run(small(tmp_path, model, batch_size=100)), strict=True):
        np.testing.assert_allclose(one.p_OV, other.p_OV, atol=1e-5)


def test_temperature_flattens_and_sharpens(model: str, tmp_path: Path) -> None:
    plain, hot, cold = (
        posterior(tmp_path, model, "pizza zone", temperature=value) for value in (1.0, 1e9, 1e-4)
    )
    np.testing.assert_allclose(hot, 1 / 128, rtol=1e-6)
    np.testing.assert_array_equal(cold.argmax(axis=1), plain.argmax(axis=1))
    np.testing.assert_allclose(cold.max(axis=1), 1)


def always(character: str) -> np.ndarray:
    bias_V = np.zeros(128, np.float32)
    bias_V[ord(character)] = 1000
    return bias_V


def test_a_rigged_head_gives_its_one_answer(tmp_path: Path) -> None:
    params = random_params(CONFIG)
    assert params.decipher is not None
    rigged = replace(params.decipher, down_bias_V=jnp.asarray(always("q")))
    place = save(tmp_path / "rigged", CONFIG, replace(params, decipher=rigged))
    for row in run(small(tmp_path, place)):
        np.testing.assert_allclose(row.p_OV[:, ord("q")], 1.0)


def test_a_probe_replaces_the_head(model: str, tmp_path: Path) -> None:
    evaluated = open_model(model)
    # Logits are out_D @ table_VD / sqrt(D): with all else zero only the bias and the table's row of "k" are left.
    table_VD = np.zeros((128, 8), np.float32)
    table_VD[ord("k"), 0] = 1
    params = ProbeParams(
        up_DP=jnp.zeros((8, 3)),
        up_bias_P=jnp.zeros(3),
        down_PD=jnp.zeros((3, 8)),
        down_bias_D=jnp.full(8, 1000.0),
        table_VD=jnp.asarray(table_VD),
    )
    config = ProbeConfig(hidden=3)
    save_probe(Probe(params, config, evaluated.hash, "data", {}), tmp_path / "probe")
    [row] = run(small(tmp_path, model, text="zoo", probe=tmp_path / "probe"))
    assert row.namer == "probe"
    assert row.p_OV[0, ord("k")] == pytest.approx(1)
    save_probe(Probe(params, config, "another", "data", {}), tmp_path / "foreign")
    with pytest.raises(UserError, match="trained on another model"):
        run(small(tmp_path, model, probe=tmp_path / "foreign"))


def test_a_text_may_be_a_file(model: str, tmp_path: Path) -> None:
    file = tmp_path / "story.txt"
    file.write_text("a quick queen\n")
    [row] = run(small(tmp_path, model, text=str(file), symbol="q", truth="x"))
    assert (row.label, row.positions, row.truth, row.paper_says) == ("story", [2, 8], "x", None)
    [row] = run(small(tmp_path, model, text="no file " * 60 + "z", label="mine"))
    assert (row.label, row.positions) == ("mine", [480])
    file.write_bytes(b"\xff\xfe z")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        run(small(tmp_path, model, text=str(file)))
    for mistyped in ("stories/zebra", "zebra.txt"):
        with pytest.raises(UserError, match=f"There is no file {mistyped}"):
            run(small(tmp_path, model, text=mistyped))


def test_a_truth_that_is_there_itself_is_remarked_on(model: str, tmp_path: Path) -> None:
    said: list[str] = []
    run(small(tmp_path, model, text="the bat and the zat", truth="b"), log=said.append)
    assert any("two symbols for one character" in line for line in said)


def test_the_section_is_drawn_from_what_was_written(model: str, tmp_path: Path) -> None:
    run(small(tmp_path, model))
    run(small(tmp_path, model, text="pizza zone", label="mine"))
    part = find_experiment("uncertainty").section(read_all_rows(tmp_path))
    assert part is not None
    for figure in part.figures:
        assert len(draw_figure(figure, "light").axes) >= len(figure.panels)
    assert [figure.name for figure in part.figures] == ["uncertainty", "uncertainty-mine"]
    assert [row[0] for row in part.tables[0].rows] == ["bat", "rat", "Java", "Python", "mine"]
    [finding] = part.findings
    assert finding.paper == 4


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"text": "no such letter"}, "'z' does not occur in the text"),
        ({"text": "zoé"}, "'é' in it, which is not ASCII"),
        ({"text": "zoo", "symbol": "zo"}, "--symbol is 'zo': give one ASCII character"),
        ({"text": "zoo", "truth": "é"}, "--truth is 'é': give one ASCII character"),
        ({"text": "zoo", "label": "bat"}, "one of the paper's texts"),
        ({"truth": "b"}, "give it with --text"),
        ({"symbol": "q"}, "give it with --text"),
        ({"draws": 0}, "at least 1"),
        ({"temperature": 0.0}, "give a number above 0"),
        ({"temperature": float("nan")}, "give a number above 0"),
        ({"probe": Path("none")}, "no probe at none"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    model: str, tmp_path: Path, changes: dict[str, Any], match: str
) -> None:
    with pytest.raises(UserError, match=match):
        run(small(tmp_path / "out", model, **changes))
    assert not (tmp_path / "out").exists()


def test_models_that_cannot_decipher(tmp_path: Path) -> None:
    headless = replace(CONFIG, decipher_head=False)
    place = save(tmp_path / "headless", headless, random_params(headless))
    with pytest.raises(UserError, match="headless has no deciphering head: give a probe"):
        run(small(tmp_path, place))
    standard = replace(CONFIG, lexicon=LexiconConfig("learned"), readout="full")
    place = save(tmp_path / "standard", standard, random_params(standard))
    with pytest.raises(UserError, match="standard is not a lexinvariant model"):
        run(small(tmp_path, place))
    (tmp_path / "text.txt").write_text("the cat and the hat and the cat sat there " * 20)
    vocab = train_tokenizer([str(tmp_path / "text.txt")], tmp_path / "tokenizer.json", size=270)
    tokens = replace(CONFIG, vocab_size=vocab.size)
    place = save(tmp_path / "tokens", tokens, random_params(tokens), vocab)
    with pytest.raises(UserError, match="reads the tokens of a tokenizer"):
        run(small(tmp_path, place))
