r"""The linear recurrent unit: a stable diagonal system with complex eigenvalues, and a nonlinear readout."""

import math
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.scan import linear_scan
from lemmata.foundations.activations import activation as activation_named
from lemmata.marks import system
from lemmata.recurrent.eigenvalue_ring import input_gain, polar, ring_parameters
from lemmata.recurrent.layer import RecurrentLayer, mask_outputs, state_at_end

__all__ = ["LRU"]

COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}


@system("lru", title="Linear recurrent unit", kind="module", example="LRU(inputs=3, hidden=5)(torch.randn(4, 7, 3))")
class LRU(RecurrentLayer):
    r"""Linear recurrent unit: a stable diagonal linear system, run as a scan, and read position by position.

    $$ \zeta_t = \lambda\odot\zeta_{t-1} + \gamma\odot Bx_t, \qquad \lambda_i = \exp(-e^{\nu_i} + i\phi_i), \qquad
       y_t = W\,\sigma\big(\mathrm{Re}(G\zeta_t) + b\big) + c \ \ (+\ x_t) $$

    The modulus of an eigenvalue is the length of a channel's memory, its phase how fast it turns; no channel sees
    another. The factor $\gamma = \sqrt{1-|\lambda|^2}$ keeps the state's size the same for short and long memories:
    it follows the eigenvalues, or with `gain="learnt"` is a parameter that starts there. Eigenvalues start on a ring
    (see `ring_parameters`). `skip=True` adds the input to the output, as in a stack of many layers.

    `hidden` is the number of channels, each one complex value of the state. The layer does not show them: a network of
    `width` units reads them and gives `outputs` values, of both by default as many as there are inputs.

    Shapes:
        x: (batch, time, inputs)    returns: outputs (batch, time, outputs), state complex (batch, hidden)
        input_weight: (hidden, 2, inputs) and readout_weight: (width, hidden, 2), real and imaginary parts of B and G

    Claims: rnn.lru, rnn.lru.universality
    Source: Orvieto et al. 2023, "Resurrecting recurrent neural networks for long sequences".
    Differs: the state includes the input of its own step, $\zeta_t = \Lambda\zeta_{t-1} + Cx_t$, so that $y_t$ sees
        $x_t$. The MLP has one hidden layer, whose matrix is merged into $G$: $M\,\mathrm{Re}(G\zeta) =
        \mathrm{Re}(MG\,\zeta)$. The factor $\gamma$ follows $\lambda$ unless asked otherwise (theirs is learnt); no
        normalisation layer and no direct term inside the MLP. Parameters are real numbers; the state is complex64 for
        float32, bfloat16 and float16, complex128 for float64.

    >>> layer = LRU(inputs=8, hidden=16)
    >>> outputs, state = layer(torch.randn(2, 100, 8))
    >>> outputs.shape, state.dtype
    (torch.Size([2, 100, 8]), torch.complex64)
    >>> bool(layer.eigenvalues.abs().max() < 1)
    True
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        outputs: int | None = None,
        width: int | None = None,
        activation: str = "gelu",
        skip: bool = False,
        gain: str = "follows",
        r_min: float = 0.5,
        r_max: float = 0.99,
        max_phase: float = 2 * math.pi,
        by_area: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, inputs if outputs is None else outputs)
        if validate.flag("skip", skip) and self.outputs != self.inputs:
            raise ValueError(f"skip needs as many outputs as inputs, got {self.outputs} and {self.inputs}")
        self.gain = validate.one_of("gain", gain, ("follows", "learnt"))
        self.r_min, self.r_max, self.max_phase = r_min, r_max, max_phase
        self.by_area = validate.flag("by_area", by_area)
        self.hidden, self.skip, self.activation = validate.count("hidden", hidden), skip, activation
        # Of the same function, torch's own kernel is several times quicker.
        self._activate = functional.gelu if activation == "gelu" else activation_named(activation)
        self.width = width = inputs if width is None else validate.count("width", width)
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.nu = nn.Parameter(torch.empty(hidden, **factory_kwargs))
        self.phase = nn.Parameter(torch.empty(hidden, **factory_kwargs))
        self.log_gain = nn.Parameter(torch.empty(hidden, **factory_kwargs)) if gain == "learnt" else None
        self.input_weight = nn.Parameter(torch.empty(hidden, 2, inputs, **factory_kwargs))
        self.readout_weight = nn.Parameter(torch.empty(width, hidden, 2, **factory_kwargs))
        self.readout_bias = nn.Parameter(torch.empty(width, **factory_kwargs))
        self.head = nn.Linear(width, self.outputs, **factory_kwargs)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Eigenvalues on the ring; Gaussian B and G under which state and readout keep the size of the input."""
        ring = self.r_min, self.r_max, self.max_phase, self.by_area
        nu, phase = ring_parameters(self.hidden, *ring, device=self.nu.device)
        self.nu.copy_(nu)
        self.phase.copy_(phase)
        if self.log_gain is not None:
            self.log_gain.copy_(input_gain(nu).log())
        nn.init.normal_(self.input_weight, std=math.sqrt(1 / (2 * self.inputs)))
        nn.init.normal_(self.readout_weight, std=math.sqrt(1 / self.hidden))
        nn.init.zeros_(self.readout_bias)
        self.head.reset_parameters()

    @property
    def eigenvalues(self) -> Complex[Tensor, " hidden"]:
        """The diagonal of the recurrence, all inside the unit circle."""
        return polar(self.nu.to(self._real_dtype), self.phase.to(self._real_dtype))

    @property
    def input_matrix(self) -> Complex[Tensor, "hidden inputs"]:
        r"""The matrix $C = \mathrm{diag}(\gamma)B$ that carries the input into the state."""
        return torch.view_as_complex(self._scaled_input().mT.contiguous().to(self._real_dtype))

    @property
    def readout_matrix(self) -> Complex[Tensor, "width hidden"]:
        """The matrix G that reads the state."""
        return torch.view_as_complex(self.readout_weight.to(self._real_dtype))

    @property
    def _real_dtype(self) -> torch.dtype:
        return torch.float64 if self.nu.dtype is torch.float64 else torch.float32

    def _scaled_input(self) -> Float[Tensor, "hidden 2 inputs"]:
        gain = input_gain(self.nu.to(self._real_dtype)) if self.log_gain is None else self.log_gain.exp()
        return gain.to(self.nu.dtype)[:, None, None] * self.input_weight

    def initial_state(self, batch: int) -> Complex[Tensor, "batch hidden"]:
        return torch.zeros(batch, self.hidden, dtype=COMPLEX[self._real_dtype], device=self.nu.device)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.eigenvalues * state + x.to(state.dtype) @ self.input_matrix.mT  # complex (batch, hidden)
        read = (state @ self.readout_matrix.mT).real.to(x.dtype)  # (batch, width)
        return self.readout(read, x), state  # (batch, outputs)

    def sequence(self, x: Tensor, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        # Real and imaginary parts lie side by side: the complex products become real ones, and nothing is copied.
        driven = functional.linear(x, self._scaled_input().flatten(0, 1))  # (batch, time, 2 hidden)
        driven = driven.to(self._real_dtype).unflatten(-1, (self.hidden, 2))  # (batch, time, hidden, 2)
        driven = torch.view_as_complex(driven)  # complex (batch, time, hidden)
        states = linear_scan(self.eigenvalues, driven, state)  # complex (batch, time, hidden)
        parts = torch.view_as_real(states)  # (batch, time, hidden, 2)
        parts = parts.flatten(-2).to(x.dtype)  # (batch, time, 2 hidden)
        real, imaginary = self.readout_weight.unbind(-1)  # each (width, hidden)
        conjugate = torch.stack((real, -imaginary), dim=-1)  # (width, hidden, 2): Re(g z) = Re g Re z - Im g Im z
        read = functional.linear(parts, conjugate.flatten(1))  # (batch, time, width)
        outputs = self.readout(read, x)  # (batch, time, outputs)
        return mask_outputs(outputs, lengths), state_at_end(states, state, lengths)

    def readout(self, read: Float[Tensor, "*batch width"], x: Float[Tensor, "*batch inputs"]) -> Tensor:
        r"""The position-wise network on $\mathrm{Re}(G\zeta_t)$."""
        outputs = self.head(self._activate(read + self.readout_bias))
        return outputs + x if self.skip else outputs

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, hidden={self.hidden}, outputs={self.outputs}, activation={self.activation!r}"
