r"""The gradient penalty of a critic: slopes of one between real and generated examples."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["gradient_norms", "gradient_penalty"]


@system("gradient_penalty", title="Gradient penalty", kind="function")
def gradient_penalty(
    critic: Callable[[Tensor], Tensor],
    real: Float[Tensor, "batch ..."],
    fake: Float[Tensor, "batch ..."],
    *,
    target: float = 1.0,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    r"""How far the slope of a critic is from `target`, at a random point between each real and generated example.

    $$ \mathbb E\,\big(\|\nabla_{\hat x} \eta(\hat x)\|_2 - 1\big)^2, \qquad \hat x = t x + (1 - t) \tilde x,\quad
       t \sim U(0, 1) $$

    With `target=0` and the real examples twice, it is the R1 penalty. The gradient of the penalty with respect to the
    critic's weights is a second derivative: activations such as relu, whose own is zero, are fine.

    Shapes:
        real, fake: (batch, ...), of one shape    returns: one number

    Claims: wasserstein.wgan
    Source: I. Gulrajani et al., Improved training of Wasserstein GANs (2017).

    >>> critic = torch.nn.Linear(6, 1, bias=False)
    >>> _ = torch.nn.init.constant_(critic.weight, 1.0)  # ||w|| is the root of 6
    >>> gradient_penalty(critic, torch.randn(9, 6), torch.randn(9, 6)).round(decimals=3)
    tensor(2.1010, grad_fn=<RoundBackward1>)
    """
    validate.number("target", target, least=0)
    return (gradient_norms(critic, real, fake, generator=generator) - target).square().mean()


def gradient_norms(
    critic: Callable[[Tensor], Tensor],
    real: Float[Tensor, "batch ..."],
    fake: Float[Tensor, "batch ..."],
    *,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch"]:
    r"""Of each example the 2-norm of the critic's gradient over all its values, with a graph to differentiate again.

    Shapes:
        real, fake: (batch, ...), of one shape    returns: (batch,)

    >>> gradient_norms(lambda x: x.square().sum((1, 2)), torch.ones(2, 3, 3), torch.ones(2, 3, 3))
    tensor([6., 6.], grad_fn=<LinalgVectorNormBackward0>)
    """
    if real.shape != fake.shape or real.ndim < 2 or len(real) == 0:
        shapes = f"{tuple(real.shape)} and {tuple(fake.shape)}"
        raise ValueError(f"real and fake must be (batch, ...) of one shape and not empty, got {shapes}")
    part = torch.rand(len(real), generator=generator, device=real.device, dtype=real.dtype)  # one number an example
    part = part.reshape(-1, *[1] * (real.ndim - 1))  # (batch, 1, ...)
    between = torch.lerp(fake.detach(), real.detach(), part).requires_grad_()
    with torch.enable_grad():
        score = critic(between)
        # Of a sum each example's own gradient is left, where the critic looks at each alone.
        (slope,) = torch.autograd.grad(score.sum(), between, create_graph=True)
    return torch.linalg.vector_norm(slope.flatten(1), dim=1)
