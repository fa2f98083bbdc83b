"""GPT: Hugging Face's GPT-2 gives the same numbers, folders go both ways, and what is not honoured is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from lemmata.transformers.gpt import GPT
from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

SMALL = {"vocab_size": 40, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 24}
TEXT = torch.randint(40, (3, 11), generator=torch.Generator().manual_seed(1))
# Each field that is honoured, at a value that is not its usual one.
SETTINGS = [
    {},
    {"n_layer": 1, "n_embd": 768, "n_head": 12},
    {"n_head": 1},
    {"n_positions": 11},
    {"n_inner": 24},
    {"activation_function": "relu"},
    {"activation_function": "gelu"},
    {"activation_function": "gelu_pytorch_tanh"},
    {"activation_function": "silu"},
    {"activation_function": "tanh"},
    {"layer_norm_epsilon": 0.3},
    {"vocab_size": 97},
    {"resid_pdrop": 0.4, "attn_pdrop": 0.3, "embd_pdrop": 0.2},
]


def theirs(dtype=torch.float64, kind=GPT2LMHeadModel, **changed):
    """A model of theirs with weights that are far from their small initial ones."""
    torch.manual_seed(0)
    model = kind(GPT2Config(**(SMALL | changed))).to(dtype).eval()
    for values in model.parameters():
        values.data += 0.2 * torch.randn_like(values)
    return model.requires_grad_(False)


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_logits_are_those_of_hugging_face(changed, dtype, within, tmp_path):
    model = theirs(dtype, **changed)
    model.save_pretrained(tmp_path)
    ours = GPT.from_pretrained(tmp_path, dtype=dtype)
    wanted = model(TEXT).logits
    torch.testing.assert_close(ours(TEXT), wanted, rtol=0, atol=within * max(1.0, wanted.abs().max().item()))


def test_padding_is_not_looked_at(tmp_path):
    model, mask = theirs(), torch.ones(3, 11, dtype=torch.bool)
    mask[1, 7:], mask[2, 1:] = False, False
    model.save_pretrained(tmp_path)
    ours = GPT.from_pretrained(tmp_path, dtype=torch.float64)(TEXT, mask)
    wanted = model(TEXT, attention_mask=mask.long()).logits
    torch.testing.assert_close(ours[mask], wanted[mask], rtol=0, atol=1e-10)


def test_what_is_written_is_read_by_hugging_face(tmp_path):
    torch.manual_seed(0)
    rates = {"dropout": 0.2, "attention_dropout": 0.3, "embedding_dropout": 0.4}
    ours = GPT(40, 16, 2, 4, 24, hidden=20, activation="relu", eps=1e-3, **rates).double()
    ours.eval().save_pretrained(tmp_path)
    again = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float64).eval()
    assert (again.config.resid_pdrop, again.config.embd_pdrop, again.config.attn_pdrop) == (0.2, 0.4, 0.3)
    torch.testing.assert_close(again(TEXT).logits, ours(TEXT), rtol=0, atol=1e-10)
    back = GPT.from_pretrained(tmp_path, dtype=torch.float64)
    assert back.config == ours.config
    assert all(values.equal(back.state_dict()[name]) for name, values in ours.state_dict().items())


def test_a_folder_without_the_head_is_read_too(tmp_path):
    theirs(kind=GPT2Model).save_pretrained(tmp_path / "body")
    theirs(kind=GPT2LMHeadModel).save_pretrained(tmp_path / "all")
    one, two = (GPT.from_pretrained(tmp_path / name) for name in ("body", "all"))
    assert one(TEXT).shape == two(TEXT).shape == (3, 11, 40)


def test_a_file_of_half_precision_comes_in_the_precision_that_is_asked_for(tmp_path):
    theirs(torch.bfloat16).save_pretrained(tmp_path)
    usual, half = GPT.from_pretrained(tmp_path), GPT.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert {values.dtype for values in usual.parameters()} == {torch.float32}
    assert {values.dtype for values in half.parameters()} == {torch.bfloat16}
    assert half.tokens.weight.float().equal(usual.tokens.weight)
    assert not usual.training


def test_fields_that_an_old_file_lacks_have_the_published_values(tmp_path):
    theirs(n_embd=768, n_head=12, n_layer=1).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    kept = {name: config[name] for name in ("model_type", "vocab_size", "n_layer", "n_positions")}
    (tmp_path / "config.json").write_text(json.dumps(kept))
    found = GPT.from_pretrained(tmp_path).config
    assert (found.width, found.heads, found.activation, found.eps) == (768, 12, "gelu_tanh", 1e-5)
    assert (found.dropout, found.attention_dropout, found.embedding_dropout) == (0.1, 0.1, 0.1)


@pytest.mark.parametrize(
    "fields",
    [
        {"n_special": 0, "predict_special_tokens": True, "n_ctx": 24},  # gpt2-medium
        {"_num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}},  # distilgpt2
        {"output_past": True, "use_bfloat16": False, "num_labels": 1, "is_decoder": False, "pruned_heads": {}},  # 2019
        {"do_sample": False, "max_length": 50, "num_beams": 1, "temperature": 1.0, "xla_device": None},  # 2020
        {"_attn_implementation_autoset": True, "is_decoder": True},
    ],
    ids=str,
)
def test_fields_of_published_folders_that_change_nothing(fields, tmp_path):
    model = theirs()
    model.save_pretrained(tmp_path)
    changed_config(tmp_path, **fields)
    ours = GPT.from_pretrained(tmp_path, dtype=torch.float64)
    torch.testing.assert_close(ours(TEXT), model(TEXT).logits, rtol=0, atol=1e-9)


def test_each_dropout_of_a_folder_is_the_one_that_it_names(tmp_path):
    theirs(torch.float32, resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.5).save_pretrained(tmp_path)
    ours = GPT.from_pretrained(tmp_path).train()
    wanted = GPT2LMHeadModel.from_pretrained(tmp_path).train()
    torch.manual_seed(0)
    found = ours(TEXT)
    torch.manual_seed(0)
    torch.testing.assert_close(found, wanted(TEXT).logits, rtol=1e-4, atol=1e-4)  # the same values are left out
    assert GPT(9, 8, 1, 1, dropout=0.3).embedding_dropout == 0.3
    with pytest.raises(ValueError, match="embedding_dropout"):
        GPT(9, 8, 1, 1, embedding_dropout=1.5)


# --- What is refused ---


def changed_config(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
        ("reorder_and_upcast_attn", True),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
        ("activation_function", "mish"),
        ("sliding_window", 4),
        ("n_head", 3),
        ("n_layer", 0),
    ],
)
def test_a_field_that_is_not_honoured_is_refused_by_name(field, value, tmp_path):
    theirs().save_pretrained(tmp_path)
    changed_config(tmp_path, **{field: value})
    with pytest.raises(ValueError, match={"n_head": "heads"}.get(field, field)):
        GPT.from_pretrained(tmp_path)


def test_tensors_that_do_not_fit_are_named(tmp_path):
    theirs().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors, name = load_file(file), "transformer.h.1.mlp.c_fc.weight"
    for changed, told in (
        ({**tensors, name: torch.zeros(3, 4)}, r"h\.1\.mlp\.c_fc\.weight \(3, 4\)"),
        ({key: each for key, each in tensors.items() if key != name}, r"lacks the tensor h\.1\.mlp\.c_fc\.weight"),
        ({**tensors, "transformer.h.7.what": torch.zeros(1)}, r"holds a tensor transformer\.h\.7\.what"),
    ):
        save_file(changed, file)
        with pytest.raises(ValueError, match=told):
            GPT.from_pretrained(tmp_path)


def test_another_kind_of_model_is_refused(tmp_path):
    theirs().save_pretrained(tmp_path)
    changed_config(tmp_path, model_type="bert")
    with pytest.raises(ValueError, match="'bert', not 'gpt2'"):
        GPT.from_pretrained(tmp_path)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered():
    model = GPT(40, 16, 1, 2, 8)
    with pytest.raises(ValueError, match="at most 8 tokens, got 11: cut it"):
        model(TEXT)
    with pytest.raises(ValueError, match="x must be"):
        model(TEXT[:, :0])
    with pytest.raises(ValueError, match="tokens from 0 to 39, got 0 to 40"):
        model(torch.tensor([[0, 40]]))
    with pytest.raises(ValueError, match="at least 2 tokens"):
        model.loss(TEXT[:, :1])
    with pytest.raises(ValueError, match="multiple of heads"):
        GPT(40, 16, 1, 3, 8)
    with pytest.raises(ValueError, match="dropout"):
        GPT(40, 16, 1, 2, 8, dropout=1.5)


# --- How it behaves as a module ---


def test_caches_give_what_one_pass_gives():
    model = GPT(40, 16, 2, 4, 24, dtype=torch.float64)
    caches = model.new_caches()
    parts = [model(part, caches=caches) for part in TEXT.split([4, 1, 6], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), model(TEXT), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="at most 24 tokens, got 25"):
        model(TEXT.repeat(1, 2)[:, :14], caches=caches)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_tokens_may_be_of_any_whole_numbers(dtype, unchecked):
    model = GPT(40, 16, 2, 4, 24).eval()
    assert model(TEXT.to(dtype)).equal(model(TEXT))
    assert model.loss(TEXT.to(dtype)).equal(model.loss(TEXT))


def test_targets_and_caches_must_fit(unchecked):
    model = GPT(40, 16, 2, 4, 24)
    with pytest.raises(ValueError, match=r"y must have the shape of x, \(3, 11\), got \(3, 10\)"):
        model.nll(TEXT, TEXT[:, 1:])
    with pytest.raises(ValueError, match="caches must be one for each of 2 blocks, got 1"):
        model(TEXT, caches=model.new_caches()[:1])


def test_the_beginning_weights_are_small_and_smaller_where_they_are_added():
    torch.manual_seed(0)
    model = GPT(200, 64, 8, 4, 64)
    block = model.blocks[3]
    for values, wanted in (
        (model.tokens.weight, 0.02),
        (block.self_attention.project.weight, 0.02),
        (block.self_attention.join.weight, 0.02 / 4),
        (block.feed_forward.contract.weight, 0.02 / 4),
    ):
        # The standard deviation of n normal values is within 6 / sqrt(2 n) of itself.
        assert abs(values.std().item() / wanted - 1) < 6 / (2 * values.numel()) ** 0.5
    assert not block.self_attention.join.bias.any()
    assert (model.norm.weight == 1).all()


def test_dropout_leaves_out_while_training_alone():
    model = GPT(40, 16, 2, 4, 24, dropout=0.5, attention_dropout=0.5)
    assert not model(TEXT).equal(model(TEXT))
    model.eval()
    assert model(TEXT).equal(model(TEXT))
