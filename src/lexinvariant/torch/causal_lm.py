"""Standard and regularised models for transformers: what `AutoModelForCausalLM.from_pretrained` gives for a folder that
`lexinvariant export` wrote, and what `save_pretrained` writes for `lexinvariant.load`.

No architecture of transformers has all of ours: normalised queries and keys with a scale a head, T5's bias in a
decoder, smeared keys. So importing `lexinvariant.torch` registers this one, and no code comes with a model.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.folder import MODEL_TYPE, find_model
from lexinvariant.model.tensor_file import read_tensors
from lexinvariant.settings import from_dict
from lexinvariant.torch.lexicon import embed
from lexinvariant.torch.parameters import add_parameters, initialise
from lexinvariant.torch.readout import logits
from lexinvariant.torch.transformer import KeyValues, trunk


class LexinvariantConfig(PreTrainedConfig):
    """The config.json of a model's folder; `model` holds the fields of `lexinvariant.ModelConfig`."""

    model_type = MODEL_TYPE
    keys_to_ignore_at_inference = ("past_key_values",)

    # None, since what is equal to its default is not written, and our own reader wants all of it.
    format: int | None = None
    precision: str | None = None
    model: dict[str, Any] | None = None
    notes: dict[str, Any] | None = None

    @property
    def settings(self) -> ModelConfig:
        if self.model is None:
            return ModelConfig(lexicon=LexiconConfig(kind="learned"))
        return from_dict(ModelConfig, self.model)

    # Names by which transformers asks.
    @property
    def vocab_size(self) -> int:
        return self.settings.vocab_size

    @property
    def hidden_size(self) -> int:
        return self.settings.width

    @property
    def num_hidden_layers(self) -> int:
        return self.settings.n_layers

    @property
    def num_attention_heads(self) -> int:
        return self.settings.n_heads

    @property
    def max_position_embeddings(self) -> int:
        return self.settings.context


class LexinvariantForCausalLM(PreTrainedModel, GenerationMixin):
    """A standard or regularised model. `logits[:, t]` are of the token at t + 1; what a text begins with is predicted
    by a learned vector, which transformers has no place for, so that a loss here leaves out the first token.
    """

    config_class = LexinvariantConfig

    def __init__(self, config: LexinvariantConfig) -> None:
        super().__init__(config)
        self.settings = config.settings
        if self.settings.lexicon.is_lexinvariant:
            raise UserError(
                "This model is lexinvariant, and has no fixed table for AutoModelForCausalLM: load it by "
                "`lexinvariant.torch.load(FOLDER)`."
            )
        if self.settings.readout != "full":
            raise UserError(
                f"This model has the readout {self.settings.readout!r}, and AutoModelForCausalLM needs logits of the "
                "whole vocabulary: load it by `lexinvariant.torch.load(FOLDER)`."
            )
        add_parameters(self, self.settings)
        self.post_init()

    @classmethod
    def from_pretrained(cls, place: Any, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """As that of transformers, which cannot read our matrices in 8 and 6 bits."""
        if config is None:
            config = LexinvariantConfig.from_pretrained(place)
        if config.precision not in ("int8", "int6"):
            return super().from_pretrained(place, *args, config=config, **kwargs)
        tensors = {name: torch.from_numpy(value) for name, value in read_tensors(find_model(place)).items()}
        config.precision = "float32"
        return super().from_pretrained(None, *args, config=config, state_dict=tensors, **kwargs)

    @torch.no_grad()
    def _init_weights(self, module: torch.nn.Module) -> None:
        for name, value in module.named_parameters(recurse=False):
            if not getattr(value, "_is_hf_initialized", False):
                initialise(self.settings, name, value)

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """As that of transformers; without a cache where the model counts, since it then needs all that was read."""
        if self.settings.count_occurrences:
            kwargs.setdefault("use_cache", False)
        return super().generate(*args, **kwargs)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        logits_to_keep: int = 0,
        **of_the_loss: Any,
    ) -> CausalLMOutputWithPast | tuple[torch.Tensor, ...]:
        """Positions are relative, so that `attention_mask` may leave out padding on either side."""
        config, table_VD = self.settings, self.embedding.table_VD
        read_BS = None
        if attention_mask is not None and not bool(attention_mask.all()):
            read_BS = attention_mask.bool()
        tok_BT, back_BT1 = input_ids, None
        if config.count_occurrences:
            if past_key_values is not None:
                raise UserError("This model counts occurrences in all of the text: give use_cache=False.")
            if read_BS is not None:
                # Padding must not be counted: it goes to the end, where nothing looks at it.
                order_BT = torch.argsort(~read_BS, dim=1, stable=True)
                tok_BT, back_BT1 = input_ids.gather(1, order_BT), torch.argsort(order_BT)[:, :, None]
                read_BS = None
        elif use_cache and past_key_values is None:
            past_key_values = KeyValues()
        states: list[torch.Tensor] = [embed(self, config, tok_BT, table_VD, dtype=self.dtype)]
        h_BTD = trunk(self, config, states[0], read_BS=read_BS, cache=past_key_values, states=states)
        states[-1] = h_BTD
        if back_BT1 is not None:
            states = [x_BTD.gather(1, back_BT1.expand_as(x_BTD)) for x_BTD in states]
        logits_BTV = logits(config, table_VD, states[-1][:, -logits_to_keep:])  # 0 keeps them all
        loss = None
        if labels is not None:
            loss = self.loss_function(logits_BTV, labels, vocab_size=config.vocab_size, **of_the_loss)
        output = CausalLMOutputWithPast(
            loss=loss,
            logits=logits_BTV,
            past_key_values=past_key_values,
            hidden_states=tuple(states) if output_hidden_states else None,
        )
        return output if return_dict in (None, True) else output.to_tuple()


AutoConfig.register(MODEL_TYPE, LexinvariantConfig, exist_ok=True)
AutoModelForCausalLM.register(LexinvariantConfig, LexinvariantForCausalLM, exist_ok=True)
