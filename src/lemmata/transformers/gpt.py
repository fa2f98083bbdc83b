r"""GPT: a stack of causal blocks that foresees the next token, with the weights of GPT-2."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.transformers.key_value_cache import FixedCache, KeyValueCache
from lemmata.transformers.pretrained import (
    Fields,
    Sizes,
    Stored,
    activation_read,
    activation_written,
    read_pretrained,
    take_weights,
    write_pretrained,
)
from lemmata.transformers.transformer_block import TransformerBlock

__all__ = ["GPT", "GPTConfig"]

Caches = Sequence[KeyValueCache] | Sequence[FixedCache]


@dataclass(frozen=True)
class GPTConfig:
    """Configuration of a GPT; the defaults are GPT-2 small."""

    width: int = 768
    """Embedding dimension."""
    depth: int = 12
    """Number of blocks."""
    heads: int = 12
    """Attention heads per block."""
    max_length: int = 1024
    """Context length, in tokens: the number of learnt positions."""
    hidden: int | None = None
    """Hidden units of the feed-forward network; four times the width if None."""
    activation: str = "gelu_tanh"
    """Activation of the feed-forward network."""
    dropout: float = 0.0
    """Dropout probability of residual branches."""
    attention_dropout: float = 0.0
    """Dropout probability of attention weights."""
    eps: float = 1e-5
    """Added to the variance by layer normalisation."""
    embedding_dropout: float | None = None
    """Dropout probability of the embedded tokens; that of residual branches if None."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "max_length"):
            validate.count(name, getattr(self, name))
        validate.fraction("dropout", self.dropout)
        validate.fraction("attention_dropout", self.attention_dropout)
        if self.embedding_dropout is not None:
            validate.fraction("embedding_dropout", self.embedding_dropout)


FIELDS = Fields(
    honoured={
        "vocab_size": "vocab_size",
        "n_embd": "width",
        "n_layer": "depth",
        "n_head": "heads",
        "n_positions": "max_length",
        "n_inner": "hidden",
        "activation_function": "activation",
        "resid_pdrop": "dropout",
        "embd_pdrop": "embedding_dropout",
        "attn_pdrop": "attention_dropout",
        "layer_norm_epsilon": "eps",
    },
    fixed={
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "reorder_and_upcast_attn": (False,),
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "n_special": (0,),
        "tie_word_embeddings": (True,),
    },
    # n_ctx is an older name of n_positions, a GPT is always a decoder, the summary belongs to heads that are not here.
    without_effect=frozenset(
        "n_ctx is_decoder summary_activation summary_first_dropout summary_proj_to_labels summary_type "
        "summary_use_proj".split()
    ),
)
SIZES = Sizes(
    axes={
        "vocab_size": ("wte.weight", 0),
        "n_embd": ("wte.weight", 1),
        "n_positions": ("wpe.weight", 0),
        "n_inner": ("h.0.mlp.c_fc.weight", 1),
    },
    layers=("n_layer", "h.N.ln_1.weight"),
)
HEADS = dict.fromkeys(("score.", "multiple_choice_head."), "GPT foresees tokens, and has no other head")


@system(
    "gpt",
    title="GPT",
    kind="module",
    example="GPT(vocab_size=20, width=16, depth=1, heads=2, max_length=32)(torch.randint(20, (4, 7)))",
)
class GPT(nn.Module):
    r"""Tokens and positions as learnt vectors, blocks that look back only, and a softmax over the next token.

    $$ h_0 = E_{x_t} + P_t, \qquad h_\ell = \mathrm{block}_\ell(h_{\ell-1}), \qquad
       p(x_{t+1} \mid x_{1:t}) = \mathrm{softmax}\big(E\,\mathrm{LN}(h_L)_t\big) $$

    The blocks normalise first. The vectors $E$ by which tokens are read are also those by which they are foreseen.
    `GPT.from_pretrained(folder)` reads a folder of GPT-2 in Hugging Face's format, `save_pretrained` writes one.

    Shapes:
        x: (batch, time) tokens    returns: logits (batch, time, vocab_size)
        mask: (batch, time), true where there is a token, or (batch, time, keys) for each position that looks
        positions: (batch, time), where each token stands; 0, 1, ... after what the caches hold unless given
        caches: one for each block (`new_caches`); x is then what comes after them

    Claims: gpt.model, gpt.objective
    Source: Radford et al. 2018, 2019.

    >>> model = GPT(vocab_size=65, width=32, depth=2, heads=4, max_length=64)
    >>> model(torch.randint(65, (3, 10))).shape
    torch.Size([3, 10, 65])
    >>> sum(values.numel() for values in GPT(device="meta").parameters())
    124439808
    """

    def __init__(
        self,
        vocab_size: int = 50_257,
        width: int = GPTConfig.width,
        depth: int = GPTConfig.depth,
        heads: int = GPTConfig.heads,
        max_length: int = GPTConfig.max_length,
        hidden: int | None = GPTConfig.hidden,
        activation: str = GPTConfig.activation,
        dropout: float = GPTConfig.dropout,
        attention_dropout: float = GPTConfig.attention_dropout,
        eps: float = GPTConfig.eps,
        embedding_dropout: float | None = GPTConfig.embedding_dropout,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = validate.count("vocab_size", vocab_size)
        self.config = config_of(GPTConfig, locals())
        self.embedding_dropout = dropout if embedding_dropout is None else embedding_dropout
        with torch.device(device or torch.get_default_device()):
            self.tokens = nn.Embedding(vocab_size, width)
            self.positions = nn.Embedding(max_length, width)
            words: dict[str, Any] = {"norm_first": True, "causal": True, "eps": eps}
            words |= {"dropout": dropout, "attention_dropout": attention_dropout}
            self.blocks = nn.ModuleList(
                TransformerBlock(width, heads, hidden, activation, **words) for _ in range(depth)
            )
            self.norm = nn.LayerNorm(width, eps)
        self.to(dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew as GPT-2 does: small, and smaller where they are added many times."""
        for name, values in self.named_parameters():
            if values.ndim > 1:
                added = name.endswith(("join.weight", "contract.weight"))  # what each block adds, twice
                nn.init.normal_(values, std=0.02 / (2 * self.config.depth) ** (0.5 if added else 0.0))
            elif name.endswith("bias"):
                nn.init.zeros_(values)
            else:
                nn.init.ones_(values)

    def forward(
        self,
        x: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time *_"] | None = None,
        caches: Caches | None = None,
        positions: Int[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time vocab_size"]:
        words = {} if positions is None else {"positions": positions}
        return self.logits_of(self.hidden(x, mask, caches, **words))  # (batch, time, vocab_size)

    def logits_of(self, h: Float[Tensor, "... width"]) -> Float[Tensor, "... vocab_size"]:
        """Logits of the next token, from what the last block knows: by the vectors by which tokens are read."""
        return functional.linear(h, self.tokens.weight)

    def hidden(
        self,
        x: Int[Tensor, "batch time"],
        mask: Tensor | None = None,
        caches: Caches | None = None,
        positions: Int[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """What the last block knows of each position, normalised."""
        if validate.tensor("x", x).ndim != 2 or x.shape[1] == 0:
            raise ValueError(f"x must be (batch, time) with at least 1 token, got shape {tuple(x.shape)}")
        x = validate.tokens("x", x, self.vocab_size).long()
        if caches is not None and len(caches) != len(self.blocks):
            raise ValueError(
                f"caches must be one for each of {len(self.blocks)} blocks, got {len(caches)}: new_caches()"
            )
        start = 0 if caches is None else caches[0].start
        if isinstance(start, int) and start + x.shape[1] > self.config.max_length:
            told = f"{start + x.shape[1]}: cut it, or build the model with a larger max_length"
            raise ValueError(f"a text may have at most {self.config.max_length} tokens, got {told}")
        if positions is None:
            places = start + torch.arange(x.shape[1], device=x.device)  # (time,)
        elif validate.tensor("positions", positions).shape != x.shape:
            raise ValueError(f"positions must have the shape of x, {tuple(x.shape)}, got {tuple(positions.shape)}")
        else:
            places = validate.tokens("positions", positions, self.config.max_length).long()  # (batch, time)
        h = functional.dropout(self.tokens(x) + self.positions(places), self.embedding_dropout, self.training)
        for number, block in enumerate(self.blocks):
            h = block(h, mask, cache=None if caches is None else caches[number])  # (batch, time, width)
        return self.norm(h)

    def new_caches(self, max_length: int | None = None) -> list[KeyValueCache]:
        """Empty caches, one for each block, for as many positions as the model has unless told otherwise."""
        return [KeyValueCache(self.config.max_length if max_length is None else max_length) for _ in self.blocks]

    def loss(self, x: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        r"""The mean negative log-likelihood $-\ln p(x_{t+1} \mid x_{1:t})$ of the tokens after the first, in nats."""
        if x.ndim != 2 or x.shape[1] < 2:
            raise ValueError(f"x must be (batch, time) with at least 2 tokens, got shape {tuple(x.shape)}")
        return self.nll(x[:, :-1], x[:, 1:]).mean()

    def nll(self, x: Int[Tensor, "batch time"], y: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
        r"""The negative log-likelihood $-\ln p(y_t \mid x_1, \dots, x_t)$ of every token, in nats.

        y is the text one position ahead of x.
        """
        if y.shape != x.shape:
            raise ValueError(f"y must have the shape of x, {tuple(x.shape)}, got {tuple(y.shape)}")
        logits = self(x)  # (batch, time, vocab_size)
        return functional.cross_entropy(logits.flatten(0, 1), y.long().flatten(), reduction="none").view(y.shape)

    # --- folders in Hugging Face's format ---

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> "GPT":
        """GPT-2 from a folder with config.json and model.safetensors, in evaluation mode.

        The weights come to `device` in `dtype`, by default torch's own (float32), whatever the file holds.
        """
        config, weights = read_pretrained(folder, "gpt2")
        # A field that an older file leaves out has the value that GPT-2 was published with.
        published = dict.fromkeys(("dropout", "attention_dropout", "embedding_dropout"), 0.1)
        arguments: dict[str, Any] = published | FIELDS.arguments(config, folder)
        if "activation" in arguments:
            arguments["activation"] = activation_read("activation_function", arguments["activation"])
        SIZES.check(config, weights, folder, "transformer.")
        model = cls(**arguments, device="meta", dtype=dtype)  # initial weights need not be drawn
        words: dict[str, Any] = {"ignored": (".attn.bias", ".attn.masked_bias"), "heads": HEADS}  # constant masks
        words["tied"] = {"lm_head.weight": "wte.weight"}
        take_weights(model, model.stored(), weights, folder, prefix="transformer.", device=device, **words)
        return model.eval()

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, which `GPT2LMHeadModel.from_pretrained` reads."""
        ours = vars(self.config) | {"vocab_size": self.vocab_size, "embedding_dropout": self.embedding_dropout}
        config = {field: ours[name] for field, name in FIELDS.honoured.items()}
        config["activation_function"] = activation_written(self.config.activation)
        head = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}
        write_pretrained(self, self.stored("transformer."), head | config, folder)

    def stored(self, prefix: str = "") -> dict[str, Stored]:
        """Which tensor of GPT-2 each parameter is."""
        table = {
            "tokens.weight": Stored((f"{prefix}wte.weight",)),
            "positions.weight": Stored((f"{prefix}wpe.weight",)),
        }
        for n in range(self.config.depth):
            ours, theirs = f"blocks.{n}.", f"{prefix}h.{n}."
            for here, there, matrix in (
                ("self_attention_norm", "ln_1", False),
                ("self_attention.project", "attn.c_attn", True),
                ("self_attention.join", "attn.c_proj", True),
                ("feed_forward_norm", "ln_2", False),
                ("feed_forward.expand", "mlp.c_fc", True),
                ("feed_forward.contract", "mlp.c_proj", True),
            ):
                table[f"{ours}{here}.weight"] = Stored((f"{theirs}{there}.weight",), transposed=matrix)
                table[f"{ours}{here}.bias"] = Stored((f"{theirs}{there}.bias",))
        for part in ("weight", "bias"):
            table[f"norm.{part}"] = Stored((f"{prefix}ln_f.{part}",))
        return table
