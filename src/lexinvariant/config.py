"""Every setting of a run, in frozen dataclasses: the only place where defaults live.

A choice that the paper leaves open is a field whose first option is the paper-like one. The resolved
configuration is saved as JSON beside each checkpoint and each exported model.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from typing_extensions import Doc

from lexinvariant.checks import check_seed, check_settings, path_as_text
from lexinvariant.errors import UserError
from lexinvariant.settings import with_settings

LexiconKind = Literal["gaussian", "learned", "permuted", "annealed", "mixed", "token-permuted"]


def _a_row_for_every_symbol(vocab_size: int, length: int, readout: str) -> int:
    return vocab_size


def _a_row_for_symbols_that_occur(vocab_size: int, length: int, readout: str) -> int:
    """The readout `seen` scores the others without a row."""
    return min(vocab_size, length) if readout == "seen" else vocab_size


@dataclass(frozen=True)
class LexiconFacts:
    """What the rest of the code has to know of a kind of lexicon; model/lexicon.py has the function that draws it."""

    about: str
    has_table: bool
    """Whether the model has a learned token table."""
    at_evaluation: LexiconKind
    """The kind that a trained model is used with: noise that only regularises training is off."""
    is_lexinvariant: bool
    """Whether a symbol's name carries no information."""
    n_rows: Callable[[int, int, str], int] = _a_row_for_every_symbol
    """Rows of a sequence's table, given (vocab_size, length of the sequence, readout)."""


LEXICON_KINDS: dict[LexiconKind, LexiconFacts] = {
    "gaussian": LexiconFacts(
        about="fresh N(0, I) rows for every sequence, the paper's construction",
        has_table=False,
        at_evaluation="gaussian",
        is_lexinvariant=True,
        n_rows=_a_row_for_symbols_that_occur,
    ),
    "learned": LexiconFacts(
        about="a fixed table, the standard LM",
        has_table=True,
        at_evaluation="learned",
        is_lexinvariant=False,
    ),
    "permuted": LexiconFacts(
        about="a learned table, freshly permuted for every sequence",
        has_table=True,
        at_evaluation="permuted",
        is_lexinvariant=True,
    ),
    "annealed": LexiconFacts(
        about="permutes a share of the symbols that grows during training, and ends as permuted",
        has_table=True,
        at_evaluation="permuted",
        is_lexinvariant=False,
    ),
    "mixed": LexiconFacts(
        about="Gaussian rows for a random share p of the token types, learned rows for the rest; a standard LM "
        "regularised as in the paper's text",
        has_table=True,
        at_evaluation="learned",
        is_lexinvariant=False,
    ),
    "token-permuted": LexiconFacts(
        about="the paper's B_p, a standard LM trained on sequences in which a share p of the tokens is replaced by a "
        "random permutation of the vocabulary",
        has_table=True,
        at_evaluation="learned",
        is_lexinvariant=False,
    ),
}


def check_every_kind(table: Mapping[LexiconKind, Any], name: str) -> None:
    """Called at import: a kind that was forgotten in one place must not be found out in the middle of a run."""
    kinds = set(get_args(LexiconKind))
    if kinds != set(table):
        raise TypeError(
            f"{name} and LexiconKind differ in {sorted(kinds ^ set(table))}: every kind needs an entry."
        )


check_every_kind(LEXICON_KINDS, "LEXICON_KINDS")


@dataclass(frozen=True)
class LexiconConfig:
    """Where a sequence's token table comes from."""

    kind: Annotated[
        LexiconKind, Doc(" ".join(f"{kind}: {facts.about}." for kind, facts in LEXICON_KINDS.items()))
    ] = "gaussian"
    p: float = 0.2
    """mixed and token-permuted: the share of tokens that is randomised."""
    p_anneal_share: float = 0.0
    """mixed and token-permuted: the last part of training, as a share, over which p falls linearly to 0; 0 keeps p
    constant."""
    exempt: tuple[int, ...] = ()
    """mixed and token-permuted: tokens that are never randomised; training adds the tokenizer's special tokens."""
    unit: Literal["position", "type"] = "position"
    """token-permuted: draw B_p anew at every position (the paper's appendix) or once for each token type (its
    text)."""
    permute_targets: bool = True
    """token-permuted: predict the permuted tokens; otherwise the original ones."""
    anneal_from: float = 0.02
    anneal_to: float = 1.1
    """annealed: in a sequence a share U(0, hi) of the symbols is permuted; hi rises linearly from anneal_from to
    this."""
    anneal_share: float = 0.35
    """annealed: the share of training over which hi rises; afterwards every symbol is permuted."""
    gaussian_share: float = 0.0
    """annealed and permuted: the share of training sequences that get fresh N(0, I) rows instead, so that the model
    can be used with either kind of lexicon."""
    affine: Literal["scalar", "channel"] = "scalar"
    """Learned scale and bias of the embedding: one number each, or one per channel."""

    def __post_init__(self) -> None:
        if self.kind not in list(LEXICON_KINDS):  # a list, since what is given may be anything
            raise UserError(
                f"There is no lexicon kind {self.kind!r}: it is one of {', '.join(LEXICON_KINDS)}."
            )
        check_settings(self, "lexicon.")
        for name in ("p", "p_anneal_share", "gaussian_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                what = "a share" if name.endswith("share") else "a probability"
                raise UserError(
                    f"lexicon.{name} is {what}, so {getattr(self, name)} is out of range: give a number from 0 to 1."
                )
        if any(token < 0 for token in self.exempt):
            raise UserError(f"lexicon.exempt has {min(self.exempt)}: a token's id is at least 0.")
        # JSON gives a list, and settings must be hashable.
        object.__setattr__(self, "exempt", tuple(self.exempt))

    @property
    def has_table(self) -> bool:
        return LEXICON_KINDS[self.kind].has_table

    @property
    def at_evaluation(self) -> "LexiconConfig":
        """The lexicon that a trained model is used with."""
        return dataclasses.replace(self, kind=LEXICON_KINDS[self.kind].at_evaluation, gaussian_share=0.0)

    @property
    def is_regulariser(self) -> bool:
        """Whether it is the noise of training alone: the trained model is a standard LM."""
        return self.kind != "learned" and self.at_evaluation.kind == "learned"

    @property
    def is_random(self) -> bool:
        """Whether a trained model is used with lexicons that are drawn, so that more than one draw can be averaged."""
        return self.at_evaluation.kind != "learned"

    @property
    def is_lexinvariant(self) -> bool:
        """Whether a symbol's name carries no information at evaluation."""
        return LEXICON_KINDS[self.at_evaluation.kind].is_lexinvariant


LONGEST_CONTEXT = 1 << 20
"""Tokens: already a plan for more would take gigabytes, and attention a petabyte."""
MOST_LAYERS = 1 << 10
"""Layers that look both ways are compiled one by one, as all are on a GPU."""
LARGEST = (1 << 31) - 1
"""Sizes, steps and counts: devices count in 32 bits."""


@dataclass(frozen=True)
class ModelConfig:
    """A decoder-only Transformer whose token table is an argument."""

    vocab_size: int = 128
    context: int = 512
    """Symbols that are read at a time."""
    n_layers: int = 12
    width: int = 1024
    """Width of the states between the layers."""
    n_heads: int = 8
    head_dim: int = 128
    hidden: int = 4096
    """Width inside each layer's MLP."""
    lexicon: LexiconConfig = field(default_factory=LexiconConfig)
    readout: Literal["full", "seen"] = "full"
    """full: a softmax over the vocabulary, as in the paper. seen: logits for the symbols seen so far and one for all
    others, which share its probability evenly; exact for a lexinvariant model, to which unseen symbols are
    exchangeable."""
    recall_width: int = 0
    """With the readout seen: recall, a second score of each symbol by what the model made of its earlier occurrences,
    in vectors of this width; 0 is off."""
    count_occurrences: bool = False
    """Add to a symbol's row what its occurrences so far say about it: their number, the time since the last one, and
    its rank by frequency."""
    logit_scale: Literal["width", "vocab"] = "width"
    """Logits are multiplied by 1/sqrt(width) or 1/sqrt(vocab_size)."""
    smeared_keys: bool = False
    """Each head may mix the previous position's key into a key, to find "what followed this symbol" in one layer."""
    normalize_qk: bool = True
    """L2-normalise queries and keys, with a learned scale per head."""
    qk_scale_init: float = 1.0
    positions: Literal["bias", "rotary"] = "bias"
    """bias: T5's learned bias for every bucket of distances, as in the paper. rotary: queries and keys are turned by
    angles proportional to their positions."""
    bias_before_scale: bool = True
    """The head's scale also multiplies the position bias."""
    position_buckets: int = 32
    position_max_distance: int = 128
    decipher_head: bool = False
    """A two-layer head that names the true identity of the symbol just read, trained along with the model."""
    decipher_hidden: int = 512
    """Width inside the deciphering head."""
    decipher_next: bool = False
    """With the deciphering head: also name the next symbol, before it is read."""
    hindsight_layers: int = 0
    """With the deciphering head: layers that look at all of the text, so that the head also names every symbol knowing
    what came after it. Prediction does not use them."""
    dropout: float = 0.0
    attention_dropout: float = 0.0
    """Dropout inside attention, only with --model.attention xla."""
    attention: Literal["auto", "xla", "cudnn"] = "auto"
    """auto: cuDNN's fused attention on NVIDIA GPUs in 16-bit, plain XLA elsewhere."""
    norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "context", "n_layers", "width", "n_heads", "head_dim", "hidden")
        others = {"decipher_hidden": 1, "recall_width": 0, "hindsight_layers": 0, "position_buckets": 2}
        check_settings(self, "model.", dict.fromkeys(sizes, 1) | others, LARGEST)
        for name in ("n_layers", "hindsight_layers"):
            if getattr(self, name) > MOST_LAYERS:
                raise UserError(f"model.{name} is {getattr(self, name)}: give at most {MOST_LAYERS}.")
        if self.context > LONGEST_CONTEXT:
            raise UserError(f"model.context is {self.context}: give at most {LONGEST_CONTEXT}.")
        if self.position_max_distance <= self.position_buckets // 2:
            raise UserError(
                f"model.position_max_distance is {self.position_max_distance} and half of the buckets stand for a "
                f"distance each: give a number above {self.position_buckets // 2}."
            )
        for name in ("dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(f"model.{name} is {getattr(self, name)}: give a share from 0 to below 1.")
        if self.norm_eps <= 0:
            raise UserError(f"model.norm_eps is {self.norm_eps}: give a number above 0.")
        if self.n_heads * self.head_dim != self.width:
            raise UserError(
                f"The heads do not divide the width: {self.n_heads} heads x {self.head_dim} is "
                f"{self.n_heads * self.head_dim}, not {self.width}: change --model.n-heads, --model.head-dim "
                "or --model.width."
            )
        if self.attention == "cudnn" and self.attention_dropout > 0:
            raise UserError(
                "cuDNN attention has no dropout inside: set --model.attention xla or --model.attention-dropout 0."
            )
        if any(token >= self.vocab_size for token in self.lexicon.exempt):
            raise UserError(
                f"lexicon.exempt has {max(self.lexicon.exempt)} and the vocabulary {self.vocab_size} tokens, from 0: "
                "leave it out."
            )
        if self.positions == "rotary" and self.head_dim % 2:
            raise UserError("Rotary positions turn pairs of a head's numbers: give an even --model.head-dim.")
        if self.smeared_keys and self.n_heads % 2:
            raise UserError("Smeared keys start half of the heads smeared: give an even --model.n-heads.")

    @property
    def has_recall(self) -> bool:
        return self.readout == "seen" and self.recall_width > 0

    @property
    def has_hindsight(self) -> bool:
        return self.decipher_head and self.hindsight_layers > 0

    @property
    def n_trained_layers(self) -> int:
        """All that training has to pay for."""
        return self.n_layers + (self.hindsight_layers if self.has_hindsight else 0)

    @property
    def n_matmul_parameters(self) -> int:
        """Parameters of the layers' matrices: the N of the FLOP count, without any token table."""
        return self.n_trained_layers * (4 * self.width * self.width + 2 * self.width * self.hidden)

    def flop_per_token(self, length: int) -> int:
        """Training FLOP a token, 6N + 12*L*H*hd*T: attention counted in full, the readout not at all."""
        return 6 * self.n_matmul_parameters + 12 * self.n_trained_layers * self.width * length


@dataclass(frozen=True)
class OptimizerConfig:
    """How parameters are updated."""

    name: Literal["adafactor", "adamw", "muon"] = "adafactor"
    """adafactor: exactly the paper's (beta1 0.9, decay 0.8, clip 1, parameter scale, no weight decay). muon:
    orthogonalised momentum for the layers' matrices, AdamW for everything else."""
    rate: float = 0.01
    """The peak learning rate."""
    final_rate_share: float = 0.1
    """The final rate, as a share of the peak."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How the rate falls after the warm-up."""
    warmup_steps: int = 1000
    """Steps over which the rate rises to its peak."""
    beta1: float = 0.9
    beta2: float = 0.95
    muon_beta: float = 0.95
    """muon: decay of the momentum; beta1 and beta2 then apply to the parameters that AdamW trains."""
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    """Clip the gradient's global norm; 0 is off."""

    def __post_init__(self) -> None:
        least = dict.fromkeys(("warmup_steps", "rate", "final_rate_share", "weight_decay", "clip_norm"), 0)
        check_settings(self, "optimizer.", least, LARGEST)
        for name in ("beta1", "beta2", "muon_beta"):  # with others means of the past would grow for ever
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(
                    f"optimizer.{name} is {getattr(self, name)}: give a number from 0 to below 1."
                )


@dataclass(frozen=True)
class DataConfig:
    """What is read, and how it is cut into sequences."""

    path: str = ""
    """A folder made by `lexinvariant data prepare`, or `markov12`, the built-in small language."""
    packed: bool = False
    """Pack several documents into a sequence. Off, as in the paper, each sequence is a piece of one document, padded
    if it is short."""
    weights: str = ""
    """How often each kind of text is read, by tag: code=2,maths=1.5,log=0 reads all code twice per epoch, maths one
    and a half times and logs never; other tags have weight 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", path_as_text(self.path))
        check_settings(self, "data.")


@dataclass(frozen=True)
class ShardingConfig:
    """How many devices share the work; 0: all that the other axis leaves."""

    data: int = 0
    """Number of parts the batch is split into, with parameters replicated."""
    fsdp: int = 1
    """Number of parts that both the batch and the parameters are split into."""

    def __post_init__(self) -> None:
        check_settings(self, "sharding.", {"data": 0, "fsdp": 0}, LARGEST)


@dataclass(frozen=True)
class RunConfig:
    """How often a run evaluates, logs and saves."""

    eval_every: int = 1000
    """Steps between two measurements on the validation split."""
    eval_sequences: int = 256
    """Sequences in each of these measurements on the validation split."""
    save_every: int = 1000
    """Steps between two checkpoints."""
    keep_last: int = 2
    """How many of the newest checkpoints are kept."""
    keep_best: int = 1
    """How many checkpoints with the lowest held-out loss are kept besides."""
    log_every: int = 10
    """Steps between two records of the training loss."""
    stop_after_minutes: float = 0.0
    """Save and stop after this long; the same command continues. 0: never."""
    tensorboard: bool = True
    """Also write curves for TensorBoard into the run's folder."""
    spike_factor: float = 2.0
    """If the training loss is this many times the usual one (the median of the 32 steps before) and larger by a nat,
    go back to the newest checkpoint and leave the batch out; 0 is off."""

    def __post_init__(self) -> None:
        counts = ("eval_every", "eval_sequences", "save_every", "keep_last", "log_every")
        least = dict.fromkeys(counts, 1) | {"keep_best": 0, "stop_after_minutes": 0}
        check_settings(self, "run.", least, LARGEST)
        if self.spike_factor != 0 and self.spike_factor <= 1:
            raise UserError(f"run.spike_factor is {self.spike_factor}: give a number above 1, or 0 for none.")


@dataclass(frozen=True)
class TrainConfig:
    """A whole training run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    sharding: ShardingConfig = field(default_factory=ShardingConfig)
    run: RunConfig = field(default_factory=RunConfig)
    steps: int = 250_000
    """Updates of the parameters; the schedule of the rate spans all of them."""
    batch_size: int = 64
    """Sequences per step, on all devices together."""
    accumulate: int = 1
    """Gradient accumulation: process the batch in this many parts."""
    decipher_weight: float = 0.3
    """Weight of the deciphering head's cross-entropy, where the model has the head."""
    decipher_every: int = 1
    """Train the deciphering head on one position in this many, different ones at every step: with a large vocabulary
    the head costs as much as the model."""
    hindsight_apart: bool = False
    """Stop the gradient from hindsight layers into the trunk, which then predicts a little better and names a little
    less well."""
    init: str = ""
    """Start from the weights of an exported model: its folder, `bundled`, or OWNER/NAME on the Hugging Face Hub."""
    seed: int = 0
    """The same seed gives the same initial weights, order of the text and lexicons."""
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    """Type of the arithmetic; parameters and their updates are float32."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "init", path_as_text(self.init))
        check_settings(self, "", {"batch_size": 1, "steps": 1, "decipher_weight": 0}, LARGEST)
        check_seed(self.seed)
        if self.accumulate < 1 or self.batch_size % self.accumulate:
            raise UserError(
                f"A batch of {self.batch_size} cannot be accumulated in {self.accumulate} equal parts: "
                "choose --accumulate so that it divides --batch-size."
            )
        if self.decipher_every < 1 or self.model.context % self.decipher_every:
            raise UserError(
                f"A context of {self.model.context} has no equal shares of one position in {self.decipher_every}: "
                "choose --decipher-every so that it divides --model.context."
            )

    @property
    def tokens_per_step(self) -> int:
        return self.batch_size * self.model.context

    def changed(self, settings: Mapping[str, Any]) -> "TrainConfig":
        """A copy with some settings changed, named by dotted paths: {"data.path": "data/stdlib", "steps": 300}."""
        return with_settings(self, settings)
