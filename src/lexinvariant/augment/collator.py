"""A collator for PyTorch's `DataLoader` that permutes tokens of the batches which another collator makes."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import torch
from torch.utils.data import default_collate

from lexinvariant.augment.permuter import TokenPermuter, counted
from lexinvariant.errors import UserError

Collator = Callable[[Sequence[Any]], Any]
_UNSET = -1


class PermutingCollator:
    """Makes a batch with another collator, and permutes its `input_ids` and, if the permuter says so, its `labels`.

    What happens to a sequence is a function of (seed, epoch, its tokens): the same whatever the batch size, the order
    and the number of workers or processes, and after resuming. For that, call `set_epoch` before each pass over the
    data, as for PyTorch's samplers. Where it is never called, each batch draws from PyTorch's generator, like dropout.

    Padding, other special ids and labels of -100 stay.
    """

    def __init__(self, permuter: TokenPermuter, collator: Collator | None = None) -> None:
        """Wraps `collator`, or without one PyTorch's default for tensors and for dictionaries of lists or tensors."""
        if not isinstance(permuter, TokenPermuter):
            raise UserError(f"PermutingCollator needs a TokenPermuter first, and not {permuter!r}.")
        self.permuter = permuter
        self.collator = collator or _default_collator
        # (epoch, step), in shared memory: a DataLoader's workers have copies of everything else.
        self._clock = torch.full((2,), _UNSET, dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        """Says which pass over the data follows; workers see it too."""
        self._clock[0] = counted(epoch, "epoch")

    def set_step(self, step: int) -> None:
        """Says at which step training is, for a scheduled p; workers prepare a few batches ahead of it."""
        self._clock[1] = counted(step, "step")

    def __call__(self, examples: Sequence[Any]) -> Any:
        """The batch of these examples."""
        batch = self.collator(examples)
        if isinstance(batch, torch.Tensor):
            return self._permuted(batch)[0]
        if not isinstance(batch, MutableMapping) or "input_ids" not in batch:
            raise UserError(
                "A batch is a tensor of token ids or a dictionary with input_ids: give PermutingCollator a collator "
                "that makes one."
            )
        with_labels = self.permuter.permute_labels and batch.get("labels") is not None
        names = ("input_ids", "labels") if with_labels else ("input_ids",)
        if with_labels and batch["labels"].shape != batch["input_ids"].shape:
            raise UserError(
                f"Labels of the shape {tuple(batch['labels'].shape)} do not belong to input_ids of the shape "
                f"{tuple(batch['input_ids'].shape)}: if labels are not tokens, use permute_labels=False."
            )
        permuted = zip(names, self._permuted(*(batch[name] for name in names)), strict=True)
        batch.update(permuted)  # of its own type: Transformers' batches have methods
        return batch

    def _permuted(self, *ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        epoch, step = self._clock.tolist()
        if callable(self.permuter.p) and step == _UNSET:
            raise UserError(
                "p follows a schedule, so the collator has to know the step: call its set_step before each."
            )
        if epoch == _UNSET:  # an epoch that nobody else has
            epoch = int(torch.randint(2**32, 2**62, ()))
        return self.permuter.by_content(*ids, epoch=epoch, step=max(step, 0))


def _default_collator(examples: Sequence[Any]) -> Any:
    """PyTorch's, which would take a list of token ids apart position by position."""
    if len(examples) == 0:
        raise UserError("There are no examples to make a batch of: give PermutingCollator one or more.")
    try:
        if isinstance(examples[0], Mapping):
            examples = [{name: _as_tensor(value) for name, value in example.items()} for example in examples]
        return default_collate(examples)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(
            "The examples do not make a batch, perhaps as they differ in length: give PermutingCollator a collator "
            f"that pads ({error})."
        ) from error


def _as_tensor(value: Any) -> Any:
    return torch.as_tensor(value) if isinstance(value, list) else value
