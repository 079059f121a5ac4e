"""lm-evaluation-harness, the real one, on our models."""

# ruff: noqa: E402 (what needs the harness is imported once it is known to be there)

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig
from lexinvariant.errors import UserError
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.weights import save_model
from lexinvariant.rng import Stream, key_at
from lexinvariant.text import CharVocab, train_tokenizer
from tests.tiny_models import TINY, random_params, save_random_model

lm_eval = pytest.importorskip(
    "lm_eval", reason="lm-evaluation-harness is not installed: pip install 'lexinvariant[harness]'"
)

from lm_eval.api.instance import Instance

from lexinvariant.harness import LexinvariantLM

CONTEXT = 32


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A standard model of some tokens, in a folder."""
    folder = tmp_path_factory.mktemp("standard")
    (folder / "text.txt").write_text("the cat and the hat and the cat sat there " * 20)
    vocab = train_tokenizer([str(folder / "text.txt")], folder / "tokenizer.json", size=270)
    return save_random_model(folder, vocab, "learned", "full", context=CONTEXT)


@pytest.fixture(scope="module")
def lexinvariant(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lexinvariant")
    config = replace(
        TINY, context=CONTEXT, lexicon=LexiconConfig(kind="permuted"), readout="seen", recall_width=4
    )
    save_model(folder, config, random_params(config), CharVocab())
    return str(folder)


@pytest.fixture(scope="module")
def standard_of_characters(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("characters")
    return save_random_model(folder, CharVocab(), "learned", "full", context=CONTEXT)


def requests(kind: str, *arguments: tuple[Any, ...]) -> list[Instance]:
    return [Instance(kind, {}, each, number) for number, each in enumerate(arguments)]


def test_a_continuation_is_scored_after_its_context(standard: str) -> None:
    lm = LexinvariantLM(standard)
    pairs = [
        ("the cat", " sat"),
        ("the cat ", "sat there"),
        ("", "the cat"),
        ("the hat and", " the"),
        ("the", ""),
    ]
    found = lm.loglikelihood(requests("loglikelihood", *pairs), disable_tqdm=True)
    for (context, continuation), (logp, _) in zip(pairs, found, strict=True):
        [score] = lm.model.score(context + continuation)
        n = len(lm.model.vocab.encode(context.rstrip()))
        assert logp == pytest.approx(score[n:].sum(), abs=1e-4)
    assert len({round(logp, 3) for logp, _ in found}) == 5
    assert found[-1] == (0.0, True)


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("kind", ["standard_of_characters", "lexinvariant"])
def test_what_it_writes_itself_is_the_likeliest_and_other_text_is_not(
    request: pytest.FixtureRequest, kind: str, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = LexinvariantLM(request.getfixturevalue(kind), draws=draws)
    context = "abab cd abab cd a"
    tok_T = lm._tokens(context)

    def keys(seed: int, address_B: jax.Array, draw: int) -> jax.Array:
        """The draws of scoring, which are the same for all texts."""
        return jnp.broadcast_to(key_at(seed, Stream.EVAL, 0, draw), address_B.shape)

    monkeypatch.setattr("lexinvariant.model.greedy.evaluation_keys", keys)
    [written] = greedy_tokens(lm.model.params, lm.model.config, [tok_T], 4, draws=draws)
    text = lm.model._decode(written, lm.model._alphabet(context))
    [(logp, greedy)] = lm.loglikelihood(requests("loglikelihood", (context, text)), disable_tqdm=True)
    has_new = bool(
        set(text) - set(context)
    )  # to a lexinvariant model new symbols are alike: none is the likeliest
    assert greedy == (kind != "lexinvariant" or not has_new)
    [score] = lm.model.score(context + text, draws=draws)
    assert logp == pytest.approx(score[len(tok_T) :].sum(), abs=1e-3)
    others = [(context, other) for other in ("bdbd", "zzzz") if other != text]
    assert [best for _, best in lm.loglikelihood(requests("loglikelihood", *others), disable_tqdm=True)] == [
        False
    ] * len(others)


def test_a_long_context_is_cut_from_the_left(lexinvariant: str) -> None:
    lm = LexinvariantLM(lexinvariant)
    end = "abcabcabcabcabcabcabcabcabca"  # with the continuation, as much as the context holds
    pairs = [("xyz" * 20 + end, "bcab"), (end, "bcab")]
    first, second = lm.loglikelihood(requests("loglikelihood", *pairs), disable_tqdm=True)
    assert first == second
    with pytest.warns(UserWarning, match="has 40 tokens and the model reads 32 at a time: only its end"):
        lm.loglikelihood(requests("loglikelihood", ("a", "b" * 40)), disable_tqdm=True)


def test_a_whole_text_is_scored_in_windows(lexinvariant: str) -> None:
    lm = LexinvariantLM(lexinvariant, draws=2)
    text = "the cat sat on the mat and the dog sat on the cat, and that was all that there was of that"
    long, short, empty = lm.loglikelihood_rolling(
        requests("loglikelihood_rolling", (text,), (text[:20],), ("",)), disable_tqdm=True
    )
    assert short == pytest.approx(lm.model.score(text[:20], draws=2)[0].sum(), abs=1e-4)
    assert empty == 0.0
    # 32 tokens, then 31 twice over: the token before them is read and not counted; the last window is a full one.
    ends = [(32, 32), (63, 31), (len(text), len(text) - 63)]
    parts = [lm.model.score(text[end - 32 : end], draws=2)[0][-counted:].sum() for end, counted in ends]
    assert long == pytest.approx(sum(parts), abs=1e-3)


def test_generation_ends_at_a_stop_string_or_at_its_length(standard: str) -> None:
    lm = LexinvariantLM(standard)
    prompts = ["the cat and", "sat", "the hat " * 30]
    options = {"until": [], "max_gen_toks": 12}
    whole = lm.generate_until(
        requests("generate_until", *((prompt, options) for prompt in prompts)), disable_tqdm=True
    )
    for number, (prompt, text) in enumerate(zip(prompts, whole, strict=True)):
        tok_T = lm.model.vocab.encode(prompt).astype(np.int64)[-(CONTEXT - 12) :]
        expected = greedy_tokens(lm.model.params, lm.model.config, [tok_T], 12, address_S=np.array([number]))
        assert text == lm.model.vocab.decode(expected[0])
    stop = whole[0][3:5]
    [cut] = lm.generate_until(
        requests("generate_until", (prompts[0], options | {"until": ["\x00", stop]})), disable_tqdm=True
    )
    assert cut == whole[0][: whole[0].index(stop)]
    sampled = options | {"do_sample": True, "temperature": 2.0, "top_k": 20}
    twice = [
        lm.generate_until(requests("generate_until", (prompts[0], sampled)), disable_tqdm=True) for _ in "12"
    ]
    assert twice[0] == twice[1] != [whole[0]]
    with pytest.warns(
        UserWarning, match="asks for 99 new tokens and the model reads 32 at a time: it gets 31"
    ):
        lm.generate_until(requests("generate_until", ("the", {"until": [" "], "max_gen_toks": 99})))


TASK = """
task: local_{kind}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}, cache_dir: {cache}}}
test_split: test
output_type: {kind}
doc_to_text: "{text}"
doc_to_target: "{target}"
{more}
metric_list: [{{metric: {metric}}}]
"""


@pytest.mark.slow
def test_a_local_task_runs_from_its_command_line(lexinvariant: str, tmp_path: Path) -> None:
    rows = [
        {"question": "abab", "choices": ["ab", "cd"], "gold": 0},
        {"question": "cdcd", "choices": ["ab", "cd"], "gold": 1},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tasks = [
        ("multiple_choice", "{{question}}", "gold", 'doc_to_choice: "{{choices}}"', "acc"),
        ("loglikelihood_rolling", "", "{{question}}", "", "byte_perplexity"),
        (
            "generate_until",
            "{{question}}",
            "{{choices[gold]}}",
            'generation_kwargs: {until: ["b"], max_gen_toks: 4}',
            "exact_match",
        ),
    ]
    where = {"data": tmp_path / "rows.jsonl", "cache": tmp_path / "cache"}
    for kind, text, target, more, metric in tasks:
        task = TASK.format(kind=kind, text=text, target=target, more=more, metric=metric, **where)
        (tmp_path / f"{kind}.yaml").write_text(task)
    command = [sys.executable, "-m", "lexinvariant.harness", "run", "--model", "lexinvariant"]
    command += ["--model_args", f"pretrained={lexinvariant},draws=2", "--include_path", str(tmp_path)]
    command += [
        "--tasks",
        ",".join(f"local_{kind}" for kind, *_ in tasks),
        "--output_path",
        str(tmp_path / "out"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=_offline(tmp_path))
    assert run.returncode == 0, run.stderr[-3000:]
    [written] = (tmp_path / "out").rglob("results_*.json")
    results = json.loads(written.read_text())["results"]
    lm = LexinvariantLM(lexinvariant, draws=2)
    scores = [lm.model.score(row["question"], draws=2)[0] for row in rows]
    perplexity = np.exp(-np.sum(scores) / 8)
    assert results["local_loglikelihood_rolling"]["byte_perplexity,none"] == pytest.approx(
        perplexity, rel=1e-4
    )
    pairs = [(row["question"], " " + choice) for row in rows for choice in row["choices"]]
    logp = [each for each, _ in lm.loglikelihood(requests("loglikelihood", *pairs), disable_tqdm=True)]
    right = [logp[0] > logp[1], logp[3] > logp[2]]
    assert results["local_multiple_choice"]["acc,none"] == np.mean(right)
    assert 0 <= results["local_generate_until"]["exact_match,none"] <= 1


def _offline(folder: Path) -> dict[str, str]:
    home = {"HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return os.environ | home | {"JAX_PLATFORMS": "cpu"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pretrain": "x"}, "no model argument 'pretrain': did you mean 'pretrained'"),
        ({"dtype": "float8"}, "no dtype 'float8': give float32 or bfloat16"),
        ({"batch_size": "many"}, "batch_size of 'many'"),
        ({"pretrained": "./nowhere"}, "There is no folder"),
    ],
)
def test_bad_arguments_are_told_in_one_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        LexinvariantLM(**arguments)
