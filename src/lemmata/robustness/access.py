r"""What an adversary knows: the answers alone, the architecture as well, or everything. Each wrapper counts its use."""

import copy
from typing import NoReturn

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.attacked_model import Classifier
from lemmata.train.randomness import seeded

__all__ = ["BlackBox", "GreyBox", "WhiteBox"]


@system("black_box", title="Black-box access to a classifier", kind="function")
class BlackBox:
    r"""A classifier that answers and does nothing else: no weights, no graph, and no more answers than are allowed.

    It is called as the classifier is, and given to any attack in its place. Who asks it for a gradient is refused.

    Shapes:
        x: (batch, ...)    returns: logits (batch, classes)

    Claims: attack.threat_knowledge

    >>> box = BlackBox(nn.Linear(4, 3).eval(), limit=5)
    >>> box(torch.rand(2, 4)).shape, box.queries
    (torch.Size([2, 3]), 2)
    >>> box(torch.rand(2, 4, requires_grad=True))
    Traceback (most recent call last):
    ValueError: a black box gives no gradients: use square_attack or transfer_attack, which need none
    """

    knowledge = "black"

    def __init__(self, model: Classifier, limit: int | None = None):
        self._model = _checked_classifier(model)
        self.limit = None if limit is None else validate.count("limit", limit)
        self.queries = 0
        self.gradients = 0

    def __call__(self, x: Tensor) -> Tensor:
        if x.requires_grad and torch.is_grad_enabled():
            cure = "use square_attack or transfer_attack, which need none"
            raise ValueError(f"a {self.knowledge} box gives no gradients: {cure}")
        return self._counted_answer(x)

    def _counted_answer(self, x: Tensor) -> Tensor:
        if self.limit is not None and self.queries + len(x) > self.limit:
            used = f"the {self.knowledge} box answers {self.limit} queries, and {self.queries} are used up"
            raise ValueError(f"{used}: attack fewer images, or each with fewer queries")
        self.queries += len(x)
        with torch.no_grad():
            return self._model(x)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a {self.knowledge} box answers queries, and has no {name!r}")


@system("grey_box", title="Grey-box access to a classifier", kind="function")
class GreyBox(BlackBox):
    r"""A black box of which the architecture is known: `architecture(generator)` is a copy with weights drawn anew.

    What an adversary then does is train the copy, and hand its examples on: `transfer_attack`.

    Shapes:
        x: (batch, ...)    returns: logits (batch, classes)

    Claims: attack.threat_knowledge

    >>> box = GreyBox(nn.Linear(4, 3).eval())
    >>> box.architecture()
    Linear(in_features=4, out_features=3, bias=True)
    """

    knowledge = "grey"
    _model: nn.Module

    def __init__(self, model: nn.Module, limit: int | None = None):
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch module, whose architecture is known, got {type(model).__name__}")
        super().__init__(model, limit)

    def architecture(self, generator: torch.Generator | None = None) -> nn.Module:
        """The same layers with nothing of the weights, in training mode."""
        seed = 0 if generator is None else int(torch.randint(2**31, (1,), generator=generator, device=generator.device))
        fresh = copy.deepcopy(self._model)
        with seeded(seed), torch.no_grad():
            for value in fresh.parameters():
                value.fill_(torch.nan)
            for part in reversed(list(fresh.modules())):  # a whole may draw otherwise than its parts do
                if callable(reset := getattr(part, "reset_parameters", None)):
                    reset()
        for name, value in fresh.named_parameters():
            value.grad = None
            if value.isnan().any():
                raise ValueError(f"{name} cannot be drawn anew: give its module a method reset_parameters()")
        return fresh.train()


@system("white_box", title="White-box access to a classifier", kind="function")
class WhiteBox:
    r"""A classifier of which everything is known, as `model`; answers and gradients are counted.

    Shapes:
        x: (batch, ...)    returns: logits (batch, classes)

    Claims: attack.threat_knowledge

    >>> box = WhiteBox(nn.Linear(4, 3).eval())
    >>> box(torch.rand(2, 4, requires_grad=True)).sum().backward()
    >>> box.queries, box.gradients, list(dict(box.model.named_parameters()))
    (2, 2, ['weight', 'bias'])
    """

    knowledge = "white"

    def __init__(self, model: Classifier):
        self.model = _checked_classifier(model)
        self.queries = 0
        self.gradients = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.queries += len(x)
        logits = self.model(x)
        if isinstance(logits, Tensor) and logits.requires_grad:
            logits.register_hook(self._count_gradients)
        return logits

    def _count_gradients(self, gradient: Tensor) -> None:
        self.gradients += len(gradient)


def _checked_classifier(model: Classifier) -> Classifier:
    if not callable(model):
        raise TypeError(f"model must be a classifier, model(x) -> logits, got {type(model).__name__}")
    if isinstance(model, nn.Module) and any(part.training for part in model.modules()):
        raise ValueError("the model is in training mode: call model.eval() before it is attacked")
    return model
