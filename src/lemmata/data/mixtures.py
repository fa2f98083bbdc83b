r"""Gaussian mixtures with known parameters, so that a learnt density can be held against the true one."""

import numpy as np
import torch

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.generated import streams, two_parts
from lemmata.data.registry import dataset

__all__ = ["gaussian_mixture"]


@dataset(
    "mixture",
    title="Gaussian mixture",
    task="density",
    origin="generated",
    size="1,000 + 1,000",
    shape="a point in the plane",
    licence="generated, none needed",
    credit="K. Pearson, Contributions to the Mathematical Theory of Evolution, 1894",
    splits="train, test",
)
def gaussian_mixture(
    n: int = 1000, test: int = 1000, components: int = 3, features: int = 2, separation: float = 4.0, seed: int = 0
) -> Dataset:
    r"""Points from a Gaussian mixture whose parameters are drawn too, and given.

    $$ p(x) = \sum_k \pi_k \, \mathcal N(x; \mu_k, \Sigma_k), \qquad \mu_k \sim \mathcal N(0, \text{separation}^2 I) $$

    Weights are at least half of what equal ones would be; covariances have eigenvalues between 1/4 and 1, so
    `separation` is in units of the largest standard deviation.

    Shapes:
        x: (n, features) float32, y: (n,) int64, the component
        extra, all float64: `weights` (components,), `means` (components, features),
        `covariances` (components, features, features)

    >>> data = gaussian_mixture(components=2, features=3)
    >>> data.train.x.shape, data.extra["covariances"].shape
    (torch.Size([1000, 3]), torch.Size([2, 3, 3]))
    """
    validate.count("components", components, least=1)
    validate.count("features", features, least=1)
    validate.number("separation", separation, least=0)
    draw = streams(seed)[0]
    weights = 0.5 / components + 0.5 * draw.dirichlet(np.ones(components))
    means = separation * draw.standard_normal((components, features))
    axes = np.linalg.qr(draw.standard_normal((components, features, features))).Q
    factors = axes * draw.uniform(0.5, 1, (components, 1, features))  # a covariance is its factor times its transpose

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        y = generator.choice(components, size, p=weights)
        noise = generator.standard_normal((size, features, 1))
        return {"x": means[y] + (factors[y] @ noise)[:, :, 0], "y": y}

    true = {"weights": weights, "means": means, "covariances": factors @ factors.swapaxes(1, 2)}
    extra = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in true.items()}
    names = tuple(map(str, range(components)))
    return two_parts("mixture", sample, n=n, test=test, seed=seed, classes=names, extra=extra)
