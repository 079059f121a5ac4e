"""How a model answers: the likelihood of each choice, or what it writes.

Questions are padded to one of a few lengths, and batches are always full: a whole benchmark compiles some ten programs
of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lexinvariant.experiments.bigbench_prompts import Fitted
from lexinvariant.experiments.evaluated_model import EvaluatedModel
from lexinvariant.experiments.options import PairOptions
from lexinvariant.model.greedy import greedy_tokens

SHORTEST, SHORTEST_WRITTEN = 64, 128


def padded_length(length: int, most: int) -> int:
    """64, 96, 128, 192, 256, ...: at most half of a padded sequence more than its own."""
    padded = SHORTEST
    while padded < length:
        is_power = padded & (padded - 1) == 0
        padded = padded * 3 // 2 if is_power else padded * 4 // 3
    return min(padded, most)


def _groups(padded: Sequence[int], batch_size: int) -> Iterator[tuple[int, np.ndarray]]:
    """(padded length, numbers of sequences): at least a batch of each, with repeats where there are fewer."""
    for length in np.unique(padded):
        members = np.flatnonzero(np.array(padded) == length)
        yield int(length), np.resize(members, max(len(members), batch_size))


def choice_log_probabilities(
    evaluated: EvaluatedModel, questions: Sequence[Fitted], options: PairOptions
) -> list[np.ndarray]:
    """logp_C of each question's choices, in nats.

    Draws of the lexicon are averaged as in scoring: each one's vote counts by how well it predicted the prompt. All
    choices of a question are read with the same draws.
    """
    config = evaluated.model.config
    owner_S = np.repeat(np.arange(len(questions)), [len(question.tails) for question in questions])
    sequences = [
        np.concatenate([question.prompt_T, tail]) for question in questions for tail in question.tails
    ]
    before_S = np.array([len(question.prompt_T) for question in questions])[owner_S]
    draws = options.draws if config.lexicon.is_random else 1
    prompt_KS, tail_KS = np.zeros((2, draws, len(sequences)))
    padded = [padded_length(len(sequence), config.context) for sequence in sequences]
    for length, member_G in _groups(padded, options.batch_size):
        tok_GT = np.zeros((len(member_G), length), np.int32)
        for row, member in enumerate(member_G):
            tok_GT[row, : len(sequences[member])] = sequences[member]
        n_G = np.array([len(sequences[member]) for member in member_G])
        place_T = np.arange(length)
        for draw in range(draws):
            for rows, output in evaluated.forward(tok_GT, owner_S[member_G], options, draw):
                logp_BT = np.asarray(output.logp_BT, np.float64)
                is_prompt_BT = place_T < before_S[member_G[rows], None]
                is_tail_BT = ~is_prompt_BT & (place_T < n_G[rows, None])
                prompt_KS[draw, member_G[rows]] = logp_BT.sum(axis=1, where=is_prompt_BT)
                tail_KS[draw, member_G[rows]] = logp_BT.sum(axis=1, where=is_tail_BT)
    whole_S = np.logaddexp.reduce(prompt_KS + tail_KS, axis=0) - np.logaddexp.reduce(prompt_KS, axis=0)
    return np.split(whole_S, np.flatnonzero(np.diff(owner_S)) + 1)


def write_answers(
    evaluated: EvaluatedModel, questions: Sequence[Fitted], n_tokens: int, options: PairOptions
) -> list[str]:
    """What the model writes after each question, the likeliest token at a time."""
    model, written = evaluated.model, [""] * len(questions)
    # Prompt and answer together: a step of writing depends on nothing else.
    needed = [max(SHORTEST_WRITTEN, len(question.prompt_T) + n_tokens) for question in questions]
    padded = [min(1 << (length - 1).bit_length(), model.config.context) for length in needed]
    for length, member_G in _groups(padded, options.batch_size):
        tok_GN = greedy_tokens(
            model.params,
            model.config,
            [questions[member].prompt_T for member in member_G],
            n_tokens,
            address_S=member_G,
            seed=options.seed,
            draws=options.draws,
            batch_size=options.batch_size,
            dtype=options.dtype,
            pad_to=length - n_tokens,
        )
        for member, tok_N in zip(member_G, tok_GN, strict=True):
            written[member] = model.vocab.decode(tok_N)
    return written
