r"""The audit itself: asks every probe within a time budget, and gives the model back as it was found."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from lemmata import validate
from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.finding import AuditFinding, skipped
from lemmata.audit.probe import Probe, all_probes
from lemmata.audit.report import AuditReport
from lemmata.audit.sample import Sample, as_sample
from lemmata.audit.subject import Subject, Training
from lemmata.data.examples import Dataset
from lemmata.data.registry import load
from lemmata.train.as_found import kept_as_found
from lemmata.train.randomness import seeded

__all__ = ["audit"]

OPTIMIZERS = ("sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad")


def audit(
    model: nn.Module,
    data: Any,
    test: Any = None,
    *,
    loss: "str | Callable[[Any, Any], Tensor] | None" = None,
    optimizer: "str | torch.optim.Optimizer | None" = None,
    lr: float | None = None,
    momentum: float = 0.0,
    batch_size: int | None = None,
    forward: Callable[[nn.Module, dict[str, Tensor]], Any] | None = None,
    budget: float = 60.0,
    probes: Sequence[str] | None = None,
    name: str = "",
    watch: Callable[[str], None] | None = None,
    on_finding: Callable[[AuditFinding], None] | None = None,
) -> AuditReport:
    r"""What theory says about a model of one's own, a classifier or a regressor.

    `data` and `test` are tensors `(x, y)`, arrays, a dict of them, a torch Dataset or DataLoader, or the name of one of
    lemmata's data sets, which brings its own test part. `loss(outputs, targets)` is a function or one of cross_entropy,
    nll, bce (of logits), mse, l1 and huber; without one it is chosen by the targets. An optimiser may be given by name
    with `lr` and `momentum`, or as it is, with its state. A model with inputs of its own kind is called by
    `forward(model, batch)`, where `batch` holds the input columns by name. `budget` is the time in seconds;
    `watch(title)` is called as each probe begins, and `on_finding(finding)` with each finding as it is made.

    The model comes back exactly as it was: weights, mode, gradients, hooks, and the random numbers too.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    >>> report = audit(model, "digits", lr=0.01, optimizer="sgd", budget=5.0)
    >>> report.subject, report.alarms
    ('Sequential', [])
    """
    validate.module("model", model)
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError("model must be a module of Python, got a scripted one: give the module that it was made from")
    if any(is_lazy(p) for p in [*model.parameters(), *model.buffers()]):
        raise ValueError("model has lazy layers without weights: give it one batch of examples first")
    if any(p.is_meta for p in [*model.parameters(), *model.buffers()]):
        raise ValueError("model is on the meta device, where tensors hold no numbers: load its weights first")
    validate.positive("budget", budget)
    chosen = _chosen_probes(probes)
    training = _training_facts(optimizer, lr, momentum, batch_size)
    clock = Clock(float(budget))  # from here on: to import the probes takes seconds the first time
    with seeded(0):  # loaders draw too
        train_sample, test_sample = _read_samples(data, test, budget)
    with _as_it_is_written(model), kept_as_found(model), torch.enable_grad(), seeded(0):
        model = getattr(model, "_orig_mod", model)  # what was compiled
        subject = Subject(model, train_sample, test_sample, loss, forward, training, name, clock.left())
        # Each probe finds the model as the first one did, whatever the ones before it tried.
        with kept_as_found(model) as give_back:
            findings = []
            for finding in (finding for one in chosen for finding in _ask_probe(one, subject, clock, watch, give_back)):
                findings.append(finding)
                if on_finding:
                    on_finding(finding)
        facts = _report_facts(subject)
    return AuditReport(subject.name, findings, facts, clock.spent(), budget)


def _as_it_is_written(model: nn.Module) -> contextlib.AbstractContextManager[Any]:
    """Compiled models run line by line, so that one can watch them."""
    compiled = any(
        hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None for part in model.modules()
    )
    return torch.compiler.set_stance("force_eager") if compiled else contextlib.nullcontext()


def _ask_probe(
    one: Probe, subject: Subject, clock: Clock, watch: Callable[[str], None] | None, give_back: Callable[[], None]
) -> Iterator[AuditFinding]:
    """The findings of one probe; what cannot be asked is said."""
    if watch:
        watch(one.title)
    words = one.name.replace("_", " ")
    if missing := one.missing(subject):
        yield skipped(words, f"it needs {missing}", probe=one.name)
        return
    own, subject.network.clock = clock.part(one.share), clock.part(2 * one.share)  # what it asks, and where it is cut
    try:
        for finding in one.asks(subject, own):
            yield replace(finding, probe=one.name)
    except OutOfTime as error:
        enough = max(1.1 * error.times * clock.seconds, 1.0)
        yield skipped(words, f"{error}: try --budget {float(f'{enough:.2g}'):.0f}", probe=one.name)
    except torch.OutOfMemoryError:
        yield skipped(words, f"it needs more memory than {subject.device} has left", probe=one.name)
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        yield skipped(words, f"it could not be measured: {told}", probe=one.name)
    finally:
        give_back()


def _chosen_probes(names: Sequence[str] | None) -> list[Probe]:
    known = all_probes()
    if names is None:
        return known
    wanted = {validate.one_of("probes", name, [one.name for one in known]) for name in names}
    return [one for one in known if one.name in wanted]


def _read_samples(data: Any, test: Any, budget: float) -> tuple[Sample, Sample | None]:
    """Training and test part; at most a tenth of the time goes into reading each."""
    if isinstance(data, str):
        data = load(data)
    if isinstance(data, Dataset):
        if test is None:
            test = data.parts.get("test", data.parts.get("validation"))
        data = data.train
    train_sample = as_sample(data, "data", budget / 10)
    if test is None:
        return train_sample, None
    test_sample = as_sample(test, "test", budget / 10)
    if list(test_sample.inputs) != list(train_sample.inputs):
        raise ValueError(f"test must have the columns of data, {', '.join(train_sample.inputs)}")
    return train_sample, test_sample


def _training_facts(
    optimizer: "str | torch.optim.Optimizer | None", lr: float | None, momentum: float, batch_size: int | None
) -> Training:
    if batch_size is not None:
        validate.count("batch_size", batch_size)
    if isinstance(optimizer, torch.optim.Optimizer):
        first = optimizer.param_groups[0]
        kind = type(optimizer).__name__.lower()
        own = {name: first[name] for name in ("momentum", "nesterov", "betas", "eps", "weight_decay") if name in first}
        return Training(float(first["lr"]), kind, batch_size=batch_size, running=optimizer, **own)
    if lr is not None:
        validate.positive("lr", lr)
    validate.fraction("momentum", momentum)
    if optimizer is not None:
        validate.one_of("optimizer", optimizer.lower(), OPTIMIZERS)
        if optimizer.lower() in ("momentum", "nesterov"):
            momentum = momentum or 0.9
            return Training(lr, "sgd", momentum, optimizer.lower() == "nesterov", batch_size=batch_size)
    return Training(lr, optimizer and optimizer.lower(), momentum, batch_size=batch_size)


def _report_facts(subject: Subject) -> dict[str, str]:
    """What the report is about, in a few words each."""
    inputs = ", ".join(f"{name} {tuple(x.shape[1:])}" for name, x in subject.train.inputs.items())
    parts = f"{len(subject.train):,} training"
    if subject.test is not None:
        parts += f" and {len(subject.test):,} test"
    goal = {"classes": f"{subject.classes} classes", "binary": "two classes", "numbers": "numbers", "": "no targets"}
    loss = subject.given_loss if isinstance(subject.given_loss, str) else getattr(subject.given_loss, "__name__", "")
    training = subject.training
    kind = training.optimizer or "optimiser unknown"
    if training.momentum:
        kind += f" with {'Nesterov ' if training.nesterov else ''}momentum {training.momentum:g}"
    step = f"{kind}, learning rate {f'{training.lr:g}' if training.lr else 'unknown'}"
    numbers = sum(p.numel() for p in subject.model.parameters())
    place = f"{str(subject.dtype)[6:]} on {subject.device}"
    return {
        "model": f"{type(subject.model).__name__}, {numbers:,} parameters, {place}",
        "data": f"{parts} examples of {inputs}; {goal[subject.task]}",
        "training": step + (f", loss {loss}" if loss else ""),
    }
