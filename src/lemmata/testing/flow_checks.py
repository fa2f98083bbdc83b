"""The checks of the conformance suite of flows, each a few lines: it returns, or says what is wrong."""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from lemmata.testing.findings import Broken, Undecided
from lemmata.testing.flow_subject import Both, Subject, log_prob, sample, sample_and_log_prob, takes_generator

__all__ = []  # for the suite alone

EXCESS = 0.2  # nats per feature by which a fitted Gaussian may be missed
BACK = {torch.float64: 1e-6, torch.float32: 2e-3}  # relative error of there and back again
MASS = 0.02  # by which a mass may differ from 1
DRAWS, CELLS, BLOCKS = 20_000, 480, 8  # of the check of samples; cells of the grid along each axis, in blocks
SIGMAS = 6.5  # of chance


def _check_interface(subject: Subject) -> None:
    x = subject.examples(5)
    for flow in (subject.given, subject.bent):
        found, drawn = log_prob(flow.exact, x), sample(flow.own, 7, 0)
        if found.shape != (5,):
            raise Broken(f"log_prob of 5 examples must hold 5 numbers, got shape {tuple(found.shape)}")
        if drawn.shape != (7, subject.features):
            raise Broken(f"sample(7) must be (7, {subject.features}), got shape {tuple(drawn.shape)}")
        if not (bool(found.isfinite().all()) and bool(drawn.isfinite().all())):
            raise Broken("log_prob or sample gives NaN or infinity")


def _check_untouched(subject: Subject) -> None:
    x, before = subject.examples(), subject.examples()
    log_prob(subject.bent.exact, x)
    if not torch.equal(x, before):
        raise Broken("log_prob writes into the examples that it is given")


def _check_rows(subject: Subject) -> None:
    x = subject.examples(8)
    together = log_prob(subject.bent.exact, x)
    alone = torch.cat([log_prob(subject.bent.exact, row[None]) for row in x])
    if not torch.allclose(together, alone, rtol=1e-6, atol=1e-6):
        raise Broken("an example alone gets another log-density than among others: something is summed over the batch")


def _check_seeds(subject: Subject) -> None:
    before = torch.random.get_rng_state()
    one, again, other = (sample(subject.bent.own, 20, seed) for seed in (1, 1, 2))
    if takes_generator(subject.bent.own.sample) and not torch.equal(before, torch.random.get_rng_state()):
        raise Broken("sample draws from torch's own random numbers although it was given a generator")
    if not torch.equal(one, again) or torch.equal(one, other):
        raise Broken("the same seed must give the same samples, and another seed others")


def _check_narrow(subject: Subject) -> None:
    _demand_fit(subject, min(subject.variances), "shrink")


def _check_wide(subject: Subject) -> None:
    _demand_fit(subject, max(subject.variances), "stretch")


def _demand_fit(subject: Subject, variance: float, word: str) -> None:
    excess = subject.gaussian_excess(variance)
    if not excess <= EXCESS:
        why = f"misses it by {excess:.3g} nats per feature: does something keep it from {word}ing?"
        raise Broken(f"fitted to N(0, {variance:.3g}) it {why}")


def _check_inverse(subject: Subject) -> None:
    subject.need("encode", "decode")
    for dtype, allowed in BACK.items():
        flow: Any = copy.deepcopy(subject.bent.exact)
        flow = flow.to(dtype) if isinstance(flow, nn.Module) else flow
        x = subject.examples().to(dtype)
        with torch.no_grad():
            back = flow.decode(flow.encode(x))
        off = float(((back - x).abs() / (1 + x.abs())).max())
        if not off <= allowed:
            raise Broken(
                f"in {str(dtype)[6:]} data as noise and back again are off by {off:.3g}; {allowed:g} is allowed"
            )


def _check_jacobian(subject: Subject) -> None:
    subject.need("encode")
    flow: Any = subject.bent.exact
    x = subject.examples(50).requires_grad_()
    z: Any = flow.encode(x)
    rows = [torch.autograd.grad(z[:, k].sum(), x, retain_graph=True)[0] for k in range(subject.features)]
    with torch.no_grad():
        volume = torch.linalg.slogdet(torch.stack(rows, 1)).logabsdet  # rows of (points, features, features)
        used = flow.log_prob(x) - subject.base_log_prob(flow, z)
    off = float((used - volume).abs().max())
    if not off <= 1e-5 * (1 + float(volume.abs().max())):
        turned = " with the opposite sign" if torch.allclose(used, -volume, atol=1e-4) else ""
        raise Broken(f"the log-determinant is off by {off:.3g} from that of the Jacobian{turned}")


def _density_box(subject: Subject, flow: Both) -> tuple[Tensor, Tensor]:
    """Where the mass lies, by samples and examples, and half as much around."""
    seen = torch.cat([sample(flow.own, DRAWS, 6).double(), subject.examples()])
    low, high = seen.quantile(1e-4, 0), seen.quantile(1 - 1e-4, 0)
    return low - 0.5 * (high - low), high + 0.5 * (high - low)


def _cell_masses(subject: Subject, flow: Both) -> tuple[Tensor, Tensor, Tensor]:
    """The box, and the mass of each cell of a grid on it, (CELLS,) or (CELLS, CELLS)."""
    low, high = _density_box(subject, flow)
    steps = (torch.arange(CELLS, dtype=torch.float64) + 0.5) / CELLS
    axes = [a + (b - a) * steps for a, b in zip(low, high, strict=True)]
    points = torch.cartesian_prod(*axes).reshape(-1, subject.features)
    area = float((high - low).prod()) / len(points)
    return low, high, (area * log_prob(flow.exact, points).exp()).reshape([CELLS] * subject.features)


def _check_integral(subject: Subject) -> None:
    for flow, what in ((subject.given, "as given"), (subject.tame, "fitted")):
        if subject.features <= 2:
            mass, chance = _grid_mass(_cell_masses(subject, flow)[2], allowed_to_be_rough=what == "as given"), 0.0
        else:
            mass, chance = _weighted_mass(subject, flow)
        if not abs(mass - 1) <= MASS + chance:
            raise Broken(f"{what}, the density has a mass of {mass:.4g}, which must be 1")


def _grid_mass(mass: Tensor, allowed_to_be_rough: bool) -> float:
    """The mass on a grid; what one of half as many points finds otherwise is too rough to be integrated so."""
    fine, half = float(mass.sum()), mass[(slice(None, None, 2),) * mass.ndim]
    if abs(fine - float(half.sum()) * 2**mass.ndim) <= 0.5 * MASS:
        return fine
    if allowed_to_be_rough:
        return 1.0  # of a flow that was never fitted; what matters is the fitted one
    raise Undecided("the density is too steep, or its samples too far apart, to be integrated on a grid")


def _weighted_mass(subject: Subject, flow: Both) -> tuple[float, float]:
    """By draws from a Gaussian that is wider than the samples, with the error that is chance."""
    drawn = sample(flow.own, DRAWS, 6).double()
    spread = 2.0 * torch.cov(drawn.mT) + 1e-6 * torch.eye(subject.features, dtype=torch.float64)
    around = MultivariateNormal(drawn.mean(0), spread)
    torch.manual_seed(7)
    x = around.sample((200_000,))
    weight = (log_prob(flow.exact, x) - around.log_prob(x)).exp()
    chance = SIGMAS * float(weight.std()) / math.sqrt(len(x))
    if chance > 0.2:
        raise Undecided("its density is too far from a Gaussian to be integrated by random points")
    return float(weight.mean()), chance


def _check_samples(subject: Subject) -> None:
    flow = subject.tame
    drawn = sample(flow.own, DRAWS, 8).double()
    if subject.features > 2:
        _demand_ratio(flow, drawn)
    else:
        _demand_shares(subject, flow, drawn)


def _demand_shares(subject: Subject, flow: Both, drawn: Tensor) -> None:
    """As many samples in each block of the grid as it has mass."""
    low, high, mass = _cell_masses(subject, flow)
    shape = [n for _ in range(subject.features) for n in (BLOCKS, CELLS // BLOCKS)]
    expected = mass.reshape(shape).sum(tuple(range(1, len(shape), 2))).flatten()
    place = ((drawn - low) / (high - low) * BLOCKS).floor().long()  # (draws, features)
    inside = ((place >= 0) & (place < BLOCKS)).all(1)
    cell = (place * BLOCKS ** torch.arange(subject.features).flip(0)).sum(1)[inside]
    found = torch.bincount(cell, minlength=len(expected)).double() / DRAWS
    allowed = SIGMAS * (expected.clamp(min=1e-4) / DRAWS).sqrt() + 0.25 * MASS
    worst = int(((found - expected).abs() - allowed).argmax())
    if not bool(((found - expected).abs() <= allowed).all()):
        share = f"{float(found[worst]):.3g} of the samples fall where the density has {float(expected[worst]):.3g}"
        raise Broken(f"{share} of its mass: they are not its own")


def _demand_ratio(flow: Both, drawn: Tensor) -> None:
    """The mean of q/p over samples of p is 1, for a q that is narrower."""
    narrow = MultivariateNormal(drawn.median(0).values, 0.2 * torch.cov(drawn.mT))
    ratio = (narrow.log_prob(drawn) - log_prob(flow.exact, drawn)).exp()
    chance = SIGMAS * float(ratio.std()) / math.sqrt(len(drawn))
    if chance > 0.5:
        raise Undecided("its density is too far from a Gaussian for its samples to be weighed")
    if not abs(float(ratio.mean()) - 1) <= MASS + chance:
        raise Broken(f"samples weighed by their density have a mass of {float(ratio.mean()):.4g}: they are not its own")


def _check_agrees(subject: Subject) -> None:
    x, given = sample_and_log_prob(subject.bent.own, 200, 9)
    if given.shape != (200,):
        raise Broken(f"200 samples must come with 200 log-densities, got shape {tuple(given.shape)}")
    off = float((given - log_prob(subject.bent.own, x)).abs().max())
    if not off <= 1e-2 * (1 + float(given.abs().max())):
        raise Broken(f"the log-densities that come with samples are off by {off:.3g} from those computed for them")


def _check_precision(subject: Subject) -> None:
    if not isinstance(subject.bent.exact, nn.Module):
        raise Undecided("it is no module, whose precision could be changed")
    x = subject.examples()
    exact, single = log_prob(subject.bent.exact, x), log_prob(copy.deepcopy(subject.bent.exact).float(), x.float())
    off = float(((single.double() - exact).abs() / (1 + exact.abs())).max())
    if single.dtype != torch.float32 or not off <= 1e-2:
        raise Broken(f"in float32 log_prob is {str(single.dtype)[6:]}, and off by {off:.3g} from that in float64")


CHECKS: dict[str, tuple[Callable[[Subject], None], tuple[str, ...]]] = {
    "interface": (_check_interface, ()),
    "untouched": (_check_untouched, ("interface",)),
    "rows": (_check_rows, ("interface",)),
    "seeds": (_check_seeds, ("interface",)),
    "narrow": (_check_narrow, ("interface",)),
    "wide": (_check_wide, ("interface",)),
    "inverse": (_check_inverse, ("interface",)),
    "jacobian": (_check_jacobian, ("interface",)),
    "integral": (_check_integral, ("interface",)),
    "samples": (_check_samples, ("interface",)),
    "agrees": (_check_agrees, ("interface",)),
    "precision": (_check_precision, ("interface",)),
}
