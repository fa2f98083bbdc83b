"""Does an attack do what it says, and nothing else? A conformance suite for anyone's attack on classifiers."""

import copy
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn

from lemmata.robustness.norm_ball import perturbation_norms
from lemmata.testing.findings import Broken, Nonconforming, Report, Undecided, asked, found

__all__ = ["AttackError", "AttackReport", "check_attack"]

IMAGES, CLASSES, LEVELS = 12, 4, 256
RADII = {math.inf: 0.3, 2: 2.0, 1: 6.0, 0: 1}  # within which a good attack fools most of the suite's classifier


class AttackReport(Report):
    """The findings about one attack, in the order of the checks."""


class AttackError(Nonconforming):
    """An attack that failed a check of the suite; `report` holds all findings."""


def check_attack(
    attack: Callable[..., Any],
    *,
    eps: int | float | None = None,
    norm: int | float | None = None,
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> AttackReport:
    r"""Run every check of the suite on an attack, called as those of `lemmata.robustness` are.

    $$ \|x'-x\|_p\le\epsilon,\quad x'\in[0,1]^d,\quad \hat y(x')\ne y; \qquad x' = x \text{ where there is none} $$

    That is `attack(model, x, y, eps)`, with `norm`, `targeted`, `levels` and `generator` where it has parameters of
    these names; it returns `examples` and `success`. It is tried on a small network with batch normalisation and
    dropout, on images of which two are answered wrongly from the start, in its own norm unless one is given. The
    checks:

    - interface: examples in the shape and dtype of the images, success as one truth value for each
    - untouched: neither images nor classes are written into
    - ball: no example is farther away than eps, by more than the rounding of its values
    - box: all values lie between 0 and 1
    - verified: asked again, the network answers wrongly where the attack says so
    - failed: where the attack failed the image comes back, to the bit
    - finds: at least one example that was answered rightly is not any more
    - as_found: weights, buffers, gradients, modes and the global random numbers are as before
    - zero: within eps = 0 nothing moves, and nothing new is answered wrongly (skipped where refused)
    - one: an image alone is attacked as well
    - none: no image is an empty result, or a ValueError
    - seeds: the same generator gives the same bits, whatever the global random numbers are
    - targets: with `targeted` success means that class (skipped where refused)
    - grid: with `levels` examples are what 8 bits can hold

    With `on_fail="report"` failures are reported, not raised.

    >>> from lemmata.robustness import fgsm
    >>> check_attack(fgsm).passed
    True
    >>> from types import SimpleNamespace
    >>> blind = lambda model, x, y, eps: SimpleNamespace(examples=x + eps, success=model(x + eps).argmax(1) != y)
    >>> check_attack(blind, on_fail="report").named("failed")
    ['box', 'failed']
    """
    asked(CHECKS, skip, on_fail)
    if not callable(attack):
        raise TypeError(f"attack must be a function of (model, x, y, eps), got {type(attack).__name__}")
    subject = _Subject.of(attack, eps, norm)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        report = AttackReport(subject.name, found(CHECKS, subject, skip, "attack"))
    if on_fail == "raise" and not report.passed:
        raise AttackError(report)
    return report


@dataclass
class _Subject:
    """The attack, what it is tried on, and what it found once."""

    attack: Callable[..., Any]
    name: str
    takes: frozenset[str]
    eps: int | float
    norm: int | float

    @classmethod
    def of(cls, attack: Callable[..., Any], eps: int | float | None, norm: int | float | None) -> "_Subject":
        parameters = inspect.signature(attack).parameters
        own: int | float = parameters["norm"].default if "norm" in parameters else math.inf
        norm = own if norm is None else norm
        if norm not in RADII:
            raise ValueError(f"norm must be 0, 1, 2 or inf, got {norm!r}: give the norm in which eps is a radius")
        inner = getattr(attack, "func", attack)
        name = getattr(inner, "__name__", repr(inner))
        radius = RADII[norm] if eps is None else eps
        return cls(attack, name, frozenset(parameters), radius, norm)

    def run(
        self,
        x: Tensor,
        y: Tensor,
        eps: int | float | None = None,
        seed: int = 0,
        network: nn.Module | None = None,
        **more: Any,
    ) -> Any:
        given: dict[str, Any] = {"norm": self.norm, "generator": Generator().manual_seed(seed)}
        given = {name: value for name, value in given.items() if name in self.takes} | more
        network = _lent_network() if network is None else network
        return self.attack(network, x, y, eps=self.eps if eps is None else eps, **given)

    @functools.cached_property
    def once(self) -> Any:
        return self.run(*_given_images())

    @functools.cached_property
    def weaker(self) -> list[Any]:
        """What it finds within eps, and within radii in which it must fail now and then; a pixel cannot be parted."""
        parts = (0.1, 0.01) if self.norm else ()
        return [self.once, *(self.run(*_given_images(), eps=self.eps * part) for part in parts)]

    def option(self, name: str) -> None:
        if name not in self.takes:
            raise Undecided(f"the attack has no option {name}")


@functools.cache
def _drawn_network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        norm = nn.BatchNorm2d(4)
        parts = [nn.Conv2d(1, 4, 3, padding=1), norm, nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(256, CLASSES)]
        network = nn.Sequential(*parts)
        network(torch.rand(64, 1, 8, 8))  # statistics of the normalisation
    for number, value in enumerate(network.parameters()):
        value.requires_grad_(number != 1)  # one is frozen, the others have gradients of somebody's
        value.grad = torch.ones_like(value) if number != 1 else None
    return network.eval()


def _lent_network() -> nn.Module:
    """A copy of its own for each call, whatever an attack may do to it."""
    return copy.deepcopy(_drawn_network())


@functools.cache
def _drawn_images() -> tuple[Tensor, Tensor]:
    x = torch.randint(LEVELS, (IMAGES, 1, 8, 8), generator=Generator().manual_seed(2)) / (LEVELS - 1)
    with torch.no_grad():
        y = _lent_network()(x).argmax(1)
    y[:2] = (y[:2] + 1) % CLASSES
    return x, y


def _given_images() -> tuple[Tensor, Tensor]:
    """Images on the grid of 8 bits, and classes of which the first two are wrong."""
    x, y = _drawn_images()
    return x.clone(), y.clone()


def _network_answers(x: Tensor) -> Tensor:
    with torch.no_grad():
        return _lent_network()(x).argmax(1)


def _demand_result(result: Any, x: Tensor) -> None:
    examples, success = (getattr(result, name, None) for name in ("examples", "success"))
    if not isinstance(examples, Tensor) or (examples.shape, examples.dtype) != (x.shape, x.dtype):
        got = (
            f"{tuple(examples.shape)} of {examples.dtype}" if isinstance(examples, Tensor) else type(examples).__name__
        )
        raise Broken(f"examples must be {tuple(x.shape)} of {x.dtype}, got {got}")
    if not isinstance(success, Tensor) or (success.shape, success.dtype) != (x.shape[:1], torch.bool):
        raise Broken(f"success must hold one truth value for each of {len(x)} images")


def _check_interface(subject: _Subject) -> None:
    _demand_result(subject.once, _given_images()[0])


def _check_untouched(subject: _Subject) -> None:
    (x, y), (before, classes) = _given_images(), _given_images()
    subject.run(x, y)
    if not (torch.equal(x, before) and torch.equal(y, classes)):
        raise Broken("the attack writes into the images or classes that it is given")


def _check_ball(subject: _Subject) -> None:
    x, _ = _given_images()
    far = perturbation_norms(subject.once.examples.double() - x.double(), subject.norm)
    values = {math.inf: 1.0, 2: math.sqrt(x[0].numel()), 1: float(x[0].numel()), 0: 0.0}[subject.norm]
    if not bool((far <= subject.eps + values * torch.finfo(x.dtype).eps).all()):
        raise Broken(f"an example is {float(far.max()):.6g} away in the {subject.norm:g}-norm, eps is {subject.eps:g}")


def _check_box(subject: _Subject) -> None:
    low, high = (float(each) for each in torch.aminmax(subject.once.examples))
    if not (low >= 0 and high <= 1):
        raise Broken(f"examples must lie in [0, 1], got {low:.6g} to {high:.6g}")


def _check_verified(subject: _Subject) -> None:
    _, y = _given_images()
    for result in subject.weaker:
        right = result.success & (_network_answers(result.examples) == y)
        if bool(right.any()):
            raise Broken(f"{int(right.sum())} examples are called a success and answered rightly")
    if not bool(subject.once.success[:2].all()):
        raise Broken("an image that is answered wrongly from the start must be a success")


def _check_failed(subject: _Subject) -> None:
    x, _ = _given_images()
    for result in subject.weaker:
        moved = (result.examples != x).flatten(1).any(1) & ~result.success
        if bool(moved.any()):
            raise Broken(f"{int(moved.sum())} images come back changed where the attack failed")


def _check_finds(subject: _Subject) -> None:
    if not bool(subject.once.success[2:].any()):
        raise Broken(f"nothing is found within eps = {subject.eps:g}: give a larger one if that is too small")


def _check_as_found(subject: _Subject) -> None:
    network = _lent_network()
    before, state = copy.deepcopy(network), torch.get_rng_state()
    subject.run(*_given_images(), network=network)
    if not torch.equal(torch.get_rng_state(), state):
        raise Broken("global random numbers are drawn: what comes after the attack depends on it")
    if [part.training for part in network.modules()] != [part.training for part in before.modules()]:
        raise Broken("parts of the network are left in another mode")
    for (name, value), kept in zip(network.state_dict().items(), before.state_dict().values(), strict=True):
        if not torch.equal(value, kept):
            raise Broken(f"{name} is not as it was")
    for (name, value), kept in zip(network.named_parameters(), before.parameters(), strict=True):
        if value.requires_grad != kept.requires_grad:
            raise Broken(f"{name} is left {'without' if kept.requires_grad else 'with'} gradients")
        if (value.grad is None) != (kept.grad is None) or (
            value.grad is not None and kept.grad is not None and not torch.equal(value.grad, kept.grad)
        ):
            raise Broken(f"the gradient of {name} is not as it was")


def _check_zero(subject: _Subject) -> None:
    x, y = _given_images()
    try:
        result = subject.run(x, y, eps=0)
    except ValueError as error:
        raise Undecided(f"the attack refuses eps = 0 ({error})") from None
    if not torch.equal(result.examples, x):
        raise Broken("within eps = 0 an image moves")
    if not torch.equal(result.success, _network_answers(x) != y):
        raise Broken("within eps = 0 the accuracy changes")


def _check_one(subject: _Subject) -> None:
    x, y = _given_images()
    for row in (0, 5):
        result = subject.run(x[row : row + 1], y[row : row + 1])
        _demand_result(result, x[:1])
        if bool(result.success) != bool(_network_answers(result.examples) != y[row]):
            raise Broken("of an image alone success is not what the network answers")


def _check_none(subject: _Subject) -> None:
    x, y = _given_images()
    try:
        result = subject.run(x[:0], y[:0])
    except ValueError:
        return
    _demand_result(result, x[:0])


def _check_seeds(subject: _Subject) -> None:
    torch.manual_seed(1)  # what is drawn from torch's own generator would differ between the two
    one = subject.run(*_given_images(), seed=3)
    torch.manual_seed(2)
    if not torch.equal(one.examples, subject.run(*_given_images(), seed=3).examples):
        raise Broken("the same call gives other examples: all randomness must come from the generator")


def _check_targets(subject: _Subject) -> None:
    subject.option("targeted")
    x, y = _given_images()
    wanted = (y + 1) % CLASSES
    try:
        result = subject.run(x, y, targeted=wanted)
    except ValueError as error:
        raise Undecided(f"the attack refuses a target ({error})") from None
    if not bool((_network_answers(result.examples) == wanted)[result.success].all()):
        raise Broken("an example is called a success and not answered with the class that was wanted")


def _check_grid(subject: _Subject) -> None:
    subject.option("levels")
    x, y = _given_images()
    result = subject.run(x, y, levels=LEVELS)
    places = result.examples.double() * (LEVELS - 1)
    if not bool(((places - places.round()).abs() < 1e-3).all()):
        raise Broken("with levels=256 an example lies between what 8 bits can hold")
    if bool((result.success & (_network_answers(result.examples) == y)).any()):
        raise Broken("with levels=256 an example is called a success and answered rightly")


CHECKS: dict[str, tuple[Callable[[_Subject], None], tuple[str, ...]]] = {
    "interface": (_check_interface, ()),
    "untouched": (_check_untouched, ("interface",)),
    "ball": (_check_ball, ("interface",)),
    "box": (_check_box, ("interface",)),
    "verified": (_check_verified, ("interface",)),
    "failed": (_check_failed, ("interface",)),
    "finds": (_check_finds, ("interface",)),
    "as_found": (_check_as_found, ("interface",)),
    "zero": (_check_zero, ("interface",)),
    "one": (_check_one, ("interface",)),
    "none": (_check_none, ("interface",)),
    "seeds": (_check_seeds, ("interface",)),
    "targets": (_check_targets, ("interface",)),
    "grid": (_check_grid, ("interface",)),
}
