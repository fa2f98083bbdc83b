"""The process of an audit: it reads a user's model and data and says each finding as it is made.

A user's code may sleep, fork, change its folder or end the process: whoever asked sees that, and can end this one.
"""

import os
import traceback
from pathlib import Path
from typing import Any

from lemmata.audit import AuditReport, audit
from lemmata.audit.finding import AuditFinding
from lemmata.lab.cli.audit import Arguments
from lemmata.lab.recipe_choice import FAILURES, one_sentence
from lemmata.lab.words import UserError
from lemmata.workers import progress, serve


def perform(task: dict[str, Any]) -> dict[str, Any]:
    """The report of one audit, less its findings, which were said on the way; or a sentence that says what failed."""
    arguments = Arguments(**task["arguments"])
    try:
        report = audited(arguments)
    except UserError as error:
        return {"error": str(error)}
    except SystemExit as error:
        return {"ended": f"sys.exit with code {error.code or 0}"}
    except FAILURES as error:
        try:
            return {"error": str(one_sentence(error))}
        except FAILURES:
            return {"error": _where_it_failed(error)}
    except Exception as error:  # a user's code may raise anything
        return {"error": _where_it_failed(error)}
    return {"report": report.to_json() | {"findings": []}}


def audited(arguments: Arguments) -> AuditReport:
    """The audit that was asked for."""
    names = ("optimizer", "lr", "momentum", "batch_size")
    chosen: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    chosen |= {"budget": arguments.budget, "probes": arguments.probes or None}
    chosen |= {"watch": _probe_begins, "on_finding": _finding_made}
    if arguments.demo:
        from lemmata.audit.demo import faulty

        progress({"began": True})
        return audit(**{**faulty(), **chosen})
    return _of_user(arguments, chosen)


def _of_user(arguments: Arguments, chosen: dict[str, Any]) -> AuditReport:
    from lemmata.lab.cli.audit_input import read_data, read_forward, read_loss, read_model

    if arguments.data:
        chosen["data"], test = read_data(arguments.data, arguments.target)
        chosen["test"] = read_data(arguments.test, arguments.target)[0] if arguments.test else test
    elif arguments.test:
        raise UserError("--test needs --data, the examples it is trained on")
    chosen |= {"loss": read_loss(arguments.loss), "forward": read_forward(arguments.forward)}
    folder = Path(arguments.model)
    if folder.is_dir():
        from lemmata.lab.audited_run import audit_run
        from lemmata.lab.trained_run import restore

        if arguments.weights or arguments.device:
            raise UserError(f"{folder} is a run, which has its own weights: leave out --weights and --device")
        restored = restore(folder)
        progress({"began": True})
        return audit_run(restored, **chosen)
    model = read_model(arguments.model, arguments.weights and Path(arguments.weights), arguments.device)
    if not arguments.data:
        raise UserError("--data is missing: a data set such as digits, an .npz or .csv file, or FILE.py:NAME")
    progress({"began": True})
    return audit(model, **chosen)


def _probe_begins(title: str) -> None:
    progress({"title": title})


def _finding_made(finding: AuditFinding) -> None:
    progress({"finding": finding.to_json()})


def _where_it_failed(error: BaseException) -> str:
    """One line for an error that nobody foresaw, with the line of code that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return f"the audit could not go on: {what} ({os.path.basename(last.filename)}:{last.lineno})"


if __name__ == "__main__":
    serve(perform)
