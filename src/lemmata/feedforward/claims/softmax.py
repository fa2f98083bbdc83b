"""Softmax and the losses of networks: cross-entropy of many classes and of two, and the squared error."""

import math

import torch
from torch.nn import functional

from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.softmax import binary_cross_entropy, cross_entropy
from lemmata.judge import all_of, always, claim, close, lie, symbolic


def gradient(function, at):
    """By autograd."""
    at = at.clone().requires_grad_()
    return torch.autograd.grad(function(at).sum(), at)[0]


@claim("softmax.definition")
@lie("softmax does not change when the logits are doubled", factor=2.0)
@lie("the columns of a matrix add up to one", axis=0)
@lie("of two classes the first has the probability σ(z₁ + z₂)", sign=1.0)
def softmax_is_a_distribution(draw, factor=1.0, axis=1, sign=-1.0, softmax=torch.softmax):
    """Ratios and sums of probabilities, a constant added, two classes; with logits from tiny to 10,000."""
    logits = draw.normal(8, 5) * torch.tensor(
        [[0.0], [1e-8], [1.0], [1.0], [1.0], [10.0], [1e3], [1e4]], dtype=torch.float64
    )
    p = softmax(logits, 1)
    mild = logits[1:6]
    ratios = softmax(mild, 1)[:, :1] / softmax(mild, 1)
    two = draw.normal(20, 2) * 10
    # Rounding the sum of a logit and a constant moves the exponent by eps times their size.
    shifted = softmax(factor * logits + draw.normal(8, 1) * 10, 1)
    return all_of(
        close(ratios, torch.exp(mild[:, :1] - mild), scale=ratios, ulps=100),
        close(p.sum(axis), 1.0),
        always((p >= 0).flatten()),
        close(shifted, p, scale=1 + logits.abs().amax(1, keepdim=True) + 30),
        close(softmax(two, 1)[:, 0], torch.sigmoid(two[:, 0] + sign * two[:, 1])),
    )


@claim("softmax.cross_entropy")
@lie("bits are taken for nats", unit=math.log(2))
@lie("the gradient is e_y - softmax(z)", sign=-1.0)
@lie("equal logits cost K", uniform=float)
def cross_entropy_is_the_logarithm_of_the_right_probability(
    draw, unit=1.0, sign=1.0, uniform=math.log, loss=cross_entropy
):
    """The loss against softmax and against the logarithm of a sum; its gradient; equal logits; and logits that would
    overflow."""
    logits, y = draw.normal(30, 6) * 3, draw.integers(0, 6, 30)
    right = logits.gather(1, y[:, None])[:, 0]
    p, found = logits.softmax(1), loss(logits, y, reduction="none")
    equal = [loss(torch.full((1, k), 3.0), torch.zeros(1).long()).item() for k in (1, 2, 10, 1000)]
    far = torch.tensor([[1e4, 0.0, -1e4]], dtype=torch.float64).expand(3, 3)
    return all_of(
        close(found, (-right + logits.exp().sum(1).log()) / unit),
        close(found, -p.gather(1, y[:, None])[:, 0].log()),
        close(gradient(lambda z: loss(z, y, reduction="none"), logits), sign * (p - functional.one_hot(y, 6))),
        close(equal, [uniform(k) for k in (1, 2, 10, 1000)], ulps=2**31),  # in float32
        close(loss(far, torch.arange(3), reduction="none"), [0.0, 1e4, 2e4]),
    )


def of_sigmoid(z):
    """log(1 - σ(z))"""
    return torch.log(1 - torch.sigmoid(z))


def of_logit(z):
    """log(1 - z)"""
    return torch.log(1 - z)


@claim("logistic.bce")
@lie("the second logarithm lacks the sigmoid", printed="000/1", second=of_logit)
@lie("the sum is not divided by n", mean=torch.sum)
@lie("the labels are exchanged", one=0.0)
def binary_cross_entropy_is_that_of_two_classes(
    draw, second=of_sigmoid, mean=torch.mean, one=1.0, loss=binary_cross_entropy
):
    """Against the formula on logits below 1, where all its logarithms exist, against the cross-entropy of two classes
    with logits 0 and z, and far out, where one of the logarithms is lost to rounding."""
    z, y = draw.uniform(40, low=-3.0, high=0.9), draw.integers(0, 2, 40).double()
    target = one * y + (1 - one) * (1 - y)
    formula = -mean(target * torch.log(torch.sigmoid(z)) + (1 - target) * second(z))
    wide = torch.cat([z, draw.normal(20) * 20, torch.tensor([-50.0, 50.0, 800.0, -800.0, 0.0]).double()])
    labels = draw.integers(0, 2, len(wide))
    pair = functional.cross_entropy(torch.stack([torch.zeros_like(wide), wide], 1), labels, reduction="none")
    return all_of(
        close(loss(z, y), formula, ulps=1000),
        close(loss(wide, labels, reduction="none"), pair, scale=1 + wide.abs()),
        # Of a right answer the loss is e^-|z| up to its square.
        close(loss(torch.tensor([50.0, -50.0]).double(), torch.tensor([1, 0]), "sum"), 2 * math.exp(-50), ulps=100),
    )


@claim("logistic.bce_compact")
@lie("the signs are exchanged: σ((1 - 2y)z)", flip=-1.0)
@lie("it holds for y = ½ as well", label=0.5)
def one_formula_for_both_labels(draw, flip=1.0, label=1.0, loss=binary_cross_entropy):
    """Both labels over logits from -40 to 40, and as symbols."""
    import sympy

    z = torch.linspace(-40, 40, 401, dtype=torch.float64)
    labels = torch.tensor([0.0, label], dtype=torch.float64)[:, None].expand(2, 401)
    signed = flip * (2 * labels - 1) * z
    # As torch's softplus is z itself from 20 on, the threshold is moved beyond all logits here.
    compact = torch.stack([-functional.logsigmoid(signed), functional.softplus(-signed, threshold=100)])
    x = sympy.symbols("x", real=True)

    def cost(y):
        return -y * sympy.log(1 / (1 + sympy.exp(-x))) - (1 - y) * sympy.log(sympy.exp(-x) / (1 + sympy.exp(-x)))

    def short(y):
        return sympy.log(1 + sympy.exp(-sympy.Rational(str(flip)) * (2 * y - 1) * x))

    found = loss(z.expand(2, 401), labels, reduction="none")
    return all_of(
        close(found.expand(2, 2, 401), compact, scale=compact, ulps=100),
        *(symbolic(sympy.exp(cost(y)).simplify(), sympy.exp(short(y)).simplify()) for y in (0, 1)),
    )


@claim("loss.squared")
@lie("the gradient is 2(f - y)", factor=2.0)
@lie("the gradient is y - f", factor=-1.0)
def the_squared_error_pulls_by_the_error(draw, factor=1.0):
    """The gradient in the outputs of a network, and in its last bias, against the difference of output and target."""
    network = MLP(3, 4, widths=(5,), activation="tanh").double()
    x, y = draw.normal(10, 3), draw.normal(10, 4)
    outputs = network(x)
    pull = gradient(lambda f: functional.mse_loss(f, y, reduction="sum") / 2, outputs.detach())
    loss = (y - outputs).square().sum() / 2
    bias = torch.autograd.grad(loss, list(network.parameters()))[-1]
    error = factor * (outputs.detach() - y)
    return all_of(close(pull, error), close(bias, error.sum(0)))
