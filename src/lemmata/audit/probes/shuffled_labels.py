r"""Do the labels belong to the inputs, in both parts and in the same code?

Nearest neighbours of almost any data agree in their labels more often than chance. How often chance makes them agree is
known from labels dealt at random: where one part agrees far more and the other does not, though its neighbours are as
near, the labels of the other were shuffled against their inputs, or name the classes in another order.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.audit.trained import is_trained

__all__: list[str] = []

NAME = "labels and inputs"
MOST, LEAST = 2000, 100  # examples of each part
DEALT = 100  # deals of the labels at random
# In deviations of what chance gives: 3 is met by chance once in 700 audits, and 10 by none.
CHANCE, SURE = 3.0, 10.0
NEAR = 2.0  # times the distance at which neighbours of the other part agree


class Agreement(NamedTuple):
    """How far neighbours agree in their labels, what chance gives and its deviation, and how near they are."""

    rate: float
    chance: float
    deviation: float
    distance: float

    @property
    def by_chance(self) -> str:
        return f"by chance to {max(self.chance, 0):.0%}"  # correlations of nothing are a little below zero too

    @property
    def sigmas(self) -> float:
        return (self.rate - self.chance) / self.deviation

    def would_show(self, other: "Agreement") -> bool:
        """Whether neighbours that agree as often as the other's would surely be seen here, where they are as near."""
        return (other.rate - self.chance) / self.deviation > SURE and self.distance <= NEAR * other.distance


@probe("Labels and inputs", value=60, share=0.1, needs=("targets",))
def shuffled_labels(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    given = [part for part in (subject.train, subject.test) if part is not None and part.targets is not None]
    parts = [_counted_examples(subject, part) for part in given]
    parts = parts[:1] + [part for part in parts[1:] if len(part) >= LEAST]
    unfit = _unfit_reason(subject, parts)
    if unfit:
        yield skipped(NAME, unfit)
        return
    # Four tables of distances between all pairs, two operations a number, at ten thousand million a second.
    each = 8e-10 * sum(x[0].numel() for x in subject.train.tensors)
    number = min(MOST, int(math.sqrt(clock.left() / 2 / each)))
    if number < LEAST:
        clock.need(2 * each * LEAST**2, "distances of all pairs")
    chosen = [subject.some(number, part) for part in parts]
    columns, targets = _input_columns(chosen), [_plain_targets(subject, part) for part in chosen]
    train = _neighbour_agreement(columns[0], targets[0], columns[0], targets[0], same=True)
    if len(chosen) == 1:
        yield from _one_part(subject, chosen[0], train)
        return
    test = _neighbour_agreement(columns[1], targets[1], columns[1], targets[1], same=True)
    between = _neighbour_agreement(columns[0], targets[0], columns[1], targets[1])
    found = _two_parts(train, test, between, _renamed_labels(subject, columns, targets))
    yield from [found] if found else _one_part(subject, chosen[0], train)


def _counted_examples(subject: Subject, part: Sample) -> Sample:
    """Without examples that the loss leaves out."""
    return part if part.targets is None or part.targets.ndim > 1 else part[subject.counted(part.targets)]


def _two_parts(train: Agreement, test: Agreement, between: Agreement, renamed: float) -> AuditFinding | None:
    if abs(between.sigmas) > CHANCE and between.rate > between.chance:
        return None
    numbers = {"train": train.rate, "test": test.rate, "between": between.rate, "chance": between.chance}
    about = {
        "numbers": numbers,
        "measured": f"neighbours agree to {train.rate:.0%} (training), {test.rate:.0%} (test) and {between.rate:.0%} "
        f"(test with training), {between.by_chance}",
        "predicted": "as often between the parts as within each, if both come from one source",
        "weight": 9,
    }
    good, bad, told = (train, test, "test") if train.sigmas > test.sigmas else (test, train, "training")
    if good.sigmas <= SURE or not between.would_show(good):
        return None
    if bad.sigmas > SURE and renamed > (between.chance + bad.rate) / 2:
        return alarm(
            NAME,
            f"training and test part name the classes differently: neighbours agree to {between.rate:.0%}, "
            f"and to {renamed:.0%} once the classes are renamed",
            advice="make the table of classes once, from the training part, and use it for both",
            **about,
        )
    return alarm(
        NAME,
        f"labels of the {told} part do not belong to its inputs: neighbours agree to {bad.rate:.0%}, "
        f"{bad.by_chance}, in the other part to {good.rate:.0%}",
        advice="inputs and labels were put into different orders: shuffle, sort and filter both by one index",
        **about,
    )


def _one_part(subject: Subject, sample: Sample, train: Agreement) -> Iterator[AuditFinding]:
    numbers = {"train": train.rate, "chance": train.chance, "sigmas": train.sigmas}
    told = f"nearest neighbours agree to {train.rate:.0%}, {train.by_chance}"
    if abs(train.sigmas) > CHANCE:
        yield fine(NAME, f"labels belong to inputs: {told}", measured=told, numbers=numbers)
    elif (
        train.chance > 0.99
        or is_trained(subject, sample)
        or (subject.task == "classes" and subject.classes * 20 > len(sample))
    ):
        yield fine(NAME, f"neighbours do not tell: {told}", measured=told, numbers=numbers)
    else:
        yield hint(
            NAME,
            f"labels look unrelated to inputs: {told}, and the model has not learnt them",
            measured=told,
            predicted="neighbours agree more often than chance in almost any data; parity is an exception",
            advice="look at a few inputs beside their labels: were both put into the same order?",
            numbers=numbers,
            weight=5,
        )


def _unfit_reason(subject: Subject, parts: list[Sample]) -> str:
    """Why neighbours cannot be asked, in words."""
    if not all(x.is_floating_point() for x in subject.train.tensors):
        return "it needs inputs of real numbers"
    targets = subject.train.targets
    if (
        targets is None
        or targets.numel() != len(targets)
        or (subject.task == "classes" and targets.is_floating_point())
    ):
        return "it needs one label an example"
    if len(parts[0]) < LEAST:
        return f"it needs {LEAST} examples"
    return ""


def _input_columns(parts: list[Sample]) -> list[Tensor]:
    """Inputs as rows of numbers, each of deviation one in the training part."""
    rows = [torch.cat([x.flatten(1).float() for x in part.tensors], 1) for part in parts]
    scale = rows[0].std(0)
    scale = scale.clamp_min(1e-3 * float(scale.max()) + 1e-30)
    return [(one - rows[0].mean(0)) / scale for one in rows]


def _plain_targets(subject: Subject, part: Sample) -> Tensor:
    assert part.targets is not None
    targets = part.targets.flatten()
    return targets.double() if subject.task == "numbers" else targets.long()


def _neighbour_agreement(x: Tensor, y: Tensor, asked_x: Tensor, asked_y: Tensor, same: bool = False) -> Agreement:
    """Of what is asked with its nearest neighbours among (x, y); within one part, each but itself."""
    nearest, distance = _nearest_neighbours(x, asked_x, same)
    generator = torch.Generator().manual_seed(0)
    rate = _agreement_score(asked_y, y[nearest])
    dealt = []
    for _ in range(DEALT):
        order = torch.randperm(len(asked_y), generator=generator).to(y.device)
        other = asked_y[order]
        dealt.append(_agreement_score(other, (other if same else y)[nearest]))
    chance = torch.tensor(dealt, dtype=torch.float64)
    return Agreement(rate, float(chance.mean()), max(float(chance.std()), 1e-6), distance)


def _nearest_neighbours(x: Tensor, asked: Tensor, same: bool) -> tuple[Tensor, float]:
    distances = torch.cdist(asked, x)
    if same:
        distances.fill_diagonal_(torch.inf)
    least = distances.min(1)
    return least.indices, float(least.values.median())


def _agreement_score(y: Tensor, other: Tensor) -> float:
    """The share of equal classes, or the correlation of numbers."""
    if y.is_floating_point():
        return float(torch.corrcoef(torch.stack([y, other]))[0, 1].nan_to_num())
    return float((y == other).double().mean())


def _renamed_labels(subject: Subject, columns: list[Tensor], targets: list[Tensor]) -> float:
    """How far test labels agree with those of training neighbours at best, were the classes called otherwise."""
    if subject.task == "numbers" or subject.classes > 1000:
        return 0.0
    nearest, _ = _nearest_neighbours(columns[0], columns[1], same=False)
    number = max(int(one.max()) for one in targets) + 1
    pairs = torch.bincount(targets[1] * number + targets[0][nearest], minlength=number**2).reshape(number, number).cpu()
    rows, places = linear_sum_assignment(-pairs.numpy())
    return float(pairs[rows, places].sum()) / len(targets[1])
