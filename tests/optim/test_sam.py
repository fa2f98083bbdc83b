"""SAM beside its formula and its peers' arithmetic, with any base, with groups, and when something fails half-way."""

import copy
import math

import pytest
import torch
from torch import nn

from lemmata.optim import SAM
from lemmata.testing import check_optimizer


def network(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).to(dtype)


def closure_of(model, optimizer, batch=8):
    x = torch.linspace(-1, 1, 3 * batch).reshape(batch, 3).to(next(model.parameters()).dtype)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("base", [torch.optim.SGD, torch.optim.AdamW])
def test_a_step_is_the_base_s_with_the_gradient_of_the_worst_point(adaptive, base):
    ours, reference = network(), network()
    sam = SAM(ours.parameters(), base=base, lr=0.05, rho=0.3, adaptive=adaptive)
    plain = base(reference.parameters(), lr=0.05)
    closure, gradients = closure_of(ours, sam), closure_of(reference, plain)
    for _ in range(20):
        expected = gradients()
        weights = list(reference.parameters())
        scale = [p.detach().abs() if adaptive else torch.ones_like(p) for p in weights]
        norm = torch.cat([(s * p.grad).flatten() for s, p in zip(scale, weights, strict=True)]).norm()
        moves = [0.3 * s**2 * p.grad / norm for s, p in zip(scale, weights, strict=True)]
        before = [p.detach().clone() for p in weights]
        with torch.no_grad():
            torch._foreach_add_(weights, moves)
        gradients()
        with torch.no_grad():
            torch._foreach_copy_(weights, before)
        plain.step()
        torch.testing.assert_close(sam.step(closure), expected)
    for mine, theirs in zip(ours.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_the_usual_radius_is_that_of_the_paper_and_the_base_adamw():
    optimizer = SAM([nn.Parameter(torch.ones(1))])
    assert type(optimizer.base) is torch.optim.AdamW
    assert (optimizer.defaults["rho"], optimizer.defaults["adaptive"]) == (0.05, False)
    assert optimizer.defaults.items() >= optimizer.base.defaults.items()  # as groups that come later are given them


def test_two_halves_are_one_step():
    one, other = network(), network()
    whole, halves = (SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9) for model in (one, other))
    for _ in range(3):
        whole.step(closure_of(one, whole))
        backward = closure_of(other, halves)
        backward()
        halves.ascend()
        assert all(p.grad is None for p in other.parameters())
        backward()
        halves.descend()
    assert all(p.equal(q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


def test_halves_out_of_order_are_refused():
    model = network()
    sam = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
    with pytest.raises(RuntimeError, match="descend was called before ascend"):
        sam.descend()
    closure_of(model, sam)()
    sam.ascend()
    with pytest.raises(RuntimeError, match="ascend was called twice"):
        sam.ascend()


def test_a_failing_second_pass_leaves_the_parameters_where_they_were():
    model = network()
    sam = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
    backward, calls = closure_of(model, sam), []

    def closure():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return backward()

    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(KeyboardInterrupt):
        sam.step(closure)
    assert all(p.equal(old) for p, old in zip(model.parameters(), before, strict=True))
    sam.step(backward)  # and can go on


def test_a_saved_state_continues_to_the_last_bit():
    model = network()
    sam = SAM(model.parameters(), torch.optim.AdamW, lr=0.01, rho=0.2)
    for _ in range(3):
        sam.step(closure_of(model, sam))
    again = copy.deepcopy(model)
    loaded = SAM(again.parameters(), torch.optim.AdamW, lr=0.5, rho=0.9)
    loaded.load_state_dict(copy.deepcopy(sam.state_dict()))
    assert loaded.param_groups is loaded.base.param_groups
    assert (loaded.param_groups[0]["lr"], loaded.param_groups[0]["rho"]) == (0.01, 0.2)
    for _ in range(3):
        sam.step(closure_of(model, sam))
        loaded.step(closure_of(again, loaded))
    assert all(p.equal(q) for p, q in zip(model.parameters(), again.parameters(), strict=True))


def test_groups_have_a_radius_and_a_rate_of_their_own():
    weights = [nn.Parameter(torch.tensor([value])) for value in (3.0, 4.0, 0.0)]
    sam = SAM([{"params": [weights[0]], "rho": 1.0}, {"params": [weights[1]]}], torch.optim.SGD, lr=0.1, rho=0.5)
    sam.add_param_group({"params": [weights[2]], "lr": 0.0})
    assert [(group["rho"], group["lr"]) for group in sam.param_groups] == [(1.0, 0.1), (0.5, 0.1), (0.5, 0.0)]
    for weight in weights[:2]:
        weight.grad = weight.detach().clone()
    sam.ascend()
    assert [round(weight.item(), 6) for weight in weights] == [3.6, 4.4, 0.0]
    for weight in weights:
        weight.grad = weight.detach().clone()
    sam.descend()
    assert [round(weight.item(), 6) for weight in weights] == [2.64, 3.56, 0.0]


def test_a_schedule_moves_the_base():
    model = network()
    sam = SAM(model.parameters(), torch.optim.SGD, lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(sam, 1, gamma=0.0)
    sam.step(closure_of(model, sam))
    schedule.step()
    before = [p.detach().clone() for p in model.parameters()]
    sam.step(closure_of(model, sam))
    assert all(p.equal(old) for p, old in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.float16])
@pytest.mark.parametrize("size", [1e-4, 1.0, 100.0])
def test_the_move_has_length_rho_in_every_dtype(dtype, size):
    weight = nn.Parameter(torch.zeros(64, dtype=dtype))
    sam = SAM([weight], torch.optim.SGD, lr=0.1, rho=0.5)
    weight.grad = (size * torch.randn(64)).to(dtype)
    sam.ascend()
    wide = torch.complex128 if dtype.is_complex else torch.float64
    assert math.isclose(float(weight.detach().to(wide).norm()), 0.5, rel_tol=0.01)


@pytest.mark.parametrize("rho", [0.05, 10.0])
@pytest.mark.parametrize("size", [1e-25, 1e-40, 0.0, 1e25])
def test_no_gradient_is_too_small_or_too_large_for_the_ball(rho, size):
    weight = nn.Parameter(torch.zeros(4))
    sam = SAM([weight], torch.optim.SGD, lr=0.1, rho=rho)
    weight.grad = torch.full((4,), size)
    sam.ascend()
    length = float(weight.detach().double().norm())
    # Of a gradient of 1e-40 the step is shorter, so that rho / |gradient| stays a number of float32.
    assert length <= rho * 0.1 if size in (1e-40, 0.0) else math.isclose(length, rho, rel_tol=1e-6)


def test_small_gradients_in_float16_take_the_whole_step():
    weight = nn.Parameter(torch.zeros(4, dtype=torch.float16))
    sam = SAM([weight], torch.optim.SGD, lr=0.1, rho=0.5)
    weight.grad = torch.full((4,), 1e-6).half()
    sam.ascend()
    assert math.isclose(float(weight.detach().double().norm()), 0.5, rel_tol=0.01)


def test_a_copy_steps_as_the_original_does():
    model = network()
    sam = SAM(model.parameters(), torch.optim.AdamW, lr=0.01, rho=0.2)
    sam.step(closure_of(model, sam))
    again, copied = copy.deepcopy((model, sam))
    assert copied.param_groups is copied.base.param_groups
    sam.step(closure_of(model, sam))
    copied.step(closure_of(again, copied))
    assert all(p.equal(q) for p, q in zip(model.parameters(), again.parameters(), strict=True))


def test_without_a_slope_nothing_moves():
    weight = nn.Parameter(torch.ones(3))
    sam = SAM([weight], torch.optim.SGD, lr=0.1)
    weight.grad = torch.zeros(3)
    sam.ascend()
    assert weight.detach().equal(torch.ones(3))


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"rho": -0.1}, ValueError, "rho must be >= 0, got -0.1"),
        ({"rho": math.nan}, ValueError, "rho must be finite, got nan"),
        ({"lr": -1.0}, ValueError, "-1.0"),
    ],
)
def test_bad_options_are_answered(options, kind, words):
    with pytest.raises(kind, match=words):
        SAM([nn.Parameter(torch.ones(2))], torch.optim.SGD, **({"lr": 0.1} | options))


@pytest.mark.usefixtures("unchecked")
def test_bad_bases_and_gradients_are_answered():
    weight = nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError, match="base must be a class of optimisers"):
        SAM([weight], torch.optim.SGD([weight], lr=0.1))
    with pytest.raises(TypeError, match="base must step without a closure"):
        SAM([weight], torch.optim.LBFGS)
    with pytest.raises(TypeError, match="adaptive must be True or False"):
        SAM([weight], torch.optim.SGD, lr=0.1, adaptive=1)
    with pytest.raises(ValueError, match="closure must call backward"):
        SAM([weight], torch.optim.SGD, lr=0.1).step(lambda: None)
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="dense gradients"):
        SAM(table.parameters(), torch.optim.SGD, lr=0.1).ascend()


@pytest.mark.parametrize("base", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("adaptive", [False, True])
def test_it_conforms(base, adaptive):
    check_optimizer(SAM, base=base, lr=0.05, adaptive=adaptive)
