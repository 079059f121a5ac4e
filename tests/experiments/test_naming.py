"""Naming the tokens of held-out text: from models on disk to rows, against what is counted by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import held_out, open_model
from lexinvariant.experiments.naming import Options, over_occurrences, token_ranks
from lexinvariant.experiments.naming_passage import PASSAGE
from lexinvariant.experiments.registry import Pair, find_experiment, read_all_rows
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.weights import save_model
from lexinvariant.report.draw import draw
from lexinvariant.results.naming import FollowedText, Named, Unicity
from lexinvariant.results.rows import Rows
from lexinvariant.text import CharVocab, Vocab, prepare, train_tokenizer
from tests.tiny_models import TINY, random_params

CONTEXT, WINDOW, SEQUENCES = 48, 12, 5


def save(folder: Path, vocab: Vocab, *, standard: bool = False, **changes: Any) -> str:
    ours: dict[str, Any] = {"readout": "seen", "decipher_head": True, "decipher_hidden": 8}
    config: ModelConfig = replace(
        TINY,
        vocab_size=vocab.size,
        context=CONTEXT,
        lexicon=LexiconConfig("learned" if standard else "permuted"),
        **({} if standard else ours) | changes,
    )
    save_model(folder, config, random_params(config, 0.2), vocab)
    return str(folder)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("naming")
    (root / "text.txt").write_text(PASSAGE * 3)
    text = str(root / "text.txt")
    words = train_tokenizer([text], root / "words", size=300)
    prepare([text], root / "data", vocab=str(root / "words"), valid=[text], test=[text])
    prepare([text], root / "letters", valid=[text], test=[text])
    return {
        "ours": save(root / "ours", words, hindsight_layers=1),
        "headless": save(root / "headless", words, decipher_head=False),
        "standard": save(root / "standard", words, standard=True),
        "characters": save(root / "characters", CharVocab()),
        "data": str(root / "data"),
        "letters": str(root / "letters"),
    }


def run(options: Options, **rest: Any) -> Rows:
    return Rows(find_experiment("naming").run(options, **rest))


@pytest.fixture(scope="module")
def measured(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Options, Rows]:
    options = Options(
        model=places["ours"],
        baseline=places["standard"],
        data=places["data"],
        sequences=SEQUENCES,
        window=WINDOW,
        batch_size=2,
        draws=2,
        out=tmp_path_factory.mktemp("rows"),
    )
    return options, run(options)


def test_shares_are_those_counted_by_hand(measured: tuple[Options, Rows]) -> None:
    """Every likelier name, every average over draws, done anew with plain NumPy."""
    options, rows = measured
    so_far, hindsight, _ = rows.of(Named)
    evaluated = open_model(options.model)
    model, text = evaluated.model, held_out(evaluated, options.data, "test", SEQUENCES)
    for row, read in ((so_far, None), (hindsight, jnp.ones((SEQUENCES, CONTEXT), bool))):
        p_STV = np.zeros((*text.tok_ST.shape, model.config.vocab_size))
        for draw_number in range(2):
            h_STD = np.concatenate(
                [
                    np.asarray(h)
                    for _, (_, h) in evaluated.forward(text.tok_ST, text.piece_S, options, draw_number)
                ]
            )
            logits = decipher_logits(model.params, model.config, jnp.asarray(h_STD), read)
            p_STV += np.asarray(jax.nn.softmax(logits)) / 2
        p_right_ST = np.take_along_axis(p_STV, text.tok_ST[:, :, None].astype(np.int64), axis=2)[:, :, 0]
        likelier_ST = (p_STV > p_right_ST[:, :, None]).sum(axis=2)[:, -WINDOW:]
        assert row.at_end.named.value == pytest.approx((likelier_ST == 0).mean())
        assert row.at_end.among_five.value == pytest.approx((likelier_ST < 5).mean())
        assert row.at_end.nats == pytest.approx(-np.log(p_right_ST[:, -WINDOW:]).mean(), rel=1e-4)
        assert row.share_by_position[-1] == pytest.approx(row.at_end.named.value)
        assert len(row.share_by_position) == CONTEXT - WINDOW + 1


def test_the_parts_of_every_way_of_naming_make_up_the_whole(measured: tuple[Options, Rows]) -> None:
    named = measured[1].of(Named)
    assert [row.namer for row in named] == ["so far", "in hindsight", "left contexts"]
    for row in named:
        for parts in (row.by_occurrence, row.by_rank):
            tokens = sum(score.named.trials for score in parts.values())
            assert tokens == row.at_end.named.trials == SEQUENCES * WINDOW
            right = sum(score.named.value * score.named.trials for score in parts.values())
            assert right / tokens == pytest.approx(row.at_end.named.value)


def test_left_contexts_of_all_occurrences_are_multiplied() -> None:
    rng = np.random.default_rng(0)
    tok_T, logp_TV = np.array([3, 1, 3, 3, 1, 0]), rng.normal(size=(6, 4))
    expected = [logp_TV[: t + 1][tok_T[: t + 1] == tok_T[t]].sum(axis=0) for t in range(6)]
    found = over_occurrences(jnp.asarray(logp_TV, jnp.float32), jnp.asarray(tok_T))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_text_says_little_about_a_large_key(measured: tuple[Options, Rows]) -> None:
    [row] = measured[1].of(Unicity)
    [point] = row.points  # the context is shorter than 64
    assert row.model.role == "standard"
    assert point.tokens == CONTEXT
    assert 1 < point.types < CONTEXT
    assert 0 < point.key_bits < point.types * np.log2(row.model.vocab_size)


def test_tokens_of_a_text_are_followed(measured: tuple[Options, Rows], places: dict[str, str]) -> None:
    options, rows = measured
    [text] = rows.of(FollowedText)
    vocab = open_model(options.model).model.vocab
    tok_T = vocab.encode(PASSAGE)[:CONTEXT]
    assert text.n_tokens == CONTEXT
    for token in text.tokens:
        assert [vocab.decode([tok_T[place]]) for place in token.positions] == [token.token] * len(
            token.positions
        )
        assert len(token.p_right) == len(token.guesses) == len(token.positions)
        for guesses, p in zip(token.guesses, token.p_right, strict=True):
            assert [guess.p for guess in guesses] == sorted((guess.p for guess in guesses), reverse=True)
            assert p <= guesses[0].p
        assert len(token.hindsight) == 5
    chosen = replace(options, words=("and", "the"), baseline=None, draws=1)
    [followed] = run(replace(chosen, text="the cat and the dog and the man and the fire. " * 2)).of(
        FollowedText
    )
    assert [token.token.strip() for token in followed.tokens] == ["and", "the"]
    assert followed.label == "text"


def test_the_section_is_drawn_from_what_was_written(
    measured: tuple[Options, Rows], places: dict[str, str]
) -> None:
    options, _ = measured
    letters = replace(
        options, model=places["characters"], data=places["letters"], baseline=None, label="letters"
    )
    run(replace(letters, draws=1))
    part = find_experiment("naming").section(read_all_rows(options.out))
    assert part is not None
    for figure in part.figures:
        assert draw(figure, "dark").axes
    grids = [figure for figure in part.figures if figure.colour_bar]
    assert grids[0].panels[0].x.names[-2:] == ["last", "hindsight"]
    assert "last: " in grids[0].alt
    assert [row[2] for row in part.tables[0].rows][-1] == "head, by what came before"


def test_ranks_are_those_of_the_training_text(places: dict[str, str]) -> None:
    rank_V = token_ranks(places["letters"])
    assert rank_V[ord(" ")] == 1
    assert sorted(rank_V) == list(range(1, 129))
    assert rank_V[ord("Q")] > rank_V[ord("z")] or "z" not in PASSAGE
    assert sorted(token_ranks("markov12")) == list(range(1, 13))


def test_it_is_run_for_tokenizers_with_a_head(places: dict[str, str], tmp_path: Path) -> None:
    suits = find_experiment("naming").suits
    fitting = {
        name: suits(Pair(places[name], places["data"], tmp_path))
        for name in ("ours", "headless", "characters")
    }
    assert fitting == {"ours": True, "headless": False, "characters": False}


def test_what_cannot_be_measured_is_said_in_one_sentence(places: dict[str, str], tmp_path: Path) -> None:
    def fails(match: str, model: str, **changes: Any) -> None:
        with pytest.raises(UserError, match=match):
            run(
                Options(
                    model=places[model], data=places["data"], out=tmp_path / "out", sequences=2, **changes
                )
            )

    fails("has no deciphering head", "headless")
    fails("not a lexinvariant model", "standard")
    fails("too few to name", "ours", text="the cat")
    fails("There is no file the/cat.txt", "ours", text="the/cat.txt")
    (tmp_path / "binary").write_bytes(b"\xff\xfe z")
    fails("is not UTF-8 text", "ours", text=str(tmp_path / "binary"))
    fails("nothing but blanks", "ours", text="\n" * 20)
    fails("'housing' is not a token of the text: the nearest is", "ours", words=("housing",))
    fails("vocabulary of", "characters")
    assert not (tmp_path / "out").exists()
