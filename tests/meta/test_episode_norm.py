"""Normalisation by a support: no query sees another, and running statistics are refused."""

import pytest
import torch
from torch import nn

from lemmata.meta import MAML, EpisodeNorm


def learner(statistics):
    torch.manual_seed(0)
    layers = nn.Linear(3, 5), EpisodeNorm(5, statistics), nn.Tanh(), nn.Linear(5, 2)
    return MAML(nn.Sequential(*layers), 2, 0.1).double()


def tasks(queries=6):
    generator = torch.Generator().manual_seed(2)
    x, query = (torch.randn(3, size, 3, generator=generator, dtype=torch.float64) for size in (8, queries))
    return x, torch.arange(8).repeat(3, 1) % 2, query


def test_no_query_sees_another():
    x, y, query = tasks()
    maml = learner("support")
    alone = torch.cat([maml(x, y, query[:, k : k + 1]) for k in range(6)], 1)
    assert torch.allclose(maml(x, y, query), alone)


def test_by_the_query_it_is_batch_normalisation_in_training_mode():
    x, y, query = tasks()
    ours, torchs = EpisodeNorm(3, "query").double(), nn.BatchNorm1d(3).double().train()
    assert torch.allclose(ours(query[0]), torchs(query[0]))
    maml = learner("query")
    assert not torch.allclose(maml(x, y, query)[:, :2], maml(x, y, query[:, :2]))  # transductive, and said to be


@pytest.mark.parametrize("shape", [(7, 4), (7, 4, 5), (7, 4, 5, 6)])
def test_all_rows_alone_are_their_own_support(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = EpisodeNorm(4).double()(x)
    axes = [0, *range(2, x.ndim)]
    assert torch.allclose(found.mean(axes), torch.zeros(4).double(), atol=1e-12)
    assert torch.allclose(found.var(axes, correction=0), torch.ones(4).double(), atol=1e-4)


def test_a_failure_in_between_leaves_nothing_behind():
    maml, (x, y, query) = learner("support"), tasks()
    with pytest.raises(ValueError, match="query_x"):
        maml(x, y, query[..., :2])
    assert maml.model[1].rows is None


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered_in_a_sentence():
    with pytest.raises(ValueError, match="model must normalise by the task, but 1 is a BatchNorm1d"):
        MAML(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    with pytest.raises(ValueError, match="statistics must be one of support, query, got 'batch'"):
        EpisodeNorm(3, "batch")
    with pytest.raises(ValueError, match=r"x must be \(batch, channels, ...\) with 3 channels, got \(2, 4\)"):
        EpisodeNorm(3)(torch.zeros(2, 4))
