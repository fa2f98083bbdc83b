"""Every route against whoever may ask: a stranger, whoever stole the cookie, the browser that opened the link."""

import json

import pytest

from lemmata.files import write_whole
from lemmata.lab.site.guard import NO_RIGHT

HOST = {"host": "127.0.0.1:8417", "accept": "*/*"}
# What a GET of a route asks for. A new route must be entered here, so that somebody thinks about it.
OPEN = """
/ /open /static/{name:path} /assets/{name:path} /atlas /claim/{id} /claim/{id}/figure.csv /claim/{id}/figure.svg
/errata /errata.csv /source /source/{code} /systems /systems/{id} /labs /labs/{name} /trust
/labs/{name}/thumbnail.svg
""".split()
# child processes work; a page without content
COOKIE = "/claim/{id}/dials /systems/{id}/form /runs/{run} /runs/{run}/audit".split()
TOKEN = """
/runs/{run}/panel /runs/{run}/curve /runs/{run}/picture/{step:int} /runs/{run}/checkpoint /systems/{id}/runs
/runs/{run}/audit/report /jobs/{job}/events /labs/{name}/jobs/{job}/figures
""".split()
SECRET = "my private words"


@pytest.fixture
def private(run):
    """A run whose every file holds something that is nobody else's business."""
    record = json.loads((run / "run.json").read_bytes())
    write_whole(run / "run.json", json.dumps(record | {"command": SECRET}).encode())
    write_whole(
        run / "log.jsonl", json.dumps({"event": "evaluation", "step": 1, "accuracy": 0.5, SECRET: 0.5}).encode()
    )
    figure = {"title": SECRET, "marks": [{"mark": "Line", "x": [0, 1], "y": [0, 1]}]}
    write_whole(run / "pictures" / "step-00000001.json", json.dumps(figure).encode())
    write_whole(run / "checkpoints" / "step-00000001.safetensors", SECRET.encode())
    return run


def asked(client, target, **shown):
    """The answer, without waiting for the end of a stream."""
    return client.runner.run(client.send("GET", target, HOST | shown, stay=False))


def test_the_table_has_every_route(routes):
    reading = [path for path, methods in routes if "GET" in methods]
    assert sorted(reading) == sorted([*OPEN, *COOKIE, *TOKEN])
    assert all(methods in (["GET"], ["POST"]) for _, methods in routes)


@pytest.mark.parametrize("path", [path for path in OPEN if path != "/open"])
def test_what_is_open_is_open_and_tells_nothing_of_the_users_own(client, private, address, path):
    for shown in ({}, {"cookie": client.cookie}, {"cookie": client.cookie, "x-lemmata-token": client.session.token}):
        answer = asked(client, address(path), **shown)
        assert answer.status in (
            200,
            202,
            404,
        )  # no file 1, no figure of what was not judged, no picture yet
        assert SECRET not in answer.text
        assert private.name not in answer.text
        assert client.session.token not in answer.text
        assert client.session.cookie not in answer.text


@pytest.mark.parametrize("path", COOKIE)
def test_what_makes_processes_work_asks_for_the_cookie_and_is_not_the_users_own(client, private, address, path):
    refused = asked(client, address(path))
    assert (refused.status, refused.json()) == (403, {"error": NO_RIGHT})
    answer = asked(client, address(path), cookie=client.cookie)
    assert answer.status in (200, 422)  # nothing runs here
    assert SECRET not in answer.text


@pytest.mark.parametrize("path", TOKEN)
def test_what_is_the_users_own_asks_for_cookie_and_token(client, private, address, path):
    target, session = address(path), client.session
    token, ticket = {"x-lemmata-token": session.token}, f"{target}?ticket={session.ticket(target)}"
    cookie = {"cookie": client.cookie}
    strangers = [(target, {}), (target, cookie), (target, token), (ticket, {})]
    strangers += [(f"{target}?ticket={session.ticket('/')}", cookie), (target, cookie | {"x-lemmata-token": "x"})]
    for place, shown in strangers:
        refused = asked(client, place, **shown)
        assert (refused.status, refused.json()) == (403, {"error": NO_RIGHT}), (place, shown)
    answers = [asked(client, target, **cookie, **token), asked(client, ticket, **cookie)]
    expected = 404 if path.startswith("/labs/") else 200  # the job that there is belongs to no lab
    assert [answer.status for answer in answers] == [expected, expected]


def test_the_secret_words_are_there_for_who_may_read_them(client, private):
    for part in ("panel", "picture/1", "checkpoint"):
        assert SECRET.encode() in client.part(f"/runs/{private.name}/{part}").body
    assert SECRET in client.part("/systems/perceptron/runs").text


def test_a_page_that_may_not_be_seen_says_how_to_open_the_link(client, private):
    answer = client.get(f"/runs/{private.name}/checkpoint", cookie="none=0")
    assert answer.status == 403
    assert "Open the link that lemmata serve printed" in answer.text
