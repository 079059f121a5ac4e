"""Token permutation in Hugging Face's `Trainer`: in the batches that it trains on, and not in those it evaluates on."""

from typing import Any

from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from lexinvariant.augment.collator import PermutingCollator
from lexinvariant.augment.permuter import TokenPermuter
from lexinvariant.errors import UserError


def permute_training_batches(trainer: Trainer, permuter: TokenPermuter) -> None:
    """Let this trainer train on permuted tokens; call it before `trainer.train()`.

    The trainer's own collator makes the batches. A resumed run permutes as an uninterrupted one would. Called again, it
    takes the new permuter in place of the old one.
    """
    rows = len(trainer.model.get_input_embeddings().weight)
    if permuter.vocab_size > rows:
        raise UserError(
            f"The permuter has a vocabulary of {permuter.vocab_size} ids and the model {rows} embeddings: make the "
            "permuter from the model's own tokenizer, or resize the model's embeddings."
        )
    collator = PermutingCollator(permuter, trainer.data_collator)
    for clock in trainer.callback_handler.callbacks:
        if isinstance(clock, _Clock):
            clock.collator = collator
            return
    clock, plain_dataloader = _Clock(collator), trainer.get_train_dataloader

    def get_train_dataloader() -> DataLoader:
        # Trainer has one collator for training and evaluation: it is exchanged for as long as this loader is made.
        plain, trainer.data_collator = trainer.data_collator, clock.collator
        try:
            return plain_dataloader()
        finally:
            trainer.data_collator = plain

    trainer.get_train_dataloader = get_train_dataloader
    trainer.add_callback(clock)


class _Clock(TrainerCallback):
    """Tells the collator the epoch and the step."""

    def __init__(self, collator: PermutingCollator) -> None:
        self.collator = collator
        self._next_epoch = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._next_epoch = int(state.epoch or 0)  # after resuming, the epoch of the checkpoint
        self.collator.set_step(state.global_step)

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.collator.set_epoch(self._next_epoch)
        self._next_epoch += 1

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.collator.set_step(state.global_step)
