"""A server runs for weeks: what it compiles must not grow with the texts that it is sent."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from lexinvariant.api import load
from lexinvariant.decipher.symbol_posterior import symbol_posterior
from lexinvariant.decipher.trace import trace
from lexinvariant.decipher.words import read_words


def test_texts_of_other_lengths_need_no_other_programs(
    tiny_model: Path, word_model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, words = load(tiny_model), load(word_model)

    def read(n: int) -> None:
        symbol_posterior(model, np.arange(n) % 7, 7, "abcdefg")
        trace(model, ("abcdefg" * n)[:n])
        read_words(words, "blick wug " * (n // 4))

    read(40)
    with jax.log_compiles():
        for n in (33, 50, 64):
            read(n)
    assert [record.message for record in caplog.records if "ompil" in record.message] == []
