r"""What sampling gives: the draws of every chain, how they came about, and what they are worth."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from lemmata.measure.effective_samples import ChainDiagnostics, diagnose_chains

__all__ = ["Draws", "DrawsSummary"]

COME_TOGETHER = 1.01  # R-hat above that: the chains have not
ENOUGH = 100  # effective draws for each chain, below which neither tails nor their own estimate are reliable
ROWS = 20  # quantities that a table shows


@dataclass(frozen=True)
class DrawsSummary:
    """Diagnostics of each quantity, and in sentences what is wrong; `print` shows a table."""

    diagnostics: ChainDiagnostics
    acceptance: float
    divergences: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        found = self.diagnostics
        names = ("mean", "sd", "mcse", "bulk", "tail", "r_hat")
        lines = ["".join(f"{name:>11}" for name in ("", *names))]
        rows = zip(*(column.tolist() for column in found[:-1]), found.reasons, strict=True)
        for number, (mean, sd, mcse, bulk, tail, r_hat, reason) in enumerate(rows):
            if number == ROWS:
                lines.append(f"{'...':>11} and {len(found.reasons) - ROWS} more")
                break
            shown = f"  {reason}" if reason else f"{mcse:>11.3g}{bulk:>11.0f}{tail:>11.0f}{r_hat:>11.3f}"
            lines.append(f"{number:>11}{mean:>11.4g}{sd:>11.4g}{shown}")
        lines.append(f"acceptance {self.acceptance:.2f}, {self.divergences} divergent")
        return "\n".join([*lines, *self.warnings])


@dataclass(frozen=True)
class Draws:
    """The draws of every chain after its warm-up.

    `gradients` and `warmup_gradients` count those that each chain took; `kernel` is the one that drew, as the warm-up
    has tuned it; `interrupted` says that there are fewer draws than were asked for.
    """

    values: Float[Tensor, "chains draws dimension"]
    accepted: Bool[Tensor, "chains draws"]
    acceptance: Float[Tensor, "chains draws"]
    energy: Float[Tensor, "chains draws"]
    divergent: Bool[Tensor, "chains draws"]
    gradients: int
    warmup_gradients: int
    kernel: Any
    interrupted: bool = False

    @property
    def flat(self) -> Float[Tensor, "all dimension"]:
        """The draws of all chains as rows, chain after chain."""
        return self.values.flatten(0, 1)

    def summary(self) -> DrawsSummary:
        """Effective sample sizes, R-hat and errors of the means, with warnings where they are bad."""
        found = diagnose_chains(self.values)
        divergences = int(self.divergent.sum())
        warnings = []
        if (apart := int((found.r_hat > COME_TOGETHER).sum())) > 0:
            worst = f"R-hat up to {found.r_hat.nan_to_num(0).max().item():.3g}"
            warnings.append(f"the chains disagree on {apart} of {len(found.reasons)} quantities ({worst}): draw longer")
        least = min(found.bulk.nan_to_num(float("inf")).min().item(), found.tail.nan_to_num(float("inf")).min().item())
        if least < (enough := ENOUGH * len(self.values)):
            warnings.append(f"the least effective size is {least:.0f}, below {enough}: draw longer")
        if divergences:
            warnings.append(f"{divergences} trajectories were divergent: the density is too steep for the step there")
        if still := sum(map(bool, found.reasons)):
            warnings.append(f"{still} of {len(found.reasons)} quantities never moved")
        return DrawsSummary(found, float(self.acceptance.double().mean()), divergences, tuple(warnings))
