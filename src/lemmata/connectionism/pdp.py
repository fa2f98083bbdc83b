r"""Parallel distributed processing: any connectionist system, described by seven elements that are enough to run it."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["Element", "Moment", "ParallelDistributedProcess"]


class Element(NamedTuple):
    """One element of a process: a word or two that say what it is, and the tensor or rule itself.

    >>> Element("all silent", torch.zeros(3)).words
    'all silent'
    """

    words: str
    value: Any


class Moment(NamedTuple):
    """The state of a process between two steps: how far it is, what its units hold and send, how they are connected."""

    step: int
    activation: Float[Tensor, "units"]
    output: Float[Tensor, "units"]
    connectivity: Float[Tensor, "units units"]


@system("pdp", title="Parallel distributed processing", kind="function")
@dataclass(frozen=True, eq=False)
class ParallelDistributedProcess:
    r"""A system of units that compute together, given by its seven elements; nothing else is needed to run it.

    $$ a \leftarrow \mathrm{environment}(t, a), \quad o = f(a), \quad \mathrm{net} = g(W, o), \quad
       a \leftarrow F(t, a, \mathrm{net}), \quad W \leftarrow \mathrm{learning}(W, o, f(a)) $$

    | element | value |
    |---|---|
    | `units` | their activation at the start: (units,) |
    | `output` | what a unit sends: `rule(activation)` |
    | `connectivity` | weights, row = receiver, column = sender: (units, units) |
    | `propagation` | what arrives: `rule(connectivity, sent)` |
    | `activation` | what a unit makes of it: `rule(step, activation, arriving)` |
    | `learning` | how experience changes the weights: `rule(connectivity, sent, answered)`, or None |
    | `environment` | what the world does to the units before each step: `rule(step, activation)` |

    Each is an `Element`: a word or two, and the value. None may be missing, not even where it does nothing.

    Shapes:
        units: (units,)    connectivity: (units, units)

    Claims: pdp.elements
    Source: Rumelhart, Hinton and McClelland 1986.

    >>> and_gate = ParallelDistributedProcess(
    ...     units=Element("all silent", torch.zeros(3)),
    ...     output=Element("step at the threshold", lambda a: (a >= torch.tensor([1.0, 1.0, 2.0])).float()),
    ...     connectivity=Element("two inputs to one neuron", torch.tensor([[0.0, 0, 0], [0, 0, 0], [1, 1, 0]])),
    ...     propagation=Element("weighted sum", torch.mv),
    ...     activation=Element("neuron takes the sum", lambda step, a, net: torch.cat([a[:2], net[2:]])),
    ...     learning=Element("none", None),
    ...     environment=Element("both inputs on", lambda step, a: torch.tensor([1.0, 1.0, 0.0])),
    ... )
    >>> and_gate.run(1)[-1].output
    tensor([1., 1., 1.])
    >>> and_gate.card()["learning"]
    'none'
    """

    units: Element
    output: Element
    connectivity: Element
    propagation: Element
    activation: Element
    learning: Element
    environment: Element

    def __post_init__(self) -> None:
        for field in fields(self):
            element = getattr(self, field.name)
            if not isinstance(element, Element):
                raise TypeError(f"{field.name} must be Element(words, value), got {type(element).__name__}")
            if not isinstance(element.words, str) or not element.words.strip():
                raise ValueError(f"{field.name} must say in a word or two what it is, got {element.words!r}")
        start = validate.vector("units", self.units.value)
        weights = validate.matrix("connectivity", self.connectivity.value, "units, units")
        if weights.shape != (len(start), len(start)):
            raise ValueError(f"connectivity must have shape ({len(start)}, {len(start)}), got {tuple(weights.shape)}")
        for name in ("output", "propagation", "activation", "learning", "environment"):
            rule = getattr(self, name).value
            if not callable(rule) and not (name == "learning" and rule is None):
                raise TypeError(f"{name} must hold a rule to call, got {type(rule).__name__}")

    def card(self) -> dict[str, str]:
        """The seven elements in words."""
        return {field.name: getattr(self, field.name).words for field in fields(self)}

    def start(self) -> Moment:
        """The moment before the first step."""
        held = self.units.value
        return Moment(0, held, self._unit_result("output", held, held), self.connectivity.value)

    def step(self, now: Moment) -> Moment:
        """One round: the world acts, units send, what arrives changes their activation, and experience the weights."""
        # Everything that units hold, send and hear is (units,); the weights are (units, units).
        held = self._unit_result("environment", now.activation, now.step, now.activation)
        sent = self._unit_result("output", held, held)
        arriving = self._unit_result("propagation", held, now.connectivity, sent)
        held = self._unit_result("activation", held, now.step, held, arriving)
        answered = self._unit_result("output", held, held)
        weights = now.connectivity
        if self.learning.value is not None:
            weights = self._unit_result("learning", weights, weights, sent, answered)
        return Moment(now.step + 1, held, answered, weights)

    def run(self, steps: int) -> list[Moment]:
        """The start and the moments after each of so many steps."""
        moments = [self.start()]
        for _ in range(validate.count("steps", steps, least=0)):
            moments.append(self.step(moments[-1]))
        return moments

    def _unit_result(self, name: str, like: Tensor, *arguments: Any) -> Tensor:
        rule: Callable[..., Tensor] = getattr(self, name).value
        result = rule(*arguments)
        if not isinstance(result, Tensor):
            raise TypeError(f"{name} must return a tensor, got {type(result).__name__}")
        if result.shape != like.shape:
            raise ValueError(f"{name} must return a tensor of shape {tuple(like.shape)}, got {tuple(result.shape)}")
        return result
