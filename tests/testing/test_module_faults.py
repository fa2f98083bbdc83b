"""The suite of modules on broken modules: each fault is found by the check that is for it, and by no other."""

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from lemmata.testing import check_module


class Sound(nn.Module):
    """A linear layer as it should be; each fault changes one thing."""

    def __init__(self, inputs=3, outputs=5, device=None, dtype=None):
        super().__init__()
        self.inputs = inputs
        self.weight = nn.Parameter(torch.randn(outputs, inputs, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.randn(outputs, device=device, dtype=dtype))

    def check(self, x):
        if not isinstance(x, Tensor):
            raise TypeError(f"x must be a tensor, got {type(x).__name__}")
        if not x.is_floating_point():
            raise TypeError(f"x must be floating point, got {x.dtype}")
        if x.ndim != 2:
            raise ValueError(f"x must be (batch, inputs), got shape {tuple(x.shape)}")
        if x.shape[-1] != self.inputs:
            raise ValueError(f"x must have {self.inputs} inputs, got {x.shape[-1]}")

    def forward(self, x: Float[Tensor, "batch inputs"]):
        self.check(x)
        return self.change(F.linear(x, self.weight, self.bias), x)

    def change(self, y, x):
        return y


class CallsAreCounted(Sound):
    calls = 0

    def change(self, y, x):
        self.calls += 1
        return y + self.calls


class GivesNoTensor(Sound):
    def change(self, y, x):
        return "y"


class WritesIntoItsInput(Sound):
    def change(self, y, x):
        x.clamp_(-0.1, 0.1)
        return y


class SeedsTheRandomNumbers(Sound):
    def change(self, y, x):
        torch.manual_seed(0)
        return y


class ChangesThreads(Sound):
    def __init__(self, **options):
        super().__init__(**options)
        torch.set_num_threads(torch.get_num_threads() + 1)


class CopiesShareWeights(Sound):
    def __deepcopy__(self, memo):
        twin = type(self)().train(self.training)
        twin.weight, twin.bias = self.weight, self.bias
        return twin


class StateOutsideTheStateDict(Sound):
    def __init__(self, **options):
        super().__init__(**options)
        self.scale = torch.rand(())

    def change(self, y, x):
        return y * self.scale


class NamesItsStateAnew(Sound):
    made = 0

    def __init__(self, device=None, dtype=None):
        super().__init__(device=device, dtype=dtype)
        NamesItsStateAnew.made += 1
        self.register_buffer(f"buffer_{self.made}", torch.zeros(2, device=device, dtype=dtype))


class NeedsContiguousInputs(Sound):
    def change(self, y, x):
        return y + x.view(-1).view(x.shape).sum(-1, keepdim=True)


class MixesTheBatch(Sound):
    def change(self, y, x):
        return y - x.mean()


class LosesTheBatchOfOne(Sound):
    def change(self, y, x):
        return y.squeeze(0)


class NoBatchOfNone(Sound):
    def change(self, y, x):
        return y.reshape(y.shape[0], -1)


class WidensBfloat16(Sound):
    def change(self, y, x):
        return y.float() if y.dtype == torch.bfloat16 else y


class LooksAtItsWeights(Sound):
    def __init__(self, **options):
        super().__init__(**options)
        assert self.weight.norm().item() < 1e9


class TakesNoDevice(Sound):
    def __init__(self):
        super().__init__()


class ForgetsTheDtype(Sound):
    def __init__(self, device=None, dtype=None):
        super().__init__(device=device, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(5, device=device))


class CountsInEvaluation(Sound):
    def __init__(self, device=None, dtype=None):
        super().__init__(device=device, dtype=dtype)
        self.register_buffer("calls", torch.zeros((), device=device, dtype=dtype))

    def change(self, y, x):
        self.calls += 1
        return y


class KeepsItsPartsInTraining(Sound):
    def __init__(self, **options):
        super().__init__(**options)
        self.part = nn.Identity()

    def train(self, mode=True):
        self.training = mode
        return self


class NeedsOneDtype(Sound):
    def change(self, y, x):
        return torch.zeros_like(y, dtype=x.dtype).index_add(0, torch.arange(x.shape[0], device=x.device), y)


class Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class WrongGradient(Sound):
    def change(self, y, x):
        return Doubled.apply(y)


class DetachesTheInput(Sound):
    def change(self, y, x):
        return y + x.detach().sum(-1, keepdim=True)


class IdleParameter(Sound):
    def __init__(self, device=None, dtype=None):
        super().__init__(device=device, dtype=dtype)
        self.idle = nn.Parameter(torch.zeros(2, device=device, dtype=dtype))


class HoldsItsWeight(Sound):
    def __init__(self, **options):
        super().__init__(**options)
        self.held = [self.weight]

    def forward(self, x: Float[Tensor, "batch inputs"]):
        self.check(x)
        return F.linear(x, self.held[0], self.bias)


class AddsInPlace(Sound):
    def change(self, y, x):
        total = torch.zeros(y.shape, dtype=y.dtype, device=y.device)
        total += y
        return total


class BreaksTheGraph(Sound):
    def change(self, y, x):
        torch._dynamo.graph_break()
        return y


class OtherWhenCompiled(Sound):
    def change(self, y, x):
        return 2 * y if torch.compiler.is_dynamo_compiling() else y


class FixesTheBatch(Sound):
    def change(self, y, x):
        return y + 0 * int(x.shape[0])


class Recurrence(Sound):
    """A sequence, step by step."""

    def check(self, x):
        if isinstance(x, Tensor) and x.ndim != 3:
            raise ValueError(f"x must be (batch, time, inputs), got shape {tuple(x.shape)}")
        super().check(x.flatten(0, 1) if isinstance(x, Tensor) else x)

    def forward(self, x: Float[Tensor, "batch time inputs"]):
        self.check(x)
        state = torch.zeros(x.shape[0], 5, dtype=x.dtype, device=x.device)
        for step in x.unbind(1):
            state = torch.tanh(state + F.linear(step, self.weight, self.bias))
        return state


class AnyRank(Sound):
    def check(self, x):
        super().check(x.reshape(-1, x.shape[-1]) if isinstance(x, Tensor) and x.ndim else x)


class UsesTheFirstInputs(Sound):
    def check(self, x):
        super().check(x[:, : self.inputs] if isinstance(x, Tensor) and x.ndim == 2 else x)

    def forward(self, x: Float[Tensor, "batch inputs"]):
        self.check(x)
        return F.linear(x[:, : self.inputs], self.weight, self.bias)


class LeavesDtypesToTorch(Sound):
    def check(self, x):
        super().check(x.float() if isinstance(x, Tensor) else x)


class TakesLists(Sound):
    def forward(self, x: Float[Tensor, "batch inputs"]):
        return super().forward(torch.as_tensor(x))


class DoesNotNameTheArgument(Sound):
    def check(self, x):
        if isinstance(x, Tensor) and x.is_floating_point() and x.ndim == 2 and x.shape[-1] != self.inputs:
            raise ValueError("bad width")
        super().check(x)


class SaysThatItDoesNotVmap(Sound):
    """A sound module. Differs: from nothing, but does not pass `vmap`."""


FAULTS = {
    CallsAreCounted: "call",
    GivesNoTensor: "call",
    WritesIntoItsInput: "untouched",
    SeedsTheRandomNumbers: "global_state",
    ChangesThreads: "global_state",
    CopiesShareWeights: "deepcopy",
    StateOutsideTheStateDict: "state_dict",
    NamesItsStateAnew: "state_dict",
    NeedsContiguousInputs: "strides",
    MixesTheBatch: "batch_of_one",
    LosesTheBatchOfOne: "batch_of_one",
    NoBatchOfNone: "batch_of_none",
    WidensBfloat16: "dtypes",
    LooksAtItsWeights: "meta",
    TakesNoDevice: "factory",
    ForgetsTheDtype: "factory",
    CountsInEvaluation: "modes",
    KeepsItsPartsInTraining: "modes",
    NeedsOneDtype: "autocast",
    WrongGradient: "gradcheck",
    DetachesTheInput: "gradcheck",
    IdleParameter: "used_parameters",
    HoldsItsWeight: "functional",
    AddsInPlace: "vmap",
    BreaksTheGraph: "compile",
    OtherWhenCompiled: "compile",
    FixesTheBatch: "export",
    Recurrence: "export_lengths",
    AnyRank: "wrong_rank",
    UsesTheFirstInputs: "wrong_width",
    DoesNotNameTheArgument: "wrong_width",
    LeavesDtypesToTorch: "wrong_dtype",
    TakesLists: "wrong_type",
    SaysThatItDoesNotVmap: "vmap",
}


@pytest.fixture(autouse=True)
def _same_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def findings(kind):
    x = torch.randn(4, 6, 3) if kind is Recurrence else torch.randn(4, 3)
    return check_module(kind(), x, build=kind, on_fail="report")


def test_each_fault_is_found_by_the_check_that_is_for_it():
    found = {kind.__name__: findings(kind).named("failed") for kind in (Sound, *FAULTS)}
    wanted = {"Sound": []} | {kind.__name__: [check] for kind, check in FAULTS.items()}
    assert found == wanted
