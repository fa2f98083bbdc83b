r"""WaveNet: sound, sample by sample, from dilated causal convolutions; generation keeps what it has computed."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.temporal_convolution import CausalConv1d
from lemmata.fast.wavenet_steps import StepWeights, compiled_steps, drawn_level, one_step, why_no_compiled_steps
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["WaveNet", "WaveNetConfig", "WaveNetState"]

WORTH_COMPILING = 256  # steps; so many take torch about as long as a compiler takes, once


@dataclass(frozen=True)
class WaveNetConfig:
    """Configuration of a WaveNet."""

    levels: int = 256
    """Number of quantization levels of a sample: 256 for mu-law codes."""
    channels: int = 32
    """Residual channels of each layer."""
    skip_channels: int = 64
    """Channels of the skip connections."""
    kernel_size: int = 2
    """Kernel size of the convolutions, in steps."""
    depth: int = 10
    """Number of layers in a stack, with dilations 1, 2, 4, ..."""
    stacks: int = 1
    """Number of stacks."""

    def __post_init__(self) -> None:
        validate.count("levels", self.levels, least=2)
        validate.count("channels", self.channels)
        validate.count("skip_channels", self.skip_channels)
        validate.count("kernel_size", self.kernel_size, least=2)
        validate.count("depth", self.depth, most=24)
        validate.count("stacks", self.stacks)


@dataclass
class WaveNetState:
    """What generation remembers; a copy (`copy.deepcopy`) can be gone on with by itself."""

    weights: StepWeights
    """The network's weights as they were when it began."""
    memory: Tensor
    """(slots, batch, channels): for each layer the inputs that its filter will still see, in a ring."""
    last: Tensor
    """(batch, channels): the embedded sample that the next step reads; zeros before the first."""
    position: int
    """Samples before the next one."""


class _GatedLayer(nn.Module):
    """A dilated causal convolution with a gate; one part goes on to the next layer, one to the output."""

    def __init__(self, channels: int, skip_channels: int, kernel_size: int, dilation: int, place: dict) -> None:
        super().__init__()
        self.channels = channels
        self.gated = CausalConv1d(channels, 2 * channels, kernel_size, dilation, **place)  # filter, then gate
        self.out = nn.Conv1d(channels, channels + skip_channels, 1, **place)  # residual, then skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        values, gate = self.gated(x).chunk(2, dim=1)  # (batch, channels, time) each
        out = self.out(values.tanh() * gate.sigmoid())  # (batch, channels + skip_channels, time)
        return x + out[:, : self.channels], out[:, self.channels :]


@system(
    "wavenet",
    title="WaveNet",
    kind="module",
    example="WaveNet(levels=16, channels=4, skip_channels=6, depth=3)(torch.randint(16, (3, 20)))",
)
class WaveNet(nn.Module):
    r"""The law of each sample given all before it, from gated dilated causal convolutions with residuals and skips.

    $$ p(x) = \prod_t p(x_t \mid x_{<t}), \qquad z^\ell = \tanh(W_f^\ell *_{d_\ell} h^\ell) \odot
       \sigma(W_g^\ell *_{d_\ell} h^\ell), \qquad h^{\ell+1} = h^\ell + V^\ell z^\ell,
       \qquad \text{logits} = C\,\phi\big(B\,\phi(\textstyle\sum_\ell S^\ell z^\ell)\big) $$

    $d_\ell = 1, 2, 4, \dots$ in each stack. The samples are embedded and moved one step on, so that the logits at $t$
    see $x_{t-1}, x_{t-2}, \dots$ and nothing later. `generate` keeps for each layer the inputs that its filter will
    still see: a new sample costs one step through the layers, whatever the receptive field; a step of many is C.

    Shapes:
        x: (batch, time) integers below `levels`    returns: logits (batch, time, levels) for x itself

    Claims: conv.wavenet
    Source: A. van den Oord et al., WaveNet: a generative model for raw audio (2016); the queues: T. Le Paine et al.,
        Fast WaveNet generation algorithm (2016).
    Differs: samples enter by a table, without a first convolution; no conditioning.

    >>> network = WaveNet(levels=16, channels=8, depth=5)
    >>> network(torch.randint(16, (2, 100))).shape, network.receptive_field
    (torch.Size([2, 100, 16]), 32)
    >>> network.generate(torch.zeros(2, 10, dtype=torch.long), length=20).shape
    torch.Size([2, 30])
    """

    def __init__(
        self,
        levels: int = WaveNetConfig.levels,
        channels: int = WaveNetConfig.channels,
        skip_channels: int = WaveNetConfig.skip_channels,
        kernel_size: int = WaveNetConfig.kernel_size,
        depth: int = WaveNetConfig.depth,
        stacks: int = WaveNetConfig.stacks,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(WaveNetConfig, locals())
        place = {"device": device, "dtype": dtype}
        self.embedding = nn.Embedding(levels, channels, **place)
        dilations = [2**level for level in range(depth)] * stacks
        self.layers = nn.ModuleList(_GatedLayer(channels, skip_channels, kernel_size, d, place) for d in dilations)
        self.hidden = nn.Linear(skip_channels, skip_channels, **place)
        self.head = nn.Linear(skip_channels, levels, **place)

    @property
    def receptive_field(self) -> int:
        """How many earlier samples the logits depend on."""
        return 1 + self.config.stacks * (self.config.kernel_size - 1) * (2**self.config.depth - 1)

    def forward(self, x: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time levels"]:
        embedded = self._embed_codes(x)  # (batch, time, channels)
        before = functional.pad(embedded, (0, 0, 1, 0))[:, :-1]  # the sample before each: zeros, x_0, x_1, ...
        return self._read_out(self._inputs_and_skips(before.mT)[1].mT)

    def loss(self, x: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        """The mean negative log-likelihood of a sample, in nats."""
        return functional.cross_entropy(self(x).flatten(0, 1), x.flatten())

    @torch.no_grad()
    def begin(self, x: Int[Tensor, "batch time"]) -> WaveNetState:
        """The state after these samples, which may be none; all steps are computed at once."""
        embedded, time = self._embed_codes(x), x.shape[1]  # (batch, time, channels)
        before = functional.pad(embedded, (0, 0, 1, 0))  # (batch, 1 + time, channels): zeros, x_0, x_1, ...
        weights, rings = self._step_weights(), []
        for slots, values in zip(weights.slots.tolist(), self._inputs_and_skips(before.mT)[0], strict=True):
            ring = values.new_zeros(slots, len(x), self.config.channels)
            kept = torch.arange(max(0, time - slots), time, device=x.device)  # the last step is still to come
            ring[kept % slots] = values[:, :, kept].permute(2, 0, 1)  # (kept, batch, channels)
            rings.append(ring)
        return WaveNetState(weights, torch.cat(rings), before[:, -1].contiguous(), time)

    @torch.no_grad()
    def step(self, state: WaveNetState) -> Float[Tensor, "batch levels"]:
        """The logits of the next sample. The state moves on; `hear` tells it which sample came."""
        logits = one_step(state.weights, state.memory, state.last, state.position)
        state.position += 1
        return logits

    @torch.no_grad()
    def hear(self, state: WaveNetState, x: Int[Tensor, "batch"]) -> None:
        """The sample that followed the last step."""
        validate.tokens("x", x, self.config.levels)
        if x.shape != state.last.shape[:1]:
            raise ValueError(f"x must be ({len(state.last)},), a sample for each sequence, got shape {tuple(x.shape)}")
        state.last = state.weights.embedding[x]

    @torch.no_grad()
    def sample(
        self,
        state: WaveNetState,
        length: int,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch length"]:
        """The next samples, (batch, length); the state moves on. Long ones are compiled where there is a compiler."""
        chances = _uniform_numbers(state.last, length, temperature, generator)
        if length >= WORTH_COMPILING and not why_no_compiled_steps(state.last):
            drawn = compiled_steps(
                state.weights, state.memory, state.last, state.position, temperature, chances
            )  # (length, batch)
            state.position += length
            return drawn.T
        samples = []
        for chance in chances:
            samples.append(drawn_level(self.step(state), temperature, chance))
            state.last = state.weights.embedding[samples[-1]]
        return torch.stack(samples, dim=1)

    def generate(
        self,
        x: Int[Tensor, "batch time"],
        length: int,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch longer"]:
        """These samples, (batch, time), and `length` more; temperature 0 takes the likeliest."""
        return torch.cat([x, self.sample(self.begin(x), length, temperature, generator)], dim=1)

    @torch.no_grad()
    def generate_by_definition(
        self,
        x: Int[Tensor, "batch time"],
        length: int,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch longer"]:
        """The same as `generate`, with the whole receptive field computed anew for every sample."""
        for chance in _uniform_numbers(self._embed_codes(x)[:, :0, 0], length, temperature, generator):
            unknown = functional.pad(x, (0, 1))  # the logits at a step do not see its sample
            # One step more than the field: at the cut, zeros stand for "no sample", which the field must not reach.
            logits = self(unknown[:, -self.receptive_field - 1 :])[:, -1]
            x = torch.cat([x, drawn_level(logits, temperature, chance)[:, None]], dim=1)
        return x

    def extra_repr(self) -> str:
        return f"receptive_field={self.receptive_field}"

    def _embed_codes(self, x: Tensor) -> Tensor:
        validate.tokens("x", x, self.config.levels)
        if x.ndim != 2:
            raise ValueError(f"x must be (batch, time), got shape {tuple(x.shape)}")
        return self.embedding(x)

    def _inputs_and_skips(self, hidden: Tensor) -> tuple[list[Tensor], Tensor]:
        """What each layer is given, (batch, channels, time), and the sum of all skips, (batch, skip_channels, time)."""
        inputs, total = [], 0.0
        for layer in self.layers:
            inputs.append(hidden)
            hidden, skip = layer(hidden)
            total = total + skip
        return inputs, total  # type: ignore[return-value]

    def _read_out(self, skips: Tensor) -> Tensor:
        return self.head(self.hidden(skips.relu()).relu())  # (..., levels)

    def _step_weights(self) -> StepWeights:
        """The weights as the steps of generation read them: those of all layers together, outputs side by side."""
        if not all(values.isfinite().all() for values in self.parameters()):
            raise ValueError("the weights must be finite: load a checkpoint from before training diverged")
        channels, layers = self.config.channels, [each for each in self.layers if isinstance(each, _GatedLayer)]
        gated = torch.stack([layer.gated.weight for layer in layers])  # (layers, 2 * channels, channels, width)
        out = torch.stack([layer.out.weight[..., 0].T for layer in layers])  # (layers, channels, both)
        out_bias = torch.stack([layer.out.bias for layer in layers])  # type: ignore[arg-type] - (layers, both)
        return StepWeights(
            embedding=self.embedding.weight.clone(),
            past=gated[..., :-1].permute(0, 3, 2, 1).flatten(1, 2),
            now=gated[..., -1].mT.contiguous(),
            gate_bias=torch.stack([layer.gated.bias for layer in layers]),  # type: ignore[arg-type]
            residual=out[..., :channels].contiguous(),
            residual_bias=out_bias[:, :channels].contiguous(),
            skip=out[..., channels:].flatten(0, 1),
            skip_bias=out_bias[:, channels:].sum(0),
            hidden=self.hidden.weight.T.clone(memory_format=torch.contiguous_format),
            hidden_bias=self.hidden.bias.clone(),
            head=self.head.weight.T.clone(memory_format=torch.contiguous_format),
            head_bias=self.head.bias.clone(),
            dilation=torch.tensor([layer.gated.dilation[0] for layer in layers], device=gated.device),
        )


def _uniform_numbers(like: Tensor, length: int, temperature: float, generator: torch.Generator | None) -> Tensor:
    """(length, batch) numbers in [0, 1), one for each sample, the same whichever way the logits are computed."""
    validate.count("length", length)
    validate.number("temperature", temperature, least=0)
    return torch.rand(length, len(like), generator=generator, dtype=torch.float64, device=like.device)
