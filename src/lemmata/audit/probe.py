r"""What makes a function a probe, and how all of them are found."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding
from lemmata.audit.subject import Subject

__all__ = []  # for probes

Asks = Callable[[Subject, Clock], Iterable[AuditFinding]]
Need = Literal["targets", "test", "lr", "classes"]


@dataclass(frozen=True)
class Probe:
    """A question that the audit asks: its title, what it must know, its share of the time, and its rank."""

    name: str
    title: str
    asks: Asks
    value: int
    share: float
    needs: Sequence[Need]

    def missing(self, subject: Subject) -> str:
        """What it needs and was not given, in words; empty if nothing."""
        if subject.unusable and {"targets", "test", "classes"} & set(self.needs):
            return f"targets that fit the outputs: {subject.unusable}"
        here = {
            "targets": subject.train.targets is not None,
            "test": subject.test is not None and subject.test.targets is not None,
            "lr": subject.training.lr is not None,
            "classes": subject.task in ("classes", "binary"),
        }
        words = {
            "targets": "data with targets", "test": "a test part (test=..., --test)",
            "lr": "a learning rate (lr=..., --lr)", "classes": "a classifier",
        }  # fmt: skip
        return next((words[need] for need in self.needs if not here[need]), "")


def probe(title: str, value: int, share: float = 0.2, needs: Sequence[Need] = ()) -> Callable[[Asks], Probe]:
    """Mark a function of (subject, clock) as a probe. Larger `value` is asked earlier; `share` is the part of the whole
    time that it may take. Its name is that of its file.
    """

    def mark(asks: Asks) -> Probe:
        return Probe(asks.__module__.rpartition(".")[2], title, asks, value, share, needs)

    return mark


def all_probes() -> list[Probe]:
    """Every probe in the folder of probes, the most valuable first."""
    from lemmata.audit import probes

    found = []
    for entry in pkgutil.iter_modules(probes.__path__):
        module = importlib.import_module(f"{probes.__name__}.{entry.name}")
        found += [value for value in vars(module).values() if isinstance(value, Probe)]
    return sorted(found, key=lambda one: (-one.value, one.name))
