"""Pooling: windows one by one, and what each value of a window does to the outcome."""

import itertools

import torch

from lemmata.convolution.pooling import pool_nd
from lemmata.judge import all_of, claim, close, exactly, lie


def _looped_pooling(x, r, s, reduce):
    """Each window of a signal or picture on its own: windows of r places on each axis, s steps apart."""
    counts = [(size - r) // s + 1 for size in x.shape]
    starts = itertools.product(*[range(count) for count in counts])
    windows = [x[tuple(slice(s * u, s * u + r) for u in start)] for start in starts]
    return torch.stack([reduce(window) for window in windows]).reshape(counts)


@claim("conv.pool.max")
@lie("windows of r + 1 places", more=1)
@lie("min pooling is max(-x)", sign=1.0)
def the_largest_of_each_window(draw, more=0, sign=-1.0, pool=pool_nd):
    """Signals and pictures, windows of 1 to 3 places, at stride 1 and at stride r: loops, torch's kernels and ours."""
    found, looped, least, mirrored = [], [], [], []
    for space, r in itertools.product(((12,), (7, 8)), (1, 2, 3)):
        x = draw.normal(*space)
        for s in {1, r}:
            largest = _looped_pooling(x, r + more, s, torch.max)
            cut = tuple(slice(size) for size in largest.shape)  # a window that is too long fits less often
            for method in ("torch", "definition"):
                found.append(pool(x[None, None], r, stride=s, method=method)[0, 0][cut].flatten())
                looped.append(largest.flatten())
                least.append(pool(x[None, None], r, "min", stride=s, method=method).flatten())
                mirrored.append(sign * pool(-x[None, None], r, stride=s).flatten())
    lowest = _looped_pooling(x, 3, 3, torch.min)  # the last picture
    return all_of(
        exactly(torch.cat(found), torch.cat(looped)),
        exactly(torch.cat(least), torch.cat(mirrored)),
        exactly(pool(x[None, None], 3, "min")[0, 0], lowest),
    )


def _winner_slope(window):
    """One at the largest value, zero elsewhere."""
    return (window == window.max()).double()


def _even_slope(window):
    return torch.full_like(window, 1 / window.numel())


@claim("conv.pool.max_gradient")
@lie("every place of the window has a share", share=_even_slope)
@lie("of several windows only one counts", joined=torch.amax)
def only_the_winner_has_a_gradient(draw, share=_winner_slope, joined=torch.sum, pool=pool_nd):
    """Pictures of distinct values, windows of 3 x 3 places that overlap or do not: the whole Jacobian, and its sums."""
    found, formula, sums, added = [], [], [], []
    for s, method in itertools.product((1, 2, 3), ("torch", "definition")):
        x = draw.permutation(42).double().reshape(6, 7)

        def pooled(x, s=s, method=method):
            return pool(x[None, None], 3, stride=s, method=method)[0, 0]

        jacobian = torch.autograd.functional.jacobian(pooled, x)  # (rows, columns, 6, 7)
        expected = torch.zeros_like(jacobian)
        for i, j in itertools.product(*map(range, jacobian.shape[:2])):
            rows, columns = slice(s * i, s * i + 3), slice(s * j, s * j + 3)
            expected[i, j, rows, columns] = share(x[rows, columns])
        found.append(jacobian.flatten())
        formula.append(expected.flatten())
        seen = x.clone().requires_grad_()
        sums.append(torch.autograd.grad(pooled(seen).sum(), seen)[0])
        added.append(joined(expected, (0, 1)))
    return all_of(
        exactly(torch.cat(found), torch.cat(formula)),
        exactly(torch.stack(sums), torch.stack(added)),
    )


@claim("conv.pool.avg")
@lie("the sum is divided by r", power=-1.0)
@lie("each place of the window counts 1/r", slope=-1.0)
def the_mean_of_each_window(draw, power=-2.0, slope=-2.0, pool=pool_nd):
    """Windows of 2 and 3 places a side, at stride 1 and r: a constant kernel, torch's kernel and ours; the Jacobian."""
    found, convolved, jacobians, entries = [], [], [], []
    for r, s, method in itertools.product((2, 3), (1, 3), ("torch", "definition")):
        x = draw.normal(1, 1, 6, 7)
        kernel = torch.full((1, 1, r, r), float(r) ** power, dtype=torch.float64)

        def pooled(x, r=r, s=s, method=method):
            return pool(x, r, "average", stride=s, method=method)

        found.append(pooled(x).flatten())
        convolved.append(torch.nn.functional.conv2d(x, kernel, stride=s).flatten())
        jacobian = torch.autograd.functional.jacobian(pooled, x)[0, 0, :, :, 0, 0]  # (rows, columns, 6, 7)
        expected = torch.zeros_like(jacobian)
        for i, j in itertools.product(*map(range, jacobian.shape[:2])):
            expected[i, j, s * i : s * i + r, s * j : s * j + r] = float(r) ** slope
        jacobians.append(jacobian.flatten())
        entries.append(expected.flatten())
    return all_of(
        close(torch.cat(found), torch.cat(convolved)),
        close(torch.cat(jacobians), torch.cat(entries)),
    )


@claim("conv.pool.softmax")
@lie("the weights are taken as constant", through=0.0)
@lie("a large β gives the smallest value", limit=torch.amin)
@lie("β = 0 gives the sum", middle=torch.sum)
def a_mean_weighted_by_softmax(draw, through=1.0, limit=torch.amax, middle=torch.mean, pool=pool_nd):
    """Windows of 4 to 9 values for β from -3 to 3; limits on windows whose values are at least 0.1 apart."""
    values, weighted, gradients, formula, ends, extremes, means, flat = ([] for _ in range(8))
    for beta, n in itertools.product(range(-3, 4), range(4, 10)):
        x = draw.normal(n).requires_grad_()
        y = pool(x[None, None], n, "softmax", beta=float(beta))[0, 0, 0]
        p = (beta * x).exp() / (beta * x).exp().sum()
        values.append(y)
        weighted.append((p * x).sum())
        gradients.append(torch.autograd.grad(y, x)[0])
        formula.append((p * (1 + through * beta * (x - y))).detach())
        apart = 0.1 * draw.permutation(n)[None, None].double() - 1.05  # none is zero
        ends.append(pool(apart, n, "softmax", beta=400.0).sum())
        extremes.append(limit(apart, -1).sum())
        ends.append(-pool(-apart, n, "softmax", beta=-400.0).sum())  # the smallest of -x is -max(x)
        extremes.append(limit(apart, -1).sum())
        means.append(pool(apart, n, "softmax", beta=1e-9).sum())
        flat.append(middle(apart, -1).sum())
    return all_of(
        close(torch.stack(values), torch.stack(weighted), ulps=1000),
        close(torch.cat(gradients), torch.cat(formula), ulps=1000),
        close(torch.stack([g.sum() for g in gradients]), 1.0, ulps=1000),
        close(torch.stack(ends), torch.stack(extremes), ulps=1000),  # the others weigh at most 8 e^-40
        close(torch.stack(means), torch.stack(flat), within=1e-9),  # the slope in β is a variance, at most 0.8^2 / 4
    )
