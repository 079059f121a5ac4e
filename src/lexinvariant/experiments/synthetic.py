"""LookUp and Permutation: reasoning over symbols that mean nothing (the paper's section "Synthetic Reasoning Tasks" and
the frequency-adjusted table of its appendix).

The model writes each answer greedily, token by token, separators included; its accuracy is the share of the answers'
symbols that are right at their place. The paper tells neither table sizes nor shot counts: the defaults are those of
the examples it prints, and --sweep shows what other choices give.

Rows: `task` (one a model, task and way of drawing symbols) and `sweep` (one a model and size of the task).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import CommonOptions, EvaluatedModel, open_one_or_pair
from lexinvariant.experiments.intervals import wilson
from lexinvariant.experiments.news import News
from lexinvariant.experiments.rows import Provenance, Row, RowWriter
from lexinvariant.experiments.symbol_tasks import (
    Alphabet,
    Answers,
    Continue,
    Examples,
    LookUp,
    Permutation,
    Task,
    alphabet_of,
    answer,
    check,
    copied_from_another_line,
    make_examples,
)
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.text import Corpus, MarkovLanguage, open_data

Say = Callable[[str], None]
SHOWN_EXAMPLES = 5
COUNTED_AT_ONCE, PIECE = 256, 4096


@dataclass(frozen=True)
class Options(CommonOptions):
    """LookUp and Permutation, two tasks over symbols that mean nothing, with a lexinvariant model and its standard
    twin.

    Example: lexinvariant experiment synthetic --model runs/mine/model --baseline runs/mine-standard/model --data
    data/stdlib --sweep
    """

    batch_size: int = 64
    """Examples at a time. Results do not depend on it."""
    baseline: str | None = None
    """The model's standard twin, trained on the same data, to measure beside it."""
    data: str | None = None
    """A folder written by `lexinvariant data prepare`: symbols are then also drawn in proportion to how often each
    occurs in its train split. Without it they are only drawn evenly."""
    label: str = ""
    """Name of the training data in the table, which shows the newest run of each. Default: the data folder's name."""
    examples: int = 1000
    """Examples of each task; the paper's number."""
    draws: int = 1
    """Lexicons that a lexinvariant model's probabilities are averaged over."""
    pairs: int = 3
    """LookUp: lines of the table. The paper's example has 3."""
    demonstrations: int = 1
    """Permutation: solved lines before the question. The paper's example has 1."""
    length: int = 3
    """Permutation: symbols of a sequence. The paper's example has 3."""
    answer: int = 2
    """Permutation: symbols of an answer. The paper's example has 2."""
    line_end: str = "\n"
    """What ends a line; something else is needed only for a tokenizer that cannot write line ends."""
    sweep: bool = False
    """Also measure a grid of table sizes, demonstrations and lengths (symbols drawn evenly)."""
    sweep_examples: int = 1000
    """Examples of each point of the grid."""
    sweep_pairs: tuple[int, ...] = (1, 2, 3, 4, 8, 16, 32, 64)
    """LookUp: table sizes of the grid. Those that do not fit the context are left out."""
    sweep_demonstrations: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Permutation: numbers of demonstrations of the grid."""
    sweep_lengths: tuple[int, ...] = (2, 3, 4, 6)
    """Permutation: sequence lengths of the grid; answers have one symbol less, as in the paper's example."""

    @property
    def corpus_name(self) -> str:
        return self.label or (Path(self.data).resolve().name if self.data else "")

    def tasks(self) -> tuple[Task, ...]:
        return LookUp(self.pairs), Permutation(self.demonstrations, self.length, self.answer)

    def grid(self) -> Iterator[Task]:
        for pairs in self.sweep_pairs:
            yield LookUp(pairs)
        for length in self.sweep_lengths:
            for demonstrations in self.sweep_demonstrations:
                yield Permutation(demonstrations, length, max(1, length - 1))


def run(options: Options, command: str = "", say: Say = lambda line: None) -> list[Row]:
    """Measure the tasks and append their rows to synthetic.jsonl in the output folder."""
    if min(options.examples, options.sweep_examples, options.draws) < 1:
        raise UserError("--examples, --sweep-examples and --draws are counts: give each at least 1.")
    for task in (*options.tasks(), *options.grid()):
        check(task)
    models = open_one_or_pair(options.model, options.baseline)
    alphabets, data_hash = _alphabets(options, models[0])
    for task in options.tasks():
        _check_fits(task, make_examples(task, alphabets["even"], 1, options.seed), models[0])
    provenance = Provenance(
        experiment="synthetic",
        seed=options.seed,
        command=command,
        model_hash=models[0].hash,
        data_hash=data_hash,
        draws=options.draws,
    )
    with RowWriter(options.out / "synthetic.jsonl", provenance) as writer:
        rows = [
            writer.write("task", **measure(options, evaluated, task, drawn, alphabet, options.examples, say))
            for drawn, alphabet in alphabets.items()
            for task in options.tasks()
            for evaluated in models
        ]
        if options.sweep:
            rows += [
                writer.write(
                    "sweep",
                    **measure(
                        options, evaluated, task, "even", alphabets["even"], options.sweep_examples, say
                    ),
                )
                for task in _that_fit(options, models[0], alphabets["even"], say)
                for evaluated in models
            ]
    return rows


def _alphabets(options: Options, evaluated: EvaluatedModel) -> tuple[dict[str, Alphabet], str | None]:
    """The ways of drawing symbols, and the fingerprint of the data that gave the frequencies."""
    vocab = evaluated.model.vocab
    alphabets = {"even": alphabet_of(vocab, line_end=options.line_end)}
    if options.data is None:
        return alphabets, None
    corpus = open_data(options.data)
    if isinstance(corpus, MarkovLanguage) or corpus.vocab.name != vocab.name:
        raise UserError(
            f"{options.data} was prepared with the vocabulary {corpus.vocab.name} and {evaluated.name} reads "
            f"{vocab.name}: give data prepared with the model's own vocabulary."
        )
    alphabets["frequency"] = alphabet_of(vocab, token_counts(corpus), options.line_end)
    return alphabets, corpus.fingerprint


def token_counts(corpus: Corpus) -> np.ndarray:
    """How often each token occurs in the train split."""
    pieces = corpus.split("train", min(PIECE, corpus.manifest.tokens("train")))
    count_V = np.zeros(corpus.vocab_size, np.int64)
    for start in range(0, len(pieces), COUNTED_AT_ONCE):
        part = pieces[np.arange(start, min(start + COUNTED_AT_ONCE, len(pieces)))]
        count_V += np.bincount(part.tok_BT[part.mask_BT], minlength=corpus.vocab_size)
    return count_V


def _n_tokens(examples: Examples) -> int:
    return examples.prompt_ST.shape[1] + examples.answer_SN.shape[1]


def _check_fits(task: Task, examples: Examples, evaluated: EvaluatedModel) -> None:
    context = evaluated.model.config.context
    if _n_tokens(examples) > context:
        smaller = "--pairs" if isinstance(task, LookUp) else "--demonstrations or --length"
        raise UserError(
            f"An example of {task.name} takes {_n_tokens(examples)} tokens and the context of {evaluated.name} has "
            f"{context}: give a smaller {smaller}."
        )


def _that_fit(options: Options, evaluated: EvaluatedModel, alphabet: Alphabet, say: Say) -> list[Task]:
    fitting = []
    for task in options.grid():
        n = min(len(alphabet.symbol_M), alphabet.n_drawable)
        if task.most_different > n:
            say(f"left out: {task} needs {task.most_different} different symbols and there are {n}")
        elif _n_tokens(make_examples(task, alphabet, 1, options.seed)) > evaluated.model.config.context:
            say(f"left out: {task} does not fit the context of {evaluated.model.config.context}")
        else:
            fitting.append(task)
    return fitting


def greedy_model(evaluated: EvaluatedModel, options: Options, say: Say) -> Continue:
    """The model as something that continues prompts."""

    def continue_(prompt_ST: np.ndarray, n: int) -> np.ndarray:
        news = News(say, f"{evaluated.name}, prompts of {prompt_ST.shape[1]} tokens", len(prompt_ST))
        return greedy_tokens(
            evaluated.model.params,
            evaluated.model.config,
            list(prompt_ST),
            n,
            seed=options.seed,
            draws=options.draws,
            batch_size=options.batch_size,
            dtype=options.dtype,
            advance=news,
        )

    return continue_


def measure(
    options: Options, evaluated: EvaluatedModel, task: Task, drawn: str, alphabet: Alphabet, n: int, say: Say
) -> dict[str, Any]:
    examples = make_examples(task, alphabet, n, options.seed)
    answers = answer(examples, greedy_model(evaluated, options, say))
    values = describe(task, drawn, alphabet, examples, answers)
    say(
        f"{evaluated.name}: {task} with symbols drawn {'evenly' if drawn == 'even' else 'by frequency'}: "
        f"{values['accuracy']:.1%} of answer symbols right ({values['low']:.1%} to {values['high']:.1%})"
    )
    vocab, config = evaluated.model.vocab, evaluated.model.config
    shown = [
        {
            "prompt": vocab.decode(examples.prompt_ST[i]),
            "answer": vocab.decode(examples.answer_SN[i]),
            "written": vocab.decode(answers.written_SN[i]),
        }
        for i in range(min(SHOWN_EXAMPLES, n))
    ]
    return {
        "label": options.corpus_name,
        "group": f"{options.corpus_name}, {vocab.name}".lstrip(", "),
        "name": evaluated.name,
        "name_hash": evaluated.hash,
        "lexinvariant": config.lexicon.is_lexinvariant,
        "vocab": vocab.name,
        "vocab_size": config.vocab_size,
        "characters": evaluated.knows_characters,
        "records_share": evaluated.records_share,
        **values,
        "shown": shown,
    }


def describe(
    task: Task, drawn: str, alphabet: Alphabet, examples: Examples, answers: Answers
) -> dict[str, Any]:
    """What is told of a task's answers.

    Intervals take an example for one trial: the symbols of one answer are not independent of each other.
    """
    n = len(examples.prompt_ST)
    low, high = wilson(answers.accuracy, n)
    by_position = answers.accuracy_by_position
    return {
        "task": task.name,
        "setting": task.setting,
        "drawn": drawn,
        "symbols": alphabet.n_drawable,
        "examples": n,
        "prompt_tokens": examples.prompt_ST.shape[1],
        "accuracy": answers.accuracy,
        "low": low,
        "high": high,
        "by_position": by_position,
        "by_position_low": [wilson(share, n)[0] for share in by_position],
        "by_position_high": [wilson(share, n)[1] for share in by_position],
        "with_separators": answers.accuracy_with_separators,
        "whole": answers.whole,
        "copied": copied_from_another_line(examples, answers, alphabet),
        "from_prompt": float(
            (answers.written_SN[:, :, None] == examples.prompt_ST[:, None, :])
            .any(axis=2)[:, examples.is_symbol_N]
            .mean()
        ),
    }
