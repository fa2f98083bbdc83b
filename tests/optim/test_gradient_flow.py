"""Flow and descent paths: closed forms, many starts, stiff functions, other optimisers, dtypes, bad input."""

import math

import pytest
import torch

from lemmata.optim import descent_path, flow_path


def bowl(x):
    return x.square().sum(-1) / 2


def sgd(lr, **more):
    return lambda parameters: torch.optim.SGD(parameters, lr=lr, **more)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_flow_of_a_bowl_decays_exponentially(dtype):
    start = torch.tensor([[1.0, -2.0], [0.0, 4.0]], dtype=dtype)
    path = flow_path(bowl, start, [0.0, 0.5, 2.0])
    assert path.shape == (3, 2, 2)
    assert path.dtype is dtype
    exact = start.double() * torch.tensor([1.0, math.exp(-0.5), math.exp(-2.0)]).reshape(3, 1, 1)
    torch.testing.assert_close(path.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-7)


def test_a_stiff_flow_is_followed_far():
    curvatures = torch.tensor([1.0, 1e6], dtype=torch.float64)
    (end,) = flow_path(lambda x: (curvatures * x.square()).sum(-1) / 2, torch.ones(2, dtype=torch.float64), [3.0])
    torch.testing.assert_close(end, torch.tensor([math.exp(-3.0), 0.0], dtype=torch.float64), rtol=0, atol=1e-6)


def test_the_tolerance_is_kept():
    start = torch.ones(1, dtype=torch.float64)
    errors = [abs(float(flow_path(bowl, start, [1.0], tolerance=t)) - math.exp(-1)) for t in (1e-3, 1e-6, 1e-11)]
    assert errors[0] < 1e-2
    assert errors[1] < 1e-5
    assert errors[2] < 1e-9


def test_the_tolerance_is_relative_to_the_start():
    """A flow that is 2^20 times as large is the same flow: it takes as many gradients."""
    taken = []
    for size in (1.0, 2.0**20):
        calls = []
        flow_path(lambda x, calls=calls: calls.append(1) or bowl(x), size * torch.ones(1, dtype=torch.float64), [5.0])
        taken.append(len(calls))
    assert taken[0] == taken[1]


def test_the_finest_tolerance_is_taken_without_a_warning(recwarn):
    (end,) = flow_path(bowl, torch.ones(1, dtype=torch.float64), [1.0], tolerance=1e-15)
    assert end.item() == pytest.approx(math.exp(-1), rel=1e-10)
    assert not recwarn.list


def test_at_time_zero_it_is_where_it_began():
    start = torch.tensor([3.0])
    assert torch.equal(flow_path(bowl, start, [0.0]), start[None])
    assert torch.equal(flow_path(bowl, start, torch.tensor([0.0, 1.0]))[0], start)


@pytest.mark.parametrize(
    ("times", "said"),
    [([], "times must increase"), ([1.0, 0.5], "times must increase"), ([-1.0], "not begin before 0")],
)
def test_times_that_make_no_path_are_refused(times, said):
    with pytest.raises(ValueError, match=said):
        flow_path(bowl, torch.ones(1), times)


def test_a_function_without_a_floor_is_told_of():
    with pytest.raises(ValueError, match=r"could not be followed to time 10"):
        flow_path(lambda x: -(x**4).sum(-1), torch.ones(1), [10.0])


def test_descent_is_torchs_own_loop_bit_by_bit():
    start = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    path = descent_path(lambda x: torch.cosh(x).sum(-1), start, 5, sgd(0.1, momentum=0.9))
    point = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([point], lr=0.1, momentum=0.9)
    for visited in path:
        assert torch.equal(visited, point.detach())
        optimizer.zero_grad()
        torch.cosh(point).sum().backward()
        optimizer.step()
    assert torch.equal(path[0], start)
    assert not path.requires_grad


def test_optimisers_that_look_several_times_work():
    path = descent_path(bowl, torch.tensor([3.0, 1.0]), 3, lambda p: torch.optim.LBFGS(p, lr=1.0))
    assert float(path[-1].norm()) < 1e-3


def test_settings_change_between_the_steps():
    halving = descent_path(bowl, torch.tensor([1.0]), 3, sgd(0.1), settings=lambda t: {"lr": 1 / (t + 2)})
    assert halving[:, 0].tolist() == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])


def test_what_leaves_all_bounds_does_so_alone():
    path = descent_path(lambda x: (x**4).sum(-1), torch.tensor([[0.1], [100.0]]), 8, sgd(0.1))
    assert bool(path[:, 0].isfinite().all())
    assert not bool(path[-1, 1].isfinite().all())


def test_parameters_of_the_function_get_no_gradient():
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    start = torch.ones(2, dtype=torch.float64)
    descent_path(lambda x: layer(x)[..., 0].square(), start, 2, sgd(0.1))
    flow_path(lambda x: layer(x)[..., 0].square(), start, [0.1])
    assert layer.weight.grad is None


def test_no_steps_leave_the_start_alone():
    assert descent_path(bowl, torch.ones(2), 0, sgd(1.0)).tolist() == [[1.0, 1.0]]


def test_bad_input_is_answered(unchecked):
    with pytest.raises(ValueError, match=r"f must map \(\.\.\., n\) to \(\.\.\.\)"):
        descent_path(lambda x: x, torch.ones(2), 1, sgd(0.1))
    with pytest.raises(ValueError, match=r"but gave float"):
        descent_path(lambda x: 1.0, torch.ones(2), 1, sgd(0.1))
    with pytest.raises(ValueError, match="steps must be"):
        descent_path(bowl, torch.ones(2), -1, sgd(0.1))
    with pytest.raises(ValueError, match="start must be finite"):
        flow_path(bowl, torch.tensor([math.nan]), [1.0])
    with pytest.raises(ValueError, match="tolerance must be"):
        flow_path(bowl, torch.ones(1), [1.0], tolerance=0.0)
    with pytest.raises(TypeError, match="start must be floating point"):
        descent_path(bowl, torch.tensor([1]), 1, sgd(0.1))
