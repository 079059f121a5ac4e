"""Starting from an exported model's weights instead of random ones: a run that goes on where another has ended."""

from dataclasses import replace

from lexinvariant.config import ModelConfig, TrainConfig
from lexinvariant.errors import UserError
from lexinvariant.model import params as model_params
from lexinvariant.model.folder import find_model, read_description
from lexinvariant.model.params import Params
from lexinvariant.model.weights import load_weights
from lexinvariant.settings import from_dict
from lexinvariant.text import Vocab, load_vocab


def with_settings_of(config: TrainConfig, place: str) -> TrainConfig:
    """The run with the settings of an exported model; the model's curriculum is over and does not begin anew."""
    model = from_dict(ModelConfig, read_description(find_model(place))["model"])
    lexicon = replace(model.lexicon, kind=model.lexicon.at_evaluation.kind)
    return replace(config, model=replace(model, lexicon=lexicon), init=place)


def check_vocabulary(place: str, vocab: Vocab, data: str) -> None:
    """The numbers of tokens mean nothing to a model of another vocabulary."""
    own = load_vocab(find_model(place))
    if (own.name, own.size) != (vocab.name, vocab.size):
        raise UserError(
            f"{place} reads the vocabulary {own.name} and {data} was prepared with {vocab.name}: prepare the text with "
            f"--vocab {own.name if place == 'bundled' else find_model(place)}, or start without --init."
        )


def initial_params(config: TrainConfig) -> Params:
    """What a run starts from: random weights, or those of the model that `init` names."""
    if not config.init:
        return model_params.init(config.model, config.seed)
    weights = load_weights(config.init)
    ours, theirs = config.model.lexicon.is_lexinvariant, weights.config.lexicon.is_lexinvariant
    if ours != theirs:
        kinds = ("standard", "lexinvariant")
        raise UserError(
            f"{config.init} is a {kinds[theirs]} model and the run trains a {kinds[ours]} one: "
            + ("leave out --standard." if theirs else "start from a lexinvariant model.")
        )
    stored = dict(model_params.flatten_named(weights.params))
    for name, spec in model_params.flatten_named(model_params.specs(config.model)):
        if name not in stored or stored[name].shape != spec.shape:
            has = str(stored[name].shape) if name in stored else "missing"
            raise UserError(
                f"The weights of {config.init} do not fit the run's settings ({name}: {has}, not {spec.shape}): "
                "leave out --model settings that change its shape."
            )
    return weights.params
