"""The phase space lab: energies as they are known exactly, and variances that chains settle at."""

import pytest

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import phase_space_lab as lab


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


@pytest.mark.parametrize("step", [0.05, 0.5, 1.9])
def test_euler_multiplies_the_energy_and_the_leapfrog_keeps_another(step):
    jumps, tangents = lab.orbits(state(step=step))
    energy = tangents.square().sum(1)
    assert float(energy[-1]) == pytest.approx((1 + step**2) ** lab.STEPS * float(energy[0]), rel=1e-9)
    kept = jumps[:, 1].square() + (1 - step**2 / 4) * jumps[:, 0].square()
    assert kept.tolist() == pytest.approx([float(kept[0])] * len(kept), rel=1e-9)


def test_above_two_the_leapfrog_flies_away():
    assert lab.show(state(step=2.05))["worst"] > 100
    assert lab.show(state(step=1.95))["worst"] < 1.01


@pytest.mark.parametrize("scheme", ["euler", "baoab"])
def test_chains_settle_at_the_exact_variance(scheme):
    shown = lab.show(state(step=0.4, friction=2.0, scheme=scheme))
    assert shown["measured"] == pytest.approx(shown["variance"], rel=0.12)


def test_baoab_has_the_target_and_the_printed_step_is_too_wide():
    assert lab.exact_variance(state(step=0.5, scheme="baoab")) == pytest.approx(1, rel=1e-12)
    assert lab.exact_variance(state(step=0.5)) > 1.5
    assert lab.exact_variance(state(step=0.05)) == pytest.approx(1.05, abs=0.02)


def test_what_settles_nowhere_has_no_variance():
    assert lab.exact_variance(state(step=1.5)) is None
    assert lab.exact_variance(state(friction=0)) is None
