"""Where arrays lie while a training step is traced for a mesh with an axis `fsdp` (training/sharding.py); without one,
nothing here does anything.

XLA finds a layout for whatever it is not told, and where matrices are split along their width it splits activations so
as well: every device then works on every sequence, and sends activations instead of parameters.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import jax
from jax.sharding import PartitionSpec

from lexinvariant.model.params import Params

Tree = TypeVar("Tree")
Function = TypeVar("Function", bound=Callable[..., Any])


def _splits_parameters() -> bool:
    return dict(jax.sharding.get_abstract_mesh().shape).get("fsdp", 1) > 1


def _constrain(tree: Tree, spec: PartitionSpec) -> Tree:
    return (
        jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, spec), tree)
        if _splits_parameters()
        else tree
    )


def split_by_row(tree: Tree) -> Tree:
    """Activations: every device has its own sequences."""
    return _constrain(tree, PartitionSpec(("data", "fsdp")))


def gathered(tree: Tree) -> Tree:
    """Parameters where they are used: whole on every device."""
    return _constrain(tree, PartitionSpec())


def gathered_but_layers(params: Params) -> Params:
    """Layers are gathered one after the other."""
    others = {f.name: getattr(params, f.name) for f in fields(params) if f.name != "layers"}
    return replace(params, **gathered(others))


def keep_rows_alone(function: Function, *n_rows: int) -> Function:
    """For the backward pass keep activations, known by the lengths of their first axis; what is made of parameters is
    gathered and made again, or every device would hold the whole model from the forward pass on.
    """
    if not _splits_parameters():
        return function

    def has_rows(primitive: Any, *inputs: Any, **_: Any) -> bool:
        return any(getattr(x, "shape", ())[:1] in [(n,) for n in n_rows] for x in inputs)

    return jax.checkpoint(function, policy=has_rows)  # type: ignore[return-value]
