"""Eight CPU devices, so that sharding is tested for real, a compiler in a hurry, and no silent change of types."""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from pydoc_data.topics import topics

# Tests are small programs, which spend their time in the compiler: here, and in the processes that they start, it
# may take short cuts. Until 0.11 XLA can do without its newer emitters, which need four times as long.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_force_host_platform_device_count=8 --xla_cpu_parallel_codegen_split_count=1"
    + (" --xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else "")
)
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.model.weights import save_model
from lexinvariant.text import CharVocab, train_tokenizer
from tests.tiny_models import TINY, random_params

jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(scope="module")
def compile_fully() -> Iterator[None]:
    """For programs that run for longer than they are compiled."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexinvariant model of characters with a deciphering head that was never trained."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    config = ModelConfig(
        context=128,
        n_layers=1,
        width=32,
        n_heads=2,
        head_dim=16,
        hidden=64,
        lexicon=LexiconConfig(kind="permuted"),
        readout="seen",
        decipher_head=True,
        decipher_hidden=32,
    )
    save_model(folder, config, random_params(config, scale=0.2), CharVocab())
    return folder


@pytest.fixture(scope="session")
def word_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lexinvariant model of some hundred tokens with a deciphering head that was never trained."""
    folder = tmp_path_factory.mktemp("words") / "tiny"
    folder.mkdir()
    (folder / "text.txt").write_text("\n".join(sorted(topics.values())))
    vocab = train_tokenizer([str(folder / "text.txt")], folder / "tokenizer.json", size=1000)
    config = replace(
        TINY,
        vocab_size=vocab.size,
        context=64,
        lexicon=LexiconConfig(kind="permuted"),
        readout="seen",
        decipher_head=True,
        decipher_hidden=16,
    )
    save_model(folder, config, random_params(config, scale=0.3), vocab)
    return folder
