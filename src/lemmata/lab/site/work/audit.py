"""The job "audit": what theory says about the system of a run, kept in its folder."""

import json
from collections.abc import Callable
from typing import Any

from lemmata.files import cache_folder, write_whole
from lemmata.lab.audited_run import audit_run
from lemmata.lab.trained_run import restore


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Audit the run `run` within `budget` seconds; tells each question as it is asked."""
    folder = cache_folder() / "runs" / parameters["run"]
    report = audit_run(
        restore(folder),
        budget=parameters["budget"],
        watch=lambda title: tell({"event": "progress", "stage": title}),
    )
    write_whole(folder / "audit.json", json.dumps(report.to_json()).encode())
    return {"run": folder.name, "alarms": len(report.alarms)}
