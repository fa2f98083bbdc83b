"""What a driver of a certificate is, and how it is run: draw an instance, ask, and judge the answer by the truth."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from tests.certificates.instances import Source

# How the library says that it does not answer. Anything else that is raised is a fault, not a refusal.
REFUSALS = (ValueError, TypeError, ArithmeticError, NotImplementedError)


MANY = 20  # errors that are no refusals, after which a run ends


class FalseCertificate(AssertionError):
    """An answer that was given as proved and is not true."""


class Refused(Exception):
    """The answer came, but without a certificate."""


@dataclass(frozen=True)
class Certificate:
    """A function that proves what it says, with a source of instances and a judge that knows the truth.

    `judge(answer, *arguments)` raises `FalseCertificate` or `Refused`; else it returns how many times wider than needed
    the answer was, if that has a meaning. `broken` are subjects that are wrong on purpose: the same instances must
    show it. `share` is for slow ones: the fraction of instances that they get.
    """

    name: str
    subject: Callable[..., Any]
    draw: Callable[[Source], tuple]
    judge: Callable[..., float | None]
    broken: Mapping[str, Callable[..., Any]]
    share: float = 1.0


@dataclass
class Tally:
    """What became of the instances of one certificate."""

    name: str
    instances: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    broke: list[str] = field(default_factory=list)  # errors that are no refusals
    widest: float | None = None

    def add(self, other: "Tally") -> None:
        """Count what another run of the same certificate found."""
        self.instances, self.refused = self.instances + other.instances, self.refused + other.refused
        self.wrong, self.broke = self.wrong + other.wrong, self.broke + other.broke
        self.widest = max((width for width in (self.widest, other.widest) if width is not None), default=None)

    def __str__(self) -> str:
        widest = "" if self.widest is None else f"{self.widest:.3g}"
        faults = f"{len(self.wrong):6,} {len(self.broke):6,}"
        return f"{self.name:28} {self.instances:9,} {self.refused:8,} {faults} {widest:>10}"


HEAD = f"{'function':28} {'instances':>9} {'refused':>8} {'wrong':>6} {'broke':>6} {'widest':>10}"


def demand(holds: bool, message: str) -> None:
    if not holds:
        raise FalseCertificate(message)


def instances(certificate: Certificate, count: int, seed: int, first: int = 0) -> Iterator[tuple[int, tuple]]:
    """Instance number i is the same whatever else is drawn."""
    for index in range(first, first + count):
        yield index, certificate.draw(Source(f"{certificate.name}/{seed}/{index}"))


def run(certificate: Certificate, count: int, seed: int, first: int = 0, subject=None, patience: int = 10) -> Tally:
    """Drive a certificate, or a subject in its place, and stop after a few false answers: they are told in words."""
    subject, tally = subject or certificate.subject, Tally(certificate.name)
    for index, arguments in instances(certificate, count, seed, first):
        tally.instances += 1
        try:
            width = certificate.judge(subject(*arguments), *arguments)
        except (Refused, *REFUSALS):
            tally.refused += 1
        except Exception as fault:
            told = ", ".join(map(shown, arguments))
            again = f"--only {certificate.name} --seed {seed} --first {index} --instances 1"
            message = f"{certificate.name}: {type(fault).__name__}: {fault}\n  of {told}\n  again: {again}"
            (tally.wrong if isinstance(fault, FalseCertificate) else tally.broke).append(message)
            if len(tally.wrong) >= patience or len(tally.broke) >= MANY:
                break
        else:
            if width is not None:
                tally.widest = max(width, tally.widest or 0.0)
    return tally


def shown(argument: Any) -> str:
    """An argument in all its digits."""
    if isinstance(argument, torch.Tensor):
        listed = f"{argument.tolist()}" if argument.numel() <= 64 else f"shape {tuple(argument.shape)}"
        return f"tensor({listed}, dtype={argument.dtype})"
    return str(argument)
