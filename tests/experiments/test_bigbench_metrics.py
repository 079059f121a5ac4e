"""Scores of written answers beside those of sacrebleu and rouge-score, and how sure they are."""

import numpy as np
import pytest

from lexinvariant.experiments.bigbench_metrics import (
    bootstrap,
    choice_credit,
    interval,
    statistics,
    total_score,
)


def bleu(answers: list[str], targets: list[list[str]]) -> float:
    total_S = np.sum([statistics("bleu", *each) for each in zip(answers, targets, strict=True)], axis=0)
    return float(total_score("bleu", total_S, len(answers)))


def test_bleu_is_sacrebleus() -> None:
    """Its corpus_bleu with tokenize="intl" and exponential smoothing; the first is the example of its documentation."""
    answers = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
    targets = [
        ["The dog bit the man.", "The dog had bit the man."],
        ["It was not unexpected.", "No one was surprised."],
        ["The man bit him first.", "The man had bitten the dog."],
    ]
    assert bleu(answers, targets) == pytest.approx(0.4391623493336995, abs=1e-12)
    # No common 3-gram or 4-gram, so that both are smoothed; a number keeps its point, a currency sign stands alone.
    assert bleu(["pay $3.50 now, please"], [["pay 3.50 now"]]) == pytest.approx(
        0.17965205598154213, abs=1e-12
    )
    assert bleu(["a cat"], [["a cat"]]) == 0  # it has no 4-gram at all
    assert bleu(["dog"], [["a cat"]]) == bleu([""], [["a cat"]]) == 0


@pytest.mark.parametrize(
    ("metric", "expected"), [("rouge1", 12 / 17), ("rouge2", 4 / 15), ("rougeL", 10 / 17)]
)
def test_rouge_is_rouge_scores(metric: str, expected: float) -> None:
    """On the example of its documentation, whose numbers are these fractions."""
    target, answer = "The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log."
    assert statistics(metric, answer, [target]) == pytest.approx(expected)
    assert statistics(metric, answer, ["something else", target]) == pytest.approx(expected)
    assert statistics(metric, "", [target]) == 0


def test_an_exact_match_is_one_of_the_targets_and_nothing_else() -> None:
    assert statistics("exact_str_match", "two", ["2", "two"]) == 1
    assert statistics("exact_str_match", "Two", ["2", "two"]) == 0


def test_the_likeliest_choice_has_its_score_and_ties_share() -> None:
    assert choice_credit(np.array([-3.0, -1.0, -2.0]), (0, 1, 0)) == 1
    assert choice_credit(np.array([-1.0, -3.0, -1.0]), (0.5, 0, 0)) == 0.25


@pytest.mark.parametrize("metric", ["exact_str_match", "bleu"])
def test_intervals_are_paired(metric: str) -> None:
    """Two models that always do the same differ by nothing at all, however unsure each score is."""
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "the", "dog"]
    rng = np.random.default_rng(0)
    target = " ".join(words)
    answers = [" ".join(rng.permutation(words)) if right else target for right in rng.random(100) < 0.5]
    statistics_ES = np.stack([statistics(metric, answer, [target]) for answer in answers])
    resampled_MR = bootstrap(metric, np.stack([statistics_ES, statistics_ES]), seed=0)
    assert interval(resampled_MR[0] - resampled_MR[1]) == (0, 0)
    low, high = interval(resampled_MR[0])
    score = total_score(metric, statistics_ES.sum(axis=0), len(answers))
    assert low < score < high and 0.05 < high - low < 0.4
