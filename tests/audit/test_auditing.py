"""The audit as a whole, asking probes of the tests' own: budgets, errors, what is given back."""

import re

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lemmata.audit import audit, auditing
from lemmata.audit import subject as subjects
from lemmata.audit.clock import Clock
from lemmata.audit.finding import alarm, fine
from lemmata.audit.probe import Probe, all_probes, probe

X, Y = torch.randn(60, 4), torch.arange(60) % 3


def quick(subject, clock):
    yield fine("first", f"{len(subject.train)} examples")
    yield alarm("second", "it is wrong", weight=4)


def test_findings_carry_the_name_of_their_probe_and_the_facts_say_what_was_audited(asking):
    asking(quick)
    report = audit(nn.Linear(4, 3), (X, Y), (X[:9], Y[:9]), optimizer="nesterov", lr=0.1, loss="cross_entropy")
    assert [(one.name, one.probe) for one in report.findings] == [("second", "quick"), ("first", "quick")]
    assert report.facts == {
        "model": "Linear, 15 parameters, float32 on cpu",
        "data": "60 training and 9 test examples of x (4,); 3 classes",
        "training": "sgd with Nesterov momentum 0.9, learning rate 0.1, loss cross_entropy",
    }
    assert report.seconds < report.budget == 60.0


def test_the_model_and_all_random_numbers_come_back(asking):
    def careless(subject, clock):
        for p in subject.model.parameters():
            p.data.mul_(0)
        torch.rand(3)
        yield fine("careless", "all weights are zero")

    def later(subject, clock):
        yield fine("later", str(float(subject.model.weight.abs().sum() > 0)))

    asking(careless, later)
    model = nn.Linear(4, 3).train()
    before, generator = model.weight.clone(), torch.get_rng_state()
    loader = DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True)
    report = audit(model, loader)
    assert report["later"].verdict == "1.0"  # each probe finds the model as the first one did
    assert torch.equal(model.weight, before)
    assert model.training
    assert torch.equal(torch.get_rng_state(), generator)


def test_ctrl_c_is_passed_on_with_the_model_as_it_was(asking):
    def stopped(subject, clock):
        subject.model.weight.data.zero_()
        raise KeyboardInterrupt
        yield

    asking(stopped)
    model = nn.Linear(4, 3)
    before = model.weight.clone()
    with pytest.raises(KeyboardInterrupt):
        audit(model, (X, Y))
    assert torch.equal(model.weight, before)


def test_a_probe_that_fails_is_told_and_the_others_are_asked(asking):
    def failing(subject, clock):
        yield fine("before", "said before it failed")
        raise RuntimeError("no such\nlayer")

    failing.__name__ = "one_that_fails"
    asking(failing, quick)
    report = audit(nn.Linear(4, 3), (X, Y))
    assert report["one that fails"].verdict == "it could not be measured: RuntimeError: no such layer"
    assert report["before"].severity == "fine"
    assert report["second"].severity == "alarm"


def test_a_probe_that_finds_no_memory_is_told_and_the_others_are_asked(asking):
    def hungry(subject, clock):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 96.00 GiB.")
        yield

    asking(hungry, quick)
    report = audit(nn.Linear(4, 3), (X, Y))
    assert report["hungry"].verdict == "it needs more memory than cpu has left"
    assert report["second"].severity == "alarm"


def test_each_probe_finds_the_model_as_the_first_did(asking):
    seen = []

    def spoiling(subject, clock):
        seen.append((subject.model[0].weight.clone(), subject.model[1].training, torch.rand(1)))
        subject.model.train()
        subject.model[0].weight.data = torch.zeros(2, 2)  # another shape too
        yield fine("spoilt", "it spoilt the model")
        raise RuntimeError("and then it failed")

    asking(spoiling, spoiling, spoiling)
    audit(nn.Sequential(nn.Linear(4, 3), nn.Dropout()), (X, Y))
    assert len(seen) == 3
    for weight, training, drawn in seen:
        assert torch.equal(weight, seen[0][0])
        assert (training, drawn) == (False, seen[0][2])


@pytest.mark.parametrize(
    ("need", "said"),
    [
        ("test", "it needs a test part"),
        ("lr", "it needs a learning rate"),
        ("targets", "it needs data with targets"),
        ("classes", "it needs a classifier"),
    ],
)
def test_what_a_probe_lacks_is_said(asking, need, said):
    asking(quick, needs=(need,))
    assert said in audit(nn.Linear(4, 3), X)["quick"].verdict


class Slow(nn.Module):
    """A layer with a time of its own: so many seconds an example, and a tenth more or less."""

    def __init__(self, seconds, monkeypatch):
        super().__init__()
        self.layer, self.each, self.now = nn.Linear(4, 3), seconds, [0.0]  # a list: attributes are given back
        monkeypatch.setattr(subjects, "time", self)
        monkeypatch.setattr(auditing, "Clock", lambda seconds: Clock(seconds, self.perf_counter))

    def perf_counter(self):
        return self.now[0]

    def forward(self, x):
        self.now[0] += self.each * len(x) * (0.9 + 0.2 * torch.rand(()).item())
        return self.layer(x)


def greedy(subject, clock):
    """A probe that never looks at the clock."""
    for done in range(10**9):
        with torch.set_grad_enabled(done % 2 == 0):
            loss = subject.network(subject.train.x).sum()
        if done % 2 == 0:
            subject.model.now[0] += 2 * subject.model.each * len(subject.train)
            loss.backward()
        yield fine("pass", str(done))


@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 0.1, 1.0, 5.0])
def test_a_budget_is_kept_by_probes_that_do_not_look_at_the_clock(asking, monkeypatch, seconds):
    other = lambda subject, clock: greedy(subject, clock)  # noqa: E731
    other.__name__ = "other"
    asking(greedy, other, quick)
    model = Slow(seconds, monkeypatch)
    report = audit(model, (X, Y), budget=min(60.0, 1e5 * seconds))
    assert 0.5 * report.budget < report.seconds == model.now[0] < 1.2 * report.budget
    assert "a pass through the network" in report["other"].verdict
    tried = int(re.search(r": try --budget (\d+)$", report["other"].verdict)[1])
    assert report.budget <= tried < 1000 * report.budget + 1
    assert report["second"].severity == "alarm"


def test_what_probes_take_to_be_imported_is_not_taken_from_the_budget(asking, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(auditing, "Clock", lambda seconds: Clock(seconds, lambda: now[0]))
    asking(quick)
    found = auditing.all_probes

    def slowly():
        now[0] += 50.0
        return found()

    monkeypatch.setattr(auditing, "all_probes", slowly)
    assert audit(nn.Linear(4, 3), (X, Y), budget=10.0).seconds == 0


def test_every_probe_is_cut_at_twice_its_share(asking, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(auditing, "Clock", lambda seconds: Clock(seconds, lambda: now[0]))
    parts = []

    def looking(subject, clock):
        parts.append((clock.left(), subject.network.clock.left()))
        now[0] += 30.0
        yield fine("looked", "it looked")

    asking(looking, looking, looking, share=0.2)
    audit(nn.Linear(4, 3), (X, Y), budget=70.0)
    assert parts == [(14.0, 28.0), (14.0, 28.0), (10.0, 10.0)]


def test_what_was_left_out_is_told_with_the_budget_that_would_do(asking):
    def long(subject, clock):
        clock.need(300.0, "the spectrum")
        yield fine("spectrum", "it is flat")

    asking(long, share=0.25)
    verdict = audit(nn.Linear(4, 3), (X, Y), budget=20.0)["long"].verdict
    assert re.fullmatch(r"the spectrum would take about 300 s, of which 5\.0 s are left: try --budget 1300", verdict)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"model": "resnet"}, TypeError, "model must be an nn.Module, got str"),
        ({"budget": 0}, ValueError, "budget must be > 0"),
        ({"lr": -1.0}, ValueError, "lr must be > 0"),
        ({"momentum": 2.0}, ValueError, "momentum"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"optimizer": "sdg"}, ValueError, "sdg"),
        ({"probes": ["curvture"]}, ValueError, "curvture"),
        ({"data": "digtis"}, ValueError, "unknown data set 'digtis': did you mean digits"),
        ({"data": (X[:0], Y[:0])}, ValueError, "at least one example"),
        ({"data": {"x": X, "y": Y}, "test": {"z": X, "y": Y}}, ValueError, "test must have the columns of data, x"),
        ({"model": nn.LazyLinear(3)}, ValueError, "lazy layers without weights: give it one batch"),
    ],
)
def test_bad_input_is_one_sentence(asking, arguments, error, said):
    asking(quick)
    with pytest.raises(error) as found:
        audit(**{"model": nn.Linear(4, 3), "data": (X, Y), **arguments})
    assert said in str(found.value)


def test_an_optimiser_tells_its_own_settings(asking):
    def telling(subject, clock):
        training = subject.training
        yield fine("training", f"{training.optimizer} {training.lr} {training.betas} {training.running is optimizer}")

    asking(telling)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.8, 0.99))
    assert audit(model, (X, Y), optimizer=optimizer)["training"].verdict == "adam 0.02 (0.8, 0.99) True"


def test_probes_are_found_by_listing_and_asked_by_value(asking):
    @probe("A title", value=3, share=0.1, needs=("lr",))
    def marked(subject, clock):
        yield fine("nothing", "nothing")

    assert isinstance(marked, Probe)
    assert (marked.name, marked.title, marked.value, marked.share) == ("test_auditing", "A title", 3, 0.1)
    found = all_probes()
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True)
    assert len({one.name for one in found}) == len(found)


def test_only_the_probes_that_were_named_are_asked(asking):
    asked = []
    one, two = (lambda s, c: asked.append("one") or [], lambda s, c: asked.append("two") or [])
    one.__name__, two.__name__ = "one", "two"
    asking(one, two)
    audit(nn.Linear(4, 3), (X, Y), probes=["two"])
    assert asked == ["two"]


def test_whoever_watches_hears_each_title_as_it_begins(asking):
    asking(quick)
    heard = []
    audit(nn.Linear(4, 3), (X, Y), watch=heard.append)
    assert heard == ["Title of quick"]


def test_a_scripted_model_is_refused():
    with pytest.raises(TypeError, match="scripted"):
        audit(torch.jit.script(nn.Linear(2, 1)), (torch.zeros(4, 2), torch.zeros(4, 1)))
