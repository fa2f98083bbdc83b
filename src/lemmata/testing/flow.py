"""Is it a density, and are those its samples? A conformance suite for anyone's normalising flow."""

from collections.abc import Sequence
from typing import Any, Literal

import torch

from lemmata.testing.findings import Nonconforming, Report, asked, found
from lemmata.testing.flow_checks import CHECKS
from lemmata.testing.flow_subject import Subject

__all__ = ["FlowError", "FlowReport", "check_flow"]


class FlowReport(Report):
    """The findings about one flow, in the order of the checks."""


class FlowError(Nonconforming):
    """A flow that failed a check of the suite; `report` holds all findings."""


def check_flow(
    flow: Any,
    features: int = 2,
    *,
    variances: tuple[float, float] = (1 / 9, 9.0),
    steps: int = 200,
    lr: float = 1e-2,
    skip: Sequence[str] = (),
    on_fail: Literal["raise", "report"] = "raise",
) -> FlowReport:
    r"""Run every check of the suite on a flow, or on any density from which one can sample.

    $$ \log p(x) = \log p_z(f^{-1}(x)) + \log|\det J_{f^{-1}}(x)|, \qquad \int p(x)\,dx = 1 $$

    Asked for are `log_prob(x)`, one number per example, and `sample(n)`; what has `sample_and_log_prob(n)`, and
    `encode(x)` and `decode(z)` between data and noise, is asked more. The noise is that of `flow.base`, else standard
    normal. Copies are fitted to three simple laws, because a flow that begins as the identity keeps every law; the one
    that was given stays as it is. The checks:

    - interface: shapes, finite numbers
    - untouched: the examples are not written into
    - rows: an example alone gets what it gets among others
    - seeds: the generator decides, or torch's own where `sample` takes none
    - narrow, wide: fitted to $\mathcal N(0, vI)$ for both `variances`, it is within 0.2 nats per feature
    - inverse: there and back again in float64, and in float32
    - jacobian: the log-determinant is that of the full Jacobian
    - integral: the density has mass 1, as given and fitted, on a grid for one or two features, else by importance
      sampling
    - samples: they fall where the density says
    - agrees: the log-density that comes with samples is that which is computed for them
    - precision: float32 and float64 give the same

    Fitting takes `steps` of Adam with `lr`. With `on_fail="report"` failures are reported, not raised.

    >>> from lemmata.generative import RealNVP
    >>> print(check_flow(RealNVP(2, couplings=4, widths=(16,))))
    RealNVP: 0 of 12 checks failed
    interface  passed
    untouched  passed
    rows       passed
    seeds      passed
    narrow     passed
    wide       passed
    inverse    passed
    jacobian   passed
    integral   passed
    samples    passed
    agrees     passed
    precision  passed
    """
    asked(CHECKS, skip, on_fail)
    subject = Subject.of(flow, features, variances, steps, lr)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        report = FlowReport(subject.name, found(CHECKS, subject, skip, "flow"))
    if on_fail == "raise" and not report.passed:
        raise FlowError(report)
    return report
