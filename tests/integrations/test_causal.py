"""Causal models that compute any loss without all their logits."""

import copy
import inspect
import pickle

import pytest
import torch
from frameworks import need

import lossforge
from lossforge.integrations.huggingface import loss_func, use_linear_loss

need("transformers")

import transformers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SIZES = {
    "vocab_size": 23,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}
SHORT = {"vocab_size": 23, "n_embd": 16, "n_layer": 1, "n_head": 2}
ACCEPTED = {
    "llama": lambda: make("Llama", **SIZES),
    "tied": lambda: make("Llama", tie_word_embeddings=True, **SIZES),
    "qwen": lambda: make("Qwen2", **SIZES),
    "phi": lambda: make("Phi", **SIZES),  # its last layer has a bias
    "gpt2": lambda: make("GPT2", "LMHeadModel", **SHORT),
    "gptj": lambda: make("GPTJ", rotary_dim=4, **SHORT),
    "opt": lambda: make("OPT", ffn_dim=32, word_embed_proj_dim=16, **SIZES),
}
REFUSED = {
    "cap": lambda: make("Gemma2", head_dim=8, **SIZES),
    "scale": lambda: make("Granite", logits_scaling=8.0, **SIZES),
    "layers": lambda: make("Bert", "LMHeadModel", is_decoder=True, **SIZES),
    "encoder-decoder": lambda: make(
        "T5", "ForConditionalGeneration", vocab_size=23, d_model=16, d_ff=32, num_layers=1
    ),
    "no-head": lambda: make("Llama", "Model", **SIZES),
}


def make(name, kind="ForCausalLM", **sizes):
    """A tiny model with random weights, in float64 and without dropout."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes)
    return getattr(transformers, name + kind)(config).double().eval()


def batch():
    words = torch.randint(3, 23, (3, 7))
    labels = words.clone()
    labels[0, :3] = -100
    return {"input_ids": words, "labels": labels}


def learnt(value, model):
    """The gradients of all parameters."""
    model.zero_grad()
    value.backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("loss", [lossforge.CE(), lossforge.BEF()], ids=["CE", "BEF"])
@pytest.mark.parametrize("model", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_loss_and_gradients_are_those_of_all_logits(model, loss):
    model, given = model(), batch()
    outputs = model(input_ids=given["input_ids"])
    expected = loss_func(loss, shift=True)(outputs, given["labels"])
    gradients = learnt(expected, model)
    logits = outputs.logits
    use_linear_loss(model, loss, chunk=4)
    found = model(**given)
    assert found.logits is None
    torch.testing.assert_close(found.loss, expected)
    for name, gradient in learnt(found.loss, model).items():
        torch.testing.assert_close(gradient, gradients[name])
    assert torch.equal(model(input_ids=given["input_ids"]).logits, logits)


def test_the_sum_is_divided_by_the_items():
    model, given = ACCEPTED["llama"](), batch()
    use_linear_loss(model, lossforge.BEF(weight=torch.rand(23).float()))
    mean, part = model(**given).loss, model(**given, num_items_in_batch=32).loss
    torch.testing.assert_close(part, mean * 16 / 32)  # of 18 labels two are ignored
    assert torch.equal(model(**given, return_dict=False)[0], mean)


def test_text_is_generated_as_before():
    model = ACCEPTED["llama"]()
    words = torch.randint(3, 23, (1, 3))
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(words, **options)
    use_linear_loss(model, lossforge.BEF())
    assert torch.equal(model.generate(words, **options), expected)


def test_another_loss_replaces_the_first():
    model, given = ACCEPTED["llama"](), batch()
    own = model(**given).loss
    use_linear_loss(model, lossforge.BEF())
    robust = model(**given).loss
    use_linear_loss(model, lossforge.CE())
    assert abs(model(**given).loss - own) < 1e-5 < abs(robust - own)


def test_neither_random_numbers_nor_modes_are_changed():
    model = ACCEPTED["gpt2"]().train()
    takes = inspect.signature(model.forward)
    state = torch.get_rng_state()
    use_linear_loss(model, lossforge.BEF())
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert inspect.signature(model.forward) == takes  # by which Trainer chooses columns


def test_copies_keep_the_loss_and_what_is_loaded_has_its_own():
    model, given = ACCEPTED["llama"](), batch()
    own = model(**given).loss
    use_linear_loss(model, lossforge.BEF())
    again = copy.deepcopy(model)
    expected, logits = model(**given).loss, model(given["input_ids"]).logits
    assert torch.equal(again(**given).loss, expected)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(again(**given).loss, expected)
    assert torch.equal(again(given["input_ids"]).logits, logits)
    assert torch.equal(pickle.loads(pickle.dumps(again))(**given).loss, own)


@pytest.mark.parametrize("model", REFUSED.values(), ids=REFUSED.keys())
def test_models_that_do_more_to_their_logits_are_refused(model):
    model = model()
    before = model.forward
    with pytest.raises(ValueError, match="model must"):
        use_linear_loss(model, lossforge.BEF())
    assert model.forward == before
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_labels_that_trainer_would_not_count_by_are_refused():
    with pytest.raises(ValueError, match="ignore_index must be -100"):
        use_linear_loss(ACCEPTED["llama"](), lossforge.BEF(ignore_index=0))
