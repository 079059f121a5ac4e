"""One writer to a folder, and nobody waits for the dead."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lexinvariant.errors import UserError
from lexinvariant.locks import lock_folder

HOLD = """
import sys, time
from pathlib import Path
from lexinvariant.locks import lock_folder
with lock_folder(Path(sys.argv[1]), "taken"):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_lock_keeps_others_out_and_dies_with_its_process(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
        with pytest.raises(UserError, match="held"), lock_folder(tmp_path, "held"):
            pytest.fail("two at once")
        holder.send_signal(signal.SIGKILL)
    with lock_folder(tmp_path, "held"), pytest.raises(UserError, match="held"), lock_folder(tmp_path, "held"):
        pytest.fail("two at once in one process")
    with lock_folder(tmp_path, "held"):
        pass
