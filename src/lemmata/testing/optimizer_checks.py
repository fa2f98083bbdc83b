"""The checks of the conformance suite of optimisers, each a few lines: it returns, or says what is wrong."""

import copy
import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lemmata.testing.findings import Broken, Undecided, told
from lemmata.testing.optimizer_subject import MATRICES, STEPS, Subject, bowl, exactly_same, height, same

__all__ = []  # for the suite alone


def _check_interface(subject: Subject) -> None:
    theta = subject.parameters()
    try:
        optimizer = subject.built(theta)
    except ValueError as error:
        subject.shapes = MATRICES  # perhaps it takes matrices alone, as Muon does
        theta = subject.parameters()
        try:
            optimizer = subject.built(theta)
        except ValueError:
            raise Broken(f"it cannot be made for parameters of the shapes (4, 3) and (3,): {told(error)}") from None
    held = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    if sorted(held) != sorted(map(id, theta)):
        raise Broken("its groups must hold the parameters that it is given, each once")
    subject.walk(optimizer, theta, 1)


def _closure_of_loss(subject: Subject) -> None:
    theta = subject.parameters()
    optimizer, losses = subject.built(theta), []

    def closure() -> Any:
        if not torch.is_grad_enabled():
            raise Broken("it calls the closure without gradients: use torch.enable_grad() around the call")
        optimizer.zero_grad()
        loss = bowl(theta)
        loss.backward()
        losses.append(loss.item())
        return loss

    found = [optimizer.step(closure) for _ in range(STEPS)]
    if not losses or found[0] is None or torch.as_tensor(found[0]).item() != losses[0]:
        raise Broken(f"step(closure) must return the loss where it began, got {found[0]!r}")
    if not subject.needs_closure(optimizer):
        closure()
        if optimizer.step() is not None:
            raise Broken("step() without a closure must return None")
        theta = subject.parameters()
        optimizer = subject.built(theta)
        for _ in range(STEPS):
            optimizer.step(closure)
        if not same([p.detach() for p in theta], subject.whole()):
            raise Broken("step(closure) goes elsewhere than the closure followed by step()")


def _check_descent(subject: Subject) -> None:
    theta = subject.parameters()
    optimizer = subject.built(theta)
    losses = [height(theta), *(height(subject.walk(optimizer, theta, 20)) for _ in range(3))]
    if not max(losses[1], losses[3]) < losses[0]:
        told = " and ".join(f"{losses[index]:.4g} after {20 * index} steps" for index in (0, 1, 3))
        raise Broken(f"on a bowl the loss is {told}")


def _check_deterministic(subject: Subject) -> None:
    if not exactly_same(subject.run(), subject.whole()):
        raise Broken("a second optimiser, made in the same way, goes elsewhere: they share state")


def _in_place(subject: Subject) -> None:
    theta = subject.parameters()
    homes = [parameter.data_ptr() for parameter in theta]
    subject.walk(subject.built(theta), theta)
    if [parameter.data_ptr() for parameter in theta] != homes:
        raise Broken("it puts a parameter elsewhere in memory: write into it, since others may hold a view of it")
    if not all(parameter.is_leaf and parameter.requires_grad for parameter in theta):
        raise Broken("after a step a parameter must still be a leaf that requires a gradient")


def _gradients_untouched(subject: Subject) -> None:
    theta = subject.parameters()
    optimizer = subject.built(theta)
    subject.walk(optimizer, theta, 3)
    optimizer.zero_grad()
    bowl(theta).backward()
    before = [_gradient_of(parameter).clone() for parameter in theta]
    last: list[Tensor] = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = bowl(theta)
        loss.backward()
        last[:] = [_gradient_of(parameter).clone() for parameter in theta]
        return loss

    if subject.needs_closure(optimizer):
        optimizer.step(closure)
        before = last
    else:
        optimizer.step()
    if not exactly_same([_gradient_of(parameter) for parameter in theta], before):
        raise Broken("a step writes into the gradients: whoever logs or accumulates them sees something else")


def _check_aliasing(subject: Subject) -> None:
    """Gradients that live in one place and are overwritten there, as after zero_grad(set_to_none=False)."""
    theta = subject.parameters()
    optimizer = subject.built(theta)
    found = subject.walk(optimizer, theta, to_none=False)
    if not same(found, subject.whole()):
        raise Broken("it goes elsewhere when gradients are overwritten in place: its state is a view of a gradient")
    homes = {parameter.data_ptr() for parameter in theta}
    for state in _tensors_in_state(optimizer.state_dict()["state"]):
        if state.numel() > 1 and state.data_ptr() in homes:
            raise Broken("its state is a view of a parameter: use clone()")


def _without_gradient(subject: Subject) -> None:
    theta = subject.parameters()
    start = theta[1].detach().clone()
    optimizer = subject.built(theta)
    subject.walk(optimizer, theta, 3, lambda theta: bowl(theta[:1]))
    if not torch.equal(theta[1].detach(), start):
        raise Broken("it moves a parameter that has no gradient")
    if torch.equal(theta[0].detach(), subject.parameters()[0].detach()):
        raise Broken("it stands still where another parameter has no gradient")
    if not subject.coupled() and not same(subject.walk(optimizer, theta)[1:], subject.whole()[1:]):
        raise Broken("a parameter whose gradients begin later goes elsewhere: count its steps in its own state")


def _check_order(subject: Subject) -> None:
    theta = subject.parameters()
    optimizer = subject.built(theta[::-1])
    if not same(subject.walk(optimizer, theta), subject.whole()):
        raise Broken("it goes elsewhere when the parameters are given in another order")


def _check_groups(subject: Subject) -> None:
    theta = subject.parameters()
    equal = subject.walk(subject.groups(theta, {}, {}), theta)
    if not same(equal, subject.whole()):
        raise Broken("with the same options, two groups go elsewhere than one")
    theta = subject.parameters()
    slow = subject.walk(subject.groups(theta, {}, {"lr": subject.lr() / 10}), theta)
    if same(slow[1:], equal[1:]):
        raise Broken("the lr of the second group has no influence: read it from the group, not from the first or self")
    if not subject.coupled() and not same(slow[:1], equal[:1]):
        raise Broken("the lr of the second group moves the parameters of the first")

    def later(first: dict[str, float]) -> Any:
        theta = subject.parameters()
        return subject.walk(subject.groups(theta, first, {"momentum": 0.3}), theta)[1:]

    known = "momentum" in subject.built(theta).defaults and not same(later({"momentum": 0.3}), equal[1:])
    if known and same(later({}), equal[1:]):
        raise Broken("the momentum of the second group has no influence: read it from the group")
    theta = subject.parameters()
    optimizer = subject.built(theta[:1])
    optimizer.add_param_group({"params": theta[1:]})
    if not same(subject.walk(optimizer, theta), equal):
        raise Broken("a group that add_param_group adds goes elsewhere than one that was there from the start")


def _check_schedule(subject: Subject) -> None:
    lr = subject.lr()
    ends = []
    for factor in (1.0, 0.1):
        theta = subject.parameters()
        optimizer = subject.built(theta)
        subject.walk(optimizer, theta, 2)
        for group in optimizer.param_groups:
            group["lr"] = factor * lr
        # The bowl now lies elsewhere, lest all is over; two steps, since some use the lr of the step before.
        ends.append(subject.walk(optimizer, theta, 2, lambda theta: bowl([p - 1 for p in theta])))
    if same(*ends):
        raise Broken("a change of lr between steps has no influence: a scheduler could do nothing")


def _check_resume(subject: Subject) -> None:
    """To the bit in float32; in float64 torch's own NAdam loses digits, for it keeps numbers in float32."""
    for dtype, equal in ((torch.float32, exactly_same), (torch.float64, functools.partial(same, tolerance=1e-6))):
        theta = subject.parameters(dtype)
        first = subject.built(theta)
        places = subject.walk(first, theta, 3)
        saved = copy.deepcopy(first.state_dict())
        expected = subject.walk(first, theta, STEPS - 3)
        theta = [torch.nn.Parameter(place) for place in places]
        second = subject.built(theta)
        for group in second.param_groups:
            group["lr"] = group.get("lr", 0.0) / 2  # the state_dict has the one to go on with
        second.load_state_dict(saved)
        if not equal(subject.walk(second, theta, STEPS - 3), expected):
            raise Broken("loaded into a new optimiser, the state_dict gives other steps: some state is not in it")


def _check_maximize(subject: Subject) -> None:
    subject.takes("maximize")
    up = subject.run(loss=lambda theta: -bowl(theta), maximize=True)
    if not same(up, subject.whole()):
        raise Broken("with maximize=True it does not climb -h as it descends h")


def _check_foreach(subject: Subject) -> None:
    subject.takes("foreach")
    one, many = (subject.run(foreach=foreach) for foreach in (False, True))
    if not same(one, many):
        raise Broken("foreach=True goes elsewhere than foreach=False")


def _weight_decay(subject: Subject) -> None:
    subject.takes("weight_decay")
    theta = subject.parameters()
    sizes = [parameter.detach().norm() for parameter in theta]
    ends = subject.walk(subject.built(theta, weight_decay=0.1), theta, 5, lambda theta: 0 * bowl(theta))
    if not all(end.norm() < size for end, size in zip(ends, sizes, strict=True)):
        raise Broken("with weight_decay and gradients of zero the parameters must shrink")


def _check_dtypes(subject: Subject) -> None:
    for dtype in (torch.float64, torch.float32):
        theta = subject.parameters(dtype)
        optimizer = subject.built(theta)
        ends = subject.walk(optimizer, theta)
        if any(parameter.dtype != dtype for parameter in theta):
            raise Broken(f"parameters in {dtype} must stay in it")
        for state in _tensors_in_state(optimizer.state_dict()["state"]):
            coarse = state.is_floating_point() and torch.finfo(state.dtype).eps > torch.finfo(dtype).eps
            if coarse and state.numel() > 1:
                raise Broken(f"for parameters in {dtype} it keeps state in {state.dtype}")
        if not same([end.double() for end in ends], subject.whole(), 1e-3):
            raise Broken(f"in {dtype} it goes elsewhere than in torch.float64")


def _check_strides(subject: Subject) -> None:
    """Parameters whose entries do not lie one after another."""
    theta = [
        torch.nn.Parameter(p.detach().mT.contiguous().mT if p.ndim > 1 else p.detach()) for p in subject.parameters()
    ]
    try:
        ends = subject.walk(subject.built(theta), theta)
    except Exception as error:
        raise Undecided(f"the optimiser refuses parameters that are not contiguous ({told(error)})") from None
    if not same(ends, subject.whole()):
        raise Broken("it goes elsewhere for a parameter that is not contiguous: are its entries mixed up, or copied?")


def _small_shapes(subject: Subject) -> None:
    shapes = ((), (0,), (1,)) if subject.shapes is not MATRICES else ((1, 1), (1, 4), (4, 1))
    theta = subject.parameters(shapes=shapes)
    ends = subject.walk(subject.built(theta), theta, 3)
    if not all(end.isfinite().all() and end.shape == shape for end, shape in zip(ends, shapes, strict=True)):
        raise Broken(f"parameters of the shapes {', '.join(map(str, shapes))} must stay finite and of their shape")


def _check_complex(subject: Subject) -> None:
    pairs = subject.parameters(shapes=[(*shape, 2) for shape in subject.shapes])
    theta = [torch.nn.Parameter(torch.view_as_complex(pair.detach().clone())) for pair in pairs]
    start = [parameter.detach().clone() for parameter in theta]
    try:
        ends = subject.walk(subject.built(theta), theta, loss=bowl)
    except Exception as error:
        raise Undecided(f"the optimiser refuses complex parameters ({told(error)})") from None
    if not height(ends) < height(start):
        raise Broken("for complex parameters the loss does not fall: refuse them, or step them as pairs of real ones")


def _check_sparse(subject: Subject) -> None:
    theta, other = subject.parameters(), subject.parameters()
    optimizer, dense = subject.built(theta[:1]), subject.built(other[:1])
    if subject.needs_closure(optimizer):
        raise Undecided("its step computes gradients by a closure")
    try:
        for _ in range(3):
            (grad,) = torch.autograd.grad(bowl(theta[:1]), theta[:1])
            theta[0].grad = grad.to_sparse()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's own about its sparse tensors
                optimizer.step()
    except Exception as error:
        raise Undecided(f"the optimiser refuses sparse gradients ({told(error)})") from None
    subject.walk(dense, other[:1], 3)
    if not same([theta[0].detach()], [other[0].detach()]):
        raise Broken("with a sparse gradient it goes elsewhere than with the same gradient dense: refuse it")


def _lr_refused(subject: Subject) -> None:
    subject.takes("lr")
    try:
        subject.built(subject.parameters(), lr=-1.0)
    except (ValueError, TypeError, AssertionError):
        return
    raise Broken("it accepts lr=-1.0: refuse it when it is made")


def _check_nan(subject: Subject) -> None:
    theta = subject.parameters()
    optimizer = subject.built(theta)
    subject.walk(optimizer, theta, 2)
    before = [parameter.detach().clone() for parameter in theta]

    def spoilt(theta: Sequence[Tensor]) -> Tensor:
        return bowl(theta) + (theta[0].flatten()[0] * math.nan)

    raised = None
    try:
        subject.walk(optimizer, theta, 1, spoilt)
    except Exception as error:
        raised = error
    after = [parameter.detach() for parameter in theta]
    if subject.nan == "raise":
        if raised is None:
            raise Broken("a NaN in a gradient must raise an error, as was said by nan='raise'")
    elif raised is not None:
        raise Broken(f"a NaN in a gradient raises {told(raised)}")
    elif subject.nan == "skip":
        if not exactly_same(after, before):
            raise Broken("a step with a NaN in a gradient must leave all parameters, as was said by nan='skip'")
    elif not after[0].flatten()[0].isnan():
        raise Broken("a NaN in a gradient is hidden: the entry goes on as a number")
    elif not subject.coupled() and not after[1].isfinite().all():
        raise Broken("a NaN in the gradient of one parameter reaches another")


def _check_invariances(subject: Subject) -> None:
    if not subject.invariances:
        raise Undecided("none was advertised: see invariances=")
    for name in subject.invariances:
        INVARIANCES[name](subject)


def _check_scale(subject: Subject) -> None:
    if not same(subject.run(loss=lambda theta: 1000 * bowl(theta)), subject.whole(), 1e-4):
        raise Broken("scale: with a thousand times the loss it goes elsewhere")


def _check_rotation(subject: Subject) -> None:
    shape = subject.shapes[0]
    turn = torch.linalg.qr(torch.randn(shape[0], shape[0], generator=torch.Generator().manual_seed(1)).double()).Q
    plain, turned = subject.parameters(), subject.parameters()
    turned[0] = torch.nn.Parameter(turn @ turned[0].detach())
    ends = subject.walk(subject.built(plain), plain)
    others = subject.walk(subject.built(turned), turned, loss=lambda theta: bowl([turn.mT @ theta[0], *theta[1:]]))
    if not same([turn @ ends[0]], others[:1]):
        raise Broken("rotation: in rotated coordinates it goes elsewhere")


def _check_separation(subject: Subject) -> None:
    if subject.coupled():
        raise Broken("separation: a parameter's steps depend on the other parameters")


INVARIANCES = {"scale": _check_scale, "rotation": _check_rotation, "separation": _check_separation}


def _gradient_of(parameter: Tensor) -> Tensor:
    if parameter.grad is None:
        raise Broken("a step takes the gradients away: leave that to zero_grad")
    return parameter.grad


def _tensors_in_state(state: Any) -> list[Tensor]:
    if isinstance(state, Tensor):
        return [state]
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return [tensor for part in parts for tensor in _tensors_in_state(part)]


CHECKS = {
    "interface": (_check_interface, ()),
    "descent": (_check_descent, ("interface",)),
    "deterministic": (_check_deterministic, ("interface",)),
    "closure": (_closure_of_loss, ("deterministic",)),
    "in_place": (_in_place, ("interface",)),
    "gradients_untouched": (_gradients_untouched, ("interface",)),
    "aliasing": (_check_aliasing, ("deterministic",)),
    "without_gradient": (_without_gradient, ("interface",)),
    "order": (_check_order, ("deterministic",)),
    "groups": (_check_groups, ("deterministic",)),
    "schedule": (_check_schedule, ("deterministic",)),
    "resume": (_check_resume, ("deterministic",)),
    "maximize": (_check_maximize, ("deterministic",)),
    "foreach": (_check_foreach, ("deterministic",)),
    "weight_decay": (_weight_decay, ("interface",)),
    "dtypes": (_check_dtypes, ("deterministic",)),
    "strides": (_check_strides, ("deterministic",)),
    "small_shapes": (_small_shapes, ("interface",)),
    "complex": (_check_complex, ("descent",)),
    "sparse": (_check_sparse, ("deterministic",)),
    "lr_refused": (_lr_refused, ("interface",)),
    "nan": (_check_nan, ("interface",)),
    "invariances": (_check_invariances, ("deterministic",)),
}
