"""Our models in PyTorch and in transformers, without jax.

    import lexinvariant.torch
    model = lexinvariant.torch.load()                       # the bundled model, or a folder: score, posterior, ...
    AutoModelForCausalLM.from_pretrained("models/mine")     # of transformers: a standard or regularised model

What transformers needs is there where it is installed.
"""

import importlib.util

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("lexinvariant.torch needs PyTorch: `pip install 'lexinvariant[torch]'`.") from error

from lexinvariant.torch.model import Model, Network, load

__all__ = ["Model", "Network", "load"]

if importlib.util.find_spec("transformers") is not None:
    from lexinvariant.torch.causal_lm import LexinvariantForCausalLM  # which registers it

    __all__ += ["LexinvariantForCausalLM"]
