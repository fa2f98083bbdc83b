"""Folders of weights that say one thing and hold another: nothing is built, cast, dropped or waited for in silence."""

import json
import os
from contextlib import nullcontext

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lemmata.transformers import GPT, Bert, BertForPretraining, BytePairEncoding, SentenceClassifier, ViT, WordPiece

SETTINGS = {"width": 8, "depth": 2, "heads": 2, "hidden": 16}
MADE = {
    GPT: lambda: GPT(20, max_length=6, **SETTINGS),
    Bert: lambda: Bert(20, max_length=6, **SETTINGS),
    BertForPretraining: lambda: BertForPretraining(20, max_length=6, **SETTINGS),
    SentenceClassifier: lambda: SentenceClassifier(20, ["no", "yes"], max_length=6, **SETTINGS),
    ViT: lambda: ViT(3, image_size=4, patch_size=2, **SETTINGS),
}
FIRST = {GPT: "transformer.wte.weight", Bert: "embeddings.word_embeddings.weight", ViT: "vit.embeddings.cls_token"}


def written(kind, folder, fields=(), **tensors):
    """A folder of a small model, with other fields in its config and other tensors in its file."""
    MADE[kind]().save_pretrained(folder)
    config, file = folder / "config.json", folder / "model.safetensors"
    config.write_text(json.dumps(json.loads(config.read_text()) | dict(fields)))
    save_file(load_file(file) | tensors, file)


class SmallTensors(TorchDispatchMode):
    """Fails where a tensor of more than a megabyte is made on a real device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for each in tree_leaves(made):
            assert not isinstance(each, torch.Tensor) or each.is_meta or each.nbytes < 1e6, (func, each.shape)
        return made


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (GPT, ("n_layer", "n_embd", "n_inner", "n_positions", "vocab_size")),
        (Bert, ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "type_vocab_size")),
        (BertForPretraining, ("num_hidden_layers", "intermediate_size", "max_position_embeddings")),
        (SentenceClassifier, ("num_hidden_layers", "intermediate_size")),
        (ViT, ("num_hidden_layers", "hidden_size", "intermediate_size", "num_channels", "image_size", "patch_size")),
    ],
)
def test_a_size_is_compared_with_the_weights_before_anything_is_built(kind, fields, tmp_path):
    for field in fields:
        for value in (16_000_000, 1 << 62, "8", 1e999, [3]):
            written(kind, tmp_path, {field: value})
            with (
                SmallTensors(),
                pytest.raises((ValueError, TypeError), match=rf"{field}|does not fit the config|whole patches"),
            ):
                kind.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "original"),
    [
        (GPT, "lm_head.weight", "transformer.wte.weight"),
        (BertForPretraining, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        (BertForPretraining, "cls.predictions.decoder.bias", "cls.predictions.bias"),
    ],
)
def test_a_head_that_differs_from_the_tied_one_is_refused(kind, name, original, tmp_path):
    model = MADE[kind]()
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(tensors | {name: tensors[original].clone()}, tmp_path / "model.safetensors")
    again = kind.from_pretrained(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))
    for other in (tensors[original] + 0.01, tensors[original][:-1].clone()):
        save_file(tensors | {name: other}, tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match=f"{name} differs from {original}, but {kind.__name__} has one tensor"):
            kind.from_pretrained(tmp_path)


def test_numbers_that_are_no_weights_are_refused(tmp_path):
    for kind, name in FIRST.items():
        MADE[kind]().save_pretrained(tmp_path)
        tensors = load_file(tmp_path / "model.safetensors")
        for dtype in (torch.int64, torch.bool, torch.uint8, torch.float8_e4m3fn, torch.complex64):
            save_file(tensors | {name: tensors[name].to(dtype)}, tmp_path / "model.safetensors")
            with pytest.raises(ValueError, match=rf"model.safetensors: {name} holds numbers of the kind .*: save the"):
                kind.from_pretrained(tmp_path)


def test_what_a_dtype_cannot_hold_is_refused_and_what_is_not_finite_is_told(tmp_path):
    values = torch.randn(20, 8, dtype=torch.float64)
    for largest, dtype in ((1e300, None), (1e6, torch.float16)):
        written(Bert, tmp_path, **{FIRST[Bert]: values.index_fill(0, torch.tensor([3]), largest)})
        with pytest.raises(ValueError, match=r"holds 1e\+\d+, which torch.float\d+ cannot hold: .*dtype=torch.float64"):
            Bert.from_pretrained(tmp_path, dtype=dtype)
        exact = Bert.from_pretrained(tmp_path, dtype=torch.float64)
        assert exact.tokens.weight.max() == largest
    for value in (torch.nan, -torch.inf):
        written(Bert, tmp_path, **{FIRST[Bert]: values.index_fill(0, torch.tensor([3]), value)})
        with pytest.warns(UserWarning, match=rf"{FIRST[Bert]} holds NaN or infinity"):
            Bert.from_pretrained(tmp_path)


def test_tensors_outside_of_the_model_are_refused_or_told(tmp_path):
    for kind, reader, name, told in (
        (GPT, GPT, "what.weight", None),
        (GPT, GPT, "wte.weight", None),  # beside transformer.wte.weight
        (GPT, GPT, "score.weight", "GPT foresees tokens"),
        (SentenceClassifier, Bert, "what.weight", None),
        (SentenceClassifier, Bert, "classifier.bias", "SentenceClassifier.from_pretrained or Tagger"),
        (BertForPretraining, Bert, "cls.predictions.bias", ""),
    ):
        written(kind, tmp_path, **{name: torch.zeros(2)})
        if told is None:
            with pytest.raises(ValueError, match=rf"holds a tensor {name}, for which {reader.__name__} has no place"):
                reader.from_pretrained(tmp_path)
        else:
            with pytest.warns(UserWarning, match=f"is left: {told}") if told else nullcontext():
                reader.from_pretrained(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="needs pipes in the file system")
def test_pipes_devices_and_huge_files_are_refused(tmp_path):
    WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]).save_pretrained(tmp_path)
    BytePairEncoding.train(["low lower"], vocab_size=260).save_pretrained(tmp_path)
    for name, reader in (
        ("config.json", Bert), ("model.safetensors", Bert), ("vocab.txt", WordPiece), ("vocab.json", BytePairEncoding),
        ("merges.txt", BytePairEncoding), ("tokenizer_config.json", WordPiece), ("tokenizer.json", WordPiece),
    ):  # fmt: skip
        MADE[Bert]().save_pretrained(tmp_path)
        file, aside = tmp_path / name, tmp_path / "aside"
        had = file.exists() and file.rename(aside)
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            make(file)
            with pytest.raises(ValueError, match=rf"{name} must be a regular file"):
                reader.from_pretrained(tmp_path)
            file.rmdir() if file.is_dir() else file.unlink()
        if not name.endswith("safetensors"):
            with file.open("wb") as sparse:
                sparse.truncate(1 << 40)
            with pytest.raises(ValueError, match=rf"{name} must have at most 134,217,728 bytes, got 1,099,511,627,776"):
                reader.from_pretrained(tmp_path)
            file.unlink()
        if had:
            aside.rename(file)


def test_json_of_another_kind_is_answered_in_one_sentence(tmp_path):
    deep = "[" * 200_000
    for kind, name in ((ViT, "config.json"), (ViT, "model.safetensors.index.json"), (BytePairEncoding, "vocab.json")):
        MADE[ViT]().save_pretrained(tmp_path)
        (tmp_path / "model.safetensors").unlink()
        (tmp_path / name).write_text(deep)
        with pytest.raises(ValueError, match=rf"{name} cannot be read as JSON \(.*\): copy it again"):
            kind.from_pretrained(tmp_path)
    for kind in (ViT, SentenceClassifier):
        for names in (["no"], {"0": 1, "1": "yes"}, "no"):
            written(kind, tmp_path, {"id2label": names})
            with pytest.raises(ValueError, match="id2label must give every class a name"):
                kind.from_pretrained(tmp_path)
