r"""What BERT learns from: tokens that were hidden, and whether one sentence follows another."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import activation as activation_named
from lemmata.marks import system
from lemmata.transformers.bert import POSITIONS, Bert, bert_arguments, read_bert
from lemmata.transformers.masking import IGNORED
from lemmata.transformers.pretrained import Stored, take_weights, write_pretrained
from lemmata.transformers.transformer_block import activated

__all__ = ["BertForPretraining", "MaskedLanguageHead", "PretrainingOutput"]


class PretrainingOutput(NamedTuple):
    """Logits of what each token was, and of whether the second sentence follows: the first logit says that it does."""

    tokens: Float[Tensor, "batch time vocab_size"]
    next_sentence: Float[Tensor, "batch 2"] | None


class MaskedLanguageHead(nn.Module):
    r"""Logits of the tokens from what an encoder knows of a place: $E\,\mathrm{LN}(\phi(Wh + b)) + c$.

    $E$ are the vectors by which the encoder reads tokens; they are given, and are no parameters of the head.

    Shapes:
        h: (..., width)    vectors: (vocab_size, width)    returns: (..., vocab_size)

    Claims: bert.mlm

    >>> MaskedLanguageHead(vocab_size=99, width=8)(torch.randn(2, 5, 8), torch.randn(99, 8)).shape
    torch.Size([2, 5, 99])
    """

    def __init__(
        self,
        vocab_size: int,
        width: int,
        activation: str = "gelu",
        eps: float = 1e-12,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.activation = activation_named(activation).name
        factory_kwargs: Any = {"device": device, "dtype": dtype}
        self.transform = nn.Linear(validate.count("width", width), width, **factory_kwargs)
        self.norm = nn.LayerNorm(width, eps, **factory_kwargs)
        self.bias = nn.Parameter(torch.zeros(validate.count("vocab_size", vocab_size), **factory_kwargs))

    def forward(
        self, h: Float[Tensor, "... width"], vectors: Float[Tensor, "vocab_size width"]
    ) -> Float[Tensor, "... vocab_size"]:
        h = self.norm(activated(self.activation, self.transform(h)))  # (..., width)
        return functional.linear(h, vectors, self.bias)  # (..., vocab_size)


@system(
    "bert_for_pretraining",
    title="BERT with its pre-training heads",
    kind="module",
    example="BertForPretraining(vocab_size=20, width=16, depth=1, heads=2, hidden=32)(torch.randint(20, (4, 7)))",
)
class BertForPretraining(nn.Module):
    r"""BERT with a softmax over the tokens at every place, and one over "B follows A" and "B is any sentence".

    $$ \mathcal L = \mathcal L_{\mathrm{MLM}} + \mathcal L_{\mathrm{NSP}} $$

    Both losses are means, the first over the chosen tokens (`mask_tokens`), the second over the pairs of sentences
    (`draw_pairs`), and both are taken of the same batch. `settings` are those of `Bert`. Without `next_sentence` there
    is the masked-language head alone. `from_pretrained` reads Hugging Face's BertForPreTraining and BertForMaskedLM,
    `save_pretrained` writes them.

    Shapes:
        x, segments: (batch, time)    mask: as for `Bert`
        returns: tokens (batch, time, vocab_size), next_sentence (batch, 2), or None

    Claims: bert.model, bert.mlm, bert.nsp, bert.bidirectional
    Source: Devlin et al. 2019.

    >>> model = BertForPretraining(vocab_size=99, width=32, depth=2, heads=4, hidden=64)
    >>> [tuple(part.shape) for part in model(torch.randint(99, (3, 10)))]
    [(3, 10, 99), (3, 2)]
    """

    def __init__(
        self,
        vocab_size: int = 30_522,
        next_sentence: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        if "pooling" in settings:
            raise ValueError("pooling belongs to the next sentence: say next_sentence instead")
        pooling = validate.flag("next_sentence", next_sentence)
        self.encoder = Bert(vocab_size, pooling=pooling, device=device, dtype=dtype, **settings)
        config = self.encoder.config
        with torch.device(device or torch.get_default_device()):
            self.masked_language = MaskedLanguageHead(vocab_size, config.width, config.activation, config.eps)
            self.next_sentence = nn.Linear(config.width, 2) if next_sentence else None
        self.to(dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew as BERT does."""
        self.encoder.reset_parameters()
        self.masked_language.norm.reset_parameters()
        nn.init.zeros_(self.masked_language.bias)
        for layer in (self.masked_language.transform, self.next_sentence):
            if layer is not None:
                nn.init.normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(
        self,
        x: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time *_"] | None = None,
    ) -> PretrainingOutput:
        h, pooled = self.encoder(x, segments, mask)  # (batch, time, width), (batch, width)
        tokens = self.masked_language(h, self.encoder.tokens.weight)  # (batch, time, vocab_size)
        return PretrainingOutput(tokens, None if self.next_sentence is None else self.next_sentence(pooled))

    def losses(
        self,
        x: Int[Tensor, "batch time"],
        targets: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time *_"] | None = None,
        follows: Bool[Tensor, " batch"] | None = None,
    ) -> dict[str, Float[Tensor, ""]]:
        r"""The mean negative log-likelihoods in nats: of the chosen tokens, of the pairs, and their sum as "loss".

        `targets` are the true tokens where one was chosen, and -100 elsewhere; `follows` says of each pair whether B
        follows A. Logits over the vocabulary are made for the chosen tokens only.
        """
        if targets.shape != x.shape:
            raise ValueError(f"targets must have the shape of x, {tuple(x.shape)}, got {tuple(targets.shape)}")
        if (follows is None) != (self.next_sentence is None):
            raise ValueError("a model with next_sentence needs follows, and only such a model takes it")
        h, pooled = self.encoder(x, segments, mask)  # (batch, time, width), (batch, width)
        chosen = targets != IGNORED
        logits = self.masked_language(h[chosen], self.encoder.tokens.weight)  # (chosen, vocab_size)
        wanted = validate.tokens("targets", targets[chosen], self.encoder.vocab_size).long()
        # A batch in which no token was chosen teaches nothing about tokens: the loss is 0, not 0 / 0.
        found = {"masked_language": functional.cross_entropy(logits, wanted, reduction="sum") / max(len(wanted), 1)}
        if self.next_sentence is not None and follows is not None:
            if follows.shape != x.shape[:1]:
                raise ValueError(f"follows must be ({len(x)},), one for each pair, got shape {tuple(follows.shape)}")
            other = follows.logical_not().long()  # the class 0 says that B follows, as in the original
            found["next_sentence"] = functional.cross_entropy(self.next_sentence(pooled), other)
        return {"loss": torch.stack(list(found.values())).sum(), **found}

    # --- folders in Hugging Face's format ---

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> "BertForPretraining":
        """The encoder and its heads from a folder with config.json and model.safetensors, in evaluation mode."""
        config, weights = read_bert(folder)
        next_sentence = "cls.seq_relationship.weight" in weights
        model = cls(**bert_arguments(config, folder), next_sentence=next_sentence, device="meta", dtype=dtype)
        # The decoder's weight and bias are the vectors of the tokens and the head's bias under other names.
        decoder = "cls.predictions.decoder."
        tied = {f"{decoder}weight": "bert.embeddings.word_embeddings.weight", f"{decoder}bias": "cls.predictions.bias"}
        take_weights(model, model.stored(), weights, folder, ignored=POSITIONS, tied=tied, device=device)
        return model.eval()

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, which Hugging Face's from_pretrained reads."""
        kind = "BertForMaskedLM" if self.next_sentence is None else "BertForPreTraining"
        write_pretrained(self, self.stored(), {"architectures": [kind], **self.encoder.stored_config()}, folder)

    def stored(self) -> dict[str, Stored]:
        """Which tensors of Hugging Face's model each parameter is."""
        table = {f"encoder.{ours}": theirs for ours, theirs in self.encoder.stored("bert.").items()}
        table["masked_language.bias"] = Stored(("cls.predictions.bias",))
        for part in ("weight", "bias"):
            table[f"masked_language.transform.{part}"] = Stored((f"cls.predictions.transform.dense.{part}",))
            table[f"masked_language.norm.{part}"] = Stored((f"cls.predictions.transform.LayerNorm.{part}",))
            table[f"next_sentence.{part}"] = Stored((f"cls.seq_relationship.{part}",))
        return table
