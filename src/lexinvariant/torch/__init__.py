"""Our models in PyTorch and in transformers, without jax.

import lexinvariant.torch
model = lexinvariant.torch.load()                       # the bundled model, or a folder: score, posterior, ...
AutoModelForCausalLM.from_pretrained("models/mine")     # of transformers: a standard or regularised model
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("lexinvariant.torch needs PyTorch: `pip install 'lexinvariant[torch]'`.") from error

import importlib.util

from lexinvariant.torch.model import Model, Network, load

if importlib.util.find_spec("transformers") is not None:
    import lexinvariant.torch.causal_lm  # noqa: F401 (it registers our models)

__all__ = ["Model", "Network", "load"]
