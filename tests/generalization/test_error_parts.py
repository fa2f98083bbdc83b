"""The parts of an error on finite problems, and the deviation of Lipschitz functions against scipy."""

import pytest
import torch
from scipy import stats

from lemmata.generalization import decompose, lipschitz_deviation


def problem(seed=0):
    generator = torch.Generator().manual_seed(seed)
    losses = torch.rand(7, 5, generator=generator, dtype=torch.float64)
    probability = torch.softmax(torch.randn(5, generator=generator, dtype=torch.float64), 0)
    samples = torch.randint(0, 5, (11, 4), generator=generator)
    return losses, probability, samples, torch.randint(2, 7, (11,), generator=generator)


def test_a_batch_is_its_samples_one_by_one():
    losses, probability, samples, learnt = problem()
    members = torch.arange(2, 7)
    together = decompose(losses, probability, samples, members, learnt)
    for i in range(len(samples)):
        alone = decompose(losses, probability, samples[i], members, int(learnt[i]))
        for part in ("population", "optimisation", "statistical", "approximation", "gap", "bound"):
            whole = getattr(together, part).expand(11)
            assert float(whole[i]) == pytest.approx(float(getattr(alone, part)), abs=1e-15)


def test_the_whole_distribution_as_a_sample_leaves_no_statistical_error():
    losses = problem()[0]
    parts = decompose(losses, torch.full((5,), 0.2, dtype=torch.float64), torch.arange(5), torch.arange(7), 3)
    assert float(parts.statistical) == pytest.approx(0, abs=1e-15)
    assert float(parts.approximation) == 0
    assert float(parts.population) == pytest.approx(float(parts.optimisation))


def test_on_the_line_the_deviation_is_that_of_sorted_samples():
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(40, 1, generator=generator, dtype=torch.float64) for _ in range(2))
    theirs = stats.wasserstein_distance(x[:, 0].numpy(), y[:, 0].numpy())
    assert float(lipschitz_deviation(x, y)) == pytest.approx(theirs, rel=1e-12)


def test_the_deviation_is_a_distance():
    generator = torch.Generator().manual_seed(4)
    x, y, z = (torch.randn(15, 3, generator=generator, dtype=torch.float64) for _ in range(3))
    assert float(lipschitz_deviation(x, x.flip(0))) == 0
    assert float(lipschitz_deviation(x, y)) == pytest.approx(float(lipschitz_deviation(y, x)))
    assert lipschitz_deviation(x, z) <= lipschitz_deviation(x, y) + lipschitz_deviation(y, z)
    assert float(lipschitz_deviation(x, x + torch.tensor([3.0, 4.0, 0.0]))) == pytest.approx(5.0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"probability": torch.tensor([0.5, 0.2, 0.1, 0.1, 0.3])}, ValueError, "sum to 1, got a sum of 1.2"),
        ({"probability": torch.tensor([0.9, -0.2, 0.1, 0.1, 0.1])}, ValueError, "probability must be >= 0"),
        ({"probability": torch.ones(3) / 3}, ValueError, "probability must have 5 entries, got 3"),
        ({"members": torch.tensor([], dtype=torch.long)}, ValueError, "members must not be empty"),
        ({"members": torch.tensor([7])}, ValueError, "members must lie between 0 and 6"),
        ({"members": torch.tensor([[1]])}, ValueError, "members must be"),
        ({"sample": torch.tensor([], dtype=torch.long)}, ValueError, "sample must not be empty"),
        ({"sample": torch.tensor([0.0])}, TypeError, "sample must hold integers"),
        ({"learnt": 9}, ValueError, "learnt must lie between 0 and 6"),
    ],
)
def test_bad_input_is_answered(change, error, message):
    losses, probability, samples, _ = problem()
    usual = {"losses": losses, "probability": probability, "sample": samples[0]}
    usual |= {"members": torch.arange(7), "learnt": 0}
    with pytest.raises(error, match=message):
        decompose(**usual | change)


@pytest.mark.usefixtures("unchecked")
def test_samples_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="x and y must have one shape"):
        lipschitz_deviation(torch.zeros(3, 2), torch.zeros(4, 2))
