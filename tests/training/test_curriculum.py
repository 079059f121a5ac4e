"""How much of the lexicon is permuted at each step."""

import jax.numpy as jnp
import pytest

from lexinvariant.config import LexiconConfig
from lexinvariant.training.curriculum import anneal_hi

CONFIG = LexiconConfig(kind="annealed", anneal_from=0.02, anneal_to=1.1, anneal_share=0.5)


@pytest.mark.parametrize(
    ("step", "hi"),
    [(0, 0.02), (250, 0.56), (499, 1.1 - 1.08 / 500), (500, float("inf")), (999, float("inf"))],
)
def test_share_rises_linearly_and_then_every_symbol_is_permuted(step: int, hi: float) -> None:
    assert float(anneal_hi(CONFIG, jnp.int32(step), steps=1000)) == pytest.approx(hi, rel=1e-5)


def test_no_annealing_permutes_everything_from_the_start() -> None:
    config = LexiconConfig(kind="annealed", anneal_share=0.0)
    assert float(anneal_hi(config, jnp.int32(1), steps=1000)) == float("inf")
