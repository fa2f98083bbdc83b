r"""Are test examples in the training part, as copies or nearly, and do copies have different labels?"""

from collections.abc import Iterator
from typing import Any

import torch
from scipy.stats import binom
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.measure.duplicates import agreement_of_rest, equal_groups, near_twins

COPIED = 0.9  # of pairs that agree in half of their features: above it the rest follows, as in copies
COUNTS = 0.005  # share of the test part from which copies count: the standard error of an accuracy of 10,000 examples
FEATURES = 4096  # looked at where equal rows are told from chance
PROJECTED = 256  # dimensions in which near twins are looked for: lengths are kept within 4 % (Johnson-Lindenstrauss)
POINTS = 1000  # whose neighbours are looked for
CLAIMS = ("probability.independence", "probability.expectation")


@probe("Leakage", value=70, share=0.15)
def leakage(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """Rows that are equal, rows that nearly are, and equal rows with different labels."""
    train, test = subject.given
    bytes_ = sum(x.nbytes for sample in (train, test) if sample for x in sample.tensors)
    clock.need(
        1e-5 * len(train) + 4e-9 * bytes_, "comparing examples"
    )  # 2 us to hash a row, 1 ns for each of its bytes
    columns = train.tensors
    if test is not None:
        columns = tuple(torch.cat([own, other.to(own)]) for own, other in zip(columns, test.tensors, strict=True))
    groups = equal_groups(*columns)
    held = groups[: len(train)]
    if test is None:
        yield skipped("copies in test", "it needs a test part (test=..., --test)")
    elif len(train) > 1:
        rows = _example_rows(columns)
        yield _exact_copies(groups, len(train), rows, subject)
        yield from _near_copies(groups, len(train), train, rows, clock)
    targets = train.targets
    if targets is not None and subject.task in ("classes", "binary") and targets.numel() == len(train):
        yield _conflicting_labels(held, targets)


def _exact_copies(groups: Tensor, number: int, rows: Tensor, subject: Subject) -> AuditFinding:
    """Test examples that are equal to a training example."""
    held, asked = groups[:number], groups[number:]
    count = torch.bincount(held, minlength=int(groups.max()) + 1)
    leaked, repeated = count[asked] > 0, count[held] > 1
    found, share, own = int(leaked.sum()), leaked.double().mean().item(), repeated.double().mean().item()
    which = torch.cat([_first_of_groups(held), number + _first_of_groups(asked)])
    distinct = int(held.max()) + 1  # groups are numbered as they first occur
    rest = agreement_of_rest(rows[which[:distinct]], rows[which[distinct:]]) if found else 1.0
    # Were both parts drawn from one source, a test example had a twin in the training part as often as a training
    # example has one among the others. Laplace's rule of succession gives that rate where none was seen.
    chance = float(binom.sf(found - 1, len(asked), (int(repeated.sum()) + 1) / (number + 2)))
    numbers = {
        "copies": found, "share": share, "repeated_in_train": own, "agreement": rest, "chance": chance,
    }  # fmt: skip
    told = f"{found} of {len(asked)} test examples ({share:.2%}) are in the training part too"
    measured = f"{told}; {own:.2%} of the training examples occur there more than once"
    if not subject.given[0].whole or not subject.given[1].whole:  # type: ignore[union-attr]
        measured += f"; only the first {number} and {len(asked)} were compared"
    predicted = "test examples that are independent of training occur in it no oftener than training examples repeat"
    more: dict[str, Any] = {"measured": measured, "predicted": predicted, "claims": CLAIMS, "numbers": numbers}
    advice = "Remove them from the training part, train again, and judge by the test part without them until then; "
    advice += "drop duplicates before splitting."
    if found == 0:
        return fine("copies in test", f"none of {len(asked)} test examples is in the training part", **more)
    if rest >= COPIED and chance < 0.01 and share >= COUNTS:
        where = [f"test[{index}]" for index in leaked.nonzero()[:20, 0].tolist()]
        verdict = f"leaked: {told}, so that the network is asked what it has seen"
        return alarm("copies in test", verdict, advice=advice, where=where, weight=4 + 5 * share, **more)
    if rest >= COPIED or chance < 1e-3:
        why = ", as training examples repeat too: the data holds duplicates" if own > 0 and chance >= 0.01 else ""
        return hint("copies in test", told + why, advice=advice, weight=1 + 3 * share, **more)
    verdict = (
        f"{told}, which chance explains: of pairs that agree in half of their features {rest:.0%} agree in the rest"
    )
    return fine("copies in test", verdict, **more)


def _near_copies(groups: Tensor, number: int, train: Sample, rows: Tensor, clock: Clock) -> Iterator[AuditFinding]:
    """Test examples that are nearly equal to one training example and to no second one."""
    if not all(x.is_floating_point() for x in train.tensors):
        return
    held, asked = groups[:number], groups[number:]
    basis = _first_of_groups(held)
    new = (asked > int(held.max())).nonzero()[:, 0] + number  # without a copy in the training part
    new = new[torch.randperm(len(new), generator=torch.Generator().manual_seed(0))[:POINTS]]
    own = torch.randperm(len(basis), generator=torch.Generator().manual_seed(0))[:POINTS]
    if len(basis) < 100 or len(new) < 30:
        return
    tables = all(x.ndim == 2 for x in train.tensors)
    # A billion multiplications a second is what one slow core does.
    work = (len(new) + len(own)) * len(basis) * min(rows.shape[1], PROJECTED)
    clock.need(
        1e-9 * work + 1e-9 * rows.numel() * PROJECTED * (rows.shape[1] > 2 * PROJECTED), "looking for near twins"
    )
    points = _project_rows(rows.float(), basis, tables)
    trained = near_twins(points[basis[own]], points[basis], own=own)
    # All of the test part may be twins: what is usual, the training part says.
    tested = near_twins(points[new], points[basis], dimension=trained.dimension)
    found, share = int(tested.twin.sum()), tested.twin.double().mean().item()
    usual = trained.twin.double().mean().item()
    chance = float(binom.sf(found - 1, len(new), (int(trained.twin.sum()) + 1) / (len(own) + 2)))
    numbers = {
        "twins": found, "share": share, "twins_in_train": usual, "ratio": tested.ratio, "chance": chance,
        "dimension": tested.dimension,
    }  # fmt: skip
    told = f"{found} of {len(new)} test examples ({share:.2%}) have a near twin in the training part"
    measured = f"{told}, {tested.ratio:.2g} times nearer than the next; so have {usual:.2%} of the training examples"
    predicted = f"in {tested.dimension:.1f} dimensions, which the distances show, 0.001 of them by chance"
    more: dict[str, Any] = {"measured": measured, "predicted": predicted, "claims": CLAIMS, "numbers": numbers}
    advice = "Look at some pairs: rescaled, re-encoded or augmented copies belong to one part only. Split by source "
    advice += "(person, scene, recording), not by example."
    if chance < 1e-6 and share >= 0.02:
        where = [f"test[{index - number}]" for index in new[tested.twin][:20].tolist()]
        verdict = f"leaked: {told}, which training examples have not among themselves"
        yield alarm("near twins in test", verdict, advice=advice, where=where, weight=4 + 4 * share, **more)
    elif share >= 0.01 and (chance < 1e-3 or usual >= 0.01):
        yield hint("near twins in test", told, advice=advice, weight=1 + 2 * share, **more)
    else:
        yield fine("near twins in test", told, **more)


def _conflicting_labels(groups: Tensor, targets: Tensor) -> AuditFinding:
    """Equal training examples with different labels: all but the most frequent label are out of reach."""
    labels = equal_groups(targets)
    pairs = torch.stack([groups, labels.to(groups)], 1)
    kinds, count = pairs.unique(dim=0, return_counts=True)
    best = torch.zeros(int(groups.max()) + 1, dtype=torch.long).scatter_reduce(0, kinds[:, 0], count, "amax")
    lost = (len(groups) - int(best.sum())) / len(groups)
    where = kinds[:, 0].bincount()
    mixed = [f"train[{index}]" for index in (where[groups] > 1).nonzero()[:20, 0].tolist()]
    numbers = {"lost": lost, "best_accuracy": 1 - lost}
    more: dict[str, Any] = {"numbers": numbers, "claims": CLAIMS[1:], "where": mixed}
    if lost == 0:
        return fine("labels of copies", "equal training examples have equal labels", **more)
    verdict = (
        f"equal training examples have different labels: no network can be right on {lost:.2%} of the training part"
    )
    measured = f"{lost:.2%} of {len(groups)} training examples have not the most frequent label of their input"
    predicted = f"accuracy on the training part is at most {1 - lost:.2%}"
    advice = "Look at these labels, or at inputs that tell the examples apart; keep one of each if it is noise."
    more |= {"measured": measured, "predicted": predicted, "advice": advice, "weight": 1 + 3 * lost}
    return hint("labels of copies", verdict, **more)


def _first_of_groups(groups: Tensor) -> Tensor:
    """Where each group first occurs, in the order of the groups."""
    order = groups.argsort(stable=True)
    ordered = groups[order]
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return order[new]


def _example_rows(columns: tuple[Tensor, ...]) -> Tensor:
    """All inputs of an example in one row, or as many numbers of them as are looked at, (examples, features)."""
    rows = [x.flatten(1) if x.ndim > 1 else x[:, None] for x in columns]
    random = torch.Generator().manual_seed(0)
    parts = []
    for x in rows:
        kept = max(FEATURES * x.shape[1] // sum(one.shape[1] for one in rows), 1)
        if x.shape[1] > kept:
            x = x[:, torch.randperm(x.shape[1], generator=random)[:kept]]
        parts.append(x.cpu().double())
    return torch.cat(parts, 1)


def _project_rows(rows: Tensor, basis: Tensor, tables: bool) -> Tensor:
    """In few dimensions; columns of tables have units of their own, and are measured in their spread."""
    if tables:
        spread = rows[basis].std(0)
        rows = rows[:, spread > 0] / spread[spread > 0]
    if rows.shape[1] > 2 * PROJECTED:
        random = torch.Generator().manual_seed(0)
        rows = rows @ torch.randn(rows.shape[1], PROJECTED, generator=random) / PROJECTED**0.5
    return rows
