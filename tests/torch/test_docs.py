"""The blocks of docs/interop.md run."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lexinvariant.config import LexiconConfig
from lexinvariant.model.weights import save_model
from lexinvariant.text import load_vocab
from tests.tiny_models import TINY, random_params

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'lexinvariant[torch]'")
pytest.importorskip("transformers", reason="transformers is not installed: pip install 'lexinvariant[torch]'")

DOCUMENT = Path(__file__).parents[2] / "docs" / "interop.md"


@pytest.mark.slow
def test_the_guide_runs(tmp_path: Path, word_model: Path) -> None:
    vocab = load_vocab(word_model)
    config = replace(TINY, vocab_size=vocab.size, context=64, lexicon=LexiconConfig(kind="mixed"))
    save_model(tmp_path / "model", config, random_params(config), vocab)
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(blocks) == 3
    script = "\n".join([*blocks, f"print(continue_text({str(tmp_path / 'model')!r}, 'the statement'))"])
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "the statement" in run.stdout
