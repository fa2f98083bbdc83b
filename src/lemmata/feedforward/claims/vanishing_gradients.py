"""How gradients fare in deep plain networks: the slope of the activation and the variance of the weights decide."""

import math

import torch

from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, at_least, at_most, claim, lie

WIDTH, LAYERS, DRAWS = 128, 20, 6


def gradient_ratio(draw, activation, variance):
    """The length of the gradient at the input over that at the output, the root of its mean square over networks."""
    ratios = []
    for _ in range(DRAWS):
        network = MLP(WIDTH, WIDTH, widths=(WIDTH,) * (LAYERS - 1), activation=activation, bias=False).double()
        with torch.no_grad():
            for weight in network.parameters():
                weight.copy_(draw.normal(*weight.shape) * math.sqrt(variance / WIDTH))
        x, back = draw.normal(1, WIDTH).requires_grad_(), draw.normal(1, WIDTH)
        (gradient,) = torch.autograd.grad(network(x), x, back)
        ratios.append(float(gradient.norm() / back.norm()))
    return math.sqrt(sum(ratio**2 for ratio in ratios) / DRAWS)


@claim("relu.vanishing")
@lie(
    "ReLU keeps the gradient with weights of variance 1/n",
    printed="002/1",
    regime="a factor of two or three in twenty layers of 128 units is chance",
    loose="a factor of two or three in twenty layers of 128 units is chance",
    variance=1.0,
)
@lie("the sigmoid keeps it, too", activation="sigmoid")
@lie(
    "the sigmoid loses a factor 6 a layer",
    regime="four is the least factor, which units near zero come close to",
    loose="a smaller factor is lost, too",
    base=6.0,
)
def relu_keeps_the_gradient_if_its_weights_do(draw, variance=2.0, base=4.0, activation="relu"):
    """Twenty layers of 128 units, six networks each: gradients at the input over those at the output."""
    kept = gradient_ratio(draw, activation, variance)
    small = gradient_ratio(draw, "relu", 1.0)
    return all_of(
        at_least(kept, 0.2),
        at_most(kept, 5.0),
        at_most(small, 10 * 2.0 ** (-LAYERS / 2)),  # half of the squared norm is lost in each layer
        at_least(small, 0.1 * 2.0 ** (-LAYERS / 2)),
        at_most(gradient_ratio(draw, "sigmoid", 1.0), base ** -(LAYERS - 1)),
        at_most(gradient_ratio(draw, "sigmoid", 16.0), 1e-2),
    )
