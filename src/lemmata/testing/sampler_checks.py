"""The checks of the conformance suite of samplers, each a few lines: it returns, or says what is wrong."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from scipy import special
from torch import Generator, Tensor

from lemmata.bayes.chain_streams import ChainStreams
from lemmata.testing.findings import Broken, Undecided
from lemmata.testing.sampler_subject import REFERENCE, Subject, margin

__all__ = []  # for the suite alone

FACTORS = (1e-30, 1e30)
CELLS_OF_BALANCE = 6  # on each side: pairs of 36 cells are compared
LEVELS = 2000  # places at which distribution functions are compared
STEPS = 20  # transitions in the checks that compare bits


def _check_interface(subject: Subject) -> None:
    kernel, start = subject.kernel(), subject.few()
    state = subject.started(kernel, start, Generator().manual_seed(0))
    _demand_state(subject, state, start, "init")
    if not torch.equal(state.position, start):
        raise Broken("init must start chains at the positions that it is given")
    now, transition = kernel.step(state, Generator().manual_seed(0))
    _demand_state(subject, now, start, "step")
    for field in ("accepted", "acceptance", "energy", "divergent"):
        if (found := getattr(transition, field, torch.empty(0)).shape) != start.shape[:1]:
            raise Broken(f"{field} of a transition must hold one entry for each chain, got shape {tuple(found)}")


def _demand_state(subject: Subject, state: Any, start: Tensor, when: str) -> None:
    if not (isinstance(state, tuple) and all(isinstance(part, Tensor) for part in state)):
        raise Broken(f"the state after {when} must be a named tuple of tensors, got {type(state).__name__}")
    position, given = (getattr(state, name, torch.empty(0)) for name in ("position", "log_density"))
    for name, part, shape in (("position", position, start.shape), ("log_density", given, start.shape[:1])):
        if part.shape != shape:
            raise Broken(f"the state after {when} must have a {name} of shape {tuple(shape)}")
    value = subject.log_density(position)
    if not torch.allclose(given, value, rtol=1e-9, atol=1e-9, equal_nan=True):
        raise Broken(f"the state after {when} has a log_density that is not that of its position")


def _check_untouched(subject: Subject) -> None:
    kernel, start = subject.kernel(), subject.few()
    given = start.clone()
    state = kernel.init(given)
    before = [part.clone() for part in state]
    kernel.step(state, Generator().manual_seed(0))
    if not torch.equal(given, start):
        raise Broken("the kernel writes into the positions that it is given")
    if not all(torch.equal(a, b) for a, b in zip(state, before, strict=True)):
        raise Broken("step writes into the state that it is given: nobody can go back to it")


def _chain_path(subject: Subject, seed: int, start: Tensor | None = None) -> list[Tensor]:
    """The positions of a few chains, transition by transition, by a new kernel."""
    kernel, generator = subject.kernel(), Generator().manual_seed(seed)
    state, path = subject.started(kernel, subject.few() if start is None else start, generator), []
    for _ in range(STEPS):
        state, _ = kernel.step(state, generator)
        path.append(state.position)
    return path


def _check_moves(subject: Subject) -> None:
    standing = torch.stack([torch.isclose(a, subject.few()).all(1) for a in _chain_path(subject, 0)]).all(0)
    if standing.all():
        raise Broken(f"no chain has moved in {STEPS} transitions")


def _check_seeds(subject: Subject) -> None:
    torch.manual_seed(1)  # noise from torch's own generator would differ between the two
    one = _chain_path(subject, 3)
    torch.manual_seed(2)
    if not all(map(torch.equal, one, _chain_path(subject, 3))):
        raise Broken("the same generator does not give the same chains: all randomness must come from it")
    if all(map(torch.equal, one, _chain_path(subject, 4))):
        raise Broken("another seed gives the same chains: the generator is not used")


def _check_resume(subject: Subject) -> None:
    kernel, generator = subject.kernel(), Generator().manual_seed(5)
    state, _ = subject.walk(kernel, subject.started(kernel, subject.few(), generator), generator, STEPS)
    saved, place = type(state)(*(part.clone() for part in state)), generator.get_state()
    whole, _ = subject.walk(kernel, state, generator, STEPS)
    again = Generator()
    again.set_state(place)
    resumed, _ = subject.walk(subject.kernel(), saved, again, STEPS)
    if not all(torch.equal(a, b) for a, b in zip(whole, resumed, strict=True)):
        raise Broken("from the saved state a new kernel goes elsewhere: the kernel remembers what the state does not")


def _many_chains(subject: Subject) -> None:
    start = subject.few()
    together, alone = [], []
    for first, rows in [(0, start), *((k, start[k : k + 1]) for k in range(len(start)))]:
        kernel, streams = subject.kernel(), ChainStreams(7, len(rows), first=first)
        try:
            state = subject.started(kernel, rows, streams)
            state, _ = subject.walk(kernel, state, streams, STEPS)
        except (TypeError, AttributeError) as error:
            raise Undecided(f"the kernel takes no ChainStreams ({error})") from None
        (alone if len(together) else together).append(state.position)
    # Matrix products round otherwise for one row than for five, which a chain that is chaotic makes larger.
    if not torch.allclose(torch.cat(alone), together[0], rtol=1e-6, atol=1e-6):
        raise Broken("a chain drawn alone is another one than among others: its random numbers or its moves are theirs")


def _check_scale(subject: Subject) -> None:
    paths = []
    for factor in (1.0, *FACTORS):
        kernel = subject.kernel(lambda x, c=math.log(factor): subject.log_density(x) + c)  # noqa: B008
        generator = Generator().manual_seed(6)
        state = subject.started(kernel, subject.few(), generator)
        state, records = subject.walk(kernel, state, generator, STEPS)
        paths.append((torch.stack([record.accepted for record in records]), state.position))
    for factor, (accepted, position) in zip(FACTORS, paths[1:], strict=True):
        changed = int((accepted != paths[0][0]).sum())
        if changed or not torch.allclose(position, paths[0][1], rtol=1e-6, atol=1e-6):
            raise Broken(f"the density times {factor:g} changes {changed} of {accepted.numel()} acceptances, or moves")


def _chain_summaries(log_density: Callable[[Tensor], Tensor], x: Tensor) -> dict[str, Tensor]:
    """Numbers whose distributions are compared: coordinates, sum and difference, radius, and the density itself."""
    named = {f"coordinate {k}": x[:, k] for k in range(x.shape[1])}
    if x.shape[1] > 1:
        named |= {"coordinates' sum": x.sum(1), "coordinates' difference": x[:, 0] - x[:, 1:].sum(1)}
    return named | {"distance from 0": x.norm(dim=1), "log density": log_density(x)}


@functools.lru_cache(8)
def _reference_sample(log_density: Callable[[Tensor], Tensor], exact: Callable[..., Tensor]) -> dict[str, Tensor]:
    """Of each summary a grid of quantiles, with the fraction of the exact draws up to each of them."""
    draws = _chain_summaries(log_density, exact(REFERENCE, Generator().manual_seed(8)))
    places = (torch.arange(1, LEVELS, dtype=torch.float64) / LEVELS * REFERENCE).long()
    return {name: _with_levels(x.sort().values, places) for name, x in draws.items()}


def _with_levels(ordered: Tensor, places: Tensor) -> Tensor:
    borders = ordered[places]
    return torch.stack([borders, torch.searchsorted(ordered, borders, right=True).double() / len(ordered)])


def _check_conservation(subject: Subject) -> None:
    generator = Generator().manual_seed(9)
    kernel = subject.kernel()
    state = subject.started(kernel, subject.exact(subject.chains, generator), generator)
    state, _ = subject.walk(kernel, state, generator, subject.transitions)
    reference = _reference_sample(subject.log_density, subject.exact)
    alpha = subject.alpha / (2 * len(reference))
    allowed = margin(subject.chains, alpha) + margin(REFERENCE, alpha)
    for name, found in _chain_summaries(subject.log_density, state.position).items():
        gap = _largest_gap(found, *reference[name])
        if not gap <= allowed:
            after = f"after {subject.transitions} transitions of chains that started in the target"
            raise Broken(f"the distribution of the {name} is off by {gap:.3g} {after}; {allowed:.3g} is chance")


def _largest_gap(found: Tensor, borders: Tensor, levels: Tensor) -> float:
    """The largest gap of the two distribution functions at the borders; 1 where there is NaN."""
    if bool(found.isnan().any()):
        return 1.0
    counts = torch.bincount(torch.bucketize(found.contiguous(), borders), minlength=len(borders) + 1)
    return float((counts.cumsum(0)[:-1].double() / len(found) - levels).abs().max())


def _check_balance(subject: Subject) -> None:
    if not subject.reversible:
        raise Undecided("the kernel is not meant to be reversible")
    generator = Generator().manual_seed(10)
    kernel, start = subject.kernel(), subject.exact(subject.chains, generator)
    state = subject.started(kernel, start, generator)
    state, _ = kernel.step(state, generator)
    cells = [_grid_cells(x, start) for x in (start, state.position)]
    n = CELLS_OF_BALANCE ** min(2, start.shape[1])
    counts = torch.bincount(cells[0] * n + cells[1], minlength=n * n).view(n, n)
    there, back = counts.triu(1).flatten(), counts.mT.triu(1).flatten()
    total = there + back
    compared = total > 0
    # Under balance each of the moves between two cells goes either way with probability a half.
    chance = special.bdtr(torch.minimum(there, back)[compared].numpy(), total[compared].numpy(), 0.5)
    worst = int(chance.argmin())
    if 2 * chance[worst] * int(compared.sum()) < subject.alpha:
        went, came = int(there[compared][worst]), int(back[compared][worst])
        raise Broken(f"between two cells of the target {went} chains went one way and {came} back: there is no balance")


def _grid_cells(x: Tensor, start: Tensor) -> Tensor:
    """The cell of each position; borders are quantiles of the target, so that none is empty."""
    cell = torch.zeros(len(x), dtype=torch.long)
    inner = torch.arange(1, CELLS_OF_BALANCE, dtype=torch.float64) / CELLS_OF_BALANCE
    for k in range(min(2, x.shape[1])):
        borders = start[:, k].sort().values[(inner * len(start)).long()]
        cell = cell * CELLS_OF_BALANCE + torch.bucketize(x[:, k].contiguous(), borders)
    return cell


CHECKS: dict[str, tuple[Callable[[Subject], None], tuple[str, ...]]] = {
    "interface": (_check_interface, ()),
    "untouched": (_check_untouched, ("interface",)),
    "moves": (_check_moves, ("interface",)),
    "seeds": (_check_seeds, ("interface",)),
    "resume": (_check_resume, ("interface", "seeds")),
    "chains": (_many_chains, ("interface", "seeds")),
    "scale": (_check_scale, ("interface", "seeds")),
    "conservation": (_check_conservation, ("interface",)),
    "balance": (_check_balance, ("interface",)),
}
