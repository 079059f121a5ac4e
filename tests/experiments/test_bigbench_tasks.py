"""BIG-bench's files and prompts: as published, and in every way in which a file can be wrong."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexinvariant.errors import UserError
from lexinvariant.experiments import bigbench_files
from lexinvariant.experiments.bigbench_files import read_tasks
from lexinvariant.experiments.bigbench_prompts import (
    Question,
    answer_tokens,
    find_answer,
    fit_questions,
    pick_questions,
)
from lexinvariant.experiments.bigbench_tasks import Example, Subtask, Task, UnusableTaskError, parse_subtask
from lexinvariant.text import CharVocab

SUMS = [{"input": f"{n} + 1 =", "target": str(n + 1)} for n in range(20)]
CHOICES = [{"input": f"Is {n} odd?", "target_scores": {"yes": n % 2, "no": 1 - n % 2}} for n in range(20)]


def parse(**fields: Any) -> Subtask:
    return parse_subtask(
        "sums", json.dumps({"examples": SUMS, "metrics": ["exact_str_match"]} | fields).encode()
    )


def question(subtask: Subtask, index: int = 0, pool: tuple[int, ...] = (1, 2)) -> Question:
    return Question(subtask, subtask.examples[index], tuple(subtask.examples[n] for n in pool), 0)


def test_prompts_have_the_benchmarks_defaults() -> None:
    asked = question(parse())
    assert asked.prompt(0) == "\nQ: 0 + 1 =\nA: "
    assert asked.prompt(2) == "\nQ: 1 + 1 =\nA: 2\n\nQ: 2 + 1 =\nA: 3\n\nQ: 0 + 1 =\nA: "
    assert asked.prompt(2).endswith(asked.prompt(1))


def test_prompts_have_what_the_file_says() -> None:
    asked = question(
        parse(
            task_prefix="Add.", example_input_prefix=" ", example_output_prefix=" it is ",
            few_shot_example_separator=" |",
        )
    )  # fmt: skip
    assert asked.prompt(1) == "Add. 2 + 1 = it is 3 | 0 + 1 = it is "


def test_choices_are_appended_unless_told_otherwise() -> None:
    fields = {"examples": CHOICES, "metrics": ["multiple_choice_grade"], "choice_prefix": " or "}
    shown = question(parse(**fields)).prompt(1)
    assert sorted(shown.split("?")[2].removesuffix("\nA: ").split(" or ")) == ["", "no", "yes"]
    assert "2 odd?" in shown and "\nA: no\n" in shown  # the shot has its best choice
    orders = {tuple(question(parse(**fields), n).prompt(0).split("?")[1].split()) for n in range(10)}
    assert len(orders) == 2  # the right one is not always at the same place
    bare = question(parse(**fields, append_choices_to_input=False))
    assert bare.prompt(1) == "\nQ: Is 2 odd?\nA: no\n\nQ: Is 0 odd?\nA: "


def test_a_converted_file_is_told_apart_and_its_prompts_are_left_alone() -> None:
    made = parse(examples=CHOICES, metrics=[], _form="prompts as converted by the repository")
    assert question(made).prompt(0) == "Is 0 odd? " and not made.as_published
    assert parse(_form="original task.json").as_published
    assert not parse(_form="BIG-Bench-Hard form").as_published


def test_an_answer_ends_where_the_benchmark_ends_it() -> None:
    assert find_answer(parse(), " 12. And then") == "12"
    assert find_answer(parse(stop_string=";"), " 1. 2; 3") == "1. 2;"
    assert find_answer(parse(output_regex=r"[a-h][1-8]"), "Knight to e4 or d5") == "e4"
    assert find_answer(parse(output_regex=r"(\d+) apples"), "7 pears, 8 apples") == "8"
    assert find_answer(parse(output_regex=r"\d"), "none") == ""
    sentences = [{"input": "Say it.", "target": ["It is so. Yes."]}]
    assert find_answer(parse(examples=sentences), "It is so. Yes.\nQ: more") == "It is so. Yes."


def test_answers_may_be_derived_from_choices() -> None:
    assert parse(examples=CHOICES).examples[1].targets == ("yes",)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"examples": [', "not valid JSON"),
        (b"\xff\xfe\xfa", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "no list of `examples`"),
        (b'{"examples": {}}', "no list of `examples`"),
        (b'{"examples": []}', "None of its examples can be used"),
        (b'{"examples": [{"input": "a", "target": ""}, {"target": "b"}]}', "1 examples with an empty target"),
        (b'{"examples": [{"input": "a", "target_scores": {"b": "c", "d": 1}}]}', "not choices with numbers"),
        (b'{"examples": [{"input": "a", "target_scores": {"b": NaN, "d": 1}}]}', "not choices with numbers"),
        (
            b'{"examples": [{"input": "a", "target": "b"}], "metrics": ["bleurt"]}',
            "metric bleurt is not known",
        ),
        (
            b'{"examples": [{"input": "a", "target": "b"}], "metrics": ["multiple_choice_grade"]}',
            "target_scores",
        ),
        (b'{"examples": [{"input": "a", "target": "b"}], "output_regex": "("}', "not a regular expression"),
        (b'{"examples": [{"input": "a", "target": "b"}], "task_prefix": 3}', "task_prefix is no text"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(data: bytes, why: str) -> None:
    with pytest.raises(UnusableTaskError, match=why):
        parse_subtask("bad", data)


def test_single_examples_are_left_out_and_counted() -> None:
    examples = [
        *SUMS,
        SUMS[0],
        {"input": "9"},
        {"input": 9, "target": "9"},
        {"input": "a\ud800", "target": "b"},
    ]
    read = parse(examples=examples)
    assert len(read.examples) == 21 and read.examples[-1].input == "a?"
    assert read.notes == (
        "1 examples that repeat another were left out.",
        "1 examples with an empty target were left out.",
        "1 examples without an input were left out.",
    )


def test_a_choice_that_comes_twice_counts_once_and_with_its_higher_score() -> None:
    raw = b'{"examples": [{"input": "a", "target_scores": {"b": 1, "b ": 0, "c": 0, "c": 0.5}}]}'
    read = parse_subtask("twice", raw)
    assert read.examples[0].choices == ("b", "c") and read.examples[0].scores == (1, 0.5)
    assert "1 examples have a choice twice; it was kept once, with the higher score." in read.notes


def test_metrics_are_of_one_kind_and_the_preferred_one_comes_first() -> None:
    assert parse(metrics=["exact_str_match", "rouge"], preferred_score="rougeLsum").metrics == (
        "rougeL", "exact_str_match", "rouge1", "rouge2",
    )  # fmt: skip
    mixed = parse(examples=CHOICES, metrics=["bleurt", "multiple_choice_grade", "bleu"])
    assert mixed.metrics == ("multiple_choice_grade",)
    assert mixed.notes == ("Its metric bleurt is not known here; multiple_choice_grade was used.",)


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def test_an_archive_is_read_as_its_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = json.dumps({"examples": SUMS, "metrics": ["exact_str_match"], "keywords": ["arithmetic"]}).encode()
    files = {
        "sums": good,
        "many/one": good,
        "many/two": good,
        "many/bad": b"{",
        "bad": b"{",
        "huge": good * 9,
    }
    monkeypatch.setattr(bigbench_files, "LARGEST_FILE", len(good) * 8)
    with tarfile.open(tmp_path / "tasks.tar.xz", "w:xz") as archive:
        for name, data in files.items():
            folder = tmp_path / "tasks" / "bigbench" / name
            folder.mkdir(parents=True)
            (folder / "task.json").write_bytes(data)
            add(archive, f"bigbench/{name}/task.json", data)
    in_folder = read_tasks(tmp_path / "tasks", 5, 0)
    assert read_tasks(tmp_path / "tasks.tar.xz", 5, 0) == in_folder
    tasks, skipped = in_folder
    assert [task.name for task in tasks] == ["many", "sums"] and set(skipped) == {"bad", "huge"}
    assert skipped["huge"].startswith("It has 0 MiB and the most is")
    assert [subtask.name for subtask in tasks[0].subtasks] == ["many/one", "many/two"]
    assert tasks[0].notes[0].startswith("bad was left out: It is not valid JSON")
    assert tasks[0].keywords == ("arithmetic",) and len(tasks[1].subtasks[0].examples) == 5


def test_paths_that_lead_out_of_an_archive_are_reported(tmp_path: Path) -> None:
    good = json.dumps({"examples": SUMS}).encode()
    with tarfile.open(tmp_path / "tasks.tar", "w") as archive:
        add(archive, "a/task.json", good)
        add(archive, "../out/task.json", good)
        add(archive, "/abs/task.json", good)
        link = tarfile.TarInfo("b/task.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    tasks, skipped = read_tasks(tmp_path / "tasks.tar", 5, 0)
    assert [task.name for task in tasks] == ["a"]
    assert sorted(skipped.values()) == [
        "It is a link and no file.",
        *["Its path leads out of the archive."] * 2,
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tasks.tar"]  # nothing was unpacked


def test_what_holds_no_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no task\.json"):
        read_tasks(tmp_path, 5, 0)
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match="neither a folder nor a tar archive"):
        read_tasks(tmp_path / "file", 5, 0)
    with tarfile.open(tmp_path / "cut.tar", "w") as archive:
        add(archive, "a/task.json", json.dumps({"examples": SUMS * 100}).encode())
    (tmp_path / "cut.tar").write_bytes((tmp_path / "cut.tar").read_bytes()[:2000])
    with pytest.raises(UserError, match="damaged archive"):
        read_tasks(tmp_path / "cut.tar", 5, 0)


def test_questions_come_evenly_from_subtasks_and_shots_from_other_examples() -> None:
    subtasks = [
        Subtask(name, [Example(f"{name}{n}", (str(n),)) for n in range(size)], ("exact_str_match",))
        for name, size in (("a", 40), ("b", 3), ("c", 40))
    ]
    questions = pick_questions(Task("t", subtasks), 13, 0)
    per_subtask = [sum(asked.subtask.name == name for asked in questions) for name in "abc"]
    assert per_subtask == [5, 3, 5] and len({asked.example for asked in questions}) == 13
    for asked in questions:
        assert asked.example not in asked.pool
        assert {shot.input[0] for shot in asked.pool} <= {asked.subtask.name}
        assert len(set(asked.pool)) == (2 if asked.subtask.name == "b" else 3)
    assert pick_questions(Task("t", subtasks), 13, 0) == questions
    assert pick_questions(Task("t", subtasks), 13, 1) != questions


def test_too_long_a_prompt_loses_shots_and_then_its_beginning() -> None:
    vocab, asked = CharVocab(), question(parse())
    full = [len(asked.prompt(shots).rstrip(" ")) for shots in range(3)]

    def fit(context: int, room: int = 8) -> Any:
        (fitted,) = fit_questions([asked], 2, vocab, context, room)
        return fitted

    assert [fit(length + 8).shots for length in full] == [0, 1, 2]
    assert [fit(length + 7).shots for length in full] == [0, 0, 1]
    assert vocab.decode(fit(full[1] + 8).prompt_T) == "\nQ: 2 + 1 =\nA: 3\n\nQ: 0 + 1 =\nA:"
    assert not fit(full[0] + 8).is_cut and fit(full[0] + 7).is_cut
    assert vocab.decode(fit(full[0] + 3).prompt_T) == " + 1 =\nA:"
    assert fit(8) is None


def test_a_space_before_an_answer_belongs_to_it() -> None:
    chosen = question(parse(examples=CHOICES, metrics=["multiple_choice_grade"]))
    (fitted,) = fit_questions([chosen], 0, CharVocab(), 100, 0)
    assert fitted is not None
    assert [CharVocab().decode(tail) for tail in fitted.tails] == [" yes", " no"]
    foreign = [{"input": "?", "target_scores": {"да": 1, "нет": 0}}]
    unwritable = question(
        parse(examples=foreign, metrics=["multiple_choice_grade"], example_output_prefix=":"), pool=()
    )
    assert fit_questions([unwritable], 0, CharVocab(), 100, 0) == [None]


def test_room_for_writing_follows_the_longest_right_answer() -> None:
    asked = [Question(parse(), Example("?", ("a" * n,)), (), 0) for n in (1, 20)]
    assert answer_tokens(asked, CharVocab(), 128) == 32
    assert answer_tokens(asked[:1], CharVocab(), 128) == 8
    assert answer_tokens(asked, CharVocab(), 16) == 16


def test_examples_of_a_thinned_file_do_not_depend_on_others(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.json").write_text(json.dumps({"examples": SUMS}))
    (both, _), seeds = read_tasks(tmp_path, 4, 0), [read_tasks(tmp_path, 4, seed)[0] for seed in range(3)]
    assert both == seeds[0] and seeds[0] != seeds[1]
    (tmp_path / "two" / "task.json").unlink()
    (tmp_path / "zero").mkdir()
    (tmp_path / "zero" / "task.json").write_text("{")
    (alone,), _ = read_tasks(tmp_path, 4, 0)
    assert alone == both[0] and np.all([len(task.subtasks[0].examples) == 4 for task in both])
