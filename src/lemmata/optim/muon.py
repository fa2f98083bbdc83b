r"""Muon: steps of equal length along every singular direction of a weight matrix; AdamW for what is not a matrix."""

# pyright: reportPrivateImportUsage=false
# The operations on lists of tensors, torch._foreach_*, are what torch.optim itself is written with.
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Inexact
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.options import group_options, learning_rate

__all__ = ["Muon", "hidden_matrices", "newton_schulz", "polar_factor"]

# K. Jordan's quintic: its slope at zero is steep, so that five steps lift a singular value of 0.01 into [0.68, 1.21].
QUINTIC = (3.4445, -4.7750, 2.0315)
SCALES = ("original", "match_rms_adamw", "rms_to_rms")
METHODS = ("newton_schulz", "svd")
# Matrices of one shape are multiplied together up to so many entries: on a processor as long as its cache holds them.
STACKED_ENTRIES = {"cpu": 2**18}
STACKED_ELSEWHERE = 2**26


@system("muon", title="Muon", kind="optimizer")
class Muon(Optimizer):
    r"""Momentum, orthogonalised: every singular direction of the momentum gets a step of the same length.

    $$ M_t = \mu M_{t-1} + \nabla\mathcal L(W_t), \qquad P_t = UV^\top \text{ for } M_t = U\Sigma V^\top, \qquad
       W_{t+1} = (1 - \eta\lambda) W_t - \eta\, c\, P_t $$

    `params` may be a model: its hidden matrices (see `hidden_matrices`) are learnt by Muon, everything else by AdamW.
    Given as tensors or groups, those with two axes or more are learnt by Muon, a convolution's as (out, in * kernel),
    unless a group says `rule="adamw"`; a group of both kinds becomes two groups, so that each keeps its own `lr`.

    $UV^\top$ is approximated by five Newton-Schulz steps, in bfloat16 on a GPU and in float32 elsewhere (float64 for
    parameters in float64, complex numbers as they are), or by `ns_dtype`; `method="svd"` computes it exactly. The
    factor $c$ is $\sqrt{\max(1, d_{out}/d_{in})}$ for `adjust_lr_fn="original"`, $\sqrt{d_{out}/d_{in}}$ for
    "rms_to_rms", and $0.2\sqrt{\max(d_{out}, d_{in})}$, steps as long as AdamW's, for "match_rms_adamw". With
    `nesterov` $\nabla\mathcal L + \mu M_t$ takes the place of $M_t$.

    Shapes:
        parameters: any; matrices are (d_out, d_in)

    Claims: optim.muon
    Source: K. Jordan et al., Muon: an optimizer for hidden layers in neural networks (2024).
    Differs: as in torch.optim.Muon the momentum is a mean, $(1-\mu) M_t$, which has the same polar factor. Options of
        torch.optim.Muon have the same names and, with `ns_dtype=torch.bfloat16`, the same numbers up to its rounding.

    >>> model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    >>> optimizer = Muon(model, lr=0.02)
    >>> [(group["rule"], len(group["params"])) for group in optimizer.param_groups]
    [('muon', 2), ('adamw', 4)]
    >>> model(torch.randn(4, 8)).square().mean().backward()
    >>> optimizer.step()
    """

    def __init__(
        self,
        params: nn.Module | Iterable[Any],
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = QUINTIC,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        *,
        method: str = "newton_schulz",
        ns_dtype: torch.dtype | None = None,
        adamw_lr: float | Tensor | None = None,
        adamw_betas: tuple[float, float] = (0.9, 0.999),
        adamw_eps: float = 1e-8,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if adamw_lr is not None:
            learning_rate("adamw_lr", adamw_lr)
        self._adamw_lr = adamw_lr
        own = {"momentum": momentum, "nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps}
        own |= {"ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn, "method": method, "ns_dtype": ns_dtype}
        adam = {"adamw_betas": adamw_betas, "adamw_eps": adamw_eps}
        shared = {"lr": lr, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize}
        super().__init__(_by_rule(params) if isinstance(params, nn.Module) else params, shared | own | adam)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: torch's part leaves out attributes of our own."""
        return super().__getstate__() | {"_adamw_lr": self._adamw_lr}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was saved, by ours or by torch.optim.Muon, which knows fewer options."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in ({"rule": "muon"} | self.defaults).items():
                group.setdefault(name, value)
            _checked_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; one that holds matrices and other parameters becomes two."""
        words = _checked_group(group_options(self.defaults, param_group))
        given = words["params"]
        members = [given] if isinstance(given, Tensor) else list(given)
        rule = validate.one_of("rule", param_group.get("rule", "muon"), ("muon", "adamw"))
        flat = [rule == "adamw" or getattr(_parameter_of(member), "ndim", 2) < 2 for member in members]
        if "rule" in param_group and rule == "muon" and any(flat):
            shape = tuple(_parameter_of(members[flat.index(True)]).shape)
            raise ValueError(f'rule must be "adamw" for a parameter with fewer than two axes, got shape {shape}')
        for name, wanted in (("muon", False), ("adamw", True)):
            chosen = [member for member, is_flat in zip(members, flat, strict=True) if is_flat is wanted]
            if chosen or (not members and not wanted):  # torch says what it thinks of an empty group
                group = param_group | {"params": chosen, "rule": name}
                if wanted and self._adamw_lr is not None and "lr" not in param_group:
                    group["lr"] = self._adamw_lr
                super().add_param_group(group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update from the gradients, computed by `closure` if it is given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None and p.numel()]
            if params:
                grads = [self._signed_gradient(p, group["maximize"]) for p in params]
                (self._by_adamw if group["rule"] == "adamw" else self._by_muon)(group, params, grads)
        return loss

    def _signed_gradient(self, parameter: Tensor, maximize: bool) -> Tensor:
        grad = parameter.grad
        assert grad is not None
        if grad.is_sparse:
            raise ValueError("Muon takes dense gradients, got a sparse one: set sparse=False in the embedding")
        return -grad if maximize else grad

    def _by_muon(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        buffers = [self._named_state(p, "momentum_buffer") for p in params]
        one_by_one = group["foreach"] is False
        momentum, lr = group["momentum"], group["lr"]
        if one_by_one:
            for parameter, grad, buffer in zip(params, grads, buffers, strict=True):
                buffer.lerp_(grad, 1 - momentum)
                mean = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
                update = _orthogonalize_all([mean.flatten(1)], group)[0]  # (d_out, d_in)
                parameter.mul_(1 - lr * group["weight_decay"])
                parameter.sub_(update.view_as(parameter) * (lr * _adjustment_factor(parameter, group["adjust_lr_fn"])))
            return
        torch._foreach_lerp_(buffers, grads, 1 - momentum)
        means = list(torch._foreach_lerp(grads, buffers, momentum)) if group["nesterov"] else buffers
        updates = _orthogonalize_all([mean.flatten(1) for mean in means], group)
        scaled = torch._foreach_mul(updates, [-_adjustment_factor(p, group["adjust_lr_fn"]) for p in params])
        torch._foreach_mul_(scaled, lr)
        torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
        torch._foreach_add_(params, [update.view_as(p) for update, p in zip(scaled, params, strict=True)])

    def _by_adamw(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        wide = (torch.float64, torch.complex128)  # a compiled step computes its powers in the dtype of the count
        steps = [
            self.state[p].setdefault("step", torch.zeros((), dtype=torch.float64 if p.dtype in wide else torch.float32))
            for p in params
        ]
        means, squares = ([self._named_state(p, name) for p in params] for name in ("exp_avg", "exp_avg_sq"))
        beta1, beta2 = group["adamw_betas"]
        words = {"lr": group["lr"], "weight_decay": group["weight_decay"], "eps": group["adamw_eps"]}
        # With an lr that is a tensor torch takes one parameter after the other, or refuses.
        foreach = None if isinstance(group["lr"], Tensor) else group["foreach"]
        words |= {"beta1": beta1, "beta2": beta2, "foreach": foreach, "maximize": False, "amsgrad": False}
        has_complex = any(p.is_complex() for p in params)
        adamw(params, grads, means, squares, [], steps, has_complex=has_complex, **words)

    def _named_state(self, parameter: Tensor, name: str) -> Tensor:
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state[name]


def hidden_matrices(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The weights with two axes or more between input and output: neither embeddings nor the last one of the model.

    A weight that an embedding shares, and the last weight in the order in which the layers were assigned, map to or
    from single symbols or outputs; AdamW is commonly used for them. The only matrix of a model counts as hidden.

    >>> model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 4), nn.Linear(4, 10))
    >>> [name for name, _ in hidden_matrices(model)]
    ['1.weight']
    """
    tables = (layer.weight for layer in model.modules() if isinstance(layer, nn.Embedding | nn.EmbeddingBag))
    embedded = {id(weight) for weight in tables}
    matrices = [(name, p) for name, p in model.named_parameters() if p.requires_grad and p.ndim >= 2]
    every = [p for _, p in model.named_parameters(remove_duplicate=False) if p.ndim >= 2]
    last = every[-1] if len({id(p) for p in every}) > 1 else None  # perhaps an embedding's, used once more, or frozen
    return [(name, p) for name, p in matrices if id(p) not in embedded and p is not last]


def newton_schulz(
    matrices: Inexact[Tensor, "*batch rows columns"],
    steps: int = 5,
    coefficients: tuple[float, float, float] = QUINTIC,
    eps: float = 1e-7,
) -> Inexact[Tensor, "*batch rows columns"]:
    r"""Nearly the polar factor, by products alone: singular values go through an odd polynomial, again and again.

    $$ X_0 = M / \|M\|_F, \qquad X_{k+1} = a X_k + (b A + c A^2) X_k, \qquad A = X_k X_k^\top $$

    The usual coefficients bring singular values near 1, between 0.68 and 1.21, and no nearer; (15/8, -5/4, 3/8)
    converge to 1. `eps` is the least norm that is divided by, so that zero stays zero.

    Shapes:
        matrices: (..., rows, columns)    returns: the same

    Claims: optim.muon
    Source: K. Jordan et al. 2024; Å. Björck and C. Bowie 1971.

    >>> matrix = torch.diag(torch.tensor([3.0, 1.0]))
    >>> newton_schulz(matrix, steps=30, coefficients=(15 / 8, -5 / 4, 3 / 8)).round(decimals=4)
    tensor([[1., 0.],
            [0., 1.]])
    """
    a, b, c = coefficients
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mH if tall else matrices  # (..., short, long): the product of the short side is the small one
    shape, x = x.shape, x.reshape(-1, *x.shape[-2:])  # (batch, short, long)
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mH  # (batch, short, short)
        gram = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, gram, x, beta=a)
    x = x.reshape(shape)
    return x.mH if tall else x


def _newton_schulz_by_gram(
    matrices: Inexact[Tensor, "batch rows columns"], steps: int, coefficients: tuple[float, float, float], eps: float
) -> Inexact[Tensor, "batch rows columns"]:
    r"""`newton_schulz` for matrices with many more columns than rows: the long side is multiplied only twice.

    $$ P_k = aI + bA_k + cA_k^2, \qquad A_{k+1} = P_k A_k P_k, \qquad X_n = P_{n-1} \cdots P_0 X_0 $$

    since all $P_k$ are polynomials of $A_0 = X_0X_0^\top$. What rounding does to $A_0$ grows as $a^{2k}$ where singular
    values are tiny: `_orthogonalize_all` takes it only as long as that is less than a hundredth.
    """
    a, b, c = coefficients
    x = matrices / torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=eps)
    gram, product = x @ x.mH, None  # (batch, rows, rows)
    for step in range(steps):
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        factor.diagonal(dim1=-2, dim2=-1).add_(a)
        product = factor if product is None else factor @ product
        if step < steps - 1:
            gram = factor @ gram @ factor
    assert product is not None
    return product @ x


def polar_factor(matrices: Inexact[Tensor, "*batch rows columns"]) -> Inexact[Tensor, "*batch rows columns"]:
    r"""$UV^\top$ for the thin singular value decomposition $M = U\Sigma V^\top$.

    Directions that $M$ does not have, with singular values within rounding of zero, are left out. A matrix with an
    entry that is not finite gives NaN.

    Shapes:
        matrices: (..., rows, columns)    returns: the same

    Claims: optim.muon, optim.muon.polar

    >>> polar_factor(torch.tensor([[0.0, 2.0], [0.5, 0.0], [0.0, 0.0]]))
    tensor([[0., 1.],
            [1., 0.],
            [0., 0.]])
    """
    finite = matrices.isfinite().all(-1).all(-1)[..., None, None]
    u, values, vh = torch.linalg.svd(torch.where(finite, matrices, 0), full_matrices=False)
    rounding = max(matrices.shape[-2:]) * torch.finfo(values.dtype).eps
    present = values > rounding * values[..., :1]
    return torch.where(finite, (u * present[..., None, :]) @ vh, torch.nan)


def _orthogonalize_all(matrices: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
    """Each matrix made orthogonal, in its own dtype; equal shapes together as far as memory is not the limit."""
    found: list[Tensor] = [torch.empty(0)] * len(matrices)
    for places in _equal_shapes(matrices):
        stacked = torch.stack([matrices[place] for place in places])  # (matrices, d_out, d_in)
        if group["method"] == "svd":  # which torch has in float32 and wider
            made = polar_factor(stacked.to(torch.promote_types(stacked.dtype, torch.float32)))
        else:
            wide = stacked.to(_working_dtype(stacked, group["ns_dtype"]))
            made = _nearly_orthogonal(wide, group["ns_steps"], group["ns_coefficients"], group["eps"])
        for place, matrix in zip(places, made.to(stacked.dtype), strict=True):
            found[place] = matrix
    return found


def _nearly_orthogonal(matrices: Tensor, steps: int, coefficients: tuple[float, float, float], eps: float) -> Tensor:
    """Newton-Schulz by whichever way takes fewer operations and is exact enough."""
    rows, columns = matrices.shape[-2:]
    growth = abs(coefficients[0]) ** (2 * steps - 2) * torch.finfo(matrices.dtype).eps
    if max(rows, columns) < 2 * min(rows, columns) or growth > 0.01:
        return newton_schulz(matrices, steps, coefficients, eps)
    if rows > columns:
        return _newton_schulz_by_gram(matrices.mH, steps, coefficients, eps).mH
    return _newton_schulz_by_gram(matrices, steps, coefficients, eps)


def _equal_shapes(matrices: list[Tensor]) -> list[list[int]]:
    """Places of matrices that are stacked: of one shape, dtype and device, and not too many entries."""
    stacks: dict[Any, list[list[int]]] = {}
    for place, matrix in enumerate(matrices):
        most = STACKED_ENTRIES.get(matrix.device.type, STACKED_ELSEWHERE)
        alike = stacks.setdefault((matrix.shape, matrix.dtype, matrix.device), [[]])
        if alike[-1] and (len(alike[-1]) + 1) * matrix.numel() > most:
            alike.append([])
        alike[-1].append(place)
    return [places for alike in stacks.values() for places in alike]


def _working_dtype(matrix: Tensor, wanted: torch.dtype | None) -> torch.dtype:
    if matrix.is_complex() or (wanted is None and matrix.dtype == torch.float64):
        return matrix.dtype
    return wanted or (torch.bfloat16 if matrix.is_cuda else torch.float32)


def _adjustment_factor(parameter: Tensor, adjust: str | None) -> float:
    rows, columns = len(parameter), parameter[0].numel()
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(rows / columns if adjust == "rms_to_rms" else max(1.0, rows / columns))


def _parameter_of(member: Any) -> Tensor:
    return member[1] if isinstance(member, tuple) else member  # named parameters come as pairs


def _by_rule(model: nn.Module) -> list[dict[str, Any]]:
    hidden = {id(p) for _, p in hidden_matrices(model)}
    learnt = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not learnt:
        raise ValueError("params holds no parameter to learn: give a model with one whose requires_grad is True")
    groups = [
        {"params": [pair for pair in learnt if (id(pair[1]) in hidden) == matrix], "rule": rule}
        for rule, matrix in (("muon", True), ("adamw", False))
    ]
    return [group for group in groups if group["params"]]


def _checked_group(group: dict[str, Any]) -> dict[str, Any]:
    learning_rate("lr", group["lr"])
    for name in ("weight_decay", "eps", "adamw_eps"):
        validate.number(name, group[name], least=0)
    for name, count, words in (("adamw_betas", 2, "two numbers"), ("ns_coefficients", 3, "three numbers")):
        if not isinstance(group[name], tuple | list) or len(group[name]) != count:
            raise ValueError(f"{name} must be {words}, got {group[name]!r}")
    for name, value in (("momentum", group["momentum"]), *(("adamw_betas", beta) for beta in group["adamw_betas"])):
        validate.fraction(name, value)
    for coefficient in group["ns_coefficients"]:
        validate.finite_number("ns_coefficients", coefficient)
    validate.count("ns_steps", group["ns_steps"])
    for name in ("nesterov", "maximize", *(["foreach"] if group["foreach"] is not None else [])):
        validate.flag(name, group[name])
    dtype = group["ns_dtype"]
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"ns_dtype must be a floating-point dtype such as torch.bfloat16, got {dtype!r}")
    validate.one_of("method", group["method"], METHODS)
    if group["adjust_lr_fn"] is not None:
        validate.one_of("adjust_lr_fn", group["adjust_lr_fn"], SCALES)
    return group
