"""The audit of a run: what was trained, on its own examples, with the choices in its record."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.audit import AuditReport, audit
from lemmata.data.examples import Examples
from lemmata.lab.trained_run import Trained
from lemmata.lab.words import UserError

# What the audit calls an optimiser of ours whose steps it knows.
KNOWN = {"sgd": "sgd", "momentum": "momentum", "nesterov": "nesterov", "adam": "adam", "adamw": "adamw"}
KNOWN |= {"rmsprop": "rmsprop", "adagrad": "adagrad"}


def audit_run(trained: Trained, **chosen: Any) -> AuditReport:
    """The report of a run; what is `chosen` stands before what its record says."""
    if not isinstance(trained.system, nn.Module):
        raise UserError(f"{trained.name} is no network: the audit asks torch modules only")
    options = trained.record.get("options", {})
    kind = KNOWN.get(str(options.get("optimizer")))
    usual: dict[str, Any] = {"name": f"{trained.name} of {trained.folder.name}"}
    if kind:
        usual |= {"optimizer": kind, "lr": options.get("lr"), "batch_size": options.get("batch_size")}
        momentum = options.get("momentum")
        usual["momentum"] = momentum if momentum is not None else 0.9 if kind == "sgd" else 0.0
    if "data" not in chosen:
        parts = {name: as_taken(trained, trained.ready(part)) for name, part in trained.parts().items()}
        usual |= {"data": parts["train"], "test": parts.get("test")}
    return audit(trained.system, **usual | {name: value for name, value in chosen.items() if value is not None})


def as_taken(trained: Trained, part: Examples) -> Examples:
    """Examples in the shape in which the recipe hands them to the system: a grey picture gets its channel."""
    seen: list[torch.Size] = []

    def look(module: nn.Module, given: tuple[Any, ...]) -> None:
        seen.extend(one.shape for one in given[:1] if isinstance(one, Tensor))

    predict, x = trained.experiment.predict, part.columns.get("x")
    if predict is None or x is None:
        return part
    hook = trained.system.register_forward_pre_hook(look)
    try:
        with torch.no_grad():
            predict(trained.system, part[:2])
    finally:
        hook.remove()
    shape = seen[0] if seen else x.shape
    if math.prod(shape) != x[:2].numel() or shape[0] != len(x[:2]):
        return part
    return Examples(**part.columns | {"x": x.reshape(len(x), *shape[1:])})
