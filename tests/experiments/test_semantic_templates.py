"""Generated passages give evidence of a word's class without ever giving the answer away."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.experiments.semantic_prompts import OPTIONS, Question, question_text, words_of
from lexinvariant.experiments.semantic_templates import NAMED, Design, make_template_questions
from lexinvariant.experiments.semantic_words import CATEGORIES, CATEGORY_OF, RELATIONS, WordList
from lexinvariant.results.semantic import KINDS


def n_words(parts: list[str]) -> list[int]:
    return [len(part.split()) for part in parts]


DESIGN = Design(n_words, 350, most_listed=300)
COMPLETED = ("class", "frame")


def of_kind(questions: list[Question], kind: str) -> list[Question]:
    return [question for question in questions if question.kind == kind]


def test_lists_of_words_are_apart_and_frames_name_none_of_them() -> None:
    frames = []
    for category in CATEGORIES.values():
        tried, kept = set(category.development), set(category.test)
        assert not tried & kept
        assert tried | kept <= category.words
        if category.frames:
            assert min(len(tried), len(kept)) >= 3
            assert len(category.asked_frames) >= 2
            assert all(frame.count("_") == 1 for frame in category.frames)
        frames += category.frames
    for relation in RELATIONS:
        assert not set(sum(relation.test, ())) & set(sum(relation.development, ()))
        assert relation.told.endswith(" B.")
        frames += [relation.told, *relation.frames]
    assert not {word for frame in frames for word in words_of(frame)} & set(CATEGORY_OF)
    assert len(set(frames)) == len(frames)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), mixed=st.booleans(), words=st.sampled_from(["test", "development"]))
def test_a_passage_uses_all_words_and_never_says_the_answer(seed: int, mixed: bool, words: WordList) -> None:
    questions = make_template_questions(20, seed, replace(DESIGN, mixed=mixed, word_list=words))
    assert [question.kind for question in questions] == list(KINDS) * 4
    for question in questions:
        assert sum(n_words([question.passage])) <= DESIGN.most
        assert len(set(question.options)) == OPTIONS
        assert len(set(question.counts)) == 1  # how often a word occurs tells nothing
        assert min(question.counts) >= 2
        assert question.answer in question.meant
        assert sum(option in question.meant for option in question.options) == 1
        assert f"{question.asked.strip()} {question.answer}" not in question.passage
        assert len(set(question.asked_O)) == OPTIONS
        for option in question.options:
            assert f"{NAMED.format(CATEGORY_OF.get(option)).replace('_', option)}" not in question.passage
        if question.kind in COMPLETED:  # others of the category have been seen there, and only they
            seen = re.findall(f"{re.escape(question.asked.strip())} ([a-z]+)\\.", question.passage)
            assert len(seen) == 2
            assert {CATEGORY_OF[word] for word in seen} == {question.category}


def test_words_are_of_the_list_asked_for() -> None:
    questions = make_template_questions(60, 0, replace(DESIGN, word_list="development"))
    tried = {word for category in CATEGORIES.values() for word in category.development}
    tried |= {word for relation in RELATIONS for pair in relation.development for word in pair}
    assert {option for question in questions for option in question.options} <= tried


def test_pairs_are_told_of_others_and_shown_of_all() -> None:
    for relation in RELATIONS:
        pairs = dict(relation.test)
        told = re.compile(relation.told.replace("A", "([a-z]+)").replace("B", "([a-z]+)"))
        for question in of_kind(make_template_questions(20, 3, DESIGN), relation.name):
            said = told.findall(question.passage)
            assert len(said) == 2
            assert all(pairs[first] == second for first, second in said)
            assert not {second for _, second in said} & set(question.options)
            assert pairs[question.asked.split()[-2 if relation.name == "opposite" else 1]] == question.answer


def test_categories_and_places_are_asked_for_evenly() -> None:
    questions = make_template_questions(200, 0, DESIGN)
    for kind in ("paper's wording", "class", "frame"):
        asked = [question.category for question in of_kind(questions, kind)]
        assert len(asked) == 40
        assert max(asked.count(name) for name in asked) <= 6
    places = np.bincount([question.right for question in questions], minlength=OPTIONS)
    assert places.min() >= 35


def test_paragraphs_keep_a_category_together_and_mixed_ones_do_not() -> None:
    def changes(question: Question) -> int:
        """How often the next sentence is about another category."""
        order = [CATEGORY_OF[word] for word in re.findall("[a-z]+", question.passage) if word in CATEGORY_OF]
        return sum(before != after for before, after in pairwise(order))

    for mixed, least, most in ((False, 3, 3), (True, 15, 1000)):
        frame = make_template_questions(3, 0, replace(DESIGN, mixed=mixed))[2]
        assert frame.kind == "frame"
        assert least <= changes(frame) <= most


@pytest.mark.parametrize("shots", [1, 3])
def test_only_the_papers_wording_has_solved_questions(shots: int) -> None:
    for question in make_template_questions(10, 0, replace(DESIGN, shots=shots)):
        listed = question.kind == "paper's wording"
        assert question.asked.count("what one here is") == (shots + 1 if listed else 0)
        if listed:
            assert question.asked.endswith(question_text(question.category, question.options))


def test_what_does_not_fit_is_not_made() -> None:
    assert make_template_questions(5, 0, replace(DESIGN, most=20, most_listed=20)) == []
    assert make_template_questions(5, 0, replace(DESIGN, shots=9)) == []  # there are eight other words
    for changed in ({"most": 120}, {"most_listed": 120}):
        short, long = (
            make_template_questions(3, 0, design) for design in (replace(DESIGN, **changed), DESIGN)
        )
        shorter = [len(a.passage) < len(b.passage) for a, b in zip(short, long, strict=True)]
        assert shorter == [("most_listed" in changed) == (a.kind == "paper's wording") for a in short]
