r"""What the model consists of and costs, and whether its units differ and its outputs move."""

from collections.abc import Iterator
from typing import Any

import torch

from lemmata.audit.clock import Clock
from lemmata.audit.duplicates import repeated_units
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.operation_count import affordable, floating_operations, kept_bytes
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.audit.watching import WeightProduct, use_batch_statistics, weight_products
from lemmata.figure import Bars, Figure

EXAMPLES = 61  # a prime number: few layers have as many units, so the axis of examples is known by its size
LEAST_EXAMPLES, MOST_EXAMPLES = 8, 2000
USUAL_BATCH = 128
STATES = {"adam": 2, "adamw": 2, "rmsprop": 1, "adagrad": 1}  # numbers an optimiser keeps for each parameter
COST, REPEATED, CONSTANT = "anatomy", "duplicate units", "constant outputs"
CLAIMS = ("layers.composition", "conv.params")
SYMMETRY = ("layers.permutation_symmetry",)


@probe("Anatomy", value=90, share=0.1)
def anatomy(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """Layers, parameters, operations and memory; units that repeat others; outputs that never move."""
    use_batch_statistics(subject.model)
    number = min(EXAMPLES, len(subject.train))
    if clock.left() < 8 * number * subject.seconds:
        number = max(min(LEAST_EXAMPLES, number), int(clock.left() / (8 * subject.seconds)))
    clock.need(number * subject.seconds, "the operations of a batch")
    sample = subject.some(affordable(subject, number))
    yield _cost_finding(subject, sample)
    clock.need(3 * number * subject.seconds, "units that repeat others")
    yield from _unit_findings(subject, sample, clock)


def _cost_finding(subject: Subject, sample: Sample) -> AuditFinding:
    model = subject.model
    own = {name: sum(p.numel() for p in part.parameters(recurse=False)) for name, part in model.named_modules()}
    layers = {name or "the model": count for name, count in own.items() if count}
    parameters = sum(values.numel() for values in model.parameters())
    weights = sum(values.nbytes for values in model.parameters())
    operations = floating_operations(subject, sample.tensors) / len(sample)
    kept = kept_bytes(subject, sample.tensors) / len(sample)
    batch = subject.training.batch_size or USUAL_BATCH
    states = STATES.get(subject.training.optimizer or "", 1 if subject.training.momentum else 0)
    total = weights * (2 + states) + kept * batch
    verdict = (
        f"{_in_units(parameters)} parameters in {len(layers)} layers, {_in_units(operations)} operations an example, "
    )
    largest = sorted(layers, key=layers.__getitem__, reverse=True)[:12]
    bars = Bars([name for name in layers if name in largest], [layers[name] for name in layers if name in largest])
    return fine(
        COST,
        f"{verdict}{_bytes_text(total)} of memory to train with batches of {batch}",
        measured=(
            f"weights {_bytes_text(weights)}, as much again for gradients and {states} times for the optimiser, "
            f"{_bytes_text(kept)} kept for the gradient of an example; "
            f"{largest[0] if largest else 'nothing'} is the largest"
        ),
        predicted="a gradient takes about twice the operations of the way forwards",
        claims=CLAIMS,
        figures=[Figure("Parameters of the largest layers", "layer", "parameters", [bars])] if largest else [],
        numbers={
            "parameters": parameters, "layers": len(layers), "operations": operations,
            "kept_bytes": kept, "weight_bytes": weights, "batch_bytes": total,
        },
    )  # fmt: skip


def _unit_findings(subject: Subject, sample: Sample, clock: Clock) -> Iterator[AuditFinding]:
    found: dict[str, tuple[WeightProduct, torch.Tensor]] = {}

    def see(product: WeightProduct) -> None:
        # A layer that is called often has its units repeated only if they are so every time.
        repeats = repeated_units(product, len(sample))
        before = found.get(product.name)
        found[product.name] = product, repeats if before is None else torch.minimum(repeats, before[1])

    outputs, _ = weight_products(subject, sample.tensors, see)
    yield from _repeated_units(found)
    outputs = outputs.detach()
    if _output_spread(outputs) <= _output_rounding(subject, outputs):  # before it is said, it is seen on more examples
        sample = subject.some(max(len(sample), min(MOST_EXAMPLES, int(clock.left() / (2 * subject.seconds)))))
        with torch.no_grad():
            outputs = torch.cat([subject.network(*part.tensors) for part in subject.batches(sample, 256)])
    yield _output_findings(subject, sample, outputs)


def _repeated_units(found: "dict[str, tuple[WeightProduct, torch.Tensor]]") -> Iterator[AuditFinding]:
    several = False
    for name, (product, repeats) in found.items():
        # What is shuffled into pixels begins with equal kernels on purpose (Aitken et al. 2017).
        again, units = int((repeats >= 0).sum()), len(repeats)
        if not again or "pixel_shuffle" in product.then:
            continue
        several = True
        pairs = [f"{int(repeats[unit])} and {unit}" for unit in (repeats >= 0).nonzero().flatten().tolist()[:5]]
        verdict = f"{again} of the {units} units of layer {name} repeat others, up to a factor: {', '.join(pairs)}"
        cure = "draw their weights at random and each its own, or remove the copies and add their outgoing weights"
        if again == units - 1:
            verdict = f"all {units} units of layer {name} are the same up to a factor, worth no more than one"
            cure = "draw the weights at random: gradients keep equal units equal"
        yield alarm(
            REPEATED,
            verdict,
            measured=f"{units - again} directions of incoming weights among {units} units, with equal outputs",
            predicted="units of independent weights never agree; equal ones get equal gradients, up to what follows",
            advice=cure,
            claims=SYMMETRY,
            numbers={"units": units, "repeated": again},
            where=[name],
            weight=4 + 5 * again / units,
        )
    if found and not several:
        yield fine(REPEATED, f"no unit repeats another in {len(found)} layers", claims=SYMMETRY)


def _output_findings(subject: Subject, sample: Sample, outputs: torch.Tensor) -> AuditFinding:
    """Whether outputs depend on the inputs at all."""
    spread, size = _output_spread(outputs), float(outputs.abs().max())
    varied = any(bool((values != values[:1]).any()) for values in sample.tensors)
    more: dict[str, Any] = {
        "measured": f"outputs of size {size:.3g} differ by {spread:.3g} between {len(sample)} examples",
        "claims": CLAIMS[:1],
        "numbers": {"spread": spread, "size": size},
    }
    if not varied or len(sample) < LEAST_EXAMPLES:
        return skipped(CONSTANT, f"it needs {LEAST_EXAMPLES} examples that differ")
    if spread > _output_rounding(subject, outputs):
        return fine(CONSTANT, f"outputs move with the inputs, by {spread:.2g}", **more)
    zero = [name for name, values in subject.model.named_parameters() if not name.endswith("bias") and not values.any()]
    verdict = f"the outputs are the same for all {len(sample)} examples"
    if zero or subject.dtype.itemsize < 4:
        why = f"{zero[0]} begins with zeros" if zero else f"up to the rounding of {str(subject.dtype)[6:]}"
        return hint(CONSTANT, f"{verdict}: {why}", advice="look again once it has trained", weight=2, **more)
    cure = "look for dead units and vanishing signals above; otherwise the model does not use its inputs"
    return alarm(CONSTANT, verdict, advice=cure, weight=10, **more)


def _output_spread(outputs: torch.Tensor) -> float:
    """How far an output moves between examples."""
    rows = outputs.double()
    return float((rows.amax(0) - rows.amin(0)).max())


def _output_rounding(subject: Subject, outputs: torch.Tensor) -> float:
    return 2 * torch.finfo(subject.dtype).eps * float(outputs.abs().max())


def _in_units(number: float) -> str:
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f}"


def _bytes_text(number: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"
