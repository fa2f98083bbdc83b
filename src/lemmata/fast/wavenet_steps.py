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

from lemmata import validate
from lemmata.fast.compiled_library import load_compiled

__all__ = ["StepWeights", "compiled_steps", "drawn_level", "one_step", "why_no_compiled_steps"]

NUMBERS = {torch.float32: "-DREAL=float", torch.float64: "-DREAL=double"}
LATEST, LARGEST = 1 << 60, 1 << 40  # position and dilation: what C adds and multiplies stays within 64 bits
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

    def __post_init__(self) -> None:
        """C reads where these sizes say, so they must be true."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in given.items():
            _check_tensor(name, value)
        axes = {"embedding": 2, "past": 3, "now": 3, "hidden": 2}
        for name, number in axes.items():
            if given[name].ndim != number or 0 in given[name].shape:
                raise ValueError(f"{name} must have {number} axes, none empty, got shape {tuple(given[name].shape)}")
        (levels, channels), skips, layers = self.embedding.shape, len(self.hidden), len(self.now)
        taps = max(1, self.past.shape[1] // channels)
        wanted = {
            "past": (layers, taps * channels, 2 * channels), "now": (layers, channels, 2 * channels),
            "gate_bias": (layers, 2 * channels), "residual": (layers, channels, channels),
            "residual_bias": (layers, channels), "skip": (layers * channels, skips), "skip_bias": (skips,),
            "hidden": (skips, skips), "hidden_bias": (skips,), "head": (skips, levels), "head_bias": (levels,),
            "dilation": (layers,),
        }  # fmt: skip
        for name, shape in wanted.items():
            if given[name].shape != shape:
                raise ValueError(
                    f"{name} must be {shape} to fit the other tensors, got shape {tuple(given[name].shape)}"
                )
        if self.dilation.dtype != torch.int64:
            raise TypeError(f"dilation must be int64, got {self.dilation.dtype}: use dilation.long()")
        _check_dilation(self.dilation)
        for name, value in given.items():
            if value.device != self.now.device or (name != "dilation" and value.dtype != self.now.dtype):
                wanted, found = (f"{each.dtype} on {each.device}" for each in (self.now, value))
                raise TypeError(f"{name} must be {wanted} as the other weights, got {found}")
        if not self.now.is_floating_point():
            raise TypeError(f"weights must be floating point, got {self.now.dtype}")

    @property
    def taps(self) -> int:
        """Earlier inputs that each filter sees."""
        return self.past.shape[1] // self.now.shape[1]

    @functools.cached_property
    def slots(self) -> Int[Tensor, "layers"]:
        """Inputs that each layer remembers."""
        return self.taps * self.dilation

    @functools.cached_property
    def size(self) -> int:
        """Inputs that all layers remember."""
        return int(self.slots.sum())

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
    _check_state(weights, memory, last, position)
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
    _check_tensor("logits", logits)
    if logits.ndim != 2 or logits.shape[1] == 0 or not logits.is_floating_point():
        raise ValueError(f"logits must be (batch, levels) real numbers, got {logits.dtype} {tuple(logits.shape)}")
    validate.number("temperature", temperature, least=0)
    _check_chance(chance, "(batch,)", len(logits), 1)
    if chance.device != logits.device:
        raise ValueError(f"chance must be on the device of logits, {logits.device}, got {chance.device}")
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
    _check_state(weights, memory, last, position)
    validate.number("temperature", temperature, least=0)
    _check_chance(chance, "(length, batch)", len(last), 2)
    if not (memory.is_contiguous() and last.is_contiguous()):
        raise ValueError("memory and last must be contiguous, as they are written to: use .contiguous()")
    if last.device.type != "cpu" or chance.device.type != "cpu":
        raise ValueError("weights, memory, last and chance must be on the CPU: use .cpu()")
    library, problem = _wavenet_library(last.dtype)
    if library is None:
        raise ValueError(f"there are no compiled steps of {last.dtype} ({problem}): use one_step")
    given = {field.name: getattr(weights, field.name).contiguous() for field in fields(StepWeights)}
    given["dilation"] = weights.slots // weights.taps  # those of which the memory was made, whatever became of them
    samples = torch.empty(chance.shape, dtype=torch.long, device=last.device)  # torch's default may be another
    channels, (skips, levels) = last.shape[1], weights.head.shape
    given |= {"memory": memory, "last": last, "scratch": last.new_empty(4 * channels + 2 * skips + levels)}
    given |= {"chance": chance.contiguous(), "samples": samples}
    task = _Task(
        batch=len(last), layers=len(weights.now), taps=weights.taps, channels=channels, skips=skips, levels=levels,
        temperature=temperature, **{name: tensor.data_ptr() for name, tensor in given.items()},
    )  # fmt: skip
    rows = max(1, AT_ONCE // max(1, len(last)))
    for first in range(0, len(chance), rows):
        ends = (position, first, min(first + rows, len(chance)))
        library.generate(ctypes.byref(task), *map(ctypes.c_int64, ends))
    return samples


def _check_state(weights: StepWeights, memory: Tensor, last: Tensor, position: int) -> None:
    """What a step reads and writes beside the weights, which were checked when they were put together."""
    if not isinstance(weights, StepWeights):
        raise TypeError(f"weights must be StepWeights, got {type(weights).__name__}")
    for name, value in (("memory", memory), ("last", last)):
        _check_tensor(name, value)
        if value.dtype != weights.now.dtype or value.device != weights.now.device:
            wanted, found = (f"{each.dtype} on {each.device}" for each in (weights.now, value))
            raise TypeError(f"{name} must be {wanted} as the weights, got {found}")
        if value.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name} is changed in place and must not require gradients: use torch.no_grad()")
    validate.count("position", position, least=0, most=LATEST)
    channels = weights.now.shape[1]
    if last.ndim != 2 or last.shape[1] != channels:
        raise ValueError(f"last must be (batch, {channels}) to fit the weights, got shape {tuple(last.shape)}")
    if memory.shape != (wanted := (weights.size, len(last), channels)):
        raise ValueError(f"memory must be {wanted} to fit weights and last, got shape {tuple(memory.shape)}")


def _check_dilation(dilation: Tensor) -> None:
    if dilation.device.type == "meta":  # which has no values
        return
    if int(dilation.min()) < 1 or int(dilation.max()) > LARGEST:
        raise ValueError(f"dilation must be numbers from 1 to {LARGEST}, got {dilation.tolist()[:8]}")


def _check_tensor(name: str, value: Tensor) -> None:
    if validate.tensor(name, value).layout is not torch.strided:
        raise TypeError(f"{name} must be dense, got {value.layout}: use {name}.to_dense()")


def _check_chance(chance: Tensor, axes: str, batch: int, ndim: int) -> None:
    _check_tensor("chance", chance)
    if chance.ndim != ndim or chance.shape[-1] != batch:
        raise ValueError(f"chance must be {axes} for a batch of {batch}, got shape {tuple(chance.shape)}")
    if chance.dtype != torch.float64:
        raise TypeError(f"chance must be float64, got {chance.dtype}: use chance.double()")
    # Looking at numbers on another device would make every step wait for it.
    if chance.device.type == "cpu" and chance.numel() and not 0 <= float(chance.min()) <= float(chance.max()) <= 1:
        raise ValueError(f"chance must be from 0 to 1, got {float(chance.min()):g} to {float(chance.max()):g}")


def why_no_compiled_steps(last: Tensor) -> str:
    """Why steps with such numbers, in such a place, are not compiled; empty if they are."""
    validate.tensor("last", last)
    if last.device.type != "cpu":
        return f"no compiled steps on {last.device.type}"
    return _wavenet_library(last.dtype)[1]


class _Task(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batch", "layers", "taps", "channels", "skips", "levels")),
        *((field.name, ctypes.c_void_p) for field in fields(StepWeights)),
        *((name, ctypes.c_void_p) for name in ("memory", "last", "scratch")),
        ("temperature", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("chance", "samples")),
    ]


@functools.cache
def _wavenet_library(dtype: torch.dtype) -> tuple[ctypes.CDLL | None, str]:
    if dtype not in NUMBERS:
        return None, f"no compiled numbers of type {dtype}"
    return load_compiled(Path(__file__).with_suffix(".c"), (NUMBERS[dtype], *MATHEMATICS))
