"""Characters of many alphabets, five classes from a picture each: what the inner loop must change."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.judge import all_of, at_most, claim, lie, reaches
from lemmata.meta.episodes import Episodes
from lemmata.meta.maml import ANIL, MAML

INNER_LR, TASKS = 0.3, 16
HEAD, BODY = ("5.weight", "5.bias"), ("1.weight", "1.bias", "3.weight", "3.bias")


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 5))


def build(method):
    return MAML(network(), 1, INNER_LR) if method == "all" else ANIL(network(), 1, INNER_LR)


def moved(pictures, generator):
    """Each picture by up to two pixels and twelve degrees, as a hand would."""
    angle = 0.2 * (2 * torch.rand(len(pictures), generator=generator) - 1)
    shift = 2 / 14 * (2 * torch.rand(len(pictures), 2, generator=generator) - 1)
    cosine, sine = angle.cos(), angle.sin()
    matrix = torch.stack([torch.stack([cosine, -sine, shift[:, 0]], 1), torch.stack([sine, cosine, shift[:, 1]], 1)], 1)
    grid = functional.affine_grid(matrix, [len(pictures), 1, 28, 28], align_corners=False)
    return functional.grid_sample(pictures[:, None], grid, align_corners=False)[:, 0]


def batches(part, updates, seed):
    """Episodes of characters that are all moved a little, several at once."""
    data = load("glyphs").parts[part]
    episodes = Episodes(data.x, data.y, ways=5, shots=1, queries=1, length=updates * TASKS, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for first in range(0, len(episodes), TASKS):
        batch = episodes.batch(range(first, first + TASKS))
        for name in ("x", "query_x"):
            batch.columns[name] = moved(batch[name].flatten(0, 1), generator).reshape(batch[name].shape)
        yield batch


def teach(maml, generator, method, updates=500):
    optimizer = torch.optim.Adam(maml.parameters(), lr=2e-3)
    for batch in batches("train", updates, int(torch.randint(2**31, (), generator=generator))):
        optimizer.zero_grad()
        maml.loss(batch).backward()
        optimizer.step()


def accuracy(maml, names=None, steps=1, rounds=25):
    """On new classes, with these parameters adapted, and how far body and head move by their own size."""
    learner = maml if names is None else MAML(maml.model, 1, INNER_LR, names=names)
    right, count, changes = 0.0, 0, []
    for batch in batches("test", rounds, 77):
        right += float((learner(batch.x, batch.y, batch.query_x, steps).argmax(2) == batch.query_y).sum())
        count += batch.query_y.numel()
        changes.append([_relative_change(maml, batch, part) for part in (BODY, HEAD)])
    body, head = torch.tensor(changes).mean(0).tolist()
    return right / count, body / head


def _relative_change(maml, batch, names):
    start, end = dict(maml.model.named_parameters()), MAML.adapt(maml, batch.x[0], batch.y[0])
    moved_by = torch.stack([(end[name] - start[name]).norm() / start[name].norm() for name in names])
    return float(moved_by.detach().mean())


@claim("meta.anil")
@lie("adapting the body alone does as well", adapted="body")
@lie("all parameters, before any step", steps=0)
def the_head_alone_adapts(draw, adapted="head", steps=1):
    """New characters by either method, and how far body and head move by their own size."""
    whole, head = (draw.trained(build, teach, method=method) for method in ("all", "head"))
    everything, moves = accuracy(whole)
    alone, _ = accuracy(head, HEAD if adapted == "head" else BODY, steps)
    return all_of(reaches(alone, everything - 0.1), reaches(everything, 0.6), at_most(moves, 0.25))
