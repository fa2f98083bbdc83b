"""A task for gated memories, and layers with drawn weights: what the claims about LSTM and GRU share."""

import torch
from torch.nn import functional

TOKENS, BATCH, STEPS, RATE = 4, 32, 200, 0.02


def with_drawn_weights(layer, draw, spread=0.7):
    """The layer in float64 with every parameter, biases included, drawn from a normal law."""
    layer = layer.double()
    for parameter in layer.parameters():
        parameter.data = spread * draw.normal(*parameter.shape)
    return layer


def cued(count, lag, generator):
    """Sequences that show one of four tokens at the first step and noise in another channel at the `lag` others."""
    tokens = torch.randint(TOKENS, (count,), generator=generator)
    x = torch.zeros(count, lag + 1, TOKENS + 1)
    x[:, 0, :TOKENS] = functional.one_hot(tokens, TOKENS)
    x[:, 1:, TOKENS] = torch.randn(count, lag, generator=generator)
    return x, tokens


def recall(layer, lag, generator, steps=STEPS):
    """How often the trained layer tells at the last step which token it saw at the first; chance is 1/4.

    Adam with clipped gradients, written out: a layer whose memory lasts learns this in a second.
    """
    read = torch.nn.Linear(layer.outputs, TOKENS)
    parameters = [*layer.parameters(), *read.parameters()]
    means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    for step in range(1, steps + 1):
        x, tokens = cued(BATCH, lag, generator)
        slopes = torch.autograd.grad(functional.cross_entropy(read(layer(x)[0][:, -1]), tokens), parameters)
        length = torch.stack([slope.norm() for slope in slopes]).norm().clamp(min=1.0)
        with torch.no_grad():
            for parameter, slope, mean, square in zip(parameters, slopes, means, squares, strict=True):
                mean.lerp_(slope / length, 0.1)
                square.lerp_((slope / length).square(), 0.01)
                parameter -= RATE * mean / (1 - 0.9**step) / ((square / (1 - 0.99**step)).sqrt() + 1e-8)
    x, tokens = cued(1000, lag, generator)
    with torch.no_grad():
        return float((read(layer(x)[0][:, -1]).argmax(-1) == tokens).double().mean())
