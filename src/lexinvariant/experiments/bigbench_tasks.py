"""BIG-bench's JSON tasks as they are published: one task.json a task, or one for each of its subtasks.

What a file leaves out has the benchmark's own default. Nothing in a file is trusted: what cannot be used is told in
one sentence (`UnusableTaskError`), and examples that cannot are left out and counted.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lexinvariant.generators import generator_at

CHOICE_METRIC = "multiple_choice_grade"
TEXT_METRICS = ("exact_str_match", "bleu", "rouge1", "rouge2", "rougeL")
# An answer is one text, for which the two forms of ROUGE-L agree unless it has several lines.
SPELLINGS = {"rouge": ("rougeL", "rouge1", "rouge2"), "rougeLsum": ("rougeL",)}
PUBLISHED_FORMS = ("original", "task.json")
"""How `_form` begins where a file is as published; one without `_form` is taken to be."""
DEFAULT_ANSWER = r"[^\.\?\!\;\n]+"
"""What the benchmark takes of a model's text where a task names neither `stop_string` nor `output_regex`."""


class UnusableTaskError(Exception):
    """A task, or a file of one, that cannot be run; the message is one sentence."""


@dataclass(frozen=True)
class Example:
    """One question: `choices` are those to choose from, with a score each, and `targets` right answers to write: the
    best choices, where the file has no others."""

    input: str
    targets: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()

    @property
    def best_choices(self) -> list[str]:
        best = max(self.scores)
        return [choice for choice, score in zip(self.choices, self.scores, strict=True) if score == best]


@dataclass(frozen=True)
class Subtask:
    """One task.json."""

    name: str
    examples: Sequence[Example]
    metrics: tuple[str, ...]
    """Those that are known and of one kind, by choice or by text; the one that counts comes first."""
    keywords: tuple[str, ...] = ()
    task_prefix: str = ""
    input_prefix: str = "\nQ: "
    output_prefix: str = "\nA: "
    choice_prefix: str = "\n  choice: "
    separator: str = "\n"
    append_choices: bool = True
    stop_string: str = ""
    output_regex: str = ""
    as_published: bool = True
    """False where somebody made prompts of it: what the file says of prompts is then missing."""
    notes: tuple[str, ...] = ()
    """What was left out or taken otherwise, in sentences."""

    @property
    def by_choice(self) -> bool:
        return self.metrics[0] == CHOICE_METRIC


@dataclass(frozen=True)
class Task:
    """A task with its subtasks, which share a metric."""

    name: str
    subtasks: Sequence[Subtask]
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that all subtasks have."""
        first = self.subtasks[0].metrics
        return tuple(metric for metric in first if all(metric in each.metrics for each in self.subtasks))

    @property
    def by_choice(self) -> bool:
        return self.subtasks[0].by_choice

    @property
    def as_published(self) -> bool:
        return all(subtask.as_published for subtask in self.subtasks)

    @property
    def keywords(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(keyword for subtask in self.subtasks for keyword in subtask.keywords))


def parse_subtask(name: str, data: bytes) -> Subtask:
    """One task.json; raises `UnusableTaskError`."""
    try:
        raw = json.loads(data, object_pairs_hook=_Pairs.of)
    except (ValueError, RecursionError) as error:
        raise UnusableTaskError(f"It is not valid JSON ({error}).") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("examples"), list):
        raise UnusableTaskError("It has no list of `examples`.")
    notes: list[str] = []
    examples, dropped, twice = _examples(raw["examples"])
    notes += [f"{n:,} {reason}." for reason, n in dropped.items()]
    if twice:
        notes.append(f"{twice:,} examples have a choice twice; it was kept once, with the higher score.")
    if not examples:
        raise UnusableTaskError(" ".join(["None of its examples can be used.", *notes]))
    metrics, told = _metrics(raw, examples)
    usable = [example for example in examples if example.choices or metrics[0] != CHOICE_METRIC]
    if not usable:
        raise UnusableTaskError(f"None of its examples has target_scores, which {metrics[0]} needs.")
    if len(usable) < len(examples):
        notes.append(f"{len(examples) - len(usable):,} examples without target_scores were left out.")
    form = str(raw.get("_form", PUBLISHED_FORMS[0]))
    published = form.startswith(PUBLISHED_FORMS)
    # Prompts that somebody made end where the answer begins; other converted inputs have their options in them.
    made: dict[str, Any] = {} if published else {"append_choices_to_input": False}
    if form.startswith("prompts"):
        made |= {
            "example_input_prefix": "",
            "example_output_prefix": " ",
            "few_shot_example_separator": "\n\n",
        }
    text = made | {key: value for key, value in raw.items() if value is not None}
    return Subtask(
        name,
        usable,
        metrics,
        tuple(_whole(word) for word in _list(raw.get("keywords")) if isinstance(word, str)),
        _string(text, "task_prefix", ""),
        _string(text, "example_input_prefix", "\nQ: "),
        _string(text, "example_output_prefix", "\nA: "),
        _string(text, "choice_prefix", "\n  choice: "),
        _string(text, "few_shot_example_separator", "\n"),
        bool(text.get("append_choices_to_input", True)),
        _string(text, "stop_string", ""),
        _answer_pattern(text, usable),
        published,
        (*notes, *told),
    )


def name_rng(name: str, seed: int, number: int = 0) -> np.random.Generator:
    """Random numbers that belong to a name: what is drawn for one task depends on no other."""
    return generator_at(seed, zlib.crc32(name.encode()), number)


class _Pairs(dict[str, Any]):
    """A JSON object that remembers whether a key came twice, with the greater of two numbers."""

    twice = False

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> _Pairs:
        found = cls()
        for key, value in pairs:
            if key in found:
                found.twice = True
                if isinstance(value, int | float) and isinstance(found[key], int | float):
                    value = max(value, found[key])
            found[key] = value
        return found


def _examples(raw: list[Any]) -> tuple[list[Example], Counter[str], int]:
    """Those that can be used, how many could not and why, and how many have a choice twice."""
    examples: dict[Example, None] = {}
    dropped: Counter[str] = Counter()
    twice = 0
    for each in raw:
        if not isinstance(each, dict) or not isinstance(each.get("input"), str):
            dropped["examples without an input were left out"] += 1
            continue
        scores = each.get("target_scores", {})
        numbers = isinstance(scores, dict) and all(
            isinstance(score, int | float) and abs(score) <= 1e6 for score in scores.values()
        )
        choices: dict[str, float] = {}
        for choice, score in scores.items() if numbers else ():
            choice = _whole(choice).strip()
            choices[choice] = max(float(score), choices.get(choice, float(score)))
        targets = [target for target in _list(each.get("target")) if isinstance(target, str | int | float)]
        stripped = tuple(filter(None, (_whole(str(target)).strip() for target in targets)))
        if not numbers or "" in choices or len(choices) == 1:
            dropped["examples with target_scores that are not choices with numbers were left out"] += 1
            continue
        if not choices and not stripped:
            dropped["examples with an empty target were left out"] += 1
            continue
        twice += len(choices) < len(scores) or getattr(scores, "twice", False)
        example = Example(_whole(each["input"]), stripped, tuple(choices), tuple(choices.values()))
        if not example.targets:
            example = replace(example, targets=tuple(example.best_choices))
        if example in examples:
            dropped["examples that repeat another were left out"] += 1
        examples[example] = None
    return list(examples), dropped, twice


def _metrics(raw: dict[str, Any], examples: Sequence[Example]) -> tuple[tuple[str, ...], list[str]]:
    """Known metrics of one kind, the preferred one first, and what was taken otherwise."""
    by_choice = any(example.choices for example in examples)
    listed = [metric for metric in _list(raw.get("metrics")) if isinstance(metric, str)]
    preferred = raw.get("preferred_score")
    wanted = ([preferred] if isinstance(preferred, str) else []) + listed
    if not wanted:
        metric = CHOICE_METRIC if by_choice else TEXT_METRICS[0]
        return (metric,), [f"It names no metric; {metric} was used."]
    spelled = list(dict.fromkeys(name for metric in wanted for name in SPELLINGS.get(metric, (metric,))))
    known = [metric for metric in spelled if metric in (CHOICE_METRIC, *TEXT_METRICS)]
    if not known:
        raise UnusableTaskError(
            f"Its metric {wanted[0]} is not known here: known are {CHOICE_METRIC}, {', '.join(TEXT_METRICS)}."
        )
    of_kind = tuple(metric for metric in known if (metric == CHOICE_METRIC) == (known[0] == CHOICE_METRIC))
    if known[0] == spelled[0]:
        return of_kind, []
    return of_kind, [f"Its metric {wanted[0]} is not known here; {known[0]} was used."]


def _answer_pattern(raw: dict[str, Any], examples: Sequence[Example]) -> str:
    """What of a model's text is its answer. The benchmark's default ends it at the first full stop; where that would
    cut a right answer, it ends with the line, and where that would too, not at all.
    """
    pattern = raw.get("output_regex")
    if isinstance(pattern, str) and pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UnusableTaskError(f"Its output_regex is not a regular expression ({error}).") from error
        return pattern
    if raw.get("stop_string"):
        return ""
    targets = [target for example in examples for target in example.targets]
    for pattern in (DEFAULT_ANSWER, r"[^\n]+"):
        if all(re.fullmatch(pattern, target) for target in targets):
            return pattern
    return ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _string(raw: dict[str, Any], key: str, default: str) -> str:
    value = raw.get(key, default)
    if not isinstance(value, str):
        raise UnusableTaskError(f"Its {key} is no text.")
    return _whole(value)


def _whole(text: str) -> str:
    """Without halves of surrogate pairs, which JSON may hold and which have no UTF-8 form."""
    return text.encode("utf-8", "replace").decode("utf-8")
