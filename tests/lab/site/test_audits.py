"""The audit of a run on the page: its address, its button, its report, and files that somebody else wrote."""

import asyncio
import json
import random

import pytest

from lemmata.audit.finding import alarm, fine
from lemmata.audit.probe import all_probes
from lemmata.audit.report import AuditReport
from lemmata.figure import Bars, Figure
from lemmata.files import cache_folder, write_whole
from lemmata.lab.site.app import Settings, create_app
from lemmata.lab.site.jobs import Jobs

VALUES = [None, True, -1, 10**400, 1e308, "x", [], {}, [[]], {"a": 1}, "\ud800", "<script>alert(1)</script>"]


def report():
    found = alarm(
        "step size", "your step is <b>3</b> times too large", advice="lower it", claims=["perceptron.novikoff"],
        figures=[Figure("Curvature", marks=[Bars(["a"], [1.0])])], where=["layer.0"],
    )  # fmt: skip
    return AuditReport("mlp of mlp-moons-1", [found, fine("labels", "labels are fine")], {"model": "MLP"}, 1.0, 45.0)


def test_a_run_that_nobody_asked_about_has_a_button(client, run):
    page = client.get(f"/runs/{run.name}/audit").text
    assert f'data-audit="{run.name}"' in page
    part = client.part(f"/runs/{run.name}/audit/report").text
    assert "Audit this run" in part
    assert f"lemmata audit {run}" in part
    assert f'href="/runs/{run.name}/audit"' in client.part(f"/runs/{run.name}/panel").text


def test_its_report_is_shown_with_links_to_claims_and_every_text_escaped(client, run):
    write_whole(run / "audit.json", json.dumps(report().to_json()).encode())
    part = client.part(f"/runs/{run.name}/audit/report").text
    assert "your step is &lt;b&gt;3&lt;/b&gt; times too large" in part
    assert 'href="/claim/perceptron.novikoff"' in part
    assert "Curvature" in part
    assert "Audit it again" in part
    assert part.index("times too large") < part.index("labels are fine")
    assert " style=" not in part  # the page's policy forbids it
    assert "<style" not in part


def test_the_button_starts_a_job_and_a_run_without_weights_is_refused(client, run):
    answer = client.post(f"/runs/{run.name}/audit")
    assert answer.status == 202
    job = client.app.state.jobs.asked[-1]
    assert (job.kind, job.parameters["run"], answer.json()["job"]) == ("audit", run.name, job.id)
    (run / "checkpoints" / "step-00000001.json").unlink()
    answer = client.post(f"/runs/{run.name}/audit", accept="*/*")
    assert (answer.status, answer.json()) == (409, {"error": "this run has no weights yet: let it train for a while"})


@pytest.mark.parametrize("name", ["mlp-moons-9", "..%2f..%2fetc", "x"])
def test_unknown_runs_are_not_found(client, name):
    assert client.part(f"/runs/{name}/audit/report", accept="*/*").status == 404
    assert client.post(f"/runs/{name}/audit", accept="*/*").status == 404


@pytest.mark.parametrize("seed", range(20))
def test_wrong_types_in_a_report_break_no_page(client, run, seed):
    chance = random.Random(seed)
    data = report().to_json()
    spoilt = data if seed % 2 else data["findings"][0]
    for key in chance.sample(sorted(spoilt), 3):
        spoilt[key] = chance.choice(VALUES)
    (run / "audit.json").write_text(json.dumps(data))
    answer = client.part(f"/runs/{run.name}/audit/report", accept="*/*")
    assert answer.status == 200
    assert "<script>" not in answer.text


def test_a_run_is_trained_and_audited_by_child_processes(client):
    made = type(client)(create_app(Settings(port=8417, jobs=lambda: Jobs(running=1))))

    async def post(target, data):
        headers = made.rights() | {"content-type": "application/json"}
        return (await made.send("POST", target, headers, json.dumps(data).encode())).json()

    async def last(job):
        return [event async for event in made.app.state.jobs.get(job).follow()][-1]

    async def scenario():
        async with made.app.router.lifespan_context(made.app), asyncio.timeout(240):
            chosen = {"widths": "8", "epochs": "2", "device": "cpu"}
            begun = await post("/systems/mlp/train", {"data": "moons", "chosen": chosen})
            assert (await last(begun["job"]))["event"] == "done"
            asked = await post(f"/runs/{begun['run']}/audit", {})
            ended = await last(asked["job"])
            assert ended["event"] == "done", ended
            return begun["run"], made.app.state.jobs.get(asked["job"]).events

    try:
        run, events = made.runner.run(scenario())
    finally:
        made.runner.close()
    kept = AuditReport.from_json(json.loads((cache_folder() / "runs" / run / "audit.json").read_bytes()))
    assert kept.subject == f"mlp of {run}"
    assert "training and" in kept.facts["data"]
    assert [event["stage"] for event in events if event["event"] == "progress"] == [one.title for one in all_probes()]
