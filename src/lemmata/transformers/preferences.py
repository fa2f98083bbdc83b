r"""Alignment from preferences: a reward learnt from comparisons, and a policy that follows it near a reference."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.gpt import GPT

__all__ = [
    "DPO",
    "Comparisons",
    "RewardModel",
    "aligned_distribution",
    "answer_log_likelihood",
    "preference_loss",
]


class Comparisons(NamedTuple):
    """Pairs of texts of which the first was preferred; true where tokens belong to the answer, false in the prompt."""

    better: Int[Tensor, "pairs time"]
    worse: Int[Tensor, "pairs time"]
    better_answers: Bool[Tensor, "pairs time"]
    worse_answers: Bool[Tensor, "pairs time"]


def preference_loss(better: Float[Tensor, " pairs"], worse: Float[Tensor, " pairs"]) -> Float[Tensor, ""]:
    r"""The mean negative log-likelihood of the comparisons under Bradley and Terry's model.

    $$ P(y_1 \succ y_2 \mid x) = \sigma(r(x, y_1) - r(x, y_2)) $$

    >>> preference_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor(0.6931)
    """
    if validate.tensor("better", better).shape != validate.tensor("worse", worse).shape or not better.numel():
        raise ValueError(
            f"better and worse must be rewards of the same pairs, got {tuple(better.shape)} and {tuple(worse.shape)}"
        )
    return -functional.logsigmoid(better - worse).mean()


def aligned_distribution(
    reference: Float[Tensor, "... answers"], rewards: Float[Tensor, "... answers"], beta: float
) -> Float[Tensor, "... answers"]:
    r"""The policy that is best for the rewards less $\beta$ times its divergence from the reference.

    $$ \pi^* = \arg\max_\pi \mathbb E_\pi[r] - \beta D_{KL}(\pi \| \pi_{ref}) \propto \pi_{ref}\, e^{r/\beta} $$

    For answers that can be listed; answers that the reference never gives stay at zero.

    >>> aligned_distribution(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]), beta=1.0)
    tensor([0.2689, 0.7311])
    """
    validate.positive("beta", beta)
    if validate.tensor("reference", reference).shape != validate.tensor("rewards", rewards).shape:
        shapes = f"{tuple(reference.shape)} and {tuple(rewards.shape)}"
        raise ValueError(f"rewards must be one for each answer of the reference, got shapes {shapes}")
    return (reference.log() + rewards / beta).softmax(-1)


def answer_log_likelihood(
    model: GPT, x: Int[Tensor, "batch time"], answers: Bool[Tensor, "batch time"]
) -> Float[Tensor, " batch"]:
    """ln p(answer | prompt) of each text: the sum over the tokens that belong to the answer, in nats."""
    _check_answers(x, answers)
    return -(model.nll(x[:, :-1], x[:, 1:]) * answers[:, 1:]).sum(1)


@system(
    "reward_model",
    title="Reward model",
    kind="module",
    example="RewardModel(vocab_size=20, width=16, depth=1, heads=2, max_length=32)(torch.randint(20, (4, 7)))",
)
class RewardModel(nn.Module):
    r"""A GPT that gives a text a number, learnt from which of two answers people prefer.

    $$ r(x, y) = w^\top h_L(x, y)_{\text{last}} + b, \qquad
       L = -\ln \sigma\big(r(x, y_{\text{better}}) - r(x, y_{\text{worse}})\big) $$

    Rewards of one prompt are determined up to a constant, since only differences enter.

    Shapes:
        x: (batch, time) tokens    answers: (batch, time), true up to the last token that is read; all if left out
        returns: rewards (batch,)

    Claims: gpt.alignment
    Source: R. A. Bradley and M. E. Terry 1952; L. Ouyang et al., Training language models to follow instructions with
        human feedback (2022).

    >>> RewardModel(vocab_size=20, width=16, depth=1, heads=2, max_length=32)(torch.randint(20, (4, 7))).shape
    torch.Size([4])
    """

    def __init__(
        self,
        vocab_size: int,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        max_length: int = 64,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.gpt = GPT(vocab_size, width, depth, heads, max_length, device=device, dtype=dtype)
        self.head = nn.Linear(width, 1, device=device, dtype=dtype)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(
        self, x: Int[Tensor, "batch time"], answers: Bool[Tensor, "batch time"] | None = None
    ) -> Float[Tensor, " batch"]:
        h = self.gpt.hidden(x)  # (batch, time, width)
        if answers is None:
            return self.head(h[:, -1])[:, 0]
        _check_answers(x, answers)
        last = (answers * torch.arange(x.shape[1], device=x.device)).argmax(1)  # (batch,)
        return self.head(h[torch.arange(len(x), device=x.device), last])[:, 0]

    def loss(self, pairs: Comparisons) -> Float[Tensor, ""]:
        """How badly the rewards explain which answers were preferred."""
        return preference_loss(self(pairs.better, pairs.better_answers), self(pairs.worse, pairs.worse_answers))


@system(
    "dpo",
    title="Direct preference optimisation",
    kind="module",
    example="DPO(vocab_size=20, width=16, depth=1, heads=2, max_length=32)(torch.randint(20, (4, 7)))",
)
class DPO(nn.Module):
    r"""A GPT that learns from preferences, and a copy of what it was before, from which it must not stray.

    $$ L = -\ln \sigma\Big(\beta \ln \frac{\pi(y_{\text{better}} \mid x)}{\pi_{ref}(y_{\text{better}} \mid x)}
       - \beta \ln \frac{\pi(y_{\text{worse}} \mid x)}{\pi_{ref}(y_{\text{worse}} \mid x)}\Big) $$

    The policy $\pi^* \propto \pi_{ref}\, e^{r/\beta}$ says what the reward is: $r = \beta \ln(\pi^*/\pi_{ref})$ up to a
    constant of the prompt, which differences do not see. So the loss of a reward model is one of the policy, and no
    reward model is needed. `DPO.of(gpt)` begins with a GPT that has been trained.

    Shapes:
        x: (batch, time) tokens    returns: logits of the policy (batch, time, vocab_size)

    Claims: gpt.alignment
    Source: R. Rafailov et al., Direct preference optimization (2023).

    >>> model = DPO.of(GPT(vocab_size=20, width=16, depth=1, heads=2, max_length=32), beta=0.5)
    >>> texts, answers = torch.randint(20, (2, 4, 7)), torch.arange(7).expand(4, 7) >= 3
    >>> model.loss(Comparisons(*texts, answers, answers))
    tensor(0.6931, grad_fn=<NegBackward0>)
    """

    def __init__(
        self,
        vocab_size: int,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        max_length: int = 64,
        beta: float = 0.1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.beta = validate.positive("beta", beta)
        self.policy, self.reference = (
            GPT(vocab_size, width, depth, heads, max_length, device=device, dtype=dtype) for _ in range(2)
        )
        self.begin_from(self.policy)

    @classmethod
    def of(cls, gpt: GPT, beta: float = 0.1) -> "DPO":
        """Both policy and reference begin as copies of this one, which must have GPT's usual activation."""
        validate.module("gpt", gpt, GPT)
        sizes = {name: getattr(gpt.config, name) for name in ("width", "depth", "heads", "max_length")}
        first = next(gpt.parameters())
        made = cls(gpt.vocab_size, **sizes, beta=beta, device=first.device, dtype=first.dtype)
        made.begin_from(gpt)
        return made

    def begin_from(self, gpt: GPT) -> None:
        """Take the weights of a GPT for both; the reference never learns."""
        self.policy.load_state_dict(gpt.state_dict())
        self.reference.load_state_dict(gpt.state_dict())
        self.reference.requires_grad_(False)

    def forward(self, x: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocab_size"]:
        return self.policy(x)

    def log_ratio(self, x: Int[Tensor, "batch time"], answers: Bool[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        """ln of how much likelier the answers have become; its mean over answers of the policy estimates the KL."""
        with torch.no_grad():
            before = answer_log_likelihood(self.reference, x, answers)
        return answer_log_likelihood(self.policy, x, answers) - before

    def rewards(self, x: Int[Tensor, "batch time"], answers: Bool[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
        """The rewards for which this policy would be the best, up to a constant for each prompt."""
        return self.beta * self.log_ratio(x, answers)

    def loss(self, pairs: Comparisons) -> Float[Tensor, ""]:
        """How badly the implied rewards explain which answers were preferred."""
        return preference_loss(
            self.rewards(pairs.better, pairs.better_answers), self.rewards(pairs.worse, pairs.worse_answers)
        )


def _check_answers(x: Tensor, answers: Tensor) -> None:
    if validate.tensor("answers", answers).shape != x.shape or answers.dtype is not torch.bool:
        raise ValueError(f"answers must be true or false for each token of {tuple(x.shape)}, got {answers.dtype}")
