r"""Modern Hopfield networks: an energy over continuous states whose update is softmax attention.

`ModernHopfield` stores patterns as they are; `ModernHopfieldLayer` learns where to look and what to return.
"""

import math

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from lemmata.marks import system
from lemmata.validate import count, floating, inputs, last_axis, positive, visible

__all__ = ["ModernHopfield", "ModernHopfieldLayer"]


@system("modern_hopfield", title="Modern continuous Hopfield network", kind="memory")
class ModernHopfield(nn.Module):
    r"""Continuous associative memory whose update is one step of softmax attention over the stored patterns.

    $$ E(\xi) = -\beta^{-1} \log \sum_\mu e^{\beta x_\mu^\top \xi} + \tfrac12 \xi^\top \xi
       + \beta^{-1} \log N + \tfrac12 \max_\mu \|x_\mu\|^2 \ge 0, \qquad
       \xi \leftarrow \sum_\mu x_\mu \, \mathrm{softmax}_\mu(\beta x_\mu^\top \xi) $$

    The update is the concave-convex procedure on $E$: $E$ never rises, and $\nabla E(\xi)$ is the state minus
    its update. Small $\beta$ averages the memories, large $\beta$ retrieves the nearest; the default is
    $1/\sqrt d$. Gradients reach the states and the patterns. Rows where `mask` is False are padding.

    Shapes:
        patterns: (patterns, features), or (batch, patterns, features) for one memory per batch entry
        mask: the shape of `patterns` without its features, default all True
        states: (..., features), or (batch, queries, features)    returns: the shape of states

    Claims: hopfield.modern
    Source: Ramsauer et al. 2021, "Hopfield Networks is All You Need".

    >>> memory = ModernHopfield(torch.eye(3), beta=20.0)
    >>> memory(torch.tensor([0.9, 0.2, -0.1])).round(decimals=3)
    tensor([1., 0., 0.])
    """

    patterns: Float[Tensor, "*batch patterns features"]
    mask: Bool[Tensor, "*batch patterns"]

    def __init__(
        self,
        patterns: Float[Tensor, "*batch patterns features"],
        beta: float | None = None,
        steps: int = 1,
        mask: Bool[Tensor, "*batch patterns"] | None = None,
    ):
        super().__init__()
        if _check_finite("patterns", patterns).ndim not in (2, 3):
            axes = "(patterns, features) or (batch, patterns, features)"
            raise ValueError(f"patterns must be a {axes} tensor, got shape {tuple(patterns.shape)}")
        everything = torch.ones(patterns.shape[:-1], dtype=torch.bool, device=patterns.device)
        self.beta = positive("beta", 1 / math.sqrt(patterns.shape[-1]) if beta is None else beta)
        self.steps = count("steps", steps)
        self.register_buffer("patterns", patterns)
        self.register_buffer("mask", everything if mask is None else _checked_mask(mask, everything.shape))

    def scores(self, states: Float[Tensor, "*queries features"]) -> Float[Tensor, "*queries patterns"]:
        r"""$\beta x_\mu^\top \xi$ for each state and pattern; minus infinity for padding."""
        scores = self.beta * (self._checked_states(states) @ self.patterns.mT)  # (..., queries, patterns)
        # One memory serves states of any shape; the masks of a batch need an axis for the queries.
        mask = self.mask if self.mask.ndim == 1 else self.mask[:, None, :]
        return scores.masked_fill(~mask, -math.inf)

    def weights(self, states: Float[Tensor, "*queries features"]) -> Float[Tensor, "*queries patterns"]:
        """How much of each pattern the next state takes: the attention weights, which sum to one."""
        return self.scores(states).softmax(-1)

    def forward(self, states: Float[Tensor, "*queries features"]) -> Float[Tensor, "*queries features"]:
        """The states after `steps` updates."""
        for _ in range(self.steps):
            states = self.weights(states) @ self.patterns  # (..., queries, patterns) -> (..., queries, features)
        return states

    def energy(self, states: Float[Tensor, "*queries features"]) -> Float[Tensor, "*queries"]:
        r"""The energy of each state, between 0 and $2 \max_\mu \|x_\mu\|^2$ on the hull of the patterns."""
        attraction = self.scores(states).logsumexp(-1) / self.beta  # (..., queries)
        batched = self.mask.ndim == 2  # then the two constants keep an axis for the queries
        norms = self.patterns.square().sum(-1).masked_fill(~self.mask, 0)  # (..., patterns)
        number = self.mask.sum(-1, keepdim=batched, dtype=norms.dtype)
        offset = number.log() / self.beta + norms.amax(-1, keepdim=batched) / 2
        return states.square().sum(-1) / 2 - attraction + offset

    def _checked_states(self, states: Tensor) -> Tensor:
        (*batch, _, features), shape = self.patterns.shape, tuple(_check_finite("states", states).shape)
        last_axis("states", states, features)
        if batch and (len(shape) != 3 or shape[0] != batch[0]):
            raise ValueError(f"states must be a ({batch[0]}, queries, {features}) tensor, got shape {shape}")
        return states

    def extra_repr(self) -> str:
        return f"patterns={tuple(self.patterns.shape)}, beta={self.beta:g}, steps={self.steps}"


@system(
    "modern_hopfield_layer",
    title="Modern Hopfield layer",
    kind="module",
    example="ModernHopfieldLayer(8, heads=2, steps=2)(torch.randn(3, 5, 8), torch.randn(3, 7, 8))",
)
class ModernHopfieldLayer(nn.Module):
    r"""Attention as a trainable memory: states and memories are projected, associated, and read out.

    $$ Q = R W_Q^\top, \quad K = Y W_K^\top, \quad V = Y W_V^\top, \qquad
       Q \leftarrow \mathrm{softmax}(\beta Q K^\top) K \ \ (\text{steps} - 1 \text{ times}), \qquad
       Z = \mathrm{softmax}(\beta Q K^\top) V $$

    With one step and the default $\beta = 1/\sqrt{d_\text{head}}$ this is multi-head attention, and the
    parameters have the names and shapes of `torch.nn.MultiheadAttention`: each loads the other's `state_dict`.

    Shapes:
        states: (batch, queries, features)
        memories: (batch, memories, features), default the states themselves
        mask: (batch, memories), True = a memory, False = padding
        returns: (batch, queries, features)

    Source: Ramsauer et al. 2021.  Differs: True in the mask keeps a memory, as in
        `scaled_dot_product_attention`; `MultiheadAttention`'s `key_padding_mask` says the opposite.

    >>> layer = ModernHopfieldLayer(8, heads=2, steps=3)
    >>> layer(torch.randn(2, 5, 8), memories=torch.randn(2, 7, 8)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        features: int,
        heads: int = 1,
        beta: float | None = None,
        steps: int = 1,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.features, self.heads = count("features", features), count("heads", heads)
        if features % heads:
            raise ValueError(f"heads must divide features, got {heads} heads for {features} features")
        self.beta = positive("beta", 1 / math.sqrt(features // heads) if beta is None else beta)
        self.steps = count("steps", steps)
        self.in_proj_weight = nn.Parameter(torch.empty(3 * features, features, device=device, dtype=dtype))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * features, device=device, dtype=dtype)) if bias else None
        self.out_proj = nn.Linear(features, features, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projections as `torch.nn.MultiheadAttention` does: the same seed gives the same layer."""
        nn.init.xavier_uniform_(self.in_proj_weight)
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        states: Float[Tensor, "batch queries features"],
        memories: Float[Tensor, "batch memories features"] | None = None,
        mask: Bool[Tensor, "batch memories"] | None = None,
    ) -> Float[Tensor, "batch queries features"]:
        """What the memories answer to the states."""
        self._check_tensor("states", states)
        memories = states if memories is None else self._check_tensor("memories", memories)
        batch, found = states.shape[0], memories.shape[0]
        if batch != found:
            raise ValueError(f"memories must hold one memory for each of {batch} states, got {found}")
        query, key, value = self._project_heads(states, memories)  # (batch, heads, length, head_dim) each
        shown = None if mask is None else _checked_mask(mask, memories.shape[:-1])[:, None, None, :]
        for _ in range(self.steps - 1):
            query = F.scaled_dot_product_attention(query, key, key, shown, scale=self.beta)
        read = F.scaled_dot_product_attention(query, key, value, shown, scale=self.beta)
        read = rearrange(read, "batch heads length head_dim -> batch length (heads head_dim)")
        return self.out_proj(read)  # (batch, queries, features)

    def _project_heads(self, states: Tensor, memories: Tensor) -> tuple[Tensor, ...]:
        bias = self.in_proj_bias
        weights, biases = self.in_proj_weight.chunk(3), (None,) * 3 if bias is None else bias.chunk(3)
        query, key, value = map(F.linear, (states, memories, memories), weights, biases)  # (batch, length, features)
        heads = "batch length (heads head_dim) -> batch heads length head_dim"
        return tuple(rearrange(x, heads, heads=self.heads) for x in (query, key, value))

    def _check_tensor(self, name: str, value: Tensor) -> Tensor:
        if inputs(name, value, self.features).ndim != 3:
            wanted = f"a (batch, length, {self.features}) tensor"
            raise ValueError(f"{name} must be {wanted}, got shape {tuple(value.shape)}")
        return value

    def extra_repr(self) -> str:
        return f"features={self.features}, heads={self.heads}, beta={self.beta:g}, steps={self.steps}"


def _checked_mask(mask: Tensor, shape: torch.Size) -> Tensor:
    if not isinstance(mask, Tensor) or mask.dtype is not torch.bool:
        raise TypeError(f"mask must be a boolean tensor, got {getattr(mask, 'dtype', type(mask).__name__)}")
    if mask.shape != shape:
        raise ValueError(f"mask must have shape {tuple(shape)}, got {tuple(mask.shape)}")
    if visible(mask) and not mask.any(-1).all():
        raise ValueError("mask must keep at least one pattern of each memory, got one that is all padding")
    return mask


def _check_finite(name: str, value: Tensor) -> Tensor:
    """Check the values, except inside a compiled graph, where looking at them would break it."""
    if not torch.compiler.is_compiling():
        floating(name, value.detach() if isinstance(value, Tensor) else value)
    return value
