"""MAML against a plain loop with create_graph, in float64; its rates, its names, its memory, and what it refuses."""

import weakref

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from lemmata.data import Examples
from lemmata.meta import ANIL, MAML, FirstOrderMAML


def network(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1)).to(dtype)


def tasks(count=3, shots=4, queries=6, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    x, query = (torch.randn(count, size, 2, generator=generator).to(dtype) for size in (shots, queries))
    phase = torch.arange(count, dtype=dtype)[:, None, None]
    return Examples(x=x, y=(x[..., :1] + phase).sin(), query_x=query, query_y=(query[..., :1] + phase).sin())


def by_hand(model, batch, steps, lr, second=True):
    """The meta-gradient as one writes it: a loop over tasks and steps."""
    parameters, losses = dict(model.named_parameters()), []
    for x, y, query_x, query_y in zip(*batch, strict=True):
        now = parameters
        for _ in range(steps):
            loss = functional.mse_loss(functional_call(model, now, (x,)), y)
            slopes = torch.autograd.grad(loss, list(now.values()), create_graph=second)
            now = {name: part - lr * slope for (name, part), slope in zip(now.items(), slopes, strict=True)}
        losses.append(functional.mse_loss(functional_call(model, now, (query_x,)), query_y))
    loss = torch.stack(losses).mean()
    return loss, torch.autograd.grad(loss, list(parameters.values()))


@pytest.mark.parametrize(("method", "second"), [(MAML, True), (FirstOrderMAML, False)])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_the_gradient_is_that_of_a_plain_loop(method, second, steps):
    model, batch = network(), tasks()
    loss = method(model, steps, 0.3).loss(batch)
    wanted, slopes = by_hand(model, batch, steps, 0.3, second)
    assert torch.allclose(loss, wanted, rtol=1e-12)
    found = torch.autograd.grad(loss, list(model.parameters()))
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-14) for a, b in zip(found, slopes, strict=True))


def test_the_gradient_is_that_of_finite_differences():
    model, batch = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1)).double(), tasks(2, 2, 2)
    maml, names = MAML(model, 2, 0.4), [name for name, _ in model.named_parameters()]

    def loss(*values):
        found = functional_call(maml, {f"model.{name}": part for name, part in zip(names, values, strict=True)},
                                (batch.x, batch.y, batch.query_x))  # fmt: skip
        return (found - batch.query_y).square().mean()

    assert torch.autograd.gradcheck(loss, [part.detach().requires_grad_() for part in model.parameters()])


def test_all_tasks_at_once_are_each_task_alone():
    maml, batch = MAML(network(), 3, 0.2), tasks()
    alone = torch.cat([maml.losses(batch[k : k + 1]) for k in range(3)])
    assert torch.allclose(maml.losses(batch), alone, rtol=1e-12)
    one = maml.adapt(batch.x[1], batch.y[1])
    outputs = functional_call(maml.model, one, (batch.query_x[1],))
    assert torch.allclose(maml(batch.x, batch.y, batch.query_x)[1], outputs, rtol=1e-12)


def test_float32_is_float64_rounded():
    found = [MAML(network(dtype), 3, 0.2).loss(tasks(dtype=dtype)).item() for dtype in (torch.float32, torch.float64)]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_rates_may_be_learnt():
    batch, maml = tasks(), MAML(network(), 2, 0.05, learn_rates=True)
    assert set(maml.rates) == {"0/weight", "0/bias", "2/weight", "2/bias"}
    assert torch.allclose(maml.loss(batch), MAML(network(), 2, 0.05).loss(batch))
    optimizer, before = torch.optim.Adam(maml.rates.parameters(), lr=0.02), maml.loss(batch).item()
    for _ in range(20):
        optimizer.zero_grad()
        maml.loss(batch).backward()
        optimizer.step()
    assert maml.loss(batch).item() < 0.99 * before


def test_nothing_of_a_step_outlives_it():
    maml, batch = MAML(network(), 5, 0.1), tasks()
    optimizer, kept = torch.optim.SGD(maml.parameters(), lr=0.01), []
    for _ in range(50):
        optimizer.zero_grad()
        loss = maml.loss(batch)
        kept.append(weakref.ref(loss))
        loss.backward()
        optimizer.step()
    del loss
    assert not [one for one in kept if one() is not None]
    assert all(part.grad_fn is None and part.is_leaf for part in maml.parameters())


def test_the_head_is_the_last_layer_with_parameters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 1), nn.Identity())

        def forward(self, x):
            return self.head(self.body(x).relu())

    assert ANIL(Net()).names == ["head.0.weight", "head.0.bias"]
    assert ANIL(nn.Linear(2, 1)).names == ["weight", "bias"]
    assert ANIL(Net(), names=["body.bias"]).names == ["body.bias"]
    batch, anil = tasks(dtype=torch.float32), ANIL(Net(), 3, 0.1)
    moved = anil.adapt(batch.x[0], batch.y[0])
    assert torch.equal(moved["body.weight"], anil.model.body.weight)
    assert not torch.equal(moved["head.0.weight"], anil.model.head[0].weight)
    anil.loss(batch).backward()
    assert anil.model.body.weight.grad.abs().sum() > 0  # the body is learnt by the outer loop


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    model, batch = network(), tasks()
    for choose, said in (
        (lambda: MAML(model, -1), "steps must be >= 0, got -1"),
        (lambda: MAML(model, 1, 0.0), "inner_lr must be > 0, got 0"),
        (lambda: MAML(model, names=["3.weight"]), "names must be parameters of the model, got 3.weight"),
        (lambda: MAML(model)(batch.x[0, 0], batch.y, batch.query_x), r"x must be \(tasks, examples, ...\)"),
        (lambda: MAML(model)(batch.x, batch.y[:2], batch.query_x), "x and y must have as many tasks and shots"),
        (lambda: MAML(model)(batch.x, batch.y, batch.query_x[:2]), "query_x and x must have as many tasks"),
    ):
        with pytest.raises(ValueError, match=said):
            choose()
    with pytest.raises(TypeError, match=r"model must be an nn\.Module, got int"):
        MAML(3)
