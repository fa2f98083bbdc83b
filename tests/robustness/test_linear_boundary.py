"""Distances of linear models at the ends of all ranges: scales, exponents, ties, rows alike, one of everything."""

import math

import pytest
import torch

from lemmata.robustness import linear_distance, pgd

NORMS = (1, 1.5, 2, 5, math.inf)


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_the_scale_of_the_logits_changes_nothing(norm, scale):
    weight, bias, x = drawn(4, 6), drawn(4, seed=1), drawn(10, 6, seed=2)
    plain, scaled = linear_distance(weight, bias, x, norm), linear_distance(scale * weight, scale * bias, x, norm)
    assert torch.allclose(scaled.distances, plain.distances, rtol=1e-12)
    assert torch.allclose(scaled.perturbations, plain.perturbations, rtol=1e-11)
    assert torch.equal(scaled.nearest, plain.nearest)


@pytest.mark.parametrize("norm", NORMS)
def test_just_beyond_the_boundary_the_answer_is_the_nearest_class(norm):
    weight, bias, x = (
        drawn(4, 6, dtype=torch.float32),
        drawn(4, seed=1, dtype=torch.float32),
        drawn(50, 6, seed=2).float(),
    )
    found = linear_distance(weight, bias, x, norm)
    assert found.distances.dtype == torch.float32
    for factor, answers in ((0.999, (x @ weight.mT + bias).argmax(1)), (1.001, found.nearest)):
        assert torch.equal(((x + factor * found.perturbations) @ weight.mT + bias).argmax(1), answers)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_no_attack_succeeds_nearer_and_an_ascent_succeeds_little_farther(norm):
    model = torch.nn.Linear(6, 3).double().eval()
    x = drawn(30, 6)
    y = model(x).argmax(1)
    weight, bias = model.weight.detach(), model.bias.detach()
    found, box = linear_distance(weight, bias, x, norm), (-50.0, 50.0)
    for i in (0, 7, 20):
        one, eps = slice(i, i + 1), float(found.distances[i])
        assert not pgd(model, x[one], y[one], 0.999 * eps, norm, box, restarts=3).success.any()

        def gap(logits, y, targets, i=i):
            return logits[:, found.nearest[i]] - logits[:, y[0]]

        assert pgd(model, x[one], y[one], 1.01 * eps, norm, box, steps=40, step=eps / 10, goal=gap).success.all()


def test_one_row_is_a_binary_classifier():
    weight, bias, x = drawn(1, 5), drawn(1, seed=1), drawn(20, 5, seed=2)
    one = linear_distance(weight, bias, x)
    two = linear_distance(torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2, x)
    assert torch.allclose(one.distances, two.distances)
    assert torch.allclose(one.perturbations, two.perturbations)
    assert torch.equal(one.nearest, ((x @ weight[0] + bias) <= 0).long())


def test_classes_that_no_perturbation_reaches_are_infinitely_far():
    weight = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    found = linear_distance(weight, torch.tensor([0.5, 0.0, 0.4]), torch.zeros(1, 2))
    assert found.distances.tolist() == [math.inf]
    assert bool(found.perturbations.isnan().all())
    tied = linear_distance(weight, torch.zeros(3), torch.zeros(1, 2))
    assert tied.distances.tolist() == [0.0]
    assert tied.perturbations.tolist() == [[0.0, 0.0]]
    reached = linear_distance(
        torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]), torch.tensor([1.0, 0.0, 0.0]), torch.zeros(1, 2)
    )
    assert (reached.distances.tolist(), reached.nearest.tolist()) == ([1.0], [2])


def test_exponents_near_the_ends_are_near_the_ends():
    weight, bias, x = drawn(4, 6), drawn(4, seed=1), drawn(10, 6, seed=2)
    for near, end in ((1 + 1e-9, 1), (1e9, math.inf)):
        ours, theirs = (linear_distance(weight, bias, x, norm).distances for norm in (near, end))
        assert torch.allclose(ours, theirs, rtol=1e-6)


def test_a_larger_norm_is_a_shorter_way():
    weight, bias, x = drawn(4, 6), drawn(4, seed=1), drawn(10, 6, seed=2)
    distances = torch.stack([linear_distance(weight, bias, x, norm).distances for norm in NORMS])
    assert bool((distances.diff(dim=0) <= 1e-12).all())


@pytest.mark.parametrize("norm", [1.5, 2, math.inf])
def test_distances_can_be_trained(norm):
    weight, bias, x = drawn(3, 4), drawn(3, seed=1), drawn(5, 4, seed=2)
    leaves = [each.requires_grad_() for each in (weight, bias, x)]
    assert torch.autograd.gradcheck(lambda w, b, x: linear_distance(w, b, x, norm).distances, leaves)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    weight, bias, x = drawn(3, 4), drawn(3), drawn(5, 4)
    for arguments, error, message in [
        ((weight[0], bias, x), ValueError, r"weight must be a \(classes, inputs\) tensor"),
        ((weight, bias[:2], x), ValueError, "bias must be a .* tensor to fit weight"),
        ((weight, bias, x[:, :3]), ValueError, "x must be a .* tensor to fit weight"),
        ((weight, bias, x[0]), ValueError, "x must be a .* tensor to fit weight"),
        ((weight, bias, x.float()), TypeError, "x must have the dtype of weight"),
        ((weight, bias, x, 0.5), ValueError, r"norm must be >= 1, got 0\.5"),
        ((weight * math.nan, bias, x), ValueError, "weight must be finite"),
    ]:
        with pytest.raises(error, match=message):
            linear_distance(*arguments)
