"""The same numbers in PyTorch, and permuted batches from DataLoader and from Hugging Face's Trainer."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant import augment
from lexinvariant.augment import LinearAnneal, TokenPermuter
from lexinvariant.errors import UserError

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'lexinvariant[torch]'")
transformers = pytest.importorskip(
    "transformers", reason="needs Transformers: pip install 'lexinvariant[torch]'"
)

pytestmark = pytest.mark.usefixtures("one_thread_and_a_seed")
V, PAD = 200, 0
PERMUTER = TokenPermuter(V, p=0.5, special_ids=(PAD, 1))


def examples(n: int = 24, length: int = 16) -> list[dict[str, list[int]]]:
    """Sequences that end in padding."""
    rng = np.random.default_rng(0)
    ids = [[*rng.integers(2, V, size=length - 4).tolist(), *[PAD] * 4] for _ in range(n)]
    return [{"input_ids": row, "labels": [token if token != PAD else -100 for token in row]} for row in ids]


@pytest.mark.parametrize("unit", ["position", "type"])
def test_torch_and_numpy_give_the_same_numbers(unit: Any) -> None:
    permuter = TokenPermuter(32_000, p=0.3, unit=unit, special_ids=(0, 1, 7), seed=-5)
    tok = np.random.default_rng(0).integers(32_000, size=(16, 128))
    tok[2, 50:] = -100
    for dtype in (torch.int64, torch.int32):
        out = permuter(torch.tensor(tok, dtype=dtype), step=77)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out.numpy(), permuter(tok, step=77))
    (by_content,) = permuter.by_content(torch.tensor(tok), epoch=3)
    np.testing.assert_array_equal(by_content.numpy(), permuter.by_content(tok, epoch=3)[0])


def test_a_tokenizer_of_transformers_gives_the_vocabulary_and_the_ids_that_stay() -> None:
    tokenizer = transformers.ByT5Tokenizer()
    permuter = TokenPermuter.from_tokenizer(tokenizer)
    bytes_ = set(tokenizer(bytes(range(128)).decode(), add_special_tokens=False).input_ids)
    assert permuter.vocab_size == len(tokenizer) == 384
    assert set(permuter.special_ids) >= set(tokenizer.all_special_ids) >= {tokenizer.pad_token_id}
    assert not set(permuter.special_ids) & bytes_


def test_labels_go_with_their_tokens_or_stay_and_padding_stays() -> None:
    collator = augment.PermutingCollator(PERMUTER)
    collator.set_epoch(0)
    batch, plain = collator(examples()), augment.PermutingCollator(TokenPermuter(V, p=0.0))(examples())
    padding = plain["input_ids"] == PAD
    moved = batch["input_ids"] != plain["input_ids"]
    assert 0.3 < moved[~padding].float().mean() < 0.7
    assert (batch["input_ids"][padding] == PAD).all()
    assert (batch["labels"][padding] == -100).all()
    assert (batch["labels"] == batch["input_ids"])[~padding].all()
    stay = augment.PermutingCollator(TokenPermuter(V, p=0.5, special_ids=(PAD, 1), permute_labels=False))
    stay.set_epoch(0)
    batch = stay(examples())
    assert (batch["labels"] == plain["labels"]).all()
    assert (batch["input_ids"] != plain["input_ids"]).any()


def test_a_batch_of_another_collator_keeps_its_type_and_its_other_entries() -> None:
    def pad(rows: Any) -> Any:
        ids = torch.tensor([row["input_ids"] for row in rows])
        return transformers.BatchEncoding({"input_ids": ids, "attention_mask": (ids != PAD).long()})

    batch = augment.PermutingCollator(PERMUTER, pad)(examples())
    assert isinstance(batch, transformers.BatchEncoding)
    assert (batch["attention_mask"] == pad(examples())["attention_mask"]).all()
    assert (batch["input_ids"] != pad(examples())["input_ids"]).any()


def test_a_dataloader_gives_the_same_whatever_its_workers_and_batches_and_epochs_differ() -> None:
    data = [torch.tensor(example["input_ids"]) for example in examples()]
    collator = augment.PermutingCollator(PERMUTER)

    def epoch(number: int, loader: Any) -> Any:
        collator.set_epoch(number)
        return torch.cat(list(loader))

    alone = torch.utils.data.DataLoader(data, batch_size=6, collate_fn=collator)
    workers = torch.utils.data.DataLoader(
        data,
        batch_size=4,
        collate_fn=collator,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context="spawn",
    )
    first, second = epoch(0, alone), epoch(1, alone)
    assert (first != second).any(dim=1).all()
    assert (epoch(0, workers) == first).all()
    assert (epoch(1, workers) == second).all()  # the workers are those of the first epoch, and have been told
    assert (pickle.loads(pickle.dumps(collator))(data) == second).all()


def test_without_an_epoch_batches_are_drawn_from_pytorchs_generator() -> None:
    collator, data = augment.PermutingCollator(PERMUTER), [torch.arange(2, 50)] * 3
    first, second = collator(data), collator(data)
    assert (first != second).any()
    torch.manual_seed(0)
    assert (collator(data) == first).all()


def test_a_schedule_needs_the_step() -> None:
    collator = augment.PermutingCollator(TokenPermuter(V, p=LinearAnneal(1.0, begin=10, end=20)))
    data = [torch.arange(2, 50)]
    with pytest.raises(UserError, match="call its set_step"):
        collator(data)
    collator.set_step(10)
    assert (collator(data) != data[0]).float().mean() > 0.9
    collator.set_step(20)
    assert (collator(data) == data[0]).all()


def test_batches_that_cannot_be_permuted_are_refused() -> None:
    with pytest.raises(UserError, match="needs a TokenPermuter first, and not None"):
        augment.PermutingCollator(None)
    with pytest.raises(UserError, match="a dictionary with input_ids"):
        augment.PermutingCollator(PERMUTER)([(torch.arange(3), torch.arange(3))])
    with pytest.raises(UserError, match=r"Labels of the shape \(1,\).*permute_labels=False"):
        augment.PermutingCollator(PERMUTER)([{"input_ids": [3, 4], "labels": 1}])
    with pytest.raises(UserError, match="a collator that pads"):
        augment.PermutingCollator(PERMUTER)([{"input_ids": [3, 4]}, {"input_ids": [3]}])
    for differing in ([None], [{"input_ids": [3]}, {"labels": [3]}], [{"input_ids": ["a"]}]):
        with pytest.raises(UserError, match="do not make a batch"):
            augment.PermutingCollator(PERMUTER)(differing)
    with pytest.raises(UserError, match=r"no examples .*: give PermutingCollator one or more"):
        augment.PermutingCollator(PERMUTER)([])
    with pytest.raises(UserError, match="has the id 200"):
        augment.PermutingCollator(PERMUTER)([torch.tensor([V])])
    with pytest.raises(UserError, match=r"integers, and not torch\.float32"):
        augment.PermutingCollator(PERMUTER)([torch.tensor([0.5])])


def test_epochs_and_steps_that_are_none_are_refused_when_they_are_set() -> None:
    collator = augment.PermutingCollator(PERMUTER)
    for name, set_number in (("epoch", collator.set_epoch), ("step", collator.set_step)):
        set_number(torch.tensor(3))
        for number in (-2, -1, 2**63, 0.5, None):
            with pytest.raises(UserError, match=f"{name} is {number}: give a"):
                set_number(number)
    data = [torch.arange(2, 50)]
    assert (collator(data) == PERMUTER.by_content(data[0][None], epoch=3)[0]).all()


class Recorder(torch.nn.Module):
    """A model that remembers the ids it was given."""

    def __init__(self, vocab_size: int = V) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, 1)
        self.seen: dict[bool, list[Any]] = {True: [], False: []}

    def get_input_embeddings(self) -> Any:
        return self.embedding

    def forward(self, input_ids: Any, labels: Any) -> Any:
        self.seen[self.training].append(input_ids.clone())
        assert ((labels == input_ids) | (labels == -100)).all()
        return {"loss": self.embedding(input_ids).sum(), "logits": input_ids}


def trainer_of(model: Recorder, folder: Path, **arguments: Any) -> Any:
    settings = transformers.TrainingArguments(
        str(folder),
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        per_device_train_batch_size=8,
        **{"num_train_epochs": 2, "save_strategy": "no", **arguments},
    )
    return transformers.Trainer(model, settings, train_dataset=examples(), eval_dataset=examples())


def test_a_trainer_trains_on_permuted_tokens_and_evaluates_on_plain_ones(tmp_path: Path) -> None:
    model = Recorder()
    trainer = trainer_of(model, tmp_path, eval_strategy="steps", eval_steps=2, eval_on_start=True)
    augment.permute_training_batches(trainer, PERMUTER)
    trainer.train()
    trainer.evaluate()
    plain = {tuple(example["input_ids"]) for example in examples()}
    evaluated = {tuple(row) for batch in model.seen[False] for row in batch.tolist()}
    assert evaluated == plain
    trained = [tuple(row) for batch in model.seen[True] for row in batch.tolist()]
    assert len(trained) == len(set(trained)) == 48  # each sequence twice, in two ways
    assert not set(trained) & plain


def test_a_second_permuter_takes_the_place_of_the_first(tmp_path: Path) -> None:
    def seen(*shares: float) -> list[Any]:
        model = Recorder()
        trainer = trainer_of(model, tmp_path)
        for p in shares:
            augment.permute_training_batches(trainer, TokenPermuter(V, p=p, special_ids=(PAD, 1)))
        trainer.train()
        return [batch.tolist() for batch in model.seen[True]]

    assert seen(0.0, 1.0) == seen(1.0) != seen(1.0, 0.0)


def test_a_resumed_run_trains_on_what_the_whole_run_did(tmp_path: Path) -> None:
    def run(folder: Path, resume: bool | str = False) -> list[Any]:
        model = Recorder()
        trainer = trainer_of(model, folder, save_strategy="steps", save_steps=4)
        augment.permute_training_batches(trainer, PERMUTER)
        trainer.train(resume_from_checkpoint=resume)
        return model.seen[True]

    whole = run(tmp_path / "a")
    resumed = run(
        tmp_path / "b", resume=str(tmp_path / "a" / "checkpoint-4")
    )  # in the middle of the second epoch
    assert len(whole) == 6
    assert [batch.tolist() for batch in resumed] == [batch.tolist() for batch in whole[4:]]


def test_a_trainer_anneals_p(tmp_path: Path) -> None:
    model = Recorder()
    trainer = trainer_of(model, tmp_path, num_train_epochs=4)
    augment.permute_training_batches(
        trainer, TokenPermuter(V, p=LinearAnneal(1.0, begin=3, end=6), special_ids=(PAD, 1))
    )
    trainer.train()
    plain = {tuple(example["input_ids"]) for example in examples()}
    shares = [np.mean([tuple(row) in plain for row in batch.tolist()]) for batch in model.seen[True]]
    assert shares[0] == 0
    assert shares[-4:] == [1] * 4


def test_a_vocabulary_that_does_not_fit_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="vocabulary of 200 ids and the model 100 embeddings"):
        augment.permute_training_batches(trainer_of(Recorder(100), tmp_path), PERMUTER)
