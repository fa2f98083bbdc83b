r"""The empirical tangent kernel of any network: products of the gradients of its outputs, without the gradients."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from lemmata import validate
from lemmata.kernel.tangent_layers import Recorder, Use, add_product, add_rows, edges_into, prefers_rows, rows
from lemmata.marks import system

__all__ = ["ntk", "ntk_by_definition", "tangent_rules"]

FORMS = ("full", "trace", "diagonal")
USUAL_MEMORY = 4 << 30
Progress = Callable[[int, int], None]


@system("ntk", title="Tangent kernel of a network", kind="function")
def ntk(
    model: nn.Module,
    x1: Shaped[Tensor, "n1 ..."],
    x2: Shaped[Tensor, "n2 ..."] | None = None,
    form: str = "full",
    block: int | None = None,
    max_memory: int | None = None,
    progress: Progress | None = None,
) -> Float[Tensor, "n1 n2 ..."]:
    r"""The tangent kernel of a network as it stands: products of the gradients of its outputs in its parameters.

    $$ k(x, x')_{op} = \langle \nabla_\theta f_o(x), \nabla_\theta f_p(x') \rangle
       = \sum_\ell \langle a_\ell, a'_\ell \rangle \langle \delta_{\ell o}, \delta'_{\ell p} \rangle $$

    where layer $\ell$ reads $a_\ell$, and $\delta_{\ell o}$ is the gradient of output $o$ in what it gives. So layers
    (linear, convolutions in one and two dimensions, embeddings, all projections of attention) need products of what
    passes through them; what is normed has few weights; and for every parameter that is used in another way, or more
    than once, its gradients are written down, block by block (`tangent_rules` says which). All are exact.

    `form="trace"` is the sum over equal outputs, `"diagonal"` its terms. The network runs in the mode in which it is
    and must treat each example by itself: BatchNorm and dropout want `model.eval()`. Blocks of examples are chosen
    so that everything fits into `max_memory` bytes (usually 4 GiB), or have `block` examples; after each pair of blocks
    `progress(done, total)` is called. Parameters that require no gradient are left out. The kernel itself carries none.

    Shapes:
        x1: (n1, ...)    x2: (n2, ...), or None for x1 itself
        returns: full (n1, n2, outputs, outputs), trace (n1, n2), diagonal (n1, n2, outputs)

    Claims: ntk.kernel_def, ntk.functional_flow, ntk.deterministic_limit, ntk.constancy
    Source: A. Jacot, F. Gabriel and C. Hongler 2018; R. Novak, J. Sohl-Dickstein and S. Schoenholz 2022.
    Differs: neural-tangents divides the trace by the number of outputs.

    >>> model, x = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)), torch.randn(5, 3)
    >>> kernel = ntk(model, x)
    >>> kernel.shape, kernel.allclose(ntk_by_definition(model, x), atol=1e-5)
    (torch.Size([5, 5, 2, 2]), True)
    >>> ntk(model, x, form="trace").allclose(kernel.diagonal(dim1=2, dim2=3).sum(-1), atol=1e-5)
    True
    """
    validate.one_of("form", form, FORMS)
    memory = USUAL_MEMORY if max_memory is None else validate.count("max_memory", max_memory)
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels of attention do not go backwards for several outputs at once
        plan = _make_plan(model, x1, x2)
        other = x1 if x2 is None else x2
        made = _Kernel(plan, form, len(x1), len(other), symmetric=x2 is None)
        return made.filled(x1, other, made.block(block, memory), progress)


def tangent_rules(model: nn.Module, x: Shaped[Tensor, "n ..."]) -> dict[str, str]:
    """How `ntk` treats each parameter: `product`, or `gradients` that it writes down, layer by layer or with autograd.

    >>> tangent_rules(nn.Sequential(nn.Linear(3, 4), nn.PReLU(), nn.LayerNorm(4)), torch.randn(2, 3))
    {'0.weight': 'product', '0.bias': 'product', '1.weight': 'autograd', '2.weight': 'gradients', '2.bias': 'gradients'}
    """
    plan, names = _make_plan(model, x, None), {}
    for name, parameter in plan.parameters.items():
        used = [use for use in plan.uses if any(parameter is p for p in use.parameters())]
        kept = id(parameter) in plan.written or prefers_rows(used[0], plan.outputs, "full") if used else False
        names[name] = "autograd" if name in plan.left else "gradients" if kept else "product"
    return names


def ntk_by_definition(
    model: nn.Module, x1: Shaped[Tensor, "n1 ..."], x2: Shaped[Tensor, "n2 ..."] | None = None
) -> Float[Tensor, "n1 n2 outputs outputs"]:
    r"""The same from whole Jacobians, one backward pass for each output of each example: slow, and easy to read.

    >>> model = nn.Linear(3, 1)
    >>> float(ntk_by_definition(model, torch.ones(1, 3)))
    4.0
    """
    parameters = [p for p in model.parameters() if p.requires_grad]

    def jacobian(x: Tensor) -> Tensor:
        found = []
        for each in x.split(1):
            with torch.enable_grad():
                values = model(each).flatten()
            for value in values:
                parts = torch.autograd.grad(value, parameters, retain_graph=True, materialize_grads=True)
                found.append(torch.cat([part.flatten() for part in parts]))
        return torch.stack(found).unflatten(0, (len(x), -1))  # (n, outputs, parameters)

    first = jacobian(x1)
    return torch.einsum("iop,jqp->ijoq", first, first if x2 is None else jacobian(x2))


# --- What the network is made of ---


@dataclass
class _Plan:
    """Which parameters are reached by products, whose gradients are written down, and which are left to autograd."""

    model: nn.Module
    parameters: dict[str, nn.Parameter]
    left: list[str]
    written: set[int]
    """Parameters that several operations read: their gradients are sums, so products of them have mixed terms."""
    outputs: int
    like: Tensor
    uses: list[Use]

    def kept(self, use: Use) -> list[nn.Parameter]:
        left = {id(self.parameters[name]) for name in self.left}
        return [p for p in use.parameters() if id(p) not in left]


def _make_plan(model: nn.Module, x1: Tensor, x2: Tensor | None) -> _Plan:
    _check_inputs(model, x1, x2)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ValueError("model must have parameters that require gradients, got none: use model.requires_grad_()")
    probe = x1[:2] if len(x1) > 1 else torch.cat([x1, x1])
    (one, alone), (two, both) = (_record_run(model, parameters, part) for part in (probe[:1], probe))
    if both.shape[0] != 2 or alone.shape[1:] != both.shape[1:] or alone.ndim == 0:
        raise ValueError(f"model must give (batch, ...) for (batch, ...), got {tuple(both.shape)} for two examples")
    scale = max(1.0, float(both.detach().abs().max()))
    apart = float((both.detach()[:1] - alone.detach()).abs().max()) / scale
    if not apart <= torch.finfo(both.dtype).eps ** 0.5:
        raise ValueError("model must treat each example alike, alone or in a batch: call model.eval() first")
    edges = edges_into(both) if both.requires_grad else {}
    left = set(two.others)
    same = len(one.uses) == len(two.uses)
    for use, small in zip(two.uses, one.uses, strict=False):
        batched = tuple(use.shape) == (2, *small.shape[1:]) and small.shape[0] == 1
        if not same or not batched or use.x.shape[0] != 2:
            left.update(map(id, use.parameters()))
    counts: dict[int, int] = {}
    for use in two.uses:
        for p in use.parameters():
            counts[id(p)] = counts.get(id(p), 0) + 1
    # What was not seen at all, or read more often than was seen, is in the hands of something else.
    left.update(
        id(p) for p in parameters.values() if counts.get(id(p), 0) != edges.get(id(p), 0) or not counts.get(id(p))
    )
    written = {key for key, count in counts.items() if count > 1}
    names = [name for name, p in parameters.items() if id(p) in left]
    return _Plan(model, parameters, names, written, both[0].numel(), both.detach(), two.uses)


def _record_run(model: nn.Module, parameters: dict[str, nn.Parameter], x: Tensor) -> tuple[Recorder, Tensor]:
    recorder = Recorder(parameters.values())
    with torch.enable_grad(), recorder:
        found = model(x)
    if not isinstance(found, Tensor) or not found.is_floating_point():
        kind = found.dtype if isinstance(found, Tensor) else type(found).__name__
        raise TypeError(f"model must give one floating-point tensor, got {kind}: wrap it in a module that does")
    return recorder, found


def check_single_input(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type(model).__name__}: wrap functions in a module")
    needed = [
        p.name
        for p in inspect.signature(model.forward).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if len(needed) > 1:
        inputs = " and ".join(needed)
        raise ValueError(f"model must take one input, got {len(needed)}, {inputs}: wrap it in a module that takes one")


def _check_inputs(model: nn.Module, x1: Tensor, x2: Tensor | None) -> None:
    check_single_input(model)
    for name, layer in model.named_modules():
        batch_norm = isinstance(layer, nn.modules.batchnorm._BatchNorm)
        if layer.training and (batch_norm or (isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0)):
            why = "couples the examples of a batch" if batch_norm else "leaves out units at random"
            raise ValueError(f"model must be in evaluation mode, since {name or 'it'} {why}: call model.eval() first")
    for name, x in (("x1", x1), ("x2", x2)):
        if x is None:
            continue
        if validate.tensor(name, x).numel() == 0 or x.ndim == 0:
            raise ValueError(f"{name} must be (batch, ...) and not empty, got shape {tuple(x.shape)}")
        if x.is_floating_point():
            validate.floating(name, x)
        if x.shape[1:] != x1.shape[1:]:
            raise ValueError(f"x2 must have examples of shape {tuple(x1.shape[1:])} as x1, got {tuple(x.shape[1:])}")


# --- Blocks ---


class _Passed(NamedTuple):
    """What a block of examples leaves: inputs and cotangents of each product, and gradients of the other parameters."""

    products: list[tuple[Use, Tensor, Tensor]]
    gradients: list[Tensor]


@dataclass
class _Kernel:
    """A kernel that is filled block by block."""

    plan: _Plan
    form: str
    n1: int
    n2: int
    symmetric: bool

    def block(self, wanted: int | None, memory: int) -> int:
        """Examples of a block: as many as fit."""
        item, outputs = self.plan.like.element_size(), self.plan.outputs
        entries = {"full": outputs**2, "trace": 1, "diagonal": outputs}[self.form]
        room = memory - self.n1 * self.n2 * entries * item
        each = outputs * sum(p.numel() for n, p in self.plan.parameters.items() if n in self.plan.left) * 3
        for use in self.plan.uses:
            each += use.values_for_each() * (outputs + 2)
            if prefers_rows(use, outputs, self.form) or any(id(p) in self.plan.written for p in use.parameters()):
                each += outputs * sum(p.numel() for p in use.parameters())
        if room < 2 * item * (each + entries):
            least = (memory - room + 2 * item * (each + entries)) / 2**30
            hint = "" if self.form == "trace" else ', or form="trace"'
            size = f"{self.n1} x {self.n2} examples with {outputs} outputs"
            raise ValueError(f"max_memory must be at least {least:.3g} GiB for {size}{hint}, got {memory / 2**30:.3g}")
        if wanted is not None:
            return validate.count("block", wanted)
        size = 1
        while size < max(self.n1, self.n2) and 2 * item * (4 * size * each + 4 * size * size * entries) <= room:
            size *= 2
        return size

    def filled(self, x1: Tensor, x2: Tensor, size: int, progress: Progress | None) -> Tensor:
        o, like = self.plan.outputs, self.plan.like
        full, diagonal = self.form == "full", self.form == "diagonal"
        shape = (self.n1, o, self.n2, o) if full else (o, self.n1, self.n2) if diagonal else (self.n1, self.n2)
        found = like.new_zeros(shape)
        axes = (0, 2) if full else (1, 2) if diagonal else (0, 1)
        starts = [range(0, n, size) for n in (self.n1, self.n2)]
        total = sum(1 for i in starts[0] for j in starts[1] if not self.symmetric or j >= i)
        done = 0
        whole = size >= max(self.n1, self.n2)
        for i in starts[0]:
            first = self._pass_block(x1[i : i + size])
            for j in starts[1]:
                if self.symmetric and j < i:
                    continue
                second = first if self.symmetric and j == i else self._pass_block(x2[j : j + size])
                rows_, columns = min(size, self.n1 - i), min(size, self.n2 - j)
                here = found.narrow(axes[0], i, rows_).narrow(axes[1], j, columns)
                part = found if whole else torch.zeros_like(here, memory_format=torch.contiguous_format)
                self._add_products(part, first, second)
                if not whole:
                    here.copy_(part)
                if self.symmetric and j > i:
                    turned = part.permute(2, 3, 0, 1) if full else part.mT
                    found.narrow(axes[0], j, columns).narrow(axes[1], i, rows_).copy_(turned)
                done += 1
                if progress is not None:
                    progress(done, total)
        return found.permute(0, 2, 1, 3) if full else found.permute(1, 2, 0) if diagonal else found

    def _add_products(self, part: Tensor, first: _Passed, second: _Passed) -> None:
        for (use, x1, d1), (_, x2, d2) in zip(first.products, second.products, strict=True):
            add_product(part, use, (x1, d1), (x2, d2), self.form)
        for one, two in zip(first.gradients, second.gradients, strict=True):
            add_rows(part, one, two, self.form)

    def _pass_block(self, x: Tensor) -> _Passed:
        """One run forwards, and one backwards for each output, which stops at the layers."""
        plan = self.plan
        products: list[tuple[Use, Tensor, Tensor]] = []
        gradients: dict[int, Tensor] = {}
        if len(plan.left) < len(plan.parameters):
            recorder, values = _record_run(plan.model, plan.parameters, x)
            uses = [use for use in recorder.uses if plan.kept(use)]
            for use, found in zip(uses, _backward_edges(values, [use.edge for use in uses]), strict=True):
                kept = {id(p) for p in plan.kept(use)}
                use.weight, use.bias = (p if id(p) in kept else None for p in (use.weight, use.bias))
                d, a = use.cotangents(found.view(len(found), *use.shape)), use.inputs()
                use.edge = None  # and with it the graph
                if kept & plan.written or prefers_rows(use, plan.outputs, self.form):
                    for key, value in rows(use, a, d).items():
                        gradients[key] = gradients[key] + value if key in gradients else value
                else:
                    products.append((use, a, d))
        found = [value.contiguous() for value in gradients.values()]
        return _Passed(products, found + list(self._left_to_autograd(x)))

    def _left_to_autograd(self, x: Tensor) -> Iterator[Tensor]:
        """(batch, outputs, entries) of parameters that are used in ways that no rule knows."""
        plan = self.plan
        if not plan.left:
            return
        chosen = {name: plan.parameters[name].detach() for name in plan.left}

        def values(chosen: dict[str, Tensor], each: Tensor) -> Tensor:
            return functional_call(plan.model, chosen, (each[None],)).flatten()

        try:
            found = vmap(jacrev(values), in_dims=(None, 0))(chosen, x)
        except RuntimeError:  # torch.func does not pass everything, autograd does
            found = {name: [] for name in chosen}
            for each in x.split(1):
                with torch.enable_grad():
                    outputs = plan.model(each).flatten()
                parts: list[Any] = [
                    torch.autograd.grad(o, [plan.parameters[n] for n in chosen], retain_graph=True, allow_unused=True)
                    for o in outputs
                ]
                for k, name in enumerate(chosen):
                    zero = torch.zeros_like(chosen[name])
                    found[name].append(torch.stack([zero if part[k] is None else part[k] for part in parts]))
            found = {name: torch.stack(each) for name, each in found.items()}
        for value in found.values():
            yield value.detach().flatten(2)


def _backward_edges(values: Tensor, edges: list[Any]) -> list[Tensor]:
    """Gradients of each output in what the edges stand for, (outputs, batch, ...): as examples do not mix, at once."""
    flat = values.flatten(1)
    count = flat.shape[1]
    if count == 1:
        found = torch.autograd.grad(flat.sum(), edges, materialize_grads=True)
        return [each[None] for each in found]
    seeds = torch.eye(count, dtype=flat.dtype, device=flat.device)[:, None].expand(count, len(flat), count)
    try:
        found = torch.autograd.grad(flat, edges, seeds, retain_graph=True, is_grads_batched=True, allow_unused=True)
    except RuntimeError:  # an operation that vmap does not know
        each = [torch.autograd.grad(flat, edges, seed, retain_graph=True, allow_unused=True) for seed in seeds]
        found = [None if parts[0] is None else torch.stack(parts) for parts in zip(*each, strict=True)]
    used = [each for each in found if each is not None]
    if len(used) < len(found):
        raise ValueError("model must use what each layer gives, got a layer whose output is left out: freeze it")
    return used
