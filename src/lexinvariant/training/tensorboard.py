"""Curves for TensorBoard, written where they are measured: no thread, and so none that dies unseen."""

import time
from pathlib import Path

SECONDS_BETWEEN_FLUSHES = 60.0


class EventFile:
    """Scalars of a run in TensorBoard's own format.

    tensorboardX's SummaryWriter hands them to a thread through a queue. A full disk or a clock that is set back ends
    that thread, and a run would wait for ever for room in the queue.
    """

    def __init__(self, folder: Path, start: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto import event_pb2, summary_pb2

        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        folder.mkdir(parents=True, exist_ok=True)
        self._file = EventsWriter(str(folder / "events"))
        self._flushed = time.monotonic()
        # Curves of an earlier part of the run end here, where it was taken up again.
        begun = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._file.write_event(self._event(wall_time=time.time(), step=start, session_log=begun))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        summary = self._summary(value=[self._summary.Value(tag=name, simple_value=value)])
        self._file.write_event(self._event(wall_time=time.time(), step=step, summary=summary))
        if time.monotonic() - self._flushed > SECONDS_BETWEEN_FLUSHES:
            self._flushed = time.monotonic()
            self._file.flush()

    def close(self) -> None:
        self._file.close()
