"""A multilayer perceptron that is learnt by a PAC-Bayes bound, and comes with a certificate."""

from collections.abc import Sequence

import torch

from lemmata.feedforward.mlp import MLP
from lemmata.generalization.stochastic_network import StochasticNetwork
from lemmata.marks import system

__all__ = ["PACBayesClassifier"]


@system("pacbayes", title="Classifier with a PAC-Bayes certificate", kind="sampler")
class PACBayesClassifier(StochasticNetwork):
    r"""A stochastic network around a multilayer perceptron, built of plain numbers, as recipes and files need it.

    $$ e \le \mathrm{kl}^{-1}\Big(\hat e \,\Big|\, \frac1n\Big(D_{KL}(q\|p) + \ln\frac{2\sqrt n}\epsilon\Big)\Big) $$

    Everything else is as in `StochasticNetwork`, which takes any module.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: logits (batch, outputs)

    Source: Pérez-Ortiz et al. 2021 (prior learnt on one part of the data, bound on the other).

    >>> PACBayesClassifier(784, 10, widths=(64,))(torch.rand(5, 28, 28)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        widths: Sequence[int] = (256,),
        variance: float = 1e-3,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(MLP(inputs, outputs, widths, device=device, dtype=dtype), variance=variance)
