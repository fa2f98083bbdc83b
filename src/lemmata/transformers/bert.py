r"""BERT: a stack of blocks that look both ways, with the weights of the world's encoders."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.transformers.pretrained import (
    Fields,
    Sizes,
    Stored,
    Weights,
    activation_read,
    activation_written,
    read_pretrained,
    take_weights,
    write_pretrained,
)
from lemmata.transformers.transformer_block import TransformerBlock

__all__ = ["Bert", "BertConfig", "BertOutput"]


@dataclass(frozen=True)
class BertConfig:
    """Configuration of a BERT; the defaults are BERT-base."""

    width: int = 768
    """Embedding dimension."""
    depth: int = 12
    """Number of blocks."""
    heads: int = 12
    """Attention heads per block."""
    hidden: int = 3072
    """Hidden units of the feed-forward network."""
    max_length: int = 512
    """Context length, in tokens: the number of learnt positions."""
    segments: int = 2
    """Number of segments: the first sentence of a pair and the second."""
    activation: str = "gelu"
    """Activation of the feed-forward network."""
    dropout: float = 0.1
    """Dropout probability of residual branches and of the embedded tokens."""
    attention_dropout: float = 0.1
    """Dropout probability of attention weights."""
    eps: float = 1e-12
    """Added to the variance by layer normalisation."""
    pooling: bool = True
    """Whether the [CLS] token passes through a layer with tanh, for the sentence as a whole."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "hidden", "max_length", "segments"):
            validate.count(name, getattr(self, name))
        validate.fraction("dropout", self.dropout)
        validate.fraction("attention_dropout", self.attention_dropout)
        validate.flag("pooling", self.pooling)


class BertOutput(NamedTuple):
    """What BERT says of every token, and of the sentence by its first one."""

    tokens: Float[Tensor, "batch time width"]
    pooled: Float[Tensor, "batch width"] | None


FIELDS = Fields(
    honoured={
        "vocab_size": "vocab_size",
        "hidden_size": "width",
        "num_hidden_layers": "depth",
        "num_attention_heads": "heads",
        "intermediate_size": "hidden",
        "max_position_embeddings": "max_length",
        "type_vocab_size": "segments",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "layer_norm_eps": "eps",
    },
    fixed={
        "is_decoder": (False,),
        "is_encoder_decoder": (False,),
        "add_cross_attention": (False,),
        "position_embedding_type": ("absolute",),
        "tie_word_embeddings": (True,),
    },
    # The dropout of heads that are not here, and fields of the first checkpoints that describe what BERT always is.
    without_effect=frozenset(
        "classifier_dropout directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
        "pooler_size_per_head pooler_type".split()
    ),
)
SIZES = Sizes(
    axes={
        "vocab_size": ("embeddings.word_embeddings.weight", 0),
        "hidden_size": ("embeddings.word_embeddings.weight", 1),
        "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": ("embeddings.token_type_embeddings.weight", 0),
        "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0),
    },
    layers=("num_hidden_layers", "encoder.layer.N.intermediate.dense.weight"),
)
# Heads that an encoder leaves in their folder: those of pre-training without a word, since nearly all have them.
HEADS = {
    "cls.": "",
    "classifier.": "SentenceClassifier.from_pretrained or Tagger.from_pretrained reads it",
    "qa_outputs.": "QuestionAnswerer.from_pretrained reads it",
}
POSITIONS = ("embeddings.position_ids",)  # the numbers 0, 1, ..., which older folders hold


@system(
    "bert",
    title="BERT",
    kind="module",
    example="Bert(vocab_size=20, width=16, depth=1, heads=2, hidden=32)(torch.randint(20, (4, 7)))",
)
class Bert(nn.Module):
    r"""Tokens, positions and segments as learnt vectors, and blocks that see the whole sequence.

    $$ h_0 = \mathrm{LN}(E_{x_t} + P_t + S_{s_t}), \qquad h_\ell = \mathrm{block}_\ell(h_{\ell-1}), \qquad
       \text{pooled} = \tanh(W h_{L,[\mathrm{CLS}]} + b) $$

    A sequence is `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; the tokens of B have segment 1. The blocks normalise last,
    as in the original transformer. Without `pooling` nothing is said of the sentence as a whole.
    `Bert.from_pretrained(folder)` reads a folder in Hugging Face's format, `save_pretrained` writes one.

    Shapes:
        x: (batch, time) tokens    segments: (batch, time), all 0 unless given
        mask: (batch, time), true where there is a token and no padding, or (batch, time, time) for each pair of places
        returns: tokens (batch, time, width), pooled (batch, width), or None

    Claims: bert.model
    Source: Devlin et al. 2019.

    >>> model = Bert(vocab_size=99, width=32, depth=2, heads=4, hidden=64)
    >>> [tuple(part.shape) for part in model(torch.randint(99, (3, 10)))]
    [(3, 10, 32), (3, 32)]
    >>> sum(values.numel() for values in Bert(device="meta").parameters())
    109482240
    """

    def __init__(
        self,
        vocab_size: int = 30_522,
        width: int = BertConfig.width,
        depth: int = BertConfig.depth,
        heads: int = BertConfig.heads,
        hidden: int = BertConfig.hidden,
        max_length: int = BertConfig.max_length,
        segments: int = BertConfig.segments,
        activation: str = BertConfig.activation,
        dropout: float = BertConfig.dropout,
        attention_dropout: float = BertConfig.attention_dropout,
        eps: float = BertConfig.eps,
        pooling: bool = BertConfig.pooling,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = validate.count("vocab_size", vocab_size)
        self.config = config_of(BertConfig, locals())
        with torch.device(device or torch.get_default_device()):
            self.tokens = nn.Embedding(vocab_size, width)
            self.positions = nn.Embedding(max_length, width)
            self.segments = nn.Embedding(segments, width)
            self.norm = nn.LayerNorm(width, eps)
            words: dict[str, Any] = {"norm_first": False, "eps": eps, "dropout": dropout}
            words |= {"attention_dropout": attention_dropout}
            self.blocks = nn.ModuleList(
                TransformerBlock(width, heads, hidden, activation, **words) for _ in range(depth)
            )
            self.pool = nn.Linear(width, width) if pooling else None
        self.to(dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew as BERT does."""
        for name, values in self.named_parameters():
            if values.ndim > 1:
                nn.init.normal_(values, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(values)
            else:
                nn.init.ones_(values)

    def forward(
        self,
        x: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time *_"] | None = None,
    ) -> BertOutput:
        if validate.tensor("x", x).ndim != 2 or x.shape[1] == 0:
            raise ValueError(f"x must be (batch, time) with at least 1 token, got shape {tuple(x.shape)}")
        if x.shape[1] > self.config.max_length:
            raise ValueError(f"a text may have at most {self.config.max_length} tokens, got {x.shape[1]}: cut it")
        x = validate.tokens("x", x, self.vocab_size).long()
        if segments is None:
            segments = x.new_zeros(1, 1)  # the first one for all
        elif validate.tensor("segments", segments).shape != x.shape:
            raise ValueError(f"segments must have the shape of x, {tuple(x.shape)}, got {tuple(segments.shape)}")
        segments = validate.tokens("segments", segments, self.config.segments).long()
        places = torch.arange(x.shape[1], device=x.device)
        # What all texts have in common is added up first: there is less of it.
        h = self.norm(self.tokens(x) + (self.positions(places) + self.segments(segments)))  # (batch, time, width)
        h = functional.dropout(h, self.config.dropout, self.training)
        for block in self.blocks:
            h = block(h, mask)  # (batch, time, width)
        return BertOutput(h, None if self.pool is None else self.pool(h[:, 0]).tanh())

    # --- folders in Hugging Face's format ---

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> "Bert":
        """An encoder from a folder with config.json and model.safetensors, in evaluation mode.

        Heads that the folder holds beside the encoder are left there, one for a task with a warning that says what
        reads it. The weights come in `dtype`, float32 unless told.
        """
        config, weights = read_bert(folder)
        pooling = any(name.endswith("pooler.dense.weight") for name in weights)  # a masked-language model has none
        model = cls(**bert_arguments(config, folder), pooling=pooling, device="meta", dtype=dtype)
        words: dict[str, Any] = {"prefix": "bert.", "ignored": POSITIONS, "heads": HEADS}
        take_weights(model, model.stored(), weights, folder, device=device, **words)
        return model.eval()

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, which `BertModel.from_pretrained` reads."""
        write_pretrained(self, self.stored(), {"architectures": ["BertModel"], **self.stored_config()}, folder)

    def stored_config(self) -> dict[str, Any]:
        """The fields of a config.json."""
        ours = vars(self.config) | {"vocab_size": self.vocab_size}
        fields = {field: ours[name] for field, name in FIELDS.honoured.items()}
        fields["hidden_act"] = activation_written(self.config.activation)
        return {"model_type": "bert", **fields}

    def stored(self, prefix: str = "") -> dict[str, Stored]:
        """Which tensors of Hugging Face's BERT each parameter is."""
        table = {}
        for ours, theirs in (("tokens", "word"), ("positions", "position"), ("segments", "token_type")):
            table[f"{ours}.weight"] = Stored((f"{prefix}embeddings.{theirs}_embeddings.weight",))
        for part in ("weight", "bias"):
            table[f"norm.{part}"] = Stored((f"{prefix}embeddings.LayerNorm.{part}",))
            table[f"pool.{part}"] = Stored((f"{prefix}pooler.dense.{part}",))
            for n in range(self.config.depth):
                ours, theirs = f"blocks.{n}.", f"{prefix}encoder.layer.{n}."
                three = tuple(f"{theirs}attention.self.{name}.{part}" for name in ("query", "key", "value"))
                table[f"{ours}self_attention.project.{part}"] = Stored(three)
                for here, there in (
                    ("self_attention.join", "attention.output.dense"),
                    ("self_attention_norm", "attention.output.LayerNorm"),
                    ("feed_forward.expand", "intermediate.dense"),
                    ("feed_forward.contract", "output.dense"),
                    ("feed_forward_norm", "output.LayerNorm"),
                ):
                    table[f"{ours}{here}.{part}"] = Stored((f"{theirs}{there}.{part}",))
        return table


def bert_arguments(config: dict[str, Any], where: Path | str) -> dict[str, Any]:
    """The arguments of `Bert` that a config gives."""
    arguments = FIELDS.arguments(config, where)
    if "activation" in arguments:
        arguments["activation"] = activation_read("hidden_act", arguments["activation"])
    return arguments


def read_bert(folder: Path | str) -> tuple[dict[str, Any], Weights]:
    """The config and the tensors of a folder; the first checkpoints call weight and bias of their norms gamma, beta."""
    config, weights = read_pretrained(folder, "bert")
    newer = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    for old, new in newer.items():
        weights = weights.renamed(lambda name, old=old, new=new: re.sub(rf"{old}$", new, name))
    SIZES.check(config, weights, folder, "bert.")
    return config, weights
