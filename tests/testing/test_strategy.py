"""The suite passes every strategy that is shipped, and fails each mistake by the check that it breaks."""

import functools
import importlib

import pytest
import torch
from torch.nn import functional

from lemmata import catalog
from lemmata.continual import (
    EWC,
    FunctionAnchor,
    GenerativeReplay,
    GradientProjection,
    MaskedMLP,
    Rehearsal,
    Strategy,
    TaskMasks,
    WinnerTakeAll,
)
from lemmata.continual.heterogeneous_dropout import HeterogeneousDropout
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA
from lemmata.testing import StrategyError, check_strategy

replay = functools.partial(
    GenerativeReplay,
    make=lambda: ProbabilisticPCA(6, 2, dtype=torch.float64),
    train=lambda density, data: density.fit(data.x),
)
masked = lambda inputs, outputs: MaskedMLP(inputs, outputs, (9,), tasks=3)  # noqa: E731
SHIPPED = {
    Strategy: {"strategy": Strategy},
    EWC: {"strategy": EWC},
    Rehearsal: {"strategy": functools.partial(Rehearsal, size=10)},
    GenerativeReplay: {"strategy": replay},
    GradientProjection: {"strategy": functools.partial(GradientProjection, energy=0.7)},
    FunctionAnchor: {"strategy": functools.partial(FunctionAnchor, size=10)},
    TaskMasks: {"strategy": TaskMasks, "model": masked},
}


def shipped():
    """Every class of the package that is marked as a strategy."""
    entries = [entry for entry in catalog.load().systems.values() if entry.kind == "strategy"]
    return [getattr(importlib.import_module(entry.module), entry.name) for entry in entries]


@pytest.mark.parametrize("kind", shipped(), ids=lambda kind: kind.__name__)
def test_every_strategy_of_the_package_passes_every_check(kind):
    report = check_strategy(**SHIPPED[kind])
    assert len(report.named("passed")) == len(report.findings) == 8
    assert report.subject == kind.__name__


def test_all_that_is_shipped_was_found():
    assert set(shipped()) == set(SHIPPED)


def test_one_spring_for_all_tasks_and_layers_that_count_pass_as_well():
    def network(inputs, outputs):
        layers = torch.nn.Linear(inputs, 12), WinnerTakeAll(5), HeterogeneousDropout(12), torch.nn.Linear(12, outputs)
        return torch.nn.Sequential(*layers)

    check_strategy(functools.partial(EWC, spring_decay=0.5), model=network)


# --- Mistakes ---


class OtherModel(Strategy):
    def __init__(self, model):
        super().__init__(torch.nn.Linear(6, 6).double())


class NoHooks:
    def __init__(self, model):
        self.model = model


class TuplesInState(Strategy):
    def state(self):
        return {"kept": (1, 2)}


class NormalisesInPlace(Strategy):
    def after_task(self, data):
        data.x.sub_(data.x.mean(0))


class StaysInEvaluation(Strategy):
    def after_task(self, data):
        self.model.eval()


class LeavesHooks(Strategy):
    def after_task(self, data):
        self.model.register_forward_hook(lambda *_: None)


class LogOfZero(FunctionAnchor):
    """The divergence of logits that are minus infinity, without care for 0 log 0."""

    def __init__(self, model):
        super().__init__(model, divergence=lambda u, v: (u.softmax(1) * (u.log_softmax(1) - v.log_softmax(1))).sum(1))


class SpringsFromTheStart(Strategy):
    def loss(self, batch):
        return super().loss(batch) + sum(part.square().sum() for part in self.model.parameters())


class KeepsBesideItsState(Rehearsal):
    def state(self):
        return {"buffers": []}


class ForgetsTheSecondTask(EWC):
    def state(self):
        return {"springs": super().state()["springs"][:1]}


class LooksBack(Strategy):
    """Trains on the whole stream up to now: nothing is kept, and all is seen."""

    def loss(self, batch):
        old = [
            functional.cross_entropy(self.logits(task.train.x, k), task.train.y)
            for k, task in enumerate(self.stream.tasks[: self.task])
        ]
        return torch.stack([super().loss(batch), *old]).mean()


MISTAKES = {
    OtherModel: "interface",
    NoHooks: "interface",
    TuplesInState: "plain_state",
    NormalisesInPlace: "untouched",
    StaysInEvaluation: "as_found",
    LeavesHooks: "as_found",
    LogOfZero: "finite",
    SpringsFromTheStart: "first_task",
    KeepsBesideItsState: "resume",
    ForgetsTheSecondTask: "resume",
    LooksBack: "old_data",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda kind: kind.__name__)
def test_what_is_broken_fails_the_check_that_it_breaks(mistake):
    report = check_strategy(mistake, on_fail="report")
    assert report.named("failed")[0] == MISTAKES[mistake]
    assert len(report.named("failed")) == 1


def test_a_failure_is_raised_and_global_randomness_stays():
    before = torch.get_rng_state()
    with pytest.raises(StrategyError, match="it looks at examples of earlier tasks in the stream"):
        check_strategy(LooksBack)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"strategy": 3}, TypeError, "strategy must be what makes one, got int"),
        ({"strategy": Strategy, "model": torch.nn.Linear(2, 2).weight}, TypeError, "model must be what makes one"),
        ({"strategy": Strategy, "skip": ["bits"]}, ValueError, "skip must name checks among interface"),
        ({"strategy": Strategy, "on_fail": "ignore"}, ValueError, "on_fail must be"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(words, error, message):
    with pytest.raises(error, match=message):
        check_strategy(**words)
