"""Steps that are too large are found, with every optimiser and kind of network; steps at the edge of stability pass."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

import lemmata
from lemmata.audit.auditing import audit
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.finding import AuditFinding
from lemmata.audit.probes.step_size import step_size
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject, Training
from lemmata.data.registry import load
from lemmata.measure.curvature_products import HessianOperator

DIGITS = load("digits").train.columns
X, Y = DIGITS["x"][:256].float(), DIGITS["y"][:256]


class Residual(nn.Module):
    """Convolutions with batch normalisation and a way around them, and dropout before the head."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.first(x[:, None])
        return self.head((x + self.block(x)).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return SimpleNamespace(logits=self.head(self.inner(x)[0][:, -1]))  # as Hugging Face gives it


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.inner(x).mean(1))


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


MODELS = {"mlp": mlp, "residual": Residual, "recurrent": Recurrent, "attention": Attention}


def trained(
    make, lr: float = 0.1, steps: int = 60, maker=torch.optim.SGD, **more
) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = make().train()
    optimizer = maker(model.parameters(), lr=lr, **more)
    for step in range(steps):
        part = slice(64 * (step % 4), 64 * (step % 4) + 64)
        out = model(X[part])
        loss = functional.cross_entropy(getattr(out, "logits", out), Y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


def asked(model: nn.Module, data=(X, Y), **how) -> AuditFinding:
    (finding,) = audit(model, data, probes=["step_size"], **{"budget": 1000.0} | how).findings
    return finding


@pytest.mark.parametrize("name", MODELS)
def test_a_step_three_times_the_limit_is_found_and_the_step_it_learned_with_passes(name: str):
    model, _ = trained(MODELS[name])
    twin = asked(model, lr=0.1, optimizer="sgd", batch_size=64)
    assert twin.severity in ("fine", "hint"), twin.verdict
    assert twin.numbers["ratio"] < 2
    step = 3 * twin.numbers["limit"]
    fault = asked(model, lr=step, optimizer="sgd", batch_size=64)
    assert fault.severity == "alarm", fault.verdict
    assert f"your step {step:.3g} is" in fault.verdict
    assert "times the stable limit" in fault.verdict
    assert fault.numbers["ratio"] == pytest.approx(3, rel=0.03)
    assert fault.weight > 5
    assert fault.figures


@pytest.mark.parametrize(
    "how", [{"optimizer": "momentum"}, {"optimizer": "nesterov"}, {"optimizer": "sgd", "momentum": 0.5}]
)
def test_momentum_has_limits_of_its_own(how):
    model, _ = trained(mlp)
    beta = how.get("momentum", 0.9)
    factor = 2 * (1 + beta) / (1 + 2 * beta) if how["optimizer"] == "nesterov" else 2 * (1 + beta)
    plain = asked(model, lr=0.1, optimizer="sgd").numbers
    found = asked(model, lr=0.1, **how)
    assert found.severity == "fine"
    assert found.numbers["limit"] == pytest.approx(plain["limit"] * factor / 2, rel=0.03)
    fault = asked(model, lr=3 * found.numbers["limit"], **how)
    assert fault.severity == "alarm", fault.verdict


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop"])
def test_absurd_steps_of_adaptive_optimisers_are_found_with_and_without_their_state(name: str):
    maker = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}[name]
    model, optimizer = trained(mlp, lr=3e-3, maker=maker)
    for how in ({"optimizer": name, "lr": 3e-3, "batch_size": 64}, {"optimizer": optimizer, "batch_size": 64}):
        assert asked(model, **how).severity != "alarm"
    assert asked(model, optimizer=name, lr=1.0, batch_size=64).severity == "alarm"
    for group in optimizer.param_groups:
        group["lr"] = 1.0
    fault = asked(model, optimizer=optimizer, batch_size=64)
    assert fault.severity == "alarm", fault.verdict
    assert "the optimiser's state" in fault.predicted
    fresh = asked(mlp(), optimizer=name, lr=1.0)
    assert fresh.severity == "alarm", fresh.verdict


@pytest.mark.parametrize("steps", [300, 1500])
def test_training_at_the_edge_of_stability_is_healthy(steps: int):
    # Full-batch descent on the squared error sharpens until 2/λ is its step, and stays there.
    torch.manual_seed(0)
    x = torch.randn(100, 2)
    y = (x[:, :1] * x[:, 1:]).sin()
    model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
    for _ in range(steps):
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    found = asked(model, data=(x, y), optimizer=optimizer)
    assert found.severity == "fine", found.verdict
    if steps == 1500:
        assert 0.8 < found.numbers["ratio"] < 1.6
        assert "edge of stability" in found.verdict
    fault = asked(model, data=(x, y), optimizer="sgd", lr=3 * found.numbers["limit"])
    assert fault.severity == "alarm", fault.verdict


def test_adam_too_settles_at_its_edge_and_a_lost_state_is_no_fault():
    torch.manual_seed(0)
    x = torch.randn(100, 2)
    y = (x[:, :1] * x[:, 1:]).sin()
    model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2000):
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()
    found = asked(model, data=(x, y), optimizer=optimizer)
    assert found.severity == "fine", found.verdict
    assert 0.7 < found.numbers["ratio"] < 1.6  # 38 over the step, as Cohen et al. 2022 found
    assert asked(model, data=(x, y), optimizer="adam", lr=0.01).severity != "alarm"
    assert asked(model, data=(x, y), optimizer="adam", lr=1.0).severity == "alarm"


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [*((name, one) for name in MODELS for one in ("momentum", "adam")), ("mlp", "rmsprop"), ("mlp", "adagrad")],
)
def test_fresh_networks_with_usual_steps_are_healthy(name: str, optimizer: str):
    torch.manual_seed(1)
    lr = {"momentum": 0.03, "adam": 1e-3, "rmsprop": 1e-3, "adagrad": 1e-2}[optimizer]
    found = asked(MODELS[name](), lr=lr, optimizer=optimizer)
    assert found.severity in ("fine", "hint"), found.verdict


def test_the_curvature_is_the_largest_eigenvalue_of_the_whole_hessian():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    x = torch.randn(80, 3).double()
    y = x.prod(1, keepdim=True)
    found = asked(model, data=(x, y), lr=0.01, optimizer="sgd")
    exact = torch.linalg.eigvalsh(HessianOperator(model, functional.mse_loss, (x, y)).dense())[-1].item()
    assert abs(found.numbers["curvature"] - exact) <= found.numbers["residual"] + 1e-9
    assert found.numbers["residual"] < 0.02 * exact
    assert found.numbers["limit"] == pytest.approx(2 / exact, rel=0.02)


def test_half_precision_several_inputs_and_frozen_parts(monkeypatch):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(64, 10), nn.Linear(64, 10)
            self.right.requires_grad_(False)

        def forward(self, a, b):
            return self.left(a.flatten(1)) + self.right(b.flatten(1))

    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)  # whose bfloat16 not every virtual machine can run
    torch.manual_seed(0)
    model = Two().bfloat16()
    calm = asked(model, data=((X, X.flip(1)), Y), lr=0.1, optimizer="sgd")
    assert calm.severity == "fine", calm.verdict
    assert model.left.weight.dtype == torch.bfloat16
    # From a trained start, where the loss is near its least, three times the limit cannot help.
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(100):
        optimizer.zero_grad()
        functional.cross_entropy(model(X.bfloat16(), X.flip(1).bfloat16()).float(), Y).backward()
        optimizer.step()
    limit = asked(model, data=((X, X.flip(1)), Y), lr=0.1, optimizer="sgd").numbers["limit"]
    fault = asked(model, data=((X, X.flip(1)), Y), lr=3 * limit, optimizer="sgd")
    assert fault.severity == "alarm", fault.verdict


def test_steps_a_hundred_times_too_small_are_told_by_what_larger_ones_do():
    found = asked(mlp(), lr=2e-3, optimizer="sgd")
    assert found.severity == "hint"
    assert "with 0.02 to" in found.verdict
    assert found.numbers["ratio"] < 0.01


def test_without_a_learning_rate_the_limit_is_told():
    model, _ = trained(mlp)
    with_rate = asked(model, lr=0.1)
    without = asked(model)
    assert without.severity == "fine"
    assert without.numbers["limit"] == pytest.approx(with_rate.numbers["limit"], rel=0.03)


def test_unknown_optimisers_are_tried():
    model, _ = trained(mlp)
    calm = asked(model, optimizer=torch.optim.NAdam(model.parameters(), lr=1e-3))
    assert calm.severity == "fine"
    assert "no limit is known for nadam" in calm.verdict
    wild = asked(model, optimizer=torch.optim.NAdam(model.parameters(), lr=3.0))
    assert wild.severity == "alarm", wild.verdict
    cannot = asked(model, optimizer=torch.optim.LBFGS(model.parameters()))
    assert cannot.severity == "skipped"


def test_an_optimiser_of_another_model_is_told():
    model = mlp()
    found = asked(model, optimizer=torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1))
    assert found.severity == "hint"
    assert "holds none of the model's parameters" in found.verdict


def test_losses_without_curvature_have_no_limit():
    torch.manual_seed(0)
    found = asked(nn.Linear(3, 1), data=(torch.randn(64, 3), torch.randn(64, 1)), loss="l1", lr=0.1, optimizer="sgd")
    assert found.severity == "fine", found.verdict
    assert found.numbers["ratio"] <= 0.5


def test_frozen_models_are_skipped():
    found = asked(mlp().requires_grad_(False), lr=0.1)
    assert (found.severity, found.verdict) == ("skipped", "the model has no parameters that learn")


def test_a_sample_of_more_data_carries_an_interval():
    model, _ = trained(mlp)
    subject = Subject(model, as_sample((DIGITS["x"], DIGITS["y"])), training=Training(0.1, "sgd"))
    subject.seconds = 1e-4  # as if it were slow: few examples can be had
    (found,) = step_size.asks(subject, Clock(10.0))
    assert found.numbers["examples"] < len(subject.train) / 4
    assert 0.2 * found.numbers["ratio"] < found.numbers["ratio_at_least"] <= found.numbers["ratio"]
    assert "with confidence 0.999" in found.measured


def test_a_budget_that_is_too_short_is_said():
    subject = Subject(mlp(), as_sample((X, Y)), training=Training(0.1, "sgd"))
    subject.seconds = 1.0
    with pytest.raises(OutOfTime, match="the largest curvature would take"):
        list(step_size.asks(subject, Clock(5.0)))


def test_the_model_and_the_optimiser_are_left_as_found():
    model, optimizer = trained(Residual, maker=torch.optim.Adam, lr=3e-3)
    before, state = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    grads = [value.grad.clone() for value in model.parameters()]
    asked(model, optimizer=optimizer)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(value.grad, grad) for value, grad in zip(model.parameters(), grads, strict=True))
    assert str(optimizer.state_dict()) == str(state)
    assert all(part.training for part in model.modules())


def test_the_claims_it_names_exist():
    model, _ = trained(mlp, steps=5)
    files = Path(lemmata.__file__).parent.rglob("statements.yaml")
    known = {line[6:].strip() for path in files for line in path.read_text().splitlines() if line.startswith("- id:")}
    for optimizer in ("sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad"):
        found = asked(model, lr=1e-3, optimizer=optimizer)
        assert found.claims
        assert set(found.claims) <= known
