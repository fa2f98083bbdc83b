"""A model in the form that every probe can ask: outputs, loss, task, time."""

import math
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit import subject as subjects
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.sample import Sample, as_sample
from lemmata.audit.subject import Subject

X, Y = torch.randn(50, 6), torch.arange(50) % 3


class Answers(nn.Module):
    """A linear layer whose answer is wrapped."""

    def __init__(self, wrap, outputs=3):
        super().__init__()
        self.layer, self.wrap = nn.Linear(6, outputs), wrap

    def forward(self, x):
        return self.wrap(self.layer(x))


def subject(model=None, targets=Y, **more):
    return Subject(model or nn.Linear(6, 3), Sample({"x": X}, targets), **more)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda y: y,
        lambda y: SimpleNamespace(loss=None, logits=y),
        lambda y: OrderedDict(hidden=y + 1, logits=y),
        lambda y: {"scores": y},
        lambda y: {"hidden": y + 1, "prediction": y},
        lambda y: {"hidden": y.long(), "answer": y},
        lambda y: (y, "state"),
    ],
)
def test_the_logits_are_found_in_what_the_model_returns(wrap):
    model = Answers(wrap)
    assert torch.allclose(subject(model).outputs(Sample({"x": X}, Y)), model.layer(X))


@pytest.mark.parametrize(
    ("answer", "told"), [(lambda y: None, "NoneType"), (lambda y: y.argmax(1), "a tensor of torch.int64")]
)
def test_what_is_no_tensor_of_numbers_is_told_with_the_fix(answer, told):
    with pytest.raises(TypeError, match=r"^the model must return a tensor of real numbers or have \.logits, got ") as e:
        subject(Answers(answer))
    assert told in str(e.value)
    assert "give forward=lambda model, batch: ..., which returns the logits" in str(e.value)


def test_of_several_outputs_one_must_be_called_so():
    with pytest.raises(TypeError, match="the model returns hidden, answer, and none of them is called logits") as e:
        subject(Answers(lambda y: {"hidden": y + 1, "answer": y}))
    assert 'forward=lambda model, batch: model(batch["x"])["..."]' in str(e.value)


@pytest.mark.parametrize(
    ("outputs", "targets", "loss", "task"),
    [
        (3, Y, None, "classes"),
        (3, functional.one_hot(Y).float(), "cross_entropy", "classes"),
        (1, Y.clamp(max=1), None, "binary"),
        (1, Y.clamp(max=1).float(), "bce", "binary"),
        (1, torch.randn(50), None, "numbers"),
        (1, torch.randn(50, 1), None, "numbers"),
        (4, torch.randn(50, 4), None, "numbers"),
        (1, Y, "mse", "numbers"),
        (3, None, None, ""),
    ],
)
def test_the_task_follows_from_outputs_targets_and_loss(outputs, targets, loss, task):
    found = subject(nn.Linear(6, outputs), targets, loss=loss)
    assert found.task == task
    if targets is not None:
        assert math.isfinite(found.loss(found.outputs(found.train), targets))


def test_labels_that_are_left_out_do_not_count():
    found = subject()
    assert found.counted(torch.tensor([-100, -1, 0, 2, 3])).tolist() == [False, False, True, True, False]
    numbers = subject(nn.Linear(6, 1), torch.randn(50))
    assert numbers.counted(torch.tensor([-5.0, 7.0])).all()


def test_names_are_those_of_the_owner():
    assert Subject.plain("model.body.0") == "body.0"
    assert Subject.plain("model.") == "the model"


def test_a_cross_entropy_of_half_precision_is_had_in_single():
    found = subject(nn.Linear(6, 3).half())
    outputs = found.outputs(found.train)
    wanted = functional.cross_entropy(outputs.float(), Y)
    assert outputs.dtype == torch.float16
    assert found.loss(outputs, Y).dtype == torch.float32
    assert torch.equal(found.loss(outputs, Y), wanted)
    double = subject(nn.Linear(6, 3).double())
    assert double.loss(double.outputs(double.train), Y).dtype == torch.float64


def test_losses_never_broadcast():
    model, y = nn.Linear(6, 1), torch.randn(50)
    found = subject(model, y)
    assert torch.allclose(found.loss(model(X), y), (model(X).squeeze(1) - y).square().mean())


@pytest.mark.parametrize(
    ("outputs", "targets", "loss", "said"),
    [
        (4, torch.randn(50, 3), None, "cannot compare outputs (batch, 4) with targets (batch, 3) of float32"),
        (4, torch.randn(50), None, "cannot compare outputs (batch, 4) with targets (batch) of float32"),
        (3, Y, "mse", "with targets (batch) of int64 by mse: class labels want loss='cross_entropy'"),
        (3, functional.one_hot(Y), "cross_entropy", "give one-hot targets as real numbers, y.float(), or classes"),
        (3, Y, "hinge", "loss must be one of cross_entropy, nll, bce, mse, l1, huber or a function, got 'hinge'"),
    ],
)
def test_what_cannot_be_compared_is_told(outputs, targets, loss, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the words follow
        subject(nn.Linear(6, outputs), targets, loss=loss)
    assert said in str(error.value)


def test_classes_may_stand_last_as_in_language_models():
    tokens = torch.randint(11, (20, 5))
    found = Subject(nn.Embedding(11, 11), Sample({"x": tokens}, tokens))
    assert (found.task, found.classes) == ("classes", 11)
    assert found.outputs(found.train).shape == (20, 11, 5)
    assert math.isfinite(found.loss(found.outputs(found.train), tokens))


@pytest.mark.parametrize("error", [RuntimeError, KeyError, AttributeError, ZeroDivisionError])
def test_what_the_model_raises_is_one_sentence_with_the_shapes(error):
    def raises(y):
        raise error("boom\nand more")

    with pytest.raises(ValueError, match=r"^the model cannot take a batch of x \(2, 6\) float32: \w+Error: ") as e:
        subject(Answers(raises))
    assert "\n" not in str(e.value)


def test_bytes_are_told_with_the_fix():
    with pytest.raises(ValueError, match=r"bytes must be given as real numbers: x / 255$"):
        Subject(nn.Linear(6, 3), Sample({"x": X.byte()}, Y))


def test_a_model_that_takes_all_examples_at_once_is_told_how():
    class Nodes(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.neighbours = nn.Linear(6, 3), torch.eye(50)

        def forward(self, x):
            return self.neighbours @ self.layer(x)

    model = Nodes()
    with pytest.raises(ValueError, match=r"takes no part of the data, such as some nodes of a graph: give .*\[None\]$"):
        subject(model)
    one = Sample({"x": X[None]}, Y[None])
    found = Subject(model, one, forward=lambda model, batch: model(batch["x"][0])[None])
    assert (found.task, found.classes) == ("classes", 3)


def test_a_loss_that_broadcasts_does_not_speak_for_itself(recwarn):
    found = subject(nn.Linear(6, 1), torch.randn(50), loss=nn.MSELoss())
    found.loss(found.outputs(found.train), found.train.targets)
    assert not recwarn.list


def test_one_output_an_example():
    with pytest.raises(ValueError, match=r"must give one output an example, got shape \(3,\) for 2 examples"):
        subject(Answers(lambda y: y.mean(0)))


def test_weights_must_be_numbers():
    model = nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 3))
    with torch.no_grad():
        model[0].bias[1], model[1].weight[0, 0] = torch.nan, torch.inf
    with pytest.raises(ValueError, match=r"found NaN or infinity in 0\.bias and 1 more: load them again"):
        subject(model)
    with pytest.raises(ValueError, match="meta device"):
        subject(nn.Linear(6, 3, device="meta"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_examples_come_to_the_dtype_of_the_model(dtype):
    found = subject(nn.Linear(6, 3).to(dtype))
    assert found.train.x.dtype == dtype
    loss = found.loss(found.outputs(found.train), Y)
    assert math.isfinite(loss)
    assert loss.dtype in (torch.float32, dtype)


def test_several_inputs_and_an_adapter():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, left, right):
            return self.layer(left - right)

    model = Two()
    wanted = model(X, 2 * X)
    by_place = Subject(model, as_sample((X, 2 * X, Y)))
    by_name = Subject(model, as_sample({"right": 2 * X, "left": X, "label": Y}))
    adapted = Subject(
        model, as_sample({"a": X, "b": 2 * X, "y": Y}), forward=lambda model, batch: model(batch["a"], batch["b"])
    )
    for found in (by_place, by_name, adapted):
        assert torch.allclose(found.outputs(found.train), wanted)


def test_it_is_asked_in_evaluation_mode_and_says_in_which_it_was_found():
    model = nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.9))
    found = subject(model)
    assert found.was_training
    assert torch.equal(found.outputs(found.train), model[0](X))
    assert not subject(model.eval()).was_training


def test_batches_and_some():
    found = subject()
    assert [len(part) for part in found.batches(found.train, 20)] == [20, 20, 10]
    assert [len(part) for part in found.batches(found.train, 20, whole=True)] == [20, 20]
    assert [len(targets) for _, targets in found.pairs(found.train, 20)] == [20, 20]
    assert torch.equal(found.some(7).x, found.some(7).x)
    assert len({tuple(row) for row in found.some(7).x.tolist()}) == 7
    assert found.some(1000) is found.train
    with pytest.raises(ValueError, match="targets"):
        found.pairs(Sample({"x": X}, None), 4)


class Slow(nn.Module):
    """A model on a clock of its own, which takes a second an example and half a second a call."""

    def __init__(self):
        super().__init__()
        self.layer, self.now, self.passes = nn.Linear(6, 3), 0.0, []

    def perf_counter(self):
        return self.now

    def forward(self, x):
        self.now += 0.5 + len(x)
        self.passes.append(len(x))
        return self.layer(x)


def test_the_time_of_a_pass_is_measured_with_few_examples_where_they_are_slow(monkeypatch):
    model = Slow()
    monkeypatch.setattr(subjects, "time", model)
    found = subject(model, budget=500.0)
    # The first pass, then those that are timed: 2 examples again while 1 % lasts, and 8, which take at most 2 %.
    assert model.passes == [2, 2, 2, 8]
    assert found.network.seconds == pytest.approx(1.0)
    assert found.network.overhead == pytest.approx(0.5)
    assert found.chunk == 9
    assert len(found.train) == int(50 / (8.5 / 8))  # a tenth of the budget
    assert not found.train.whole


def test_a_busy_machine_is_not_taken_for_a_slow_model(monkeypatch):
    class Hindered(Slow):
        def forward(self, x):
            self.now += 3.0 if len(self.passes) in (1, 3) else 0.0
            return super().forward(x)

    model = Hindered()
    monkeypatch.setattr(subjects, "time", model)
    found = subject(model, budget=5000.0)
    assert found.network.seconds == pytest.approx(1.0)
    assert found.network.overhead == pytest.approx(0.5)


class Hungry(nn.Module):
    """A model that finds no memory for more than so many examples."""

    def __init__(self, most):
        super().__init__()
        self.layer, self.most, self.passes = nn.Linear(6, 3), most, []

    def forward(self, x):
        self.passes.append(len(x))
        if len(x) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return self.layer(x)


@pytest.mark.parametrize(("most", "chunk"), [(2, 2), (20, 12), (24, 12), (25, 25)])
def test_fewer_examples_go_at_once_where_memory_is_short(most, chunk):
    found = subject(Hungry(most), budget=60.0)
    assert found.chunk == chunk
    assert found.outputs(found.train).shape == (50, 3)


def test_few_examples_go_at_once_where_each_has_many_outputs(monkeypatch):
    monkeypatch.setattr(subjects, "ROOM", 7 * 3 * 4)
    model = Hungry(100)
    found = subject(model, budget=60.0)
    assert (found.room, found.chunk) == (7, 7)
    found.outputs(found.train)
    assert max(model.passes) == 7


def test_a_quick_model_keeps_all_its_examples():
    found = subject(budget=60.0)
    assert len(found.train) == 50
    assert found.train.whole
    assert found.chunk == subjects.CHUNK


def test_no_pass_begins_that_would_end_too_late(monkeypatch):
    model = Slow()
    monkeypatch.setattr(subjects, "time", model)
    found = subject(model, budget=500.0)
    found.network.clock = Clock(10.0, model.perf_counter)
    with torch.no_grad():
        found.network(X[:8])
    with (
        pytest.raises(OutOfTime, match=r"a pass through the network would take about 2\.5 s, of which 1\.5 s are left"),
        torch.no_grad(),
    ):
        found.network(X[:2])
    found.network.clock = Clock(10.0, model.perf_counter)
    with pytest.raises(OutOfTime):  # backwards takes longer than forwards
        found.network(X[:8])
