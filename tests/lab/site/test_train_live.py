"""The page with real child processes: a probe, a verdict, and a training that is stopped, goes on and is taken away."""

import asyncio
import io
import json
import zipfile

import pytest

import lemmata
from lemmata import catalog
from lemmata.files import cache_folder
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import remembered
from lemmata.lab.site.app import Settings, create_app
from lemmata.lab.site.jobs import Jobs
from lemmata.train.folder import read_record

ID = "hopfield.energy"
OWN = ("command", "started", "versions")  # what each run has to itself
CHOSEN = {"widths": "8", "epochs": "400", "evaluate": "5", "device": "cpu"}


@pytest.fixture
def lab(client):
    """Run a scenario on the whole app with a child of its own."""

    def run(scenario):
        made = type(client)(create_app(Settings(port=8417, jobs=lambda: Jobs(running=1))))

        async def main():
            async with made.app.router.lifespan_context(made.app), asyncio.timeout(120):
                return await scenario(Asking(made))

        try:
            return made.runner.run(main())
        finally:
            made.runner.close()

    return run


class Asking:
    """Requests of the browser that opened the link, and the news of jobs."""

    def __init__(self, client):
        self.client, self.jobs = client, client.app.state.jobs

    async def get(self, target):
        """What a script asks for."""
        return await self.client.send("GET", target, self.client.rights() | {"accept": "text/html"})

    async def post(self, target, data=None):
        headers = self.client.rights() | {"content-type": "application/json"}
        return await self.client.send("POST", target, headers, json.dumps(data or {}).encode())

    async def told(self, job, event):
        """The first news of this kind; the job's end says why there is none."""
        async for found in self.jobs.get(job).follow():
            if found["event"] == event:
                return found
        raise AssertionError(f"{found['event']}: {found.get('message')}")


def test_a_probe_and_a_verdict_come_from_warm_children(lab):
    async def scenario(ask):
        probed = (await ask.post(f"/claim/{ID}/probe", {"lie": 0, "at": 20, "seed": 0})).json()
        job = (await ask.post(f"/claim/{ID}/judge")).json()["job"]
        done = await ask.told(job, "done")
        stages = [event["stage"] for event in ask.jobs.get(job).events if event["event"] == "progress"]
        return probed, done["result"], stages

    probed, result, stages = lab(scenario)
    assert probed["outcome"] == "rejected"
    assert stages == ["truth", "lie 1 of 4", "lie 2 of 4", "lie 3 of 4", "lie 4 of 4"]
    assert remembered([catalog.load().claims[ID]], Ledger())[ID].to_json() == result


def test_a_training_is_stopped_goes_on_ends_and_is_taken_away(lab, tmp_path):
    async def scenario(ask):
        begun = (await ask.post("/systems/mlp/train", {"data": "moons", "chosen": CHOSEN})).json()
        run, job = begun["run"], begun["job"]
        started = await ask.told(job, "started")
        await ask.told(job, "picture")
        going = await ask.get(f"/runs/{run}/panel")
        stopped = await ask.post(f"/jobs/{job}/cancel")
        between = await ask.get(f"/runs/{run}/panel")
        partial = await ask.get(f"/runs/{run}/checkpoint")
        again = (await ask.post(f"/runs/{run}/resume")).json()
        resumed = await ask.told(again["job"], "started")
        await ask.post(f"/jobs/{again['job']}/cancel")
        return run, job, started, going.text, stopped.json(), between.text, partial.body, resumed

    run, job, started, going, stopped, between, partial, resumed = lab(scenario)
    assert (run, started["run"], started["step"], started["steps"]) == ("mlp-moons-1", run, 0, 6400)
    assert f'data-job="{job}"' in going
    assert stopped == {"state": "cancelled"}
    assert "data-run-resume" in between
    assert 0 < resumed["step"] < 6400
    with zipfile.ZipFile(io.BytesIO(partial)) as archive:
        for name in archive.namelist():
            archive.extract(name, tmp_path)
    assert lemmata.load(tmp_path / run).config.widths == (8,)
    assert not (cache_folder() / "runs" / run / "result.json").exists()


def test_a_training_from_the_page_ends_as_one_from_the_terminal(lab, tmp_path):
    async def scenario(ask):
        chosen = CHOSEN | {"epochs": "4"}
        begun = (await ask.post("/systems/mlp/train", {"data": "moons", "chosen": chosen})).json()
        done = await ask.told(begun["job"], "done")
        return done["result"], await ask.get(f"/runs/{begun['run']}/checkpoint")

    result, answer = lab(scenario)
    from lemmata.lab.cli import main

    folder = cache_folder() / "runs" / result["run"]
    record = read_record(folder)
    assert main([*record["command"].split()[1:], "--out", str(tmp_path / "mine"), "--quiet"]) == 0
    mine = read_record(tmp_path / "mine")
    assert {key: mine[key] for key in mine if key not in OWN} == {key: record[key] for key in record if key not in OWN}
    ours, theirs = lemmata.load(folder).state_dict(), lemmata.load(tmp_path / "mine").state_dict()
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert any("final/" in name for name in zipfile.ZipFile(io.BytesIO(answer.body)).namelist())
    assert result["scores"] == json.loads((tmp_path / "mine" / "result.json").read_text())["scores"]
