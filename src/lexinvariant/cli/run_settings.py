"""The settings of a run, from a preset and options: what `train` trains is what `plan` plans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import tyro

from lexinvariant import presets
from lexinvariant.config import LexiconConfig, TrainConfig
from lexinvariant.errors import UserError


@dataclass(frozen=True)
class RunSettings:
    """Options that say what is trained."""

    standard: bool = False
    """Train the preset's standard twin, with a learned table instead."""
    regularise: Literal["mixed", "token-permuted"] | None = None
    """Train the standard twin regularised towards lexinvariance. mixed: in each sequence a share p of the token types
    has random rows. token-permuted: a share p of the tokens is replaced by a random permutation of the vocabulary.
    Short for --standard --model.lexicon.kind; p, p-anneal-share, unit and permute-targets of --model.lexicon are its
    other settings."""
    p: float | None = None
    """With --regularise: the share of tokens. Short for --model.lexicon.p; the paper's is 0.2."""
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)


class Words(NamedTuple):
    """The command line: a preset, and the options after it before they are read."""

    preset: str
    options: list[str]

    def name(self, option: str) -> bool:
        """Whether an option is given, be it with the value that it has anyway."""
        return any(word.partition("=")[0].replace("_", "-") == option for word in self.options)


def words_of(argv: Sequence[str]) -> Words:
    """Where weights are named and no preset, the preset that goes on from weights is meant."""
    whole = Words("finetune", list(argv))
    return whole if argv[0].startswith("-") and whole.name("--init") else Words(argv[0], list(argv[1:]))


def run_config(words: Words, given: RunSettings, read: Callable[[RunSettings], RunSettings]) -> TrainConfig:
    """All settings of the run. `given` are the options as read with the preset's defaults, and `read` reads them with
    others: with --init the defaults are the settings of a model, whose description is read here. That loads jax.
    """
    _check_agreement(words, given)
    if not given.config.init:
        return _as_asked(given)
    weights = _settings_of_weights(words, given)
    config = _as_asked(read(RunSettings(config=weights)))
    # Weights themselves are compared when they are loaded, which a plan never does.
    if weights.model.lexicon.is_lexinvariant and not config.model.lexicon.is_lexinvariant:
        asked = (
            "--regularise" if given.regularise else "--standard" if given.standard else "--model.lexicon.kind"
        )
        raise UserError(
            f"{config.init} is a lexinvariant model and the run trains a standard one: leave out {asked}."
        )
    return config


def _as_asked(given: RunSettings) -> TrainConfig:
    config = given.config
    if given.regularise is not None:
        config = config.changed({"model.lexicon.kind": given.regularise})
    if given.p is not None:
        if not config.model.lexicon.is_regulariser:
            raise UserError("--p is the share of tokens that --regularise randomises: give --regularise too.")
        config = config.changed({"model.lexicon.p": given.p})
    if given.standard or given.regularise is not None:
        config = presets.as_standard(config)
    return config


def _check_agreement(words: Words, given: RunSettings) -> None:
    """Of two options that say different things, one would be passed over in silence."""
    lexicon = given.config.model.lexicon
    if words.name("--model.lexicon.p") and given.p not in (None, lexicon.p):
        raise UserError(
            f"--p {given.p} is short for --model.lexicon.p, which is {lexicon.p}: give one of them."
        )
    if given.regularise is None:
        return
    if words.name("--model.lexicon.kind") and lexicon.kind != given.regularise:
        raise UserError(
            f"--regularise {given.regularise} trains another lexicon than --model.lexicon.kind {lexicon.kind}: give "
            "one of them."
        )
    if words.name("--no-standard") and not given.standard:
        raise UserError("--regularise trains a standard model, and --no-standard none: give one of them.")


def _settings_of_weights(words: Words, given: RunSettings) -> TrainConfig:
    """The preset with the settings of the model that the run starts from: options are changes to these."""
    from lexinvariant.model.folder import find_model, read_description
    from lexinvariant.training.init import with_settings_of  # both not for --help, and this one loads jax

    init = given.config.init
    config = with_settings_of(presets.preset(words.preset), init)
    if config.model.lexicon.is_lexinvariant or given.standard or given.regularise:
        return config
    trained_as = LexiconConfig(**read_description(find_model(init))["model"]["lexicon"])
    if trained_as.is_regulariser:
        raise UserError(
            f"{init} is a standard model that was regularised: give --regularise {trained_as.kind} to go on so, or "
            "--standard to go on without."
        )
    raise UserError(
        f"{init} is a standard model: give --standard to continue it as one, or start from a lexinvariant model."
    )
