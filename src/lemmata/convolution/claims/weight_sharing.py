"""Why convolutions: few weights, outputs that move with their input, and fewer examples to learn from."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import all_of, always, claim, close, exactly, lie, reaches

LENGTH, SIDE = 32, 7
MOTIF = torch.tensor([1.5, -1.0, 0.5, 2.0, -0.5, -2.0, 1.0])


class Detector(nn.Module):
    """Eight kernels of seven values, the largest answer of each over all places, and an affine map to two classes."""

    def __init__(self):
        super().__init__()
        self.convolution, self.head = nn.Conv1d(1, 8, SIDE), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.convolution(x[:, None]).relu().amax(2))  # (batch, 8, places) -> (batch, 2)


def convolutional():
    return Detector()


def dense():
    return nn.Sequential(nn.Linear(LENGTH, 8), nn.ReLU(), nn.Linear(8, 2))


def signals(count, generator):
    """Noise with a motif at a random place, forwards (class 1) or backwards (class 0)."""
    x, y = 0.3 * torch.randn(count, LENGTH, generator=generator), torch.arange(count) % 2
    starts = torch.randint(0, LENGTH - SIDE + 1, (count, 1), generator=generator)
    motifs = torch.where(y[:, None] == 1, MOTIF, MOTIF.flip(0))  # (count, SIDE)
    return x.scatter_add(1, starts + torch.arange(SIDE), motifs), y


def learn_signals(network, generator, examples, steps):
    x, y = signals(examples, generator)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()


def _trained_accuracy(draw, network):
    trained = draw.trained(network, learn_signals, examples=200, steps=150)
    x, y = signals(2000, torch.Generator().manual_seed(1))
    return float((trained(x).argmax(1) == y).double().mean())


@claim("conv.weight_sharing")
@lie("every place has weights of its own", weights=256)
@lie("zeros around the signal change nothing", padding="zeros")
@lie("stride 2 follows a shift by one place", shift=1)
@lie("a dense network learns as much from 200 examples", network=dense)
def shared_weights_move_and_learn(draw, weights=8, padding="circular", shift=2, network=convolutional):
    """Every shift of drawn signals; then a motif at a random place, and a dense network with more weights."""
    place = {"padding": SIDE // 2, "padding_mode": padding, "dtype": torch.float64}
    layer, strided = nn.Conv1d(1, 1, SIDE, **place), nn.Conv1d(1, 1, SIDE, stride=2, **place)
    x = draw.normal(4, 1, LENGTH)
    shifted = torch.stack([layer(x.roll(k, 2)) - layer(x).roll(k, 2) for k in range(LENGTH)])
    halved = torch.stack([strided(x.roll(shift * k, 2)) - strided(x).roll(k * shift // 2, 2) for k in range(LENGTH)])
    networks = layer, nn.Linear(LENGTH, LENGTH), convolutional(), dense()
    counts = [sum(values.numel() for values in one.parameters()) for one in networks]
    exact = all_of(
        exactly(counts[:2], [weights, 32 * 33]),
        always([counts[3] > counts[2]]),
        close(shifted.detach(), torch.zeros_like(shifted), ulps=256, scale=1.0),
        close(halved.detach(), torch.zeros_like(halved), ulps=256, scale=1.0),
    )
    if not exact.holds:
        return exact  # decided without training
    return all_of(
        exact,
        reaches(_trained_accuracy(draw, network), 0.95, detail="accuracy with shared weights"),
        reaches(_trained_accuracy(draw, dense), 0.8, at_most=True, detail="accuracy of a dense network"),
    )
