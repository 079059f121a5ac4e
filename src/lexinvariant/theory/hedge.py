"""Multiplicative weights (Hedge) over permutations, written from the appendix's lemma and not from Bayes'
rule.

Experts are the d! permutations, expert n predicts with p(pi_n^-1(.)), its cost is -log P_n(y_t) / epsilon,
and the update multiplies its weight by exp(-rate * cost). With rate = epsilon this is the Bayes mixture
(tests hold the two together to float precision). The regret corollary that the paper then cites is about a
much slower rate: see `corollary_rate`, `counterexample`, and docs/method.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from lexinvariant.errors import UserError
from lexinvariant.theory.divergence import kl
from lexinvariant.theory.languages import Floats, FunctionLanguage, Ints, KnownLanguage, check_sequence


def expert_predictions(language: KnownLanguage, cipher_T: ArrayLike) -> Floats:
    """prob_TNV: what each permutation's expert predicts before each symbol, one expert after the other."""
    text_T = check_sequence(cipher_T, language.d)
    experts = []
    for forward in permutations(range(language.d)):  # forward[plain] = cipher, the paper's pi
        inverse_V = np.argsort(forward)
        experts.append(language.predictions(inverse_V[text_T])[:, inverse_V])
    return np.stack(experts, axis=1)


@dataclass(frozen=True)
class HedgeTrace:
    """One run of Hedge on one text."""

    prob_TV: Floats
    """The weighted prediction before each symbol."""
    weight_TN: Floats
    """The distribution over experts before each symbol."""
    cost_TN: Floats
    """-log P_n(y_t) / epsilon."""
    logp_T: Floats
    """Log of the weighted prediction of the symbol that came."""

    def gibbs_regret_N(self) -> Floats:
        """Sum over t of <weights, cost> - cost of expert n: the quantity that regret bounds for Hedge speak about."""
        return np.sum(np.sum(self.weight_TN * self.cost_TN, axis=1, keepdims=True) - self.cost_TN, axis=0)


def run_hedge(
    expert_TNV: Floats, cipher_T: ArrayLike, epsilon: float = 1.0, rate: float | None = None
) -> HedgeTrace:
    """Run Hedge from equal weights. The default rate is epsilon, the paper's update exp(-epsilon * cost)."""
    rate = epsilon if rate is None else rate
    if epsilon <= 0 or rate <= 0:
        raise UserError("Hedge needs a positive epsilon and a positive rate.")
    steps, experts, d = expert_TNV.shape
    text_T = check_sequence(cipher_T, d)
    if len(text_T) != steps:
        raise UserError(f"The experts predict {steps} symbols but the text has {len(text_T)}.")
    log_weight_N = np.zeros(experts)
    prob_TV, weight_TN, cost_TN = np.empty((steps, d)), np.empty((steps, experts)), np.empty((steps, experts))
    for t, symbol in enumerate(text_T):
        weight_TN[t] = np.exp(log_weight_N - logsumexp(log_weight_N))
        prob_TV[t] = weight_TN[t] @ expert_TNV[t]
        with np.errstate(divide="ignore"):
            cost_TN[t] = -np.log(expert_TNV[t, :, symbol]) / epsilon
        log_weight_N = log_weight_N - rate * cost_TN[t]
    with np.errstate(divide="ignore"):
        logp_T = np.log(prob_TV[np.arange(steps), text_T])
    return HedgeTrace(prob_TV, weight_TN, cost_TN, logp_T)


def mixture_regret_bound(experts: int) -> float:
    """Log-loss regret of the Bayes mixture to any expert: log N, at every T, with no smoothing.

    The product of the mixture's predictions is the mean over experts of each one's product, hence at least
    1/N of any.
    """
    return float(np.log(experts))


def gibbs_regret_bound(experts: int, steps: int, cost_bound: float, rate: float) -> float:
    """Hedge's textbook bound log(N)/rate + rate * rho^2 * T for costs in [-rho, rho]; it needs rate * rho <= 1."""
    if rate * cost_bound > 1 + 1e-12:
        raise UserError(
            "The regret bound of Hedge needs rate * cost bound <= 1; the Bayes rate does not satisfy it."
        )
    return float(np.log(experts) / rate + rate * cost_bound**2 * steps)


def corollary_rate(epsilon: float, cost_bound: float) -> float:
    """The rate at which 'T >= 4 rho^2 log N / epsilon^2 gives average regret <= 2 epsilon' is a theorem."""
    return epsilon / cost_bound**2


def corollary_horizon(experts: int, cost_bound: float, epsilon: float) -> float:
    """T from the paper's citation: 4 rho^2 log N / epsilon^2."""
    return float(4 * cost_bound**2 * np.log(experts) / epsilon**2)


def counterexample(steps: int, floor: float) -> tuple[FunctionLanguage, Ints]:
    """A two-symbol language and a text on which the Bayes mixture's *Gibbs* regret grows linearly in T.

    The leader of the moment always errs: the text is all zeros, and the language gives zero the probability
    `floor` whenever the identity is ahead and 1 - `floor` whenever the swap is. So an inequality on the
    posterior-averaged log-loss, as the proof writes it before Jensen, cannot hold for every text; the log-
    loss of the mixture can.
    """
    gain = np.log((1 - floor) / floor)
    lead, zeros = 0.0, []  # lead: log-odds of the identity over the swap
    for t in range(steps):
        # Log-odds of zero under the identity; the swap has minus that, so the lead moves by exactly this much.
        move = (-gain if lead >= 0 else gain) * (0.5 if t == 0 else 1.0)
        zeros.append(1 / (1 + np.exp(-move)))
        lead += move

    def next_symbol(prefix: tuple[int, ...]) -> Floats:
        zero = zeros[min(len(prefix), steps - 1)]
        return np.array([zero, 1 - zero])

    return FunctionLanguage(next_symbol, 2), np.zeros(steps, dtype=np.int64)


def martingale_T(known_TV: Floats, prob_TV: Floats, cipher_T: ArrayLike) -> Floats:
    """Z_1..Z_T with Z_t = Z_{t-1} + KL_t - log p/p'; a martingale when the text is drawn from the known language."""
    return np.cumsum(martingale_increments(known_TV, prob_TV, cipher_T))


def martingale_increments(known_TV: Floats, prob_TV: Floats, cipher_T: ArrayLike) -> Floats:
    """KL(p || p') - log p(y_t)/p'(y_t) at each step."""
    row_T, text_T = np.arange(len(prob_TV)), np.asarray(cipher_T)
    return kl(known_TV, prob_TV) - np.log(known_TV[row_T, text_T]) + np.log(prob_TV[row_T, text_T])
