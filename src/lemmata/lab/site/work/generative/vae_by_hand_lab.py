r"""The lab of a VAE by hand: one latent, one observation, and a normal q whose bound and gap follow every move."""

import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.distributions import Normal

from lemmata.figure import Bars, Figure, Heat, Line, Points
from lemmata.generative.autoencoders.elbo import ELBO, discrete_elbo
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "VAE by hand",
    "sentence": "Move q yourself: what the bound gains the gap loses, and their sum, the evidence, stands still.",
    "year": 2014,
    "chapter": "generative",
    "claims": ("vae.elbo", "vae.elbo_gap", "vae.gaussian_encoder", "vae.kl_gaussian"),
    "systems": ("vae", "discrete_elbo", "standard_normal_kl", "reparameterize"),
    "command": "lemmata check 'vae.elbo*'",
    "thumbnail": {"model": "bent", "mean": "1.5", "spread": "0.3"},
}

STEP = 0.05  # of the grid of codes: sums over it are integrals to rounding, for spreads from 0.1 on
MEANS = [k / 10 for k in range(-30, 31)]
SPREADS = [k / 10 for k in range(1, 21)]
SHOWN = 4.0  # codes that the picture shows, on either side


class State(LabState):
    """The decoder, what is observed, its noise, and q."""

    model: Literal["straight", "bent"] = "straight"
    x: Annotated[float, Field(ge=-2, le=3)] = 1.5
    noise: Annotated[float, Field(ge=0.3, le=1.5)] = 0.6
    mean: Annotated[float, Field(ge=-3, le=3)] = -0.5
    spread: Annotated[float, Field(ge=0.1, le=2)] = 0.8


# --- The model on a grid of codes ---


@functools.cache
def codes() -> Tensor:
    return torch.arange(-280, 281, dtype=torch.float64) * STEP


def decoded(model: str) -> Tensor:
    """The mean of x for each code: the code itself, or a parabola on which two codes give the same."""
    return codes() if model == "straight" else codes().square() - 1


def log_likelihood(state: State) -> Tensor:
    return Normal(decoded(state.model), state.noise).log_prob(torch.tensor(state.x, dtype=torch.float64))


def on_grid(mean: float | Tensor, spread: float | Tensor) -> Tensor:
    """Probabilities of the codes under a normal law, that sum to 1."""
    place, width = (torch.as_tensor(each, dtype=torch.float64)[..., None] for each in (mean, spread))
    return (-((codes() - place) / width).square() / 2).softmax(-1)


def bound(state: State, mean: float | Tensor, spread: float | Tensor) -> ELBO:
    return discrete_elbo(log_likelihood(state), on_grid(0.0, 1.0), on_grid(mean, spread))


def landscape(state: State) -> Tensor:
    """The bound for each spread (rows) and mean (columns) of q."""
    rows = torch.tensor(SPREADS).double()[:, None].expand(-1, len(MEANS))
    return bound(state, torch.tensor(MEANS).double().expand(len(SPREADS), -1), rows).value


def best_of(values: Tensor, mean: float) -> tuple[float, float]:
    """Mean and spread of the largest bound; where two are as large, as on either side of a parabola, the nearer."""
    rows, columns = (values >= values.max() - 1e-9).nonzero(as_tuple=True)
    found = [(MEANS[column], SPREADS[row]) for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    return min(found, key=lambda each: abs(each[0] - mean - 1e-6))


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """The evidence, the bound with its two terms, the gap, and the best q of those tried."""
    joint = log_likelihood(state) + on_grid(0.0, 1.0).log()
    evidence = float(joint.logsumexp(0))
    terms, values = bound(state, state.mean, state.spread), landscape(state)
    best = best_of(values, state.mean)
    elbo = float(terms.value)
    return {
        "evidence": round(evidence, 4),
        "elbo": round(elbo, 4),
        "gap": round(max(evidence - elbo, 0.0), 4),
        "reconstruction": round(float(terms.reconstruction), 4),
        "kl": round(float(terms.kl), 4),
        "best": {"mean": best[0], "spread": best[1], "gap": round(evidence - float(values.max()), 4)},
        "python": python(state),
        "figures": {
            "codes": still(state),
            "parts": parts(evidence, terms),
            "landscape": chart(state, values, evidence, best),
        },
    }


def still(state: State) -> Figure:
    """Prior, posterior and q along the codes."""
    joint = log_likelihood(state) + on_grid(0.0, 1.0).log()
    near = codes().abs() <= SHOWN
    curves = {"posterior p(z|x)": joint.softmax(0), "prior p(z)": on_grid(0.0, 1.0)}
    curves["q(z)"] = on_grid(state.mean, state.spread)
    marks = [
        Line(_rounded_values(codes()[near]), _rounded_values(law[near] / STEP), name) for name, law in curves.items()
    ]
    missed = float(joint.logsumexp(0) - bound(state, state.mean, state.spread).value)
    return Figure(f"q misses {max(missed, 0.0):.3g} nats of the evidence", "code z", "density", marks)


def parts(evidence: float, terms: ELBO) -> Figure:
    """The bound from its two terms, and the evidence from the bound and the gap."""
    elbo = float(terms.value)
    bars = {"E log p(x|z)": float(terms.reconstruction), "- KL": -float(terms.kl), "= ELBO": elbo}
    bars |= {"+ gap": max(evidence - elbo, 0.0), "= log p(x)": evidence}
    return Figure("Nats", marks=[Bars(list(bars), [round(value, 4) for value in bars.values()])])


def chart(state: State, values: Tensor, evidence: float, best: tuple[float, float]) -> Figure:
    """The bound of every q, cut off far below the evidence, with the q of the moment and the best one."""
    shown = values.clamp(min=evidence - 6)
    marks = [
        Heat(_rounded_values(shown[:, ::2]), MEANS[::2], SPREADS, "ELBO"),  # as fine as an eye needs
        Points([best[0]], [best[1]], "best of these"),
        Points([state.mean], [state.spread], "here"),
    ]
    return Figure(f"The bound of every q; log p(x) = {evidence:.3g}", "mean of q", "spread of q", marks)


def _rounded_values(values: Tensor) -> Any:
    return values.mul(1000).round().div(1000).tolist()


def python(state: State) -> str:
    """The same in Python."""
    decoder = "z" if state.model == "straight" else "z.square() - 1"
    return (
        "import torch\nfrom torch.distributions import Normal\nfrom lemmata.generative import discrete_elbo\n\n"
        f"z = torch.arange(-280, 281).double() * {STEP:g}\n"
        f"prior, q = ((-((z - m) / s) ** 2 / 2).softmax(0) for m, s in ((0, 1), ({state.mean:g}, {state.spread:g})))\n"
        f"likely = Normal({decoder}, {state.noise:g}).log_prob(torch.tensor({state.x:g}).double())\n"
        "terms = discrete_elbo(likely, prior, q)\n"
        "print(terms, terms.value, (likely + prior.log()).logsumexp(0))"
    )
