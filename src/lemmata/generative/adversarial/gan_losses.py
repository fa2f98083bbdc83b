r"""What the two players of a generative adversarial network lower, from the discriminator's logits."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["discriminator_loss", "minimax_loss", "non_saturating_loss"]


@system("discriminator_loss", title="Loss of a discriminator", kind="function")
def discriminator_loss(real: Float[Tensor, "*real"], fake: Float[Tensor, "*fake"]) -> Float[Tensor, ""]:
    r"""The logistic loss of telling real from generated examples, both kinds weighted by a half.

    $$ -\ell = -\tfrac12 \mathbb E_{x \sim p} \ln \sigma(a(x))
       -\tfrac12 \mathbb E_{x \sim p_\theta} \ln(1 - \sigma(a(x))), \qquad V = 2\ell $$

    Each kind has its own mean, so that a batch may hold more of one than of the other. Logits may be infinite.

    Shapes:
        real, fake: logits of any shapes, one or more an example    returns: one number

    Claims: gan.mixture, gan.value, gan.bayes_discriminator, gan.jsd_objective
    Source: I. Goodfellow et al., Generative adversarial nets (2014).
    Differs: averaged over the label, so half of the sum of both means.

    >>> discriminator_loss(torch.zeros(3), torch.zeros(5))  # who cannot tell them apart pays ln 2
    tensor(0.6931)
    """
    _check_logits(real=real, fake=fake)
    return -(functional.logsigmoid(real).mean() + functional.logsigmoid(-fake).mean()) / 2


@system("minimax_loss", title="Minimax loss of a decoder", kind="function")
def minimax_loss(fake: Float[Tensor, "*fake"]) -> Float[Tensor, ""]:
    r"""The part of the value that the decoder moves; its gradient vanishes where the discriminator is sure.

    $$ \mathbb E_{x \sim p_\theta} \ln(1 - \sigma(a(x))), \qquad \frac{d}{da} \ln(1 - \sigma(a)) = -\sigma(a) $$

    Shapes:
        fake: logits of any shape    returns: one number

    Claims: gan.non_saturating
    Source: I. Goodfellow et al. 2014.

    >>> minimax_loss(torch.zeros(4))
    tensor(-0.6931)
    """
    _check_logits(fake=fake)
    return functional.logsigmoid(-fake).mean()


@system("non_saturating_loss", title="Non-saturating loss of a decoder", kind="function")
def non_saturating_loss(fake: Float[Tensor, "*fake"]) -> Float[Tensor, ""]:
    r"""The logistic loss with the label turned around: steep where the discriminator is sure.

    $$ -\mathbb E_{x \sim p_\theta} \ln \sigma(a(x)), \qquad -\frac{d}{da} \ln \sigma(a) = -(1 - \sigma(a)) $$

    Shapes:
        fake: logits of any shape    returns: one number

    Claims: gan.non_saturating
    Source: I. Goodfellow et al. 2014.

    >>> logits = torch.tensor([-8.0], requires_grad=True)
    >>> [round(torch.autograd.grad(loss(logits), logits)[0].item(), 4) for loss in (minimax_loss, non_saturating_loss)]
    [-0.0003, -0.9997]
    """
    _check_logits(fake=fake)
    return -functional.logsigmoid(fake).mean()


def _check_logits(**logits: Tensor) -> None:
    """Some logits of each kind: the mean of none is no number."""
    for name, value in logits.items():
        if not validate.tensor(name, value).is_floating_point():
            raise TypeError(f"{name} must hold logits as floating-point numbers, got {value.dtype}: use {name}.float()")
        if value.numel() == 0:
            raise ValueError(f"{name} must hold at least one logit, got shape {tuple(value.shape)}")
