r"""Sharpness-aware minimisation: the gradient is taken at the worst point nearby, the step where one stands."""

# pyright: reportPrivateImportUsage=false
# The operations on lists of tensors, torch._foreach_*, are what torch.optim itself is written with.
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from lemmata import validate
from lemmata.marks import system
from lemmata.optim.options import group_options, needs_closure

__all__ = ["SAM"]


@system("sam", title="Sharpness-aware minimisation (SAM)", kind="optimizer")
class SAM(Optimizer):
    r"""Minimise the loss at the worst point nearby, $\min_\theta \max_{\|e\| \le \rho} \mathcal L(\theta + e)$.

    $$ \hat e = \rho\, \frac{\nabla\mathcal L(\theta)}{\|\nabla\mathcal L(\theta)\|}, \qquad
       \theta \leftarrow \text{base step from } \theta \text{ with the gradient } \nabla\mathcal L(\theta + \hat e) $$

    `base` is the class of any optimiser whose `step` needs no closure; `options` are its own. With `adaptive` the
    radius is measured relative to each weight, $\|e / |\theta|\| \le \rho$, and $\hat e = \rho\,\theta^2
    \nabla\mathcal L / \|\theta\nabla\mathcal L\|$, which does not change when a layer is scaled up and the next one
    down. The norm is that of all parameters together; `rho` may differ by group.

    `step` calls the closure twice: it sets gradients to zero, computes the loss and calls `backward`, as for
    torch.optim.LBFGS. Loops without a closure call `ascend()` after one backward pass and `descend()` after the next.

    Shapes:
        parameters: any

    Claims: optim.sam
    Source: P. Foret, A. Kleiner, H. Mobahi and B. Neyshabur 2021; adaptive: J. Kwon et al. 2021.
    Differs: running statistics of batch normalisation see both passes.

    >>> weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = SAM([weight], base=torch.optim.SGD, lr=0.1, rho=0.5)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = weight.square().sum() / 2
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(12.5000, grad_fn=<DivBackward0>)
    >>> weight.detach()  # (3, 4) - 0.1 (3.3, 4.4)
    tensor([2.6700, 3.5600])
    """

    def __init__(
        self,
        params: Iterable[Any],
        base: type[Optimizer] = AdamW,
        rho: float = 0.05,
        adaptive: bool = False,
        **options: Any,
    ) -> None:
        if not (isinstance(base, type) and issubclass(base, Optimizer)):
            raise TypeError(f"base must be a class of optimisers such as torch.optim.SGD, got {base!r}")
        closure = inspect.signature(base.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise TypeError(f"base must step without a closure, which {base.__name__} does not: use torch.optim.SGD")
        self.base: Optimizer | None = None
        super().__init__(params, {"rho": rho, "adaptive": adaptive})
        self.base = base(self.param_groups, **options)
        self.defaults |= self.base.defaults
        self._share_state()
        self._places: dict[Tensor, Tensor] = {}  # where the parameters stood before they were moved away
        self._away: list[Tensor] = []

    def __getstate__(self) -> dict[str, Any]:
        """What a copy needs: torch's part leaves out attributes of our own."""
        return super().__getstate__() | {"base": self.base, "_places": self._places, "_away": self._away}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, to the base too: both hold the same groups."""
        words = group_options(self.defaults, param_group)
        validate.number("rho", words["rho"], least=0)
        validate.flag("adaptive", words["adaptive"])
        if self.base is None:
            super().add_param_group(param_group)
        else:
            self.base.add_param_group({name: words[name] for name in ("rho", "adaptive")} | param_group)

    def load_state_dict(self, state_dict: Any) -> None:
        """Take over what `state_dict` returned; the base continues from it."""
        super().load_state_dict(state_dict)
        assert self.base is not None
        self.base.__setstate__({"state": self.state, "param_groups": self.param_groups})
        self._share_state()

    def _share_state(self) -> None:
        assert self.base is not None
        self.param_groups, self.state = self.base.param_groups, self.base.state

    @needs_closure
    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """One update; `closure` computes loss and gradients, and is called here and at the worst point."""
        compute = torch.enable_grad()(closure)
        loss = compute()
        self.ascend()
        try:
            compute()
        except BaseException:
            self._return_to_start()  # the parameters must not be left where only the gradient was wanted
            raise
        self.descend()
        return loss

    @torch.no_grad()
    def ascend(self) -> None:
        """Move to the worst point nearby by the gradients that are there, and forget them."""
        if self._away:
            raise RuntimeError("ascend was called twice: call descend after the second backward pass")
        groups = [(group, *_with_gradients(group)) for group in self.param_groups]
        directions = [
            torch._foreach_mul(grads, torch._foreach_abs(params)) if group["adaptive"] else grads
            for group, params, grads in groups
        ]
        # In double precision, or the squares of small gradients would be zero and the step leave its ball.
        reals = [[torch.view_as_real(d) if d.is_complex() else d for d in each] for each in directions]
        norms = [norm for each in reals if each for norm in torch._foreach_norm(each, dtype=torch.float64)]
        if not norms:
            raise ValueError("SAM found no gradient: closure must call backward")
        first = norms[0]
        total = torch.linalg.vector_norm(torch.stack([norm.to(first.device) for norm in norms]))
        for (group, params, grads), each in zip(groups, directions, strict=True):
            if not params:
                continue
            self._keep_copy(params)
            least = max(group["rho"], 1.0) * torch.finfo(torch.float32).tiny  # so that the length fits into float32
            wide = torch.promote_types(grads[0].dtype.to_real(), torch.float32)
            length = (group["rho"] / total.clamp(min=least)).to(grads[0].device, wide)
            if group["adaptive"]:
                each = torch._foreach_mul(each, torch._foreach_abs(params))
            # Not by alpha=length: it would wait for the device, and be too large a number for float16.
            torch._foreach_add_(params, torch._foreach_mul(each, length))
        self.zero_grad()

    @torch.no_grad()
    def descend(self) -> None:
        """Return, and let the base step with the gradients of the worst point."""
        if not self._away:
            raise RuntimeError("descend was called before ascend")
        self._return_to_start()
        assert self.base is not None
        self.base.step()

    def _keep_copy(self, params: list[Tensor]) -> None:
        """Copy the parameters, each into memory of its own that is used again in every step."""
        for parameter in params:
            if parameter not in self._places:
                self._places[parameter] = torch.empty_like(parameter)
        torch._foreach_copy_([self._places[p] for p in params], params)
        self._away += params

    def _return_to_start(self) -> None:
        torch._foreach_copy_(self._away, [self._places[p] for p in self._away])
        self._away = []


def _with_gradients(group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
    params = [p for p in group["params"] if p.grad is not None]
    grads = [p.grad for p in params if p.grad is not None]
    if any(grad.is_sparse for grad in grads):
        raise ValueError("SAM takes dense gradients, got a sparse one: set sparse=False in the embedding")
    return params, grads
