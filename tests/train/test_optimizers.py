"""Optimisers by name: all that are marked, found without a table, given what they take, and resumed to the bit."""

import sys
import textwrap
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lemmata.catalog import SystemEntry, load, optimizers
from lemmata.optim import AdamW, GradientDescent, HeavyBall, RMSprop
from lemmata.train import Options, Watcher, fit
from lemmata.train import optimizers as made
from lemmata.train.options import OPTIMIZERS

X = torch.randn(24, 3, generator=torch.Generator().manual_seed(1))
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]]) + 1
CHOSEN = {"epochs": 4, "batch_size": 8, "device": "cpu"}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))


def weights(run):
    return torch.cat([p.detach().flatten() for p in run.system.parameters()])


def built(name, **words):
    return made.Rates(network(), Options(optimizer=name, **words)).optimizer


def test_the_names_are_those_that_are_marked():
    marked = {id: entry.name for id, entry in load().systems.items() if entry.kind == "optimizer"}
    assert {id: entry.name for id, entry in optimizers().items()} == marked
    assert {"sgd", "adam", "adamw", "heavy_ball"} <= set(marked)


def test_a_file_added_to_a_chapter_is_selectable_at_once(tmp_path):
    chapter = tmp_path / "package" / "optim"
    chapter.mkdir(parents=True)
    (chapter / "__init__.py").touch()
    (chapter / "own.py").write_text(
        textwrap.dedent("""
            @system("own", title="My own", kind="optimizer")
            class Own: ...

            @system("other", title="No optimiser", kind="module")
            class Other: ...
        """)
    )
    (chapter / "unmarked.py").write_text('words = {"kind": "optimizer"}')
    found = optimizers(tmp_path / "package")
    assert [(id, entry.module) for id, entry in found.items()] == [("own", "package.optim.own")]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser_learns_and_is_resumed_to_the_bit(name, tmp_path):
    class StopAfter(Watcher):
        def stepped(self, step, epoch, numbers):
            if step == 5:
                raise KeyboardInterrupt

    def line():  # where every optimiser goes down, those that look for any stationary point too
        torch.manual_seed(0)
        return nn.Linear(3, 1)

    whole = fit(line(), (X, Y), optimizer=name, lr=0.01, **CHOSEN)
    losses = whole.history["loss"]
    assert losses[-1] < losses[0]
    with pytest.raises(KeyboardInterrupt):
        fit(line(), (X, Y), optimizer=name, lr=0.01, save=1, out=tmp_path, watchers=[StopAfter()], **CHOSEN)
    cut = fit(line(), (X, Y), optimizer=name, lr=0.01, save=1, out=tmp_path, resume=True, **CHOSEN)
    assert torch.equal(weights(cut), weights(whole))


@pytest.mark.parametrize(
    ("name", "words", "kind", "expected"),
    [
        ("sgd", {"lr": 0.2}, GradientDescent, {"lr": 0.2, "momentum": 0.9, "fused": True, "weight_decay": 0.0}),
        ("sgd", {"momentum": 0.0}, GradientDescent, {"momentum": 0.0}),
        ("heavy_ball", {"momentum": 0.5, "weight_decay": 0.1}, HeavyBall, {"momentum": 0.5, "weight_decay": 0.1}),
        ("rmsprop", {}, RMSprop, {"momentum": 0.0}),
        ("adamw", {}, AdamW, {"weight_decay": 0.0, "fused": True, "lr": 1e-3}),
    ],
)
def test_an_optimiser_is_given_the_options_that_it_takes(name, words, kind, expected):
    optimizer = built(name, **words)
    assert type(optimizer) is kind
    assert {key: optimizer.param_groups[0][key] for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("adamw", {"momentum": 0.5}, "momentum is not known to adamw: leave it out, or set it to None"),
        ("sam", {"momentum": 0.5}, "momentum is not known to sam: leave it out, or set it to None"),
        ("newton_cg", {"weight_decay": 0.1}, "weight_decay is not known to newton_cg: leave it out, or set it to 0.0"),
        ("newton", {"clip": 1.0}, "clip is not known to newton: leave it out, or set it to None"),
        ("entropy_sgd", {"weight_decay": 0.1}, "weight_decay is not known to entropy_sgd"),
    ],
)
def test_an_option_that_the_optimiser_does_not_take_is_refused(name, words, told):
    with pytest.raises(ValueError, match=told):
        built(name, **words)
    built(name)


def test_complex_parameters_are_stepped_without_a_kernel():
    model = nn.Module()
    model.weight = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    assert made.Rates(model, Options()).optimizer.param_groups[0]["fused"] is False


class Needing(GradientDescent):
    def __init__(self, params, curvature, lr=0.1):
        super().__init__(params, lr)


class Whole(GradientDescent):
    def __init__(self, params: nn.Module | list, **options):
        self.model = params
        super().__init__(params.parameters(), **options)


@pytest.fixture
def own(monkeypatch):
    """Other optimisers than those of the package, under the name sgd."""

    def choose(kind):
        monkeypatch.setitem(sys.modules, "own_optimizers", SimpleNamespace(**{kind.__name__: kind}))
        entry = SystemEntry("sgd", "", "optimizer", "optim", "own_optimizers", kind.__name__, None, 1, "")
        monkeypatch.setattr(made, "optimizers", lambda: {"sgd": entry})
        return built("sgd", lr=0.3)

    return choose


def test_what_cannot_be_made_by_options_alone_is_refused(own):
    told = "optimizer 'sgd' needs curvature too: make one of Needing, and give that"
    with pytest.raises(ValueError, match=told):
        own(Needing)


def test_an_optimiser_that_sorts_the_parameters_of_a_model_is_given_the_model(own):
    optimizer = own(Whole)
    assert isinstance(optimizer.model, nn.Sequential)
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]) == (0.3, 0.0)
