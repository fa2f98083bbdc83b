"""ViT: the same numbers as Hugging Face's from the same folder, folders that do not fit, and torch's ways."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lemmata.transformers.attention_recording import attention_maps
from lemmata.transformers.vit import FIELDS, ViT

SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 8,
    "patch_size": 4,
}  # fmt: skip
SETTINGS: list[dict[str, Any]] = [
    {},
    {"image_size": [8, 12], "patch_size": [4, 2], "num_channels": 1, "num_labels": 5},
    {"qkv_bias": False, "hidden_act": "gelu_new", "layer_norm_eps": 1e-2},
    {"hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 7, "hidden_act": "relu"},
    {"hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.5, "pooler_output_size": 7},
    {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 1, "intermediate_size": 3072, "patch_size": 2},
]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def theirs(folder: Path, kind: str = "ViTForImageClassification", **settings: Any) -> Any:
    """Hugging Face's model with weights drawn so large that every one of them counts, saved as a folder."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = getattr(transformers, kind)(transformers.ViTConfig(**{**SMALL, **settings}))
    for values in model.parameters():
        nn.init.normal_(values, std=values.shape[-1] ** -0.5)
    model.eval().double().save_pretrained(folder)
    return model


def answer(model: Any, x: Tensor, **more: Any) -> Tensor:
    with torch.no_grad():
        outputs = model(x, **more)
    return outputs.logits if hasattr(outputs, "logits") else outputs.pooler_output


def pictures(config: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    size = config.image_size if isinstance(config.image_size, (list, tuple)) else [config.image_size] * 2
    return torch.randn(3, config.num_channels, *size, dtype=dtype)


@pytest.mark.parametrize("kind", ["ViTForImageClassification", "ViTModel"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_folder_gives_hugging_faces_numbers(tmp_path: Path, settings: dict[str, Any], kind: str) -> None:
    reference = theirs(tmp_path, kind, **settings)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        ours, x = ViT.from_pretrained(tmp_path, dtype=dtype), pictures(reference.config, dtype)
        expected = answer(reference.to(dtype), x)
        assert (ours(x) - expected).abs().max() <= tolerance * expected.abs().amax().clamp(min=1)


@pytest.mark.parametrize("kind", ["ViTForImageClassification", "ViTModel"])
def test_positions_are_interpolated_as_hugging_faces(tmp_path: Path, kind: str) -> None:
    reference = theirs(tmp_path, kind, image_size=12)
    ours = ViT.from_pretrained(tmp_path, dtype=torch.float64)
    for height, width in ((12, 12), (4, 4), (20, 12), (8, 28), (12, 16)):
        x = torch.randn(2, 3, height, width, dtype=torch.float64)
        expected = answer(reference, x, interpolate_pos_encoding=True)
        torch.testing.assert_close(ours(x), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["ViTForImageClassification", "ViTModel"])
@pytest.mark.parametrize("settings", SETTINGS[:5])
def test_what_is_written_is_what_was_read(tmp_path: Path, settings: dict[str, Any], kind: str) -> None:
    reference = theirs(tmp_path / "a", kind, **settings)
    ours = ViT.from_pretrained(tmp_path / "a", dtype=torch.float64)
    ours.save_pretrained(tmp_path / "b")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = type(reference).from_pretrained(tmp_path / "b", dtype=torch.float64).eval()
    x = pictures(reference.config)
    torch.testing.assert_close(answer(again, x), answer(reference, x), rtol=0, atol=1e-12)
    told, kept = reference.config.to_dict(), again.config.to_dict()
    unused = set() if kind == "ViTModel" else {"pooler_output_size"}
    assert all(told[field] == kept[field] for field in FIELDS.honoured.keys() - unused)
    assert kind == "ViTModel" or told["id2label"] == kept["id2label"]


def test_names_of_classes_survive(tmp_path: Path) -> None:
    theirs(tmp_path, id2label={0: "cat", 1: "dog", 2: "emu"}, label2id={"cat": 0, "dog": 1, "emu": 2})
    ours = ViT.from_pretrained(tmp_path)
    assert ours.labels == ["cat", "dog", "emu"]
    ours.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["label2id"] == {"cat": 0, "dog": 1, "emu": 2}


def test_a_model_for_masked_pictures_is_read_without_its_head(tmp_path: Path) -> None:
    reference = theirs(tmp_path, "ViTForMaskedImageModeling", encoder_stride=4)
    with pytest.warns(UserWarning, match=r"holds a head \(decoder.*\), which is left: it paints hidden patches"):
        ours, x = ViT.from_pretrained(tmp_path, dtype=torch.float64), pictures(reference.config)
    with torch.no_grad():
        torch.testing.assert_close(ours.features(x), reference.vit(x).last_hidden_state, rtol=0, atol=1e-10)
    assert ours.head is None
    assert ours.pool is None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pooler_act", "relu", 'pooler_act is "relu", which is not supported: only "tanh"'),
        ("layerscale", 0.1, "the field layerscale"),
        ("hidden_act", "quick_gelu", "hidden_act must be"),
        ("model_type", "deit", "holds a model of type 'deit', not 'vit'"),
        ("image_size", 9, r"image_size must be whole patches of 4, got 9"),
        ("image_size", 16, r"vit.embeddings.position_embeddings \(1, 5, 16\) does not fit .* \(1, 17, 16\)"),
        ("num_attention_heads", 3, "width must be a multiple of heads"),
    ],
)
def test_a_config_that_cannot_be_honoured_is_refused_by_name(
    tmp_path: Path, field: str, value: Any, message: str
) -> None:
    theirs(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    with pytest.raises(ValueError, match=message):
        ViT.from_pretrained(tmp_path)


def test_tensors_that_are_missing_or_unknown_are_named(tmp_path: Path) -> None:
    theirs(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    position = tensors.pop("vit.embeddings.position_embeddings")
    save_file(tensors, file)
    with pytest.raises(ValueError, match=r"lacks the tensor vit\.embeddings\.position_embeddings"):
        ViT.from_pretrained(tmp_path)
    save_file(tensors | {"vit.embeddings.position_embeddings": position, "vit.gate": torch.ones(1)}, file)
    with pytest.raises(ValueError, match=r"holds a tensor vit\.gate, for which ViT has no place"):
        ViT.from_pretrained(tmp_path)


def small(**more: Any) -> ViT:
    torch.manual_seed(0)
    chosen: dict[str, Any] = {
        "classes": 3, "image_size": 8, "patch_size": 4, "channels": 1, "width": 8, "depth": 2, "heads": 2, "hidden": 12
    }  # fmt: skip
    return ViT(**{**chosen, **more})


def test_a_pooled_layer_and_classes_have_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="either a pooled layer or classes"):
        small(pooled=5).save_pretrained(tmp_path)
    assert small(pooled=5)(torch.randn(1, 1, 8, 8)).shape == (1, 3)
    assert small(pooled=5, classes=None)(torch.randn(1, 1, 8, 8)).shape == (1, 5)
    assert small(classes=None)(torch.randn(1, 1, 8, 8)).shape == (1, 8)


def test_gradients_are_right_and_reach_every_weight() -> None:
    model, x = small(dtype=torch.float64, depth=1), torch.randn(1, 1, 4, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model, x)  # with interpolated positions
    model(x).square().sum().backward()
    assert all(values.grad is not None and bool(values.grad.any()) for values in model.parameters())


@pytest.mark.usefixtures("unchecked")
def test_compiling_changes_nothing() -> None:
    model, x = small(dtype=torch.float64), torch.randn(2, 1, 8, 8, dtype=torch.float64)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("unchecked")
def test_it_is_exported_for_batches_of_any_size() -> None:
    model, batch = small().eval(), torch.export.Dim("batch")
    exported = torch.export.export(model, (torch.randn(2, 1, 8, 8),), dynamic_shapes=({0: batch},)).module()
    x = torch.randn(5, 1, 8, 8)
    torch.testing.assert_close(exported(x), model(x))


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # what torch says whenever a switch of oneDNN is set
def test_bfloat16_is_near_float32() -> None:
    model, x = small(), torch.randn(4, 1, 8, 8)
    full = model(x)
    # Some virtual machines announce matrix units for bfloat16 that oneDNN then cannot use: torch's own kernels.
    with torch.backends.mkldnn.flags(enabled=False):
        low = model.to(torch.bfloat16)(x.bfloat16())
    assert low.dtype == torch.bfloat16
    # two blocks of about a dozen roundings each, of values near 1
    assert (low.float() - full).abs().max() < 24 * torch.finfo(torch.bfloat16).eps * full.abs().amax().clamp(min=1)


def test_dropout_acts_in_training_alone() -> None:
    model, x = small(dropout=0.5), torch.randn(2, 1, 8, 8)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_weights_are_drawn_by_the_seed_and_can_be_loaded() -> None:
    first, second = small(), small()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    second.reset_parameters()
    assert not torch.equal(first.positions, second.positions)
    second.load_state_dict(first.state_dict())
    x = torch.randn(1, 1, 8, 8)
    assert torch.equal(first(x), second(x))


@torch.no_grad()
def test_the_last_block_answers_for_the_class_token_alone_as_among_all() -> None:
    model, x = small(classes=None).double(), torch.randn(2, 1, 8, 12, dtype=torch.float64)
    counted: list[int] = []
    for block in model.blocks:
        block.register_forward_hook(lambda part, given, found: counted.append(found.shape[1]))
    answer = model(x)
    assert counted == [7, 1]
    torch.testing.assert_close(answer, model.features(x)[:, 0], rtol=1e-12, atol=1e-13)
    assert counted == [7, 1, 7, 7]


def test_attention_over_the_patches_is_told() -> None:
    maps = attention_maps(small(), torch.randn(2, 1, 8, 12))
    assert {name: tuple(weights.shape) for name, weights in maps.items()} == {
        f"blocks.{n}.self_attention": (2, 2, 7, 7) for n in range(2)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": 0}, "classes must be"),
        ({"image_size": 10}, "image_size must be whole patches of 4, got 10"),
        ({"image_size": (8, 0)}, r"image_size\[1\] must be"),
        ({"patch_size": 16}, "image_size must be whole patches of 16, got 8"),
        ({"heads": 3}, "width must be a multiple of heads"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"attention_dropout": -0.1}, "attention_dropout must be"),
        ({"depth": 0}, "depth must be"),
        ({"pooled": 0}, "pooled must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**arguments)
