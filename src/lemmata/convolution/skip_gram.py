r"""Word embeddings from the company that words keep: the log-bilinear model, and negative sampling."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.skip_gram_sweep import AliasTable, alias_table, sweep_pairs
from lemmata.marks import system

__all__ = ["SkipGram", "cooccurring_pairs", "thinned", "unigram_distribution"]


@system(
    "skipgram",
    title="Skip-gram",
    kind="module",
    example="SkipGram(vocab_size=20, dimensions=4)(torch.randint(20, (3,)))",
)
class SkipGram(nn.Module):
    r"""Two vectors for each word, $x_w$ where it is given and $y_\mu$ where it is predicted.

    $$ P(\mu \mid w) = \frac{\exp(x_w^\top y_\mu)}{\sum_\nu \exp(x_w^\top y_\nu)}, \qquad
       \ell^{\text{neg}}_{w,\mu} = -\ln\sigma(x_w^\top y_\mu)
       - \beta\, \mathbb E_{\nu \sim D} \ln\sigma(-x_w^\top y_\nu) $$

    `loss` is the first model's negative log-likelihood, whose sum runs over the whole vocabulary;
    `negative_sampling_loss` replaces it by a few words drawn from a distribution $D$, and `sweep` is a pass of
    stochastic gradient descent on it without autograd, at the speed of C. Initially the $x_w$ are small and the
    $y_\mu$ zero, as in word2vec.

    Shapes:
        words: (...)    returns: scores (..., vocab_size)

    Claims: embed.definition, embed.log_bilinear, embed.negative_sampling
    Source: T. Mikolov et al., Distributed representations of words and phrases and their compositionality (2013);
        the optimum: O. Levy and Y. Goldberg, Neural word embedding as implicit matrix factorization (2014).
    Differs: a sweep updates in batches, so that the same seed gives the same vectors; a negative may be the observed
        word, as in the formula; frequent words are left out by `thinned`, if at all.

    >>> model = SkipGram(vocab_size=100, dimensions=8)
    >>> model(torch.tensor([3, 5])).shape
    torch.Size([2, 100])
    >>> model.loss(torch.tensor([3]), torch.tensor([7]))
    tensor(4.6052, grad_fn=<NllLossBackward0>)
    """

    def __init__(
        self,
        vocab_size: int,
        dimensions: int = 64,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = validate.count("vocab_size", vocab_size, least=2)
        self.dimensions = validate.count("dimensions", dimensions)
        place = {"device": device, "dtype": dtype}
        self.given = nn.Embedding(vocab_size, dimensions, **place)
        self.predicted = nn.Embedding(vocab_size, dimensions, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial vectors anew."""
        nn.init.uniform_(self.given.weight, -0.5 / self.dimensions, 0.5 / self.dimensions)
        nn.init.zeros_(self.predicted.weight)

    def forward(self, words: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch vocab"]:
        return self.embed(words) @ self.predicted.weight.mT  # (..., vocab_size)

    def embed(self, words: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dimensions"]:
        """The vectors of these words."""
        return self.given(validate.tokens("words", words, self.vocab_size))

    def loss(self, words: Int[Tensor, "batch"], contexts: Int[Tensor, "batch"]) -> Float[Tensor, ""]:
        """The mean of -ln P(context | word) over the pairs."""
        validate.tokens("contexts", contexts, self.vocab_size)
        _as_many(words, contexts)
        return functional.cross_entropy(self(words), contexts)

    def negative_sampling_loss(
        self,
        words: Int[Tensor, "batch"],
        contexts: Int[Tensor, "batch"],
        negatives: Int[Tensor, "batch samples"],
        beta: float | None = None,
    ) -> Float[Tensor, ""]:
        """The mean loss of the pairs; the mean over the negatives, drawn from D, stands for the expectation.

        `beta` is the number of negatives where it is not given, so that each of them counts once, as in word2vec.
        """
        for name, values in (("contexts", contexts), ("negatives", negatives)):
            validate.tokens(name, values, self.vocab_size)
        _as_many(words, contexts)
        if negatives.ndim != 2 or len(negatives) != len(words) or not negatives.shape[1]:
            raise ValueError(f"negatives must be ({len(words)}, samples), got shape {tuple(negatives.shape)}")
        beta = negatives.shape[1] if beta is None else validate.positive("beta", beta)
        x = self.embed(words)  # (batch, dimensions)
        observed = (x * self.predicted(contexts)).sum(-1)  # (batch,)
        drawn = torch.einsum("bd,bsd->bs", x, self.predicted(negatives))  # (batch, samples)
        # ln(1 - sigma(z)) = ln sigma(-z), which does not overflow
        return -(functional.logsigmoid(observed) + beta * functional.logsigmoid(-drawn).mean(1)).mean()

    @torch.no_grad()
    def sweep(
        self,
        pairs: Int[Tensor, "pairs 2"],
        distribution: Float[Tensor, "vocab"] | AliasTable,
        lr: float = 0.025,
        samples: int = 5,
        batch_size: int = 256,
        generator: torch.Generator | None = None,
    ) -> float:
        """One pass of stochastic gradient descent over pairs in their order; the mean loss of a pair on the way.

        A step is `lr` times the gradient of the losses summed over a batch, with `samples` negatives for each pair. A
        distribution that serves for many passes is prepared once: `alias_table(distribution)`.
        """
        if validate.tensor("pairs", pairs).ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise ValueError(f"pairs must be (pairs, 2) with at least one pair, got shape {tuple(pairs.shape)}")
        validate.tokens("pairs", pairs, self.vocab_size)
        validate.positive("lr", lr)
        validate.count("samples", samples)
        validate.count("batch_size", batch_size)
        table = distribution if isinstance(distribution, AliasTable) else alias_table(distribution)
        if len(table.keep) != self.vocab_size:
            raise ValueError(f"distribution must be over {self.vocab_size} words, got {len(table.keep)}")
        weights = self.given.weight.detach(), self.predicted.weight.detach()
        for name, values in (("pairs", pairs), ("distribution", table.keep)):
            if values.device != weights[0].device:
                where = f"{weights[0].device}, where the vectors are, got {values.device}"
                raise ValueError(f"{name} must be on {where}: use {name}.to({str(weights[0].device)!r})")
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), generator=generator, device=device))
        return sweep_pairs(*weights, pairs.long(), table, lr, samples, batch_size, seed)

    @torch.no_grad()
    def nearest(self, words: Int[Tensor, "batch"], count: int = 5) -> Int[Tensor, "batch count"]:
        """For each word the others whose vectors point most nearly in the same direction, nearest first."""
        validate.count("count", count, most=self.vocab_size - 1)
        if validate.tokens("words", words, self.vocab_size).ndim != 1:
            raise ValueError(f"words must be one row of words, got shape {tuple(words.shape)}")
        unit = functional.normalize(self.given.weight, dim=1)  # (vocab_size, dimensions)
        cosines = functional.normalize(self.embed(words), dim=1) @ unit.mT  # (batch, vocab_size)
        cosines.scatter_(1, words[:, None].long(), -torch.inf)  # a word is no neighbour of its own
        return cosines.topk(count).indices

    def extra_repr(self) -> str:
        return f"vocab_size={self.vocab_size}, dimensions={self.dimensions}"


def cooccurring_pairs(tokens: Int[Tensor, "time"], window: int = 5) -> Int[Tensor, "pairs 2"]:
    """All pairs (word, context) of words at most `window` places apart, each in both orders.

    >>> cooccurring_pairs(torch.tensor([4, 5, 6]), window=1).tolist()
    [[4, 5], [5, 6], [5, 4], [6, 5]]
    """
    if validate.tensor("tokens", tokens).ndim != 1 or len(tokens) < 2:
        raise ValueError(f"tokens must be one row of at least 2 words, got shape {tuple(tokens.shape)}")
    validate.count("window", window)
    apart = range(1, min(window, len(tokens) - 1) + 1)
    ahead = torch.cat([torch.stack([tokens[:-d], tokens[d:]], dim=1) for d in apart])  # (pairs / 2, 2)
    return torch.cat([ahead, ahead.flip(1)])


def unigram_distribution(tokens: Int[Tensor, "*shape"], vocab_size: int, power: float = 0.75) -> Float[Tensor, "vocab"]:
    """The distribution of negatives: the words' frequencies to a power, 1 for the unigram distribution itself.

    Draw from it with `torch.multinomial(distribution, count, replacement=True)`.

    >>> unigram_distribution(torch.tensor([0, 0, 0, 1]), vocab_size=3, power=1.0)
    tensor([0.7500, 0.2500, 0.0000])
    """
    validate.tokens("tokens", tokens, validate.count("vocab_size", vocab_size))
    validate.number("power", power, least=0)
    if not tokens.numel():
        raise ValueError("tokens must not be empty")
    counts = torch.bincount(tokens.flatten(), minlength=vocab_size)
    weights = torch.where(counts > 0, counts.to(torch.get_default_dtype()) ** power, 0.0)  # 0^0 must not be 1
    return weights / weights.sum()


def thinned(
    tokens: Int[Tensor, "time"], vocab_size: int, threshold: float = 1e-3, generator: torch.Generator | None = None
) -> Int[Tensor, "kept"]:
    r"""The text without most of its frequent words: a word of frequency f is kept with probability $\sqrt{t/f} + t/f$.

    Their neighbours come nearer to each other, so that a window holds more of the words that tell something.

    >>> len(thinned(torch.zeros(10000, dtype=torch.int64), vocab_size=2, threshold=0.01)) in range(950, 1250)
    True
    """
    validate.number("threshold", threshold, above=0)
    if validate.tensor("tokens", tokens).ndim != 1:
        raise ValueError(f"tokens must be one row of words, got shape {tuple(tokens.shape)}")
    frequency = unigram_distribution(tokens, vocab_size, power=1.0)[tokens].double()
    source = "cpu" if generator is None else generator.device
    kept = (threshold / frequency).sqrt() + threshold / frequency
    return tokens[
        torch.rand(len(tokens), dtype=torch.float64, generator=generator, device=source).to(kept.device) < kept
    ]


def _as_many(words: Tensor, contexts: Tensor) -> None:
    if words.ndim != 1 or not len(words) or words.shape != contexts.shape:
        shapes = f"{tuple(words.shape)} and {tuple(contexts.shape)}"
        raise ValueError(f"words and contexts must be two rows of the same length, got shapes {shapes}")
