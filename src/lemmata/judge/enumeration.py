"""Proof by going through every case: the judge makes the cases of a finite domain itself and leaves none out."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata.judge import pictures
from lemmata.judge.evidence import Evidence, proved
from lemmata.judge.exact import condition as boolean
from lemmata.judge.exact import differs, exactly
from lemmata.judge.pictures import while_watched

__all__ = ["Domain", "count_is", "everywhere", "same_everywhere"]

# A condition that takes a microsecond would take a minute and a half.
MOST_CASES = 10**8
BATCH = 4096


@dataclass(frozen=True)
class Domain:
    """A finite domain, by what it consists of; its cases follow from that alone. `*` gives all pairs of two domains.

    >>> Domain.signs(2)
    all 4 vectors of 2 signs
    >>> list((Domain.bits(1) * Domain.range(5, 7)).cases())
    [((0,), 5), ((0,), 6), ((1,), 5), ((1,), 6)]
    """

    kind: str
    of: tuple[Any, ...]
    length: int = 1

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {self.kind!r}")
        if self.length < 0:
            raise ValueError(f"a domain of {self.kind} needs a length >= 0, got {self.length}")
        if self.kind in ("vectors", "values") and len({*map(repr, self.of)}) < len(self.of):
            raise ValueError(f"a domain lists each value once, got {self.of}")

    @staticmethod
    def vectors(values: tuple[Any, ...], n: int) -> "Domain":
        """Every vector of length n whose entries are among these values."""
        return Domain("vectors", tuple(values), n)

    @staticmethod
    def signs(n: int) -> "Domain":
        """Every vector of n signs, -1 or 1."""
        return Domain.vectors((-1, 1), n)

    @staticmethod
    def bits(n: int) -> "Domain":
        """Every vector of n bits, in counting order."""
        return Domain.vectors((0, 1), n)

    @staticmethod
    def subsets(n: int) -> "Domain":
        """Every subset of 0, ..., n - 1, as an increasing tuple."""
        return Domain("subsets", tuple(range(n)), n)

    @staticmethod
    def permutations(n: int) -> "Domain":
        """Every order of 0, ..., n - 1."""
        return Domain("orders", tuple(range(n)), n)

    @staticmethod
    def range(low: int, high: int) -> "Domain":
        """The integers from low up to, not including, high."""
        return Domain("integers", (low, max(low, high)))

    @staticmethod
    def listed(*values: Any) -> "Domain":
        """These values and no others: for what the statement itself lists. The evidence shows them."""
        return Domain("values", values)

    def __mul__(self, other: "Domain") -> "Domain":
        return Domain("combinations", (*self._domain_factors(), *other._domain_factors()))

    @property
    def size(self) -> int:
        return _KINDS[self.kind][0](self)

    def cases(self) -> Iterator[Any]:
        return _KINDS[self.kind][1](self)

    def __repr__(self) -> str:
        return f"all {self.size:,} {self._domain_words()}"

    def _domain_factors(self) -> tuple["Domain", ...]:
        return self.of if self.kind == "combinations" else (self,)

    def _domain_words(self) -> str:
        if self.kind == "vectors":
            entries = {(-1, 1): "signs", (0, 1): "bits"}.get(self.of, f"entries from {self.of}")
            return f"vectors of {self.length} {entries}"
        if self.kind == "integers":
            return f"integers from {self.of[0]} to {self.of[1] - 1}"
        if self.kind == "values":
            return f"of {', '.join(map(str, self.of))}"
        if self.kind == "combinations":
            return "combinations of " + " and ".join(f"{factor.size:,} {factor._domain_words()}" for factor in self.of)
        return f"{self.kind} of {self.length} things"


# How many cases a domain of each kind has, and how to go through them.
_KINDS: dict[str, tuple[Callable[[Domain], int], Callable[[Domain], Iterator[Any]]]] = {
    "vectors": (lambda d: len(d.of) ** d.length, lambda d: itertools.product(d.of, repeat=d.length)),
    "subsets": (
        lambda d: 2**d.length,
        lambda d: itertools.chain.from_iterable(itertools.combinations(d.of, k) for k in range(d.length + 1)),
    ),
    "orders": (lambda d: math.factorial(d.length), lambda d: itertools.permutations(d.of)),
    "integers": (lambda d: d.of[1] - d.of[0], lambda d: iter(range(*d.of))),
    "values": (lambda d: len(d.of), lambda d: iter(d.of)),
    "combinations": (
        lambda d: math.prod(factor.size for factor in d.of),
        lambda d: itertools.product(*(factor.cases() for factor in d.of)),
    ),
}


def everywhere(cases: Domain, condition: Callable[..., Any], *, vectorised: bool = False) -> Evidence:
    """The condition is met in every case of the domain: a proof.

    It takes one case, or one argument for each factor of a product. `vectorised` conditions take many cases at once,
    as the rows of a tensor, and answer with one boolean for each.

    >>> everywhere(Domain.signs(3), lambda s: sum(s) % 2 == 1).proof
    True
    >>> everywhere(Domain.bits(10), lambda b: b.sum(dim=1) < 10, vectorised=True).detail
    'all 1,024 vectors of 10 bits; first fails at (1, 1, 1, 1, 1, 1, 1, 1, 1, 1)'
    """
    return _count_cases(cases, condition, vectorised)


def count_is(cases: Domain, condition: Callable[..., Any], predicted: int, *, vectorised: bool = False) -> Evidence:
    """The condition is met in so many cases of the domain and in no other: a proof. As `everywhere`.

    >>> count_is(Domain.bits(4), lambda b: sum(b) == 2, 6).detail
    '6 among all 16 vectors of 4 bits'
    """
    return _count_cases(cases, condition, vectorised, predicted)


def same_everywhere(
    cases: Domain, measured: Callable[..., Any], predicted: Callable[..., Any], *, vectorised: bool = False
) -> Evidence:
    """Two functions are equal, to the last bit, in every case of the domain: a proof. As `everywhere`.

    >>> same_everywhere(Domain.range(0, 50), lambda n: n * (n + 1) // 2, lambda n: sum(range(n + 1))).proof
    True
    """

    unknown = []

    def same(*case: Any) -> Any:
        left, right = measured(*case), predicted(*case)
        if not vectorised:
            found = exactly(left, right)
            unknown.append(found.undecided)
            return found.holds
        if left.shape != right.shape:
            raise ValueError(f"the functions gave shapes {tuple(left.shape)} and {tuple(right.shape)}: return the same")
        unknown.append(bool(left.isnan().any() or right.isnan().any()))
        return ~differs(left, right).flatten(1).any(dim=1) if left.ndim > 1 else ~differs(left, right)

    evidence = _count_cases(cases, same, vectorised)
    return (
        Evidence("exact", math.nan, math.nan, detail=f"NaN among the values on {cases}") if any(unknown) else evidence
    )


def _count_cases(
    cases: Domain, condition: Callable[..., Any], vectorised: bool, predicted: int | None = None
) -> Evidence:
    if not isinstance(cases, Domain):
        raise TypeError(f"cases must be a Domain such as Domain.signs(4), got {type(cases).__name__}")
    if cases.size < 2:
        raise ValueError(f"{cases}: a domain of fewer than two cases proves nothing, use exactly or always")
    if cases.size > MOST_CASES:
        raise ValueError(f"{cases}: more than {MOST_CASES:,} are too many to go through")
    true, fails = 0, ""
    for batch in _case_batches(cases):
        met = _condition_answers(batch, condition) if vectorised else [boolean(condition(*c)) for c in batch]
        true += sum(met)
        if not fails and not all(met):
            fails = f"; first fails at {', '.join(map(str, batch[met.index(False)]))[:80]}"
    if predicted is not None:
        evidence = Evidence("exact", true, predicted, detail=f"{true:,} among {cases}")
    else:
        evidence = Evidence("exact", true, cases.size, detail=f"{cases}{fails}")
    return while_watched(proved(evidence), lambda: pictures.cases(true, cases.size, predicted))


def _case_batches(cases: Domain) -> Iterator[list[tuple[Any, ...]]]:
    """Every case as the arguments of a condition."""
    walk = cases.cases() if cases.kind == "combinations" else ((case,) for case in cases.cases())
    while batch := list(itertools.islice(walk, BATCH)):
        yield batch


def _condition_answers(batch: list[tuple[Any, ...]], condition: Callable[..., Any]) -> list[bool]:
    met = condition(*(torch.tensor(column) for column in zip(*batch, strict=True)))
    if not isinstance(met, Tensor) or met.dtype != torch.bool or met.shape != (len(batch),):
        got = f"{met.dtype} of shape {tuple(met.shape)}" if isinstance(met, Tensor) else type(met).__name__
        raise TypeError(f"a vectorised condition must answer {len(batch)} cases with a boolean each, got {got}")
    return met.tolist()
