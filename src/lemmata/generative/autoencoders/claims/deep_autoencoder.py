"""Deep autoencoders: a curve in one number, digits in eight, each better than every flat subspace of that dimension."""

import math

import torch

from lemmata.data.registry import load
from lemmata.generative.autoencoders.deep_autoencoder import DeepAutoencoder
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.measure.principal_axes import principal_axes


def helix(angle, aside=0.0, turn=0.0):
    """Points of one and a half turns of a screw, (n, 3), or at a distance from it, in a direction across."""
    outward = torch.stack([angle.cos(), angle.sin(), 0 * angle], 1)
    along = torch.stack([-angle.sin(), angle.cos(), 0 * angle + 0.25], 1) / math.hypot(1, 0.25)
    across = torch.linalg.cross(along, outward)
    return (
        outward
        + torch.stack([0 * angle, 0 * angle, angle / 4], 1)
        + aside * (math.cos(turn) * outward + math.sin(turn) * across)
    )


def angles(n, generator):
    return 3 * math.pi * torch.rand(n, generator=generator) - 1.5 * math.pi


def curve_autoencoder(activation):
    return DeepAutoencoder(3, code=1, widths=(64, 64), activation=activation)


def digit_autoencoder(activation):
    return DeepAutoencoder(64, code=8, widths=(128, 64), activation=activation)


def learn_curve(model, generator):
    learn(model, generator, helix(angles(1000, generator)), lr=5e-3, epochs=80)


def learn_digits(model, generator):
    learn(model, generator, load("digits").train.x.flatten(1), lr=3e-3, epochs=80)


def learn(model, generator, x, lr, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = lr * (1 - epoch / epochs)
        for rows in torch.randperm(len(x), generator=generator).split(64):
            optimizer.zero_grad()
            model.loss(x[rows]).backward()
            optimizer.step()


def flat_error(train, test, size):
    """The squared distance of test examples to the subspace of so many principal axes of the training ones."""
    mean = train.mean(0)
    axes = principal_axes(train - mean)[0][:size]
    left = (test - mean) - (test - mean) @ axes.mT @ axes
    return float(left.square().sum(1).mean())


@claim("ae.deep")
@lie("identity activations do as well", activation="identity")
@lie("two fifths of the error of the flat subspace", part=0.4)
@lie("the identity everywhere, off the data too", off_the_data=False)
def curved_where_flat_loses(draw, activation="silu", part=0.65, off_the_data=True):
    """A screw in one number, on it and half a unit aside; digits in eight; each against principal axes as many."""
    curve = draw.trained(curve_autoencoder, learn_curve, activation=activation)
    digits = draw.trained(digit_autoencoder, learn_digits, activation=activation)
    place = angles(1000, draw.generator)
    on, aside = helix(place), torch.cat([helix(place, 0.5, turn) for turn in (0.0, 1.5, 3.0, 4.5)])
    train, test = (each.x.flatten(1) for each in (load("digits").train, load("digits").test))
    with torch.no_grad():
        code = curve.encode(on)
        again = (curve.encode(curve.decode(code)) - code).square().mean() / code.var()
        lost = float(curve.loss(on)) / flat_error(on, on, 1), float(digits.loss(test)) / flat_error(train, test, 8)
        moved = float((curve(aside) - aside).norm(dim=1).mean())
    return all_of(
        reaches(lost[0], 0.2, at_most=True, detail="error on the screw, over that of one principal axis"),
        reaches(lost[1], part, at_most=True, detail="error on test digits, over that of eight principal axes"),
        reaches(1 - again, 0.95, detail="how far the code of a decoded code is that code"),
        reaches(moved, 0.4, at_most=not off_the_data, detail="how far points aside are moved"),
    )
