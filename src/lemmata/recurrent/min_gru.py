r"""minGRU: a gated recurrent unit whose gate and candidate see only the input, trained by a scan."""

import torch
from torch import Tensor

from lemmata.marks import system
from lemmata.recurrent.input_gated import InputGatedLayer

__all__ = ["MinGRU"]


@system("mingru", title="minGRU", kind="module", example="MinGRU(inputs=3, hidden=5)(torch.randn(4, 7, 3))")
class MinGRU(InputGatedLayer):
    r"""Gated recurrent unit without the state in its gate: linear in the state, so a whole sequence is one scan.

    $$ z_t = \sigma_t\odot z_{t-1} + (1-\sigma_t)\odot\tilde z_t, \qquad \sigma_t = \sigma(Gx_t+c),
       \quad \tilde z_t = Vx_t+d $$

    Every state is a convex combination of the first state and of the candidates so far; one of them, seen through the
    gates, is `z_0` times the product of all fractions kept.

    Shapes:
        x: (batch, time, inputs)    returns: outputs (batch, time, hidden), state (batch, hidden)
        input_weight: (2 hidden, inputs), the rows of $G$ and then those of $V$

    Claims: rnn.mingru
    Source: Feng et al. 2024, "Were RNNs all we needed?".
    Differs: the gate $\sigma$ is the fraction kept (theirs, the fraction replaced, is $1-\sigma$); the scan multiplies
        plain numbers instead of exponentials of logarithms, so the candidate may have any sign and needs no
        positive activation.

    >>> layer = MinGRU(inputs=3, hidden=5)
    >>> outputs, state = layer(torch.randn(2, 7, 3))
    >>> outputs.shape, state.shape
    (torch.Size([2, 7, 5]), torch.Size([2, 5]))
    >>> bool((outputs[:, -1] == state).all())
    True
    """

    BLOCKS = ("update", "candidate")

    def keep(self, total: Tensor) -> Tensor:
        return torch.sigmoid(total)

    def bias_for_fraction(self, fraction: Tensor) -> Tensor:
        return torch.logit(fraction)
