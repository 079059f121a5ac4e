"""What a text is, and whether it was read: one verdict for the command, the JSON interface and the page.

`KINDS` names everything that a text is told to be. A solver hands over a `Reading`: what kind it read the text as, with
which parameters, in which language, and how likely its `FitTest` says that the reading is one. `verdict_on` weighs that
against what the text's features say it may be instead. A solver of another kind needs an entry of KINDS, a `Reading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from lexinvariant.decipher.features import NAMES, Features, Floats

Kind = Literal[
    "substitution",
    "plain",
    "caesar",
    "atbash",
    "affine",
    "vigenere",
    "variant-beaufort",
    "beaufort",
    "gronsfeld",
    "porta",
    "polyalphabetic",
    "columnar",
    "rail-fence",
    "reversed",
    "transposition",
    "homophonic",
    "other-language",
    "random",
]
KINDS_IN_ORDER: tuple[Kind, ...] = ("plain", "atbash", "caesar", "affine")
"""Those whose keys follow the order of the alphabet."""
Status = Literal["read", "doubtful", "unread"]
LEAST_READ, MOST_UNREAD = 0.9, 0.1
"""Probabilities from which on a text is said to be read, and up to which it is said not to be."""
LEAST_TOLD = 0.001
"""The least probability of a language that is told."""
FOREIGN_SHARE, FOREIGN_LETTERS = 0.9, 100
"""Of a substitution of another language that is read as this one, 0.9 n / (n + 100) of n letters are right: on
validation texts of ten languages."""
FEW_SYMBOLS = 10
"""No language is written in so few letters: a long text in them is no transposition of one."""
SHORT = 30
"""Letters of a text that is said to be too short where nobody knows."""


@dataclass(frozen=True)
class KindFacts:
    """What is said of a kind; {language} and the verdict's parameters are filled in."""

    name: str
    about: str
    """Completes "NAME: ..."."""


KINDS: Mapping[Kind, KindFacts] = {
    "substitution": KindFacts("a simple substitution", "every symbol stands for one letter of {language}"),
    "plain": KindFacts("plain text", "this is {language} already"),
    "caesar": KindFacts("a Caesar cipher", "{language}, every letter shifted by {shift} (ROT-{shift})"),
    "atbash": KindFacts("an Atbash cipher", "{language} with the alphabet turned round"),
    "affine": KindFacts("an affine cipher", "{language}, letter number x written as number {a} x + {b}"),
    "vigenere": KindFacts(
        "a Vigenere cipher", "{language}, letters shifted by the key word {key} (period {period})"
    ),
    "variant-beaufort": KindFacts(
        "a variant Beaufort cipher",
        "{language}, letters shifted back by the key word {key} (period {period})",
    ),
    "beaufort": KindFacts(
        "a Beaufort cipher", "{language}, letters taken from the key word {key} (period {period})"
    ),
    "gronsfeld": KindFacts(
        "a Gronsfeld cipher", "{language}, letters shifted by the digits {key} (period {period})"
    ),
    "porta": KindFacts("a Porta cipher", "{language}, with the key word {key} or its like (period {period})"),
    "polyalphabetic": KindFacts(
        "a Vigenere cipher or a relative", "several alphabets in turn, with period {period}"
    ),
    "columnar": KindFacts(
        "a columnar transposition",
        "{language}, written in {columns} columns that were read in the order {key}",
    ),
    "rail-fence": KindFacts(
        "a rail fence", "{language}, written up and down {rails} rails that were read one by one"
    ),
    "reversed": KindFacts("a text turned round", "{language}, to be read from its end"),
    "transposition": KindFacts("a transposition", "the letters of {language} in another order"),
    "homophonic": KindFacts(
        "a homophonic cipher", "{symbols} symbols for the letters of {language}, several for each common one"
    ),
    "other-language": KindFacts(
        "a substitution of another language",
        "symbols follow each other as letters do, but not those of {language}",
    ),
    "random": KindFacts("random letters", "nothing repeats as it does in a language"),
}
assert set(KINDS) == set(get_args(Kind))
WRITTEN = {
    "numbers": ", in numbers",
    "pairs": ", in pairs of digits",
    "morse": ", in Morse code",
    "base64": ", in Base64",
    "hex": ", in hexadecimal digits",
    "binary": ", in binary digits",
    "codes": ", in the numbers of its characters",
}
"""What is said of how a text is written, by its notation."""


@dataclass(frozen=True)
class Reading:
    """What a solver made of a text, as far as the verdict needs to know."""

    kind: Kind
    probability: float
    """That it is a reading at all: by a `FitTest`."""
    language: str
    cost: float
    """Nats a letter of the reading..."""
    usual_cost: float
    """... of the language..."""
    nonsense_cost: float
    """... and of the best reading of nonsense of that length."""
    n_letters: int
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    in_runs: bool = False
    """Symbols often stand three and more in a row: it is no language at all."""

    @property
    def misfit(self) -> float:
        """0 where it costs what the language does, 1 where it costs what nonsense does."""
        return float(
            np.clip((self.cost - self.usual_cost) / max(self.nonsense_cost - self.usual_cost, 0.1), -1, 2)
        )


@dataclass(frozen=True)
class Verdict:
    """What a text is, and whether its plaintext is one."""

    status: Status
    kind: Kind
    sentence: str
    probability: float
    """That the reading is one."""
    kinds: dict[Kind, float]
    """How likely each kind is, the likeliest first."""
    language: str | None
    """Of the reading; None where there is none."""
    parameters: dict[str, int | str]
    """What belongs to the kind: shift, a and b, period and key, columns, rails, symbols."""
    reasons: list[str]
    """How sure, and why."""
    languages: dict[str, float] = field(default_factory=dict)
    """How likely each language is, the likeliest first; empty where the language was given, or nothing was read."""

    def in_languages(self, share: Mapping[str, float]) -> Verdict:
        """The verdict, where the language was found out and has these probabilities."""
        if self.status == "unread" or not share:
            return self
        languages = {name: round(p, 4) for name, p in share.items()}
        told = [f"{name.capitalize()} ({p:.1%})" for name, p in languages.items() if p >= LEAST_TOLD]
        reason = f"Of the languages that it may be in, the likeliest are {', '.join(told)}."
        return replace(self, languages=languages, reasons=[*self.reasons, *([reason] if told[1:] else [])])

    def symbol_probability(self, n_letters: int) -> float:
        """That a symbol is right on which all keys that were found agree: the text was read, or it is of another
        language, which a key for this one fits in part, and the better the longer the text is.
        """
        in_part = FOREIGN_SHARE * n_letters / (n_letters + FOREIGN_LETTERS)
        return self.probability + self.kinds.get("other-language", 0.0) * in_part


@dataclass(frozen=True)
class KindClassifier:
    """What an unread text may be: softmax regression on its features and the misfit of its best reading."""

    center: tuple[float, ...]
    scale: tuple[float, ...]
    """Features are taken less the center, over the scale: NAMES of features.py, then the misfit."""
    weights: Mapping[Kind, list[float]]
    """A weight for each feature and a constant, by kind."""

    def probabilities(self, features: Features, misfit: float) -> dict[Kind, float]:
        return self.of_inputs(classifier_input(features, misfit))

    def of_inputs(self, inputs: Floats) -> dict[Kind, float]:
        x = (inputs - self.center) / self.scale
        score = {kind: float(np.dot(w[:-1], x) + w[-1]) for kind, w in self.weights.items()}
        total = np.logaddexp.reduce(list(score.values()))
        return {kind: float(np.exp(value - total)) for kind, value in score.items()}


def classifier_input(features: Features, misfit: float) -> Floats:
    return np.append(features.vector(), misfit)


N_INPUTS = len(NAMES) + 1


def verdict_on(
    features: Features,
    reading: Reading,
    classifier: KindClassifier,
    n_symbols: int,
    notation: str = "characters",
) -> Verdict:
    """The verdict on a text with these features, of which this is the best reading."""
    p = reading.probability
    unread = classifier.probabilities(features, reading.misfit)
    ruled_out: set[Kind] = set()
    if reading.in_runs:
        ruled_out |= {"other-language", "polyalphabetic"}
    if n_symbols <= FEW_SYMBOLS:
        ruled_out |= {"homophonic"}  # several for each letter would be more
    if features.is_unordered:
        ruled_out |= {"other-language", "homophonic"}
        if n_symbols <= FEW_SYMBOLS:
            ruled_out |= {"transposition"}
    unread["random"] = unread.get("random", 0.0) + sum(unread.pop(kind, 0.0) for kind in ruled_out)
    kinds = {kind: (1 - p) * share for kind, share in unread.items()}
    kinds[reading.kind] = kinds.get(reading.kind, 0.0) + p
    kinds = dict(sorted(kinds.items(), key=lambda pair: -pair[1]))
    is_none = p <= MOST_UNREAD
    kind = max(unread, key=lambda kind: unread[kind]) if is_none else reading.kind
    status: Status = "read" if p >= LEAST_READ else "unread" if is_none else "doubtful"
    if kind == "other-language":
        status = "doubtful"  # the key may be right in part, and often is
    of_kind: dict[Kind, dict[str, int | str]] = {
        "polyalphabetic": {"period": features.period},
        "homophonic": {"symbols": n_symbols},
    }
    parameters = of_kind.get(kind, {}) if is_none else dict(reading.parameters)
    return Verdict(
        status,
        kind,
        _sentence(status, kind, reading, parameters, unread, WRITTEN.get(notation, "")),
        round(p, 4),
        {kind: round(share, 4) for kind, share in kinds.items()},
        None if is_none else reading.language,
        parameters,
        _reasons(features, reading),
    )


def _sentence(
    status: Status,
    kind: Kind,
    reading: Reading,
    parameters: Mapping[str, int | str],
    unread: Mapping[Kind, float],
    written: str,
) -> str:
    language = reading.language.capitalize()
    facts = KINDS[kind]
    described = f"{facts.name}: {facts.about.format(language=language, **parameters)}{written}"
    if status == "read":
        return described[0].upper() + described[1:] + "."
    if kind == "other-language":
        return f"It looks like {described} ({unread[kind]:.0%}). The reading may be right in part."
    if status == "doubtful":
        is_short = reading.n_letters <= SHORT
        why = "the text is too short to be sure" if is_short else "the reading does not fit well"
        return f"Perhaps {described} ({reading.probability:.0%}); {why}."
    share = unread[kind]
    if share >= 0.5:
        return f"Not read. It looks like {described} ({share:.0%})."
    second = sorted(unread, key=lambda kind: -unread[kind])[1]
    name = KINDS[second].name
    return f"Not read. It may be {facts.name} ({share:.0%}) or {name} ({unread[second]:.0%})."


def _reasons(features: Features, reading: Reading) -> list[str]:
    language = reading.language.capitalize()
    reasons = [
        f"The reading costs {reading.cost:.2f} nats a letter: {language} costs about {reading.usual_cost:.2f}, the "
        f"best reading of nonsense of this length about {reading.nonsense_cost:.2f}.",
        f"Two of its symbols are the same with probability {features.coincidence:.3f} (index of coincidence).",
    ]
    if reading.in_runs:
        reasons.append("Symbols stand three and more in a row, as those of no language do.")
    if features.is_unordered:
        reasons.append("Pairs of neighbours repeat no more than by chance, as in no language.")
    if features.periodicity > 4:
        reasons.append(f"Symbols repeat at a distance of {features.period} more often than by chance.")
    return reasons
