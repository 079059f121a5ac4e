"""Every number of the paper that ours stand beside (Huang et al., 2023, *Lexinvariant Language Models*)."""

from typing import NamedTuple

from lexinvariant.config import TrainConfig

TRAINING = TrainConfig()
"""The defaults of the configuration are the paper's model and schedule."""

# Section "Convergence to Language Models": characters, the Pile, context length 511.
PERPLEXITY, STANDARD_PERPLEXITY = 3.38, 2.00
CONTEXT = 511
WINDOW = 100
"""Symbols of its moving average."""
SEQUENCES = 100
GAP_START, GAP_END = 9.0, 1.0
""""The perplexity gap ... shrinks from 9X to less than 1X"."""

# Section "Recovering Substitution Ciphers": average precision of the last window over 1,000 input sequences.
KEY_PRECISION = 0.996
KEY_SEQUENCES = 1000

# Section "Semantic Deciphering", in full in the appendix "Semantic Deciphering Full Example": 32k, the Pile.
SEMANTIC_ANSWER, SEMANTIC_CONTINUATION = "coffee", " - coffee. and i"

# Section "Regularizing Language Models with Lexinvariance" and its appendix: B_p beside a standard model of about the
# same size. Improved less harmed, out of the tasks that change by at least some threshold, which is not told.
REGULARISER_P, BIGBENCH_SHOTS, BIGBENCH_NET = 0.2, 3, 0.25
""""25% more likely to improve performance than to harm performance when evaluated with three shots"."""
BIGBENCH_TASKS = 116
"""Different tasks in its list."""

# The theorem of the section "Convergence": its bound's exponents in T and d.
EXPONENT_T, EXPONENT_D = -0.25, 0.25


class TaskAccuracy(NamedTuple):
    """One line of the tables on synthetic reasoning, in percent: models of 150M parameters, 1,000 examples."""

    corpus: str
    vocab: str
    lookup_standard: float
    lookup_lexinvariant: float
    permutation_standard: float
    permutation_lexinvariant: float

    def accuracy(self, task: str, role: str) -> float:
        by_model = {"LookUp": self[2:4], "Permutation": self[4:6]}[task]
        return float(by_model[("standard", "lexinvariant").index(role)])

    def ratio(self, task: str) -> float:
        return self.accuracy(task, "lexinvariant") / self.accuracy(task, "standard")


SYNTHETIC = {
    "even": (
        TaskAccuracy("Pile", "char", 48.50, 91.80, 27.66, 59.35),
        TaskAccuracy("Pile", "32k", 21.45, 92.10, 22.84, 55.63),
        TaskAccuracy("Wiki-40B", "char", 38.25, 59.70, 20.77, 60.51),
        TaskAccuracy("Wiki-40B", "32k", 8.75, 59.35, 9.94, 50.91),
        TaskAccuracy("Github", "char", 42.40, 86.65, 21.03, 71.59),
        TaskAccuracy("Github", "32k", 4.25, 80.20, 8.59, 67.39),
    ),
    "frequency": (
        TaskAccuracy("Pile", "char", 72.80, 90.95, 40.63, 60.47),
        TaskAccuracy("Pile", "32k", 61.20, 90.95, 40.55, 54.55),
        TaskAccuracy("Wiki-40B", "char", 75.55, 63.45, 42.71, 59.86),
        TaskAccuracy("Wiki-40B", "32k", 41.05, 57.95, 26.81, 51.86),
        TaskAccuracy("Github", "char", 66.00, 86.75, 36.62, 70.77),
        TaskAccuracy("Github", "32k", 59.25, 78.45, 37.46, 65.04),
    ),
}
"""Accuracies of the paper: `even` in its section "Synthetic Reasoning Tasks", `frequency` in its appendix "Synthetic
Reasoning Task". Models of 150M parameters, 1,000 examples."""
SYNTHETIC_RATIO = 4.0
""""An average of 4X improvement" over the standard model, symbols drawn uniformly."""


def training_flop() -> float:
    """Operations of the paper's training by 6N + 12 layers x width x context a token."""
    tokens = TRAINING.steps * TRAINING.tokens_per_step
    return float(tokens) * TRAINING.model.flop_per_token(TRAINING.model.context)
