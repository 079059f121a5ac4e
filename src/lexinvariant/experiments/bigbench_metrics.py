"""The benchmark's scores of written answers, from 0 to 1, and how sure a mean of them is.

Every example gives a few numbers whose sum over examples determines the score, so that a bootstrap is a product of
matrices: for BLEU, which is a score of a whole corpus, these are lengths and counts of n-grams; for the others the
example's own score. Written here and not taken from packages since those give no such sums, and bring lxml and nltk
along; tests hold them to the numbers of sacrebleu and rouge-score.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np

from lexinvariant.generators import generator_at

ORDERS = 4  # BLEU counts n-grams up to this long
RESAMPLES = 2000


def statistics(metric: str, answer: str, targets: Sequence[str]) -> np.ndarray:
    """What one answer adds to a score; the best of several right answers counts."""
    match metric:
        case "exact_str_match":
            return np.array([float(answer in targets)])
        case "bleu":
            return _bleu_statistics(answer, targets)
        case "rouge1" | "rouge2":
            return np.array([max(_rouge_n(answer, target, int(metric[-1])) for target in targets)])
        case "rougeL":
            return np.array([max(_rouge_l(answer, target) for target in targets)])
    raise ValueError(metric)


def total_score(metric: str, total_S: np.ndarray, n: int) -> np.ndarray:
    """The score of n examples from the sum of their statistics, over any leading axes."""
    return _bleu(total_S) if metric == "bleu" else total_S[..., 0] / n


def bootstrap(metric: str, statistics_MES: np.ndarray, seed: int) -> np.ndarray:
    """score_MR of models on resampled examples; all models get the same ones, so differences are paired."""
    n = statistics_MES.shape[1]
    count_RE = generator_at(seed, n).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    return total_score(metric, np.einsum("re,mes->mrs", count_RE, statistics_MES, optimize=True), n)


def interval(score_R: np.ndarray) -> tuple[float, float]:
    """The middle 95% of resampled scores."""
    low, high = np.quantile(score_R, (0.025, 0.975))
    return float(low), float(high)


def choice_credit(logp_C: np.ndarray, scores: Sequence[float]) -> float:
    """The score of the likeliest choice; choices that tie for it share."""
    return float(np.mean(np.array(scores)[logp_C == logp_C.max()]))


def _rouge_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _f_measure(matches: int, n_answer: int, n_target: int) -> float:
    return 2 * matches / (n_answer + n_target) if matches else 0.0


def _n_grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _rouge_n(answer: str, target: str, n: int) -> float:
    answer_n, target_n = (_n_grams(_rouge_words(text), n) for text in (answer, target))
    return _f_measure((answer_n & target_n).total(), answer_n.total(), target_n.total())


def _rouge_l(answer: str, target: str) -> float:
    """By the longest common subsequence."""
    ours, theirs = _rouge_words(answer), _rouge_words(target)
    longest = [0] * (len(theirs) + 1)
    for word in ours:
        before = longest
        longest = [0]
        for i, other in enumerate(theirs):
            longest.append(before[i] + 1 if word == other else max(before[i + 1], longest[i]))
    return _f_measure(longest[-1], len(ours), len(theirs))


def _bleu_statistics(answer: str, targets: Sequence[str]) -> np.ndarray:
    """Lengths of the answer and of the target nearest to it in length; then by order n-grams that match, and all."""
    ours = _bleu_words(answer)
    references = [_bleu_words(target) for target in targets]
    nearest = min((abs(len(words) - len(ours)), len(words)) for words in references)[1]
    matches, all_ = [], []
    for n in range(1, ORDERS + 1):
        grams = _n_grams(ours, n)
        most: Counter[tuple[str, ...]] = Counter()
        for words in references:
            most |= _n_grams(words, n)
        matches.append((grams & most).total())
        all_.append(grams.total())
    return np.array([len(ours), nearest, *matches, *all_], float)


def _bleu(total_S: np.ndarray) -> np.ndarray:
    """With exponential smoothing: each order without a match has half the precision that one before it would have."""
    ours, theirs = total_S[..., 0], total_S[..., 1]
    matches, all_ = total_S[..., 2 : 2 + ORDERS], total_S[..., 2 + ORDERS :]
    unmatched = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, 0.5**unmatched, matches)
    log_precision = np.log(np.maximum(smoothed, 1e-300)) - np.log(np.maximum(all_, 1))
    brevity = np.minimum(0.0, 1 - theirs / np.maximum(ours, 1))
    possible = (matches.sum(axis=-1) > 0) & (all_[..., -1] > 0)
    return np.where(possible, np.exp(brevity + log_precision.mean(axis=-1)), 0.0)


@cache
def _of_category(letter: str) -> str:
    """The characters of a Unicode category, as part of a regular expression's set."""
    every = (chr(code) for code in range(sys.maxunicode + 1))
    return re.escape("".join(char for char in every if unicodedata.category(char)[0] == letter))


def _bleu_words(text: str) -> list[str]:
    """Words as NIST's international tokenization has them: marks apart unless between digits, symbols always."""
    number, mark, symbol = (_of_category(letter) for letter in "NPS")
    text = re.sub(f"([^{number}])([{mark}])", r"\1 \2 ", text)
    text = re.sub(f"([{mark}])([^{number}])", r" \1 \2", text)
    return re.sub(f"([{symbol}])", r" \1 ", text).split()
