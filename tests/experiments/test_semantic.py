"""The semantic experiment, from a model with a tokenizer on disk to rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import jax
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel, open_model
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.experiments.semantic import Asked, Options, ask, passage_budget, summaries
from lexinvariant.experiments.semantic_answers import answer_questions, encode, head_scores, read_questions
from lexinvariant.experiments.semantic_passages import LIKE_THE_PAPERS, PASSAGES
from lexinvariant.experiments.semantic_prompts import Question, question_text
from lexinvariant.experiments.semantic_stories import make_story_questions
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.scoring import mixture, score_tokens
from lexinvariant.model.weights import save_model
from lexinvariant.report.draw import draw
from lexinvariant.results.intervals import Share
from lexinvariant.results.measured_model import Role
from lexinvariant.results.rows import Provenance, Rows
from lexinvariant.results.semantic import (
    KINDS,
    Accuracy,
    Answer,
    ExampleAnswered,
    Measured,
    QuestionAnswered,
    Reading,
)
from lexinvariant.text import CharVocab, Vocab, train_tokenizer
from tests.tiny_models import TINY, random_params, save_random_model

CONTEXT, LONG = 240, 480


def run(options: Options, **rest: Any) -> Rows:
    return Rows(find_experiment("semantic").run(options, **rest))


def silent(folder: Path) -> Recorder:
    return Recorder(folder / "rows.jsonl", Provenance("semantic", 0, ""), lambda line: None)


def save_with_head(folder: Path, vocab: Vocab, hindsight_layers: int) -> str:
    """A model that was never trained, with a deciphering head that names something."""
    config = replace(
        TINY, vocab_size=vocab.size, context=CONTEXT, lexicon=LexiconConfig(kind="permuted"), readout="seen",
        decipher_head=True, hindsight_layers=hindsight_layers,
    )  # fmt: skip
    save_model(folder, config, random_params(config, 0.3), vocab)  # a sharper one is sure of everything
    return str(folder)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("semantic")
    (root / "text.txt").write_text("\n".join([*PASSAGES, question_text("drink", ["a"])] * 3))
    words = train_tokenizer([str(root / "text.txt")], root / "words", size=700)
    with (root / "simple.jsonl").open("w") as file:
        for text in (*PASSAGES[:4], "The cat sat."):
            file.write(json.dumps({"text": text.upper(), "source": "own"}) + "\n")
    paper = LIKE_THE_PAPERS[:80] + "\n" + question_text("drink", ("restaurants", "music", "coffee", "father"))
    (root / "paper.tex").write_text(
        "\\section{Semantic Deciphering Full Example}\n\\texttt{" + paper + "}\n\nExample prediction\n"
    )
    return {
        "ours": save_with_head(root / "ours", words, hindsight_layers=0),
        "hindsight": save_with_head(root / "hindsight", words, hindsight_layers=1),
        "standard": save_random_model(root / "standard", words, "learned", "full", context=CONTEXT),
        "long": save_random_model(root / "long", words, "permuted", "seen", context=LONG),
        "other words": save_random_model(root / "other", CharVocab(), "learned", "full", context=CONTEXT),
        "characters": save_random_model(root / "characters", CharVocab(), "permuted", "seen", context=300),
        "text": str(root / "simple.jsonl"),
        "paper": str(root / "paper.tex"),
    }


@pytest.fixture(scope="module")
def measured(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Options, Rows]:
    options = Options(
        model=places["ours"],
        baseline=places["standard"],
        data_text=places["text"],
        paper_tex=Path(places["paper"]),
        out=tmp_path_factory.mktemp("rows"),
        prompts=9,
        batch_size=8,
        continuation=3,
    )
    said: list[str] = []
    rows = run(options, command="lexinvariant experiment semantic", log=said.append)
    assert said[0].startswith("9 questions about stories; 3 of 7 passages have words of fewer than 4")
    assert said[1] == "9 questions about templates"
    return options, rows


MeasuredT = TypeVar("MeasuredT", bound=Measured)


def of_kind(
    rows: Rows, kind: type[MeasuredT], role: Role = "lexinvariant", reading: Reading = "plain"
) -> list[MeasuredT]:
    return [row for row in rows.of(kind) if row.model.role == role and row.reading == reading]


@pytest.mark.parametrize(
    ("role", "reading"), [("lexinvariant", "plain"), ("standard", "plain"), ("standard", "enciphered")]
)
def test_rows_tell_accuracy_of_every_kind_and_each_question(
    measured: tuple[Options, Rows], role: Role, reading: Reading
) -> None:
    options, rows = measured
    assert list(read_all_rows(options.out)) == list(rows)
    accuracies = of_kind(rows, Accuracy, role, reading)
    questions = of_kind(rows, QuestionAnswered, role, reading)
    assert len(questions) == 18
    assert [row.question for row in accuracies] == [
        "stories, paper's wording",
        *(f"templates, {kind}" for kind in KINDS),
    ]
    assert [row.by_mean_token.trials for row in accuracies] == [9, 2, 2, 2, 2, 1]
    for row in accuracies:
        own = [q.answer for q in questions if (q.sort, q.answer.asked) == (row.sort, row.asked)]
        assert row.by_mean_token.value == pytest.approx(np.mean([a.chosen == a.right for a in own]))
        assert row.by_mean_token.low <= row.by_mean_token.value <= row.by_mean_token.high
        for groups in (row.by_category, row.by_times):
            assert sum(share.trials for share in groups.values()) == len(own)
        assert sum(row.chosen_by_place) == pytest.approx(1)
        assert (row.by_head is not None) == (role == "lexinvariant")  # the twin has no head
        assert (row.free_right is None) == (reading == "enciphered")
        if row.by_head:
            by_head = [np.argmax(a.head or []) == a.right for a in own]
            assert row.by_head.value == pytest.approx(np.mean(by_head))
    assert accuracies[0].skipped == 3  # the passage about one cat, and ends that were cut off


def test_the_papers_example_is_asked_where_it_fits(measured: tuple[Options, Rows]) -> None:
    paper, ours = of_kind(measured[1], ExampleAnswered)
    assert [paper.example, ours.example] == ["paper", "ours"]
    assert paper.answer is not None
    assert paper.answer.options == ["restaurants", "music", "coffee", "father"]
    assert paper.answer.head is not None
    assert ours.answer is None  # the whole passage is longer than this model's context
    assert paper.origin.data_hash
    assert not paper.model.characters


def test_the_section_is_drawn_from_what_was_written(measured: tuple[Options, Rows]) -> None:
    made = find_experiment("semantic").section(read_all_rows(measured[0].out))
    assert made is not None
    [figure] = made.figures
    assert len(draw(figure, "light").axes) == 3
    assert [len(table.rows) for table in made.tables if not table.caption.startswith("By cat")] == [18, 7, 6]
    assert len(made.findings) == 1  # the paper's question


SENTENCE = "the dog drank the water in the red house."


def spelled(evaluated: EvaluatedModel, questions: list[Question]) -> tuple[list[np.ndarray], Any]:
    vocab = evaluated.model.vocab
    tails = [[encode(vocab, " " + option) for option in question.options] for question in questions]
    return [encode(vocab, question.prompt) for question in questions], tails


def test_an_option_is_scored_as_its_tokens_after_the_prompt(
    measured: tuple[Options, Rows], tmp_path: Path
) -> None:
    """Against scoring of whole texts; a standard model draws no lexicon, so that both must agree."""
    options, _ = measured
    evaluated = open_model(str(options.baseline))
    model = evaluated.model
    prompts, tails = spelled(evaluated, make_story_questions([SENTENCE], 3, 0).questions)
    tails[0][0] = np.concatenate(tails[1])  # of several tokens
    logp_QO, tok_QN = read_questions(evaluated, prompts, tails, 4, options, silent(tmp_path))
    for q, prompt_T in enumerate(prompts):
        for o, tail in enumerate(tails[q]):
            [logp_T] = score_tokens(model.params, model.config, [np.concatenate([prompt_T, tail])])
            assert logp_QO[q, o] == pytest.approx(logp_T[-len(tail) :].sum(), rel=1e-4)
    np.testing.assert_array_equal(tok_QN, greedy_tokens(model.params, model.config, prompts, 4))


def test_a_calibrated_answer_compares_an_option_with_itself_after_other_questions(
    measured: tuple[Options, Rows], tmp_path: Path
) -> None:
    options, _ = measured
    evaluated = open_model(str(options.baseline))
    questions = make_story_questions([SENTENCE], 2, 0).questions
    answers = answer_questions(evaluated, questions, " ", 1, options, silent(tmp_path), calibrate=True)
    for question, answer in zip(questions, answers, strict=True):
        prompts = [encode(evaluated.model.vocab, question.passage + asked) for asked in question.asked_O]
        assert len({prompt.tobytes() for prompt in prompts}) == 4
        _, [tails] = spelled(evaluated, [question])
        logp_AO, _ = read_questions(evaluated, prompts, [tails] * 4, 1, options, silent(tmp_path))
        expected = np.array(answer.logp) - np.log(np.exp(logp_AO).sum(axis=0))
        np.testing.assert_allclose(answer.above_mean or [], expected, rtol=1e-3)


def test_draws_are_weighted_by_how_well_they_predict_the_prompt(
    measured: tuple[Options, Rows], tmp_path: Path
) -> None:
    options = replace(measured[0], draws=3)
    evaluated = open_model(options.model)
    prompts, tails = spelled(evaluated, make_story_questions([SENTENCE], 2, 0).questions)
    logp_QO, _ = read_questions(evaluated, prompts, tails, 1, options, silent(tmp_path))
    for q, prompt_T in enumerate(prompts):
        whole = np.concatenate([prompt_T, tails[q][1]])
        logp_KST = evaluated.log_probabilities(whole[None], np.array([q]), options, silent(tmp_path), "texts")
        assert logp_QO[q, 1] == pytest.approx(mixture(logp_KST[:, 0])[len(prompt_T) :].sum(), rel=1e-3)


def test_batch_size_changes_nothing(measured: tuple[Options, Rows], tmp_path: Path) -> None:
    options, rows = measured
    evaluated = open_model(options.model)
    asked = ask("stories", options, evaluated)
    again = replace(options, batch_size=5)
    answers = answer_questions(evaluated, asked.questions, " ", 3, again, silent(tmp_path))
    before = [row.answer for row in of_kind(rows, QuestionAnswered) if row.sort == "stories"]
    np.testing.assert_allclose([a.logp for a in answers], [a.logp for a in before], rtol=1e-4)
    np.testing.assert_allclose([a.head for a in answers], [a.head for a in before], rtol=1e-3)
    assert [a.written for a in answers] == [a.written for a in before]


@pytest.mark.parametrize("name", ["ours", "hindsight"])
def test_the_head_is_asked_at_the_occurrences_in_the_passage(
    places: dict[str, str], name: str, tmp_path: Path
) -> None:
    """Against the head's distribution at every position, one option at a time."""
    evaluated = open_model(places[name])
    model, options = evaluated.model, Options(draws=1)
    question = replace(make_story_questions([SENTENCE], 1, 0).questions[0], meant=frozenset(["dog", "house"]))
    [score_O] = head_scores(evaluated, [question], options, silent(tmp_path))
    tok_T = encode(model.vocab, question.passage)
    [(_, output)] = evaluated.forward(tok_T[None].astype(np.int32), np.array([0]), options)
    logits_TV = decipher_logits(model.params, model.config, output.h_BTD, np.ones((1, len(tok_T)), bool))[0]
    p_TV = np.asarray(jax.nn.softmax(logits_TV))
    tokens = {encode(model.vocab, blank + word)[0] for word in question.meant for blank in (" ", "")}
    tokens = {token for token in tokens if model.vocab.decode([token]).strip() in question.meant}
    assert tokens
    for option, score in zip(question.options, score_O, strict=True):
        [place] = np.flatnonzero(tok_T == encode(model.vocab, " " + option)[0])
        assert score == pytest.approx(np.log(p_TV[place, sorted(tokens)].sum()), rel=1e-3)


def test_a_cipher_leaves_a_lexinvariant_model_no_other_choice(
    measured: tuple[Options, Rows], tmp_path: Path
) -> None:
    options, _ = measured
    questions = make_story_questions([SENTENCE], 3, 0).questions
    for place, same in ((options.model, True), (str(options.baseline), False)):
        plain, enciphered = (
            answer_questions(open_model(place), questions, " ", 1, options, silent(tmp_path), reading)
            for reading in get_args(Reading)
        )
        logp = [[answer.logp for answer in answers] for answers in (plain, enciphered)]
        assert np.allclose(*logp, rtol=1e-4) == same
        assert enciphered[0].written is None


def longest_prompt(vocab: Vocab, questions: list[Question]) -> int:
    return max(
        len(encode(vocab, q.prompt)) + max(3, *(len(encode(vocab, " " + o)) for o in q.options))
        for q in questions
    )


def test_generated_passages_and_solved_questions_fit_the_length(places: dict[str, str]) -> None:
    evaluated = open_model(places["long"])
    options = Options(continuation=3, prompts=20, shots=1)
    for length, most in ((0, LONG), (LONG - 100, LONG - 100)):
        asked = ask("templates", replace(options, length=length), evaluated)
        assert most / 2 < longest_prompt(evaluated.model.vocab, asked.questions) <= most


@pytest.mark.parametrize("name", ["ours", "characters"])
def test_passages_are_cut_so_that_question_and_answer_fit_the_context(
    places: dict[str, str], name: str
) -> None:
    evaluated = open_model(places[name])
    vocab, context = evaluated.model.vocab, evaluated.model.config.context
    options = Options(continuation=3, prompts=500)
    asked = ask("stories", options, evaluated)
    assert context / 2 < longest_prompt(vocab, asked.questions) <= context
    assert asked.passages > len(PASSAGES)  # they had to be cut
    assert passage_budget(evaluated, options) < context


def test_a_model_of_characters_spells_its_options(places: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    options = Options(model=places["characters"], out=tmp_path, prompts=2, continuation=1)
    rows = run(options, log=said.append)
    assert any("generated passages (templates) are too long for it and left out" in line for line in said)
    assert all(row.model.characters for row in rows.of(Measured))
    questions = of_kind(rows, QuestionAnswered)
    assert len(questions) == 2
    for row in questions:
        assert row.answer.tokens == [len(option) + 1 for option in row.answer.options]
        assert row.answer.head is None  # it names letters
        assert len((row.answer.written or "").replace("[new]", "_")) == 1


def stories(n: int) -> list[Question]:
    return make_story_questions(list(PASSAGES), n, 0).questions


def summed_up(places: dict[str, str], logp_QO: np.ndarray, n_QO: np.ndarray, written: str) -> Accuracy:
    """Of questions about our passages, with these likelihoods; {} in `written` is the right word."""
    questions = stories(len(logp_QO))
    answers = [
        Answer(
            passage=q.passage_number,
            asked=q.kind,
            category=q.category,
            options=list(q.options),
            right=q.right,
            counts=list(q.counts),
            logp=logp.tolist(),
            tokens=n.tolist(),
            above_mean=logp.tolist(),
            head=(-logp).tolist(),
            written=written.format(q.answer),
        )
        for q, logp, n in zip(questions, logp_QO, n_QO, strict=True)
    ]
    asked = Asked("stories", "text", questions, 1, 0, "")
    [row] = summaries(open_model(places["ours"]), asked, answers, "plain", 0)
    return row


def right_of(n: int) -> np.ndarray:
    return np.array([question.right for question in stories(n)])


def test_a_scorer_that_knows_is_always_right_and_one_that_does_not_care_has_a_quarter(
    places: dict[str, str],
) -> None:
    n_QO = np.ones((30, 4), int)
    knows_QO = np.eye(4)[right_of(30)] - 5
    knows = summed_up(places, knows_QO, n_QO, " - {}. and")
    assert knows.by_mean_token.value == knows.by_whole_option.value == 1.0
    assert knows.by_calibrated == Share(1.0, 30)
    assert knows.by_head == Share(0.0, 30)  # told the contrary
    assert (knows.free_right, knows.free_named) == (Share(1.0, 30), 1.0)
    assert all(share.value == 1.0 for share in knows.by_category.values())
    even = summed_up(places, np.full((30, 4), -7.0), n_QO, " nothing")
    assert even.by_mean_token.value == even.by_whole_option.value == 0.25
    assert (even.free_right, even.free_named) == (Share(0.0, 30), 0.0)


def test_long_options_are_not_punished_by_the_mean_token(places: dict[str, str]) -> None:
    right_QO = np.eye(4, dtype=bool)[right_of(8)]
    # right: -1.5 a token
    told = summed_up(places, np.where(right_QO, -4.5, -2.0), np.where(right_QO, 3, 1), "")
    assert (told.by_mean_token.value, told.by_whole_option.value) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompts": 0}, "--prompts is 0: give at least 1"),
        ({"data_text": "poor"}, "None of the 1 passages has words of 4 categories"),
        ({"paper_tex": "poor"}, "does not hold the paper's semantic example"),
        ({"data_text": "poor", "shots": 1}, "and enough others for 1 solved questions: give a longer text"),
        ({"model": "short"}, "leaves 0 for a passage: give a model whose context has at least"),
        ({"shots": 9}, "fewer --shots or a greater --length"),
        ({"length": 5000}, "--length is 5000 and the context of ours has"),
        ({"length": 150, "sorts": ("templates",)}, "A generated passage does not fit the"),
        ({"model": "characters", "sorts": ("templates",)}, "characters has no questions to answer"),
        ({"baseline": "characters"}, "is lexinvariant itself"),
        ({"baseline": "other words"}, "differ in vocabulary or context"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(
    places: dict[str, str], changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "poor.txt").write_text("The cat sat. " * 3)
    short = save_random_model(tmp_path / "short", CharVocab(), "permuted", "seen", context=64)
    real = {**places, "poor": str(tmp_path / "poor.txt"), "short": short}
    chosen: dict[str, Any] = {name: real.get(str(value), value) for name, value in changes.items()}
    if "paper_tex" in chosen:
        chosen["paper_tex"] = Path(chosen["paper_tex"])
    with pytest.raises(UserError, match=sentence):
        run(Options(**{"model": places["ours"], "out": tmp_path / "out", "prompts": 2} | chosen))
