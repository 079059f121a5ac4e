"""What needs an optional package says which, and where the package is missing nothing else is."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "sentence"),
    [
        (
            "lexinvariant.torch",
            "torch",
            "lexinvariant.torch needs PyTorch: `pip install 'lexinvariant[torch]'`.",
        ),
        (
            "lexinvariant.harness",
            "lm_eval",
            "lexinvariant.harness needs lm-evaluation-harness: `pip install 'lexinvariant[harness]'`.",
        ),
    ],
)
def test_a_missing_package_is_named(module: str, package: str, sentence: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert run.stderr.splitlines()[-1] == f"ImportError: {sentence}"


def test_the_harness_as_a_command_says_so_without_a_traceback() -> None:
    run_it = "runpy.run_module('lexinvariant.harness', run_name='__main__')"
    code = f"import runpy, sys; sys.modules['lm_eval'] = None; {run_it}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr == (
        "lexinvariant: lexinvariant.harness needs lm-evaluation-harness: `pip install 'lexinvariant[harness]'`.\n"
    )
