"""Questions about words have one right answer, and all their options stand in the passage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.experiments.semantic_passages import LIKE_THE_PAPERS, PASSAGES
from lexinvariant.experiments.semantic_prompts import (
    OPTIONS,
    credit,
    named_option,
    paper_example,
    question_text,
    solved_questions,
    words_of,
)
from lexinvariant.experiments.semantic_stories import cut_passages, make_story_questions, plain_text
from lexinvariant.experiments.semantic_words import CATEGORIES, CATEGORY_OF


def n_characters(parts: list[str]) -> list[int]:
    return [len(part) for part in parts]


def test_every_word_is_of_one_category() -> None:
    assert sum(len(category.words) for category in CATEGORIES.values()) == len(CATEGORY_OF)
    assert all(word.isalpha() and word.islower() for word in CATEGORY_OF)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), n=st.integers(1, 60))
def test_questions_are_well_posed(seed: int, n: int) -> None:
    made = make_story_questions(list(PASSAGES), n, seed)
    assert len(made.questions) == n
    for question in made.questions:
        counts = words_of(question.passage)
        assert question.counts == tuple(counts[option] for option in question.options)
        assert min(question.counts) >= 1
        of = [CATEGORY_OF[option] for option in question.options]
        assert len(set(of)) == OPTIONS
        assert of[question.right] == question.category
        assert [option in question.meant for option in question.options].count(True) == 1
        assert question.prompt == f"{question.passage}\n{question_text(question.category, question.options)}"
    asked = [(question.passage_number, question.answer) for question in made.questions]
    assert len(set(asked)) == n


def test_questions_are_spread_over_passages_categories_and_places() -> None:
    made = make_story_questions(list(PASSAGES), 100, 0)
    passages = [question.passage_number for question in made.questions]
    assert sorted(passages[: len(PASSAGES)]) == list(range(len(PASSAGES)))  # each once before any twice
    by_category = {name: sum(q.category == name for q in made.questions) for name in CATEGORIES}
    assert min(by_category[name] for name in ("drink", "animal", "person", "family member", "colour")) >= 4
    assert max(by_category.values()) <= 13
    places = np.bincount([question.right for question in made.questions], minlength=OPTIONS)
    assert places.min() >= 12


def test_more_than_there_is_cannot_be_asked_and_poor_passages_are_counted() -> None:
    poor, rich = "the dog saw the cat.", "the dog drank the water in the red house."
    made = make_story_questions([poor, rich, poor], 100, 0)
    assert (made.passages, made.skipped) == (3, 2)
    assert sorted(question.answer for question in made.questions) == ["dog", "house", "red", "water"]
    assert make_story_questions([poor], 5, 0).questions == []
    assert make_story_questions([rich], 5, 0, shots=1).questions == []  # no words are left to be asked before


def test_solved_questions_are_about_other_words_and_answered_rightly() -> None:
    made = make_story_questions(list(PASSAGES), 40, 0, shots=3)
    assert len(made.questions) == 40
    for question in made.questions:
        first, *solved = question.asked.split("what one here is a")
        assert first == "\n"
        *solved, last = solved
        assert len(solved) == 3
        assert last.endswith("is")
        told = {text.strip().rpartition(" ")[2] for text in solved}
        assert len(told) == 3
        assert not told & set(question.options)
        for text in solved:
            lines = text.split("\n")
            *_, category_is, answer = lines[5].split(" ")
            assert category_is == "is"
            assert lines[5] == f"the one here that {CATEGORY_OF[answer]} is {answer}"
            assert f"- {answer}" in lines[1:5]
    assert solved_questions({"drink": ["milk"]}, ["milk"], 0, np.random.default_rng(0)) == ""


def test_the_wording_is_the_papers() -> None:
    assert question_text("drink", ("restaurants", "music", "coffee", "father")) == (
        "what one here is a drink\n- restaurants\n- music\n- coffee\n- father\nthe one here that drink is"
    )
    assert question_text("animal", ()).startswith("what one here is an animal\n")


def test_our_passage_is_like_the_papers() -> None:
    counts = words_of(LIKE_THE_PAPERS)
    assert [counts[word] for word in ("restaurants", "music", "coffee", "father")] == [4, 1, 1, 1]


def test_passages_are_whole_sentences_that_fit() -> None:
    text = "One cat. Two DOGS!\n\n'Three?' he said. " + "far too long " * 10 + ". The end."
    passages = list(cut_passages(text, n_characters, 30))
    assert passages == ["one cat. two dogs! 'three?'", "he said.", "the end."]
    assert all(len(passage) <= 30 for passage in passages)
    whole = " ".join(cut_passages("\n".join(PASSAGES), n_characters, 200))
    assert whole == plain_text(" ".join(PASSAGES))


def test_ties_count_in_equal_parts() -> None:
    score_QO = np.array([[0, -1, -2, -3], [0, -1, -2, -3], [-1, -1, -1, -1], [-1, -1, -2, -2.0]])
    np.testing.assert_allclose(credit(score_QO, np.array([0, 1, 2, 0])), [1, 0, 0.25, 0.5])


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (" - coffee. and i", 2),
        (" coffee", 2),
        ("music and coffee", 1),
        (" coffees", None),
        (" the coffee", None),
        ("", None),
        ("[new] - ", None),
    ],
)
def test_a_continuation_names_an_option_by_its_first_word(text: str, option: int | None) -> None:
    assert named_option(text, ("restaurants", "music", "coffee", "father")) == option


def test_the_papers_example_is_found_in_its_source() -> None:
    latex = (
        "\\section{Before}\n\\texttt{no}\n\n\\section{Semantic Deciphering Full Example}\n\\texttt{a story.\n"
        "what one here is a drink\n- x\nthe one here that drink is}\n\nExample prediction:\n\\texttt{ - x}\n\n"
    )
    assert paper_example(latex) == "a story.\nwhat one here is a drink\n- x\nthe one here that drink is"
    assert paper_example("\\section{Another}") is None
