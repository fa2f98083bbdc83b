"""The suite of modules on torch's own, its report, its words for what a module does not promise, and bad input."""

from functools import partial

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata.marks import system
from lemmata.testing import ModuleError, check_module
from lemmata.testing.module import CHECKS, disclaimed
from lemmata.testing.module_example import example_of
from lemmata.testing.module_subject import Subject

REFUSALS = ("wrong_rank", "wrong_width", "wrong_dtype", "wrong_type")  # torch's own are refused in its words
COSTLY = ("compile", "export", "export_lengths")
# Each with the shape of its input, the axes of it, and what torch itself cannot do with it everywhere.
TORCH = {
    partial(nn.Linear, 3, 5): ((4, 3), {}, ()),
    partial(nn.Conv2d, 3, 5, 3): ((4, 3, 8, 8), {}, ()),
    partial(nn.BatchNorm1d, 3): ((4, 3), {}, ()),
    partial(nn.LSTM, 3, 5, batch_first=True): ((4, 6, 3), {}, ("vmap", "compile", "autocast")),
    partial(nn.TransformerEncoderLayer, 8, 2, 16, batch_first=True): (
        (4, 6, 8),
        {"src": "batch time width"},
        ("vmap",),
    ),
}


@pytest.mark.filterwarnings("ignore:The tensor attributes")  # of the LSTM, exported
def test_modules_of_torch_pass_but_for_their_words():
    fallen = {}
    for build, (shape, axes, unable) in TORCH.items():
        skip = (*REFUSALS, *unable)
        report = check_module(build(), torch.randn(shape), build=build, axes=axes, skip=skip, on_fail="report")
        fallen[build.func.__name__] = report.named("failed")
    assert not any(fallen.values()), fallen


def quick(module, inputs, **options):
    return check_module(module, inputs, skip=[*COSTLY, *REFUSALS], **options)


class Doubled(nn.Module):
    """Twice what it gets.

    Source: nobody.  Differs: from others in nothing. It does not pass `vmap`, `export` and
    `compile`, since it looks at values; and does not pass `strides`.
    """

    def forward(self, x: Float[Tensor, "batch time"] | None = None):
        return {"twice": 2 * x, "shape": x.shape}


class Unsaid(nn.Module):
    def forward(self, x):
        return 2 * x


def test_what_a_docstring_does_not_promise():
    assert disclaimed(Doubled) == ("vmap", "export", "compile", "strides")
    assert disclaimed(Unsaid) == disclaimed(nn.Linear) == ()


def test_a_promise_that_is_kept_must_not_be_denied():
    report = quick(Doubled(), torch.randn(2, 3), on_fail="report")
    assert report.named("failed") == ["strides", "vmap"]
    assert "delete the words" in str(report)
    assert quick(Doubled(), torch.randn(2, 3), differs=[]).passed


def test_a_promise_that_is_denied_and_broken_is_skipped_with_its_reason():
    class Odd(nn.Module):
        """Differs: does not pass `untouched`."""

        def forward(self, x):
            return x.mul_(2)

    report = check_module(Odd(), torch.randn(2, 3), skip=set(CHECKS) - {"call", "untouched"})
    assert [tuple(finding) for finding in report.findings] == [
        ("call", "passed", ""),
        ("untouched", "skipped", "as it says of itself: it writes into x"),
    ]


def test_failures_are_raised_with_their_reasons():
    with pytest.raises(
        ModuleError, match=r"(?s)Unsaid failed 1 of 24 checks\n- wrong_type: x with a list is not"
    ) as found:
        check_module(Unsaid(), torch.randn(2, 3))
    assert found.value.report.named("failed") == ["wrong_type"]


def test_the_module_and_the_random_numbers_stay_as_they_were():
    module, x = nn.BatchNorm1d(3), torch.randn(4, 3)
    state, before = torch.get_rng_state(), {name: value.clone() for name, value in module.state_dict().items()}
    quick(module, x)
    assert module.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_axes_come_from_annotations_or_are_given():
    x = torch.randn(2, 3)
    assert Subject.of(Doubled(), x, None, None, "eager").axes == {"x": ("batch", "time")}
    assert Subject.of(Unsaid(), x, None, None, "eager").axes == {}
    assert Subject.of(Unsaid(), x, None, {"x": "nodes features"}, "eager").axes == {"x": ("nodes", "features")}


@pytest.mark.parametrize(
    ("axes", "free"),
    [
        ("batch time inputs", {0: "batch", 1: "time"}),
        ("*batch inputs", {0: "batch", 1: "axis_1"}),
        ("batch channels *rest", {0: "batch", 2: "axis_2"}),
        ("...", {0: "batch", 1: "axis_1", 2: "axis_2"}),
        ("nodes inputs 2", {0: "nodes"}),
    ],
)
def test_the_axes_of_any_size(axes, free):
    subject = Subject.of(Unsaid(), torch.randn(2, 3, 4), None, {"x": axes}, "eager")
    assert subject.free_axes("x") == free


@system(
    "pair", title="Pair", kind="module", example="Pair(nn.Linear(2 + 1, 4), scale=-0.5)(torch.randn(3, 3), [1, 'a'])"
)
class Pair(nn.Module):
    def __init__(self, inner, scale):
        super().__init__()
        self.inner, self.scale = inner, scale

    def forward(self, x, rest):
        return self.scale * self.inner(x)


def test_an_example_is_read_as_one_call():
    build, (x, rest) = example_of(Pair)
    assert build.func is Pair
    assert build.keywords == {"scale": -0.5}
    assert (x.shape, rest) == ((3, 3), [1, "a"])
    assert torch.equal(x, example_of(Pair).inputs[0])
    assert check_module(Pair, skip=[*COSTLY, *REFUSALS]).passed


@pytest.mark.parametrize("example", ["Pair(1)", "3", "Pair(1)(x=2)", "pair"])
def test_an_example_that_is_no_call_is_refused(example):
    Wrong = system("wrong", title="Wrong", kind="module", example=example)(type("Wrong", (Pair,), {}))
    with pytest.raises(ValueError, match=r"the example of Wrong must be a call such as Net\(3\)\(x\)"):
        check_module(Wrong)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((torch.relu, torch.ones(2, 3)), {}, TypeError, "module must be an nn.Module, got builtin"),
        ((nn.Linear, torch.ones(2, 3)), {}, TypeError, "module must be a module, got the class Linear: give one"),
        ((nn.Linear,), {}, ValueError, "Linear has no example: give a module and inputs, or mark it @system"),
        ((nn.ReLU(), 3.0), {}, TypeError, "inputs must be a tensor, or a tuple of the arguments of forward"),
        ((nn.ReLU(), (torch.ones(2), 2)), {}, ValueError, "forward takes 1 inputs, got 2"),
        ((nn.ReLU(), torch.ones(2)), {"axes": {"y": "batch"}}, ValueError, "axes must name inputs among input, got y"),
        ((nn.ReLU(), torch.ones(2)), {"build": 3}, TypeError, "build must be a class or function"),
        ((nn.ReLU(), torch.ones(2)), {"skip": ["vmaps"]}, ValueError, "skip must name checks among call, untouched"),
        ((nn.ReLU(), torch.ones(2)), {"differs": ["vmaps"]}, ValueError, "differs must name checks among call"),
        ((nn.ReLU(), torch.ones(2)), {"on_fail": "tell"}, ValueError, "on_fail must be 'raise' or 'report'"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        check_module(*arguments, **options)
