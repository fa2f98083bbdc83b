r"""WaveNet: sound, sample by sample, from dilated causal convolutions; generation keeps what it has computed."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.temporal_convolution import CausalConv1d
from lemmata.marks import system

__all__ = ["WaveNet", "WaveNetConfig", "WaveNetState"]


@dataclass(frozen=True)
class WaveNetConfig:
    """What can be chosen of a WaveNet."""

    levels: int = 256
    """Values that a sample can have, 256 for mu-law codes."""
    channels: int = 32
    """Channels of each layer."""
    skip_channels: int = 64
    """Channels in which the layers' contributions are added up."""
    kernel_size: int = 2
    """Steps that each filter sees."""
    depth: int = 10
    """Layers in a stack, with dilations 1, 2, 4, ..."""
    stacks: int = 1
    """How often the dilations are run through."""

    def __post_init__(self) -> None:
        validate.count("levels", self.levels, least=2)
        validate.count("channels", self.channels)
        validate.count("skip_channels", self.skip_channels)
        validate.count("kernel_size", self.kernel_size, least=2)
        validate.count("depth", self.depth, most=24)
        validate.count("stacks", self.stacks)


@dataclass
class WaveNetState:
    """What generation remembers: for each layer the inputs that its filter will still see.

    Entry `position % len(queue)` of each queue, (slots, batch, channels), is the next to be written.
    """

    queues: list[Tensor]
    last: Tensor
    """(batch, channels): the embedded sample that the next step reads; zeros before the first."""
    position: int = 0


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

    def step(self, x: Tensor, queue: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """The same for one step, x (batch, channels), with the earlier inputs from the queue, which takes this one."""
        slots, dilation, width = len(queue), self.gated.dilation[0], self.gated.kernel_size[0]
        queue[position % slots] = x
        taps = [queue[(position - j * dilation) % slots] for j in reversed(range(width))]
        seen = torch.stack(taps, dim=-1).flatten(1)  # (batch, channels * kernel_size)
        both = functional.linear(seen, self.gated.weight.flatten(1), self.gated.bias)  # (batch, 2 * channels)
        values, gate = both.chunk(2, dim=1)
        out = functional.linear(values.tanh() * gate.sigmoid(), self.out.weight[..., 0], self.out.bias)
        return x + out[:, : self.channels], out[:, self.channels :]


@system("wavenet", title="WaveNet", kind="module")
class WaveNet(nn.Module):
    r"""The law of each sample given all before it, from gated dilated causal convolutions with residuals and skips.

    $$ p(x) = \prod_t p(x_t \mid x_{<t}), \qquad z^\ell = \tanh(W_f^\ell *_{d_\ell} h^\ell) \odot
       \sigma(W_g^\ell *_{d_\ell} h^\ell), \qquad h^{\ell+1} = h^\ell + V^\ell z^\ell,
       \qquad \text{logits} = C\,\phi\big(B\,\phi(\textstyle\sum_\ell S^\ell z^\ell)\big) $$

    $d_\ell = 1, 2, 4, \dots$ in each stack. The samples are embedded and moved one step on, so that the logits at $t$
    see $x_{t-1}, x_{t-2}, \dots$ and nothing later. `generate` keeps for each layer the inputs that its filter will
    still see: a new sample costs one step through the layers, whatever the receptive field.

    Shapes:
        x: (batch, time) whole numbers below `levels`    returns: logits (batch, time, levels) for x itself

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
        self.config = WaveNetConfig(levels, channels, skip_channels, kernel_size, depth, stacks)
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
        embedded = self._embedded(x)  # (batch, time, channels)
        before = functional.pad(embedded, (0, 0, 1, 0))[:, :-1]  # the sample before each: zeros, x_0, x_1, ...
        return self._read_out(self._inputs_and_skips(before.mT)[1].mT)

    def loss(self, x: Int[Tensor, "batch time"]) -> Float[Tensor, ""]:
        """The mean negative log-likelihood of a sample, in nats."""
        return functional.cross_entropy(self(x).flatten(0, 1), x.flatten())

    @torch.no_grad()
    def begin(self, x: Int[Tensor, "batch time"]) -> WaveNetState:
        """The state after these samples, which may be none; all steps are computed at once."""
        embedded, time = self._embedded(x), x.shape[1]  # (batch, time, channels)
        before = functional.pad(embedded, (0, 0, 1, 0))  # (batch, 1 + time, channels): zeros, x_0, x_1, ...
        queues = []
        for layer, values in zip(self.layers, self._inputs_and_skips(before.mT)[0], strict=True):
            assert isinstance(layer, _GatedLayer)
            slots = layer.gated.receptive_field
            queue = values.new_zeros(slots, len(x), self.config.channels)
            kept = torch.arange(max(0, time - slots), time, device=x.device)  # the last step is still to come
            queue[kept % slots] = values[:, :, kept].permute(2, 0, 1)  # (kept, batch, channels)
            queues.append(queue)
        return WaveNetState(queues, before[:, -1], time)

    @torch.no_grad()
    def step(self, state: WaveNetState) -> Float[Tensor, "batch levels"]:
        """The logits of the next sample. The state moves on; `hear` tells it which sample came."""
        hidden, total = state.last, 0.0
        for layer, queue in zip(self.layers, state.queues, strict=True):
            hidden, skip = layer.step(hidden, queue, state.position)  # type: ignore[operator]
            total = total + skip
        state.position += 1
        return self._read_out(total)  # type: ignore[arg-type]

    @torch.no_grad()
    def hear(self, state: WaveNetState, x: Int[Tensor, "batch"]) -> None:
        """The sample that followed the last step."""
        state.last = self.embedding(validate.tokens("x", x, self.config.levels))

    @torch.no_grad()
    def generate(
        self,
        x: Int[Tensor, "batch time"],
        length: int,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch longer"]:
        """These samples, (batch, time), and `length` more; temperature 0 takes the likeliest."""
        validate.count("length", length)
        validate.number("temperature", temperature, least=0)
        state, samples = self.begin(x), [x]
        for _ in range(length):
            drawn = _drawn(self.step(state), temperature, generator)  # (batch,)
            self.hear(state, drawn)
            samples.append(drawn[:, None])
        return torch.cat(samples, dim=1)

    @torch.no_grad()
    def generate_by_definition(
        self,
        x: Int[Tensor, "batch time"],
        length: int,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "batch longer"]:
        """The same as `generate`, with the whole receptive field computed anew for every sample."""
        validate.count("length", length)
        validate.number("temperature", temperature, least=0)
        for _ in range(length):
            unknown = functional.pad(x, (0, 1))  # the logits at a step do not see its sample
            # One step more than the field: at the cut, zeros stand for "no sample", which the field must not reach.
            logits = self(unknown[:, -self.receptive_field - 1 :])[:, -1]
            x = torch.cat([x, _drawn(logits, temperature, generator)[:, None]], dim=1)
        return x

    def extra_repr(self) -> str:
        return f"receptive_field={self.receptive_field}"

    def _embedded(self, x: Tensor) -> Tensor:
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


def _drawn(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]
