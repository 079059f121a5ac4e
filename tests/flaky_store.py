"""An object store that is slow, fails now and then, fails for ever, or whose client is killed: flaky://FOLDER."""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from fsspec.implementations.local import LocalFileSystem

SEED = 3


class KilledError(BaseException):
    """What ends a process without asking it."""


class FlakyStore(LocalFileSystem):
    """Every request may fail up to three times, before it was done or after, and a file may arrive in part."""

    protocol = "flaky"
    fails: ClassVar[bool] = True
    broken: ClassVar[Exception | None] = None
    kill_at: ClassVar[int | None] = None
    before_read: ClassVar[Callable[[str], None] | None] = None
    requests: ClassVar[Counter[str]] = Counter()
    _changes: ClassVar[int] = 0
    _tried: ClassVar[Counter[tuple[str, str]]] = Counter()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, **options: Any) -> None:
        super().__init__(auto_mkdir=True, **options)

    @classmethod
    def heal(cls, fails: bool = True) -> None:
        cls.fails, cls.broken, cls.kill_at, cls.before_read, cls._changes = fails, None, None, None, 0
        cls.requests.clear()
        cls._tried.clear()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(str(path).removeprefix("flaky://"))

    def _ask(
        self, request: str, path: str, do: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        cls = type(self)
        with cls._lock:
            cls.requests[request] += 1
            cls._tried[request, path] += 1
            tried = cls._tried[request, path]
            if request in ("put", "pipe", "rm"):
                cls._changes += 1
                if cls.kill_at is not None and cls._changes >= cls.kill_at:
                    if half is not None and cls._changes == cls.kill_at:
                        half()
                    raise KilledError
        if cls.broken is not None:
            raise cls.broken
        chance = hashlib.sha256(f"{SEED} {request} {Path(path).name} {tried}".encode()).digest()
        time.sleep(chance[0] / 255 * 0.004)
        fails = cls.fails and tried % 4 and chance[1] < 100
        if fails and chance[2] < 128:
            if half is not None:
                half()
            raise OSError("the store is having a bad day")
        done = do()
        if fails:
            raise TimeoutError("the answer was lost")
        return done

    def cat_file(self, path: str, *arguments: Any, **options: Any) -> Any:
        return self._ask("cat", path, lambda: super(FlakyStore, self).cat_file(path, *arguments, **options))

    def pipe_file(self, path: str, value: bytes, *arguments: Any, **options: Any) -> Any:
        def put() -> None:  # an object is there whole or not at all
            super(FlakyStore, self).pipe_file(f"{path}.part", value)
            Path(f"{path}.part").replace(path)

        return self._ask("pipe", path, put)

    def put_file(self, path1: str, path2: str, *arguments: Any, **options: Any) -> Any:
        def half() -> None:
            data = Path(path1).read_bytes()
            super(FlakyStore, self).pipe_file(path2, data[: len(data) // 2])

        return self._ask("put", path2, lambda: super(FlakyStore, self).put_file(path1, path2), half)

    def get_file(self, path1: str, path2: str, *arguments: Any, **options: Any) -> Any:
        if type(self).before_read is not None:
            type(self).before_read(path1)

        def half() -> None:
            data = Path(self._strip_protocol(path1)).read_bytes()
            Path(path2).write_bytes(data[: len(data) // 2])

        return self._ask("get", path1, lambda: super(FlakyStore, self).get_file(path1, path2), half)

    def rm_file(self, path: str) -> Any:
        return self._ask("rm", path, lambda: super(FlakyStore, self).rm_file(path))

    def find(self, path: str, *arguments: Any, **options: Any) -> Any:
        return self._ask("find", path, lambda: super(FlakyStore, self).find(path, *arguments, **options))
