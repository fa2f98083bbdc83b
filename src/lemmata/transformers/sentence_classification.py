r"""What a sentence is as a whole, by its first token: BERT fine-tuned for sentiment and other classes."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata.marks import system
from lemmata.transformers.fine_tuned import FineTuned

__all__ = ["SentenceClassifier"]


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
