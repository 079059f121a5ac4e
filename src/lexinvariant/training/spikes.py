"""Losses that jump: a batch of rubbish, or one step too far. The loop then goes back and leaves the batch out."""

import math
import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

USUAL_STEPS = 32  # steps whose median loss is the usual one
SKIPPED, LOSSES = "skipped_batches", "recent_losses"  # a checkpoint's notes that change as a run goes on
LEAST_JUMP = 1.0  # nats: a loss near zero may double without anything being wrong
MOST_SKIPPED = 10  # batches that a run leaves out: if there are more, the batches are not what is wrong


class LossSpike(Exception):  # noqa: N818 - nothing has failed yet
    """The loss has jumped at this step, the first one to count."""

    def __init__(self, step: int, loss: float, usual: float) -> None:
        super().__init__(step, loss, usual)
        self.step, self.loss, self.usual = step, loss, usual


class SpikeWatch:
    """Compares every loss with the median of those before it, which checkpoints keep: what is a spike depends on the
    step alone, and not on when a run was resumed.
    """

    def __init__(self, factor: float, losses: Sequence[float]) -> None:
        self._factor = factor
        self._losses = deque(losses, maxlen=USUAL_STEPS)

    @property
    def losses(self) -> list[float]:
        return list(self._losses)

    def look(self, losses: Iterable[tuple[int, float]]) -> None:
        """(step, loss) in order; raises LossSpike at the first that is no number, or above `factor` times the usual
        loss."""
        for step, loss in losses:
            if self._factor and len(self._losses) == USUAL_STEPS:
                usual = statistics.median(self._losses)
                if not math.isfinite(loss) or loss > max(self._factor * usual, usual + LEAST_JUMP):
                    raise LossSpike(step, loss, usual)
            self._losses.append(loss)


def batch_number(step: int, steps: int, skipped: list[int]) -> int:
    """The number of the batch that comes after `step` steps: for one that is left out, one from after the run's end."""
    return steps + skipped.index(step) if step in skipped else step


def notes_for_model(notes: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint's notes, without those that only a run that goes on needs."""
    return {name: value for name, value in notes.items() if name != LOSSES}
