"""The checks of the conformance suite of modules that transform a module: gradients, torch.func, compile, export."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.gradcheck import GradcheckError

from lemmata.testing.findings import Broken, Undecided
from lemmata.testing.module_subject import LENGTHS, Subject, demand_same, demand_same_gradients, outputs_of, scalar

__all__ = []  # for the suite alone


def gradcheck(subject: Subject) -> None:
    module = subject.copied(torch.float64).train()
    inputs = subject.with_dtype(torch.float64)
    at = list(subject.floating())
    names = list(subject.parameters)

    def outputs(*values: Tensor) -> tuple[Tensor, ...]:
        given = {**inputs, **dict(zip(at, values, strict=False))}
        weights = dict(zip(names, values[len(at) :], strict=True))
        torch.manual_seed(0)  # for dropout
        found = outputs_of(torch.func.functional_call(module, weights, tuple(given.values())))
        return tuple(x for x in found if x.requires_grad)

    values = [inputs[name] for name in at] + [dict(module.named_parameters())[name] for name in names]
    # Beside the example itself: a bias that starts at zero puts ReLU exactly on its kink wherever the input is padding.
    values = [(value.detach() + 0.05 * torch.randn_like(value)).requires_grad_() for value in values]
    if not values or not outputs(*values):
        raise Undecided("nothing that it gives has a gradient")
    try:
        torch.autograd.gradcheck(outputs, values, fast_mode=True)
    except GradcheckError as error:
        raise Broken(f"its gradient is not that of its values: {' '.join(str(error).split())[:160]}") from None


def used_parameters(subject: Subject) -> None:
    module = subject.copied().train()
    loss = scalar(subject.run(module))
    names = [name for name, p in module.named_parameters() if p.requires_grad]
    if not names:
        raise Undecided("it has no parameters")
    if not loss.requires_grad:
        raise Broken(f"nothing that it gives depends on {names[0]}: freeze it, or do not detach")
    found = torch.autograd.grad(loss, [module.get_parameter(name) for name in names], allow_unused=True)
    if idle := [name for name, gradient in zip(names, found, strict=True) if gradient is None]:
        raise Broken(f"nothing that it gives depends on {', '.join(idle[:3])}: freeze it, or do not detach")


def functional(subject: Subject) -> None:
    if not subject.parameters:
        raise Undecided("it has no parameters")
    module, inputs = subject.copied(), tuple(subject.inputs.values())
    other = {name: p * 1.25 + 0.0625 for name, p in subject.parameters.items()}
    changed = subject.copied()
    with torch.no_grad():
        for name, value in other.items():
            changed.get_parameter(name).copy_(value)
        found = outputs_of(torch.func.functional_call(module, other, inputs))
        demand_same(found, subject.run(changed), "with parameters of functional_call")

    def loss(weights: dict[str, Tensor]) -> Tensor:
        return scalar(outputs_of(torch.func.functional_call(module, weights, inputs)))

    wanted = dict(zip(_trained_names(changed), subject.gradients(changed)[1], strict=False))
    gradients = torch.func.grad(loss)(other)
    names = [name for name in wanted if name in gradients]
    demand_same_gradients([gradients[name] for name in names], [wanted[name] for name in names], "of torch.func.grad")


def _trained_names(module: nn.Module) -> list[str]:
    return [n for n, p in module.named_parameters() if p.requires_grad and (p.is_floating_point() or p.is_complex())]


def vmap(subject: Subject) -> None:
    """In float64, since other kernels round otherwise, and a ReLU that is almost zero has another slope then."""
    module, inputs = subject.copied(torch.float64), subject.with_dtype(torch.float64)
    names = list(subject.batched())
    weights = {name: module.get_parameter(name).detach() for name in subject.parameters}

    def alone(weights: dict[str, Tensor], *rows: Tensor) -> list[Tensor]:
        given = {**inputs, **{name: row[None] for name, row in zip(names, rows, strict=True)}}
        return outputs_of(torch.func.functional_call(module, weights, tuple(given.values())))

    def loss(weights: dict[str, Tensor], *rows: Tensor) -> Tensor:
        return scalar(alone(weights, *rows))

    batch = [inputs[name] for name in names]
    axes = (None, *[0] * len(batch))
    with torch.no_grad():
        found = torch.func.vmap(alone, in_dims=axes)(weights, *batch)
        for index in range(2):
            one = alone(weights, *(x[index] for x in batch))
            demand_same([x[index] for x in found], one, f"of row {index} by vmap")
    if weights and any(x.is_floating_point() for x in found):
        each = torch.func.vmap(torch.func.grad(loss), in_dims=axes)(weights, *batch)
        first = torch.func.grad(loss)(weights, *(x[0] for x in batch))
        demand_same_gradients(
            [x[0] for x in each.values()], list(first.values()), "of the gradients of each row by vmap"
        )


def compiled(subject: Subject) -> None:
    modules = [subject.copied().train() for _ in range(2)]
    torch.compiler.reset()
    try:
        outputs, gradients = _with_or_without_gradients(subject, modules[0])
        fast = torch.compile(modules[1], fullgraph=True, backend=subject.backend)
        found, slopes = _with_or_without_gradients(subject, fast)
    finally:
        torch.compiler.reset()
    demand_same(found, outputs, "compiled,")
    demand_same_gradients(slopes, gradients, "of the gradients, compiled,")
    buffers = [[x for x in module.buffers() if x.is_floating_point()] for module in modules]
    demand_same(buffers[1], buffers[0], "in its buffers, compiled,")


def _with_or_without_gradients(subject: Subject, module: Any) -> tuple[list[Tensor], list[Tensor]]:
    torch.manual_seed(0)  # for dropout
    try:
        return subject.gradients(module)
    except Undecided:
        return subject.run(module), []


class _OfTensors(nn.Module):
    """The module as a function of those inputs that are tensors; a graph is a constant."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.module, self.inputs = subject.copied(), subject.inputs

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        given = iter(tensors)
        values = [next(given) if isinstance(value, Tensor) else value for value in self.inputs.values()]
        return outputs_of(self.module(*values))


def exported(subject: Subject) -> None:
    """With all lengths dynamic, which is more, and else with the batch alone."""
    if _has_dynamic_lengths(subject):
        try:
            _demand_exported(subject, ("batch", *LENGTHS))
        except Broken as broken:
            subject.known["export_lengths"] = broken
        else:
            return
    _demand_exported(subject, ("batch",))


def exported_with_lengths(subject: Subject) -> None:
    if not _has_dynamic_lengths(subject):
        raise Undecided(f"no axis of its inputs is called {', '.join(LENGTHS)}")
    if "export_lengths" in subject.known:
        raise subject.known["export_lengths"]


def _has_dynamic_lengths(subject: Subject) -> bool:
    return any(label in LENGTHS for name in subject.tensors() for label in subject.free_axes(name).values())


def _demand_exported(subject: Subject, labels: tuple[str, ...]) -> None:
    """Exported with these axes dynamic, it must give the same as before when each of them is one longer."""
    sizes: dict[str, torch.export.Dim] = {}
    shapes, larger = [], []
    for name, x in subject.tensors().items():
        dynamic = {axis: label for axis, label in subject.free_axes(name).items() if label in labels}
        for axis, label in dynamic.items():
            sizes.setdefault(label, torch.export.Dim(label, max=2 * x.shape[axis]))
            x = torch.cat([x, x.narrow(axis, 0, 1)], dim=axis)
        shapes.append({axis: sizes[label] for axis, label in dynamic.items()})
        larger.append(x)
    whole, tensors = _OfTensors(subject).eval(), tuple(subject.tensors().values())
    with torch.no_grad():
        wanted = outputs_of(whole(*larger))
        try:
            program = torch.export.export(whole, tensors, dynamic_shapes=(tuple(shapes),), strict=False)
            found = outputs_of(program.module()(*larger))
        except Exception as error:
            raise Broken(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}") from None
    demand_same(found, wanted, f"exported, for {' and '.join(sizes) or 'the same sizes'} one longer,")
