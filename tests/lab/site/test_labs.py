"""The labs as pages: found by listing, bounded by their models, whole in every state."""

import asyncio
import importlib
import itertools
import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from cases import for_each
from lemmata import catalog
from lemmata.lab.site import work
from lemmata.lab.site.app import Settings, create_app
from lemmata.lab.site.job import Job, JobFailed
from lemmata.lab.site.jobs import Jobs
from lemmata.lab.site.labs import labs
from lemmata.lab.site.views import jobs as jobs_view
from lemmata.lab.site.views.jobs import while_wanted
from lemmata.lab.site.work import boundary_lab, hopfield_lab, perceptron_lab, ring_lab, vanishing_lab
from lemmata.lab.site.work import lab as lab_work

SITE = Path(perceptron_lab.__file__).parent.parent
NAMES = list(labs())


@for_each("name", NAMES)
def test_no_answer_of_a_lab_reads_as_a_failure(name):
    """The page takes `error`, `stopped` and `problem` of an answer for its own, and would show nothing."""
    answer = lab_work.lab_module(name)
    assert not {"error", "stopped", "problem"} & answer.show(answer.State()).keys()


# --- What an address may say ---

BAD = [
    (perceptron_lab, {"points": "p6,0"}),
    (perceptron_lab, {"points": "p1,1" * 201}),
    (perceptron_lab, {"points": "p1e9,0"}),
    (perceptron_lab, {"points": "pnan,0"}),
    (perceptron_lab, {"at": "-1"}),
    (perceptron_lab, {"seed": "1.5"}),
    (perceptron_lab, {"example": "__import__"}),
    (perceptron_lab, {"<script>": "1"}),
    (hopfield_lab, {"count": "0"}),
    (hopfield_lab, {"count": "61"}),
    (hopfield_lab, {"noise": "101"}),
    (hopfield_lab, {"picture": "0" * 35}),
    (hopfield_lab, {"picture": "f" * 197}),
    (hopfield_lab, {"own": "-".join(["f" * 36] * 7)}),
    (hopfield_lab, {"rule": "hebb "}),
    (boundary_lab, {"width": "257"}),
    (boundary_lab, {"depth": "7"}),
    (boundary_lab, {"lr": "nan"}),
    (boundary_lab, {"lr": "inf"}),
    (boundary_lab, {"noise": "-0.1"}),
    (boundary_lab, {"epochs": "401"}),
    (boundary_lab, {"data": "digits"}),
    (boundary_lab, {"activation": "os.system"}),
    (vanishing_lab, {"size": "0"}),
    (vanishing_lab, {"size": "nan"}),
    (vanishing_lab, {"steps": "101"}),
    (vanishing_lab, {"drive": "3.1"}),
    (vanishing_lab, {"matrix": "identity"}),
    (vanishing_lab, {"activation": "gelu"}),
    (ring_lab, {"points": "1.3,0"}),
    (ring_lab, {"points": "nan,0"}),
    (ring_lab, {"points": "0.5"}),
    (ring_lab, {"points": ";".join(["0.5,0.5"] * 13)}),
    (ring_lab, {"inner": "1"}),
    (ring_lab, {"steps": "401"}),
    (ring_lab, {"sound": "2"}),
]


@for_each(("lab", "state"), BAD)
def test_what_is_out_of_bounds_is_a_line_that_does_not_repeat_it(lab, state):
    (value,) = state.values()
    told = lab_work.perform({"lab": lab.__name__.rpartition(".")[2].removesuffix("_lab"), "state": state}, print)
    assert set(told) == {"problem"}
    assert "\n" not in told["problem"]
    assert len(told["problem"]) < 200
    assert len(value) < 5 or value not in told["problem"]
    assert "<" not in told["problem"]


def test_labs_are_listed_without_importing_what_they_run():
    code = "import sys; from lemmata.lab.site.labs import labs; print(*labs()); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, NAMES)


@for_each("name", NAMES)
def test_each_lab_is_whole(name):
    lab, known = labs()[name], catalog.load()
    assert set(lab.systems) <= set(known.systems)
    assert set(lab.claims) <= set(known.statements)
    page, script = SITE / "templates" / f"lab_{name}.html", (SITE / "static" / f"lab_{name}.js").read_text()
    assert not re.search(r"<script(?![^>]*src)|style=|\son\w+=|https?://", page.read_text())
    assert "eval" not in script
    assert "http://" not in script.replace("http://www.w3.org/2000/svg", "")


def addresses():
    for path in sorted((SITE / "templates").glob("lab_*.html")):
        yield from re.findall(r'href="/labs/(\w+)\?([^"]*)"', path.read_text())


@for_each(("name", "query"), addresses())
def test_every_state_that_a_page_links_to_exists(name, query):
    state = dict(parse_qsl(unescape(query), keep_blank_values=True, strict_parsing=True))
    told = lab_work.perform({"lab": name, "state": state}, print)
    assert "problem" not in told
    if "at" in state:
        assert told["at"] == int(state["at"])


# --- Routes ---


class HereJobs(Jobs):
    """Work done at once and in this process."""

    async def call(self, kind, parameters, seconds=10.0):
        return importlib.import_module(f"{work.__name__}.{kind}").perform(parameters, lambda event: None)

    def start(self, kind, parameters, seconds=None):
        job = Job(kind, parameters, 1.0)
        job.begin()
        result = importlib.import_module(f"{work.__name__}.{kind}").perform(parameters, job.tell)
        job.finish("done", result)
        self._table[job.id] = job
        return job


@pytest.fixture
def working(client):
    made = type(client)(create_app(Settings(port=client.app.state.settings.port, jobs=HereJobs)))
    yield made
    made.runner.close()


def test_the_list_names_every_lab(client):
    page = client.get("/labs")
    assert page.status == 200
    for lab in labs().values():
        assert f'href="/labs/{lab.name}"' in page.text
        assert lab.sentence in page.text


@for_each("name", NAMES)
def test_a_lab_is_readable_before_any_process_has_started(client, name):
    page = client.get(f"/labs/{name}")
    assert page.status == 200
    assert "<h1>" in page.text


@for_each("name", NAMES)
def test_the_link_to_the_chapter_leads_to_something_of_it(client, name):
    (place,) = set(
        re.findall(
            r'href="([^"]+)">(?:the chapter )?' + labs()[name].chapter + "<", client.get(f"/labs/{name}").text, re.I
        )
    )
    path, _, anchor = place.partition("#")
    there = client.get(path).text
    assert f'id="{anchor}"' in there if anchor else 'class="entries' in there


@for_each("name", NAMES)
def test_a_lab_comes_with_a_picture_for_readers_without_scripts(working, name):
    page = working.get(f"/labs/{name}").text
    assert '<figure class="figure">' in page
    assert "<noscript>" in page
    facts = re.search(r"data-shown='([^']*)'", page)
    assert facts is not None
    assert json.loads(facts[1])["python"]


def test_the_state_of_the_address_is_shown_to_who_opened_the_link_only(working):
    state = "/labs/perceptron?points=p1,1n-1,-1"
    assert '"points": "p1,1n-1,-1"' in working.get(state).text
    assert '"points": "p1,1n-1,-1"' not in working.get(state, cookie="none=0").text


def test_a_state_that_cannot_be_is_told_on_the_page(working):
    page = working.get("/labs/perceptron?points=%3Cscript%3E")
    assert page.status == 200
    assert "not written as this lab writes it" in page.text
    assert "<script>" not in page.text
    assert '<figure class="figure">' in page.text


@for_each("name", NAMES)
def test_a_state_is_answered_with_drawn_figures(working, name):
    told = working.post(f"/labs/{name}/show", {"state": {}})
    assert told.status == 200
    assert all(drawn.startswith("<figure") for drawn in told.json()["figures"].values())


@for_each(("name", "brief"), itertools.product(NAMES, ["wide", "narrow"]))
def test_a_hand_that_drags_is_answered_with_drawings_alone(working, name, brief):
    told = working.post(f"/labs/{name}/show", {"state": {}, "brief": brief})
    figures = told.json()["figures"]
    assert all(drawn.startswith("<svg") and f"lemmata-figure {brief}" in drawn for drawn in figures.values())
    assert len(told.body) < 32_000


@for_each("name", NAMES)
def test_the_list_has_a_small_picture_of_each_lab(working, name):
    answers = (working.get(f"/labs/{name}/thumbnail.svg") for _ in range(200))  # each waits for a while
    picture = next(answer for answer in answers if answer.status != 202)
    assert (picture.status, picture.header("content-type")) == (200, "image/svg+xml")
    assert picture.text.count("<path") + picture.text.count("<circle") > 1
    assert len(picture.body) < 200_000


def test_there_is_no_picture_before_a_process_has_started(client):
    assert client.get("/labs/ring/thumbnail.svg").status == 202  # ask again


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"state": []},
        {"state": {"at": 1}},
        {"state": {"at": "x"}},
        {"state": {}, "run": True},
        {"state": {}, "brief": "huge"},
        {"state": {"points": "p" * 7000}},
        {"state": {f"k{i}": "" for i in range(41)}},
    ],
)
def test_a_request_of_another_form_is_refused(working, body):
    assert working.post("/labs/perceptron/show", body).status == 422


def test_a_training_is_a_job_whose_figures_can_be_fetched(working):
    state = {"state": {"epochs": "2", "width": "4", "depth": "1"}}
    started = working.post("/labs/boundary/run", state)
    assert started.status == 202
    job = started.json()["job"]
    figures = working.part(f"/labs/boundary/jobs/{job}/figures").json()
    assert "<figure" in figures["figures"]["curve"]
    assert [len(line["x"]) for line in figures["curves"]["curve"]["lines"]] == [3, 3]  # before, and after each epoch
    assert working.part(f"/labs/perceptron/jobs/{job}/figures").status == 404
    events = working.get(started.json()["events"]).text
    assert '"cells"' in events
    assert '"accuracy"' in events


@pytest.mark.parametrize("place", ["/labs/nothing", "/labs/perceptron_lab", "/labs/boundary/jobs/none/figures"])
def test_what_does_not_exist_is_not_found(client, place):
    assert client.part(place).status == 404


@pytest.mark.parametrize("place", ["/labs/nothing/show", "/labs/..%2Fwork/show", "/labs/judge/run"])
def test_no_job_is_started_for_a_lab_that_does_not_exist(client, place):
    assert client.post(place, {"state": {}}).status == 404
    assert client.app.state.jobs.asked == []


class Reader:
    """Whoever asked: still there, or gone."""

    def __init__(self, gone):
        self.gone = gone

    async def receive(self):
        await asyncio.Event().wait() if not self.gone else None
        return {"type": "http.disconnect"}


@pytest.mark.parametrize("gone", [False, True])
def test_what_is_nearly_done_is_answered_whether_or_not_somebody_waits(gone):
    async def answer():
        return {"value": 1}

    assert asyncio.run(while_wanted(Reader(gone), answer())) == {"value": 1}


def test_work_ends_soon_after_nobody_waits_for_it(monkeypatch):
    ended = []

    async def answer():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def scenario():
        with pytest.raises(JobFailed):
            await while_wanted(Reader(gone=True), answer())
        return ended

    monkeypatch.setattr(jobs_view, "ALMOST_DONE", 0.01)
    assert asyncio.run(scenario()) == [True]
