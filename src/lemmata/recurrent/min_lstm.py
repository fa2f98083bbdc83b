r"""minLSTM: a long short-term memory whose gates and candidate see only the input, with gates that add up to one."""

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.marks import system
from lemmata.recurrent.input_gated import InputGatedLayer

__all__ = ["MinLSTM"]


@system("minlstm", title="minLSTM", kind="module", example="MinLSTM(inputs=3, hidden=5)(torch.randn(4, 7, 3))")
class MinLSTM(InputGatedLayer):
    r"""Long short-term memory without the state in its gates; forget and input gate are divided by their sum.

    $$ z_t = \frac{f_t}{f_t+i_t}\odot z_{t-1} + \frac{i_t}{f_t+i_t}\odot\tilde z_t, \qquad
       f_t = \sigma(Fx_t+b),\ i_t = \sigma(Ix_t+c),\ \tilde z_t = Vx_t+d $$

    The fraction kept is the logistic function of $\log f_t - \log i_t$, which is also exact where both gates underflow.

    Shapes:
        x: (batch, time, inputs)    returns: outputs (batch, time, hidden), state (batch, hidden)
        input_weight: (3 hidden, inputs), the rows of $F$, of $I$ and of $V$

    Claims: rnn.mingru
    Source: Feng et al. 2024, "Were RNNs all we needed?".
    Differs: one state instead of the two of an LSTM, and no output gate (as theirs); the scan multiplies plain
        numbers instead of exponentials of logarithms, so the candidate may have any sign.

    >>> layer = MinLSTM(inputs=3, hidden=5)
    >>> outputs, state = layer(torch.randn(2, 7, 3), lengths=torch.tensor([7, 4]))
    >>> bool((outputs[1, 3] == state[1]).all()), bool((outputs[1, 4:] == 0).all())
    (True, True)
    """

    BLOCKS = ("forget", "input", "candidate")

    def keep(self, total: Tensor) -> Tensor:
        forget, input = total.chunk(2, dim=-1)  # each (..., hidden)
        return torch.sigmoid(functional.logsigmoid(forget) - functional.logsigmoid(input))

    def bias_for_fraction(self, fraction: Tensor) -> Tensor:
        # The gates s and 1 - s, which add up to one as they are.
        return torch.cat([torch.logit(fraction), torch.logit(1 - fraction)])
