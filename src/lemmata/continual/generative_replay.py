"""Generative replay: a model of the old data makes up examples, and the old network labels them."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.continual.strategy import Strategy
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating

__all__ = ["GenerativeReplay"]


class Sampler(Protocol):
    """What is asked of a generative model: that of `lemmata.generative` have it."""

    def sample(self, n: int) -> Tensor: ...

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any, /) -> Any: ...


@system("generative_replay", title="Generative replay", kind="strategy")
class GenerativeReplay(Strategy):
    r"""Rehearsal without old data: samples of a generative model of each old task, labelled by the network of then.

    $$ \frac1t \Big( L_t(\theta) + \sum_{k<t} \mathbb E_{x \sim p_k}
       \big[ -\textstyle\sum_y f_{\text{old}}(y|x) \log f_\theta(y|x) \big] \Big) $$

    `make()` gives an untrained generative model with `sample(n)`, and `train(model, examples)` fits it to a task when
    it is over: `lambda: FactorAnalysis(64, 16)` with `lambda model, data: model.fit(data.x)`, or a VAE with
    `fit(model, data.x)`. The labels are the probabilities of a copy of the network that was made after the last task.

    Source: Shin et al., Continual learning with deep generative replay (2017).
    Differs: a model for each task; in the paper one is trained again on its own samples.

    >>> replay = GenerativeReplay(nn.Linear(4, 2), make=lambda: None, train=lambda model, data: None)
    >>> replay.models, replay.old
    ([], None)
    """

    def __init__(self, model: nn.Module, make: Callable[[], Sampler], train: Callable[[Any, Examples], Any]) -> None:
        super().__init__(model)
        for name, part in (("make", make), ("train", train)):
            if not callable(part):
                raise TypeError(f"{name} must be a function, got {type(part).__name__}")
        self.make, self.train = make, train
        self.models: list[Sampler] = []
        self.old: nn.Module | None = None

    def loss(self, batch: Examples) -> Tensor:
        made = [self.replayed(k, len(batch)).to(batch.x) for k in range(len(self.models))]
        output = self.model(torch.cat([*made, batch.x]))
        *parts, new = output.split([*map(len, made), len(batch)])
        losses = [functional.cross_entropy(self.stream.visible(new, self.task), batch.y)]
        for task, (x, part) in enumerate(zip(made, parts, strict=True)):
            seen = self.stream.visible(part, task)
            probability = self.labels(x, task)
            losses.append(-(probability * seen.log_softmax(1).masked_fill(probability == 0, 0.0)).sum(1).mean())
        return torch.stack(losses).mean()

    def replayed(self, task: int, count: int) -> Tensor:
        """Made-up inputs of an earlier task."""
        with torch.no_grad():
            made = self.models[task].sample(validate.count("count", count))
        return made.reshape(count, *self.stream[task].train.x.shape[1:])

    def labels(self, x: Tensor, task: int) -> Tensor:
        """What the old network holds of them: probabilities, (batch, classes)."""
        assert self.old is not None
        with evaluating(self.old):
            return self.stream.visible(self.old(x), task).softmax(1)

    def after_task(self, data: Examples) -> None:
        made = self.make()
        self.train(made, data)
        self.models.append(made.eval() if isinstance(made, nn.Module) else made)
        self._keep_old()

    def _keep_old(self) -> None:
        self.old = copy.deepcopy(self.model).requires_grad_(False).eval()

    def state(self) -> dict[str, Any]:
        old = None if self.old is None else dict(self.old.state_dict())
        return {"models": [dict(model.state_dict()) for model in self.models], "old": old}

    def restore(self, state: Mapping[str, Any]) -> None:
        home = next(self.model.parameters()).device
        self.models = []
        for weights in state["models"]:
            made = self.make()
            made.load_state_dict(weights)
            self.models.append(made.to(home).eval() if isinstance(made, nn.Module) else made)
        if state["old"] is not None:
            self._keep_old()
            assert self.old is not None
            self.old.load_state_dict(state["old"])
