"""Linear autoencoders: their critical points, all of them known, and principal component analysis, the best."""

import itertools

import numpy
import torch

from lemmata.data.registry import load
from lemmata.generative.autoencoders.linear_autoencoder import LinearAutoencoder
from lemmata.generative.autoencoders.pca import PCA
from lemmata.judge import all_of, always, at_least, at_most, claim, close, exactly, lie


def with_matrices(encoder, decoder):
    """The autoencoder with these matrices, (m, n) and (n, m)."""
    model = LinearAutoencoder(encoder.shape[1], encoder.shape[0], dtype=torch.float64)
    with torch.no_grad():
        model.encoder.weight.copy_(encoder)
        model.decoder.weight.copy_(decoder)
    return model


def with_gradients(model, x):
    """The loss of these points, and its gradients by encoder and decoder."""
    loss = model.loss(x)
    return loss.detach(), torch.autograd.grad(loss, (model.encoder.weight, model.decoder.weight))


def descend(model, x, slope=1e-9):
    """By L-BFGS to where no entry of the gradient is above `slope`."""
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=1000, max_eval=5000, tolerance_grad=slope, tolerance_change=0, history_size=20,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure():
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        return loss

    optimizer.step(closure)


def minimised(draw, x, m):
    """An autoencoder from random weights to a minimum."""
    model = with_matrices(draw.normal(m, x.shape[1]) / 3, draw.normal(x.shape[1], m) / 3)
    descend(model, x)
    return model


def points_of(draw, variances, count=40):
    """Centred points with exactly these variances along random axes, (count, n), and the axes as rows."""
    raw = draw.normal(count, len(variances))
    whitened = torch.linalg.qr(raw - raw.mean(0)).Q * count**0.5
    axes = draw.orthogonal(len(variances))
    return whitened * variances.sqrt() @ axes, axes


def variances_with_a_gap(draw, n, m):
    """Variances of which the first m are well above the others."""
    return torch.cat([draw.uniform(m, low=2.0, high=4.0), draw.uniform(n - m, low=0.3, high=1.2)])


def centred_digits():
    """Digits without their constant pixels, and the eigenpairs of their covariance, largest first."""
    x = load("digits").train.x.flatten(1).double()
    x = x[:, x.std(0) > 0]
    x = x - x.mean(0)
    values, vectors = numpy.linalg.eigh((x.T @ x / len(x)).numpy())
    return x, torch.from_numpy(values[::-1].copy()), torch.from_numpy(vectors[:, ::-1].copy())


def of_digits():
    return LinearAutoencoder(centred_digits()[0].shape[1], 10, dtype=torch.float64)


def learn_digits(model, generator):
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / 8)
    descend(model, centred_digits()[0], slope=1e-5)


def undone(mixing):
    return torch.linalg.inv(mixing)


def left_out(mixing):
    return torch.eye(len(mixing), dtype=mixing.dtype)


def stretched(draw, m):
    """An invertible matrix that is far from orthogonal."""
    return draw.orthogonal(m) * torch.linspace(0.5, 2.0, m).double() @ draw.orthogonal(m)


@claim("ae.linear")
@lie("one more component than the code has numbers", components=11)
@lie("the squared error in full", half=1.0)
@lie("the decoder is the matrix of eigenvectors, whatever the encoder", mixed=left_out)
def reaches_the_variance_left_over(draw, components=10, half=0.5, mixed=undone):
    """Digits: losses and gradients where the code mixes eigenvectors, and where L-BFGS ends from random weights."""
    x, values, vectors = centred_digits()
    loss, gradients, left = [], [], []
    for chosen in (torch.arange(10), draw.permutation(len(values))[:10]):
        mixing, axes = stretched(draw, 10), vectors[:, chosen]
        found, by_matrix = with_gradients(with_matrices(mixing @ axes.T, axes @ mixed(mixing)), x)
        loss.append(found)
        gradients += [each.abs().max() for each in by_matrix]
        left.append(half * (values.sum() - values[chosen].sum()))
    least = half * values[components:].sum()
    model = draw.trained(of_digits, learn_digits)
    away = vectors[:, 10:].T @ torch.linalg.qr(model.decoder.weight.detach()).Q  # sines to the first eigenvectors
    return all_of(
        close(torch.stack(loss), torch.stack(left), ulps=1e4),
        close(torch.stack(gradients), torch.zeros(4).double(), scale=values[0], ulps=1e4),
        close(model.loss(x), least, within=1e-4 * least),
        at_least(model.loss(x), least, ulps=1e4),
        at_most(torch.linalg.matrix_norm(away, 2), 0.01),
    )


def moved_to_the_mean(x):
    return x - x.mean(0)


def as_they_are(x):
    return x


@claim("ae.linear_pca")
@lie("the points need not be centred", centred=as_they_are)
@lie("the smallest axes are kept", first=False)
@lie("the singular values are halved as well", kept=0.5)
def truncated_singular_values(draw, centred=moved_to_the_mean, first=True, kept=1.0):
    """Minimised from random weights, and PCA, beside NumPy's truncated decomposition, other maps and projections."""
    evidence = []
    for n, m in ((4, 1), (7, 3), (12, 4)):
        raw, _ = points_of(draw, variances_with_a_gap(draw, n, m))
        raw = raw + 3 * draw.unit(n)  # as far from the origin as they are wide
        x, deviations = centred(raw), raw - raw.mean(0)
        left, lengths, right = map(torch.from_numpy, numpy.linalg.svd(deviations.numpy(), full_matrices=False))
        some = slice(m) if first else slice(-m, None)
        truncated = kept * left[:, some] * lengths[some] @ right[some]
        projection = right[some].T @ right[some]
        model, pca = minimised(draw, x, m), PCA(n, m, dtype=torch.float64).fit(raw)
        others = draw.normal(200, n, m) @ draw.normal(200, m, n) / n
        near = model.matrix.detach() + 0.01 * draw.normal(200, n, n) @ projection  # of rank m too
        errors = (deviations - deviations @ torch.cat([others, near]).mT).square().sum((1, 2))
        planes = torch.linalg.qr(draw.normal(200, n, m)).Q
        evidence += [
            close(model(x), truncated, within=1e-5),
            close(model.matrix, projection, within=1e-5),
            close(pca(raw) - raw.mean(0), truncated, ulps=1e4),
            at_least(errors, (deviations - truncated).square().sum()),
            at_most((deviations @ planes).square().sum((1, 2)), (deviations @ pca.axes.T).square().sum()),
        ]
    return all_of(*evidence)


def slope_and_curvature(model, x):
    """First derivatives (entries,) and second ones (entries, entries) of the loss by all entries of both matrices."""
    parameters = list(model.parameters())
    slope = torch.cat([each.flatten() for each in torch.autograd.grad(model.loss(x), parameters, create_graph=True)])
    rows = [torch.autograd.grad(entry, parameters, retain_graph=True) for entry in slope]
    return slope.detach(), torch.stack([torch.cat([each.flatten() for each in row]) for row in rows])


def critical_point_near(model, x, steps=12):
    """The autoencoder after Newton's steps, which stop at saddles too, and the largest slope that is left."""
    for _ in range(steps):
        slope, curvature = slope_and_curvature(model, x)
        if slope.abs().max() < 1e-11:
            break
        entries = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
        step = torch.linalg.pinv(curvature, rtol=1e-9, hermitian=True) @ slope  # none where mixing the code leads
        torch.nn.utils.vector_to_parameters(entries - step, model.parameters())
    return model, slope_and_curvature(model, x)[0].abs().max()


def the_first(chosen):
    return chosen == (0, 1)


def the_first_or_the_next(chosen):
    return chosen in ((0, 1), (0, 2))


def any_set(chosen):
    return True


def transpose(mixing):
    return mixing.T


@claim("ae.linear_landscape")
@lie("generally there are minima that are not global", printed="001/1", minimum=any_set)
@lie("the next best set of axes is a minimum too", minimum=the_first_or_the_next)
@lie("equal variances do no harm", ratio=1.0, regime="any two variances that differ will do", loose="so will these")
@lie("the code may be mixed and its decoder turned by the transpose", undo=transpose)
def saddles_but_for_the_first_axes(draw, minimum=the_first, ratio=0.7, undo=undone):
    """All ten critical points with two of five axes, others that Newton's steps find, and where descent ends."""
    x, axes = points_of(draw, torch.tensor([8.0, 4.0, 4 * ratio, 2.0, 1.0]).double())
    sets = list(itertools.combinations(range(5), 2))
    projections = torch.stack([axes[list(chosen)].T @ axes[list(chosen)] for chosen in sets])
    slopes, lowest, losses, mixed, far = [], [], [], [], []
    for chosen in sets:
        some, first, second = axes[list(chosen)], stretched(draw, 2), stretched(draw, 2)
        model = with_matrices(first @ some, some.T @ undone(first))
        slope, curvature = slope_and_curvature(model, x)
        slopes.append(slope.abs().max())
        lowest.append(torch.linalg.eigvalsh(curvature)[0])
        losses.append(model.loss(x).detach())
        mixed.append(with_matrices(second @ first @ some, some.T @ undone(first) @ undo(second)).loss(x))
        found, slope = critical_point_near(
            with_matrices(some + 0.03 * draw.normal(2, 5), some.T + 0.03 * draw.normal(5, 2)), x
        )
        if slope < 1e-9 and torch.linalg.svdvals(found.matrix.detach())[1] > 0.1:  # it may have lost its rank
            far.append((found.matrix.detach() - projections).abs().amax((1, 2)).min())
    ends = [minimised(draw, x, 2).loss(x).detach() for _ in range(2)]
    return all_of(
        close(torch.stack(slopes), torch.zeros(10).double(), scale=8.0, ulps=1e4),
        exactly(torch.stack(lowest) > -1e-6, torch.tensor([minimum(chosen) for chosen in sets])),
        close(torch.stack(mixed), torch.stack(losses), ulps=1e4),
        always([len(far) > 0]),
        at_most(torch.stack(far), 1e-6),
        close(torch.stack(ends), losses[0].expand(2), within=1e-6),
    )
