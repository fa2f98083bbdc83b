r"""Whether the data reach the first layer in a size that gradient descent can work with."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.operation_count import affordable
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.audit.watching import WeightProduct, use_batch_statistics, weight_products
from lemmata.figure import Bars, Figure

# A layer y = Wx has the curvature E[xx'] (times what follows), so that steps are stable up to one over the mean square
# of its inputs. A thousand times the curvature of standardised inputs leaves a thousandth of their step.
CURVATURE = 1000.0
WORTH_A_WORD = 25.0
# Fresh weights of torch make of inputs with the mean square v outputs with v/3. Outputs above this size saturate
# whatever follows; below it, the weights have made up for the inputs.
LARGE_OUTPUTS = 10.0
SPREAD = 100.0  # between features, in deviations: a condition number of its square
CLAIMS = ("regression.hessian", "optim.strong.linear_rate", "analysis.condition_number", "init.lecun")
NAME = "input scale"


@probe("Size of the inputs", value=75, share=0.05)
def input_scale(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """The mean square of what the first layers are given, wherever the model itself normalises it."""
    number = min(len(subject.train), 256, max(8, int(clock.left() / (4 * subject.seconds))))
    clock.need(2 * number * subject.seconds, "a look at the first layer")
    firsts: list[WeightProduct] = []

    def see(product: WeightProduct) -> None:
        if not product.learned:
            firsts.append(product)

    use_batch_statistics(subject.model)
    sample = subject.some(affordable(subject, number))
    _, normalised = weight_products(subject, sample.tensors, see)
    if not firsts:
        if normalised:
            yield fine(NAME, f"the model normalises its inputs itself, in layer {normalised[0]}", claims=["norm.unit"])
        else:
            yield skipped(NAME, "no layer multiplies the data themselves by weights, as with tokens")
        return
    yield from (_judge_scale(one) for one in {one.name: one for one in firsts}.values())


def _judge_scale(first: WeightProduct) -> AuditFinding:
    given = _by_feature(first)  # (features, values)
    square = float(given.square().mean())
    deviations, means = given.std(1, correction=0), given.mean(1)
    outputs = float(first.output.detach().double().square().mean().sqrt())
    moving = deviations[deviations > 0]
    spread = float(moving.max() / moving.quantile(0.1)) if len(moving) else 1.0
    more = {
        "measured": (
            f"mean square {square:.3g}, means from {float(means.min()):.3g} to {float(means.max()):.3g}, deviations "
            f"from {float(deviations.min()):.3g} to {float(deviations.max()):.3g}; outputs of size {outputs:.3g}"
        ),
        "predicted": "standardised inputs have mean square 1; the largest stable step goes with one over it",
        "claims": CLAIMS,
        "numbers": {"mean_square": square, "spread": spread, "output_size": outputs},
        "where": [first.name],
    }
    root = math.sqrt(square)
    how = "subtract the mean and divide by the deviation of each feature, both from the training part"
    if square >= CURVATURE and outputs >= LARGE_OUTPUTS:
        verdict = (
            f"the inputs of layer {first.name} are {root:.3g} in size: stable steps are {square:,.0f} times smaller"
        )
        cure = f"{how} (pictures of 0 to 255: divide by 255 first)"
        return alarm(
            NAME, f"{verdict} than with standardised inputs", advice=cure, weight=7, **_with_figure(more, given)
        )
    if 0 < square <= 1 / CURVATURE**2:
        verdict = f"the inputs of layer {first.name} are only {root:.2g} in size: biases drown them"
        return alarm(NAME, verdict, advice=how, weight=6, **_with_figure(more, given))
    if square >= WORTH_A_WORD:
        verdict = (
            f"the inputs of layer {first.name} are {root:.3g} in size, which makes stable steps {square:,.0f} times"
        )
        return hint(NAME, f"{verdict} smaller", advice=how, weight=4, **_with_figure(more, given))
    if spread > SPREAD and first.function == "linear":
        verdict = (
            f"features of layer {first.name} differ {spread:,.0f} times in size, a condition number of {spread**2:.1g}"
        )
        return hint(NAME, verdict, advice=how, weight=3, **_with_figure(more, given))
    return fine(
        NAME, f"the inputs of layer {first.name} are {root:.2g} in size, near the 1 of standardised ones", **more
    )


def _by_feature(first: WeightProduct) -> Tensor:
    """(features, values): channels of a convolution, else the last axis."""
    given = first.given.detach().double()
    axis = given.ndim - 1
    if first.function.startswith("conv"):
        axis = given.ndim - (first.weight.ndim - 1)
    return given.movedim(axis, 0).reshape(given.shape[axis], -1)


def _with_figure(more: dict, given: Tensor) -> dict:
    sizes = given.square().mean(1).sqrt()
    largest = torch.argsort(sizes, descending=True)[:12].sort().values
    bars = Bars([str(int(one)) for one in largest], sizes[largest])
    figure = Figure("Largest inputs of the first layer", "feature", "root of the mean square", [bars])
    return {**more, "figures": [figure]}
