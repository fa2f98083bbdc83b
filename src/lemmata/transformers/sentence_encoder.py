r"""Sentences as vectors whose directions say what they mean: the pooled tokens of a BERT."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating
from lemmata.transformers.bert import Bert
from lemmata.transformers.pretrained import read_config, read_json
from lemmata.transformers.wordpiece import WordPiece

__all__ = ["SentenceEncoder", "pooled_tokens"]

# Ways to make one vector of many, by the fields of sentence-transformers' folders.
POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_max_tokens": "max"}


def pooled_tokens(
    tokens: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch time"], how: str = "mean"
) -> Float[Tensor, "batch width"]:
    r"""One vector for each text: the mean of its tokens, the first of them, or the largest value of each coordinate.

    >>> tokens = torch.tensor([[[1.0, 4.0], [3.0, 0.0], [9.0, 9.0]]])
    >>> pooled_tokens(tokens, torch.tensor([[True, True, False]]))
    tensor([[2., 2.]])
    """
    validate.one_of("how", how, POOLING.values())
    if how == "first":
        return tokens[:, 0]
    there = mask[..., None]  # (batch, time, 1)
    if how == "max":
        return tokens.masked_fill(~there, -torch.inf).amax(1)
    return (tokens * there).sum(1) / there.sum(1)  # (batch, width)


@system(
    "sentence_encoder",
    title="Sentence embeddings",
    kind="module",
    example="SentenceEncoder(Bert(40, width=8, depth=1, heads=2, hidden=8, pooling=False), "
    "WordPiece.train(['a cat'], vocab_size=40))"
    "(torch.randint(40, (4, 7)), torch.zeros(4, 7).long(), torch.ones(4, 7).bool())",
)
class SentenceEncoder(nn.Module):
    r"""A BERT and its tokeniser that give each text one vector; the inner product of two is their similarity.

    $$ e(x) = \frac{m}{\|m\|}, \qquad m = \frac1T \sum_{t=1}^T h_{L,t} $$

    over the tokens of the text, padding left out. `SentenceEncoder.from_pretrained(folder)` reads a folder of
    sentence-transformers (all-MiniLM-L6-v2 and its like) or any folder of a BERT with a vocab.txt.

    Shapes:
        x, segments, mask: (batch, time), from the tokeniser    returns: (batch, width)

    Source: Reimers and Gurevych 2019.

    >>> tokenizer = WordPiece.train(["a cat sat", "a dog sat"], vocab_size=40)
    >>> encoder = SentenceEncoder(Bert(len(tokenizer.vocab), width=16, depth=1, heads=2, hidden=32), tokenizer)
    >>> encoder.embed(["a cat", "a dog sat"]).shape
    torch.Size([2, 16])
    """

    def __init__(
        self,
        bert: Bert,
        tokenizer: WordPiece,
        pooling: str = "mean",
        normalised: bool = True,
        max_length: int | None = None,
    ) -> None:
        super().__init__()
        if len(tokenizer.vocab) > bert.vocab_size:
            raise ValueError(
                f"tokenizer has {len(tokenizer.vocab)} pieces, but bert knows {bert.vocab_size} tokens: take those of "
                "one folder"
            )
        self.bert, self.tokenizer = bert, tokenizer
        self.pooling = validate.one_of("pooling", pooling, POOLING.values())
        self.normalised = validate.flag("normalised", normalised)
        longest = bert.config.max_length
        self.max_length = validate.count("max_length", longest if max_length is None else max_length, 2, longest)

    def forward(
        self, x: Int[Tensor, "batch time"], segments: Int[Tensor, "batch time"], mask: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch width"]:
        vectors = pooled_tokens(self.bert(x, segments, mask).tokens, mask, self.pooling)  # (batch, width)
        return functional.normalize(vectors, dim=-1) if self.normalised else vectors

    def embed(self, texts: str | Sequence[str], batch_size: int = 32) -> Float[Tensor, "texts width"]:
        """The vectors of texts, in their order; texts of about the same length share a batch, so little is padded."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        validate.count("batch_size", batch_size)
        if not texts:
            raise ValueError("texts must hold at least 1 text, got none")
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        device, found = next(self.parameters()).device, []
        with evaluating(self):
            for start in range(0, len(order), batch_size):
                chosen = [texts[index] for index in order[start : start + batch_size]]
                found.append(self(*self.tokenizer(chosen, max_length=self.max_length, device=device)))
        return torch.cat(found)[torch.tensor(order, device=device).argsort()]  # (texts, width)

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> "SentenceEncoder":
        """An encoder from a folder, in evaluation mode; what its modules.json asks for beyond pooling is refused."""
        folder = Path(folder)
        tokenizer = WordPiece.from_pretrained(folder)
        settings = _pooling_settings(folder, tokenizer.lower)
        return cls(Bert.from_pretrained(folder, device, dtype), tokenizer, **settings).eval()


def _pooling_settings(folder: Path, lower: bool) -> dict[str, Any]:
    """How the folder pools, whether it normalises, and where it cuts."""
    settings: dict[str, Any] = {}
    if (folder / "sentence_bert_config.json").exists():
        config = read_config(folder / "sentence_bert_config.json")
        settings["max_length"] = config.get("max_seq_length")
        if config.get("do_lower_case") and not lower:
            raise ValueError(f"{folder}: do_lower_case is true, but the tokeniser keeps capitals: set it to false")
    if not (folder / "modules.json").exists():
        return settings
    settings["normalised"] = False
    for module in _module_list(folder / "modules.json"):
        kind = module["type"].rpartition(".")[2]
        if kind == "Normalize":
            settings["normalised"] = True
        elif kind == "Pooling":
            settings["pooling"] = _pooling_mode(folder / module["path"] / "config.json")
        elif kind != "Transformer":
            raise ValueError(f"{folder} asks for a module {kind}, which is not supported: Pooling and Normalize are")
    return settings


def _module_list(file: Path) -> list[dict[str, str]]:
    """The modules that a modules.json lists, each with its type and its folder."""
    found = read_json(file)
    try:
        modules = [{"type": str(each["type"]), "path": str(each["path"])} for each in found]
    except (TypeError, KeyError) as error:
        raise ValueError(f"{file} cannot be read as a list of modules ({error}): copy it again") from None
    for module in modules:
        if Path(module["path"]).name != module["path"]:
            raise ValueError(f"{file} must name folders beside it, got {module['path']!r}: copy it again")
    return modules


def _pooling_mode(file: Path) -> str:
    """The one way of pooling that a config asks for."""
    asked = [field for field, value in read_config(file).items() if field.startswith("pooling_mode") and value is True]
    if len(asked) != 1 or asked[0] not in POOLING:
        raise ValueError(f"{file}: {' and '.join(asked) or 'no pooling'} is not supported: one of {', '.join(POOLING)}")
    return POOLING[asked[0]]
