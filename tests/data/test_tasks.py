"""Sine-wave tasks: every point is on the wave of its task, amplitudes and phases fill their ranges."""

import math

import pytest
import torch
from scipy import stats

from lemmata.data import sinusoids


def test_every_point_is_on_the_wave_of_its_task():
    tasks = sinusoids(n=300, shots=5, queries=7).train
    assert (tasks.x.shape, tasks.query_x.shape) == ((300, 5, 1), (300, 7, 1))
    for x, y in ((tasks.x, tasks.y), (tasks.query_x, tasks.query_y)):
        wave = tasks.amplitude[:, None, None] * torch.sin(x - tasks.phase[:, None, None])
        assert (wave - y).abs().max() < 1e-5


def test_support_and_query_are_different_points():
    tasks = sinusoids().train
    assert not (tasks.x == tasks.query_x.mT).any()


@pytest.mark.parametrize(("name", "low", "high"), [("amplitude", 0.1, 5), ("phase", 0, math.pi), ("query_x", -5, 5)])
def test_what_is_drawn_is_uniform(name, low, high):
    values = sinusoids().train.columns[name].flatten().numpy()
    assert stats.kstest((values - low) / (high - low), "uniform").pvalue > 1e-9


def test_noise_spoils_the_support_and_spares_the_query():
    clean, noisy = sinusoids().train, sinusoids(noise=0.3).train
    assert torch.equal(clean.query_y, noisy.query_y)
    assert torch.equal(clean.x, noisy.x)
    gap = (noisy.y - clean.y).flatten().numpy()
    assert stats.kstest(gap / 0.3, "norm").pvalue > 1e-9


def test_a_batch_of_tasks_is_a_batch_of_examples():
    batch = sinusoids().train[torch.tensor([4, 2])]
    assert len(batch) == 2
    assert batch.query_y.shape == (2, 10, 1)
