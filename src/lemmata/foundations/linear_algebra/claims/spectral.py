"""The spectral norm: the largest singular value, between bounds that are proved and bounds that are probable."""

import torch

from lemmata.certified.norms import frobenius_norm
from lemmata.judge import all_of, always, at_most, claim, close, lie
from lemmata.measure.probable_norm import probable_spectral_norm
from lemmata.measure.spectral import certified_spectral_norm


def spectral_radius(matrix):
    """The largest size of an eigenvalue."""
    return torch.linalg.eigvals(matrix).abs().amax(-1)


@claim("linalg.spectral_norm")
@lie("the norm is the largest size of an eigenvalue", top=spectral_radius)
@lie("nine tenths of the product of the norms bound the norm of the product", factor=0.9)
@lie("the root of the largest eigenvalue of the Gram matrix is not taken", root=1.0)
def the_spectral_norm_is_the_largest_singular_value(
    draw, top=lambda a: torch.linalg.svdvals(a)[..., 0], factor=1.0, root=2.0
):
    """Spectra of many kinds: bounds against singular values, stretched vectors and eigenvalues of Gram matrices."""
    parts = []
    for n in (1, 6, 20):
        a, b = spectra(draw, n), spectra(draw, n)
        b[0] = a[0].mT  # |A A^T| = |A|^2
        bounds, other = certified_spectral_norm(a), certified_spectral_norm(b)
        probable = probable_spectral_norm(a, 1e-4, generator=draw.generator)
        product = certified_spectral_norm(a @ b)
        stretched = (a[:, None] @ draw.unit(len(a), 100, n)[..., None]).squeeze(-1).norm(dim=-1)
        longest = (a @ bounds.right[..., None]).squeeze(-1).norm(dim=-1)
        gram = torch.linalg.eigvalsh(a.mT @ a)[..., -1]
        largest = torch.linalg.svdvals(a)[..., 0]
        # The vectors are found to 1e-6, the value to the square of that.
        parts += [
            close(bounds.value, top(a), scale=largest, ulps=1e5),
            close(bounds.value, gram ** (1 / root), scale=largest, ulps=1e5),
            at_most(stretched.amax(-1), bounds.upper),
            close(longest, largest, scale=largest, ulps=1e5, detail="one unit vector is stretched as far"),
            at_most(bounds.value, frobenius_norm(a), attained=True),
            at_most(product.value, factor * bounds.value * other.value, attained=True, ulps=1e5),
            always((probable.lower <= largest) & (largest <= probable.upper), detail="bounds from a random start"),
        ]
    # All singular values are 1 but for one, which a search may take for all there is.
    flat = torch.ones(300).double()
    flat[7] = 1.02
    found = (
        certified_spectral_norm(torch.diag(flat)),
        probable_spectral_norm(torch.diag(flat), 1e-2, 1e-9, draw.generator),
    )
    return all_of(*parts, always([bool(bounds.lower <= flat[7] <= bounds.upper < 1.031) for bounds in found]))


def spectra(draw, n):
    """Square matrices: Gaussian, of rank one, orthogonal, nearly so, graded, shifts, whole numbers, tiny and huge."""
    ones, grades = torch.ones(n).double(), torch.logspace(0, -12, n, dtype=torch.float64)
    nearly = torch.cat([1.0012 * ones[:1], ones[1:]])
    turned = [(draw.orthogonal(n) * values) @ draw.orthogonal(n) for values in (3 * ones, nearly, grades)]
    others = [draw.normal(n, 1) @ draw.normal(1, n), torch.diag(torch.arange(1, n).double(), 1)]
    others += [draw.integers(-2, 3, n, n).double(), 2.0**-300 * draw.normal(n, n), 2.0**300 * draw.normal(n, n)]
    return torch.stack([draw.normal(n, n), *turned, *others])
