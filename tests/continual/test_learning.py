"""The loop of tasks: what it measures, the options that it refuses, and that a stopped run goes on to the same bits."""

import functools

import pytest
import torch
from tests.continual.small import network, stream
from torch import nn

from lemmata.continual import (
    EWC,
    ContinualLearner,
    FunctionAnchor,
    GenerativeReplay,
    GradientProjection,
    HeterogeneousDropout,
    MaskedMLP,
    Rehearsal,
    Strategy,
    Task,
    TaskMasks,
    TaskStream,
    average_accuracy,
    learn,
)
from lemmata.data.examples import Examples
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA
from lemmata.train import Watcher
from lemmata.train.loop import fit
from lemmata.train.options import Options

replay = functools.partial(
    GenerativeReplay, make=lambda: ProbabilisticPCA(6, 2), train=lambda density, data: density.fit(data.x)
)


def dropping():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), HeterogeneousDropout(16), nn.Linear(16, 3))


def masked():
    torch.manual_seed(0)
    return MaskedMLP(6, 3, (9,), tasks=3)


STRATEGIES = {
    "plain": (network, Strategy),
    "ewc": (network, EWC),
    "ewc, one spring": (network, functools.partial(EWC, spring_decay=0.5, labels="sampled")),
    "rehearsal": (network, functools.partial(Rehearsal, size=10)),
    "replay": (network, replay),
    "anchor": (network, functools.partial(FunctionAnchor, size=10)),
    "projection": (network, functools.partial(GradientProjection, energy=0.7)),
    "masks": (masked, TaskMasks),
    "dropout": (dropping, Rehearsal),
}


class StopAfter(Watcher):
    def __init__(self, step):
        self.last = step

    def stepped(self, step, epoch, numbers):
        if step >= self.last:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_stopped_run_goes_on_to_the_same_bits(name, tmp_path):
    make, strategy = STRATEGIES[name]
    tasks = stream(scenario="task" if name == "masks" else "domain")
    options = Options(epochs=2, batch_size=16, lr=0.01, save=3, device="cpu")  # 4 updates of each task
    model = make()
    whole = learn(model, tasks, strategy(model), options=options)
    model = make()
    learner = ContinualLearner(strategy(model), tasks, options)
    words = {"learner": learner, "test": learner.rows[:1], "metric": "accuracy", "largest": True, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        fit(model, learner.rows, options=learner.whole, out=tmp_path, watchers=[StopAfter(7)], **words)
    model = make()
    resumed = learn(model, tasks, strategy(model), options=options, out=tmp_path, resume=True)
    assert torch.equal(resumed.accuracy_matrix, whole.accuracy_matrix)
    for part, other in zip(model.state_dict().values(), whole.model.state_dict().values(), strict=True):
        assert torch.equal(part, other)


def test_rows_of_the_matrix_are_moments_and_its_measures_are_those_of_the_chapter():
    tasks, model = stream(), network()
    with torch.no_grad():
        before = [float((model(task.test.x).argmax(1) == task.test.y).double().mean()) for task in tasks]
    learned = learn(model, tasks, epochs=3, batch_size=8, lr=0.02)
    with torch.no_grad():
        after = [float((model(task.test.x).argmax(1) == task.test.y).double().mean()) for task in tasks]
    assert learned.accuracy_matrix[0].tolist() == before
    assert learned.accuracy_matrix[-1].tolist() == after
    assert learned.accuracy == learned.measures["average_accuracy"] == average_accuracy(learned.accuracy_matrix)
    assert set(learned.measures) == {"average_accuracy", "forgetting", "backward_transfer", "forward_transfer"}
    assert len(learned.history["loss"]) == 9


def test_tasks_of_different_sizes_have_as_many_updates_and_their_own_examples_alone():
    tasks = stream(tasks=2)
    short = type(tasks)((tasks[0], type(tasks[1])("short", tasks[1].train[:5], tasks[1].test, (0, 1, 2))), "domain", 3)
    seen = []

    class Watching(Strategy):
        def loss(self, batch):
            seen.append((self.task, batch.x.clone()))
            return super().loss(batch)

    model = network()
    learn(model, short, Watching(model), epochs=2, batch_size=8)
    assert [task for task, _ in seen] == [0] * 8 + [1] * 8
    for task, x in seen:
        assert bool((x[:, None] == short[task].train.x).all(2).any(1).all())


def test_where_the_task_is_told_only_its_classes_are_answered():
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    parts = [Examples(x=x, y=first + (x[:, 0] > 0).long()) for first in (0, 2)]  # the same inputs, other classes
    tasks = [Task(f"from {k}", part, part, (2 * k, 2 * k + 1)) for k, part in enumerate(parts)]
    found = {}
    for scenario in ("task", "class"):
        model = network(classes=4)
        found[scenario] = learn(model, TaskStream(tuple(tasks), scenario, 4), epochs=15, batch_size=8, lr=0.02)
    assert found["task"].accuracy > 0.9
    assert found["class"].accuracy_matrix[-1].tolist() == [0.0, pytest.approx(1.0, abs=0.1)]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: learn(network(), stream(), steps=5),
            ValueError,
            "steps must be left out: give the epochs of each task",
        ),
        (lambda: learn(network(), stream(), Strategy(network())), ValueError, "strategy must be made of the model"),
        (lambda: learn(network(classes=4), stream(), epochs=1), ValueError, "the model must have 3 outputs, got 4"),
        (lambda: learn(network(), stream(), epochs=0), ValueError, "epochs must be >= 1, got 0"),
        (lambda: learn(network(), stream(), speed=3), TypeError, "speed"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()
