r"""Whether signals reach the last layer and gradients the first: their size in every layer, now and drawn anew."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.layer_signals import DepthTrend, LayerSignal, depth_trend, layer_signals
from lemmata.audit.operation_count import affordable
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.audit.watching import use_batch_statistics
from lemmata.audit.weight_distribution import InitialDistribution, initial_distribution
from lemmata.figure import Figure, Line
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.tricks.initialization import initialize
from lemmata.tricks.mean_field import expected_profile

# Sizes may fall to this over all layers. Torch's own initialisation, 0.41 a layer with ReLU, comes there at 16 layers,
# where stochastic gradient descent no longer moves and Adam hardly does.
VANISHED = 1e-6
# Growth has no such excuse, as torch's layers never make signals larger: 3 times too large weights make gradients of 20
# layers of tanh 300 times larger. Residual blocks of torch's layers multiply by 1.08, by 1.41 with He's weights.
EXPLODED = 100.0
WORTH_A_WORD = 10.0
AGREEING = 0.75  # of all pairs of layers must go the same way: depth it is, not one odd layer
LEAST_RATIO, MOST_RATIO = 0.36, 1.8  # to He's deviation: torch's is 0.41 of it, LeCun's 0.71
LEAST_LAYERS = 4  # hidden ones, to speak of depth
MOST_EXAMPLES, LEAST_EXAMPLES = 64, 8
CLAIMS = ("init.he", "init.lecun", "init.glorot", "layers.composition", "residual.depth")
SEVERITIES = ("fine", "hint", "alarm")
# Layers whose weights are one matrix; gates of recurrent ones lie several in one.
DRAWN = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
NAME, LAW = "signal through depth", "initialisation"


@probe("Signals and gradients through depth", value=85, share=0.2)
def signal(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """Sizes of signals and gradients in every layer, and from which distribution its weights seem to be drawn."""
    use_batch_statistics(subject.model, always=len(subject.train) > 1)  # as it is while it trains
    # Forwards, backwards and what is counted along the way take about five times as long as forwards alone.
    each = 5 * subject.seconds
    number = min(MOST_EXAMPLES, len(subject.train), max(LEAST_EXAMPLES, int(clock.left() / (4 * each))))
    number = affordable(subject, number)
    clock.need(number * each, "signals and gradients of every layer")
    sample = subject.some(number)
    now = layer_signals(subject, sample)
    broken = next((layer for layer in now if not math.isfinite(layer.size)), None)
    if broken is not None:
        verdict = f"signals overflow {str(subject.dtype)[6:]} in layer {broken.name}: its outputs are not finite"
        cure = "initialise with smaller weights, normalise the inputs, or normalise layers"
        size = max((layer.size for layer in now if math.isfinite(layer.size)), default=math.nan)
        more = {"measured": f"the largest size before it is {size:.2g}", "claims": CLAIMS, "where": [broken.name]}
        yield alarm(NAME, verdict, advice=cure, weight=10, **more)
        return
    distributions = {
        layer.name: initial_distribution(layer.weight, *_layer_fans(layer)) for layer in now if layer.function in DRAWN
    }
    yield from _initialisation_finding(now, distributions)
    # The last layer has the size that the task wants.
    hidden = now[:-1]
    if len(hidden) < LEAST_LAYERS:
        yield skipped(NAME, f"it needs {LEAST_LAYERS} hidden layers to speak of depth, found {len(hidden)}")
        return
    foretold, others = _predicted_factors(hidden), {}
    if clock.left() > 2 * number * each:
        others = _with_other_weights(subject, sample)
    yield _through_depth(hidden, foretold, others)


def _with_other_weights(subject: Subject, sample: Sample) -> dict[str, list[LayerSignal]]:
    """Signals with weights drawn anew, by the layers' own reset_parameters and by He's rule. The core gives the old
    ones back when the probe has ended.
    """
    found = {}
    with contextlib.suppress(RuntimeError, TypeError, ValueError):  # somebody else's reset_parameters may want anything
        for part in subject.model.modules():
            reset = getattr(part, "reset_parameters", getattr(part, "_reset_parameters", None))
            if callable(reset):
                reset()
        found["drawn anew"] = layer_signals(subject, sample)[:-1]
        initialize(subject.model, "he")
        found["drawn by He's rule"] = layer_signals(subject, sample)[:-1]
    return found


def _through_depth(
    layers: list[LayerSignal], foretold: tuple[float, float] | None, others: dict[str, list[LayerSignal]]
) -> AuditFinding:
    forward, backward = _depth_trends(layers)
    measured = f"a layer multiplies signals by {forward.factor:.3g} and gradients by {backward.factor:.3g} on their way"
    measured += (
        f" back; depth scales {_scale_in_words(forward.depth_scale)} and {_scale_in_words(backward.depth_scale)} layers"
    )
    predicted = "weights of the right variance keep both: factor 1"
    if foretold is not None:
        predicted += f"; a wide network with this one's variances has {foretold[0]:.3g} and {foretold[1]:.3g}"
    for name, other in others.items():
        there = _depth_trends(other)
        measured += f"; {name}: {there[0].factor:.3g} and {there[1].factor:.3g}"
    more: dict[str, Any] = {
        "measured": measured,
        "predicted": predicted,
        "claims": CLAIMS,
        "figures": [
            _depth_figure("Signals", "forward", layers, others),
            _depth_figure("Gradients", "backward", layers, others),
        ],
        "numbers": {
            "forward_factor": forward.factor, "backward_factor": backward.factor,
            "forward_total": forward.total, "backward_total": backward.total, "layers": len(layers),
        },
    }  # fmt: skip
    told = {"signals": forward, "gradients": backward}
    what = max(told, key=lambda one: (SEVERITIES.index(_trend_severity(told[one])), abs(math.log(told[one].factor))))
    worst, way = told[what], "" if what == "signals" else " on their way back"
    if worst.factor < 1:
        verdict = f"{what} shrink to {worst.factor:.2g} of their size a layer{way}, to {worst.total:.1g} over"
    else:
        verdict = f"{what} grow {worst.factor:.2g} times a layer{way}, {worst.total:.2g} times over"
    rule = "glorot" if {"tanh", "sigmoid"} & {name for one in layers for name in one.then} else "he"
    cure = f'initialise by lemmata.tricks.initialize(model, "{rule}"), or put normalisation or residual connections'
    more["advice"] = f"{cure} between layers"
    if _trend_severity(worst) == "alarm":
        return alarm(NAME, f"{verdict} {worst.layers} layers", weight=9, **more)
    if _trend_severity(worst) == "hint":
        return hint(NAME, f"{verdict} {worst.layers} layers", weight=3, **more)
    more["advice"] = ""
    verdict = f"signals and gradients keep their size through {len(layers)} layers, {forward.total:.2g} and"
    return fine(NAME, f"{verdict} {backward.total:.2g} times over all", **more)


def _trend_severity(trend: DepthTrend) -> str:
    if trend.agreeing < AGREEING or 1 / WORTH_A_WORD <= trend.total <= WORTH_A_WORD:
        return "fine"
    return "alarm" if trend.total < VANISHED or trend.total > EXPLODED else "hint"


def _depth_trends(layers: Sequence[LayerSignal]) -> tuple[DepthTrend, DepthTrend]:
    """Of signals from the first layer on, of gradients from the last one back."""
    return depth_trend([one.forward for one in layers]), depth_trend([one.backward for one in reversed(layers)])


def _predicted_factors(layers: Sequence[LayerSignal]) -> tuple[float, float] | None:
    """Factors of a layer by mean-field theory, where the network is a chain of linear layers and one activation."""
    widths = [layers[0].weight.shape[-1], *(len(layer.weight) for layer in layers)]
    chained = all(
        one.function == "linear" and one.weight.shape[-1] == n for one, n in zip(layers, widths, strict=False)
    )
    called = {name.rstrip("_") for one in layers for name in one.then} - {"dropout", "flatten"}
    if not chained or len(called) != 1 or not called <= set(ACTIVATION_TABLE):
        return None
    # n E[w^2] of each layer is the square of its gain in LeCun's scheme.
    gains = [math.log(max(float(one.weight.double().square().mean()) * one.weight.shape[-1], 1e-300)) for one in layers]
    gain = math.exp(sum(gains) / len(gains) / 2)
    profile = expected_profile(widths, called.pop(), "lecun", gain)
    lengths = [math.sqrt(n * float(q)) for n, q in zip(widths[1:], profile.backward, strict=True)]
    sizes = profile.forward.sqrt().tolist()
    return depth_trend(sizes).factor, depth_trend(lengths[::-1]).factor


def _initialisation_finding(
    layers: Sequence[LayerSignal], distributions: dict[str, InitialDistribution]
) -> Iterator[AuditFinding]:
    """Which distribution the weights of each layer seem to be drawn from."""
    if not distributions:
        return
    told = Counter(_short_scheme(distribution) for distribution in distributions.values())
    measured = ", ".join(f"{number} {distribution}" for distribution, number in told.most_common())
    fresh = {
        name: distribution
        for name, distribution in distributions.items()
        if distribution.family in ("normal", "uniform")
    }
    odd = {
        name: distribution
        for name, distribution in fresh.items()
        if not distribution.scheme and not LEAST_RATIO <= distribution.ratio <= MOST_RATIO
    }
    more = {
        "measured": measured,
        "predicted": "He: variance 2/n, Glorot: 2/(n+m), LeCun: 1/n, torch: 1/(3n)",
        "claims": ("init.he", "init.glorot", "init.lecun", "init.orthogonal"),
        "numbers": {f"ratio_to_he.{name}": distribution.ratio for name, distribution in distributions.items()},
        "where": list(odd),
    }
    if odd:
        name, distribution = next(iter(odd.items()))
        fresh_ones = f"{len(odd)} of {len(distributions)} layers have fresh weights of an odd scale"
        verdict = f"{fresh_ones}: those of layer {name} are {distribution}"
        cure = 'take lemmata.tricks.initialize(model, "he"), unless another factor makes up for it'
        yield hint(LAW, verdict, advice=cure, weight=3, **more)
    else:
        yield fine(LAW, f"of {len(distributions)} layers {measured}", **more)


def _short_scheme(distribution: InitialDistribution) -> str:
    return (
        str(distribution)
        if distribution.scheme or distribution.family not in ("normal", "uniform")
        else f"{distribution.family} of another scale"
    )


def _layer_fans(layer: LayerSignal) -> tuple[float, float]:
    """Over how many terms an output sums, and a gradient."""
    window = layer.weight[0, 0].numel()
    inputs, outputs = layer.weight[0].numel(), len(layer.weight) * window
    return (outputs, inputs) if layer.function.startswith("conv_transpose") else (inputs, outputs)


def _depth_figure(title: str, what: str, layers: Sequence[LayerSignal], others: dict[str, list[LayerSignal]]) -> Figure:
    lines = [
        Line(list(range(1, len(found) + 1)), [getattr(one, what) or math.nan for one in found], label)
        for label, found in {"now": list(layers), **others}.items()
    ]
    size = "deviation of a unit" if what == "forward" else "length of an example's gradient"
    return Figure(f"{title} through depth", "hidden layer", size, lines, y_log=True)


def _scale_in_words(scale: float) -> str:
    return "over 100" if scale > 100 else f"{scale:.2g}"
