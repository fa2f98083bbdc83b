"""What a vision transformer does not know of pictures, and what that costs while there are few of them."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.judge import all_of, always, claim, close, exactly, lie, reaches
from lemmata.transformers.vit import ViT

SIDE, PATCH = 8, 2
GRID = SIDE // PATCH


def transformer(copies=1):
    return nn.ModuleList(ViT(10, SIDE, PATCH, channels=1, width=24, depth=2, heads=4, hidden=48) for _ in range(copies))


def convolutional(copies=1):
    """Three convolutions with fewer parameters than the transformer has."""
    return nn.ModuleList(
        nn.Sequential(
            nn.Conv2d(1, 20, 3, padding=1), nn.ReLU(), nn.Conv2d(20, 20, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(20, 24, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(96, 10),
        )
        for _ in range(copies)
    )  # fmt: skip


def learn_digits(networks, generator, examples, steps):
    """Each network learns from digits of its own."""
    digits = load("digits").train
    shares = torch.randperm(len(digits.y), generator=generator).split(examples)
    for network, share in zip(networks, shares, strict=False):
        optimizer = torch.optim.Adam(network.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
        for _ in range(steps):
            batch = share[torch.randperm(examples, generator=generator)[:100]]
            optimizer.zero_grad()
            functional.cross_entropy(network(digits.x[batch, None]), digits.y[batch]).backward()
            optimizer.step()
            schedule.step()


def _mean_accuracy(draw, network, examples, steps, copies=1):
    """The mean over all copies."""
    trained = draw.trained(network, learn_digits, examples=examples, steps=steps, copies=copies)
    test = load("digits").test
    right = [(one(test.x[:, None]).argmax(1) == test.y).double().mean() for one in trained]
    return float(torch.stack(right).mean())


def _tokens_moved(features, places):
    """Features of the patches, as if the picture were shifted around by so many patches to the right."""
    return features[:, 1:].unflatten(1, (GRID, GRID)).roll(places, 2).flatten(1, 2)


@claim("vit.inductive_bias")
@lie("features move with the picture, pixel by pixel", shift=1)
@lie("the order of the patches is lost with positions too", position=1.0)
@lie("a token sees its neighbourhood alone", seen=9)
@lie("a transformer learns as much from 100 digits", network=transformer)
def little_is_known_of_pictures(draw, shift=2, position=0.0, seen=64, network=convolutional, vit=transformer):
    """Shifts and shuffled patches without positions, what a gradient reaches; then 100 and 1,438 digits to learn."""
    model, x = vit()[0].double().requires_grad_(False), draw.normal(4, 1, SIDE, SIDE)
    model.positions.copy_(position * draw.normal(*model.positions.shape))
    found = torch.cat([model.features(x.roll(shift * k, 3))[:, 1:] for k in range(GRID)])
    moved = torch.cat([_tokens_moved(model.features(x), shift * k // PATCH) for k in range(GRID)])
    order = draw.permutation(GRID**2)
    shuffled = functional.fold(functional.unfold(x, PATCH, stride=PATCH)[..., order], SIDE, PATCH, stride=PATCH)
    pixels = x[:1].requires_grad_()
    one = ViT(None, SIDE, PATCH, channels=1, width=24, depth=1, heads=4, hidden=48, dtype=torch.float64)
    (reached,) = torch.autograd.grad(one.features(pixels)[0, 1, 0], pixels)
    with torch.device("meta"):
        sizes = [sum(values.numel() for values in made().parameters()) for made in (convolutional, vit)]
    exact = all_of(
        always([sizes[0] < sizes[1]], detail="the convolutional network has fewer parameters"),
        close(found, moved, ulps=1e5, scale=1.0),
        close(model(shuffled), model(x).detach(), ulps=1e5, scale=1.0),
        exactly(int((reached != 0).sum()), seen),
    )
    if not exact.holds:
        return exact  # decided without training
    # How well 100 digits serve depends on which they are: the mean over three hundreds varies less.
    few, others = (_mean_accuracy(draw, one, 100, 200, copies=3) for one in (network, vit))
    gap = _mean_accuracy(draw, network, 1438, 400) - _mean_accuracy(draw, vit, 1438, 400)
    return all_of(
        exact,
        reaches(few - others, 0.05, detail="accuracy lost by a transformer that learns from 100 digits"),
        reaches(gap, (few - others) * 2 / 3, at_most=True, detail="accuracy lost from 1,438 digits"),
    )
