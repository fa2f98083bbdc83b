"""BERT's two tasks: parity with Hugging Face's heads, folders, losses at the chosen places, bad input."""

import os

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from lemmata.transformers import Bert, BertForPretraining, mask_tokens

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
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def theirs(folder, kind="BertForPreTraining", dtype=torch.float64, **settings):
    """Hugging Face's model with random weights, biases and norms included, saved to a folder."""
    torch.manual_seed(0)
    made = getattr(transformers, kind)(transformers.BertConfig(**SMALL | settings)).to(dtype).eval()
    for values in made.parameters():
        values.data.add_(torch.randn_like(values), alpha=0.05)
    made.save_pretrained(folder)
    return made


def small(**settings):
    torch.manual_seed(0)
    chosen = {"vocab_size": 50, "width": 24, "depth": 2, "heads": 3, "hidden": 40, "max_length": 17}
    return BertForPretraining(**chosen | settings).double().eval()


def lessons(batch=4, time=11):
    """Masked texts of different lengths in two segments: x, targets, segments, mask, follows."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(5, 50, (batch, time), generator=generator)
    mask = torch.arange(time) < torch.tensor([time, 4, 2, 7])[:batch, None]
    x = x.where(mask, 0)
    read, targets = mask_tokens(x, 50, mask_token=3, special=[0], fraction=0.5, generator=generator)
    follows = torch.tensor([True, False, False, True])[:batch]
    return read, targets, torch.randint(2, (batch, time), generator=generator), mask, follows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("settings", [{}, {"hidden_act": "relu", "layer_norm_eps": 1e-2}], ids=str)
def test_logits_and_losses_are_hugging_faces(tmp_path, settings, dtype):
    reference = theirs(tmp_path, dtype=dtype, **settings)
    ours = BertForPretraining.from_pretrained(tmp_path, dtype=dtype)
    x, targets, segments, mask, follows = lessons()
    with torch.no_grad():
        expected = reference(
            x,
            attention_mask=mask.long(),
            token_type_ids=segments,
            labels=targets,
            next_sentence_label=(~follows).long(),
        )
        found = ours(x, segments, mask)
        losses = ours.losses(x, targets, segments, mask, follows)
    assert (found.tokens - expected.prediction_logits)[mask].abs().max() < TOLERANCE[dtype]
    assert (found.next_sentence - expected.seq_relationship_logits).abs().max() < TOLERANCE[dtype]
    assert abs(losses["loss"] - expected.loss) < TOLERANCE[dtype]
    assert abs(losses["masked_language"] + losses["next_sentence"] - losses["loss"]) < TOLERANCE[dtype]


def test_a_masked_language_model_has_no_next_sentence(tmp_path):
    reference = theirs(tmp_path, "BertForMaskedLM")
    ours = BertForPretraining.from_pretrained(tmp_path, dtype=torch.float64)
    x, targets, segments, mask, _ = lessons()
    with torch.no_grad():
        expected = reference(x, attention_mask=mask.long(), token_type_ids=segments, labels=targets)
        tokens, following = ours(x, segments, mask)
        losses = ours.losses(x, targets, segments, mask)
    assert following is None
    assert ours.encoder.pool is None
    assert (tokens - expected.logits)[mask].abs().max() < 1e-10
    assert losses.keys() == {"loss", "masked_language"}
    assert abs(losses["loss"] - expected.loss) < 1e-10


def test_the_next_sentence_head_is_hugging_faces_own(tmp_path):
    theirs(tmp_path)
    head = transformers.BertForNextSentencePrediction.from_pretrained(tmp_path, dtype=torch.float64).eval()
    x, _, segments, mask, _ = lessons()
    with torch.no_grad():
        expected = head(x, attention_mask=mask.long(), token_type_ids=segments).logits
        found = BertForPretraining.from_pretrained(tmp_path, dtype=torch.float64)(x, segments, mask).next_sentence
    assert (found - expected).abs().max() < 1e-10


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForMaskedLM"])
def test_what_is_written_is_read_by_both(tmp_path, kind):
    theirs(tmp_path / "theirs", kind)
    ours = BertForPretraining.from_pretrained(tmp_path / "theirs", dtype=torch.float64)
    ours.save_pretrained(tmp_path / "ours")
    stored = [load_file(tmp_path / who / "model.safetensors") for who in ("theirs", "ours")]
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    assert stored[0].keys() - tied == stored[1].keys()
    assert all(torch.equal(stored[0][name], stored[1][name]) for name in stored[1])
    again = getattr(transformers, kind).from_pretrained(tmp_path / "ours", dtype=torch.float64).eval()
    x, _, segments, mask, _ = lessons()
    with torch.no_grad():
        expected = again(x, attention_mask=mask.long(), token_type_ids=segments)[0]
        assert (ours(x, segments, mask).tokens - expected)[mask].abs().max() < 1e-10
        encoder = Bert.from_pretrained(tmp_path / "ours", dtype=torch.float64)
        assert torch.equal(encoder(x, segments, mask).tokens, ours.encoder(x, segments, mask).tokens)


def test_an_encoder_alone_is_no_model_for_pretraining(tmp_path):
    theirs(tmp_path, "BertModel")
    with pytest.raises(ValueError, match="holds a tensor embeddings"):
        BertForPretraining.from_pretrained(tmp_path)


def test_the_loss_is_that_of_the_chosen_tokens():
    model, (x, targets, segments, mask, follows) = small(), lessons()
    logits = model(x, segments, mask).tokens
    expected = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    found = model.losses(x, targets, segments, mask, follows)["masked_language"]
    assert torch.allclose(found, expected, rtol=1e-12, atol=0)


def test_a_batch_without_chosen_tokens_has_no_loss_and_finite_gradients():
    model, (x, targets, _, _, _) = small(next_sentence=False), lessons()
    loss = model.losses(x, torch.full_like(targets, -100))["loss"]
    loss.backward()
    assert loss == 0
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())


def test_the_vectors_of_the_tokens_are_those_of_the_head():
    model, x = small(), torch.arange(12).view(2, 6)
    before = model(x).tokens
    model.encoder.tokens.weight.data[49] += torch.linspace(-3, 3, 24)  # 49 does not occur in x; its logit moves
    moved = (model(x).tokens - before).abs()
    assert moved[..., 49].min() > 1e-6
    assert moved[..., :49].max() < 1e-12
    assert not any("decoder" in name for name in model.state_dict())


def test_it_has_as_many_weights_as_the_original():
    base = BertForPretraining(device="meta")
    assert sum(values.numel() for values in base.parameters()) == 110_106_428


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"targets": torch.zeros(4, 3, dtype=torch.long)}, "targets must have the shape of x"),
        ({"targets": torch.full((4, 11), 50)}, "targets must hold tokens from 0 to 49"),
        ({"follows": None}, "needs follows"),
        ({"follows": torch.ones(3, dtype=torch.bool)}, r"follows must be \(4,\)"),
    ],
)
def test_bad_lessons_are_answered_in_a_sentence(changed, message):
    names = ("x", "targets", "segments", "mask", "follows")
    with pytest.raises(ValueError, match=message):
        small().losses(**dict(zip(names, lessons(), strict=True)) | changed)


def test_pooling_is_said_by_the_next_sentence():
    with pytest.raises(ValueError, match="say next_sentence instead"):
        small(pooling=False)
