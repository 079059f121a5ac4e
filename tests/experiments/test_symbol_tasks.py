"""Examples of LookUp and Permutation can be solved from the prompt alone, and are scored as said."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexinvariant.errors import UserError
from lexinvariant.experiments.symbol_tasks import (
    Alphabet,
    Examples,
    LookUp,
    Permutation,
    Task,
    alphabet_of,
    copied_from_another_line,
    make_examples,
)
from lexinvariant.text import CharVocab, LetterVocab, train_tokenizer

CHARACTERS = alphabet_of(CharVocab())
TASKS = st.one_of(
    st.builds(LookUp, st.integers(1, 12)),
    st.integers(1, 6).flatmap(
        lambda length: st.builds(Permutation, st.integers(1, 4), st.just(length), st.integers(1, length))
    ),
)


def text_of(tokens: np.ndarray) -> str:
    return CharVocab().decode(tokens)


def solve(prompt: str) -> str:
    """Work an answer out as a reader would: from the text of the prompt and nothing else."""
    *lines, question = prompt.split("\n")
    asked = question.removesuffix("->")
    if " " not in lines[0] and len(lines[0]) == 4:  # key->value; a sequence of one symbol looks the same
        table = dict(line.split("->") for line in lines)
        return table.get(asked, asked)
    places = []
    for line in lines:
        before, after = (part.split(" ") for part in line.split("->"))
        places.append([before.index(symbol) for symbol in after])
    assert all(place == places[0] for place in places)
    return " ".join(asked.split(" ")[place] for place in places[0])


@settings(max_examples=60, deadline=None)
@given(task=TASKS, seed=st.integers(0, 2**16))
def test_the_answer_follows_from_the_prompt_alone(task: Task, seed: int) -> None:
    examples = make_examples(task, CHARACTERS, 3, seed)
    for prompt_T, answer_N in zip(examples.prompt_ST, examples.answer_SN, strict=True):
        assert solve(text_of(prompt_T)) + "\n" == text_of(answer_N)
        assert set(answer_N[examples.is_symbol_N].tolist()) <= set(prompt_T.tolist())
    assert not np.isin(examples.answer_SN[:, ~examples.is_symbol_N], CHARACTERS.symbol_M).any()


def codes(text: str) -> np.ndarray:
    return CharVocab().encode(text).astype(np.int64)


def test_the_forms_are_those_that_the_paper_prints() -> None:
    only_a = Alphabet(codes("A"), np.ones(1), codes("->"), codes("\n"), codes(" "))
    parts, right = LookUp(1).example(only_a, np.random.default_rng(0))
    assert (text_of(np.concatenate(parts)), right) == ("A->A\nA->", [ord("A")])
    examples = make_examples(Permutation(1, 3, 2), CHARACTERS, 1, 0)
    assert [len(part) for part in text_of(examples.prompt_ST[0]).split("\n")] == [10, 7]
    assert examples.is_symbol_N.tolist() == [True, False, True, False]


def test_symbols_of_characters_are_printable_and_no_separators() -> None:
    symbols = text_of(CHARACTERS.symbol_M)
    assert len(symbols) == 92
    assert symbols.isprintable()
    assert not set(symbols) & set("-> \n")
    assert text_of(CHARACTERS.arrow) == "->"
    assert not set(text_of(alphabet_of(CharVocab(), line_end=";").symbol_M)) & set("->; ")


def test_symbols_of_a_tokenizer_are_single_tokens_and_separators_their_own_encoding(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat -> the mat\nthe é dog -- and the dog\n" * 50)
    vocab = train_tokenizer([str(tmp_path / "text.txt")], tmp_path / "words", size=290)
    alphabet = alphabet_of(vocab)
    texts = [vocab.decode([token]) for token in alphabet.symbol_M]
    assert " the" in texts
    assert all(text.strip() and not set(text.strip(" ")) & set("->\n") for text in texts)
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(texts)
    for separator, text in ((alphabet.arrow, "->"), (alphabet.line_end, "\n"), (alphabet.gap, " ")):
        assert vocab.decode(separator) == text
        assert not set(separator.tolist()) & set(alphabet.symbol_M.tolist())
    examples = make_examples(LookUp(3), alphabet, 4, 0)
    # Every symbol is one token, so that all prompts have one length whatever the words.
    per_line = 2 + len(alphabet.arrow) + len(alphabet.line_end)
    assert examples.prompt_ST.shape == (4, 3 * per_line + 1 + len(alphabet.arrow))


def test_symbols_are_drawn_in_proportion_to_their_frequency() -> None:
    frequency_V = np.zeros(128)
    frequency_V[codes("abcd")] = [50, 25, 20, 5]
    frequency_V[codes(" -\n")] = 1000  # separators are no symbols, however frequent
    alphabet = alphabet_of(CharVocab(), frequency_V)
    assert alphabet.n_drawable == 4
    values = make_examples(LookUp(2), alphabet, 2000, 0).answer_SN[:, 0]
    observed = np.array([(values == code).sum() for code in codes("abcd")])
    expected = 2000 * np.array([0.5, 0.25, 0.2, 0.05])
    assert observed.sum() == 2000
    assert ((observed - expected) ** 2 / expected).sum() < 16.3  # 0.1% of chi-square with 3 degrees
    even = make_examples(LookUp(2), CHARACTERS, 2000, 0).answer_SN[:, 0]
    counts = np.bincount(even, minlength=128)[CHARACTERS.symbol_M]
    assert ((counts - 2000 / 92) ** 2 / (2000 / 92)).sum() < 137  # 0.1% of chi-square with 91 degrees


def test_an_example_is_the_same_however_many_are_made() -> None:
    few, many = (make_examples(Permutation(2, 4, 3), CHARACTERS, n, 5) for n in (3, 20))
    np.testing.assert_array_equal(few.prompt_ST, many.prompt_ST[:3])
    assert len(np.unique(many.prompt_ST, axis=0)) == 20


def written_by(predict: Callable[[np.ndarray], int], examples: Examples) -> np.ndarray:
    """What a function that names the next token writes after each prompt."""
    tok_ST = examples.prompt_ST
    for _ in range(examples.answer_SN.shape[1]):
        next_S = np.array([predict(tok_T) for tok_T in tok_ST])
        tok_ST = np.concatenate([tok_ST, next_S[:, None]], axis=1)
    return tok_ST[:, examples.prompt_ST.shape[1] :]


def knows_the_answer(tok_T: np.ndarray) -> int:
    """An oracle: solves the prompt anew at each step and reads off the token that is due."""
    text = text_of(tok_T)
    prompt, _, begun = text.rpartition("->")
    full = solve(prompt + "->") + "\n"
    return ord(full[len(begun)])


@pytest.mark.parametrize("task", [LookUp(5), Permutation(2, 4, 3)])
def test_an_oracle_is_always_right(task: Task) -> None:
    examples = make_examples(task, CHARACTERS, 50, 1)
    answers = examples.mark(written_by(knows_the_answer, examples))
    assert answers.accuracy == answers.accuracy_with_separators == answers.whole == 1.0
    assert set(answers.accuracy_by_position) == {1.0}


def test_a_blind_guess_is_right_once_in_as_many_times_as_there_are_symbols() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    examples = make_examples(Permutation(1, 3, 2), CHARACTERS, n, 2)
    answers = examples.mark(written_by(lambda tok_T: int(rng.choice(CHARACTERS.symbol_M)), examples))
    chance = 1 / 92
    assert abs(answers.accuracy - chance) < 4 * np.sqrt(chance * (1 - chance) / (2 * n))
    assert answers.accuracy_with_separators == pytest.approx(answers.accuracy / 2)  # no separator was written


def test_an_early_mistake_stays_in_the_text() -> None:
    """Generation, not teacher forcing: what was written is read again."""
    examples = make_examples(Permutation(1, 4, 3), CHARACTERS, 10, 3)
    seen: list[int] = []

    def wrong_first(tok_T: np.ndarray) -> int:
        seen.append(int(tok_T[-1]))
        return ord("~") if text_of(tok_T).endswith("->") else knows_the_answer(tok_T)

    answers = examples.mark(written_by(wrong_first, examples))
    assert answers.accuracy_by_position[1:] == [1.0, 1.0]
    assert answers.whole == pytest.approx(answers.accuracy_by_position[0])
    assert seen.count(ord("~")) >= 10


def test_answers_copied_from_another_line_are_told_from_right_ones() -> None:
    examples = make_examples(Permutation(2, 3, 2), CHARACTERS, 20, 4)
    n = examples.answer_SN.shape[1]
    demonstrated = examples.mark(examples.prompt_ST[:, 7 : 7 + n])
    assert text_of(examples.prompt_ST[0, 5:7]) == "->"
    assert copied_from_another_line(examples, demonstrated, CHARACTERS) == 1.0
    solved = examples.mark(written_by(knows_the_answer, examples))
    assert copied_from_another_line(examples, solved, CHARACTERS) == 0.0
    beside = examples.mark(examples.prompt_ST[:, 6 : 6 + n])
    assert copied_from_another_line(examples, beside, CHARACTERS) == 0.0


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (LookUp(0), "nothing to look up"),
        (Permutation(0, 3, 2), "--demonstrations 1 or more"),
        (Permutation(1, 3, 4), "--answer from 1 to"),
        (Permutation(1, 3, 0), "--answer from 1 to"),
        (LookUp(93), "needs 93 different symbols and the vocabulary has 92"),
    ],
)
def test_what_cannot_be_made_is_refused(task: Task, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make_examples(task, CHARACTERS, 1, 0)


def test_a_vocabulary_without_separators_or_symbols_is_refused() -> None:
    with pytest.raises(UserError, match="letters12 cannot write '->'"):
        alphabet_of(LetterVocab(12))
    with pytest.raises(UserError, match="no symbols that could be drawn"):
        alphabet_of(CharVocab(), np.zeros(128))
