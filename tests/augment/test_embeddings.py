"""Random embeddings in models of Transformers are exactly those of a table for each sequence."""

from typing import Any

import pytest

from lexinvariant import augment
from lexinvariant.errors import UserError

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'lexinvariant[torch]'")
transformers = pytest.importorskip(
    "transformers", reason="needs Transformers: pip install 'lexinvariant[torch]'"
)

pytestmark = pytest.mark.usefixtures("one_thread_and_a_seed")
V, D = 40, 16
SMALL = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 32,
    "pad_token_id": None,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def llama(tied: bool = True) -> Any:
    config = transformers.LlamaConfig(**SMALL, tie_word_embeddings=tied)
    return transformers.LlamaForCausalLM(config).double().train()


def with_bias() -> Any:
    options = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attention_dropout": 0.0}
    model = transformers.PhiForCausalLM(transformers.PhiConfig(**SMALL, **options)).double().train()
    torch.nn.init.normal_(model.lm_head.bias)
    return model


def tokens(n: int = 3) -> Any:
    return torch.randint(V, (n, 9))


def naive_logits(model: Any, tok: Any, drawn: Any) -> Any:
    """One sequence after the other, each with a whole table of its own at both ends."""

    def table(weight: Any, sequence: int) -> Any:
        rows = list(weight)
        for type_ in range(V):
            if drawn.chosen_BV[sequence, type_]:
                row = drawn.unit_VD[(type_ + int(drawn.offset_B[sequence])) % V].to(weight.dtype)
                rows[type_] = row * weight[type_].detach().norm() / row.norm()
        return torch.stack(rows)

    ends = {
        name: weight
        for name, weight in model.named_parameters(remove_duplicate=False)
        if name.endswith(("embed_tokens.weight", "lm_head.weight"))
    }
    assert len(ends) == 2
    return torch.cat(
        [
            torch.func.functional_call(
                model,
                {name: table(weight, b) for name, weight in ends.items()},
                (tok[b : b + 1],),
                tie_weights=False,
            ).logits
            for b in range(len(tok))
        ]
    )


@pytest.mark.parametrize(
    "make", [llama, lambda: llama(tied=False), with_bias], ids=["tied", "untied", "untied with a bias"]
)
@pytest.mark.parametrize("p", [0.4, 1.0])
def test_logits_and_gradients_are_those_of_a_table_for_each_sequence(make: Any, p: float) -> None:
    model, tok, weights = make(), tokens(), torch.randn(3, 9, V, dtype=torch.float64)
    randomised = augment.randomise_embeddings(model, p)
    torch.manual_seed(5)
    logits = model(tok).logits
    (logits * weights).sum().backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}

    torch.manual_seed(5)
    drawn = randomised.draw(len(tok))
    randomised.remove()
    model.zero_grad()
    expected = naive_logits(model, tok, drawn)
    (expected * weights).sum().backward()
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-6)
    for name, weight in model.named_parameters():
        exact = (
            torch.zeros_like(weight) if weight.grad is None else weight.grad
        )  # of a table that is not used at all
        torch.testing.assert_close(gradients[name], exact, rtol=0, atol=1e-5, msg=name)
    assert any(gradient.abs().max() > 0.1 for gradient in gradients.values())


def test_tables_are_bernoulli_choices_of_unit_gaussians_that_differ_between_sequences() -> None:
    drawn = augment.randomise_embeddings(llama(), 0.3, special_ids=(0, 1)).draw(2000)
    assert not drawn.chosen_BV[:, :2].any()
    assert (drawn.chosen_BV[:, 2:].float().mean(0) - 0.3).abs().max() < 0.06
    torch.testing.assert_close(drawn.unit_VD.norm(dim=1), torch.ones(V))
    row_BD = drawn.directions(torch.arange(2000), torch.full((2000,), 7))
    assert len(row_BD.unique(dim=0)) == V
    one = drawn.directions(0, torch.arange(V))
    assert len(one.unique(dim=0)) == V


def test_random_inputs_have_the_norm_of_what_the_model_embeds_with() -> None:
    gemma = transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(**SMALL, layer_types=["full_attention"], query_pre_attn_scalar=8)
    ).train()
    for model in (llama(), gemma):  # the second scales its rows
        embedding, tok = model.get_input_embeddings(), tokens()
        plain = embedding(tok)
        with augment.randomise_embeddings(model, 1.0):
            random = embedding(tok)
        assert (random - plain).norm(dim=2).min() > 0
        torch.testing.assert_close(random.norm(dim=2), plain.norm(dim=2), rtol=1e-4, atol=0)


def test_equal_tokens_of_a_sequence_share_a_row_and_special_ones_keep_theirs() -> None:
    model, tok = llama(), torch.tensor([[3, 7, 3, 0, 3], [3, 3, 5, 3, 0]])
    embedding = model.get_input_embeddings()
    plain = embedding(tok)
    with augment.randomise_embeddings(model, 1.0, special_ids=(0,)):
        random = embedding(tok)
    assert (random[0, 0] == random[0, 2]).all()
    assert (random[0, 0] != random[0, 1]).any()
    assert (random[0, 0] != random[1, 0]).any()
    assert (random[tok == 0] == plain[tok == 0]).all()


@pytest.mark.parametrize(
    ("special_ids", "sentence"),
    [
        (None, "special_ids is None: give a list"),
        (torch.tensor(0), r"special_ids is tensor\(0\): give a list"),
        ([None], "integers, and not None: .* leave out"),
        (["a"], "integers, and not 'a': give ids"),
    ],
)
def test_special_ids_that_are_none_are_refused(special_ids: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        augment.randomise_embeddings(llama(), special_ids=special_ids)


def test_special_ids_may_be_a_tensor_or_come_one_by_one() -> None:
    for ids in (torch.tensor([0, 3]), (i for i in (0, 3))):
        with augment.randomise_embeddings(llama(), 1.0, special_ids=ids) as randomised:
            chosen = randomised.draw(1).chosen_BV[0]
        assert (~chosen).nonzero().flatten().tolist() == [0, 3]


def test_it_is_off_in_evaluation_at_p_0_and_after_removal() -> None:
    model, tok = llama(), tokens()
    plain = model(tok).logits
    with augment.randomise_embeddings(model, 0.5) as randomised:
        assert (model(tok).logits != plain).any()
        model.eval()
        assert (model(tok).logits == plain).all()
        model.train()
        randomised.p = 0.0
        assert (model(tok).logits == plain).all()
        randomised.p = 0.5
        assert (model(tok).logits != plain).any()
        randomised.p = torch.tensor(1.0)  # a schedule may return an array
        assert (model(tok).logits != plain).any()
        randomised.p = 2.0
        with pytest.raises(UserError, match=r"between 0 and 1, and not 2\.0"):
            model(tok)
    assert (model(tok).logits == plain).all()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_second_call_takes_the_place_of_the_first() -> None:
    model, tok = llama(), tokens()
    plain = model(tok).logits
    first = augment.randomise_embeddings(model, 0.5)
    second = augment.randomise_embeddings(model, 0.0)
    assert (model(tok).logits == plain).all()
    first.remove()
    second.p = 0.5
    assert (model(tok).logits != plain).any()
    second.remove()
    assert (model(tok).logits == plain).all()


def test_outputs_may_keep_their_rows() -> None:
    model, tok = llama(), tokens()
    states = {}
    model.lm_head.register_forward_pre_hook(lambda _, args: states.update(h=args[0]))
    with augment.randomise_embeddings(model, 0.5, outputs=False):
        logits = model(tok).logits
    torch.testing.assert_close(logits, states["h"] @ model.lm_head.weight.T)


def test_logits_of_other_sequences_are_refused() -> None:
    model = llama()
    with augment.randomise_embeddings(model, 0.5):
        model.get_input_embeddings()(tokens(3))
        with pytest.raises(UserError, match=r"\(2, 5, 40\) are not .* of the 3 sequences"):
            model(inputs_embeds=torch.zeros(2, 5, D, dtype=torch.float64))


def test_embeddings_that_come_from_elsewhere_are_read_out_as_always() -> None:
    model, x_BTD = llama(), torch.randn(3, 9, D, dtype=torch.float64)
    plain = model(inputs_embeds=x_BTD).logits
    with augment.randomise_embeddings(model, 0.5):
        for _ in range(2):
            model(tokens(3))
            assert (model(inputs_embeds=x_BTD).logits == plain).all()
            assert (model(inputs_embeds=x_BTD).logits == plain).all()


def test_tokens_that_were_embedded_before_the_model_is_called_are_read_out_with_their_tables() -> None:
    model, tok = llama(), tokens()  # as PEFT does, which puts prompts before them
    with augment.randomise_embeddings(model, 0.5):
        torch.manual_seed(5)
        expected = model(tok).logits
        torch.manual_seed(5)
        logits = model(inputs_embeds=model.get_input_embeddings()(tok)).logits
    torch.testing.assert_close(logits, expected)


def test_a_pass_may_be_read_out_in_parts() -> None:
    model, tok = llama(), tokens()
    with augment.randomise_embeddings(model, 0.5):
        torch.manual_seed(5)
        expected = model(tok).logits
        torch.manual_seed(5)
        h_BTD = model.model(tok).last_hidden_state
        parts = [
            torch.utils.checkpoint.checkpoint(model.lm_head, part_BTD, use_reentrant=False)
            for part_BTD in h_BTD.split(4, dim=1)
        ]
        gradients = [gradients_of(model, logits) for logits in (torch.cat(parts, dim=1), expected)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("of", ["layers", "the whole model"])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradients_are_the_same_with_checkpoints(of: str, use_reentrant: bool) -> None:
    model, tok = llama(), tokens()
    with augment.randomise_embeddings(model, 0.5):
        torch.manual_seed(5)
        expected = gradients_of(model, model(tok).logits)
        torch.manual_seed(5)
        if of == "layers":
            model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
            logits = model(tok).logits
        else:
            unused = torch.zeros(
                (), requires_grad=True
            )  # without it the reentrant kind has nothing to derive by
            logits = torch.utils.checkpoint.checkpoint(
                lambda tok, _: model(tok).logits, tok, unused, use_reentrant=use_reentrant
            )
        gradients = gradients_of(model, logits)
    torch.testing.assert_close(gradients, expected)


def gradients_of(model: Any, logits: Any) -> dict[str, Any]:
    """Of a loss that weighs every logit differently."""
    model.zero_grad()
    (logits * torch.arange(logits.numel()).view(logits.shape).sin()).sum().backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


def test_mixed_precision_trains() -> None:
    model, tok = llama().float(), tokens()
    with augment.randomise_embeddings(model, 0.5), torch.autocast("cpu", torch.bfloat16):
        loss = model(input_ids=tok, labels=tok).loss
    loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())
    assert all(weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="between 0 and 1, and not nan"):
        augment.randomise_embeddings(llama(), float("nan"))
    with pytest.raises(UserError, match="special id 40 does not fit the model, which has 40"):
        augment.randomise_embeddings(llama(), special_ids=(V,))
    with pytest.raises(UserError, match="All ids"):
        augment.randomise_embeddings(llama(), special_ids=range(V))
    with pytest.raises(UserError, match="Linear is not a Transformers model"):
        augment.randomise_embeddings(torch.nn.Linear(2, 2))
    with pytest.raises(UserError, match="LlamaModel has no output embeddings: use outputs=False"):
        augment.randomise_embeddings(llama().model)
    narrow = llama(tied=False)
    narrow.lm_head = torch.nn.Linear(D, V - 1)
    with pytest.raises(UserError, match=r"\(39, 16\) and the input embeddings \(40, 16\)"):
        augment.randomise_embeddings(narrow)
    t5 = transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=V, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    )
    with pytest.raises(UserError, match="encoder-decoder"):
        augment.randomise_embeddings(t5)
