"""Covariance functions: scikit-learn's values and derivatives, gradients at equal points, sums, names, bad input."""

import math

import pytest
import torch
from sklearn.gaussian_process import kernels

from lemmata.certified.definiteness import certify_definiteness
from lemmata.kernel.covariance_functions import ConstantKernel, ProductKernel, SumKernel
from lemmata.kernel.covariance_profiles import squared_distances
from lemmata.kernel.inner_product_kernels import ArcCosineKernel, LinearKernel
from lemmata.kernel.named_kernels import covariance_function
from lemmata.kernel.stationary_kernels import MaternKernel, PeriodicKernel, RBFKernel

# Ours, scikit-learn's, our parameters in the order of its derivatives, and the factors between them.
PAIRS = {
    "rbf": (RBFKernel([0.7, 1.3]), kernels.RBF([0.7, 1.3]), {"log_length_scale": 1}),
    "matern12": (MaternKernel(0.5, [0.7, 1.3]), kernels.Matern([0.7, 1.3], nu=0.5), {"log_length_scale": 1}),
    "matern32": (MaternKernel(1.5, [0.7, 1.3]), kernels.Matern([0.7, 1.3], nu=1.5), {"log_length_scale": 1}),
    "matern52": (MaternKernel(2.5, 0.7), kernels.Matern(0.7, nu=2.5), {"log_length_scale": 1}),
    "linear": (LinearKernel(2.0, 0.49), kernels.DotProduct(0.7), {"log_bias_variance": 2}),
    "constant": (ConstantKernel(0.3), kernels.ConstantKernel(0.3), {"log_variance": 1}),
}
KERNELS = [
    RBFKernel([0.7, 1.3]), MaternKernel(0.5), MaternKernel(1.5, 0.8), MaternKernel(2.5, 0.8, 2.0),
    LinearKernel(2.0, 0.3), PeriodicKernel(1.7, [0.8, 1.1]), ArcCosineKernel(), ArcCosineKernel(0, bias_variance=0.2),
    ConstantKernel(),
    2.0 * RBFKernel() + MaternKernel(1.5) * LinearKernel() + 0.5,
]  # fmt: skip


def points(n=7, features=2):
    return torch.randn(n, features, generator=torch.Generator().manual_seed(n), dtype=torch.float64)


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_derivatives_are_scikit_learns(name):
    ours, theirs, parameters = PAIRS[name]
    x, y = points(), points(5)
    value, slopes = theirs(x.numpy(), eval_gradient=True)
    assert torch.allclose(ours(x, y), torch.from_numpy(theirs(x.numpy(), y.numpy())), rtol=0, atol=1e-12)
    assert torch.allclose(ours(x), torch.from_numpy(value), rtol=0, atol=1e-12)
    found = ours.derivatives(x)
    several = torch.cat([found[each].reshape(-1, 7, 7) * factor for each, factor in parameters.items()])
    assert torch.allclose(several, torch.from_numpy(slopes).movedim(2, 0), rtol=0, atol=1e-10)


def test_the_periodic_kernel_is_scikit_learns_of_one_feature():
    x = points(7, 1)
    known = kernels.ExpSineSquared(length_scale=0.8, periodicity=1.7)(x.numpy())
    assert torch.allclose(PeriodicKernel(1.7, 0.8)(x), torch.from_numpy(known), rtol=0, atol=1e-12)
    assert torch.allclose(PeriodicKernel(1.7, 0.8)(x + 1.7, x), PeriodicKernel(1.7, 0.8)(x), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_every_kernel_is_a_covariance(kernel):
    x = torch.cat([points(9), points(9)[:3]])
    gram = kernel(x).detach()
    assert torch.allclose(gram, gram.mT)
    assert torch.allclose(kernel.diagonal(x), gram.diagonal(), rtol=1e-12)
    assert torch.allclose(kernel(x, points(5)), kernel(torch.cat([x, points(5)]))[:12, 12:], rtol=1e-12)
    assert certify_definiteness((gram + gram.mT) / 2, tolerance=1e-9).semidefinite


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_gradients_of_points_and_parameters(kernel):
    x, y = points(4).requires_grad_(), points(3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: kernel(x, y), (x, y))
    logs = tuple(p.detach().clone().requires_grad_() for p in kernel.parameters() if p.requires_grad)
    names = [name for name, p in kernel.named_parameters() if p.requires_grad]

    def by_parameters(*logs):
        return torch.func.functional_call(kernel, dict(zip(names, logs, strict=True)), (x.detach(),))

    assert torch.autograd.gradcheck(by_parameters, logs)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_gradients_at_equal_points_are_finite_and_right(kernel):
    x = torch.cat([points(3), points(3)]).requires_grad_()
    weights = torch.randn(6, 6, dtype=torch.float64)
    (slope,) = torch.autograd.grad((weights * kernel(x)).sum(), x, materialize_grads=True)
    assert slope.isfinite().all()
    same = points(1).requires_grad_()
    (own,) = torch.autograd.grad(kernel(same, same.detach()).sum(), same, materialize_grads=True)
    if isinstance(kernel, RBFKernel):  # at its largest a function of the distance is flat
        assert (own == 0).all()


@pytest.mark.parametrize("kernel", [RBFKernel(0.7), MaternKernel(1.5, 0.7), MaternKernel(2.5, 0.7)], ids=str)
def test_the_mixed_second_derivative_at_equal_points_is_the_variance_of_the_slope(kernel):
    x = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
    y = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(kernel(x, y).sum(), x, create_graph=True)
    (mixed,) = torch.autograd.grad(slope.sum(), y)
    factor = 1.0 if type(kernel) is RBFKernel else {1.5: 3.0, 2.5: 5 / 3}[kernel.smoothness]
    assert math.isclose(mixed.item(), factor / 0.49, rel_tol=1e-12)


def test_the_arc_cosine_kernel_is_cho_and_sauls():
    x = points(6)
    kernel = ArcCosineKernel(bias_variance=0.0)
    sizes, cosine = x.norm(dim=1), torch.nn.functional.cosine_similarity(x[:, None], x[None], dim=2).clamp(-1, 1)
    angle = torch.arccos(cosine)
    known = sizes[:, None] * sizes / (2 * math.pi) * (angle.sin() + (math.pi - angle) * cosine)
    assert torch.allclose(kernel(x), known, atol=1e-7)  # the reference loses half of the digits at equal points
    assert torch.allclose(ArcCosineKernel(0, bias_variance=0.0)(x), 1 - angle / math.pi, atol=1e-7)


def test_distances_of_many_features_are_zero_where_points_are_equal():
    x = torch.randn(20, 100, dtype=torch.float64) + 1e3
    found = squared_distances(x, x.clone())
    assert (found.diagonal() == 0).all()
    assert torch.allclose(found, torch.cdist(x, x).square(), rtol=1e-6)
    assert squared_distances(x[:, :3], x[:, :3])[0, 0] == 0


def test_parameters_are_set_by_name_and_keep_their_zero():
    kernel = MaternKernel(1.5, [1.0, 2.0])
    kernel.length_scale, kernel.variance = [3.0, 4.0], 5.0
    assert torch.allclose(kernel.length_scale, torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert str(kernel) == "MaternKernel(smoothness=1.5, length_scale=[3, 4], variance=5)"
    assert not LinearKernel().log_bias_variance.requires_grad
    assert LinearKernel(bias_variance=0.1).log_bias_variance.requires_grad


def test_float32_points_give_a_float32_matrix():
    x = points().float()
    for kernel in KERNELS:
        assert kernel(x).dtype is torch.float32
        assert kernel.diagonal(x).dtype is torch.float32
        assert torch.allclose(kernel(x), kernel(x.double()).float(), atol=1e-5)


def test_names():
    kernel = covariance_function("rbf * periodic + linear", features=2)
    assert isinstance(kernel, SumKernel)
    assert isinstance(kernel.parts[0], ProductKernel)
    assert kernel.parts[0].parts[0].length_scale.shape == (2,)
    learnt = [name for name, value in kernel.named_parameters() if value.requires_grad]
    assert "parts.0.parts.1.log_variance" not in learnt
    assert torch.allclose(kernel(points()), (RBFKernel() * PeriodicKernel() + LinearKernel())(points()))


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        (lambda: RBFKernel(0.0)(points()), ValueError, "length_scale must be > 0"),
        (lambda: RBFKernel([1.0, -1.0]), ValueError, "length_scale must be one number > 0, or one for each feature"),
        (lambda: RBFKernel(variance=0.0), ValueError, "variance must be > 0"),
        (lambda: MaternKernel(1.0), ValueError, "smoothness must be 0.5, 1.5 or 2.5, got 1.0"),
        (lambda: PeriodicKernel(-1.0), ValueError, "period must be > 0"),
        (lambda: ArcCosineKernel(2), ValueError, "degree must be <= 1"),
        (lambda: RBFKernel([1.0, 1.0])(points(3, 3)), ValueError, "x1 must have 2 features"),
        (lambda: RBFKernel()(points(), points(3, 3)), ValueError, "x2 must have 2 features"),
        (lambda: RBFKernel()(points()[0]), ValueError, r"x1 must be a \(points, features\) tensor"),
        (lambda: RBFKernel()(points().int()), TypeError, "x1 must hold floating-point numbers"),
        (lambda: covariance_function("rbf +"), ValueError, "kernel must be one of rbf"),
        (lambda: RBFKernel() * -1.0, ValueError, "variance must be > 0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input(bad, error, says):
    with pytest.raises(error, match=says):
        bad()
