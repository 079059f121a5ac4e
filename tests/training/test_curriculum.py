"""How much of the lexicon is permuted at each step."""

import jax.numpy as jnp
import pytest

from lexinvariant.config import LexiconConfig
from lexinvariant.training.curriculum import anneal_hi, p_at

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


@pytest.mark.parametrize(
    ("share", "step", "p"),
    [
        (0.0, 0, 0.2),
        (0.0, 999, 0.2),
        (0.25, 750, 0.2),
        (0.25, 875, 0.1),
        (0.25, 999, 0.0008),
        (1.0, 500, 0.1),
    ],
)
def test_p_is_constant_and_falls_to_nothing_at_the_end(share: float, step: int, p: float) -> None:
    config = LexiconConfig(kind="mixed", p=0.2, p_anneal_share=share)
    assert float(p_at(config, jnp.int32(step), steps=1000)) == pytest.approx(p, rel=1e-4)
