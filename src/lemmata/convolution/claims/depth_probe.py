"""What linear probes read off the layers of a network: the class more and more, the position less."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import Figure, Line, all_of, claim, lie, reaches
from lemmata.measure.linear_probe import fit_linear_probe

SIDE, SHOWN, WIDTHS = 32, 400, (8, 16, 32, 32)


def shapes(count, generator):
    """Discs, squares and triangles anywhere in noise; their class and the position of their centre."""
    y = torch.arange(count) % 3
    centre = 8 + (SIDE - 17) * torch.rand(count, 2, generator=generator)
    radius = 5 + 2 * torch.rand(count, 1, 1, generator=generator)
    place = torch.arange(SIDE).float()
    across, down = (
        place - centre[:, :1, None],
        place[:, None] - centre[:, 1:, None],
    )  # (count, 1, SIDE), (count, SIDE, 1)
    disc = (across**2 + down**2).sqrt() < radius
    square = torch.maximum(across.abs(), down.abs()) < 0.886 * radius  # of the same area
    triangle = (down < 0.8 * radius) & (down > 1.94 * across.abs() - 1.15 * radius)
    x = torch.stack([disc, square, triangle])[y, torch.arange(count)].float()
    return (x + 0.5 * torch.randn(x.shape, generator=generator))[:, None], y, centre


class Blocks(nn.Module):
    """Four blocks of convolution and pooling, the mean over all places, a linear layer."""

    def __init__(self):
        super().__init__()
        sizes = zip((1, *WIDTHS), WIDTHS, strict=False)
        blocks = (nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)) for a, b in sizes)
        self.blocks, self.last = nn.ModuleList(blocks), nn.Linear(WIDTHS[-1], 3)

    def features(self, x):
        """The image, what each block makes of it, and the mean over all places."""
        found = [x]
        for block in self.blocks:
            found.append(block(found[-1]))
        return [*found, found[-1].mean((2, 3))]

    def forward(self, x):
        return self.last(self.features(x)[-1])


def learn_shapes(network, generator, steps):
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005)
    for _ in range(steps):
        x, y, _ = shapes(48, generator)
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()


def probed(draw, networks, depths):
    """Accuracy for the class and R² for the centre at these depths, means over networks: (depths,) each."""
    x, y, centre = shapes(2 * SHOWN, draw.generator)
    scores = []
    with torch.no_grad():
        for network in networks:
            layers = network.features(x)
            for z in (layers[depth].flatten(1) for depth in depths):
                of_class, of_centre = (fit_linear_probe(z[:SHOWN], target[:SHOWN]) for target in (y, centre))
                read = of_class.accuracy(z[SHOWN:], y[SHOWN:]), of_centre.r_squared(z[SHOWN:], centre[SHOWN:])
                scores.append(read)
    return torch.tensor(scores).double().view(len(networks), -1, 2).mean(0).unbind(1)


@claim("conv.depth_probe")
@lie("the class is read off the pixels as well", deepest=0)
@lie("random weights show the class, too", steps=0)
@lie("the position is still known after the mean over all places", lost=False)
@lie("without training the position would stay", kept=True)
def semantics_for_position(draw, deepest=4, steps=300, lost=True, kept=False):
    """Linear probes at every depth of a network that names discs, squares and triangles, and of six untrained ones."""
    trained = draw.trained(Blocks, learn_shapes, steps=steps)
    named, placed = probed(draw, [trained], range(6))
    named_before, placed_before = probed(draw, [Blocks() for _ in range(6)], (1, 4, 5))
    return all_of(
        reaches(named[deepest] - named[1], 0.15, detail="accuracy for the class, gained from the first block"),
        reaches(named[1:5].diff().amin(), -0.05, detail="least gain of a block"),
        reaches(placed[1], 0.8, detail="R² for the position after the first block"),
        reaches(placed[5] - placed[1], -0.05, at_most=lost, detail="R² for the position, gained by all that follows"),
        reaches(named_before[1] - named_before[0], 0.15, at_most=True, detail="the class, gained without training"),
        reaches(placed_before[2] - placed_before[0], 0.03, at_most=not kept, detail="the position, without training"),
    ).showing(
        Figure(
            "What a linear probe reads", "depth", "accuracy, R²",
            [Line(torch.arange(6.0), named, "class"), Line(torch.arange(6.0), placed, "position")],
        )
    )  # fmt: skip
