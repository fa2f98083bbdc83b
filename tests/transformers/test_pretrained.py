"""Folders of weights: written and read back, in parts, with heads on top; and every way in which one may be damaged."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from lemmata.transformers import GPT, Fields, Stored, read_pretrained, take_weights, write_pretrained

# A layer of four outputs, which is stored turned over, and one that is stored as three.
STORED = {
    "0.weight": Stored(("first.w",), transposed=True),
    "0.bias": Stored(("first.b",)),
    "1.weight": Stored(("q.w", "k.w", "v.w")),
}
FIELDS = Fields({"n_embd": "width"}, {"act": ("relu", None)}, frozenset({"colour"}))
CONFIG = {"model_type": "small", "n_embd": 3}


def made(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 6, bias=False))


def written(folder):
    write_pretrained(made(), STORED, CONFIG, folder)
    return dict(read_pretrained(folder, "small")[1])


def test_what_is_written_is_read(tmp_path):
    model, tensors = made(), written(tmp_path)
    assert {name: tuple(each.shape) for name, each in tensors.items()} == {
        "first.w": (3, 4), "first.b": (4,), "q.w": (2, 4), "k.w": (2, 4), "v.w": (2, 4),
    }  # fmt: skip
    assert torch.equal(tensors["first.w"], model[0].weight.mT)
    assert torch.equal(tensors["k.w"], model[1].weight[2:4])
    assert json.loads((tmp_path / "config.json").read_text()) == CONFIG
    for dtype in (torch.float32, torch.float64):
        again = made(seed=1).to(dtype)
        take_weights(again, STORED, tensors, "here")
        assert all(torch.equal(a, b.to(dtype)) for a, b in zip(again.parameters(), model.parameters(), strict=True))


def test_weights_in_several_files_are_joined(tmp_path):
    tensors = written(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    files = {name: f"part-{place % 2}.safetensors" for place, name in enumerate(tensors)}
    for file in set(files.values()):
        save_file({name: each for name, each in tensors.items() if files[name] == file}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": files}))
    found = read_pretrained(tmp_path, "small")[1]
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], each) for name, each in tensors.items())
    (tmp_path / "part-1.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"part-1.safetensors is missing: copy the whole folder again"):
        read_pretrained(tmp_path, "small")
    for wrong in ({"weight_map": {"a": "../other.safetensors"}}, {"weight_map": []}, {}):
        index.write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match="must map tensors to files of its own folder"):
            read_pretrained(tmp_path, "small")


def test_a_head_on_top_is_left(tmp_path):
    tensors = {f"body.{name}": each for name, each in written(tmp_path).items()} | {"head.w": torch.zeros(2)}
    model = made(seed=1)
    with pytest.warns(UserWarning, match=r"here holds a head \(head.w\), which is left: Whole reads it"):
        take_weights(model, STORED, tensors, "here", prefix="body.", heads={"head.": "Whole reads it"})
    assert torch.equal(model[1].weight, made()[1].weight)
    with pytest.raises(ValueError, match=r"here holds a tensor head.w, for which Sequential has no place"):
        take_weights(model, STORED, tensors, "here", prefix="body.")
    take_weights(model, STORED, written(tmp_path), "here", prefix="body.")
    with pytest.raises(ValueError, match=r"here holds a tensor head.w, for which Sequential has no place"):
        take_weights(model, STORED, written(tmp_path) | {"head.w": torch.zeros(2)}, "here", prefix="body.")
    take_weights(model, STORED, written(tmp_path) | {"a.mask": torch.zeros(2)}, "here", ignored=[".mask"])


def test_a_tensor_that_does_not_fit_is_named_and_nothing_is_changed(tmp_path):
    tensors, model = written(tmp_path), made(seed=1)
    before = [each.clone() for each in model.parameters()]
    for changed, message in (
        ({"first.w": torch.zeros(4, 3)}, r"here: first.w \(4, 3\) does not fit the config, which asks for \(3, 4\)"),
        ({"k.w": torch.zeros(2, 5)}, r"q.w \(2, 4\), k.w \(2, 5\), v.w \(2, 4\) does not fit .* asks for \(6, 4\)"),
        ({"k.w": torch.zeros(3, 4)}, r"q.w \(2, 4\), k.w \(3, 4\), v.w \(2, 4\) does not fit"),
    ):
        with pytest.raises(ValueError, match=message):
            take_weights(model, STORED, tensors | changed, "here")
    del tensors["v.w"]
    with pytest.raises(ValueError, match=r"here lacks the tensor v.w: copy it again"):
        take_weights(model, STORED, tensors, "here")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


def test_fields_are_honoured_fixed_ignored_or_refused():
    assert FIELDS.arguments({"n_embd": 5, "act": None, "colour": 1, "use_cache": True}, "here") == {"width": 5}
    with pytest.raises(ValueError, match=r'here: act is "gelu", which is not supported: only "relu" or null'):
        FIELDS.arguments({"act": "gelu"}, "here")
    with pytest.raises(
        ValueError, match=r'here: pruned_heads is {"0": \[1\]}, which is not supported: only {} or null'
    ):
        FIELDS.arguments({"pruned_heads": {"0": [1]}}, "here")
    assert FIELDS.arguments({"pruned_heads": {}}, "here") == {}
    with pytest.raises(ValueError, match=r"here: the field depth \(3\) is not known, and might change .*: remove it"):
        FIELDS.arguments({"depth": 3}, "here")


def test_a_damaged_folder_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config.json is missing: a pretrained model is a folder with"):
        read_pretrained(tmp_path, "small")
    written(tmp_path)
    with pytest.raises(ValueError, match="holds a model of type 'small', not 'large'"):
        read_pretrained(tmp_path, "large")
    (tmp_path / "model.safetensors").write_bytes(b"\x08" + bytes(20))
    with pytest.raises(ValueError, match=r"model.safetensors cannot be read as safetensors \(.*\): copy it again"):
        read_pretrained(tmp_path, "small")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"holds no model.safetensors: download or copy it into the folder"):
        read_pretrained(tmp_path, "small")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"pytorch_model.bin, a pickle, which may run code when it is read"):
        read_pretrained(tmp_path, "small")
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="must hold an object of fields, got list"):
        read_pretrained(tmp_path, "small")
    (tmp_path / "config.json").write_bytes(b'{"a": ')
    with pytest.raises(ValueError, match=r"config.json cannot be read as JSON \(.*\): copy it again"):
        read_pretrained(tmp_path, "small")


def test_an_activation_without_a_name_elsewhere_is_not_written(tmp_path):
    model = GPT(9, width=4, depth=1, heads=1, max_length=4, activation="sigmoid")
    with pytest.raises(ValueError, match="activation 'sigmoid' has no name in Hugging Face's format: one of gelu, "):
        model.save_pretrained(tmp_path)
    assert not any(tmp_path.iterdir())
