"""A question about four words of a passage, in the paper's wording or as a sentence to complete.

The paper asks one: a story, then four words of it and which of them is a drink. Stories (semantic_stories.py) and
generated passages (semantic_templates.py) make hundreds. Nothing here knows of models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lexinvariant.results.semantic import Kind

OPTIONS = 4
CountTokens = Callable[[list[str]], list[int]]
"""How many tokens each of some texts takes."""


@dataclass(frozen=True)
class Question:
    """A passage and four of its words, one of which is asked for."""

    passage: str
    asked_O: tuple[str, ...]
    """What could follow the passage to ask for each option: the right one's is the question."""
    kind: Kind
    category: str
    """Of the right option, or the relation that it stands in."""
    options: tuple[str, ...]
    right: int
    counts: tuple[int, ...]
    """How often each option occurs in the passage."""
    meant: frozenset[str]
    """The words that the deciphering head should take the right option for: those of its category."""
    passage_number: int = -1

    @property
    def asked(self) -> str:
        """What follows the passage; the right option would come next."""
        return self.asked_O[self.right]

    @property
    def prompt(self) -> str:
        return self.passage + self.asked

    @property
    def answer(self) -> str:
        return self.options[self.right]


def with_article(category: str) -> str:
    return f"{'an' if category[0] in 'aeiou' else 'a'} {category}"


def question_text(category: str, options: Iterable[str]) -> str:
    """The paper's wording."""
    listed = "".join(f"- {option}\n" for option in options)
    return f"what one here is {with_article(category)}\n{listed}the one here that {category} is"


def words_of(passage: str) -> Counter[str]:
    return Counter(re.findall(r"[a-z]+(?:'[a-z]+)?", passage))


def choose_options(
    known: Mapping[str, Sequence[str]], category: str, word: str, rng: np.random.Generator
) -> tuple[str, ...]:
    """The word and one each of three other categories, in random order."""
    others = rng.permutation([name for name in known if name != category])[: OPTIONS - 1]
    options = [word, *(str(rng.choice(known[str(name)])) for name in others)]
    return tuple(options[place] for place in rng.permutation(OPTIONS))


def solved_questions(
    known: Mapping[str, Sequence[str]], question: Sequence[str], n: int, rng: np.random.Generator
) -> str | None:
    """N questions with their answers, about words that are no options of the one to come, each asked for once; None
    where the passage has too few of them.
    """
    left = {name: [word for word in words if word not in question] for name, words in known.items()}
    left = {name: words for name, words in left.items() if words}
    answers = [(name, word) for name, words in left.items() for word in words]
    if n == 0:
        return ""
    if len(left) < OPTIONS or len(answers) < n:
        return None
    text = ""
    for place in rng.permutation(len(answers))[:n]:
        name, word = answers[place]
        text += f"{question_text(name, choose_options(left, name, word, rng))} {word}\n"
    return text


def credit(score_QO: np.ndarray, right_Q: np.ndarray) -> np.ndarray:
    """1 where the right option alone scores best, 1/k where it ties with k - 1 others for the best, else 0."""
    best_QO = score_QO == score_QO.max(axis=1, keepdims=True)
    return best_QO[np.arange(len(right_Q)), right_Q] / best_QO.sum(axis=1)


def named_option(text: str, options: Sequence[str]) -> int | None:
    """Which option a free continuation begins with: its first word, whatever dashes and blanks stand before it."""
    first = re.match(r"[^a-z]*([a-z]+(?:'[a-z]+)?)", text)
    return options.index(first[1]) if first and first[1] in options else None


def paper_example(latex: str) -> str | None:
    """The prompt of the paper's appendix "Semantic Deciphering Full Example", taken from the paper's own source."""
    _, found, rest = latex.partition(r"\section{Semantic Deciphering Full Example}")
    match = re.search(r"\\texttt\{(.*?)\}\s*\n\s*\n", rest, re.DOTALL) if found else None
    return match[1].strip() if match else None
