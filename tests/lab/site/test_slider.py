"""The slider and judging again, as the page asks for them; the work is done in this process."""

import asyncio
import importlib
import json

import pytest

from lemmata import catalog
from lemmata.judge import judge
from lemmata.judge.dial import Dial
from lemmata.lab.site import views, work
from lemmata.lab.site.app import Settings, create_app
from lemmata.lab.site.job import JobFailed
from lemmata.lab.site.jobs import Jobs
from lemmata.lab.site.views.slider import word_of

ID = "hopfield.energy"


class Inline(Jobs):
    """Quick work done here and now; jobs that are started never run."""

    def __init__(self):
        super().__init__()
        self.calls = []

    async def call(self, kind, parameters, seconds=10.0):
        self.calls.append((kind, parameters))
        try:
            module = importlib.import_module(f"{work.__name__}.{kind}")
            return json.loads(json.dumps(module.perform(parameters, lambda event: None)))
        except Exception as error:
            raise JobFailed(f"{type(error).__name__}: {error}") from error


@pytest.fixture
def page(client):
    """The whole app behind its guard, whose quick work is done in this process."""
    made = type(client)(create_app(Settings(port=8417, jobs=Inline)))
    yield made
    made.runner.close()


def probe(page, id=ID, **asked):
    return page.post(f"/claim/{id}/probe", {"lie": 0, "at": 40, "seed": 0} | asked)


def test_an_answer_has_the_pieces_of_the_page(page):
    answer = probe(page)
    assert answer.status == 200
    found = answer.json()
    assert found["outcome"] == "rejected"
    assert found["verdict"].startswith('<span class="verdict refuted"><svg')
    assert " values differ: measured 0.75, predicted 3.25; " in found["evidence"]
    assert (found["at"], found["value"]) == (40, 0.5)
    assert found["figure"].startswith('<figure class="figure"><svg')


def test_the_truth_holds_and_on_its_way_it_still_does(page):
    assert "matches</span>" in probe(page, at=0).json()["verdict"]
    assert "holds</span>" in probe(page, "perceptron.novikoff", at=0).json()["verdict"]
    assert word_of("definition", "still holds", 3) == "still holds"


def test_a_figure_comes_drawn(page):
    found = probe(page).json()
    assert found["figure"].startswith("<figure")
    assert "<style" not in found["figure"]


@pytest.mark.parametrize("id", [ID, "mcculloch.expressivity", "hopfield.hebb"])
def test_every_lie_fares_on_the_page_as_before_the_judge(page, id):
    entry = catalog.load().claims[id]
    judged = judge(getattr(importlib.import_module(entry.module), entry.function), cost=entry.cost)
    dials = page.get(f"/claim/{id}/dials").json()
    for number, (dial, told) in enumerate(zip(dials, judged.lies, strict=True)):
        outcome = probe(page, id, lie=number, at=Dial(**dial).last).json()["outcome"]
        assert (outcome == "rejected") == told["rejected"]


@pytest.mark.parametrize(
    "asked",
    [
        {"at": 41},
        {"at": -1},
        {"at": "1"},
        {"at": 1.5},
        {"at": None},
        {"lie": -1},
        {"lie": 4},
        {"lie": 0.5},
        {"lie": True},
        {"seed": -1},
        {"path": "x"},
    ],
)
def test_what_cannot_be_probed_is_refused_in_a_line(page, asked):
    answer = probe(page, **asked)
    assert answer.status == 422
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_are_none_are_refused(page, number):
    body = f'{{"lie": 0, "at": {number}, "seed": 0}}'.encode()
    answer = page.ask("POST", f"/claim/{ID}/probe", page.rights() | {"content-type": "application/json"}, body)
    assert answer.status == 422
    assert number not in answer.text


@pytest.mark.parametrize("id", ["nothing", "os.path", "%2e%2e", "perceptron"])
def test_unknown_claims_are_not_there(page, id):
    assert probe(page, id).status == 404
    assert page.get(f"/claim/{id}/dials").status == 404
    assert page.post(f"/claim/{id}/judge", {}).status == 404


def test_a_dial_of_whole_numbers_has_each_of_them(page):
    assert [probe(page, lie=1, at=position).json()["value"] for position in (0, 1, 5)] == [8, 7, 3]
    assert "positions from 0 to 5" in probe(page, lie=1, at=6).json()["error"]


def test_a_check_ends_when_its_reader_lets_go(client, monkeypatch):
    """As a browser does that aborts its question, or leaves the page."""
    monkeypatch.setattr(views.slider, "LISTENING", 0.01)
    ended, left = [], asyncio.Event()

    async def endless(kind, parameters, seconds):
        left.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(kind)

    async def scenario():
        client.app.state.jobs.call = endless
        body = json.dumps({"lie": 0, "at": 1}).encode()
        headers = client.rights() | {"content-type": "application/json"}
        return await client.send("POST", f"/claim/{ID}/probe", headers, body, left=left)

    answer = client.runner.run(scenario())
    assert (answer.status, answer.json(), ended) == (422, {"error": "stopped"}, ["probe"])


def test_the_code_is_asked_for_its_dials_once(page):
    assert page.get(f"/claim/{ID}/dials").json() == page.get(f"/claim/{ID}/dials").json()
    assert page.app.state.jobs.calls == [("probe", {"id": ID})]


def test_a_question_that_failed_is_asked_again(client):
    for _ in range(2):
        answer = client.get(f"/claim/{ID}/dials", accept="application/json")
        assert (answer.status, answer.json()) == (422, {"error": "nothing runs here"})


# --- Judging ---


def test_judging_is_a_job(client):
    answer = client.post(f"/claim/{ID}/judge", {"seed": 0})
    (job,) = client.app.state.jobs.asked
    events = f"/jobs/{job.id}/events"
    assert answer.status == 202
    assert answer.json() == {"job": job.id, "events": f"{events}?ticket={client.session.ticket(events)}"}
    assert (job.kind, job.parameters) == ("judge", {"id": ID, "seed": 0})


def test_a_long_claim_warns_first(client, monkeypatch):
    claim = catalog.load().claims[ID]
    monkeypatch.setitem(catalog.load().claims, ID, type(claim)(**{**vars(claim), "cost": "long"}))
    answer = client.post(f"/claim/{ID}/judge", {})
    assert answer.status == 409
    assert "minutes" in answer.json()["error"]
    assert client.post(f"/claim/{ID}/judge", {"long": True}).status == 202


@pytest.mark.parametrize("asked", [{"seed": 1}, {"seed": "0"}, {"long": "yes"}, {"id": ID}, []])
def test_a_malformed_request_judges_nothing(client, asked):
    assert client.post(f"/claim/{ID}/judge", asked).status == 422
    assert not client.app.state.jobs.asked


# --- News ---


def told(client, job, **headers):
    answer = client.part(f"/jobs/{job.id}/events", **headers)
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in answer.text.split("\n\n") if block]
    return answer, [(int(block["id"]), json.loads(block["data"])) for block in blocks]


@pytest.fixture
def over(client):
    """A job that is done."""

    async def make():
        job = client.app.state.jobs.start("judge", {"id": ID, "seed": 0})
        job.begin()
        job.tell({"event": "progress", "stage": "truth"})
        job.finish("done", {"verdict": "holds", "evidence": {"figure": "large"}})
        return job

    return client.runner.run(make())


def test_a_stream_tells_everything_with_ids_and_little_of_the_result(client, over):
    answer, events = told(client, over)
    assert answer.header("content-type").startswith("text/event-stream")
    assert [number for number, _ in events] == [1, 2, 3]
    assert [event["event"] for _, event in events] == ["running", "progress", "done"]
    assert events[-1][1]["result"] == {"verdict": "holds"}


def test_a_browser_that_comes_back_hears_the_rest_only(client, over):
    assert [number for number, _ in told(client, over, **{"last-event-id": "2"})[1]] == [3]
    assert told(client, over, **{"last-event-id": "3"})[0].status == 204
    assert len(told(client, over, **{"last-event-id": "nonsense"})[1]) == 3


def test_a_stream_goes_on_until_the_job_ends(client):
    async def scenario():
        job = client.app.state.jobs.start("judge", {"id": ID, "seed": 0})
        asked = asyncio.create_task(client.send("GET", f"/jobs/{job.id}/events", client.rights()))
        job.tell({"event": "progress", "stage": "truth"})
        stopped = await client.send("POST", f"/jobs/{job.id}/cancel", client.rights())
        return stopped, await asked

    stopped, heard = client.runner.run(scenario())
    assert stopped.json() == {"state": "cancelled"}
    assert '"cancelled"' in heard.text


def test_unknown_jobs_are_not_there(client):
    assert client.part("/jobs/0/events", accept="*/*").status == 404
    assert client.post("/jobs/0/cancel").status == 404
