"""docs/regularise.md does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "regularise.md"

pytest.importorskip("torch", reason="needs PyTorch: pip install 'lexinvariant[torch]'")
pytest.importorskip("transformers", reason="needs Transformers: pip install 'lexinvariant[torch]'")


@pytest.mark.slow
def test_the_guide_runs_and_its_model_learns(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    statements = [line for line in blocks[0].splitlines() if line and "import" not in line]
    assert len(statements) <= 10
    (tmp_path / "guide.py").write_text("import torch\ntorch.set_num_threads(1)\n" + "\n".join(blocks))
    run = subprocess.run(
        [sys.executable, "guide.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    loss = re.search(r"loss on plain text: (\d\.\d\d)", run.stdout)
    assert loss is not None, run.stdout
    assert float(loss[1]) < 3.5, "384 ids guessed evenly cost 5.95"
