"""The parameters under the names that they have in model.safetensors, so that a file is a state_dict as it is.

A name ends in its axes, which are its shape, as in model/params.py (which loads jax); a test holds the two together.
"""

import math

import torch
from torch import nn

from lexinvariant.config import ModelConfig

OCCURRENCE_STATISTICS, OCCURRENCE_BUCKETS = 5, 13

_LAYER = [
    "attention_norm_D",
    "query_DE",
    "key_DE",
    "value_DE",
    "out_ED",
    "mlp_norm_D",
    "up_DF",
    "down_FD",
]
_ZEROS = ("bias", "occurrence_QGD", "start_D", "unseen_D", "gate_D", "ask_DC", "bias_P", "bias_V")


def parameter_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every parameter of a model, by its name in the file."""
    c = config
    layer = _LAYER + ["qk_scale_N"] * c.normalize_qk + ["smear_N"] * c.smeared_keys
    has_bias = c.positions == "bias"
    layer += ["position_WN"] * has_bias
    names = [("embedding.table_VD", "VD")] if c.lexicon.has_table else []
    affine = "D" if c.lexicon.affine == "channel" else ""
    names += [("embedding.scale", affine), ("embedding.bias", affine)]
    plain = ["embedding.occurrence_QGD"] * c.count_occurrences + ["final_norm_D", "start_D"]
    plain += ["unseen_D"] * (c.readout == "seen")
    if c.has_recall:
        plain += ["recall.note_DC", "recall.gate_D", "recall.ask_DC"]
    if c.decipher_head:
        plain += ["decipher.up_DP", "decipher.up_bias_P", "decipher.down_PV", "decipher.down_bias_V"]
        plain += ["decipher.next_DP", "decipher.next_bias_P"] * c.decipher_next
    names += [(name, name.rpartition("_")[2]) for name in plain]
    names += [(f"layers.{name}", "L" + name.rpartition("_")[2]) for name in layer]
    if c.has_hindsight:
        names += [
            (f"hindsight.{name}", "H" + name.rpartition("_")[2]) for name in layer + ["future_WN"] * has_bias
        ]
    size = {"V": c.vocab_size, "D": c.width, "N": c.n_heads, "E": c.width, "F": c.hidden}
    size |= {"L": c.n_layers, "H": c.hindsight_layers, "W": c.position_buckets, "P": c.decipher_hidden}
    size |= {"C": c.recall_width, "Q": OCCURRENCE_STATISTICS, "G": OCCURRENCE_BUCKETS}
    return {name: tuple(size[axis] for axis in axes) for name, axes in names}


def add_parameters(module: nn.Module, config: ModelConfig) -> None:
    """Give a module all parameters of a model, and submodules where their names have a dot."""
    for name, shape in parameter_shapes(config).items():
        group, _, own = name.rpartition(".")
        if group and not hasattr(module, group):
            module.add_module(group, nn.Module())
        home = getattr(module, group) if group else module
        home.register_parameter(own, nn.Parameter(torch.empty(shape)))


@torch.no_grad()
def initialise(config: ModelConfig, name: str, value: torch.Tensor) -> None:
    """A parameter's first values, as model/params.py has them but for the random numbers."""
    own = name.rpartition(".")[2]
    if own == "qk_scale_N":
        value.fill_(config.qk_scale_init)
    elif own == "scale" or own.endswith("norm_D"):
        value.fill_(1.0)
    elif own.endswith(_ZEROS):
        value.zero_()
    elif own == "smear_N":
        n_heads = value.shape[-1]
        value.copy_(torch.where(torch.arange(n_heads) < n_heads // 2, 3.0, -3.0).expand(value.shape))
    elif own == "table_VD":
        value.normal_()
    else:
        value.normal_(std=1 / math.sqrt(value.shape[-2]))
