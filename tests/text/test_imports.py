import subprocess
import sys


def test_importing_text_loads_nothing_heavy() -> None:
    code = "import sys, lexinvariant.text; print(*sys.modules)"
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    assert not loaded & {"jax", "pyarrow", "tokenizers", "zstandard", "datasets", "huggingface_hub", "rich"}
