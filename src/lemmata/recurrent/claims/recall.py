"""Training, a task for memories, and layers with drawn weights: what the claims of this chapter share."""

import torch
from torch.nn import functional

TOKENS, BATCH, STEPS = 4, 32, 200


def with_drawn_weights(layer, draw, spread=0.7):
    """The layer in float64 with every parameter, biases included, drawn from a normal law."""
    layer = layer.double()
    for parameter in layer.parameters():
        parameter.data = spread * draw.normal(*parameter.shape)
    return layer


def seeded(draw, make):
    """Modules draw from the global generator, which the judge restores."""
    torch.manual_seed(int(draw.integers(0, 2**31, 1)))
    return make()


def cued(count, lag, generator):
    """Sequences that show one of four tokens at the first step and noise in another channel at the `lag` others."""
    tokens = torch.randint(TOKENS, (count,), generator=generator)
    x = torch.zeros(count, lag + 1, TOKENS + 1)
    x[:, 0, :TOKENS] = functional.one_hot(tokens, TOKENS)
    x[:, 1:, TOKENS] = torch.randn(count, lag, generator=generator)
    return x, tokens


def learn(model, loss, steps, lr=0.02):
    """Adam with clipped gradients and a learning rate that falls to zero, on a loss that draws its own examples."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1 / (steps + 1), steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model


def recall(layer, lag, generator, steps=STEPS):
    """How often the trained layer tells at the last step which token it saw at the first; chance is 1/4."""
    model = torch.nn.ModuleList([layer, torch.nn.Linear(layer.outputs, TOKENS)])

    def answers(x):
        return model[1](layer(x)[0][:, -1])

    def loss():
        x, tokens = cued(BATCH, lag, generator)
        return functional.cross_entropy(answers(x), tokens)

    learn(model, loss, steps)
    x, tokens = cued(1000, lag, generator)
    with torch.no_grad():
        return float((answers(x).argmax(-1) == tokens).double().mean())
