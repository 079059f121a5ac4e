"""LookUp and Permutation: reasoning over symbols that mean nothing (the paper's section "Synthetic Reasoning Tasks" and
the frequency-adjusted table of its appendix).

The model writes each answer greedily, token by token, separators included; its accuracy is the share of the answers'
symbols that are right at their place. The paper tells neither table sizes nor shot counts: the defaults are those of
the examples it prints, and --sweep shows what other choices give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from lexinvariant.errors import UserError
from lexinvariant.experiments.evaluated_model import EvaluatedModel, open_one_or_pair
from lexinvariant.experiments.options import Count, PairOptions
from lexinvariant.experiments.recorder import Recorder
from lexinvariant.experiments.symbol_tasks import (
    Alphabet,
    Examples,
    LookUp,
    Permutation,
    Task,
    alphabet_of,
    check,
    copied_from_another_line,
    make_examples,
)
from lexinvariant.progress import Log
from lexinvariant.results.intervals import Share
from lexinvariant.results.synthetic import DRAWN, Result, ResultT, Setting, Shown, SweepResult, TaskResult
from lexinvariant.text import Corpus, MarkovLanguage, open_data

SHOWN_EXAMPLES = 5
COUNTED_AT_ONCE, PIECE = 256, 4096


@dataclass(frozen=True)
class Options(PairOptions):
    """Measure a lexinvariant model and its standard twin on LookUp and Permutation, two tasks over meaningless
    symbols.

    example: lexinvariant experiment synthetic --model runs/mine/model --baseline runs/mine-standard/model --data
    data/stdlib --sweep
    """

    batch_size: Count = 64
    """Examples per batch; results do not depend on it."""
    draws: Count = 8
    """Lexicons to average a lexinvariant model's probabilities over; the paper defines them as that mean."""
    data: str | None = None
    """A folder written by `lexinvariant data prepare`. Symbols are then drawn both uniformly and by their frequency in
    its train split; without it only uniformly."""
    label: str = ""
    """Name of the training data in the table, which shows the newest run of each. Default: the data folder's name."""
    examples: Count = 1000
    """Examples of each task. Default: the paper's number."""
    pairs: int = 3
    """LookUp: lines in the table (the paper's example has 3)."""
    demonstrations: int = 1
    """Permutation: solved lines before the question (the paper's example has 1)."""
    length: int = 3
    """Permutation: symbols in a sequence (the paper's example has 3)."""
    answer: int = 2
    """Permutation: symbols in an answer (the paper's example has 2)."""
    line_end: str = "\n"
    """What ends a line. Only a tokenizer that cannot write line ends needs anything else."""
    sweep: bool = False
    """Also measure a grid of table sizes, demonstrations and lengths (symbols drawn uniformly)."""
    sweep_examples: Count = 1000
    """Examples at each point of the grid."""
    sweep_pairs: tuple[int, ...] = (1, 2, 3, 4, 8, 16, 32, 64)
    """LookUp: table sizes in the grid; those that do not fit the context are left out."""
    sweep_demonstrations: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Permutation: numbers of demonstrations in the grid."""
    sweep_lengths: tuple[int, ...] = (2, 3, 4, 6)
    """Permutation: sequence lengths in the grid; answers are one symbol shorter, as in the paper's example."""

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


def run(options: Options, recorder: Recorder) -> None:
    """A row a model, task and way of drawing symbols, and one a model and size of the sweep."""
    for task in (*options.tasks(), *options.grid()):
        check(task)
    models = open_one_or_pair(options.model, options.baseline)
    alphabets, data_hash = _alphabets(options, models[0])
    for task in options.tasks():
        _check_fits(task, make_examples(task, alphabets[0], 1, options.seed), models[0])
    recorder.measured_on(model_hash=models[0].hash, data_hash=data_hash)
    jobs: list[tuple[type[Result], Task, Alphabet, int]] = [
        (TaskResult, task, alphabet, options.examples) for alphabet in alphabets for task in options.tasks()
    ]
    if options.sweep:
        fitting = _that_fit(options, models[0], alphabets[0], recorder.log)
        jobs += [(SweepResult, task, alphabets[0], options.sweep_examples) for task in fitting]
    for kind, task, alphabet, n in jobs:
        for evaluated in models:
            row = recorder.write(measure(kind, options, evaluated, task, alphabet, n, recorder))
            recorder.log(
                f"{evaluated.name}: {task} with symbols {DRAWN[row.drawn]}: {row.accuracy} of answer symbols right"
            )


def _alphabets(options: Options, evaluated: EvaluatedModel) -> tuple[list[Alphabet], str | None]:
    """The symbols, drawn uniformly and perhaps by frequency, and the fingerprint of the data that gave the
    frequencies."""
    vocab = evaluated.model.vocab
    even = alphabet_of(vocab, line_end=options.line_end)
    if options.data is None:
        return [even], None
    corpus = open_data(options.data)
    if isinstance(corpus, MarkovLanguage) or corpus.vocab.name != vocab.name:
        raise UserError(
            f"{options.data} was prepared with the vocabulary {corpus.vocab.name} and {evaluated.name} reads "
            f"{vocab.name}: give data prepared with the model's own vocabulary."
        )
    return [even, alphabet_of(vocab, token_counts(corpus), options.line_end)], corpus.fingerprint


def token_counts(corpus: Corpus) -> np.ndarray:
    """How often each token occurs in the train split; where symbols stand for words, which ones is chance."""
    pieces = corpus.split("train", min(PIECE, corpus.manifest.tokens("train")))
    count_V = np.zeros(corpus.vocab_size, np.int64)
    for start in range(0, len(pieces), COUNTED_AT_ONCE):
        part = pieces[np.arange(start, min(start + COUNTED_AT_ONCE, len(pieces)))]
        count_V += np.bincount(part.tok_BT[part.mask_BT & part.named_B[:, None]], minlength=corpus.vocab_size)
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


def _that_fit(options: Options, evaluated: EvaluatedModel, alphabet: Alphabet, log: Log) -> list[Task]:
    fitting = []
    for task in options.grid():
        n = min(len(alphabet.symbol_M), alphabet.n_drawable)
        if task.most_different > n:
            log(f"left out: {task} needs {task.most_different} different symbols and there are {n}")
        elif _n_tokens(make_examples(task, alphabet, 1, options.seed)) > evaluated.model.config.context:
            log(f"left out: {task} does not fit the context of {evaluated.model.config.context}")
        else:
            fitting.append(task)
    return fitting


def measure(
    kind: type[ResultT],
    options: Options,
    evaluated: EvaluatedModel,
    task: Task,
    alphabet: Alphabet,
    n: int,
    recorder: Recorder,
) -> ResultT:
    """A model's answers to n examples, as a row."""
    examples = make_examples(task, alphabet, n, options.seed)
    what = f"prompts of {examples.prompt_ST.shape[1]} tokens"
    prompts, n_written = list(examples.prompt_ST), examples.answer_SN.shape[1]
    answers = examples.mark(evaluated.continue_greedily(prompts, n_written, options, recorder, what))
    is_known_SN = (answers.written_SN[:, :, None] == examples.prompt_ST[:, None, :]).any(axis=2)
    decode = evaluated.model.vocab.decode
    shown = zip(examples.prompt_ST, examples.answer_SN, answers.written_SN, strict=True)
    return kind(
        model=evaluated.measured,
        label=options.corpus_name,
        task=task.name,
        setting=Setting(**asdict(task)),
        drawn=alphabet.drawn,
        symbols=alphabet.n_drawable,
        prompt_tokens=examples.prompt_ST.shape[1],
        accuracy=Share(answers.accuracy, n),
        by_position=answers.accuracy_by_position,
        with_separators=answers.accuracy_with_separators,
        whole=answers.whole,
        copied=copied_from_another_line(examples, answers, alphabet),
        from_prompt=float(is_known_SN[:, examples.is_symbol_N].mean()),
        shown=[Shown(*map(decode, texts)) for texts in islice(shown, SHOWN_EXAMPLES)],
    )
