"""What a person sees of a run."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from lexinvariant.training.devices import device_of_kind


def peak_flops() -> float | None:
    """Peak of all devices together; None where the data sheet is not known."""
    device = device_of_kind(jax.devices()[0].device_kind)
    return device.peak_flop * jax.device_count() if device else None


class _TimeLeft(ProgressColumn):
    def render(self, task: Task) -> Text:
        seconds = task.fields.get("seconds_left")
        return Text("" if seconds is None else f"{_clock(seconds)} left", style="cyan")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _count(number: float) -> str:
    return f"{number / 1e3:.0f}k" if number >= 10_000 else f"{number:,.0f}"


class TrainProgress:
    """The live line of a run; where there is no terminal, a plain line now and then."""

    def __init__(
        self,
        name: str,
        steps: int,
        start: int,
        tokens_per_step: int,
        flop_per_token: float,
        *,
        quiet: bool = False,
    ) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._live = self._console.is_terminal
        self._name, self._steps = name, steps
        self._tokens_per_step, self._flop_per_token = tokens_per_step, flop_per_token
        self._peak = peak_flops()
        self._since, self._since_step = time.perf_counter(), start
        self._last_line = 0.0
        self._progress = Progress(
            TextColumn(f"[bold]{name}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[line]}"),
            _TimeLeft(),
            console=self._console,
            disable=not self._live,
        )
        self._task = self._progress.add_task("", total=steps, completed=start, line="compiling ...")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def print_line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def restart_clock(self, step: int) -> None:
        """After compiling, evaluating or saving: speed is that of training alone."""
        self._since, self._since_step = time.perf_counter(), step

    def update(self, step: int, metrics: Mapping[str, float]) -> dict[str, float]:
        """Show the state at a step; returns the speeds, to be logged with the metrics."""
        elapsed = time.perf_counter() - self._since
        done = step - self._since_step
        speeds: dict[str, float] = {}
        line = f"loss {metrics['loss']:.3f} (end {metrics['tail_loss']:.3f})"
        seconds_left = None
        if done > 0:
            tokens_per_second = done * self._tokens_per_step / elapsed
            flops = tokens_per_second * self._flop_per_token
            speeds = {"tokens_per_second": tokens_per_second, "tflops": flops / 1e12}
            line += f" · {_count(tokens_per_second)} tokens/s · {flops / 1e12:.3g} TFLOP/s"
            if self._peak:
                speeds["share_of_peak"] = flops / self._peak
                line += f" ({flops / self._peak:.0%} of peak)"
            seconds_left = (self._steps - step) * elapsed / done
        self._progress.update(self._task, completed=step, line=line, seconds_left=seconds_left)
        if not self._live and (time.monotonic() - self._last_line > 15 or step == self._steps):
            self._last_line = time.monotonic()
            left = "" if seconds_left is None else f" · {_clock(seconds_left)} left"
            self.print_line(f"{self._name} {step}/{self._steps} {line}{left}")
        return speeds
