"""The closed form: gradients, labels and radii that cannot be."""

import math

import pytest
import torch

from lemmata.robustness.robust_loss import robust_logistic_loss, worst_margin

X = torch.tensor([[1.0, 0.0], [0.5, -1.0]], dtype=torch.float64)
Y = torch.tensor([1, -1])


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
def test_gradients_are_those_of_the_formula(norm):
    weight = torch.tensor([0.7, -1.3], dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w, b: robust_logistic_loss(w, b, X, Y, 0.3, norm), (weight, bias))


def test_the_radius_costs_margin_by_the_dual_norm_and_large_losses_stay_finite():
    weight = torch.tensor([3.0, -4.0]).double()
    plain = worst_margin(weight, 0.0, X, Y, 0.0)
    for norm, dual in ((1, 4.0), (2, 5.0), (math.inf, 7.0)):
        assert torch.allclose(plain - worst_margin(weight, 0.0, X, Y, 0.5, norm), torch.tensor(0.5 * dual).double())
    assert torch.isfinite(robust_logistic_loss(1e6 * weight, 0.0, X, Y, 0.5)).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"eps": -0.1}, "eps must be >= 0, got -0.1"),
        ({"norm": 0.5}, "norm must be >= 1, got 0.5"),
        ({"y": torch.tensor([0, 1])}, "use 2 \\* y - 1"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(changed, words):
    given = {"weight": torch.ones(2).double(), "bias": 0.0, "x": X, "y": Y, "eps": 0.1, **changed}
    with pytest.raises(ValueError, match=words):
        robust_logistic_loss(**given)
