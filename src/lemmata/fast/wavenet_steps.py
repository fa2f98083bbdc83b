r"""New samples of a WaveNet from what its layers remember: in torch, step by step, and in C, many at a call.

A step reads, for each layer, the earlier inputs that its filter sees from a ring of slots, and puts its own input where
the earliest lay. Nothing here knows modules: weights come as matrices that are multiplied from the right.
"""

import ctypes
import functools
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata.fast.compiled_library import load_compiled

__all__ = ["StepWeights", "compiled_steps", "drawn_level", "one_step", "why_no_compiled_steps"]

NUMBERS = {torch.float32: "-DREAL=float", torch.float64: "-DREAL=double"}
DTYPES = (torch.int64, torch.float64)  # of dilations and of chances
AT_ONCE = 4096  # samples of one call, less than a second of work; Python hears an interrupt between calls
# Some linkers drop a library that is named before it is needed; macOS has these functions in its own.
MATHEMATICS = ("-Wl,--no-as-needed,-lm",) if sys.platform.startswith("linux") else ()


@dataclass(frozen=True)
class StepWeights:
    """The weights of a WaveNet as its steps read them; taps are the earlier inputs of a filter, the earliest first."""

    embedding: Float[Tensor, "levels channels"]
    past: Float[Tensor, "layers taps*channels 2*channels"]
    now: Float[Tensor, "layers channels 2*channels"]
    gate_bias: Float[Tensor, "layers 2*channels"]
    residual: Float[Tensor, "layers channels channels"]
    residual_bias: Float[Tensor, "layers channels"]
    skip: Float[Tensor, "layers*channels skips"]
    skip_bias: Float[Tensor, "skips"]
    hidden: Float[Tensor, "skips skips"]
    hidden_bias: Float[Tensor, "skips"]
    head: Float[Tensor, "skips levels"]
    head_bias: Float[Tensor, "levels"]
    dilation: Int[Tensor, "layers"]

    @property
    def taps(self) -> int:
        """Earlier inputs that each filter sees."""
        return self.past.shape[1] // self.now.shape[1]

    @functools.cached_property
    def slots(self) -> Int[Tensor, "layers"]:
        """Inputs that each layer remembers."""
        return self.taps * self.dilation

    @functools.cached_property
    def first_slot(self) -> Int[Tensor, "layers"]:
        """Where each layer's slots begin in the memory of all."""
        return self.slots.cumsum(0) - self.slots

    @functools.cached_property
    def lags(self) -> Int[Tensor, "layers taps"]:
        """How long ago each tap was."""
        return self.dilation[:, None] * torch.arange(self.taps, 0, -1, device=self.dilation.device)


def one_step(
    weights: StepWeights,
    memory: Float[Tensor, "slots batch channels"],
    last: Float[Tensor, "batch channels"],
    position: int,
) -> Float[Tensor, "batch levels"]:
    r"""The logits of the next sample, after `last`, the embedded sample before it; the memory takes what it must keep.

    What the past gives to all layers is one product, and so are all skips; only what layer passes on to layer is not.

    Claims: conv.wavenet
    """
    first, slots = weights.first_slot, weights.slots
    seen = memory[first[:, None] + (position - weights.lags) % slots[:, None]]  # (layers, taps, batch, channels)
    seen = seen.transpose(1, 2).flatten(2)  # (layers, batch, taps * channels)
    past = torch.baddbmm(weights.gate_bias[:, None], seen, weights.past)  # (layers, batch, 2 * channels)
    inputs, gated, hidden = [], [], last
    for layer, before in enumerate(past):
        inputs.append(hidden)
        values, gate = torch.addmm(before, hidden, weights.now[layer]).chunk(2, dim=1)  # (batch, channels) each
        gated.append(values.tanh() * gate.sigmoid())
        hidden = hidden + torch.addmm(weights.residual_bias[layer], gated[-1], weights.residual[layer])
    memory[first + position % slots] = torch.stack(inputs)
    skips = torch.addmm(weights.skip_bias, torch.cat(gated, dim=1), weights.skip)  # (batch, skips)
    middle = torch.addmm(weights.hidden_bias, skips.relu(), weights.hidden)
    return torch.addmm(weights.head_bias, middle.relu(), weights.head)


def drawn_level(
    logits: Float[Tensor, "batch levels"], temperature: float, chance: Float[Tensor, "batch"]
) -> Int[Tensor, "batch"]:
    """The level whose stretch of the unit interval holds the chance; the likeliest if the temperature is 0."""
    if temperature == 0:
        return logits.argmax(-1)
    below_most = logits.double() - logits.amax(-1, keepdim=True)  # divided later, so that no temperature overflows
    upto = (below_most / temperature).softmax(-1).cumsum(-1)  # (batch, levels)
    return torch.searchsorted(upto, chance[:, None], right=True)[:, 0].clamp(max=logits.shape[-1] - 1)


def compiled_steps(
    weights: StepWeights,
    memory: Float[Tensor, "slots batch channels"],
    last: Float[Tensor, "batch channels"],
    position: int,
    temperature: float,
    chance: Float[Tensor, "length batch"],
) -> Int[Tensor, "length batch"]:
    """As many samples as there are rows of chances; memory and `last` move on as `one_step` and `drawn_level` do.

    Claims: conv.wavenet
    """
    _check_shapes(weights, memory, last, chance)
    given = {field.name: getattr(weights, field.name).contiguous() for field in fields(StepWeights)}
    samples = torch.empty(chance.shape, dtype=torch.long, device=last.device)  # torch's default may be another
    channels, (skips, levels) = last.shape[1], weights.head.shape
    given |= {"memory": memory, "last": last, "scratch": last.new_empty(4 * channels + 2 * skips + levels)}
    given |= {"chance": chance.contiguous(), "samples": samples}
    task = _Task(
        batch=len(last), layers=len(weights.now), taps=weights.taps, channels=channels, skips=skips, levels=levels,
        temperature=temperature, **{name: tensor.data_ptr() for name, tensor in given.items()},
    )  # fmt: skip
    library = _library(last.dtype)[0]
    assert library is not None
    rows = max(1, AT_ONCE // max(1, len(last)))
    for first in range(0, len(chance), rows):
        ends = (position, first, min(first + rows, len(chance)))
        library.generate(ctypes.byref(task), *map(ctypes.c_int64, ends))
    return samples


def _check_shapes(weights: StepWeights, memory: Tensor, last: Tensor, chance: Tensor) -> None:
    """C reads and writes where these numbers say, so they must be true."""
    (levels, channels), skips, layers = weights.embedding.shape, len(weights.hidden), len(weights.now)
    batch, taps, slots = len(last), weights.taps, int(weights.slots.sum())
    wanted = {
        "past": (layers, taps * channels, 2 * channels), "now": (layers, channels, 2 * channels),
        "gate_bias": (layers, 2 * channels), "residual": (layers, channels, channels),
        "residual_bias": (layers, channels), "skip": (layers * channels, skips), "skip_bias": (skips,),
        "hidden": (skips, skips), "hidden_bias": (skips,), "head": (skips, levels), "head_bias": (levels,),
        "memory": (slots, batch, channels), "last": (batch, channels), "chance": (len(chance), batch),
    }  # fmt: skip
    given = {field.name: getattr(weights, field.name) for field in fields(StepWeights)}
    dilation = given.pop("dilation")
    given |= {"memory": memory, "last": last}
    for name, shape in wanted.items():
        value = given.get(name, chance)
        if tuple(value.shape) != shape:
            raise ValueError(f"{name} must be {shape} to fit the other tensors, got shape {tuple(value.shape)}")
    if {value.dtype for value in given.values()} != {last.dtype} or (dilation.dtype, chance.dtype) != DTYPES:
        raise TypeError(f"weights, memory and last must be {last.dtype}, dilation int64 and chance float64")
    if dilation.shape != (layers,) or int(dilation.min()) < 1:
        raise ValueError(f"dilation must be {layers} numbers from 1 on, got {dilation.tolist()}")
    if not (memory.is_contiguous() and last.is_contiguous()):
        raise ValueError("memory and last must be contiguous, as they are written to: use .contiguous()")
    if any(value.device.type != "cpu" for value in (*given.values(), dilation, chance)):
        raise ValueError("weights, memory, last and chance must be on the CPU: use .cpu()")


def why_no_compiled_steps(last: Tensor) -> str:
    """Why steps with such numbers, in such a place, are not compiled; empty if they are."""
    if last.device.type != "cpu":
        return f"no compiled steps on {last.device.type}"
    return _library(last.dtype)[1]


class _Task(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "layers", "taps", "channels", "skips", "levels")),
        *((field.name, ctypes.c_void_p) for field in fields(StepWeights)),
        *((name, ctypes.c_void_p) for name in ("memory", "last", "scratch")),
        ("temperature", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("chance", "samples")),
    ]


@functools.cache
def _library(dtype: torch.dtype) -> tuple[ctypes.CDLL | None, str]:
    if dtype not in NUMBERS:
        return None, f"no compiled numbers of type {dtype}"
    return load_compiled(Path(__file__).with_suffix(".c"), (NUMBERS[dtype], *MATHEMATICS))
