"""The paper's theory, executable: exact and sampled lexinvariant mixtures, Hedge, and the convergence bounds.

NumPy and SciPy only. docs/method.md maps each statement of the paper to a name here.
"""

from lexinvariant.theory.bound import (
    Guarantee,
    context_needed,
    error_guaranteed,
    expected_error,
    hellinger_budget,
)
from lexinvariant.theory.english import fit_ngram
from lexinvariant.theory.hedge import expert_predictions, run_hedge
from lexinvariant.theory.languages import (
    HMM,
    FunctionLanguage,
    KnownLanguage,
    NGramLanguage,
    Smoothed,
    from_texts,
    markov,
    near_uniform,
    random_markov,
    symmetric_markov,
)
from lexinvariant.theory.mixture import BayesTrace, ExactTrace, exact, log_factorial
from lexinvariant.theory.smc import ParticleTrace, particles

__all__ = [
    "HMM",
    "BayesTrace",
    "ExactTrace",
    "FunctionLanguage",
    "Guarantee",
    "KnownLanguage",
    "NGramLanguage",
    "ParticleTrace",
    "Smoothed",
    "context_needed",
    "error_guaranteed",
    "exact",
    "expected_error",
    "expert_predictions",
    "fit_ngram",
    "from_texts",
    "hellinger_budget",
    "log_factorial",
    "markov",
    "near_uniform",
    "particles",
    "random_markov",
    "run_hedge",
    "symmetric_markov",
]
