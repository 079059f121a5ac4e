"""B_p is what the paper says, the same in every library, and refuses what it cannot do."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from lexinvariant.augment import LinearAnneal, TokenPermuter
from lexinvariant.augment.shuffle import hashed, shuffle
from lexinvariant.errors import UserError

V = 1000
SPECIAL = (0, 1, 2, 500, 998, 999)


def tokens(vocab_size: int = V, shape: tuple[int, int] = (64, 256), seed: int = 0) -> np.ndarray:
    """Few types, each of them often, and some special ids."""
    types = np.random.default_rng(seed).integers(vocab_size, size=60)
    return np.random.default_rng(seed + 1).choice(np.concatenate([types, SPECIAL]), shape)


def is_ordinary(tok: np.ndarray) -> np.ndarray:
    return ~np.isin(tok, SPECIAL)


@pytest.mark.parametrize("n", [1, 2, 5, 1000, 32_000])
def test_a_shuffle_is_a_permutation_and_each_row_has_its_own(n: int) -> None:
    everything = np.broadcast_to(np.arange(n, dtype=np.int32), (3, n))
    row = np.arange(3, dtype=np.int32)[:, None]
    images = shuffle(everything, n, 7, row)
    assert (np.sort(images, axis=1) == everything).all()
    if n >= 1000:
        assert (images[0] != images[1]).mean() > 0.99


def test_every_permutation_is_equally_likely() -> None:
    n, rows = 6, 60_000
    row = np.arange(rows, dtype=np.int32)[:, None]
    images = shuffle(np.broadcast_to(np.arange(n, dtype=np.int32), (rows, n)), n, row)
    place = images @ n ** np.arange(n)  # one number for each of the 720 permutations
    counts = np.unique_counts(place).counts
    assert len(counts) == 720
    chi_squared = ((counts - rows / 720) ** 2 / (rows / 720)).sum()
    assert abs(chi_squared - 719) < 5 * np.sqrt(2 * 719)


def test_hashes_differ_at_neighbouring_addresses_in_half_of_their_bits() -> None:
    number = np.arange(10_000, dtype=np.int32)
    for one, other in (
        (hashed(number, 0, 0), hashed(number + 1, 0, 0)),
        (hashed(number, 0, 0), hashed(number, 1, 0)),
        (hashed(number, 0, 0), hashed(number, 0, 1)),
    ):
        assert 15.8 < np.bitwise_count((one ^ other).view(np.uint32)).mean() < 16.2


@pytest.mark.parametrize("unit", ["position", "type"])
def test_jax_and_numpy_give_the_same_numbers(unit: Any) -> None:
    permuter = TokenPermuter(V, p=0.3, unit=unit, special_ids=SPECIAL, seed=2**40 - 5)
    tok, step = tokens(), 123_456
    tok[3, 100:] = -100
    expected = permuter(tok, step=step, first_row=8)
    assert (expected != tok).any()
    eager = permuter(jnp.asarray(tok, jnp.int32), step=step, first_row=8)
    traced = jax.jit(lambda tok, step: permuter(tok, step=step, first_row=8))(
        jnp.asarray(tok, jnp.int32), step
    )
    assert isinstance(eager, jax.Array)
    assert eager.dtype == jnp.int32
    np.testing.assert_array_equal(eager, expected)
    np.testing.assert_array_equal(traced, expected)


def test_numbers_never_change() -> None:
    tok = np.arange(0, 800, 100)[None, :]
    permuter = TokenPermuter(V, p=1.0, special_ids=SPECIAL, seed=3)
    assert permuter(tok, step=5).tolist() == [[0, 861, 96, 102, 336, 500, 889, 996]]
    assert replace(permuter, p=0.5)(tok, step=5).tolist() == [[0, 861, 96, 300, 400, 500, 889, 996]]


@pytest.mark.parametrize("unit", ["position", "type"])
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_a_share_p_moves_by_one_permutation_a_sequence(unit: Any, p: float) -> None:
    tok = tokens(shape=(400, 256))
    out = TokenPermuter(V, p=p, unit=unit, special_ids=SPECIAL)(tok, step=0)
    moved, ordinary = out != tok, is_ordinary(tok)
    assert abs(moved[ordinary].mean() - p) < (0.02 if 0 < p < 1 else 0.002)  # 1 in 1,000 is its own image
    assert not moved[~ordinary].any()
    assert is_ordinary(out[moved]).all()
    images: list[dict[int, set[int]]] = [{} for _ in tok]
    for row, before, after in zip(np.nonzero(moved)[0], tok[moved], out[moved], strict=True):
        images[row].setdefault(int(before), set()).add(int(after))
    for of_row in images:
        assert all(len(image) == 1 for image in of_row.values())  # one image for a type
        assert len({next(iter(image)) for image in of_row.values()}) == len(of_row)  # and no two share one
    partly = [
        0 < moved[b][tok[b] == t].sum() < (tok[b] == t).sum()
        for b in range(20)
        for t in set(tok[b][ordinary[b]])
    ]
    assert any(partly) == (unit == "position" and 0 < p < 1)


def test_choices_are_independent_between_positions_and_rows() -> None:
    tok = np.full((2000, 8), 7)
    moved = TokenPermuter(V, p=0.5)(tok, step=0) != tok
    correlation = np.corrcoef(np.concatenate([moved, np.roll(moved, 1, axis=0)], axis=1).T)
    assert np.abs(correlation - np.eye(16)).max() < 0.1


def test_steps_rows_and_seeds_differ_and_an_address_repeats() -> None:
    permuter, tok = TokenPermuter(V, p=1.0), np.tile(tokens(shape=(1, 256)), (4, 1))
    out = permuter(tok, step=1)
    assert len({row.tobytes() for row in out}) == 4
    np.testing.assert_array_equal(out, permuter(tok, step=1))
    np.testing.assert_array_equal(out[2:], permuter(tok[2:], step=1, first_row=2))
    for other in (permuter(tok, step=2), TokenPermuter(V, p=1.0, seed=1)(tok, step=1)):
        assert (other != out).mean() > 0.9


def test_a_compiled_function_may_be_given_the_first_row() -> None:
    permuter, tok = TokenPermuter(V, p=LinearAnneal(0.5, begin=0, end=100)), tokens()
    expected = permuter(tok, step=20, first_row=64)
    for constant in (tok, jnp.asarray(tok, jnp.int32)):
        for traced in (
            jax.jit(lambda tok, step, row: permuter(tok, step=step, first_row=row))(constant, 20, 64),
            jax.jit(lambda row, tok=constant: permuter(tok, step=20, first_row=row))(64),
            jax.jit(lambda step, tok=constant: permuter(tok, step=step, first_row=64))(20),
        ):
            np.testing.assert_array_equal(traced, expected)
    with jax.enable_x64(True):
        wide = jax.jit(lambda tok, step, row: permuter(tok, step=step, first_row=row))(
            tok, np.int64(20), np.int64(64)
        )
    np.testing.assert_array_equal(wide, expected)
    with pytest.raises(UserError, match="first_row is an array of float32"):
        jax.jit(lambda row: permuter(tok, step=20, first_row=row))(0.5)


def test_labels_move_with_their_tokens_and_ignored_ones_stay() -> None:
    permuter, tok = TokenPermuter(V, p=0.5, special_ids=SPECIAL), tokens()
    labels = tok.copy()
    labels[:, :50] = -100
    out, out_labels = permuter(tok, step=9), permuter(labels, step=9)
    assert (out_labels[:, :50] == -100).all()
    np.testing.assert_array_equal(out_labels[:, 50:], out[:, 50:])


def test_by_content_a_sequence_moves_alike_in_any_batch_and_anew_in_each_epoch() -> None:
    permuter, tok = TokenPermuter(V, p=0.5, special_ids=SPECIAL), tokens()
    (out,) = permuter.by_content(tok, epoch=0)
    (reversed_out,) = permuter.by_content(tok[::-1], epoch=0)
    np.testing.assert_array_equal(reversed_out[::-1], out)
    padded = np.concatenate([tok[:3], np.full((3, 10), SPECIAL[0])], axis=1)
    np.testing.assert_array_equal(permuter.by_content(padded, epoch=0)[0][:, :-10], out[:3])
    assert (permuter.by_content(tok, epoch=1)[0] != out).mean() > 0.4
    both = permuter.by_content(jnp.asarray(tok, jnp.int32), tok, epoch=0)
    np.testing.assert_array_equal(both[0], out)
    np.testing.assert_array_equal(both[1], out)


def test_p_follows_a_schedule() -> None:
    schedule, tok = LinearAnneal(0.8, begin=100, end=200), tokens()
    assert [round(schedule(step), 9) for step in (0, 100, 150, 200, 900)] == [0.8, 0.8, 0.4, 0.0, 0.0]
    permuter = TokenPermuter(V, p=schedule, special_ids=SPECIAL)
    np.testing.assert_array_equal(
        permuter(tok, step=150), TokenPermuter(V, p=0.4, special_ids=SPECIAL)(tok, step=150)
    )
    np.testing.assert_array_equal(permuter(tok, step=200), tok)
    traced = jax.jit(lambda tok, step: permuter(tok, step=step))(jnp.asarray(tok, jnp.int32), 150)
    np.testing.assert_array_equal(traced, permuter(tok, step=150))


def one_number(library: str, number: float) -> Any:
    """The number as an array of this library, without dimensions."""
    if library == "torch":
        return pytest.importorskip("torch", reason="needs PyTorch").tensor(number)
    return {"numpy": np.asarray, "jax": jnp.asarray}[library](number)


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_steps_and_the_numbers_of_schedules_may_be_arrays_of_any_library(library: str) -> None:
    tok, step = tokens(), one_number(library, 3)
    expected = TokenPermuter(V, p=0.5)(tok, step=3)
    for p in (one_number(library, 0.5), lambda step: one_number(library, 0.5)):
        np.testing.assert_array_equal(TokenPermuter(V, p=p)(tok, step=step), expected)
    schedule = LinearAnneal(one_number(library, 1.0), begin=1, end=5)
    np.testing.assert_array_equal(TokenPermuter(V, p=schedule)(tok, step=step), expected)
    with pytest.raises(UserError, match=r"between 0 and 1, and not 1\.5 at step 3"):
        TokenPermuter(V, p=lambda step: one_number(library, 1.5))(tok, step=step)
    with pytest.raises(UserError, match=r"and not .*\[0\.50*\].* at step 3"):
        TokenPermuter(V, p=lambda step: one_number(library, 0.5)[None])(tok, step=step)


def test_a_schedule_of_optax_is_the_same_whether_compiled_or_not() -> None:
    permuter, tok = TokenPermuter(V, p=optax.linear_schedule(0.5, 0.0, 100)), tokens()
    expected = TokenPermuter(V, p=0.25)(tok, step=50)
    tok_jax = jnp.asarray(tok, jnp.int32)
    np.testing.assert_array_equal(permuter(tok, step=50), expected)
    np.testing.assert_array_equal(permuter(tok_jax, step=jnp.int32(50)), expected)
    np.testing.assert_array_equal(jax.jit(lambda tok, step: permuter(tok, step=step))(tok_jax, 50), expected)
    np.testing.assert_array_equal(jax.jit(lambda tok: permuter(tok, step=50))(tok_jax), expected)
    (by_content,) = permuter.by_content(tok, epoch=0, step=jnp.int32(100))
    np.testing.assert_array_equal(by_content, tok)


def test_numbers_of_any_library_name_an_epoch_or_a_row() -> None:
    permuter, tok = TokenPermuter(V, p=0.5), tokens()
    for three in (np.int64(3), np.array(3), jnp.int32(3)):
        np.testing.assert_array_equal(
            permuter(tok, step=0, first_row=three), permuter(tok, step=0, first_row=3)
        )
        np.testing.assert_array_equal(
            permuter.by_content(tok, epoch=three)[0], permuter.by_content(tok, epoch=3)[0]
        )


def test_types_of_arrays_are_kept() -> None:
    permuter, tok = TokenPermuter(V, p=1.0), tokens()
    for dtype in (np.uint16, np.int32, np.int64):
        out = permuter(tok.astype(dtype), step=0)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, permuter(tok, step=0))
    np.testing.assert_array_equal(TokenPermuter(np.int64(V), p=1.0)(tok, step=0), permuter(tok, step=0))
    assert permuter([[1, 2], [3, 4]], step=0).shape == (2, 2)
    assert permuter(tok[:0], step=0).shape == (0, 256)


def test_special_ids_may_come_in_any_list_or_array_or_one_by_one() -> None:
    for ids in ([3, 1, 1], {1, 3}, np.array([3, 1]), jnp.array([3, 1]), (i for i in (3, 1))):
        assert TokenPermuter(V, special_ids=ids).special_ids == (1, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray, "torch"])
def test_types_that_cannot_hold_every_id_are_refused(make: Any) -> None:
    array = np.zeros((1, 4), np.int8)
    if make == "torch":
        make = pytest.importorskip("torch", reason="needs PyTorch").from_numpy
    tok = make(array)
    assert TokenPermuter(128, p=1.0)(tok, step=0).dtype == tok.dtype
    with pytest.raises(UserError, match=r"int8, which ends at 127, and the vocabulary at 128: give .* wider"):
        TokenPermuter(129, p=1.0)(tok, step=0)
    with pytest.raises(UserError, match="uint16, which ends at 65535"):
        TokenPermuter(128_256).by_content(array.astype(np.uint16), epoch=0)


def test_a_tokenizer_gives_the_vocabulary_and_the_ids_that_stay() -> None:
    tokenizer = Tokenizer(WordLevel({"a": 0, "b": 1, "c": 3}, unk_token="a"))
    tokenizer.add_special_tokens(["<eos>"])  # takes the next id by number of tokens
    special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    unused = set(range(max(tokenizer.get_vocab().values()) + 1)) - set(tokenizer.get_vocab().values())
    permuter = TokenPermuter.from_tokenizer(tokenizer, p=0.5, seed=4)
    assert permuter.vocab_size == 1 + max(tokenizer.get_vocab().values())
    assert set(permuter.special_ids) == special | unused != set()
    assert (permuter.p, permuter.seed) == (0.5, 4)
    wide = TokenPermuter.from_tokenizer(tokenizer, vocab_size=64, special_ids=[1])
    assert set(wide.special_ids) == special | unused | {1} | set(range(permuter.vocab_size, 64))
    with pytest.raises(UserError, match="special_ids is None: give a list"):
        TokenPermuter.from_tokenizer(tokenizer, special_ids=None)
    with pytest.raises(UserError, match="do not fit a vocabulary of 2"):
        TokenPermuter.from_tokenizer(tokenizer, vocab_size=2)


@pytest.mark.parametrize("tokenizer", ["bert", None, {"a": 0}])
def test_what_is_no_tokenizer_is_refused(tokenizer: Any) -> None:
    with pytest.raises(UserError, match=f"^{type(tokenizer).__name__} is not a tokenizer .*: load one"):
        TokenPermuter.from_tokenizer(tokenizer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 1.5}, "between 0 and 1, and not 1.5"),
        ({"p": -0.1}, "between 0 and 1, and not -0.1"),
        ({"p": float("nan")}, "and not nan"),
        ({"p": "0.2"}, "and not '0.2'"),
        ({"unit": "word"}, "and not 'word'"),
        ({"vocab_size": 0}, "vocab_size is 0: give a number of at least 1"),
        ({"vocab_size": 10.0}, "vocab_size is 10.0: give a whole number"),
        ({"vocab_size": True}, "vocab_size is True: give a whole number"),
        ({"vocab_size": 2**31}, "vocab_size is 2147483648: give a number of at most"),
        ({"special_ids": [V]}, "special id 1000 is not in the vocabulary of 1000"),
        ({"special_ids": [-1]}, "special id -1"),
        ({"special_ids": ["</s>"]}, "integers, and not '</s>'"),
        ({"special_ids": range(V)}, "All ids"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TokenPermuter(**{"vocab_size": V, **options})


@pytest.mark.parametrize(
    ("tok", "message"),
    [
        (np.array([[V]]), "has the id 1000, and the vocabulary ends at 999"),
        (np.array([[2**40]]), "has the id 1099511627776"),
        (np.array([[-1]]), "an id of -1"),
        (np.array([[0.5]]), "integers, and not float64"),
        (np.array([[True]]), "integers, and not bool"),
        (np.arange(5), r"shape \(batch, time\), and not \(5,\)"),
        ([[1, 2], [3]], "differ in length"),
        ([["a"]], "integers"),
        (jnp.full((1, 1), V), "has the id 1000"),
    ],
)
def test_bad_batches_are_refused(tok: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        TokenPermuter(V)(tok, step=0)


def test_bad_steps_and_schedules_are_refused() -> None:
    tok = np.zeros((1, 1), np.int32)
    with pytest.raises(UserError, match="step is -1: give a number of at least 0"):
        TokenPermuter(V)(tok, step=-1)
    with pytest.raises(UserError, match=r"step is 0\.5: give a whole number"):
        TokenPermuter(V)(tok, step=0.5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"and not 1\.5 at step 3"):
        TokenPermuter(V, p=lambda step: step / 2)(tok, step=3)
    last = 2**31 - 1  # the number of the last row that there can be
    assert TokenPermuter(V)(tok, step=0, first_row=last).shape == (1, 1)
    for first_row in (last + 1, 2**40):
        with pytest.raises(UserError, match=f"first_row is {first_row}: give a number of at most {last}"):
            TokenPermuter(V)(tok, step=0, first_row=first_row)
    with pytest.raises(UserError, match="first_row is -1: give a number of at least 0"):
        TokenPermuter(V)(tok, step=0, first_row=-1)
    for epoch in (-1, 2**64, 0.5, None):
        with pytest.raises(UserError, match=f"epoch is {epoch}: give a"):
            TokenPermuter(V).by_content(tok, epoch=epoch)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"jax.jit does not know yet: call it outside"):
        jax.jit(lambda tok: TokenPermuter(V).by_content(tok, epoch=0))(tok)
    with pytest.raises(UserError, match=r"jax.jit does not know yet: call it outside"):
        jax.jit(lambda epoch: TokenPermuter(V).by_content(tok, epoch=epoch))(0)
    with pytest.raises(UserError, match="begin is 5 and end is 5"):
        LinearAnneal(0.2, begin=5, end=5)
    for begin in ("a", -1, 0.5):
        with pytest.raises(UserError, match=r"begin is .*: give a"):
            LinearAnneal(0.2, begin=begin, end=5)  # type: ignore[arg-type]


def test_importing_loads_no_library_that_is_not_used() -> None:
    code = (
        "import sys, numpy as np\nfrom lexinvariant.augment import TokenPermuter\n"
        "TokenPermuter(9)(np.zeros((1, 4), int), step=0)\nprint(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"jax", "torch", "transformers"}


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import lexinvariant.augment

    for name in ("lexinvariant.augment.collator", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        UserError, match=r"PermutingCollator needs torch: pip install 'lexinvariant\[torch\]'"
    ):
        _ = lexinvariant.augment.PermutingCollator


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": "x"}, "seed is 'x'"),
        ({"special_ids": 5}, "special_ids is 5: give a list"),
        ({"special_ids": "5"}, "a list"),
        ({"special_ids": None}, "special_ids is None: give a list"),
        ({"special_ids": [None]}, "integers, and not None: .* leave out"),
        ({"special_ids": [[1]]}, r"integers, and not \[1\]"),
        ({"special_ids": np.array([0.5])}, r"integers, and not 0\.5"),
    ],
)
def test_wrong_types_are_told_when_it_is_made(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TokenPermuter(100, **options)
