r"""The shape of the loss around the weights: how many directions are steep, and whether some lead down."""

from collections.abc import Iterator
from typing import Any

import torch

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, fine, hint, skipped
from lemmata.audit.learning_form import LearningForm, examples_for, learning_form, vectors_for
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.figure import Figure, Line
from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.eigenvalues import extreme_eigenpairs
from lemmata.measure.spectral_density import SpectralDensity, stochastic_spectral_density
from lemmata.measure.trace import hutch_plus_plus, hutchinson_trace

LANCZOS, TRACE, STARTS, NODES = (
    20,
    30,
    3,
    20,
)  # products for each end and for the trace; starts and steps of the density
PASSES = 6 * (2 * LANCZOS + TRACE + STARTS * NODES)  # forwards, for one example
LARGEST = 512  # examples
STATIONARY = 1e-4  # of the loss is all that the best step along the gradient could gain
DOWNWARDS = 0.1  # of the largest curvature: negative curvature that is no detail
POINTS = 200


@probe("Curvature of the loss", value=40, share=0.15, needs=("targets",))
def curvature(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """Both ends of the spectrum of the Hessian with residuals, its trace and its density."""
    if not any(value.requires_grad for value in subject.model.parameters()):
        yield skipped("curvature", "the model has no parameters that learn")
        return
    examples = examples_for(subject, 0.7 * clock.left(), PASSES, LARGEST)
    clock.need(6 * LANCZOS * subject.seconds * examples, "the ends of the spectrum")
    with learning_form(subject, examples) as whole:
        form = whole.within(0.8 * clock.left(), PASSES // 6)
        hessian = form.hessian()
        began = clock.left()
        top, bottom = (
            extreme_eigenpairs(
                hessian,
                end=end,
                accuracy=0.01,
                steps=vectors_for(hessian.size, LANCZOS),
                generator=_seeded_generator(form),
            )
            for end in ("largest", "smallest")
        )
        product = (began - clock.left()) / (top.products + bottom.products)
        largest, least = top.values.item(), bottom.values.item()
        ends = {"largest": largest, "residual": top.residuals.item()}
        yield _downward_findings(form, ends, least, bottom.residuals.item())
        clock.need(TRACE * product, "the trace of the Hessian")
        yield _trace_findings(form, hessian, ends, clock, product)


def _trace_findings(
    form: LearningForm, hessian: HessianOperator, ends: dict[str, float], clock: Clock, product: float
) -> AuditFinding:
    """How the curvature is spread, with the density where there is time for it."""
    room = vectors_for(hessian.size, STARTS * NODES) == STARTS * NODES
    estimate = hutch_plus_plus if room else hutchinson_trace  # which keeps no vectors
    found = estimate(hessian, TRACE, generator=_seeded_generator(form))
    error = 3 * found.standard_error
    figures = []
    if room and clock.left() > STARTS * NODES * product:
        density = stochastic_spectral_density(hessian, STARTS, NODES, generator=_seeded_generator(form))
        figures = [_spectrum_figure(density)]
    largest, size = ends["largest"], hessian.size
    steep = found.value / largest if largest > 0 else 0.0
    verdict = f"largest curvature {largest:.3g}, trace {found.value:.3g} ± {error:.2g} over {size:,} parameters"
    verdict += f": as much as {steep:.3g} directions of the steepest kind" if steep > 0 else ""
    measured = f"{'Hutch++' if room else 'Hutchinson'} with {found.products} products and Lanczos's iteration "
    measured += f"(residual {ends['residual']:.1g}) on {len(form.sample)} examples, {form.words}"
    numbers = ends | {"trace": found.value, "trace_error": found.standard_error, "parameters": float(size)}
    return fine(
        "curvature", verdict, measured=measured, predicted="the trace is the sum of all eigenvalues",
        claims=("linalg.trace_eigenvalues", "calculus.gradient_hessian"), figures=figures, numbers=numbers,
    )  # fmt: skip


def _downward_findings(form: LearningForm, ends: dict[str, float], least: float, residual: float) -> AuditFinding:
    """Whether the loss bends downwards along some direction, and whether the gradient is of use there."""
    (loss, square), largest = _loss_and_slope(form), ends["largest"]
    gain = square / (2 * largest) if largest > 0 else float("inf")
    numbers = {"least": least, "residual": residual, "largest": largest, "gain": gain, "loss": loss}
    more: dict[str, Any] = {
        "numbers": numbers,
        "claims": ("optim.sgd.escape", "optim.stepsize.exact_ratio"),
        "measured": f"smallest eigenvalue {least:.3g} (residual {residual:.1g}) against the largest {largest:.3g}, "
        f"on {len(form.sample)} examples, {form.words}",
    }
    name = "negative curvature"
    if least + residual < -DOWNWARDS * largest and gain < STATIONARY * abs(loss):
        verdict = f"the weights are at a saddle: the gradient can gain {gain:.1g} of the loss {loss:.3g}, "
        verdict += f"while the loss bends downwards with {least:.3g}"
        advice = "break the symmetry: start from other random weights, or train with noise (smaller batches)"
        predicted = "at a minimum no eigenvalue is below zero"
        return hint(name, verdict, advice=advice, predicted=predicted, weight=3.0, **more)
    bend = f"the smallest curvature is {least:.2g} ± {residual:.1g}, the largest {largest:.3g} ± {ends['residual']:.1g}"
    return fine(name, bend if largest else "the loss does not bend at all here", **more)


def _loss_and_slope(form: LearningForm) -> tuple[float, float]:
    """The loss on the sample and the square of its gradient."""
    values = [value for value in form.network.parameters() if value.requires_grad]
    batches = form.batches
    total, gradient = 0.0, [torch.zeros_like(value) for value in values]
    for inputs, targets in batches:
        with torch.enable_grad():
            loss = form.subject.loss(form.network(*inputs), targets) / len(batches)
            found = torch.autograd.grad(loss, values, materialize_grads=True)
        total += loss.item()
        for sum_, part in zip(gradient, found, strict=True):
            sum_ += part
    return total, sum(part.double().square().sum().item() for part in gradient)


def _spectrum_figure(density: SpectralDensity) -> Figure:
    low, high = density.nodes.min().item(), density.nodes.max().item()
    spread = max(high - low, 1e-12)
    grid = torch.linspace(low - 0.05 * spread, high + 0.05 * spread, POINTS, dtype=torch.float64)
    values = density.on(grid.to(density.nodes.device), 0.01 * spread).clamp(min=1e-6 / spread)
    note = "by Lanczos quadrature; each node is spread by a hundredth of the range"
    return Figure("Spectrum of the Hessian", "eigenvalue", "density", [Line(grid, values)], y_log=True, note=note)


def _seeded_generator(form: LearningForm) -> torch.Generator:
    return torch.Generator(form.subject.device).manual_seed(0)
