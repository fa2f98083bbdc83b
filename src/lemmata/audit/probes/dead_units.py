r"""Units that no example gets through: ReLUs that never fire, and sigmoids that are always saturated."""

from collections.abc import Iterator
from typing import Any

from scipy.special import betaincinv

from lemmata.audit.activation_slopes import ActivationLayer, ActivationSlopes, chunks
from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.audit.watching import use_batch_statistics
from lemmata.figure import Bars, Figure

CHUNK, SMALL_CHUNK = 61, 31  # prime numbers: few layers have as many units, so the axis of examples is known by size
LEAST_EXAMPLES = 30
# Alone among fewer units, even half of which are active at random, the chance to be cut off is not small: 2^-8 with 8.
LEAST_UNITS = 8
CUT, SATURATED = 0.9, 0.99
WORTH_A_WORD, HALF = 0.2, 0.5
MOST_BARS = 16  # layers in the figure, those with the most dead units
NAME = "dead units"
CLAIMS = ("activation.relu_derivative", "relu.activation_pattern", "matcalc.elementwise")
SLOPES = ("activation.tanh_derivative", "activation.sigmoid_derivative", "matcalc.elementwise")


@probe("Dead and saturated units", value=80, share=0.15)
def dead_units(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """The slope of every activation for as many examples as there is time for."""
    use_batch_statistics(subject.model)
    each = 3 * subject.seconds  # forwards, and every activation twice more
    size = CHUNK if clock.left() > 2 * CHUNK * each else SMALL_CHUNK
    slopes, examples, slowest = ActivationSlopes(subject), 0, each * min(size, len(subject.train))
    clock.need(slowest, "slopes of all activations")
    for inputs, number in chunks(subject, size):
        before = clock.left()
        if before < slowest:
            break
        slopes.count(subject, inputs, number)
        examples, slowest = examples + number, before - clock.left()
    found = slopes.found()
    if examples < LEAST_EXAMPLES:
        yield skipped(NAME, f"it needs {LEAST_EXAMPLES} examples, there was time for {examples}")
        return
    if not found:
        yield skipped(NAME, "no activation that could die or saturate was met")
        return
    told = [finding for layer, last in found for finding in _judge_layer(layer, last, examples)]
    yield from told
    rectifiers = [layer for layer, _ in found if not layer.both]
    if not told or (rectifiers and not any(finding.severity == "alarm" for finding in told)):
        yield _layers_summary(rectifiers, examples)


def _judge_layer(layer: ActivationLayer, last: bool, examples: int) -> Iterator[AuditFinding]:
    where = f"layer {layer.name}"
    numbers = {"units": layer.units, "dead": layer.dead, "flat": layer.flat_fraction, "examples": examples}
    more: dict[str, Any] = {"numbers": numbers, "where": [layer.name]}
    if not layer.both:
        more["claims"], more["predicted"] = CLAIMS, "where the slope is zero, so is every gradient before it"
        cure = "lower the learning rate or the biases' size, initialise by He's rule, or take a leaky activation"
        more["measured"] = (
            f"{layer.units - layer.dead} of {layer.units} units with a slope for any of {examples} examples"
        )
        cut = layer.cut / max(layer.examples, 1)
        if layer.dead == layer.units:
            verdict = f"all {layer.units} units of {layer.activation} behind {where} are dead: no example gets through"
            yield alarm(NAME, verdict, advice=cure, weight=10, **more)
        elif (
            layer.units >= LEAST_UNITS
            and layer.examples >= LEAST_EXAMPLES
            and _at_least(layer.cut, layer.examples) > CUT
        ):
            verdict = f"{cut:.0%} of the examples get through no unit of {layer.activation} behind {where}"
            yield alarm(NAME, verdict, advice=cure, weight=8, **more)
    elif not last and not layer.gate and layer.units >= LEAST_UNITS:
        more["claims"], more["predicted"] = (
            SLOPES,
            "beyond 3 for tanh, 6 for the sigmoid, slopes are below 1 % of the best",
        )
        cure = "initialise with smaller weights, normalise the inputs, or normalise before the activation"
        more["measured"] = f"{layer.flat_fraction:.1%} of all pairs of unit and example without a slope"
        verdict = f"{layer.activation} behind {where} is saturated in {layer.flat_fraction:.1%} of all cases"
        if layer.flat_fraction > SATURATED:
            yield alarm("saturation", verdict, advice=cure, weight=8, **more)
        elif layer.flat_fraction > HALF:
            yield hint("saturation", verdict, advice=cure, weight=3, **more)


def _at_least(count: int, number: int) -> float:
    """Lower end of the exact interval for a fraction, missed once in a million times (Clopper and Pearson)."""
    return float(betaincinv(count, number - count + 1, 1e-6)) if count else 0.0


def _layers_summary(layers: list[ActivationLayer], examples: int) -> AuditFinding:
    """All layers together, once none is dead as a whole."""
    if not layers:
        return fine("saturation", f"activations keep their slopes on {examples} examples", claims=SLOPES)
    units, dead = sum(layer.units for layer in layers), sum(layer.dead for layer in layers)
    worst = max(layers, key=lambda layer: layer.dead / layer.units)
    shown = sorted(layers, key=lambda layer: -layer.dead / layer.units)[:MOST_BARS]
    shown = [layer for layer in layers if layer in shown]
    bars = Bars([layer.name for layer in shown], [1 - layer.dead / layer.units for layer in shown])
    more: dict[str, Any] = {
        "measured": f"{dead} of {units} units without a slope for any of {examples} examples, most behind {worst.name}",
        "predicted": f"a unit that is never active in {examples} is so for less than {3 / examples:.1%} at 95 %",
        "claims": CLAIMS,
        "figures": [Figure("Units with a slope for some example", "layer", "fraction", [bars])],
        "numbers": {"units": units, "dead": dead, "examples": examples, "worst": worst.dead / worst.units},
        "where": [layer.name for layer in layers if layer.dead],
    }
    if worst.dead / worst.units > WORTH_A_WORD:
        verdict = f"{worst.dead} of {worst.units} units behind layer {worst.name} are dead, {dead} of {units} in all"
        cure = (
            "a smaller learning rate, He's initialisation or a leaky activation keeps them; or make the layer narrower"
        )
        return hint(NAME, verdict, advice=cure, weight=3, **more)
    return fine(NAME, f"{units - dead} of {units} units are active for some example", **more)
