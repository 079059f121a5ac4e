"""The judge: a standard language model of characters, in NumPy, that scores many candidate plaintexts at once.

Candidates of one text begin alike, so each different prefix is read once: they are a prefix tree, and all products
with the model's matrices are over its nodes. A tree has a new shape for every text, for which XLA would compile a new
program each time; NumPy needs no compilation, and a command that deciphers one text needs no jax.
`model.transformer` is the model as it was trained, and a test holds the two together.

N candidates, T positions, U nodes; the other axes are those of the parameters (`model.params`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.folder import read_description
from lexinvariant.model.position import distance_buckets
from lexinvariant.model.tensor_file import read_tensors
from lexinvariant.settings import from_dict

MASKED = np.float32(-1e30)
_BLAS_LOCK = Lock()  # the number of BLAS threads is one setting for the whole process

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class JudgeLayer:
    """Matrices of one layer, with the norms' scales in them."""

    query_key_value: Singles
    qk_scale_N: Singles
    position_WN: Singles
    smear_N: Singles
    out_ED: Singles
    up_DF: Singles
    down_FD: Singles


class JudgeLM:
    """Scores plaintexts: -log p of each, given that a text begins with a word.

    `token_of` is the token of each character that plaintexts are written in, the space among them.
    """

    def __init__(
        self, config: ModelConfig, tensors: Mapping[str, NDArray[np.floating]], token_of: Mapping[str, int]
    ) -> None:
        plain = config.normalize_qk and config.smeared_keys and config.readout == "full"
        if config.lexicon.is_lexinvariant or not plain or config.positions != "bias":
            raise UserError(
                "A judge is a standard model of characters: give one trained with `lexinvariant train judge`."
            )
        self.config = config
        self.token_U = np.zeros(max(map(ord, token_of)) + 1, np.int64)
        self.token_U[[ord(character) for character in token_of]] = list(token_of.values())
        get = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
        self.embedded_VD = get["embedding.table_VD"] * get["embedding.scale"] + get["embedding.bias"]
        self.readout_DV = np.ascontiguousarray(
            (get["final_norm_D"] * get["embedding.table_VD"]).T * self._logit_scale()
        )
        of_layers = {name.removeprefix("layers."): value for name, value in get.items() if "layers." in name}
        self.layers = [
            _layer({name: value[i] for name, value in of_layers.items()}) for i in range(config.n_layers)
        ]

    def _logit_scale(self) -> np.float32:
        of = self.config.width if self.config.logit_scale == "width" else self.config.vocab_size
        return np.float32(of**-0.5)

    @property
    def max_characters(self) -> int:
        return self.config.context - 1

    def nats(self, texts: Sequence[str]) -> Floats:
        """Cost of each text (all of one length), of its first `max_characters`."""
        length = min(len(texts[0]), self.max_characters)
        begun_N = np.array([" " + text[:length] for text in texts])
        order_N = np.argsort(begun_N)
        tok_NT = self.token_U[begun_N[order_N].view(np.uint32).reshape(len(texts), length + 1)]
        parts = np.array_split(tok_NT, min(len(texts), os.cpu_count() or 1))
        with single_threaded_blas(), ThreadPoolExecutor(len(parts)) as pool:
            cost_N = np.concatenate(list(pool.map(self._nats_of_sorted, parts)))
        out_N = np.empty(len(texts))
        out_N[order_N] = cost_N
        return out_N

    def _nats_of_sorted(self, tok_NT: Ints) -> Floats:
        node_NT, place_U = prefix_tree(tok_NT[:, :-1])
        state_UD = self._states(tok_NT[:, :-1].ravel()[place_U], node_NT, place_U)
        logit_UV = state_UD @ self.readout_DV
        logit_UV -= logit_UV.max(axis=1, keepdims=True)
        total_U = np.log(np.exp(logit_UV).sum(axis=1))
        return (total_U[node_NT] - logit_UV[node_NT, tok_NT[:, 1:]]).sum(axis=1, dtype=np.float64)

    def _states(self, tok_U: Ints, node_NT: Ints, place_U: Ints) -> Singles:
        """The final state of each node, normed."""
        c = self.config
        length = node_NT.shape[1]
        x_UD = self.embedded_VD[tok_U]
        before_U = np.concatenate([[-1], node_NT.ravel()])[place_U]
        first_U = place_U % length == 0
        back_TT = np.arange(length)[:, None] - np.arange(length)
        bucket_T = distance_buckets(length, c.position_buckets, c.position_max_distance)
        for layer in self.layers:
            qkv = (_rms_norm(x_UD, c.norm_eps) @ layer.query_key_value).reshape(len(x_UD), 3, c.n_heads, -1)
            q_UNK = _unit_norm(qkv[:, 0], c.norm_eps) * layer.qk_scale_N[:, None]
            k_UNK = _unit_norm(qkv[:, 1], c.norm_eps)
            m_N1 = layer.smear_N[:, None]
            k_UNK = (1 - m_N1) * k_UNK + m_N1 * np.where(first_U[:, None, None], 0, k_UNK[before_U])
            bias_NT = layer.position_WN[bucket_T].T
            if c.bias_before_scale:
                bias_NT = bias_NT * layer.qk_scale_N[:, None]
            bias_NTS = np.where(back_TT >= 0, bias_NT[:, np.abs(back_TT)], MASKED)
            mixed_UE = _attention(q_UNK, k_UNK, qkv[:, 2], bias_NTS, node_NT, place_U)
            x_UD += mixed_UE @ layer.out_ED
            hidden_UF = _rms_norm(x_UD, c.norm_eps) @ layer.up_DF
            x_UD += np.maximum(hidden_UF, 0, out=hidden_UF) @ layer.down_FD
        return _rms_norm(x_UD, c.norm_eps)


def _layer(of: Mapping[str, Singles]) -> JudgeLayer:
    together = np.concatenate([of["query_DE"], of["key_DE"], of["value_DE"]], axis=1)
    return JudgeLayer(
        query_key_value=of["attention_norm_D"][:, None] * together,
        qk_scale_N=of["qk_scale_N"],
        position_WN=of["position_WN"],
        smear_N=(1 / (1 + np.exp(-of["smear_N"]))).astype(np.float32),
        out_ED=of["out_ED"],
        up_DF=of["mlp_norm_D"][:, None] * of["up_DF"],
        down_FD=of["down_FD"],
    )


def prefix_tree(tok_NT: Ints) -> tuple[Ints, Ints]:
    """Of sorted texts: the node of every position, and where (in the flattened texts) each node stands first."""
    new_NT = np.ones(tok_NT.shape, bool)
    new_NT[1:] = np.logical_or.accumulate(tok_NT[1:] != tok_NT[:-1], axis=1)
    number_NT = np.where(new_NT, np.cumsum(new_NT).reshape(tok_NT.shape) - 1, 0)
    return np.maximum.accumulate(number_NT, axis=0), np.flatnonzero(new_NT)


def _attention(
    q_UNK: Singles, k_UNK: Singles, v_UNK: Singles, bias_NTS: Singles, node_NT: Ints, place_U: Ints
) -> Singles:
    """Every node's mixture of the values on its branch."""
    n, length = node_NT.shape
    q, k, v = (part[node_NT].transpose(0, 2, 1, 3) for part in (q_UNK, k_UNK, v_UNK))
    weight: Singles = q @ k.transpose(0, 1, 3, 2)
    weight += bias_NTS
    weight -= weight.max(axis=-1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(axis=-1, keepdims=True)
    mixed: Singles = (weight @ v).transpose(0, 2, 1, 3).reshape(n * length, -1)
    return mixed[place_U]


def _rms_norm(x_UD: Singles, eps: float) -> Singles:
    return x_UD / np.sqrt(np.mean(x_UD * x_UD, axis=1, keepdims=True) + np.float32(eps))


def _unit_norm(x_UNK: Singles, eps: float) -> Singles:
    return x_UNK / np.sqrt(np.einsum("unk,unk->un", x_UNK, x_UNK) + np.float32(eps))[:, :, None]


def load_judge(folder: Path, letters: str) -> JudgeLM:
    """The judge in a folder that `lexinvariant export` wrote, for plaintexts in these letters and the space."""
    from lexinvariant.text import load_vocab

    description = read_description(folder)["model"]
    vocab = load_vocab(folder)
    token_of = {}
    for character in letters + " ":
        tokens = vocab.encode(character)
        if len(tokens) != 1 or vocab.decode(tokens) != character:
            raise UserError(
                f"The judge in {folder} has no token for {character!r}: give one that was trained on text in the "
                "letters of this language."
            )
        token_of[character] = int(tokens[0])
    config, tensors = from_dict(ModelConfig, description), read_tensors(folder)
    shapes = _shapes(config)
    if {name: tensors[name].shape for name in shapes if name in tensors} != shapes:
        raise UserError(f"{folder}/model.safetensors does not fit its config.json: export the judge again.")
    if max(token_of.values()) >= config.vocab_size:
        raise UserError(f"The judge in {folder} has fewer tokens than its vocabulary: export it again.")
    return JudgeLM(config, tensors, token_of)


def _shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Of the tensors that a judge needs, by the axes that their names end in (model/params.py, which loads jax)."""
    size = {"V": config.vocab_size, "D": config.width, "E": config.width, "F": config.hidden}
    size |= {"N": config.n_heads, "W": config.position_buckets}
    one = ("embedding.table_VD", "final_norm_D")
    attention = (
        "attention_norm_D",
        "query_DE",
        "key_DE",
        "value_DE",
        "qk_scale_N",
        "position_WN",
        "smear_N",
        "out_ED",
    )
    layered = (*attention, "mlp_norm_D", "up_DF", "down_FD")
    own = {name: tuple(size[axis] for axis in name.rpartition("_")[2]) for name in one + layered}
    of_layers = {f"layers.{name}": (config.n_layers, *own[name]) for name in layered}
    return {name: own[name] for name in one} | of_layers | {"embedding.scale": (), "embedding.bias": ()}


@cache
def _libraries() -> ThreadpoolController:
    """Looked for once: the libraries that are loaded by then stay the same."""
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Within, a matrix product uses one core, since the texts are dealt out to all: BLAS' own threads wait for each
    other at every product, which takes many times as long where another program is at work too.
    """
    with _BLAS_LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield
