"""Function anchors: what the network said to old inputs is to stay, whatever becomes of its weights."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.continual.rehearsal import draw_rows
from lemmata.continual.strategy import Strategy
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating

__all__ = ["FunctionAnchor", "kl_of_logits"]

Divergence = Callable[[Tensor, Tensor], Tensor]


@system("kl_of_logits", title="Divergence of two classifiers' answers", kind="function")
def kl_of_logits(old: Float[Tensor, "batch classes"], new: Float[Tensor, "batch classes"]) -> Float[Tensor, " batch"]:
    r"""The divergence from what was said to what is said, for each input; zero with its gradient where both agree.

    $$ D_{KL}\big(\mathrm{softmax}(u) \,\|\, \mathrm{softmax}(v)\big) $$

    Shapes:
        old, new: (batch, classes)    returns: (batch,)

    Claims: continual.function_regulariser, continual.ewc_taylor, continual.kl_hessian_fisher

    >>> kl_of_logits(torch.tensor([[0.0, 1.0]]), torch.tensor([[2.0, 3.0]]))
    tensor([0.])
    """
    before, after = old.log_softmax(1), new.log_softmax(1)
    return (before.exp() * (before - after).masked_fill(before == float("-inf"), 0.0)).sum(1)


@system("function_anchor", title="Function anchor", kind="strategy")
class FunctionAnchor(Strategy):
    r"""The loss of a new task, and the divergence of today's answers to old inputs from those of then.

    $$ \hat L_B(\theta) = L_B(\theta) + \lambda\, \mathbb E_x\big[d(f(x; \theta), f(x; \theta^*_A))\big] $$

    `size` inputs of each task are kept with the answers that they had; `divergence(old, new)` of logits gives a number
    for each, by default that of Kullback and Leibler.

    Claims: continual.function_regulariser
    Source: Li and Hoiem, Learning without forgetting (2016); Buzzega et al., Dark experience for general continual
        learning (2020), for answers that are kept.

    >>> FunctionAnchor(nn.Linear(2, 2), strength=2.0).anchors
    []
    """

    def __init__(
        self, model: nn.Module, strength: float = 1.0, size: int = 200, divergence: Divergence = kl_of_logits
    ) -> None:
        super().__init__(model)
        self.strength = validate.number("strength", strength, least=0)
        self.size, self.divergence = validate.count("size", size), divergence
        self.anchors: list[Examples] = []  # x and the logits that it had, of each earlier task

    def loss(self, batch: Examples) -> Tensor:
        old = [draw_rows(anchor, len(batch)) for anchor in self.anchors]
        return super().loss(batch) + self.strength * self.penalty(old)

    def penalty(self, batches: list[Examples]) -> Tensor:
        """The mean divergence on each task's inputs, added up."""
        found = [self.divergence(batch.logits, self.logits(batch.x, k)).mean() for k, batch in enumerate(batches)]
        return torch.stack([*found, next(self.model.parameters()).new_zeros(())]).sum()

    def after_task(self, data: Examples) -> None:
        x = draw_rows(data, self.size).x
        with evaluating(self.model):
            self.anchors.append(Examples(x=x, logits=self.logits(x, self.task)))

    def state(self) -> dict[str, Any]:
        return {"anchors": [{"x": each.x, "logits": each.logits} for each in self.anchors]}

    def restore(self, state: Mapping[str, Any]) -> None:
        device = next(self.model.parameters()).device
        self.anchors = [Examples(x=each["x"], logits=each["logits"]).to(device) for each in state["anchors"]]
