"""The four ciphered texts of the paper's section "Uncertainty over Lexical Permutations", from `paper_texts.toml`.

Source: Lexinvariant Language Models, the figure's four panels; the code stands in the appendix "Code Deciphering Full
Examples".
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

SYMBOL = "z"


@dataclass(frozen=True)
class PaperText:
    """A text in which one symbol is to be deciphered."""

    name: str
    text: str
    truth: str
    """What the symbol stands for."""
    temperature: float
    """Of the softmax, in the paper's panel."""
    paper_says: str
    """What the paper reports of its own model."""


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["text"]
PAPER_TEXTS = tuple(PaperText(**text) for text in _TEXTS)
