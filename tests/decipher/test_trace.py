"""The posterior over the key: its balancing against oracles, and its promises on a model that was never trained."""

import base64
import itertools
import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.api import Model
from lexinvariant.config import LexiconConfig
from lexinvariant.decipher import trace as tracing
from lexinvariant.decipher.alphabet import KEPT
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.trace import Trace, context_lengths, decayed_scores, sinkhorn, soft_keys, trace
from lexinvariant.errors import UserError
from lexinvariant.text import CharVocab
from tests.tiny_models import TINY, random_params

CONTEXT = 64


def tiny(decipher_head: bool = True) -> Model:
    config = replace(
        TINY,
        context=CONTEXT,
        lexicon=LexiconConfig(kind="permuted"),
        readout="seen",
        decipher_head=decipher_head,
        decipher_hidden=16,
    )
    return Model(config, random_params(config, scale=0.2), CharVocab())


@pytest.fixture(scope="module")
def model() -> Model:
    return tiny()


def test_the_balanced_key_keeps_odds_and_gives_no_character_twice() -> None:
    score_FSC = np.random.default_rng(0).normal(size=(2, 4, 6)) * 2
    seen_FS = np.array([[True] * 4, [True, False, True, False]])
    p_FSC = sinkhorn(score_FSC, seen_FS)
    np.testing.assert_allclose(p_FSC.sum(axis=2), seen_FS * 1.0, atol=1e-9)
    assert p_FSC.sum(axis=1).max() < 1 + 1e-3
    # Scaling rows and columns leaves the odds ratio of any two symbols and characters as it was.
    for a, b in itertools.combinations(range(4), 2):
        ratio = lambda x, a=a, b=b: x[a, 0] + x[b, 1] - x[a, 1] - x[b, 0]  # noqa: E731
        assert ratio(np.log(p_FSC[0])) == pytest.approx(ratio(score_FSC[0]), abs=1e-6)


def test_when_all_symbols_are_seen_columns_sum_to_one() -> None:
    p_FSC = sinkhorn(np.random.default_rng(1).normal(size=(1, 5, 5)), np.ones((1, 5), bool))
    np.testing.assert_allclose(p_FSC.sum(axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(p_FSC.sum(axis=2), 1.0, atol=1e-9)


def test_two_symbols_that_want_one_character_push_the_doubtful_one_to_another() -> None:
    # Both say "a"; the first is certain of it, the second thinks "b" almost as likely.
    score_FSC = np.log(np.array([[[0.98, 0.01, 0.01], [0.55, 0.44, 0.01]]]))
    p_FSC = sinkhorn(score_FSC, np.ones((1, 2), bool))
    assert p_FSC[0, 0, 0] > 0.7
    assert p_FSC[0, 1].argmax() == 1


def test_a_crib_is_certain_and_its_character_is_taken_from_the_others() -> None:
    score_FSC = np.random.default_rng(2).normal(size=(3, 4, 6))
    seen_FS = np.ones((3, 4), bool)
    seen_FS[0, 2] = False
    p_FSC = soft_keys(score_FSC, seen_FS, {2: 5})
    assert (p_FSC[:, 2, 5] == seen_FS[:, 2]).all()
    assert (p_FSC[:, [0, 1, 3], 5] == 0).all()
    np.testing.assert_allclose(p_FSC[:, [0, 1, 3]].sum(axis=2), 1.0, atol=1e-9)


def test_an_occurrence_counts_half_as_much_as_the_next_one() -> None:
    logp_TC = np.log(np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]))
    symbol_T = np.array([0, KEPT, 0])
    score_FSC, seen_FS = decayed_scores(
        symbol_T, logp_TC, 1, np.array([1, 2, 3]), load_language().trace_decay
    )
    np.testing.assert_allclose(score_FSC[0, 0], logp_TC[0])
    np.testing.assert_allclose(score_FSC[1, 0], logp_TC[0])
    np.testing.assert_allclose(score_FSC[2, 0], logp_TC[2] + 0.5 * logp_TC[0])
    assert seen_FS.all()


def test_every_length_is_looked_at_where_the_answer_stays_small() -> None:
    assert context_lengths(300, 26 * 26).tolist() == list(range(1, 301))
    few = context_lengths(512, 128 * 128)
    assert few[0] == 1
    assert few[-1] == 512
    assert len(few) * 128 * 128 <= tracing.MAX_TABLE
    assert context_lengths(1, 10**9).tolist() == [1]


def teach_the_head_to_say(model: Model, characters: str) -> Model:
    """A head that ignores the text and always says these characters, the first most."""
    head = model.params.decipher
    bias_V = np.full(128, -5.0, np.float32)
    bias_V[[ord(c) for c in characters]] = 3.0 - np.arange(len(characters))
    silent = replace(head, down_PV=jnp.zeros_like(head.down_PV), down_bias_V=jnp.asarray(bias_V))
    return replace(model, params=replace(model.params, decipher=silent))


def test_the_trace_says_what_the_head_says(model: Model) -> None:
    said = trace(teach_the_head_to_say(model, "et"), "xx xx", alphabet="letters")
    assert said.symbols == ("x",)
    assert said.best(1) == {"x": ("e", pytest.approx(said.p_FSC[0, 0, said.characters.index("e")]))}
    assert (
        said.p_FSC[-1, 0, said.characters.index("e")] > said.p_FSC[-1, 0, said.characters.index("t")] > 0.05
    )
    two = trace(teach_the_head_to_say(model, "et"), "xxy", alphabet="letters").best(3)
    assert {name for name, _ in two.values()} == {"e", "t"}  # one each, though the head says "e" of both


def test_names_mean_nothing(model: Model) -> None:
    first = trace(model, "a big banana", alphabet="ascii")
    second = trace(model, "e cop cekeke", alphabet="ascii")
    assert first.symbols != second.symbols
    np.testing.assert_array_equal(first.p_FSC, second.p_FSC)


def test_what_is_known_early_does_not_depend_on_what_comes_later(model: Model) -> None:
    short = trace(model, "abcabdabe", alphabet="letters")
    long = trace(model, "abcabdabexyzzy", alphabet="letters")
    for n in range(1, 10):
        assert long.best(n) == {
            symbol: (name, pytest.approx(p, abs=1e-4)) for symbol, (name, p) in short.best(n).items()
        }


def test_letters_keep_the_rest_and_count_in_either_case(model: Model) -> None:
    seen = trace(model, "Ab, aB!", alphabet="letters")
    assert seen.symbols == ("a", "b")
    assert seen.symbol_T.tolist() == [0, 1, KEPT, KEPT, 0, 1, KEPT]
    assert set(seen.characters) <= set("abcdefghijklmnopqrstuvwxyz")
    assert seen.cells == tuple("Ab, aB!")
    assert seen.p_FSC.shape[0] == 7
    assert not seen.p_FSC[0, 1].any()  # b has not occurred


def test_signs_stand_for_letters_and_the_spaces_between_them_are_kept(model: Model) -> None:
    seen = trace(model, "★☎ ●★")
    assert seen.symbols == ("★", "☎", "●")
    assert seen.symbol_T.tolist() == [0, 1, KEPT, 2, 0]
    assert set(seen.characters) <= set("abcdefghijklmnopqrstuvwxyz")


def test_homophones_stand_for_letters_alone_and_may_share_one(model: Model) -> None:
    text = [str(number) for number in [*range(30), 0, 1]]
    seen = trace(teach_the_head_to_say(model, "eE.t"), text, {"3": "q", "4": "q"})
    assert seen.characters == tuple("abcdefghijklmnopqrstuvwxyz")
    key = seen.best(len(text))
    assert {plain for symbol, (plain, _) in key.items() if symbol not in "34"} == {"e"}
    assert key["3"] == key["4"] == ("q", 1.0)
    assert not seen.p_FSC[0, 1:].any()  # not seen yet
    np.testing.assert_allclose(seen.p_FSC[-1].sum(axis=1), 1.0)


def test_a_beginning_in_which_nothing_is_enciphered(model: Model) -> None:
    seen = trace(model, "." * 100 + "abc", alphabet="letters")
    assert seen.symbols == ()
    assert seen.symbol_T.tolist() == [KEPT] * CONTEXT
    assert seen.to_json()["table"] == ""


def test_a_crib_about_a_symbol_that_comes_later_does_no_harm(model: Model) -> None:
    seen = trace(model, "ab" * 50 + "c", {"c": "x"}, alphabet="letters")
    assert seen.symbols == ("a", "b")


def test_more_kept_characters_than_the_model_has_symbols(model: Model) -> None:
    small = replace(model, config=replace(model.config, vocab_size=8))
    seen = trace(small, "ab.,;:!?-()ba", alphabet="letters")
    assert seen.symbols == ("a", "b")
    np.testing.assert_allclose(seen.p_FSC[-1].sum(axis=1), 1.0, atol=1e-3)


def test_cribs_hold_at_every_moment(model: Model) -> None:
    seen = trace(model, "abcabc", {"b": "q"}, alphabet="letters")
    q = seen.characters.index("q")
    assert seen.p_FSC[:, 1, q].tolist() == [0, 1, 1, 1, 1, 1]
    assert not seen.p_FSC[:, [0, 2], q].any()


def test_a_text_longer_than_the_context_is_read_as_far_as_it_goes(model: Model) -> None:
    seen = trace(model, "abcd" * 50, alphabet="letters")
    assert len(seen.cells) == CONTEXT
    assert seen.n_symbols == 200
    assert seen.note is not None
    assert "first 64 of 200" in seen.note
    assert trace(model, "abcd", alphabet="letters").note is None


def test_the_json_form_holds_the_table(model: Model) -> None:
    seen = trace(model, "a★🙂 b\n", alphabet="ascii")
    answer = json.loads(json.dumps(seen.to_json()))
    assert answer["symbols"] == ["a", "★", "🙂", " ", "b", "\n"]
    shape = (len(answer["lengths"]), len(answer["symbols"]), len(answer["characters"]))
    table = np.frombuffer(base64.b64decode(answer["table"]), np.uint8).reshape(shape)
    np.testing.assert_allclose(table / 255, seen.p_FSC, atol=0.5 / 255 + 1e-12)
    assert [answer["symbols"][s] for s in answer["symbol"]] == answer["cells"]


def test_the_longest_text_with_the_most_symbols_stays_small() -> None:
    many = Trace.to_json(trace(tiny(), [chr(0x4E00 + i) for i in range(CONTEXT)], alphabet="ascii"))
    assert len(json.dumps(many)) < 1_000_000


@pytest.mark.parametrize(
    ("text", "cribs", "sentence"),
    [
        ("", {}, "nothing to decipher"),
        ("abc", {"a": "x", "b": "x"}, "a and b cannot both stand for x"),
        ("abc", {"a": "?"}, "a cannot stand for .: give one letter"),
    ],
)
def test_what_cannot_be_traced(model: Model, text: str, cribs: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        trace(model, text, cribs, alphabet="letters")


def test_too_many_symbols(model: Model) -> None:
    small = replace(model, config=replace(model.config, vocab_size=8))
    with pytest.raises(UserError, match="10 different symbols and the model knows 8:"):
        trace(small, "abcdefghij", alphabet="ascii")


def test_a_model_without_a_head_cannot_name_symbols() -> None:
    with pytest.raises(UserError, match="deciphering head"):
        trace(tiny(decipher_head=False), "abc")


def test_a_model_that_does_not_know_the_letters_is_asked_about_all_that_it_knows(model: Model) -> None:
    greek = replace(load_language(), name="greek", letters="αβγ", capitals="ΑΒΓ")
    told = trace(model, "αβα Αγ", {"α": "β"}, language=greek)
    assert told.symbols == ("α", "β", "γ")
    assert set(told.characters) <= set(model.vocab.decode(range(model.vocab.size)))
    assert told.cells == tuple("αβα Αγ")
