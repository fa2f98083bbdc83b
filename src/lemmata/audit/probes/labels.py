r"""Are the targets what a loss can learn from: in range, not all the same, of every class."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.figure import Bars, Figure

__all__: list[str] = []

CLAIMS = ("softmax.cross_entropy", "logistic.bce")
# With 20 examples a class on average, a class of the usual share is absent with probability exp(-20) = 2e-9.
EXPECTED = 20
MAJORITY = 0.9  # share of one class beyond which accuracy says little: always answering it is right that often
ALPHA = 1e-9


@probe("Labels", value=100, share=0.1)
def labels(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    targets = subject.labels
    if targets is None:
        yield skipped("labels", "it needs data with targets")
        return
    if subject.unusable:
        yield _out_of_range(subject)
        return
    if subject.labels_were:
        yield hint(
            "label type",
            f"the labels are kept as {subject.labels_were}, and were read as integers, one an example",
            measured=f"labels of {subject.labels_were}",
            predicted="torch's cross-entropy takes classes as int64, one number an example, and refuses others",
            advice="store them as y.long(), of shape (batch,)",
            claims=CLAIMS[:1],
            weight=3,
        )
    if bool((targets == targets.flatten()[0]).all()):
        yield _constant_labels(subject, targets)
    elif subject.task == "classes" and not targets.is_floating_point():
        yield from _class_findings(subject, targets)
    elif subject.task == "binary":
        yield from _balance_findings(torch.bincount((targets > 0.5).long().flatten(), minlength=2).float())
    elif subject.task == "numbers":
        yield _target_scale(targets.float().flatten(1) if targets.ndim > 1 else targets.float()[:, None])


def _out_of_range(subject: Subject) -> AuditFinding:
    parts = [part.targets for part in (subject.train, subject.test) if part is not None and part.targets is not None]
    low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    if subject.task == "binary" and low >= 0 and high <= 1:
        advice = "a single output wants loss='bce'; cross-entropy wants an output for each class"
    elif subject.task == "numbers":
        advice = "give loss='mse' for numbers; cross-entropy wants an output for each class"
    elif subject.task == "binary":
        advice = "use y = (y + 1) / 2" if (low, high) == (-1, 1) else "the loss wants 0 and 1: divide or subtract"
    elif any(part.is_floating_point() for part in parts):
        advice = "give integers, or loss='mse' if these are measurements"
    elif subject.classes == 1 and (low, high) == (0, 1):
        advice = "a single output wants loss='bce'; cross-entropy wants an output for each class"
    elif low == 1 and high == subject.classes:
        advice = "they count from one: use y - 1"
    elif high >= subject.classes and low >= 0:
        advice = f"give the last layer {high + 1:.0f} outputs, or correct the labels"
    else:
        advice = "mark examples without a label by -100, which torch's losses leave out, or remove them"
    return alarm(
        "label range",
        subject.unusable,
        measured=f"smallest label {low:g}, largest {high:g}",
        predicted="cross-entropy reads the output at the label's own place, which must exist",
        advice=advice,
        claims=CLAIMS,
        numbers={"lowest": low, "highest": high, "classes": subject.classes},
        weight=10,
    )


def _constant_labels(subject: Subject, targets: Tensor) -> AuditFinding:
    value, whole = targets.flatten()[0].item(), subject.given[0].whole
    number = f"all {len(targets):,}" if whole else f"the first {len(targets):,}"
    return (alarm if whole and len(targets) > 1 else hint)(
        "constant labels",
        f"{number} training targets are {value:g}: there is nothing to learn",
        measured=f"one value, {value:g}, in {len(targets):,} targets",
        predicted="a constant answer is then the best there is, whatever the input",
        advice="look at the column that was read as the target"
        if whole
        else "shuffle the data: a model that sees one class at a time forgets the others",
        claims=CLAIMS,
        numbers={"distinct": 1},
        weight=10 if whole else 6,
    )


def _class_findings(subject: Subject, targets: Tensor) -> Iterator[AuditFinding]:
    number = subject.classes
    counts = torch.bincount(targets[subject.counted(targets)], minlength=number).float()
    total = float(counts.sum())
    absent = (counts == 0).nonzero().flatten().tolist()
    if absent == [0] and number > 2:
        yield hint(
            "absent classes",
            f"class 0 never occurs, but each of 1 to {number - 1} does: the labels seem to count from one",
            measured=f"labels from 1 to {number - 1} for {number} outputs",
            predicted="torch counts classes from 0; an output that is never a label only takes probability away",
            advice=f"use y - 1 and {number - 1} outputs",
            claims=CLAIMS[:1],
            numbers={"absent": 1, "classes": number},
            weight=3,
        )
    elif absent and total >= EXPECTED * number:
        shown = ", ".join(map(str, absent[:5])) + (", ..." if len(absent) > 5 else "")
        yield hint(
            "absent classes",
            f"{len(absent)} of {number} classes never occur in {total:,.0f} labels: {shown}",
            measured=f"{number - len(absent)} classes occur",
            predicted=f"a class of the usual share is absent with probability exp({-total / number:.0f})",
            advice="see whether the data were cut off or filtered, or give the last layer fewer outputs",
            claims=CLAIMS[:1],
            numbers={"absent": len(absent), "classes": number},
            weight=3,
        )
    yield from _test_only(subject, counts)
    if number <= 1000:
        yield from _balance_findings(counts)


def _test_only(subject: Subject, counts: Tensor) -> Iterator[AuditFinding]:
    """Classes of the test part that were never trained."""
    test = subject.test
    if test is None or test.targets is None or test.targets.is_floating_point():
        return
    there = torch.bincount(test.targets[subject.counted(test.targets)], minlength=subject.classes).float()
    share = float(there.sum() / (there.sum() + counts.sum()))
    # Were both parts drawn from one pot, all k examples of a class fell into the test part with probability share^k.
    new = [k for k in range(subject.classes) if counts[k] == 0 and there[k] > 0 and share ** float(there[k]) < ALPHA]
    if new:
        wrong = float(there[new].sum() / there.sum())
        shown = ", ".join(map(str, new[:5])) + (", ..." if len(new) > 5 else "")
        yield hint(
            "classes only in the test part",
            f"{wrong:.1%} of the test examples are of classes that training never shows: {shown}",
            measured=f"{len(new)} classes with 0 training examples and {int(there[new].sum())} test examples",
            predicted=f"by a random split this happens with probability below {ALPHA:.0e}",
            advice="split at random, or stratified by class, before training",
            claims=CLAIMS[:1],
            numbers={"classes": len(new), "share": wrong},
            weight=6,
        )


def _balance_findings(counts: Tensor) -> Iterator[AuditFinding]:
    total, present = float(counts.sum()), counts[counts > 0]
    most, least = float(present.max()), float(present.min())
    share = most / max(total, 1.0)
    names = [str(k) for k in range(len(counts))]
    figures = [Figure("Labels", "class", "examples", [Bars(names, counts.tolist())])] if len(counts) <= 50 else []
    numbers = {"majority": share, "most": most, "least": least}
    said = f"the most frequent class has {most:,.0f} examples, the rarest {least:,.0f}"
    if total >= 50 and share > MAJORITY:
        yield hint(
            "class balance",
            f"class {int(counts.argmax())} is {share:.1%} of the labels: always answering it is right that often",
            measured=said,
            predicted=f"accuracy below {share:.1%} is worse than a constant",
            advice="judge by balanced accuracy or the area under the curve; weight the loss, or draw rare classes more",
            claims=CLAIMS,
            figures=figures,
            numbers=numbers,
            weight=4,
        )
    else:
        told = f"{len(present)} classes occur; {said}"
        yield fine("class balance", told, measured=said, claims=CLAIMS, figures=figures, numbers=numbers)


def _target_scale(values: Tensor) -> AuditFinding:
    """Numbers to be predicted, by column: the one that is farthest from mean 0 and deviation 1."""
    mean, spread = values.mean(0), values.std(0, unbiased=False)
    size = values.square().mean(0).sqrt()
    worst = int(size.clamp_min(1e-30).log().abs().argmax())
    shown = f"mean {float(mean[worst]):.3g}, standard deviation {float(spread[worst]):.3g}"
    numbers = {"mean": float(mean[worst]), "deviation": float(spread[worst])}
    if 0.01 <= float(size[worst]) <= 10:
        return fine("target scale", f"the targets are of order one: {shown}", measured=shown, numbers=numbers)
    return hint(
        "target scale",
        f"the targets are far from order one: {shown}",
        measured=shown,
        predicted="a fresh network answers numbers of order one, and the squared loss is of their square",
        advice="standardise the targets, and undo it for the answers: y = (y - mean) / deviation",
        claims=("loss.squared", "regression.gradient"),
        numbers=numbers,
        weight=3,
    )
