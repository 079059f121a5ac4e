"""Questions such as "what one here is a drink", made from a passage in plain words.

The paper asks one: a story, then four words of it and the question which of them is a drink. Here a question is made
from any passage in which words of at least four categories occur: one word of the asked category and one each of three
others, all known to the model from the passage alone. Nothing here knows of models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

OPTIONS = 4

CATEGORIES: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "drink": "water milk tea coffee juice beer wine lemonade cocoa cider",
        "food": "bread cheese meat rice soup cake apple apples banana bananas butter egg eggs sugar honey potato "
        "potatoes beans porridge pie maize sweets pudding",
        "animal": "dog cat horse cow cows goat goats lion lions monkey monkeys rabbit rabbits snake mouse mice "
        "elephant wolf fox frog pig pigs sheep tiger donkey crocodile hyena dogs cats horses ducks",
        "person": "mother father boy boys girl girls king queen brother brothers sister sisters man woman teacher "
        "farmer doctor son daughter uncle aunt grandmother grandfather prince princess wife husband children mum "
        "friends",
        "place": "school house village town river forest market kitchen garden church city farm castle shop street "
        "restaurants sea hill road woods",
        "body part": "hand hands head eye eyes nose ear ears mouth foot feet arm arms leg legs hair finger fingers "
        "teeth tongue neck face knees",
        "colour": "red blue green yellow white black brown grey pink purple",
        "number": "two three four five six seven eight nine ten twelve twenty hundred thousand",
        "piece of clothing": "hat coat shirt shirts dress shoes shoe trousers boots cap gloves socks cloak",
        "time of day": "morning night evening afternoon midnight noon",
    }.items()
}
"""Words of each category, chosen to belong to one only (no "orange", no "chicken")."""
CATEGORY_OF = {word: name for name, words in CATEGORIES.items() for word in words}


@dataclass(frozen=True)
class Question:
    """A passage and four of its words, one of which is asked for."""

    passage: str
    category: str
    options: tuple[str, ...]
    right: int
    """Which option is of the category."""
    counts: tuple[int, ...]
    """How often each option occurs in the passage."""
    passage_number: int = -1

    @property
    def prompt(self) -> str:
        return f"{self.passage}\n{question_text(self.category, self.options)}"

    @property
    def answer(self) -> str:
        return self.options[self.right]


def question_text(category: str, options: Iterable[str]) -> str:
    """The paper's wording."""
    article = "an" if category[0] in "aeiou" else "a"
    listed = "".join(f"- {option}\n" for option in options)
    return f"what one here is {article} {category}\n{listed}the one here that {category} is"


def plain_text(text: str) -> str:
    """Lower case and single blanks, as the paper's example is written: a word is then one symbol wherever it stands."""
    return " ".join(text.lower().split())


def sentences(text: str) -> list[str]:
    return re.split(r"""(?<=[.!?])\s+|(?<=[.!?]['"])\s+""", text)


def cut_passages(text: str, n_tokens: Callable[[list[str]], list[int]], most: int) -> Iterator[str]:
    """A text as consecutive passages of whole sentences that take at most so many tokens; a sentence that takes more
    alone is dropped.
    """
    parts = sentences(plain_text(text))
    passage: list[str] = []
    total = 0
    # A sentence after another one is read with the blank before it.
    for part, n in zip(parts, n_tokens([" " + part for part in parts]), strict=True):
        if passage and total + n > most:
            yield " ".join(passage)
            passage, total = [], 0
        if n <= most:
            passage, total = [*passage, part], total + n
    if passage:
        yield " ".join(passage)


def words_of(passage: str) -> Counter[str]:
    return Counter(re.findall(r"[a-z]+(?:'[a-z]+)?", passage))


def known_words(passage: str) -> dict[str, dict[str, int]]:
    """The words of each category that occur in the passage, with their counts."""
    found: dict[str, dict[str, int]] = {}
    for word, count in sorted(words_of(passage).items()):
        if word in CATEGORY_OF:
            found.setdefault(CATEGORY_OF[word], {})[word] = count
    return found


@dataclass(frozen=True)
class QuestionSet:
    """The questions, and how many passages were looked at and left out for having too few of the words."""

    questions: list[Question]
    passages: int
    skipped: int


def make_questions(passages: list[str], n: int, seed: int) -> QuestionSet:
    """Up to n questions: one a passage, then a second one for another word, and so on.

    Categories are kept even: a passage is asked for the one that has been asked least so far.
    """
    known = {i: known_words(passage) for i, passage in enumerate(passages)}
    usable = [i for i in known if len(known[i]) >= OPTIONS]
    order = np.random.default_rng([seed, 0]).permutation(usable).tolist() if usable else []
    asked: Counter[str] = Counter()
    done: dict[int, set[str]] = {i: set() for i in usable}
    questions: list[Question] = []
    while order and len(questions) < n:
        going_on = []
        for i in order:
            left = {name: sorted(set(words) - done[i]) for name, words in known[i].items()}
            left = {name: words for name, words in left.items() if words}
            if not left or len(questions) == n:
                continue
            rng = np.random.default_rng([seed, 1, i, len(done[i])])
            category = min(left, key=lambda name: asked[name])
            word = str(rng.choice(left[category]))
            done[i].add(word)
            asked[category] += 1
            going_on.append(i)
            questions.append(_ask(passages[i], i, known[i], category, word, rng))
        order = going_on
    return QuestionSet(questions, len(passages), len(passages) - len(usable))


def _ask(
    passage: str,
    number: int,
    known: dict[str, dict[str, int]],
    category: str,
    word: str,
    rng: np.random.Generator,
) -> Question:
    others = rng.permutation([name for name in known if name != category])[: OPTIONS - 1]
    options = [word, *(str(rng.choice(sorted(known[str(name)]))) for name in others)]
    options = [options[place] for place in rng.permutation(OPTIONS)]
    counts = words_of(passage)
    return Question(
        passage,
        category,
        tuple(options),
        options.index(word),
        tuple(counts[option] for option in options),
        number,
    )


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
