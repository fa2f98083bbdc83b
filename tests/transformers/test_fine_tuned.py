"""BERT's three heads against Hugging Face's: same folders, same logits, same losses; and what is refused."""

import json
import os

import pytest
import torch
from torch.nn import functional

from lemmata.transformers.bert import Bert
from lemmata.transformers.fine_tuned import SentenceClassifier
from lemmata.transformers.question_answering import QuestionAnswerer
from lemmata.transformers.tagging import Tagger

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers", reason="Hugging Face's transformers is what the heads are held to")

SMALL = {
    "vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 20, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "initializer_range": 0.3,
}  # fmt: skip
OURS = {"width": 24, "depth": 2, "heads": 3, "hidden": 40, "max_length": 20}
HEADS = {
    "BertForSequenceClassification": (SentenceClassifier, {"num_labels": 5}),
    "BertForTokenClassification": (Tagger, {"id2label": {0: "noun", 1: "verb", 2: "other"}}),
    "BertForQuestionAnswering": (QuestionAnswerer, {}),
}
# float32 logits of size 10 after two layers; a wrong head is off by their size
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def theirs(name, dtype, **fields):
    """Hugging Face's model with random weights, also where it would begin with zeros."""
    torch.manual_seed(0)
    config = transformers.BertConfig(**SMALL, **fields)
    model = getattr(transformers, name)(config).to(dtype).eval()
    with torch.no_grad():
        for values in model.parameters():
            if values.ndim == 1:
                values.add_(torch.randn_like(values) * 0.1)
    return model


def batch():
    torch.manual_seed(1)
    x = torch.randint(60, (4, 13))
    segments = (torch.arange(13) >= 6).long().expand(4, -1)
    mask = torch.arange(13) < torch.tensor([[13], [9], [7], [10]])
    return x, segments, mask


def logits(output):
    """Theirs as one tensor, (..., classes)."""
    return output["logits"] if "logits" in output else torch.stack([output.start_logits, output.end_logits], -1)


def ours_of(model, *inputs):
    found = model(*inputs)
    return torch.stack(found, -1) if isinstance(found, tuple) else found


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", HEADS)
def test_a_folder_of_theirs_gives_their_logits(name, dtype, tmp_path):
    head, fields = HEADS[name]
    model = theirs(name, dtype, **fields)
    model.save_pretrained(tmp_path)
    ours = head.from_pretrained(tmp_path, dtype=dtype)
    x, segments, mask = batch()
    with torch.no_grad():
        expected = logits(model(x, token_type_ids=segments, attention_mask=mask.long()))
        found = ours_of(ours, x, segments, mask)
        alone = ours_of(ours, x[:1, :1])
        expected_alone = logits(model(x[:1, :1]))
    # Hugging Face says something of padding too, which nobody reads.
    real = mask if found.ndim == 3 else slice(None)
    assert not ours.training
    assert found.dtype is dtype
    assert (found - expected)[real].abs().max() < TOLERANCE[dtype]
    assert (alone - expected_alone).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("name", HEADS)
def test_what_is_written_is_read_by_both(name, tmp_path):
    head, _ = HEADS[name]
    torch.manual_seed(0)
    classes = 2 if head is QuestionAnswerer else ["a", "b", "c"]
    ours = head(60, classes, 0.25, dtype=torch.float64, activation="gelu_tanh", **OURS).eval()
    ours.save_pretrained(tmp_path)
    again = head.from_pretrained(tmp_path, dtype=torch.float64)
    model = getattr(transformers, name).from_pretrained(tmp_path, dtype=torch.float64)
    x, segments, _ = batch()
    with torch.no_grad():
        assert torch.equal(ours_of(ours, x, segments), ours_of(again, x, segments))
        gap = logits(model(x, token_type_ids=segments)) - ours_of(ours, x, segments)
    assert gap.abs().max() < 1e-10
    assert again.classes == ours.classes
    assert [model.config.id2label[n] for n in range(len(ours.classes))] == list(ours.classes)
    assert again.dropout == 0.25
    assert model.config.classifier_dropout == 0.25


def test_losses_are_theirs(tmp_path):
    x, segments, mask = batch()
    model = theirs("BertForQuestionAnswering", torch.float64)
    model.save_pretrained(tmp_path)
    ours = QuestionAnswerer.from_pretrained(tmp_path, dtype=torch.float64)
    start, end = torch.tensor([7, 6, 6, 8]), torch.tensor([9, 7, 6, 8])
    words = {"token_type_ids": segments, "attention_mask": mask.long()}
    with torch.no_grad():
        expected = model(x, **words, start_positions=start, end_positions=end).loss
        assert (ours.loss(x, start, end, segments, mask) - expected).abs() < 1e-10


@pytest.mark.parametrize("head", [SentenceClassifier, Tagger, QuestionAnswerer])
def test_a_new_layer_on_an_encoder_that_is_there(head):
    torch.manual_seed(0)
    for pooling in (True, False):
        encoder = Bert(60, pooling=pooling, dtype=torch.float64, **OURS)
        model = head.on(encoder, 2, classifier_dropout=0.5)
        x, segments, mask = batch()
        kept = encoder.eval()(x, segments, mask)
        found = model.eval().encoder(x, segments, mask)
        assert torch.equal(kept.tokens, found.tokens)
        assert (found.pooled is None) == (head is not SentenceClassifier)
        if pooling and found.pooled is not None:
            assert torch.equal(kept.pooled, found.pooled)
        with torch.no_grad():
            model.encoder.tokens.weight.zero_()
        assert encoder.tokens.weight.abs().max() > 0  # a copy
        assert model.dropout == 0.5


@pytest.mark.parametrize("head", [SentenceClassifier, Tagger])
def test_the_layer_has_a_dropout_of_its_own_while_training(head):
    torch.manual_seed(0)
    settings = OURS | {"dropout": 0.0, "attention_dropout": 0.0}
    x, _, _ = batch()
    model = head(60, **settings)
    assert torch.equal(model(x), model.eval()(x))  # none of its own: that of the encoder
    model = head(60, classifier_dropout=0.5, **settings)
    torch.nn.init.ones_(model.classifier.weight)
    assert not torch.equal(model(x), model(x))
    assert torch.equal(model.eval()(x), model(x))


@pytest.mark.parametrize("head", [SentenceClassifier, Tagger, QuestionAnswerer])
def test_padding_changes_nothing(head):
    torch.manual_seed(0)
    x, segments, mask = batch()
    model = head(60, **OURS).eval()
    found = ours_of(model, x, segments, mask)
    padded = functional.pad(x, (0, 3), value=5), functional.pad(segments, (0, 3)), functional.pad(mask, (0, 3))
    longer = ours_of(model, *padded)
    if found.ndim == 3:
        longer, found = longer[:, :13][mask], found[mask]
    assert torch.allclose(longer, found, atol=1e-5)


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="classes must be >= 1, got 0"):
        SentenceClassifier(60, classes=0, **OURS)
    with pytest.raises(ValueError, match=r"names of which no two are alike, got \['a', 'a'\]"):
        Tagger(60, classes=["a", "a"], **OURS)
    with pytest.raises(ValueError, match=r"names of which no two are alike, got 'ab'"):
        Tagger(60, classes="ab", **OURS)
    with pytest.raises(ValueError, match="classes must be 2, the start and the end of an answer, got 3"):
        QuestionAnswerer(60, classes=3, **OURS)
    with pytest.raises(ValueError, match="Tagger has pooling=False: leave the argument out"):
        Tagger(60, pooling=True, **OURS)
    with pytest.raises(ValueError, match=r"classifier_dropout must be in \[0, 1\), got 1.5"):
        Tagger(60, classifier_dropout=1.5, **OURS)

    Bert(60, **OURS).save_pretrained(tmp_path / "encoder")
    with pytest.raises(ValueError, match=r"no tensor classifier.weight.*Tagger.on\(Bert.from_pretrained\(folder\)\)"):
        Tagger.from_pretrained(tmp_path / "encoder")
    Tagger(60, classes=3, **OURS).save_pretrained(tmp_path / "tagger")
    with pytest.raises(ValueError, match=r"no tensor qa_outputs.weight, so it is no BertForQuestionAnswering"):
        QuestionAnswerer.from_pretrained(tmp_path / "tagger")
    with pytest.raises(ValueError, match=r"lacks the tensor bert.pooler.dense"):  # a tagger has no pooler
        SentenceClassifier.from_pretrained(tmp_path / "tagger")
    file = tmp_path / "tagger" / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps(config | {"id2label": {"0": "a", "1": "b"}}))
    with pytest.raises(ValueError, match=r"id2label names 2 classes, but classifier.weight has 3 rows"):
        Tagger.from_pretrained(tmp_path / "tagger")
    del config["id2label"]
    file.write_text(json.dumps(config))
    assert Tagger.from_pretrained(tmp_path / "tagger").classes == ("LABEL_0", "LABEL_1", "LABEL_2")
