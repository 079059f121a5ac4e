"""How far to trust a probability: constants fitted on held-out validation text, never on the test texts.

`python -m lexinvariant.decipher.calibrate prose.valid.jsonl.xz` fits them anew and prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Evidence = Literal["ngram", "judged", "judged unspaced", "ascii"]
"""What a reading was chosen by: n-grams alone, n-grams and the reader (who knows less where it sees no spaces), or the
lexinvariant model."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trust:
    """A key's weight is exp(-inverse_temperature * cost); a symbol's share p of the weight is then a probability of
    sigmoid(slope * logit(p) + shift).
    """

    inverse_temperature: float
    slope: float
    shift: float


TRUST: dict[Evidence, Trust] = {
    "ngram": Trust(0.8, 0.800, -0.743),
    "judged": Trust(0.8, 0.508, -0.277),
    "judged unspaced": Trust(0.8, 0.570, -1.783),
    "ascii": Trust(0.6, 0.726, -2.018),
}
READER_SHARE = 0.75
"""The reader's part in a judged cost; the n-gram has the rest."""
LEAST = 1e-4  # no share is taken for more certain than this


def weights(cost_N: Floats, evidence: Evidence) -> Floats:
    """What each key weighs, given its cost in nats; they sum to 1."""
    weight_N = np.exp(-TRUST[evidence].inverse_temperature * (cost_N - cost_N.min()))
    return weight_N / weight_N.sum()


def probability(share: Floats, evidence: Evidence) -> Floats:
    """The calibrated probability that a symbol's share of the weight stands for."""
    trust = TRUST[evidence]
    share = np.clip(share, LEAST, 1 - LEAST)
    return 1 / (1 + np.exp(-trust.slope * np.log(share / (1 - share)) - trust.shift))


def collect(source: str, setting: str, length: int, n: int, seed: int = 1) -> tuple[Floats, Floats, Floats]:
    """Solve held-out texts; for every symbol of every key: its share of the weight, whether it is right, its count."""
    from lexinvariant.decipher import samples, solve

    documents = samples.plain_documents(source, setting)  # type: ignore[arg-type]
    drawn = samples.draw_samples(documents, setting, length, n, seed)  # type: ignore[arg-type]
    readings = solve.Solver().read(
        [sample.cipher for sample in drawn],
        alphabet="ascii" if setting == "ascii" else "letters",
        unspaced=setting == "unspaced",
    )
    share, right, weight = [], [], []
    for sample, reading in zip(drawn, readings, strict=True):
        truth = dict(zip(sample.cipher, sample.plain, strict=True))
        for symbol, p in reading.confidence.items():
            share.append(p)
            right.append(reading.key[symbol] == truth[symbol])
            weight.append(sample.cipher.count(symbol))
    return np.array(share), np.array(right, np.float64), np.array(weight, np.float64)


def fit(share_N: Floats, right_N: Floats, careful: float = 1.0) -> tuple[float, float]:
    """Slope and shift that make the calibrated probabilities of what was right and wrong likeliest; `careful` wrong
    ones are added beside the most certain, so that a small sample does not promise certainty.
    """
    from scipy.optimize import minimize

    share_N = np.clip(np.append(share_N, 1 - LEAST), LEAST, 1 - LEAST)
    right_N, weight_N = np.append(right_N, 0.0), np.append(np.ones(len(right_N)), careful)
    logit_N = np.log(share_N / (1 - share_N))

    def loss(at: Floats) -> float:
        z_N = at[0] * logit_N + at[1]
        return float((weight_N * (np.logaddexp(0, z_N) - right_N * z_N)).sum())

    slope, shift = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return float(slope), float(shift)


def main(argv: list[str] | None = None) -> None:
    """Fit the constants on held-out validation text and print them."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m lexinvariant.decipher.calibrate", description=main.__doc__
    )
    parser.add_argument("source", help="validation text, such as prose.valid.jsonl.xz")
    parser.add_argument("--texts", type=int, default=60, help="texts a length")
    parser.add_argument("--only", nargs="*", choices=list(TRUST), help="the constants to fit, by name")
    arguments = parser.parse_args(argv)
    plans: dict[Evidence, list[tuple[str, int]]] = {
        "judged": [("spaced", 24), ("spaced", 32), ("spaced", 64), ("spaced", 100)],
        "judged unspaced": [("unspaced", 32), ("unspaced", 64), ("unspaced", 100)],
        "ngram": [("spaced", 200), ("spaced", 400), ("unspaced", 200)],
        "ascii": [("ascii", 240), ("ascii", 480)],
    }
    for evidence in arguments.only or plans:
        plan = plans[evidence]
        trust = TRUST[evidence]
        TRUST[evidence] = Trust(trust.inverse_temperature, 1.0, 0.0)  # shares as they are
        parts = [collect(arguments.source, setting, length, arguments.texts) for setting, length in plan]
        share_N, right_N, _ = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        slope, shift = fit(share_N, right_N)
        print(
            f'    "{evidence}": Trust({trust.inverse_temperature}, {slope:.3f}, {shift:.3f}),  # {len(share_N)}',
            flush=True,
        )


if __name__ == "__main__":
    # By its own name: the constants that are set aside while fitting must be the ones that the solver reads.
    from lexinvariant.decipher.calibrate import main as fit_constants

    fit_constants()
