"""MMD and its test: scikit-learn's kernels, the level of the test, gradients, and what is refused."""

import pytest
import torch

from lemmata.measure.maximum_mean_discrepancy import kid, median_bandwidth, mmd, permutation_test
from lemmata.measure.sample_distances import energy_distance


def samples(n=20, m=25, shift=0.4):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    return x, shift + torch.randn(m, 3, generator=generator, dtype=torch.float64)


def by_hand(gram, x, y, unbiased):
    within = []
    for z in (x, y):
        pairs = torch.as_tensor(gram(z.numpy(), z.numpy()))
        within.append((pairs.sum() - unbiased * pairs.trace()) / (len(z) * (len(z) - unbiased)))
    return float(sum(within) - 2 * torch.as_tensor(gram(x.numpy(), y.numpy())).mean())


@pytest.mark.parametrize("unbiased", [True, False])
def test_values_are_those_of_scikit_learns_kernels(unbiased):
    pairwise = pytest.importorskip("sklearn.metrics.pairwise", reason="scikit-learn is not installed")
    x, y = samples()
    kernels = {
        "polynomial": pairwise.polynomial_kernel,  # degree 3, gamma 1 / features, 1 added: those of KID
        "linear": pairwise.linear_kernel,
        "gaussian": lambda a, b: pairwise.rbf_kernel(a, b, gamma=1 / (2 * 0.7**2)),
    }
    for name, gram in kernels.items():
        more = {"bandwidth": 0.7} if name == "gaussian" else {}
        found = mmd(x, y, name, unbiased=unbiased, **more)
        assert found.item() == pytest.approx(by_hand(gram, x, y, unbiased), abs=1e-12)
    assert kid(x, y).item() == pytest.approx(by_hand(kernels["polynomial"], x, y, True), abs=1e-12)


def test_the_kernel_of_distances_gives_the_energy_distance_and_means_give_the_linear_one():
    x, y = samples()
    for unbiased in (True, False):
        assert mmd(x, y, "energy", unbiased=unbiased).item() == pytest.approx(
            energy_distance(x, y, unbiased=unbiased).item()
        )
    means = (x.mean(0) - y.mean(0)).square().sum()
    assert mmd(x, y, "linear", unbiased=False).item() == pytest.approx(means.item())
    assert mmd(x, y, lambda a, b: a @ b.mT, unbiased=False).item() == pytest.approx(means.item())


def test_the_bandwidth_is_the_median_distance_in_any_unit():
    x, y = samples()
    assert median_bandwidth(1e3 * x, 1e3 * y) == pytest.approx(1e3 * median_bandwidth(x, y))
    assert mmd(1e3 * x, 1e3 * y).item() == pytest.approx(mmd(x, y).item())
    assert mmd(x, y).item() == pytest.approx(mmd(x, y, bandwidth=median_bandwidth(x, y)).item())
    assert median_bandwidth(torch.ones(3, 1), torch.ones(2, 1)) == 1.0


def test_gradients_reach_the_samples():
    x, y = samples(3, 2)
    x.requires_grad_()
    for kernel in ("gaussian", "polynomial", "linear", "energy"):
        assert torch.autograd.gradcheck(lambda x, kernel=kernel: mmd(x, y, kernel, bandwidth=1.0), x)


def test_the_test_keeps_its_level_and_finds_a_shift():
    generator = torch.Generator().manual_seed(0)
    p_values = []
    for _ in range(60):
        z = torch.randn(24, 2, generator=generator)
        p_values.append(permutation_test(z[:10], z[10:], permutations=99, generator=generator).p_value)
    assert 0.5 - 0.2 < torch.tensor(p_values).mean() < 0.5 + 0.2  # uniform, but for 60 draws
    for kernel in ("energy", "gaussian"):
        found = permutation_test(*samples(40, 40, 1.0), kernel, generator=generator)
        assert found.p_value < 0.01
        assert found.value > found.threshold
    x, y = samples()
    assert found._replace(value=0.0) != permutation_test(x, y, "gaussian", generator=generator)
    assert permutation_test(x, y, generator=generator).value == pytest.approx(
        energy_distance(x, y, unbiased=True).item()
    )


def test_equal_samples_are_no_evidence():
    x, _ = samples()
    assert permutation_test(x, x, permutations=50, generator=torch.Generator().manual_seed(0)).p_value == 1.0


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused():
    x, y = samples()
    with pytest.raises(ValueError, match="kernel must be one of gaussian"):
        mmd(x, y, "rbf")
    with pytest.raises(ValueError, match="bandwidth must be > 0, got 0"):
        mmd(x, y, bandwidth=0.0)
    with pytest.raises(ValueError, match="y must have at least 2 points, got 1"):
        kid(x, y[:1])
    with pytest.raises(ValueError, match="level must be > 0 and < 1, got 1"):
        permutation_test(x, y, level=1.0)
