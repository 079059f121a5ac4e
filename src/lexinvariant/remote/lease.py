"""Who writes to a remote folder. A store has no locks: this is as good as notes on a door are."""

import json
import os
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Self

from lexinvariant.checks import finite_number
from lexinvariant.errors import UserError
from lexinvariant.files import parse_json_object
from lexinvariant.remote.folder import RemoteFolder, StoreError

LEASE = "lease.json"
RENEWED_EVERY = 30.0
"""Seconds."""
SILENCE = 120.0
"""Seconds without a renewal after which a holder is taken to be dead, by the clock of whoever waits."""
LONG_AGO = 900.0
"""Seconds; a lease this old by the clocks of two machines is not waited for."""
LOOK_EVERY = 5.0


class Lease:
    """Held within: renewed by a thread, and taken back in the end. Another holder is told by its machine's name.

    Whoever has the same token takes over at once what a kill left.
    """

    def __init__(self, remote: RemoteFolder, token: str = "") -> None:
        self._remote = remote
        self._holder = f"{socket.gethostname()} (process {os.getpid()})"
        self._token = token or secrets.token_hex(16)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_renewing, daemon=True)

    def __enter__(self) -> Self:
        self._wait_for_others()
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(StoreError):
            if (found := self._read()) is not None and self._is_own(found):
                self._remote.delete(LEASE)

    def check(self) -> None:
        """Raise if another has taken it, as it may when nothing was heard from here for long."""
        found = self._read()
        if found is not None and not self._is_own(found):
            raise StoreError(f"{_holder(found)} has taken over {self._remote.url}: stop one of the two.")

    def _wait_for_others(self) -> None:
        first = self._read()
        if first is None or self._is_own(first) or _age(first) > LONG_AGO:
            return
        holder = _holder(first)
        print(
            f"waiting up to {SILENCE:.0f} s to see whether {holder} still writes to {self._remote.url}",
            file=sys.stderr,
            flush=True,
        )
        began = time.monotonic()
        while time.monotonic() - began < SILENCE:
            time.sleep(LOOK_EVERY)
            found = self._read()
            if found is None:
                return
            if found != first:
                raise UserError(
                    f"{holder} is writing to {self._remote.url}: wait for it, stop it, or give another place."
                )

    def _keep_renewing(self) -> None:
        while not self._ended.wait(RENEWED_EVERY):
            with suppress(StoreError):  # the next time
                self.check()
                self._write()

    def _is_own(self, found: dict[str, Any]) -> bool:
        return found.get("token") == self._token

    def _read(self) -> dict[str, Any] | None:
        data = self._remote.read(LEASE)
        if data is None:
            return None
        with suppress(UserError):
            return parse_json_object(data, LEASE, "")
        return None  # nobody's

    def _write(self) -> None:
        record = {"holder": self._holder, "token": self._token, "time": time.time()}
        self._remote.write(LEASE, json.dumps(record).encode())


def _age(record: dict[str, Any]) -> float:
    try:
        return time.time() - finite_number(record.get("time"), "time")
    except UserError:
        return LONG_AGO + 1


def _holder(record: dict[str, Any]) -> str:
    """As it may be shown on a terminal."""
    return "".join(c for c in str(record.get("holder"))[:100] if c.isprintable())
