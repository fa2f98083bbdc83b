"""The audit of a run: what was trained, on its own examples, with the choices in its record."""

from typing import Any

from torch import nn

from lemmata.audit import AuditReport, audit
from lemmata.lab.trained import Trained
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
        parts = {name: trained.ready(part) for name, part in trained.parts().items()}
        usual |= {"data": parts["train"], "test": parts.get("test")}
    return audit(trained.system, **usual | {name: value for name, value in chosen.items() if value is not None})
