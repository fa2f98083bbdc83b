"""The checks of the conformance suite of modules: calls, dtypes, construction and state, each a few lines."""

import contextlib
import copy
import random
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.testing.findings import Broken, Undecided
from lemmata.testing.findings import told as error_message
from lemmata.testing.module_subject import ROUNDING, Subject, demand_same, moved, off, outputs_of

__all__ = []  # for the suite alone


def call(subject: Subject) -> None:
    outputs = subject.run()
    demand_same(subject.run(), outputs, "in evaluation mode, the second time,", ROUNDING)
    with torch.inference_mode():
        demand_same(subject.run(), outputs, "in inference mode", ROUNDING)


def untouched(subject: Subject) -> None:
    for training in (False, True):
        given = {name: copy.deepcopy(value) for name, value in subject.inputs.items()}
        outputs_of(subject.copied().train(training)(*given.values()))
        for name, x in subject.tensors().items():
            if not torch.equal(given[name].nan_to_num(), x.nan_to_num()):
                raise Broken(f"it writes into {name}")


def strides(subject: Subject) -> None:
    scattered = {name: _scatter_memory(x) for name, x in subject.tensors().items()}
    with torch.no_grad():
        outputs = outputs_of(subject.module(*{**subject.inputs, **scattered}.values()))
    demand_same(outputs, subject.whole(), "with inputs that are not contiguous")


def _scatter_memory(x: Tensor) -> Tensor:
    """The same values in another order in memory, so that `view` cannot join axes."""
    return torch.stack([x, x], -1)[..., 0] if x.ndim < 2 else x.transpose(0, -1).contiguous().transpose(0, -1)


def batch_of_one(subject: Subject) -> None:
    rows = len(next(iter(subject.batched().values())))
    for index in range(min(rows, 3)):
        for number, (one, many) in enumerate(zip(subject.single(index), subject.whole(), strict=True)):
            axis = _batch_axis(one, many)
            when = f"output {number} of row {index} alone has the shape {tuple(one.shape)} and in a batch of {rows}"
            if axis is None:
                raise Broken(f"{when} {tuple(many.shape)}")
            if off(one, many.narrow(axis, index, 1)) > 1e-4:
                raise Broken(f"row {index} alone gives something else than in a batch of {rows}")


def batch_of_none(subject: Subject) -> None:
    with torch.no_grad():
        outputs = subject.run(changed={name: x[:0] for name, x in subject.batched().items()})
    for found, one, many in zip(outputs, subject.single(0), subject.whole(), strict=True):
        wanted = list(many.shape)
        wanted[_batch_axis(one, many) or 0] = 0
        if list(found.shape) != wanted:
            raise Broken(f"a batch of none gives the shape {tuple(found.shape)} instead of {tuple(wanted)}")


def _batch_axis(one: Tensor, many: Tensor) -> int | None:
    if one.ndim != many.ndim:
        return None
    axes = [axis for axis in range(one.ndim) if one.shape[axis] != many.shape[axis]]
    return axes[0] if len(axes) == 1 else None


def dtypes(subject: Subject) -> None:
    if not subject.parameters and not subject.floating():
        raise Undecided("neither parameters nor inputs are floating point")
    with torch.no_grad():
        wide = subject.run(subject.copied(torch.float64), subject.with_dtype(torch.float64))
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            with _torchs_kernels(dtype):
                outputs = subject.run(subject.copied(dtype), subject.with_dtype(dtype))
            for x in outputs:
                if x.is_floating_point() and x.dtype != dtype:
                    raise Broken(f"in {_dtype_name(dtype)} it gives {_dtype_name(x.dtype)}")
            if dtype == torch.float32:
                demand_same(outputs, wide, "in float32, compared with float64,", 1e-3)
            elif [x.shape for x in outputs] != [x.shape for x in wide]:
                raise Broken(f"in {_dtype_name(dtype)} it gives other shapes than in float64")
            elif not all(x.isfinite().all() for x in outputs) and all(x.isfinite().all() for x in wide):
                raise Broken(f"in {_dtype_name(dtype)} it gives NaN or infinity where float64 does not")


@contextlib.contextmanager
def _torchs_kernels(dtype: torch.dtype) -> Iterator[None]:
    """Without oneDNN for bfloat16: some virtual machines announce matrix units for it that oneDNN then cannot use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TF32 acceleration")  # what torch says whenever a switch of oneDNN is set
        with torch.backends.mkldnn.flags(enabled=dtype != torch.bfloat16):
            yield


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def factory(subject: Subject) -> None:
    module, given = subject.built()
    if not [name for name, _ in module.named_parameters() if name not in given]:
        raise Undecided("it has no parameters of its own")
    for options in ({"device": "meta"}, {"device": "cpu", "dtype": torch.float64}):
        try:
            made, given = subject.built(**options)
        except TypeError as error:
            raise Broken(f"it cannot be made with {' and '.join(options)}: {error_message(error)}") from None
        for name, x in (*made.named_parameters(), *made.named_buffers()):
            if name not in given and x.device.type != options["device"]:
                raise Broken(f"made with device={options['device']!r}, it has {name} on {x.device}")
            if name not in given and "dtype" in options and x.is_floating_point() and x.dtype != torch.float64:
                raise Broken(f"made with dtype=torch.float64, it has {name} in {x.dtype}")


def meta(subject: Subject) -> None:
    with torch.device("meta"):
        module, given = subject.built()
    for name, x in module.named_parameters():
        if name not in given and not x.is_meta:
            raise Broken(f"made under torch.device('meta'), it has {name} on {x.device}")
    there = all(x.is_meta for x in (*module.parameters(), *module.buffers()))
    if not there or not all(isinstance(value, Tensor) for value in subject.inputs.values()):
        return  # a tensor or graph that it was given is elsewhere: it cannot be called
    with torch.no_grad():
        outputs = outputs_of(module(*(moved(value, "meta") for value in subject.inputs.values())))
    if [x.shape for x in outputs] != [x.shape for x in subject.whole()]:
        raise Broken(f"on the meta device the shapes are {[tuple(x.shape) for x in outputs]}")


def state_dict(subject: Subject) -> None:
    fresh = subject.built()[0] if subject.build else subject.copied()
    _perturb_state(fresh)
    saved = subject.module.state_dict()
    if odd := [name for name, value in saved.items() if not isinstance(value, Tensor) and "extra_state" not in name]:
        raise Broken(f"its state_dict holds {odd[0]}, which is no tensor")
    try:
        fresh.load_state_dict(saved)
    except RuntimeError as error:
        raise Broken(f"another one does not take its state_dict: {' '.join(str(error).split())}") from None
    with torch.no_grad():
        demand_same(subject.run(fresh), subject.whole(), "loaded from the state_dict", ROUNDING)


def _perturb_state(module: nn.Module) -> None:
    """Other numbers in everything that a state_dict holds, still positive where they were, as a variance."""
    with torch.no_grad():
        for x in module.state_dict().values():
            if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex()):
                x.mul_(1.25).add_(0.125)


def deepcopy(subject: Subject) -> None:
    twin = copy.deepcopy(subject.module)
    with torch.no_grad():
        demand_same(subject.run(twin), subject.whole(), "of a deep copy", ROUNDING)
        _perturb_state(twin)
        demand_same(subject.run(), subject.whole(), "after a deep copy was changed", ROUNDING)


def modes(subject: Subject) -> None:
    module = subject.copied()
    before = {name: x.clone() for name, x in module.state_dict().items() if isinstance(x, Tensor)}
    subject.run(module)
    for name, x in module.state_dict().items():
        if isinstance(x, Tensor) and not torch.equal(x, before[name]):
            raise Broken(f"in evaluation mode a call changes {name}")
    if odd := [name for name, part in module.train().named_modules() if not part.training]:
        raise Broken(f"train() does not reach {odd[0] or 'itself'}")
    subject.run(module)
    if odd := [name for name, part in module.eval().named_modules() if part.training]:
        raise Broken(f"after eval(), {odd[0] or 'it'} is still in training mode")
    demand_same(subject.run(module), subject.run(module), "in evaluation mode, the second time,", ROUNDING)


def autocast(subject: Subject) -> None:
    module = subject.copied()
    with _torchs_kernels(torch.bfloat16), torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, gradients = subject.gradients(module)
    if [x.shape for x in outputs] != [x.shape for x in subject.whole()]:
        raise Broken("under autocast it gives other shapes")
    finite = all(x.isfinite().all() for x in subject.whole())
    if finite and not all(x.isfinite().all() for x in (*outputs, *gradients)):
        raise Broken("under autocast outputs or gradients are NaN or infinite")


def global_state(subject: Subject) -> None:
    module = subject.copied()
    if subject.build is not None:
        with _settings_kept("making it"):
            subject.built()
    before = torch.get_rng_state(), random.getstate()
    with _settings_kept("a call"):
        subject.run(module)
    if not torch.equal(torch.get_rng_state(), before[0]) or random.getstate() != before[1]:
        raise Broken("in evaluation mode a call draws from the global random numbers")
    with _settings_kept("a call in training mode"):
        subject.run(module.train())


@contextlib.contextmanager
def _settings_kept(what: str) -> Iterator[None]:
    """Say what a piece of code changes in torch's settings, and undo it."""
    before = after = _torch_settings()
    try:
        with warnings.catch_warnings():
            yield
            after = _torch_settings()
    finally:
        torch.set_default_dtype(before["the default dtype"])
        torch.set_grad_enabled(before["the grad mode"])
        torch.use_deterministic_algorithms(before["deterministic algorithms"])
        torch.set_float32_matmul_precision(before["the precision of products"])
        if torch.get_num_threads() != before["the number of threads"]:
            torch.set_num_threads(before["the number of threads"])
    if odd := [name for name in before if before[name] != after[name]]:
        raise Broken(f"{what} changes {odd[0]} from {before[odd[0]]} to {after[odd[0]]}")


def _torch_settings() -> dict[str, Any]:
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "the grad mode": torch.is_grad_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the precision of products": torch.get_float32_matmul_precision(),
        "the number of threads": torch.get_num_threads(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "the filters of warnings": list(warnings.filters),
    }
