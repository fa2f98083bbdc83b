r"""BERT with one linear layer on top, for a task: what the three heads have in common, and the one for sentences."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.bert import POSITIONS, Bert, bert_arguments, read_bert
from lemmata.transformers.pretrained import Stored, class_labels, take_weights, write_pretrained

__all__ = ["FineTuned", "SentenceClassifier"]

Model = TypeVar("Model", bound="FineTuned")


class FineTuned(nn.Module):
    r"""A BERT and a linear layer that reads what it says; a subclass says of what, and all weights learn.

    `classes` are the names of the outputs, or how many there are; `settings` are those of `Bert`. `on(encoder)` puts a
    new layer on an encoder that is there, `from_pretrained(folder)` reads encoder and layer in Hugging Face's format.
    """

    architecture: ClassVar[str]  # Hugging Face's class
    head: ClassVar[str] = "classifier"  # and its name of the linear layer
    pooling: ClassVar[bool] = False  # whether the sentence as a whole is what is read

    def __init__(
        self,
        vocab_size: int = 30_522,
        classes: int | Sequence[str] = 2,
        classifier_dropout: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        if "pooling" in settings:
            raise ValueError(f"{type(self).__name__} has pooling={self.pooling}: leave the argument out")
        self.classes = class_names(classes)
        self.encoder = Bert(vocab_size, pooling=self.pooling, device=device, dtype=dtype, **settings)
        self.dropout = classifier_dropout
        if classifier_dropout is not None:
            validate.fraction("classifier_dropout", classifier_dropout)
        with torch.device(device or torch.get_default_device()):
            self.classifier = nn.Linear(self.encoder.config.width, len(self.classes), dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew as BERT does."""
        self.encoder.reset_parameters()
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.zeros_(self.classifier.bias)

    @classmethod
    def on(
        cls: type[Model], encoder: Bert, classes: int | Sequence[str] = 2, classifier_dropout: float | None = None
    ) -> Model:
        """A copy of an encoder with a new layer on top, ready to be fine-tuned; what pools is new where it has none."""
        place = encoder.tokens.weight
        settings: dict[str, Any] = {"device": place.device, "dtype": place.dtype, **encoder_settings(encoder)}
        model = cls(classes=classes, classifier_dropout=classifier_dropout, **settings)
        parts = {
            name: each for name, each in encoder.state_dict().items() if cls.pooling or not name.startswith("pool")
        }
        model.encoder.load_state_dict({**model.encoder.state_dict(), **parts})
        return model

    def classified(self, h: Tensor) -> Tensor:
        """The logits of some vectors of the encoder: (..., width) to (..., classes)."""
        rate = self.encoder.config.dropout if self.dropout is None else self.dropout
        return self.classifier(functional.dropout(h, rate, self.training))

    # --- folders in Hugging Face's format ---

    @classmethod
    def from_pretrained(
        cls: type[Model], folder: Path | str, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Model:
        """Encoder and layer from a folder with config.json and model.safetensors, in evaluation mode."""
        config, weights = read_bert(folder)
        if f"{cls.head}.weight" not in weights:
            raise ValueError(
                f"{folder} holds no tensor {cls.head}.weight, so it is no {cls.architecture}: "
                f"{cls.__name__}.on(Bert.from_pretrained(folder)) puts a new layer on its encoder"
            )
        rows = weights.described(f"{cls.head}.weight").shape[0]
        names = class_labels(config, folder)
        if names and set(names) != {str(n) for n in range(rows)}:
            raise ValueError(f"{folder}: id2label names {len(names)} classes, but {cls.head}.weight has {rows} rows")
        classes = [names[str(n)] for n in range(rows)] if names else rows
        settings = {"classes": classes, "classifier_dropout": config.get("classifier_dropout"), "device": "meta"}
        model = cls(**bert_arguments(config, folder), **settings, dtype=dtype)
        take_weights(model, model.stored(), weights, folder, ignored=POSITIONS, device=device)
        return model.eval()

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, which Hugging Face's from_pretrained reads."""
        names = {str(n): name for n, name in enumerate(self.classes)}
        config = {
            "architectures": [self.architecture], **self.encoder.stored_config(), "classifier_dropout": self.dropout,
            "id2label": names, "label2id": {name: int(n) for n, name in names.items()},
        }  # fmt: skip
        write_pretrained(self, self.stored(), config, folder)

    def stored(self) -> dict[str, Stored]:
        """Which tensors of Hugging Face's model each parameter is."""
        table = {f"encoder.{ours}": theirs for ours, theirs in self.encoder.stored("bert.").items()}
        return table | {f"classifier.{part}": Stored((f"{self.head}.{part}",)) for part in ("weight", "bias")}


@system(
    "sentence_classifier",
    title="BERT that classifies sentences",
    kind="module",
    example="SentenceClassifier(20, width=16, depth=1, heads=2, hidden=32)(torch.randint(20, (4, 7)))",
)
class SentenceClassifier(FineTuned):
    r"""A class for a sentence, or for a pair of them, from what BERT says at `[CLS]`.

    $$ p(\cdot \mid x) = \mathrm{softmax}(W \tanh(W_p h_{[\mathrm{CLS}]} + b_p) + b) $$

    Sentiment is the case of two classes. Fine-tuning trains every weight, the encoder's too; leave it as it is with
    `model.encoder.requires_grad_(False)`. `SentenceClassifier.from_pretrained(folder)` reads Hugging Face's
    BertForSequenceClassification, `SentenceClassifier.on(encoder, classes)` puts a new layer on a pre-trained BERT.

    Shapes:
        x, segments: (batch, time)    mask: (batch, time), true where there is a token and no padding
        returns: logits (batch, classes)

    Claims: bert.finetune.sentiment
    Source: Devlin et al. 2019.

    >>> model = SentenceClassifier(99, classes=["pans", "praises"], width=32, depth=2, heads=4, hidden=64)
    >>> model(torch.randint(99, (3, 10))).shape
    torch.Size([3, 2])
    """

    architecture = "BertForSequenceClassification"
    pooling = True

    def forward(
        self,
        x: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch classes"]:
        _, pooled = self.encoder(x, segments, mask)  # (batch, width)
        return self.classified(pooled)  # (batch, classes)


def encoder_settings(encoder: Bert) -> dict[str, Any]:
    """The arguments of an encoder that a model for a task takes: all but pooling, which the task decides."""
    config = {name: value for name, value in vars(encoder.config).items() if name != "pooling"}
    return {"vocab_size": encoder.vocab_size, **config}


def class_names(classes: int | Sequence[str]) -> tuple[str, ...]:
    """Names of classes, which are numbered where there are none, as Hugging Face numbers them."""
    if not isinstance(classes, int):
        names = tuple(classes)
        if isinstance(classes, str) or not names or len(set(names)) < len(names):
            raise ValueError(f"classes must be a number, or names of which no two are alike, got {classes!r}")
        return names
    return tuple(f"LABEL_{n}" for n in range(validate.count("classes", classes)))
