r"""Initial weights whose variance keeps signals, or gradients, at the size they have, for any torch module."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from lemmata import validate
from lemmata.marks import system
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.layer_norm import LayerNorm

__all__ = ["InitializedParameter", "initialize", "weight_variance"]

# The variance of a weight, from the number of terms in the sum of an output, and in that of a gradient.
VARIANCES: Mapping[str, Callable[[float, float], float]] = {
    "lecun": lambda n, m: 1 / n,
    "glorot": lambda n, m: 2 / (n + m),
    "he": lambda n, m: 2 / n,
    "orthogonal": lambda n, m: 1 / max(n, m),
}
SCHEMES = (*VARIANCES, "fixed")
DISTRIBUTIONS = ("normal", "uniform")
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
# By type: a layer with "Norm" in its name may have a matrix that must not become ones.
NORMALIZATIONS = (
    nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, BatchNorm, LayerNorm,
)  # fmt: skip


class InitializedParameter(NamedTuple):
    """What became of one parameter: the rule, and the variance of its entries where they were drawn."""

    name: str
    rule: str
    variance: float | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.rule}" + ("" if self.variance is None else f", variance {self.variance:.3g}")


class _Blocks(NamedTuple):
    """Matrices that lie one above another in a parameter, and over how many terms each sums, forwards and back."""

    count: int
    inputs: float
    outputs: float


class _Choice(NamedTuple):
    scheme: str
    distribution: str
    gain: float
    variance: float | None
    generator: torch.Generator | None


def weight_variance(scheme: str, inputs: int | float, outputs: int | float, gain: int | float = 1.0) -> float:
    """The variance of a weight in a layer whose outputs sum so many terms, and whose gradients so many.

    >>> weight_variance("glorot", inputs=300, outputs=100)
    0.005
    """
    validate.one_of("scheme", scheme, VARIANCES)
    return gain**2 * VARIANCES[scheme](validate.positive("inputs", inputs), validate.positive("outputs", outputs))


@system("initialize", title="Initial weights for any module", kind="function")
@torch.no_grad()
def initialize(
    model: nn.Module,
    scheme: str = "he",
    *,
    distribution: str = "normal",
    gain: int | float = 1.0,
    variance: int | float | None = None,
    generator: torch.Generator | None = None,
) -> list[InitializedParameter]:
    r"""Draw the weights of every layer of a model anew, and say what was done with each of its parameters.

    $$ w \sim \mathcal N(0, \sigma^2) \text{ or } \mathrm{Unif}[-\sqrt3\sigma, \sqrt3\sigma], \qquad
       \sigma^2 = \mathrm{gain}^2 \cdot \begin{cases} 1/n & \text{lecun} \\ 2/(n+m) & \text{glorot} \\
       2/n & \text{he} \end{cases} $$

    An output of the layer sums $n$ terms, a gradient of its input $m$. With "orthogonal", $W/\mathrm{gain}$ is drawn
    uniformly among the matrices with orthonormal rows or columns; with "fixed", all weights have the given `variance`.

    Gates of a recurrent layer and the three maps of an attention are matrices of their own. Biases become zero, the
    scales of a normalisation one. An embedding's rows are read one at a time, $n = 1$: they have variance
    $\mathrm{gain}^2$ under every scheme but "fixed". Whatever is not known is left as it was, and is told; so is a
    parametrisation that makes other weights of those drawn, or cannot take any. With a generator of the CPU, a model on
    a GPU gets the weights that it would have on the CPU.

    Shapes:
        every parameter keeps its shape, dtype and device

    Claims: init.fixed_variance, init.lecun, init.glorot, init.he, init.orthogonal
    Source: Y. LeCun, L. Bottou, G. Orr and K.-R. Müller, Efficient backprop (1998); X. Glorot and Y. Bengio,
        Understanding the difficulty of training deep feedforward neural networks (2010); K. He, X. Zhang, S. Ren and
        J. Sun, Delving deep into rectifiers (2015); A. Saxe, J. McClelland and S. Ganguli, Exact solutions to the
        nonlinear dynamics of learning in deep linear neural networks (2014).
    Differs: torch.nn.init takes a tensor and does not see groups, strides or transposition of a convolution.

    >>> model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.LayerNorm(256), nn.Linear(256, 10))
    >>> print(*initialize(model, "he"), sep="\n")
    0.weight: he normal, variance 0.00255
    0.bias: zeros
    2.weight: ones
    2.bias: zeros
    3.weight: he normal, variance 0.00781
    3.bias: zeros
    """
    validate.module("model", model)
    if not isinstance(generator, torch.Generator | None):
        told = type(generator).__name__
        raise TypeError(f"generator must be a torch.Generator, got {told}: use torch.Generator().manual_seed(0)")
    choice = _Choice(scheme, distribution, validate.positive("gain", gain), variance, generator)
    _check_choice(choice)
    for name, values in model.named_parameters():
        if is_lazy(values):
            raise ValueError(f"{name} has no shape yet: give the model a first batch before its weights are drawn")
    told, seen = [], set()
    for prefix, module in model.named_modules():
        made = () if not parametrize.is_parametrized(module) else tuple(module.parametrizations)  # type: ignore[arg-type]
        own = () if isinstance(module, parametrize.ParametrizationList) else module.named_parameters(recurse=False)
        for name, values in [*own, *((name, getattr(module, name)) for name in made)]:
            key = (id(module), name) if name in made else id(values)  # tied parameters are drawn once
            if key not in seen:
                seen.add(key)
                rule = _initialize_parameter(module, name, values, choice)
                told.append(InitializedParameter(f"{prefix}.{name}".lstrip("."), *rule))
    return told


def _check_choice(choice: _Choice) -> None:
    validate.one_of("scheme", choice.scheme, SCHEMES)
    validate.one_of("distribution", choice.distribution, DISTRIBUTIONS)
    if choice.scheme == "fixed" and choice.variance is None:
        raise ValueError("scheme 'fixed' needs a variance, such as variance=0.01")
    if choice.variance is not None:
        validate.number("variance", choice.variance, least=0)
        if choice.scheme != "fixed":
            raise ValueError(f"scheme {choice.scheme!r} has a variance of its own: use scheme='fixed' to give one")
        if choice.gain != 1:
            raise ValueError(f"scheme 'fixed' has no gain, got {choice.gain}: use variance=gain**2 * variance")


def _initialize_parameter(module: nn.Module, name: str, values: Tensor, choice: _Choice) -> tuple[str, float | None]:
    """The rule by which one parameter was set, and the variance with which it was drawn."""
    if not values.numel():
        return "empty", None
    blocks, constant = _weight_blocks(module, name, values), _constant_value(module, name)
    made = parametrize.is_parametrized(module, name)
    if made and not all(hasattr(part, "right_inverse") for part in module.parametrizations[name]):  # type: ignore[index]
        return "left as it was: its parametrisation has no right_inverse", None
    fresh = torch.empty_like(values) if made else values.detach()
    told: tuple[str, float | None] = "left as it was", None
    if blocks is None and constant is not None:
        fresh.fill_(constant)
        told = "ones" if constant else "zeros", None
    elif blocks is not None and choice.scheme == "orthogonal" and not isinstance(module, EMBEDDINGS):
        for block in fresh.chunk(blocks.count):
            _draw_values(block, choice, lambda part: nn.init.orthogonal_(part, choice.gain, generator=choice.generator))
        told = "orthogonal", weight_variance("orthogonal", fresh[0].numel(), len(fresh) // blocks.count, choice.gain)
    elif blocks is not None:
        told = _draw_independent(module, fresh, blocks, choice)
    else:
        return told
    if made:
        setattr(module, name, fresh)  # the parametrisation finds what gives it
        off = (getattr(module, name) - fresh).norm() / fresh.norm()
        if not fresh.is_meta and off > math.sqrt(torch.finfo(fresh.dtype).eps):  # or something near it
            return f"{told[0]}, through its parametrisation", None
    return told


def _draw_independent(module: nn.Module, values: Tensor, blocks: _Blocks, choice: _Choice) -> tuple[str, float]:
    variance, rule = choice.variance, f"{choice.scheme} {choice.distribution}"
    if variance is None and isinstance(module, EMBEDDINGS):
        variance = weight_variance("lecun", blocks.inputs, blocks.outputs)
        rule = f"rows of an embedding, {choice.distribution}"
    elif variance is None:
        variance = weight_variance(choice.scheme, blocks.inputs, blocks.outputs)
    deviation = choice.gain * math.sqrt(variance)
    if choice.distribution == "normal":
        _draw_values(values, choice, lambda part: part.normal_(0.0, deviation, generator=choice.generator))
    else:
        width = math.sqrt(3) * deviation
        _draw_values(values, choice, lambda part: part.uniform_(-width, width, generator=choice.generator))
    if isinstance(module, EMBEDDINGS) and module.padding_idx is not None:
        values[module.padding_idx] = 0
    return rule, deviation**2


def _draw_values(values: Tensor, choice: _Choice, fill: Callable[[Tensor], object]) -> None:
    """Where the generator is, and in single precision at least: short numbers would round the tails of the law."""
    if values.is_meta:
        return
    place = values.device if choice.generator is None else choice.generator.device
    dtype = values.dtype if values.dtype in (torch.float32, torch.float64) else torch.float32
    if (place.type, dtype) == (values.device.type, values.dtype):
        fill(values)
    else:
        fresh = torch.empty(values.shape, dtype=dtype, device=place)
        fill(fresh)
        values.copy_(fresh)


def _constant_value(module: nn.Module, name: str) -> float | None:
    """One for the scales of a normalisation, zero for biases; but gates have biases with a meaning, which they keep."""
    if name == "weight" and isinstance(module, NORMALIZATIONS):
        return 1.0
    return 0.0 if "bias" in name and not hasattr(module, "recurrent_weight") else None


def _weight_blocks(module: nn.Module, name: str, values: Tensor) -> _Blocks | None:
    """The matrices of a parameter that multiplies an input, or None."""
    if not values.is_floating_point():
        return None
    if isinstance(module, CONVOLUTIONS + TRANSPOSED) and name == "weight":
        window, steps = math.prod(module.kernel_size), math.prod(module.stride)
        inputs, outputs = (n / module.groups * window for n in (module.in_channels, module.out_channels))
        # Of the places in a window only one in so many steps is there: in an output transposed, else in a gradient.
        across = isinstance(module, TRANSPOSED)
        return _Blocks(1, inputs / steps if across else inputs, outputs if across else outputs / steps)
    if isinstance(module, nn.Linear | nn.Bilinear) and name == "weight":
        return _Blocks(1, values[0].numel(), len(values))
    if isinstance(module, EMBEDDINGS):
        return _Blocks(1, 1, values.shape[1])
    if isinstance(module, nn.MultiheadAttention) and name.endswith("proj_weight"):
        count = 3 if name == "in_proj_weight" else 1
        return _Blocks(count, values.shape[1], len(values) / count)
    hidden = None
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        hidden = len(values) if name.startswith("weight_hr") else module.hidden_size
    elif name in ("input_weight", "recurrent_weight"):
        recurrent = getattr(module, "recurrent_weight", None)  # the gates of our own layers, one above another
        hidden = recurrent.shape[-1] if isinstance(recurrent, Tensor) else None
    if not isinstance(hidden, int) or values.ndim != 2 or len(values) % hidden:
        return None
    return _Blocks(len(values) // hidden, values.shape[1], hidden)
