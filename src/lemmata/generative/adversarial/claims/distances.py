"""Distances of distributions: earth mover's distance and its critic, mean discrepancy, Cramér distance and slices."""

import itertools
import math

import torch
from scipy import optimize, stats
from torch import Tensor

from lemmata.foundations.information.discrete import jensen_shannon, kl_divergence
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie, mean_is
from lemmata.measure.maximum_mean_discrepancy import mmd
from lemmata.measure.sample_distances import cramer_distance, energy_distance, sliced_cramer
from lemmata.measure.transport import optimal_transport, w1_distance, w1_on_line


def probabilities(draw, size):
    weights = draw.uniform(size, low=0.1)
    return weights / weights.sum()


def far_apart(x: Tensor, y: Tensor) -> Tensor:
    return (x[:, None] - y[None]).norm(dim=-1)


def best_critic(x, y, p, q, lipschitz=1.0, bound=None):
    """The dual program by itself, over critics on all points: |η(a) - η(b)| ≤ L‖a - b‖, or |η| ≤ bound."""
    points, weights = torch.cat([x, y]), torch.cat([p, -q])
    if bound is not None:
        return float(weights.abs().sum()) * bound  # no point is in both sets
    pairs = torch.tensor(list(itertools.permutations(range(len(points)), 2)))
    rows = torch.zeros(len(pairs), len(points), dtype=torch.float64)
    rows[torch.arange(len(pairs)), pairs[:, 0]], rows[torch.arange(len(pairs)), pairs[:, 1]] = 1.0, -1.0
    limits = lipschitz * (points[pairs[:, 0]] - points[pairs[:, 1]]).norm(dim=-1)
    found = optimize.linprog(-weights.numpy(), rows.numpy(), limits.numpy(), bounds=(None, None))
    return -found.fun


def best_plan(transport):
    return transport.plan


def independent_plan(transport):
    """Each point sends its mass in the same proportions."""
    return transport.plan.sum(1)[:, None] * transport.plan.sum(0)


@claim("wasserstein.w1_dual")
@lie("the best critic of Lipschitz constant 2", lipschitz=2.0)
@lie("the best critic that is bounded by 1", bound=1.0)
@lie("the plan that is independent", plan=independent_plan)
def the_least_work_is_the_best_critics_gain(
    draw, lipschitz=1.0, bound=None, plan=best_plan, transport=optimal_transport
):
    """Weighted points in the plane at three scales, against the dual solved alone; samples, on the line too."""
    work, gains, shown, marginals, slopes = [], [], [], [], []
    for (n, m), scale in itertools.product(((1, 3), (5, 7), (12, 12)), (1e-3, 1.0, 1e3)):
        x, y = scale * draw.normal(n, 2), scale * (draw.normal(m, 2) + 1)
        p, q = probabilities(draw, n), probabilities(draw, m)
        found = transport(x, y, p, q)
        carried = plan(found)
        work.append((carried * far_apart(x, y)).sum() / scale)
        gains.append(best_critic(x / scale, y / scale, p, q, lipschitz, bound))
        shown.append((p @ found.critic_x - q @ found.critic_y) / scale)
        marginals += [carried.sum(1) - p, carried.sum(0) - q]
        points, critic = torch.cat([x, y]), torch.cat([found.critic_x, found.critic_y])
        slopes.append(far_apart(critic[:, None], critic[:, None]).div(far_apart(points, points)).nan_to_num(0).amax())
    x, y = draw.normal(9), 1 + 2 * draw.normal(14)
    line, even = stats.wasserstein_distance(x.numpy(), y.numpy()), draw.normal(2, 20, 3)
    return all_of(
        close(torch.stack(work), torch.tensor(gains).double(), within=1e-6),
        close(torch.stack(work), torch.stack(shown), within=1e-6, detail="gain of the critic that comes with the plan"),
        close(torch.cat(marginals), 0.0, within=1e-6),
        at_most(torch.stack(slopes), 1.0, attained=True, ulps=1e6, detail="steepest slope of that critic"),
        close(torch.stack([w1_on_line(x, y), w1_distance(x[:, None], y[:, None])]), line, within=1e-6),
        close(w1_distance(*even), transport(*even).distance, within=1e-6),
    )


def as_table(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two samples as probabilities on all the points that occur."""
    _, where = torch.cat([x, y]).unique(return_inverse=True, dim=0)
    counts = torch.zeros(2, int(where.max()) + 1, dtype=torch.float64)
    counts[0].index_add_(0, where[: len(x)], torch.full((len(x),), 1 / len(x)).double())
    counts[1].index_add_(0, where[len(x) :], torch.full((len(y),), 1 / len(y)).double())
    return counts[0], counts[1]


@claim("wasserstein.continuity")
@lie("the Jensen-Shannon divergence falls with the offset", fall=1.0)
@lie("W1 is the square of the offset", power=2.0)
@lie("the Kullback-Leibler divergence stays finite", divergence=jensen_shannon)
def work_falls_where_divergences_stand_still(
    draw, fall=0.0, power=1.0, divergence=kl_divergence, distance=w1_distance, line=w1_on_line
):
    """Single points and parallel segments at offsets from 1e-6 to 1e6: values, slopes, and both at no offset."""
    offsets = torch.tensor([-1e6, -3.0, -0.2, -1e-6, 1e-6, 0.2, 0.5, 3.0, 1e6]).double()
    along = draw.uniform(16)
    work, slopes, shannon, kullback = [], [], [], []
    for theta in offsets:
        moved = theta.clone().requires_grad_()
        work += [line(torch.zeros(1).double(), moved[None])]
        work += [distance(*(torch.stack([each.expand(16), along], 1) for each in (0 * moved, moved)))]
        slopes.append(torch.autograd.grad(work[-2] + work[-1], moved)[0] / 2)
        tables = [as_table(torch.zeros(1, 2).double(), torch.stack([theta, 0 * theta])[None])]
        tables += [as_table(*(torch.stack([each.expand(16), along], 1) for each in (0 * theta, theta)))]
        shannon += [jensen_shannon(*table) for table in tables]
        kullback += [divergence(*table) for table in tables]
    twice = offsets.repeat_interleave(2)
    return all_of(
        close(torch.stack(work) / twice.abs(), twice.abs() ** (power - 1), within=1e-9),
        close(torch.stack(slopes), power * offsets.sign() * offsets.abs() ** (power - 1), within=1e-9),
        close(torch.stack(shannon), math.log(2) * twice.abs().clamp(max=1) ** fall),
        always(torch.stack(kullback).isinf()),
        exactly(
            [float(line(along, along)), float(jensen_shannon(*as_table(along[:, None], along[:, None])))], [0.0, 0.0]
        ),
    )


def outcomes(law: Tensor, size: int):
    """Every sample of this size from a law on the points -1, 0, 1, (size, 1) each, and its probability."""
    for drawn in itertools.product(range(len(law)), repeat=size):
        yield torch.tensor(drawn).double()[:, None] - 1, math.prod(float(law[k]) for k in drawn)


@claim("divergence.mmd")
@lie("the estimate with diagonal terms is unbiased too", bias=0.0)
@lie("the linear kernel tells these laws apart", kernel="linear")
@lie("pairs across count once", across=1.0)
@lie("the unbiased estimate is never negative", negative=at_least)
def the_distance_of_mean_features(draw, bias=1.0, kernel="gaussian", across=2.0, negative=at_most, estimate=mmd):
    """Laws on points against the norm in feature space; every sample of three and two, weighted by its probability."""
    points, h = draw.normal(6, 2), 0.8
    counts = draw.integers(1, 6, 2, 6)
    p, q = (each / each.sum() for each in counts.double())
    gram = torch.exp(-far_apart(points, points).square() / (2 * h**2))
    found = estimate(*(points.repeat_interleave(each, 0) for each in counts), bandwidth=h, unbiased=False)
    least = torch.linalg.eigvalsh(gram)[0]  # above 0 for any different points: only equal laws are at distance 0
    middle = torch.tensor([[0.0], [0.0]]).double()
    seen = estimate(torch.tensor([[-1.0], [1.0]]).double(), middle, kernel, bandwidth=h, unbiased=False)

    p3, q3 = probabilities(draw, 3), probabilities(draw, 3)
    near = torch.exp(-torch.tensor([[0, 1, 4], [1, 0, 1], [4, 1, 0]]).double() / (2 * h**2))
    means, values = {True: 0.0, False: 0.0}, []
    for (x, mass_x), (y, mass_y) in itertools.product(outcomes(p3, 3), outcomes(q3, 2)):
        for unbiased in means:
            values.append(estimate(x, y, bandwidth=h, unbiased=unbiased))
            means[unbiased] = means[unbiased] + mass_x * mass_y * values[-1]
    true = (p3 - q3) @ near @ (p3 - q3)
    excess = (1 - p3 @ near @ p3) / 3 + (1 - q3 @ near @ q3) / 2
    return all_of(
        close(found, p @ gram @ p - across * (p @ gram @ q) + q @ gram @ q, scale=1.0),
        at_least([found, least], [least * (p - q).square().sum(), 1e-9]),
        at_least(seen, 0.2),
        close(means[True], true, scale=1.0),
        close(means[False], true + bias * excess, scale=1.0),
        negative(torch.stack(values).min(), -0.1 if negative is at_most else 0.0),
    )


def mean_cosine(size):
    return math.gamma(size / 2) / (math.sqrt(math.pi) * math.gamma((size + 1) / 2))


def one(size):
    return 1.0


def circle_and_sphere(count=2000):
    """Directions in equal distances on a circle, and along a spiral from pole to pole."""
    step = torch.arange(count).double()
    turn, height = 2 * math.pi * step / count, 1 - (2 * step + 1) / count
    spiral, radius = math.pi * (math.sqrt(5) + 1) * step, (1 - height**2).sqrt()
    return (
        torch.stack([turn.cos(), turn.sin()], 1),
        torch.stack([radius * spiral.cos(), radius * spiral.sin(), height], 1),
    )


@claim("divergence.sliced_cramer")
@lie("the closed form without the mean cosine", cosine=one)
@lie("twice as large", half=1.0)
@lie("the sliced earth mover's distance is the same", line=w1_on_line)
@lie("gradients of W1 on samples are unbiased as well", drawn=w1_on_line)
def slices_are_a_multiple_of_the_energy_distance(
    draw, half=0.5, cosine=mean_cosine, line=cramer_distance, drawn=cramer_distance
):
    """On the line against SciPy; slices of two, three and five dimensions; the gradient from every sample of one."""
    x, y = draw.normal(40), 0.3 + 1.5 * draw.normal(50)
    squared = stats.energy_distance(x.numpy(), y.numpy()) ** 2
    evidence = [close([line(x, y), half * energy_distance(x[:, None], y[:, None])], squared / 2, ulps=1e4)]
    for lines in circle_and_sphere():
        size = lines.shape[1]
        a, b = draw.normal(12, size), 0.7 + draw.normal(15, size)
        closed, mean = half * cosine(size) * energy_distance(a, b), line(lines @ a.mT, lines @ b.mT).mean()
        evidence += [close([mean, sliced_cramer(a, b)], closed, within=1e-3 * closed, detail=f"{size} dimensions")]
    a, b = draw.normal(12, 5), 1 + draw.normal(15, 5)
    closed = half * cosine(5) * energy_distance(a, b)
    slices = mean_is(lambda u: line(u @ a.mT, u @ b.mT), lambda n: draw.unit(n, 5), closed, effect=0.05 * float(closed))
    t = draw.uniform(1, low=0.2, high=0.8).requires_grad_()  # of the law with half its mass at 0, half at t
    model = torch.cat([torch.zeros(1).double(), t])
    both = drawn(torch.tensor([0.0, 1.0]).double(), model)
    samples = torch.stack([drawn(torch.tensor([each]).double(), model) for each in (0.0, 1.0)]).mean()
    gradients = [torch.autograd.grad(each, t)[0] for each in (samples, both)]
    return all_of(*evidence, slices, close(*gradients), close(sliced_cramer(a, a.flip(0)), 0.0, scale=10.0))
