"""Muon beside torch's, beside Newton-Schulz written out, and with every kind of parameter."""

import copy
import re
import subprocess
import sys

import pytest
import torch
from torch import nn

from lemmata.optim import Muon, hidden_matrices, newton_schulz, polar_factor
from lemmata.optim.muon import STACKED_ENTRIES
from lemmata.testing import check_optimizer

SHAPES = ((8, 5), (5, 8), (6, 6), (8, 5), (1, 4))


def parameters(dtype=torch.float64, shapes=SHAPES, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in shapes]


def give_gradients(*lists, seed):
    """The same gradients to parameters of several optimisers."""
    generator = torch.Generator().manual_seed(seed)
    for same in zip(*lists, strict=True):
        grad = torch.randn(same[0].shape, generator=generator, dtype=same[0].dtype)
        for parameter in same:
            parameter.grad = grad.clone()


@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False, "weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"}, {"momentum": 0.5}]
)
@pytest.mark.parametrize("foreach", [None, False])
def test_in_bfloat16_each_step_is_that_of_torch(options, foreach):
    """Up to rounding in bfloat16, which products of stacked matrices do in another order."""
    ours, theirs = parameters(), parameters()
    muon = Muon(ours, lr=0.02, ns_dtype=torch.bfloat16, foreach=foreach, **options)
    reference = torch.optim.Muon(theirs, lr=0.02, **options)
    for step in range(100):
        before = [p.detach().clone() for p in theirs]
        give_gradients(ours, theirs, seed=step)
        muon.step()
        reference.step()
        for mine, other, old in zip(ours, theirs, before, strict=True):
            step_length = (other - old).abs().max()
            assert (mine - other).abs().max() <= 0.05 * step_length
            with torch.no_grad():
                mine.copy_(other)  # so that one rounding is not carried through all steps


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("nesterov", [True, False])
def test_a_hundred_steps_are_newton_schulz_written_out_in_float64(foreach, nesterov):
    ours, expected = parameters(), [p.detach().clone() for p in parameters()]
    muon = Muon(ours, lr=0.02, momentum=0.9, weight_decay=0.1, nesterov=nesterov, foreach=foreach)
    buffers = [torch.zeros_like(p) for p in expected]
    for step in range(100):
        give_gradients(ours, seed=step)
        muon.step()
        for weight, buffer, parameter in zip(expected, buffers, ours, strict=True):
            grad = parameter.grad
            buffer.mul_(0.9).add_(grad)
            x = grad + 0.9 * buffer if nesterov else buffer.clone()
            x = x / x.norm()
            for _ in range(5):
                a = x @ x.T
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            weight.mul_(1 - 0.02 * 0.1).sub_(0.02 * max(1.0, len(x) / len(x[0])) ** 0.5 * x)
    for weight, parameter in zip(expected, ours, strict=True):
        torch.testing.assert_close(parameter.detach(), weight, rtol=0, atol=1e-12)


def test_what_is_not_chosen_is_as_in_torch():
    weight = nn.Parameter(torch.ones(2, 2))
    ours, its = Muon([weight]).defaults, torch.optim.Muon([weight]).defaults
    assert its.keys() <= ours.keys()
    assert {name: ours[name] for name in its} == its
    adamw = torch.optim.AdamW([weight]).defaults
    assert (ours["adamw_betas"], ours["adamw_eps"]) == (adamw["betas"], adamw["eps"])


def test_converging_coefficients_reach_the_polar_factor():
    matrix = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = newton_schulz(matrix, steps=60, coefficients=(15 / 8, -5 / 4, 3 / 8))
    torch.testing.assert_close(found, polar_factor(matrix), rtol=0, atol=1e-12)
    torch.testing.assert_close(found.mT @ found, torch.eye(4).double().expand(3, 4, 4), rtol=0, atol=1e-12)


def test_stacks_that_are_full_change_nothing(monkeypatch):
    whole, divided = parameters(), parameters()
    give_gradients(whole, divided, seed=0)
    Muon(whole, lr=0.1).step()
    for most in (10, 40, 80):  # less than a matrix, one, and two
        monkeypatch.setitem(STACKED_ENTRIES, "cpu", most)
        Muon(divided, lr=0.1).step()
        assert all(torch.allclose(p, q, rtol=0, atol=1e-12) for p, q in zip(whole, divided, strict=True))
        divided = parameters()
        give_gradients(divided, seed=0)


@pytest.mark.parametrize("method", ["newton_schulz", "svd"])
def test_directions_without_a_gradient_stand_still(method):
    weight = nn.Parameter(torch.zeros(4, 3, dtype=torch.float64))
    muon = Muon([weight], lr=1.0, method=method)
    weight.grad = torch.zeros_like(weight)
    muon.step()
    assert not weight.any()
    weight.grad = torch.zeros_like(weight)
    weight.grad[0, 0] = 1e-3
    muon.step()
    assert weight[0, 0] < -0.5
    assert weight.count_nonzero() == 1


def test_a_polar_factor_has_the_rank_of_its_matrix():
    flat = torch.outer(torch.tensor([3.0, 4.0]), torch.tensor([1.0, 0.0, 0.0]))
    torch.testing.assert_close(polar_factor(flat), flat / 5)
    torch.testing.assert_close(polar_factor(1e-20 * flat), flat / 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.complex128])
@pytest.mark.parametrize("method", ["newton_schulz", "svd"])
def test_updates_have_singular_values_near_the_rate(dtype, method):
    weight = nn.Parameter(torch.zeros(4, 6, dtype=dtype))
    weight.grad = torch.randn(4, 6, dtype=dtype, generator=torch.Generator().manual_seed(0))
    Muon([weight], lr=0.5, weight_decay=0.0, method=method).step()
    assert weight.dtype == dtype
    wide = weight.detach().to(torch.complex128 if dtype.is_complex else torch.float64)
    values = torch.linalg.svdvals(wide) / 0.5
    near = 0.01 if method == "svd" else 0.35  # of one; entries in bfloat16 are rounded by less than a hundredth
    assert (values - 1).abs().max() < near


def test_a_convolution_is_a_matrix_of_its_outputs():
    layer, flat = nn.Conv2d(3, 4, 2).double(), nn.Parameter(torch.zeros(4, 12, dtype=torch.float64))
    flat.data.copy_(layer.weight.detach().flatten(1))
    layer.weight.grad = torch.randn_like(layer.weight)
    flat.grad = layer.weight.grad.flatten(1)
    Muon([layer.weight], lr=0.1).step()
    Muon([flat], lr=0.1).step()
    assert layer.weight.detach().flatten(1).equal(flat.detach())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(7, 4)
        self.hidden = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.tokens.weight


def test_a_model_is_split_into_hidden_matrices_and_the_rest():
    assert [name for name, _ in hidden_matrices(Tied())] == ["hidden.weight"]
    network = nn.Sequential(nn.Conv1d(2, 3, 3), nn.Linear(3, 3), nn.Linear(3, 2))
    assert [name for name, _ in hidden_matrices(network)] == ["0.weight", "1.weight"]
    assert [name for name, _ in hidden_matrices(nn.Linear(2, 2))] == ["weight"]
    assert hidden_matrices(nn.LayerNorm(3)) == []
    network[0].requires_grad_(False)
    assert [name for name, _ in hidden_matrices(network)] == ["1.weight"]
    network[2].requires_grad_(False)  # the output layer is the last one though nobody learns it
    assert [name for name, _ in hidden_matrices(network)] == ["1.weight"]
    assert [group["rule"] for group in Muon(network).param_groups] == ["muon", "adamw"]


def test_what_is_no_hidden_matrix_is_learnt_by_adamw():
    model = Tied()
    reference = copy.deepcopy(model)
    muon = Muon(model, lr=0.02, adamw_lr=0.003, weight_decay=0.01)
    assert [(group["rule"], group["lr"], len(group["params"])) for group in muon.param_groups] == [
        ("muon", 0.02, 1),
        ("adamw", 0.003, 4),
    ]
    others = [p for name, p in reference.named_parameters() if name != "hidden.weight"]
    adamw = torch.optim.AdamW(others, lr=0.003, weight_decay=0.01)
    for step in range(20):
        give_gradients(list(model.parameters()), list(reference.parameters()), seed=step)
        muon.step()
        adamw.step()
    for (name, mine), theirs in zip(model.named_parameters(), reference.parameters(), strict=True):
        assert (name == "hidden.weight") != torch.allclose(mine, theirs, atol=1e-6)


def test_groups_of_tensors_are_split_by_their_axes():
    matrix, bias, table = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(4, 2))
    muon = Muon([{"params": [matrix, bias], "lr": 0.5}, {"params": [table], "rule": "adamw"}], lr=0.1, adamw_lr=0.2)
    assert [(g["rule"], g["lr"]) for g in muon.param_groups] == [("muon", 0.5), ("adamw", 0.5), ("adamw", 0.2)]
    named = Muon([("one", matrix), ("two", bias)])
    assert [group["param_names"] for group in named.param_groups] == [["one"], ["two"]]


def test_a_saved_state_continues_to_the_last_bit():
    model = Tied()
    muon = Muon(model, lr=0.02)
    for step in range(3):
        give_gradients(list(model.parameters()), seed=step)
        muon.step()
    other = copy.deepcopy(model)
    again = Muon(other, lr=0.5, momentum=0.1)
    again.load_state_dict(copy.deepcopy(muon.state_dict()))
    for step in range(3):
        give_gradients(list(model.parameters()), list(other.parameters()), seed=10 + step)
        muon.step()
        again.step()
    assert all(p.equal(q) for p, q in zip(model.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("foreach", [None, False])
def test_maximising_is_minimising_the_negative_and_rates_may_be_tensors(foreach):
    up, down = parameters(), parameters()
    give_gradients(up, down, seed=0)
    for parameter in down:
        parameter.grad.neg_()
    Muon(up, lr=torch.tensor(0.1), maximize=True, foreach=foreach).step()
    Muon(down, lr=0.1, foreach=foreach).step()
    for one, other in zip(up, down, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-7)  # the tensor is of float32


def test_gradients_and_what_has_none_are_left_as_they_are():
    ours = parameters()
    give_gradients(ours, seed=0)
    grads = [p.grad.clone() for p in ours]
    ours[1].grad = None
    before = ours[1].detach().clone()
    muon = Muon(ours, lr=0.1)
    assert muon.step(lambda: 3.0) == 3.0
    assert ours[1].equal(before)
    assert all(p.grad.equal(grad) for p, grad in zip(ours, grads, strict=True) if p.grad is not None)


COMPILE = """
import torch
from lemmata.optim import Muon

def learnt(compiled):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)).double()
    optimizer = Muon(model, lr=0.1)
    step = torch.compile(optimizer.step, backend="aot_eager", fullgraph=True) if compiled else optimizer.step
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 3).double()).square().sum().backward()
        step()
    return torch.nn.utils.parameters_to_vector(model.parameters())

torch.testing.assert_close(learnt(True), learnt(False))
"""


def test_a_step_compiles_as_a_whole():
    # In a process of its own, without the shape checks that tests add.
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_learns_a_map_of_badly_scaled_inputs_sooner_than_gradient_descent():
    generator = torch.Generator().manual_seed(0)
    target = torch.linalg.qr(torch.randn(12, 12, generator=generator)).Q
    x = torch.randn(200, 12, generator=generator) @ torch.diag(torch.logspace(0, -2, 12))
    errors = {}
    for kind, options in ((torch.optim.SGD, {"lr": 0.2, "momentum": 0.9}), (Muon, {"lr": 0.05, "weight_decay": 0.0})):
        weight = nn.Parameter(torch.zeros(12, 12))
        optimizer = kind([weight], **options)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97 if kind is Muon else 1.0)
        for _ in range(150):
            optimizer.zero_grad()
            (x @ (weight - target).T).square().sum(1).mean().backward()
            optimizer.step()
            schedule.step()
        errors[kind] = float((weight.detach() - target).norm() / target.norm())
    assert errors[Muon] < 0.75 * errors[torch.optim.SGD]  # 0.27 and 0.45


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lr": -1.0}, "lr must be >= 0, got -1.0"),
        ({"lr": torch.ones(2)}, "lr must be a number or a tensor without axes, got shape (2,)"),
        ({"momentum": 1.0}, "momentum must be in [0, 1), got 1.0"),
        ({"weight_decay": float("nan")}, "weight_decay must be finite"),
        ({"ns_steps": 0}, "ns_steps must be >= 1, got 0"),
        ({"method": "qr"}, "method must be one of newton_schulz, svd, got 'qr'"),
        ({"adjust_lr_fn": "mine"}, "adjust_lr_fn must be one of original"),
        ({"adamw_betas": (0.9, 1.5)}, "adamw_betas must be in [0, 1), got 1.5"),
        ({"adamw_betas": 0.9}, "adamw_betas must be two numbers, got 0.9"),
        ({"adamw_lr": -1.0}, "adamw_lr must be >= 0, got -1.0"),
        ({"ns_coefficients": "abc"}, "ns_coefficients must be three numbers, got 'abc'"),
        ({"ns_coefficients": (1.0, "b", 2.0)}, "ns_coefficients must be a number, got str"),
        ({"foreach": "no"}, "foreach must be True or False, got 'no'"),
        ({"maximize": "no"}, "maximize must be True or False, got 'no'"),
        ({"nesterov": 1}, "nesterov must be True or False, got 1"),
        ({"ns_dtype": "float32"}, "ns_dtype must be a floating-point dtype such as torch.bfloat16, got 'float32'"),
        ({"ns_dtype": torch.int64}, "ns_dtype must be a floating-point dtype such as torch.bfloat16, got torch.int64"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_options_are_answered(options, words):
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        Muon([nn.Parameter(torch.ones(2, 2))], **options)


def test_torchs_checkpoint_is_ours_and_a_copy_goes_on():
    ours, theirs = parameters(), parameters()
    peer = torch.optim.Muon(theirs, lr=0.02, momentum=0.8)
    give_gradients(theirs, ours, seed=0)
    peer.step()
    muon = Muon(ours, ns_dtype=torch.bfloat16)
    muon.load_state_dict(copy.deepcopy(peer.state_dict()))
    with torch.no_grad():
        for own, other in zip(ours, theirs, strict=True):
            own.copy_(other)
    give_gradients(theirs, ours, seed=1)
    copied_weights, copied = copy.deepcopy((ours, muon))
    give_gradients(copied_weights, seed=1)
    for optimizer in (peer, muon, copied):
        optimizer.step()
    for own, other, third in zip(ours, theirs, copied_weights, strict=True):
        assert (own - other).abs().max() < 0.02 * 0.05  # rounding in bfloat16
        assert own.equal(third)
    copied.add_param_group({"params": [nn.Parameter(torch.ones(3))]})
    peer.load_state_dict(copy.deepcopy(muon.state_dict()))


def test_a_rate_that_is_a_tensor_reaches_vectors_too():
    ends = []
    for lr in (0.1, torch.tensor(0.1)):
        weight = nn.Parameter(torch.ones(3))
        weight.grad = torch.ones(3)
        Muon([weight], lr=lr, foreach=True).step()
        ends.append(weight.detach())
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
@pytest.mark.parametrize("foreach", [None, False])
def test_parameters_without_entries_are_passed_over(shape, foreach):
    empty, weight = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.eye(2))
    optimizer = Muon([empty, weight], lr=0.5, weight_decay=0.0, method="svd", foreach=foreach)
    empty.grad, weight.grad = torch.ones(shape), torch.eye(2)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), 0.5 * torch.eye(2))


@pytest.mark.usefixtures("unchecked")
def test_bad_parameters_are_answered():
    with pytest.raises(ValueError, match="rule must be one of muon, adamw"):
        Muon([{"params": [nn.Parameter(torch.ones(2, 2))], "rule": "sgd"}])
    with pytest.raises(ValueError, match="no parameter to learn"):
        Muon(nn.Linear(2, 2).requires_grad_(False))
    with pytest.raises(ValueError, match="empty parameter list"):
        Muon([])
    with pytest.raises(
        ValueError, match=r'rule must be "adamw" for a parameter with fewer than two axes, got shape \(3,\)'
    ):
        Muon([{"params": [nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(3))], "rule": "muon"}])
    with pytest.raises(TypeError, match="can only optimize Tensors"):
        Muon("abc")
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="dense gradients"):
        Muon(table.parameters()).step()


@pytest.mark.parametrize("options", [{}, {"method": "svd", "nesterov": False, "foreach": False}])
def test_it_conforms(options):
    check_optimizer(Muon, lr=0.02, invariances=["scale", "separation"], **options)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 2e-3), (torch.float64, 1e-11), (torch.complex128, 1e-11)])
@pytest.mark.parametrize("shape", [(6, 12), (40, 4), (1, 9), (5, 100)])
@pytest.mark.parametrize("smallest", [1.0, 1e-3, 0.0])
def test_long_matrices_go_the_short_way_to_the_same_place(dtype, near, shape, smallest):
    """What rounding does grows by a power of 3.4445, to a few thousandths in float32."""
    generator = torch.Generator().manual_seed(0)
    u, values, vh = torch.linalg.svd(torch.randn(3, *shape, dtype=dtype, generator=generator), full_matrices=False)
    matrices = (u * torch.linspace(1.0, smallest, values.shape[-1]).to(values.dtype)) @ vh
    weights = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for _ in matrices]
    for weight, matrix in zip(weights, matrices, strict=True):
        weight.grad = matrix.clone()
    Muon(weights, lr=1.0, weight_decay=0.0, adjust_lr_fn="rms_to_rms").step()
    expected = -newton_schulz(matrices) * (shape[0] / shape[1]) ** 0.5
    largest = expected.abs().max()
    assert all((w - e).abs().max() <= near * largest for w, e in zip(weights, expected, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_singular_values_are_never_asked_for_in_half_precision(dtype):
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(4, 3, dtype=dtype))
    weight.grad = torch.randn(4, 3).to(dtype)
    Muon([weight], lr=1.0, weight_decay=0.0, adjust_lr_fn="rms_to_rms", method="svd", ns_dtype=torch.bfloat16).step()
    expected = -((4 / 3) ** 0.5) * polar_factor(weight.grad.float())
    torch.testing.assert_close(weight.detach().float(), expected, rtol=0, atol=8 * torch.finfo(dtype).eps)
