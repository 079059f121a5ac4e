"""What `import lexinvariant` promises: every public name, and nothing heavy before it is used."""

import subprocess
import sys

import pytest

import lexinvariant


@pytest.mark.parametrize("name", lexinvariant.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(lexinvariant, name) is not None
    assert name in dir(lexinvariant)


def test_public_things_are_what_their_names_say() -> None:
    from lexinvariant.api import Model
    from lexinvariant.model.weights import Weights
    from lexinvariant.training.loop import train

    assert lexinvariant.Model is Model
    assert issubclass(Model, Weights)
    assert lexinvariant.train is train
    assert issubclass(lexinvariant.UserError, Exception)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lexinvariant.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, lexinvariant; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "lexinvariant" in loaded
    assert not loaded & {
        "jax",
        "jaxlib",
        "numpy",
        "scipy",
        "matplotlib",
        "optax",
        "orbax",
        "tokenizers",
        "tyro",
        "torch",
        "transformers",
        "lm_eval",
    }
