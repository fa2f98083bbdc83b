"""The printed link: one browser, once, and what pages tell it."""

import hmac

import pytest
from fastapi import Request

from lemmata.lab.site.app import Settings, create_app
from lemmata.lab.site.session import Session

HOST = {"host": "127.0.0.1:8417"}


@pytest.fixture
def link(client):
    return client.session.link.removeprefix("http://127.0.0.1:8417")


@pytest.fixture
def announced(client, monkeypatch):
    links = []
    monkeypatch.setattr(client.session, "announce", links.append)
    return links


def test_the_link_gives_a_cookie_that_scripts_and_other_sites_cannot_use(client, link):
    answer = client.ask("GET", link, HOST)
    assert answer.status == 200
    assert f'name="lemmata-token" content="{client.session.token}"' in answer.text
    assert "/static/open.js" in answer.text
    assert '<noscript><meta http-equiv="refresh"' in answer.text
    cookie, *attributes = answer.header("set-cookie").split("; ")
    assert cookie == f"lemmata-8417={client.session.cookie}"
    assert {attribute.lower() for attribute in attributes} == {"httponly", "samesite=strict", "path=/"}


def test_the_key_works_once_unless_the_cookie_is_there_already(client, link, announced):
    client.ask("GET", link, HOST)
    again = client.ask("GET", link, HOST)
    assert (again.status, again.header("set-cookie")) == (403, None)
    assert "used already" in again.json()["error"]
    assert len(announced) == 1
    reopened = client.ask("GET", link, HOST | {"cookie": client.cookie})
    assert (reopened.status, client.session.token in reopened.text) == (200, False)  # the cookie alone is no proof
    assert len(announced) == 1


def test_a_used_link_opened_again_shows_one_new_link_in_the_terminal(client, link, announced):
    client.ask("GET", link, HOST)
    for _ in range(3):
        assert client.ask("GET", link, HOST).status == 403
    assert announced == [client.session.link]
    fresh = announced[0].removeprefix("http://127.0.0.1:8417")
    assert fresh != link
    assert [client.ask("GET", fresh, HOST).status for _ in range(2)] == [200, 403]


@pytest.mark.parametrize(
    "key", ["", "?key=", "?key=wrong", "?key=%00", "?key=%ff%fe", "?key=a&key=b", "?k=1", "?key[]=1"]
)
def test_a_wrong_key_opens_nothing_and_says_nothing_in_the_terminal(client, link, announced, key):
    answer = client.ask("GET", f"/open{key}", HOST)
    assert (answer.status, answer.header("set-cookie")) == (403, None)
    assert not announced
    assert client.ask("GET", link, HOST).status == 200


def test_the_link_that_the_lab_opens_itself_has_a_key_of_its_own(client, link, announced):
    other = client.session.another_link().removeprefix("http://127.0.0.1:8417")
    assert other != link
    assert [client.ask("GET", target, HOST).status for target in (other, link, other)] == [200, 200, 403]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({}, [False, False]),
        ({"cookie": "COOKIE"}, [True, False]),
        ({"cookie": "COOKIE", "token": "TOKEN"}, [True, True]),
        ({"cookie": "COOKIE", "ticket": "TICKET"}, [True, True]),
        ({"cookie": "COOKIE", "ticket": "OTHER"}, [True, False]),
        ({"cookie": "COOKIE", "ticket": "TICKET&ticket=TICKET"}, [True, False]),
        ({"cookie": "COOKIE", "ticket": ""}, [True, False]),
        ({"cookie": "COOKIE", "token": "COOKIE"}, [True, False]),
        ({"cookie": "guess"}, [False, False]),
        ({"cookie": "guess", "token": "TOKEN"}, [False, False]),
        ({"token": "TOKEN"}, [False, False]),
        ({"ticket": "TICKET"}, [False, False]),
    ],
)
def test_the_cookie_makes_a_page_live_and_only_token_or_ticket_prove_whose_it_is(client, shown, expected):
    def told(request: Request):
        return [request.state.live, request.state.owner]

    client.app.add_api_route("/told", told)
    session = client.session
    secrets = {"COOKIE": session.cookie, "TOKEN": session.token}
    secrets |= {"TICKET": session.ticket("/told"), "OTHER": session.ticket("/other")}
    for word, secret in secrets.items():
        shown = {name: value.replace(word, secret) for name, value in shown.items()}
    query = f"?ticket={shown['ticket']}" if "ticket" in shown else ""
    headers = {"cookie": f"{session.cookie_name}={shown['cookie']}"} if "cookie" in shown else {}
    headers |= {"x-lemmata-token": shown["token"]} if "token" in shown else {}
    assert client.ask("GET", f"/told{query}", HOST | headers).json() == expected


def test_a_ticket_presses_no_button(client):
    rights = client.rights()
    del rights["x-lemmata-token"]
    assert client.ask("POST", f"/static/x?ticket={client.session.ticket('/static/x')}", rights).status == 403


def test_every_start_has_secrets_of_its_own():
    first, second = (create_app(Settings(port=8417)).state.session for _ in range(2))
    secrets = [first.cookie, first.token, first.link, second.cookie, second.token, second.link]
    assert len(set(secrets)) == 6
    assert all(len(secret) >= 43 for secret in secrets)
    assert not first.knows([f"{second.cookie_name}={second.cookie}"])
    assert not first.allows([second.token])


def test_secrets_are_compared_in_constant_time(monkeypatch):
    compared, session = [], Session(1)

    def spy(given, secret):
        compared.append(secret)
        return given == secret

    monkeypatch.setattr(hmac, "compare_digest", spy)
    session.allows(["a"])
    session.knows([f"{session.cookie_name}=b"])
    session.honours("/x", ["c"])
    session.admits("d")
    assert compared[:3] == [session.token.encode(), session.cookie.encode(), session.ticket("/x").encode()]
    assert session.link.endswith(compared[3].decode())


def test_hosts_name_the_port_save_where_browsers_leave_it_out():
    assert Session(8417).hosts == {"127.0.0.1:8417", "localhost:8417"}
    assert Session(80).hosts == {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}
