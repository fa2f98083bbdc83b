r"""Robust accuracy: attacks one after another, each on what the others left, and an interval for what remains."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.data.columns import inputs_and_target
from lemmata.generalization.risk_bounds import test_set_bound
from lemmata.marks import system
from lemmata.robustness.adaptive_gradient import apgd
from lemmata.robustness.attacked_model import Attack, Classifier, fixed_generator, under_attack
from lemmata.robustness.goals import dlr_goal
from lemmata.robustness.sham_flags import sham_robustness
from lemmata.robustness.square_search import square_attack
from lemmata.robustness.threat import Threat, ball_threat
from lemmata.robustness.transfer import transfer_attack
from lemmata.train.options import Options
from lemmata.train.processes import World
from lemmata.train.sources import Place, as_source

__all__ = ["RobustAccuracy", "evaluate"]

RIVALS = 9  # classes that targeted attacks aim at, the likeliest first
EXAMINED = 64  # examples that are searched for signs of sham robustness


@dataclass(frozen=True)
class RobustAccuracy:
    """The fraction of examples that no attack of the cascade made the classifier answer wrongly."""

    accuracy: float
    low: float
    """Lower end of the exact interval of Clopper and Pearson for the accuracy on new data under these attacks."""
    high: float
    confidence: float
    clean: float
    """The fraction that is answered rightly without any attack."""
    left: dict[str, float]
    """The accuracy that each attack of the cascade left, in their order."""
    threat: Threat
    x: Float[Tensor, "n ..."] = field(repr=False)
    y: Int[Tensor, "n"] = field(repr=False)
    examples: Float[Tensor, "n ..."] = field(repr=False)
    """Verified examples where the classifier fell, x itself where it stood."""
    robust: Bool[Tensor, "n"] = field(repr=False)
    flags: tuple[str, ...] = ()
    """Signs that the accuracy is sham, see `sham_robustness`."""

    def __str__(self) -> str:
        interval = f"{self.confidence:.0%} interval {self.low:.1%} to {self.high:.1%}"
        norm = "inf" if self.threat.norm == math.inf else f"{self.threat.norm:g}"
        told = "".join(f"\nflag: {flag}" for flag in self.flags)
        within = f"within {self.threat.eps:g} in the {norm}-norm"
        return f"robust accuracy {self.accuracy:.1%} {within} ({interval}), clean {self.clean:.1%}{told}"


@system("robust_evaluation", title="Robust accuracy by a cascade of attacks", kind="function")
def evaluate(
    model: Classifier,
    data: Any,
    eps: int | float,
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
    levels: int | None = None,
    generator: torch.Generator | None = None,
    steps: int = 100,
    queries: int = 1000,
    surrogate: Classifier | None = None,
    confidence: float = 0.95,
    batch_size: int = 256,
    examine: bool = True,
    watch: Callable[[str, int, int], None] | None = None,
) -> RobustAccuracy:
    r"""APGD on the cross-entropy, APGD on the ratio of logits towards each other class, a surrogate, random squares.

    $$ \hat a = \frac1n\sum_i \min_{\|\delta\|_p\le\epsilon}
       \mathbf 1[\hat y(x_i + \delta) = y_i], \qquad \text{of which attacks give an upper bound} $$

    Only what an attack could not break goes on to the next. Two binomial bounds, each with half of what may fail, make
    the interval; it is one for the accuracy under these attacks, and no attack proves that none is better. `watch` is
    told attack, number of examples done and number of all. `examine=False` asks for no signs of sham robustness.

    Shapes:
        data: images and their classes in any form that `fit` takes    returns: RobustAccuracy

    Source: Croce and Hein 2020 (AutoAttack).  Differs: no FAB; a transfer attack where there is a surrogate.

    >>> model = nn.Linear(2, 2).eval()
    >>> _ = model.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    >>> x = torch.tensor([[0.9, 0.1], [0.55, 0.45], [0.2, 0.6], [0.5, 0.6]])
    >>> print(evaluate(model, (x, torch.tensor([0, 0, 1, 0])), eps=0.1))
    robust accuracy 50.0% within 0.1 in the inf-norm (95% interval 6.8% to 93.2%), clean 75.0%
    """
    threat = ball_threat(eps, norm, bounds, levels)
    validate.count("batch_size", batch_size)
    validate.number("confidence", confidence, above=0, below=1)
    x, y = images_and_classes(data, model)
    common = {"eps": eps, "norm": norm, "bounds": bounds, "levels": levels, "generator": fixed_generator(generator)}
    cascade = _Cascade(model, common, {"steps": steps}, {"queries": queries}, surrogate)
    parts = [cascade.run(x[rows], y[rows]) for rows in _watched_parts(len(x), batch_size, watch, cascade)]
    examples, right = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])  # right: by stage
    robust, n, failure = right.all(1), len(x), (1 - confidence) / 2
    stood = int(robust.sum())
    flags: tuple[str, ...] = ()
    if examine and eps > 0:
        few = x[:EXAMINED], y[:EXAMINED]
        flags = sham_robustness(model, *few, eps, norm, bounds, generator, surrogate=surrogate)
    left = right.double().cumprod(1).mean(0).tolist()
    return RobustAccuracy(
        stood / n,
        1 - test_set_bound(n - stood, n, 1 - failure).value,
        test_set_bound(stood, n, 1 - failure).value,
        confidence,
        left[0],
        dict(zip(cascade.names, left[1:], strict=True)),
        threat,
        x, y, examples, robust, flags,
    )  # fmt: skip


class _Cascade:
    """The attacks in their order, and what they are given."""

    def __init__(
        self,
        model: Classifier,
        common: dict[str, Any],
        ascent: dict[str, Any],
        search: dict[str, Any],
        surrogate: Classifier | None,
    ):
        self.model, self.common, self.ascent, self.search, self.surrogate = model, common, ascent, search, surrogate
        self.names = ["APGD", "APGD towards classes", *["transfer"] * (surrogate is not None), "squares"]
        self.watch: Callable[[str], None] = lambda name: None

    def run(self, x: Tensor, y: Tensor) -> tuple[Float[Tensor, "batch ..."], Bool[Tensor, "batch stages"]]:
        """The examples, and whether each is still answered rightly, at first and after each attack."""
        examples, logits = x.clone(), self.clean_logits(x, y)
        stands = logits.argmax(1) == y
        stages = [stands]
        for name in self.names:
            self.watch(name)
            rows = stages[-1].nonzero()[:, 0]
            for attack in self.attacks_of(name, logits):
                if len(rows):
                    found = attack(x[rows], y[rows], rows)
                    examples[rows] = found.examples  # x itself where it failed
                    rows = rows[~found.success]
            stands = torch.zeros_like(stages[0])
            stands[rows] = True
            stages.append(stands)
        return examples, torch.stack(stages, 1)

    def clean_logits(self, x: Tensor, y: Tensor) -> Float[Tensor, "batch classes"]:
        threat = Threat(*(self.common[name] for name in ("eps", "norm", "bounds", "levels")))
        with under_attack(self.model, x, y, threat) as lent:
            return lent.clean_logits

    def attacks_of(self, name: str, logits: Tensor) -> Iterator[Callable[[Tensor, Tensor, Tensor], Attack]]:
        if name == "APGD":
            yield lambda x, y, rows: apgd(self.model, x, y, **self.common, **self.ascent)
        elif name == "transfer":
            surrogate = self.surrogate
            assert surrogate is not None
            yield lambda x, y, rows: transfer_attack(self.model, x, y, **self.common, surrogate=surrogate)
        elif name == "squares":
            yield lambda x, y, rows: square_attack(self.model, x, y, **self.common, **self.search)
        else:
            for rank in range(1, min(RIVALS + 1, logits.shape[1])):
                yield lambda x, y, rows, rank=rank: self.towards_rival(x, y, logits[rows], rank)

    def towards_rival(self, x: Tensor, y: Tensor, logits: Tensor, rank: int) -> Attack:
        """All of these examples are answered rightly: the class of rank 0 is their own."""
        rivals = logits.topk(rank + 1, dim=1).indices[:, rank]
        return apgd(self.model, x, y, **self.common, **self.ascent, targeted=rivals, goal=dlr_goal)


def _watched_parts(
    n: int, size: int, watch: Callable[[str, int, int], None] | None, cascade: _Cascade
) -> Iterator[slice]:
    for first in range(0, n, size):
        if watch is not None:
            cascade.watch = lambda name, first=first: watch(name, first, n)
        yield slice(first, first + size)


def images_and_classes(data: Any, model: Classifier) -> tuple[Tensor, Tensor]:
    """All examples where the model is, by the reader that training has."""
    first = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    place = Place(torch.device("cpu") if first is None else first.device)
    found = [inputs_and_target(part) for part in as_source(data, "data", Options(), place, World()).everything()]
    if not found:
        raise ValueError("data must hold at least one example")
    if len(names := list(found[0][0])) != 1:
        raise ValueError(f"data must have one input, the image, beside its class, got {' and '.join(names)}")
    if found[0][1] is None:
        raise ValueError("data must have classes beside the images: give a tuple (x, y)")
    x = torch.cat([inputs[names[0]] for inputs, _ in found]).to(place.device)
    return x, torch.cat([target for _, target in found if target is not None]).to(place.device)
