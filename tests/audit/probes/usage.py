"""Data and small models that the tests of the usage probes share."""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import lemmata
from lemmata.audit.auditing import audit
from lemmata.audit.finding import AuditFinding
from lemmata.data.registry import load


@functools.cache
def digits() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Training and test part, (x, y) each, x (examples, 1, 8, 8) of order one."""
    parts = load("digits").parts
    train, test = (
        (part["x"].float().reshape(-1, 1, 8, 8), part["y"].long()) for part in (parts["train"], parts["test"])
    )
    return train, test


@functools.cache
def diabetes() -> tuple[Tensor, Tensor]:
    """Measurements and a number to be predicted, both of mean 0 and deviation 1."""
    part = load("diabetes").train
    x, y = part["x"].float(), part["y"].float()
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


def asked(model: nn.Module, data: Any, test: Any = None, *, probe: str, **more: Any) -> list[AuditFinding]:
    """What one probe says; the model must come back as it was."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [part.training for part in model.modules()]
    half = any(value.dtype is torch.bfloat16 for value in model.parameters())
    with torch_kernels() if half else contextlib.nullcontext():
        findings = list(audit(model, data, test, probes=[probe], **more).findings)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(set(finding.claims) <= statements() for finding in findings)
    assert modes == [part.training for part in model.modules()]
    assert all(value.grad is None for value in model.parameters())
    return findings


@functools.cache
def statements() -> set[str]:
    """The ids of all statements that there are."""
    files = Path(lemmata.__file__).parent.rglob("statements.yaml")
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return {line.removeprefix("- id:").strip() for line in lines if line.startswith("- id:")}


@contextlib.contextmanager
def torch_kernels() -> Iterator[None]:
    """Without oneDNN: some virtual machines announce matrix units for bfloat16 that it then cannot use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TF32 acceleration")  # what torch says whenever a switch of oneDNN is set
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def alarms(findings: list[AuditFinding]) -> list[str]:
    return [finding.name for finding in findings if finding.severity == "alarm"]


def named(findings: list[AuditFinding], name: str) -> AuditFinding:
    (found,) = [finding for finding in findings if finding.name == name]
    return found


def trained(
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
    steps: int = 150,
    lr: float = 3e-3,
) -> nn.Module:
    """A model after some steps of Adam on batches of 128; the seed is the caller's."""
    optimizer = torch.optim.Adam(model.parameters(), lr)
    for _ in range(steps):
        rows = torch.randint(len(data[0]), (128,))
        optimizer.zero_grad()
        loss(model(data[0][rows]), data[1][rows]).backward()
        optimizer.step()
    optimizer.zero_grad()
    return model


def perceptron(outputs: int = 10, inputs: int = 64, *last: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs), *last)


class Texts(nn.Module):
    """Words to classes of words, classes last, as language models answer; with logits=True as a dict with .logits."""

    def __init__(self, logits: bool = False):
        super().__init__()
        self.words, self.head, self.logits = nn.Embedding(20, 8), nn.Linear(8, 20), logits

    def forward(self, tokens: Tensor) -> Any:
        answer = self.head(self.words(tokens))  # (batch, time, classes)
        return {"hidden": answer[..., :1], "logits": answer} if self.logits else answer
