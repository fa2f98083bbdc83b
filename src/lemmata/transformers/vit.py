r"""ViT: a picture is a sequence of patches, and a token of its own says what they show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.transformers.patches import PatchEmbedding, sides_of
from lemmata.transformers.pretrained import (
    Fields,
    Sizes,
    Stored,
    Weights,
    activation_read,
    activation_written,
    class_labels,
    read_pretrained,
    take_weights,
    write_pretrained,
)
from lemmata.transformers.transformer_block import TransformerBlock

__all__ = ["ViT", "ViTConfig"]


@dataclass(frozen=True)
class ViTConfig:
    """Configuration of a vision transformer; the defaults are ViT-B/16."""

    image_size: int | tuple[int, int] = 224
    """Height and width of the images whose positions are learnt; those of other sizes are interpolated."""
    patch_size: int | tuple[int, int] = 16
    """Height and width of a patch, in pixels."""
    channels: int = 3
    """Image channels: 1 for grey images, 3 for colour."""
    width: int = 768
    """Embedding dimension."""
    depth: int = 12
    """Number of blocks."""
    heads: int = 12
    """Attention heads per block."""
    hidden: int = 3072
    """Hidden units of the feed-forward network."""
    activation: str = "gelu"
    """Activation of the feed-forward network."""
    dropout: float = 0.0
    """Dropout probability of residual branches and of the embedded patches."""
    attention_dropout: float = 0.0
    """Dropout probability of attention weights."""
    eps: float = 1e-12
    """Added to the variance by layer normalisation."""
    qkv_bias: bool = True
    """Whether queries, keys and values have a bias."""
    pooled: int | None = None
    """Units of a layer with tanh between the [CLS] token and the classes; no such layer if None."""

    def __post_init__(self) -> None:
        for name in ("channels", "width", "depth", "heads", "hidden"):
            validate.count(name, getattr(self, name))
        validate.fraction("dropout", self.dropout)
        validate.fraction("attention_dropout", self.attention_dropout)
        validate.flag("qkv_bias", self.qkv_bias)
        if self.pooled is not None:
            validate.count("pooled", self.pooled)
        if not all(self.grid) or any(a % b for a, b in zip(*self._side_pairs, strict=True)):
            raise ValueError(f"image_size must be whole patches of {self.patch_size}, got {self.image_size}")

    @property
    def _side_pairs(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return sides_of("image_size", self.image_size), sides_of("patch_size", self.patch_size)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        image, patch = self._side_pairs
        return image[0] // patch[0], image[1] // patch[1]


FIELDS = Fields(
    honoured={
        "image_size": "image_size",
        "patch_size": "patch_size",
        "num_channels": "channels",
        "hidden_size": "width",
        "num_hidden_layers": "depth",
        "num_attention_heads": "heads",
        "intermediate_size": "hidden",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "layer_norm_eps": "eps",
        "qkv_bias": "qkv_bias",
        "pooler_output_size": "pooled",
    },
    fixed={"pooler_act": ("tanh",)},
    without_effect=frozenset(["encoder_stride", "num_labels"]),  # of a head for masked pictures; told by the weights
)
SIZES = Sizes(
    axes={
        "num_channels": ("embeddings.patch_embeddings.projection.weight", 1),
        "hidden_size": ("embeddings.patch_embeddings.projection.weight", 0),
        "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0),
    },
    layers=("num_hidden_layers", "encoder.layer.N.intermediate.dense.weight"),
)
POOLED = "pooler.dense.weight", 0  # asked of folders with such a layer alone
HEADS = {"decoder.": "it paints hidden patches, which ViT does not"}
MASK = ("embeddings.mask_token",)  # which pre-training by masked pictures leaves behind


@system(
    "vit",
    title="Vision transformer",
    kind="module",
    example="ViT(classes=5, image_size=8, patch_size=4, channels=1, width=16, depth=1, heads=2, hidden=32)"
    "(torch.randn(4, 1, 8, 8))",
)
class ViT(nn.Module):
    r"""Patches as tokens behind a [CLS] token, learnt positions, blocks that see all, and classes from the [CLS].

    $$ h_0 = [c,\ V\mathrm{vec}(\mathrm{patch}_1) + b,\ \dots,\ V\mathrm{vec}(\mathrm{patch}_T) + b] + P, \qquad
       h_\ell = \mathrm{block}_\ell(h_{\ell-1}), \qquad \text{logits} = W\,\mathrm{LN}(h_L)_{[\mathrm{CLS}]} + b' $$

    The blocks normalise first. Pictures may have other sides than `image_size`, as long as they are whole patches: the
    positions are then interpolated (bicubic). With `classes=None` the answer is what the [CLS] token knows.
    `ViT.from_pretrained(folder)` reads a folder of ViT in Hugging Face's format, `save_pretrained` writes one; pixels
    must be scaled as that model asks, mostly to [-1, 1]. `attention_maps(model, x)` shows where it looks.

    Shapes:
        x: (batch, channels, height, width)    returns: logits (batch, classes), without classes (batch, width)

    Claims: vit.model, vit.inductive_bias
    Source: Dosovitskiy et al. 2021.

    >>> model = ViT(classes=10, image_size=28, patch_size=7, channels=1, width=32, depth=2, heads=4, hidden=64)
    >>> model(torch.randn(3, 1, 28, 28)).shape, model(torch.randn(3, 1, 35, 42)).shape
    (torch.Size([3, 10]), torch.Size([3, 10]))
    >>> sum(values.numel() for values in ViT(device="meta").parameters())
    86567656
    """

    labels: Sequence[str] | None = None  # names of the classes, where a folder tells them

    def __init__(
        self,
        classes: int | None = 1000,
        image_size: int | tuple[int, int] = ViTConfig.image_size,
        patch_size: int | tuple[int, int] = ViTConfig.patch_size,
        channels: int = ViTConfig.channels,
        width: int = ViTConfig.width,
        depth: int = ViTConfig.depth,
        heads: int = ViTConfig.heads,
        hidden: int = ViTConfig.hidden,
        activation: str = ViTConfig.activation,
        dropout: float = ViTConfig.dropout,
        attention_dropout: float = ViTConfig.attention_dropout,
        eps: float = ViTConfig.eps,
        qkv_bias: bool = ViTConfig.qkv_bias,
        pooled: int | None = ViTConfig.pooled,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.classes = classes if classes is None else validate.count("classes", classes)
        self.config = config_of(ViTConfig, locals())
        rows, columns = self.config.grid
        words: dict[str, Any] = {"norm_first": True, "eps": eps, "dropout": dropout}
        words |= {"attention_dropout": attention_dropout}
        with torch.device(device or torch.get_default_device()):
            self.patches = PatchEmbedding(patch_size, channels, width)
            self.class_token = nn.Parameter(torch.empty(1, 1, width))
            self.positions = nn.Parameter(torch.empty(1, 1 + rows * columns, width))
            blocks = [TransformerBlock(width, heads, hidden, activation, **words) for _ in range(depth)]
            self.blocks = nn.ModuleList(blocks)
            self.norm = nn.LayerNorm(width, eps)
            self.pool = None if pooled is None else nn.Linear(width, pooled)
            self.head = None if classes is None else nn.Linear(pooled or width, classes)
        if not qkv_bias:
            for block in blocks:
                block.self_attention.project.register_parameter("bias", None)
        self.to(dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: tokens and positions small, matrices so that values keep their size."""
        for name, values in self.named_parameters():
            if name in ("class_token", "positions"):
                nn.init.normal_(values, std=0.02)
            elif name == "patches.project.weight":
                nn.init.normal_(values, std=values[0].numel() ** -0.5)
            elif values.ndim > 1:
                nn.init.xavier_uniform_(values)
            elif name.endswith("bias"):
                nn.init.zeros_(values)
            else:
                nn.init.ones_(values)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        h = self._class_or_patches(x, answered=1)[
            :, 0
        ]  # (batch, width): of the last block, only the [CLS] token is asked for
        if self.pool is not None:
            h = self.pool(h).tanh()  # (batch, pooled)
        return h if self.head is None else self.head(h)

    def features(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch tokens token_width"]:
        """What the last block knows of the picture, the [CLS] token, and of each patch, normalised."""
        return self._class_or_patches(x)

    def _class_or_patches(self, x: Tensor, answered: int | None = None) -> Tensor:
        """The same, or what it knows of the first so many tokens."""
        tokens = self.patches(x)  # (batch, patches, width)
        h = torch.cat([self.class_token.expand(x.shape[0], -1, -1), tokens], dim=1)  # (batch, 1 + patches, width)
        h = functional.dropout(h + self.positions_for(x.shape[2], x.shape[3]), self.config.dropout, self.training)
        for number, block in enumerate(self.blocks, 1):
            h = block(h, answered=answered if number == len(self.blocks) else None)
        return self.norm(h)  # (batch, answers, width)

    def positions_for(self, height: int, width: int) -> Float[Tensor, "1 tokens token_width"]:
        """The learnt positions, interpolated to the patches of a picture of these sides."""
        grid = height // self.patches.patch_size[0], width // self.patches.patch_size[1]
        if grid == self.config.grid:
            return self.positions
        learnt = self.positions[:, 1:].mT.unflatten(2, self.config.grid)  # (1, width, rows, columns)
        between = functional.interpolate(learnt, grid, mode="bicubic", align_corners=False)
        return torch.cat([self.positions[:, :1], between.flatten(2).mT], dim=1)

    # --- folders in Hugging Face's format ---

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> "ViT":
        """A vision transformer from a folder with config.json and model.safetensors, in evaluation mode."""
        config, weights = read_pretrained(folder, "vit")
        arguments = FIELDS.arguments(config, folder)
        if "activation" in arguments:
            arguments["activation"] = activation_read("hidden_act", arguments["activation"])
        pooling = any(name.endswith("pooler.dense.weight") for name in weights)
        sizes = SIZES._replace(axes={**SIZES.axes, "pooler_output_size": POOLED}) if pooling else SIZES
        sizes.check(config, weights, folder, "vit.")
        pooled = arguments.pop("pooled", None) or arguments.get("width", ViTConfig.width)
        arguments["pooled"] = pooled if pooling else None
        for name in ("image_size", "patch_size"):
            if isinstance(arguments.get(name), list):
                arguments[name] = tuple(arguments[name])
        _check_patches(ViTConfig(**arguments), weights, folder)
        classes = weights.described("classifier.weight").shape[0] if "classifier.weight" in weights else None
        names = class_labels(config, folder)
        model = cls(classes=classes, **arguments, device="meta", dtype=dtype)
        if classes is None:
            words: dict[str, Any] = {"ignored": MASK, "heads": HEADS, "device": device}
            take_weights(model, model.stored(), weights, folder, prefix="vit.", **words)
        else:
            take_weights(model, model.stored("vit."), weights, folder, ignored=MASK, device=device)
            model.labels = [names.get(str(n), f"LABEL_{n}") for n in range(classes)]
        return model.eval()

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, for `ViTForImageClassification`, or `ViTModel` without classes."""
        if self.pool is not None and self.head is not None:
            raise ValueError("Hugging Face's ViT has either a pooled layer or classes: set model.head = None")
        ours = vars(self.config)
        config = {field: ours[name] for field, name in FIELDS.honoured.items()}
        config["hidden_act"] = activation_written(self.config.activation)
        kind, prefix = ("ViTModel", "") if self.head is None else ("ViTForImageClassification", "vit.")
        if self.classes is not None:
            names = self.labels or [f"LABEL_{n}" for n in range(self.classes)]
            config["id2label"] = {str(n): name for n, name in enumerate(names)}
            config["label2id"] = {name: n for n, name in enumerate(names)}
        head = {"model_type": "vit", "architectures": [kind]}
        write_pretrained(self, self.stored(prefix), head | config, folder)

    def stored(self, prefix: str = "") -> dict[str, Stored]:
        """Which tensors of Hugging Face's ViT each parameter is."""
        table = {
            "class_token": Stored((f"{prefix}embeddings.cls_token",)),
            "positions": Stored((f"{prefix}embeddings.position_embeddings",)),
        }
        for part in ("weight", "bias"):
            table[f"patches.project.{part}"] = Stored((f"{prefix}embeddings.patch_embeddings.projection.{part}",))
            table[f"norm.{part}"] = Stored((f"{prefix}layernorm.{part}",))
            table[f"pool.{part}"] = Stored((f"{prefix}pooler.dense.{part}",))
            table[f"head.{part}"] = Stored((f"classifier.{part}",))
            for n in range(self.config.depth):
                ours, theirs = f"blocks.{n}.", f"{prefix}encoder.layer.{n}."
                three = tuple(f"{theirs}attention.attention.{name}.{part}" for name in ("query", "key", "value"))
                table[f"{ours}self_attention.project.{part}"] = Stored(three)
                for here, there in (
                    ("self_attention_norm", "layernorm_before"),
                    ("self_attention.join", "attention.output.dense"),
                    ("feed_forward_norm", "layernorm_after"),
                    ("feed_forward.expand", "intermediate.dense"),
                    ("feed_forward.contract", "output.dense"),
                ):
                    table[f"{ours}{here}.{part}"] = Stored((f"{theirs}{there}.{part}",))
        return table


def _check_patches(config: ViTConfig, weights: Weights, where: Path | str) -> None:
    """Refuse a config whose patches or positions are not those of the weights, before they are built."""
    prefix = "vit." if any(name.startswith("vit.") for name in weights) else ""
    for name, wanted in (
        ("patch_embeddings.projection.weight", (config.width, config.channels, *sides_of("", config.patch_size))),
        ("position_embeddings", (1, 1 + math.prod(config.grid), config.width)),
    ):
        name = f"{prefix}embeddings.{name}"
        if name not in weights:
            raise ValueError(f"{where} lacks the tensor {name}: copy it again, or it is another kind of model")
        if (shape := tuple(weights.described(name).shape)) != wanted:
            raise ValueError(f"{where}: {name} {shape} does not fit the config, which asks for {wanted}")
