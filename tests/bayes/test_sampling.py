"""Sampling: draws are right, chains are their own, runs go on to the same bits, bad input gets a sentence."""

import functools
import math
import os
import signal

import pytest
import torch

from lemmata.bayes import (
    ChainStreams,
    ChEES,
    HamiltonianMonteCarlo,
    MetropolisAdjustedLangevin,
    MetropolisHastings,
    UnadjustedLangevin,
    UnderdampedLangevin,
    sample,
)
from lemmata.bayes.chees import ALONE
from lemmata.bayes.step_adaptation import DualAveraging, PooledCovariance, mass_windows


def unit(x):
    return -0.5 * x.square().sum(1)


SCALES = torch.logspace(-2, 1, 5, dtype=torch.float64)
KERNELS = {
    "hmc": functools.partial(HamiltonianMonteCarlo, step=0.3, steps=3, jitter=1.0),
    "chees": functools.partial(ChEES, step=0.3, length=1.0),
    "walk": functools.partial(MetropolisHastings, step=1.0),
    "mala": functools.partial(MetropolisAdjustedLangevin, step=0.2),
    "ula": functools.partial(UnadjustedLangevin, step=0.1),
    "underdamped": functools.partial(UnderdampedLangevin, step=0.2),
}
zeros = torch.zeros(2, dtype=torch.float64)


def test_scales_that_differ_by_a_thousand_are_learnt_in_a_warm_up():
    draws = sample(lambda x: unit(x / SCALES), torch.ones(5).double(), chains=16, draws=300, warmup=400, seed=0)
    found = draws.summary()
    assert found.diagnostics.r_hat.max() < 1.03
    assert (found.diagnostics.standard_deviation / SCALES - 1).abs().max() < 0.1
    assert (found.diagnostics.mean / found.diagnostics.mcse).abs().max() < 5
    ratio = draws.kernel.mass.matrix * SCALES.square()
    assert 0.5 < ratio.min() < ratio.max() < 2


def test_a_dense_mass_learns_what_is_correlated():
    covariance = torch.tensor([[1.0, 0.99], [0.99, 1.0]], dtype=torch.float64)
    inverse = torch.linalg.inv(covariance)
    draws = sample(lambda x: -0.5 * ((x @ inverse) * x).sum(1), zeros, draws=300, warmup=400, mass="dense", seed=0)
    assert (draws.flat.T.cov() - covariance).abs().max() < 0.1
    assert (torch.linalg.inv(draws.kernel.mass.matrix) - covariance).abs().max() < 0.3


def test_a_single_chain_keeps_its_length_and_goes_to_the_other_side():
    draws = sample(lambda x: unit(x / SCALES), torch.ones(5).double(), chains=1, draws=600, warmup=300, seed=0)
    assert draws.kernel.length == pytest.approx(ALONE)
    assert abs(math.tan(ALONE) - ALONE) < 2e-3  # where sin(T) / T is least
    assert draws.summary().diagnostics.bulk.min() > 300


@pytest.mark.parametrize("name", ["hmc", "chees", "walk", "mala"])
def test_steps_are_tuned_to_the_acceptance_that_the_kernel_asks_for(name):
    draws = sample(unit, torch.zeros(8).double(), chains=32, draws=100, warmup=600, kernel=KERNELS[name], seed=0)
    assert abs(draws.acceptance.mean() - draws.kernel.target_acceptance) < 0.2


@pytest.mark.parametrize("name", KERNELS)
def test_a_chain_is_the_same_alone_as_among_sixty_four(name):
    start = torch.randn(64, 2, dtype=torch.float64)
    together = sample(unit, start, draws=70, warmup=0, kernel=KERNELS[name], seed=5)
    alone = sample(unit, start[:1], draws=70, warmup=0, kernel=KERNELS[name], seed=5)
    assert torch.equal(together.values[:1], alone.values)
    assert torch.equal(together.energy[:1], alone.energy)


@pytest.mark.parametrize("name", KERNELS)
def test_a_run_goes_on_from_its_checkpoint_to_the_same_bits(name, tmp_path):
    settings = {"chains": 3, "warmup": 40, "kernel": KERNELS[name], "seed": 1}
    whole = sample(unit, zeros, draws=50, **settings)
    sample(unit, zeros, draws=20, checkpoint=tmp_path, **settings)
    resumed = sample(unit, zeros, draws=50, checkpoint=tmp_path, **settings)
    for field in ("values", "accepted", "acceptance", "energy", "divergent"):
        assert torch.equal(getattr(whole, field), getattr(resumed, field)), field
    assert (whole.gradients, whole.warmup_gradients) == (resumed.gradients, resumed.warmup_gradients)


def test_a_run_killed_in_its_warm_up_goes_on_to_the_same_bits(tmp_path):
    settings = {"chains": 4, "draws": 30, "warmup": 60, "seed": 1}
    whole = sample(unit, zeros, **settings)

    def deadly(x):
        deadly.calls += 1
        if deadly.calls > 90:
            raise MemoryError("killed")
        return unit(x)

    deadly.calls = 0
    with pytest.raises(MemoryError):
        sample(deadly, zeros, checkpoint=tmp_path, checkpoint_every=10, **settings)
    resumed = sample(unit, zeros, checkpoint=tmp_path, **settings)
    assert torch.equal(whole.values, resumed.values)


def test_ctrl_c_keeps_what_is_drawn():
    def interrupted(x):
        interrupted.calls += 1
        if interrupted.calls == 100:
            os.kill(os.getpid(), signal.SIGINT)
        return unit(x)

    interrupted.calls = 0
    kernel = functools.partial(MetropolisHastings, step=1.0)
    draws = sample(interrupted, zeros, chains=2, draws=500, warmup=0, kernel=kernel, seed=0)
    assert draws.interrupted
    assert draws.values.shape == (2, 99, 2)  # the call at the start is none of them
    assert torch.equal(draws.values, sample(unit, zeros, chains=2, draws=99, warmup=0, kernel=kernel, seed=0).values)


def test_ctrl_c_before_the_first_draw_is_an_interrupt():
    def interrupted(x):
        os.kill(os.getpid(), signal.SIGINT)
        return unit(x)

    with pytest.raises(KeyboardInterrupt):
        sample(interrupted, zeros, chains=2, draws=5, warmup=50)


def test_seed_and_generator_decide_and_torch_s_own_generator_where_neither_is_given():
    draw = functools.partial(sample, unit, zeros, chains=2, draws=5, warmup=0)
    assert torch.equal(draw(seed=3).values, draw(seed=3).values)
    assert not torch.equal(draw(seed=3).values, draw(seed=4).values)
    one, two = (draw(generator=torch.Generator().manual_seed(9)).values for _ in range(2))
    assert torch.equal(one, two)
    torch.manual_seed(0)
    first = draw().values
    torch.manual_seed(0)
    assert torch.equal(first, draw().values)


def test_gradients_are_counted_and_one_is_saved_at_every_transition():
    counted = lambda x: (setattr(counted, "calls", counted.calls + 1), unit(x))[1]  # noqa: E731
    counted.calls = 0
    kernel = functools.partial(HamiltonianMonteCarlo, step=0.1, steps=7)
    draws = sample(counted, zeros, chains=3, draws=10, warmup=0, kernel=kernel, seed=0)
    assert draws.gradients == 70
    assert counted.calls == 70 + 2  # the start, without and with its gradient


def test_divergent_trajectories_are_counted_and_never_taken():
    steep = lambda x: -(x.square().sum(1) * 1e4)  # noqa: E731
    kernel = functools.partial(HamiltonianMonteCarlo, step=1.0, steps=5)
    draws = sample(steep, 1e-3 * torch.ones(2).double(), chains=4, draws=8, warmup=0, kernel=kernel, seed=0)
    assert draws.divergent.all()
    assert not draws.accepted.any()
    assert "32 trajectories were divergent" in str(draws.summary())
    assert "2 of 2 quantities never moved" in str(draws.summary())


def test_a_density_that_ends_somewhere_is_never_left():
    half_line = lambda x: torch.where(x[:, 0] > 0, -x[:, 0], -math.inf)  # noqa: E731
    for name in ("hmc", "walk", "mala"):
        start = torch.ones(1).double()
        draws = sample(half_line, start, chains=8, draws=200, warmup=0, kernel=KERNELS[name], seed=0)
        assert (draws.values > 0).all()


def test_single_precision_stays_single():
    draws = sample(unit, torch.zeros(2), chains=2, draws=8, warmup=30, seed=0)
    assert {draws.values.dtype, draws.energy.dtype, draws.acceptance.dtype} == {torch.float32}


def test_the_table_names_what_is_wrong():
    draws = sample(unit, 10 * torch.ones(3).double(), chains=2, draws=20, warmup=0, kernel=KERNELS["walk"], seed=0)
    text = str(draws.summary())
    assert "the chains disagree on" in text
    assert "below 200: draw longer" in text
    assert draws.flat.shape == (40, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"log_density": lambda x: unit(x) * math.nan},
            ValueError,
            "finite at the start, got nan at chain 0: start where",
        ),
        ({"log_density": lambda x: unit(x) - math.inf}, ValueError, "must be finite at the start, got -inf at chain 0"),
        ({"log_density": lambda x: x}, ValueError, r"shape \(3,\), got shape \(3, 2\): sum over the last axis"),
        ({"log_density": lambda x: 1.0}, ValueError, "must return one number for each chain.*got float"),
        ({"log_density": lambda x: -x.abs().sqrt().sum(1)}, ValueError, "the gradient of log_density must be finite"),
        ({"log_density": 3}, TypeError, "log_density must be callable, got int"),
        ({"draws": 0}, ValueError, "draws must be >= 1, got 0"),
        ({"warmup": -1}, ValueError, "warmup must be >= 0, got -1"),
        ({"chains": 0}, ValueError, "chains must be >= 1, got 0"),
        ({"mass": "full"}, ValueError, "mass must be one of diagonal, dense, kept, got 'full'"),
        ({"start": torch.zeros(4, 2)}, ValueError, "chains must be the 4 rows of start, got 3: leave it out"),
        ({"start": torch.tensor([math.nan])}, ValueError, "start must be finite, found 1 NaN value"),
        ({"kernel": lambda density: 3}, TypeError, "kernel must have the methods init and step.*got int"),
        ({"seed": 1, "generator": torch.Generator()}, ValueError, "give either seed or generator"),
        ({"kernel": functools.partial(ChEES, mass=torch.ones(3))}, ValueError, "mass is that of 3 dim.*position has 2"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(unchecked, arguments, error, message):
    with pytest.raises(error, match=message):
        sample(**{"log_density": unit, "start": zeros, "chains": 3, "draws": 5, "warmup": 0} | arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HamiltonianMonteCarlo(unit, mass=-torch.eye(2)), "mass must be positive definite.*does not exist"),
        (lambda: HamiltonianMonteCarlo(unit, mass=torch.tensor([1.0, 0.0])), "mass must be > 0 in every entry, got 0"),
        (lambda: HamiltonianMonteCarlo(unit, mass=torch.tensor([[1.0, 2.0], [0.0, 1.0]])), "mass must be symmetric"),
        (lambda: HamiltonianMonteCarlo(unit, mass=torch.ones(2, 2, 2)), r"or \(dimension, dimension\) tensor"),
        (lambda: HamiltonianMonteCarlo(unit, step=0.0), "step must be > 0, got 0.0"),
        (lambda: HamiltonianMonteCarlo(unit, jitter=1.5), r"jitter must be in \[0, 1\], got 1.5"),
        (lambda: MetropolisHastings(unit, lambda x, g: x, step=1.0), "give either propose or step"),
        (lambda: UnadjustedLangevin(unit, score=unit), "give either log_density or score"),
        (lambda: UnderdampedLangevin(unit, friction=-1.0), "friction must be >= 0, got -1.0"),
        (lambda: UnderdampedLangevin(unit, scheme="verlet"), "scheme must be one of baoab, euler"),
        (lambda: UnadjustedLangevin(score=unit).init(torch.zeros(3, 2)), r"score must return shape \(3, 2\), got"),
        (lambda: ChainStreams(0, 3).normal(torch.zeros(4, 2)), "those of 3 chains, got a tensor of 4"),
    ],
)
def test_bad_kernels_are_refused_in_a_sentence(unchecked, make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    run = functools.partial(sample, unit, zeros, checkpoint=tmp_path, warmup=0, kernel=KERNELS["walk"])
    run(chains=2, draws=9, seed=0)
    for settings, message in (
        ({"chains": 3, "draws": 9, "seed": 0}, "checkpoint holds a run with .*give another folder"),
        ({"chains": 2, "draws": 9, "seed": 1}, "another seed, 0: give another folder"),
        ({"chains": 2, "draws": 5, "seed": 0}, "holds 9 draws already: ask for at least as many"),
    ):
        with pytest.raises(ValueError, match=message):
            run(**settings)


# --- The parts of a warm-up ---


def test_dual_averaging_finds_its_target_through_noise():
    adaptation, generator = DualAveraging(step=30.0, target=0.65), torch.Generator().manual_seed(0)
    for _ in range(2000):
        adaptation.update(math.exp(-adaptation.step) + 0.1 * float(torch.randn((), generator=generator)))
    assert math.exp(-adaptation.averaged) == pytest.approx(0.65, abs=0.02)


def test_pooled_moments_are_those_of_all_positions():
    positions = torch.randn(7, 4, 3, dtype=torch.float64)
    for dense in (False, True):
        pooled = PooledCovariance(3, dense)
        for each in positions:
            pooled.update(each)
        whole = positions.flatten(0, 1)
        assert torch.allclose(pooled.variances(), 28 / 33 * whole.var(0) + 5 / 33 * 1e-3)
        expected = 28 / 33 * whole.T.cov() + 5 / 33 * 1e-3 * torch.eye(3).double()
        expected = torch.linalg.inv(expected) if dense else 1 / expected.diagonal()
        assert torch.allclose(pooled.mass(), expected)


@pytest.mark.parametrize("warmup", [0, 19, 20, 37, 100, 1000, 5000])
def test_windows_rise_and_leave_the_end_to_the_step(warmup):
    ends = mass_windows(warmup)
    assert ends == sorted(set(ends))
    assert not ends or (ends[0] >= 1 and ends[-1] == round(0.9 * warmup))
