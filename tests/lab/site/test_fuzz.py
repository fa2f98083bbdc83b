"""Hostile requests by the thousand: no path leads out, nothing breaks, nothing is done without the right."""

import collections
import itertools
import json
import random
import re

import pytest

TARGETS = "etc/passwd windows/win.ini pyproject.toml app.py guard.py proc/self/environ .git/config run.json".split()
CLIMBS = [
    "../",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "%252e%252e%252f",
    "..%252f",
    "..%c0%af",
    "..\\",
    "..%5c",
    "%2e%2e%5c",
]
CLIMBS += ["....//", "..;/", "..%00/", ".%2e/", "%uff0e%uff0e/", "..%ef%bc%8f", "./", "%2e/", "..//", "~/"]
ROOTS = [
    "/",
    "%2f",
    "%252f",
    "//",
    "\\\\host\\share\\",
    "%5c%5chost%5c",
    "C:\\",
    "c:/",
    "file:///",
    "file:%2f%2f/",
    "\\",
]
ENDS = ["", "%00", "%00.css", ";.css", "?x=.css", "#.css", "%23.js", "/.", "%20", "."]


def traversals():
    """Ways to name a file that is none of the page's business."""
    climbing = [climb * depth + target for climb, depth, target in itertools.product(CLIMBS, (1, 4, 9), TARGETS)]
    absolute = [root + target for root, target in itertools.product(ROOTS, TARGETS)]
    ends = [f"{climb * 4}{target}{end}" for climb, target, end in itertools.product(CLIMBS[:3], TARGETS[:2], ENDS)]
    single = [".", "..", "...", "%2e", "%00", "\0", "~root", "con", "nul", "..%", "%", "%zz", "a" * 3000, "\u202e", " "]
    return list(dict.fromkeys(climbing + absolute + ends + single))


def holes(routes):
    """Every place of a path where a parameter stands."""
    for path, methods in routes:
        for hole in re.finditer(r"\{[^}]*\}", path):
            before, after = (re.sub(r"\{[^}]*\}", "1", part) for part in (path[: hole.start()], path[hole.end() :]))
            yield from ((method, before, after) for method in methods)


def climb(client, routes, chosen):
    """Put the strings into every hole. An answer is an error in one line, so no byte of any file is in it."""

    async def send():
        count = 0
        for method, before, after in holes(routes):
            for text in chosen(before):
                rights = client.rights() | {"content-type": "application/json"}
                answer = await client.send(method, before + text + after, rights, b"{}", stay=False)
                assert 400 <= answer.status < 500, (method, before + text + after)
                assert list(answer.json()) == ["error"], before + text + after
                assert len(answer.body) < 300
                count += 1
        return count

    return client.runner.run(send())


def test_five_hundred_traversals_reach_no_static_file(client, routes):
    names = traversals()
    assert len(names) >= 500
    files = [route for route in routes if route[0].startswith(("/static", "/assets"))]
    assert climb(client, files, lambda before: names) == 2 * len(names)


def test_traversals_reach_nothing_through_any_parameter(client, routes):
    chance = random.Random(5)
    assert climb(client, routes, lambda before: chance.sample(traversals(), 40)) >= 40 * len(list(holes(routes)))


@pytest.mark.long
def test_five_hundred_traversals_reach_nothing_through_any_parameter(client, routes):
    assert climb(client, routes, lambda before: traversals()) >= 500 * len(list(holes(routes)))


# --- Requests of every kind ---

NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**64), 10**400, 1.5, -0.0, 1e308, float("inf"), float("nan"), 5e-324]
TEXTS = [
    "",
    " ",
    "0",
    "null",
    "\0",
    "é",
    "\ud800",
    "../../etc/passwd",
    "x" * 5000,
    "<script>",
    "${7*7}",
    "{{7*7}}",
    "%s%n",
]
ANYTHING = [*NUMBERS, *TEXTS, None, True, False, [], {}, [[]], {"": {}}, [None] * 50]
TYPES = [
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    "\xff",
]
METHODS = ["GET", "HEAD", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS", "BREW"]


class Fuzzer:
    """Requests by chance: half of them with the rights, so that they get past the guard; many nearly valid."""

    def __init__(self, client, routes, address, seed):
        self.client, self.address, self.chance = client, address, random.Random(seed)
        self.routes = routes
        self.schema = client.app.openapi()

    def request(self):
        chance = self.chance
        path, methods = chance.choice(self.routes)
        if chance.random() < 0.3:  # the routes that do something deserve more
            path, methods = chance.choice([route for route in self.routes if "POST" in route[1]] or self.routes)
        method = chance.choice([*methods, *methods, chance.choice(METHODS)])
        target = self.address(path) if chance.random() < 0.7 else self.junk_target(path)
        rights = self.client.rights() | {"content-type": "application/json"}
        headers = list(rights.items()) if chance.random() < 0.6 else self.spoilt(rights)
        whole = all(headers.count(pair) == 1 for pair in self.client.rights().items())
        return method, target + self.query(path), headers, self.body(path), whole

    def junk_target(self, path):
        junk = self.chance.choice(
            ["%00", "%ff", "..", "a" * 2000, "%F0%9F%92%A9", "-1", "%25", "1e9", "é", self.noise()]
        )
        return re.sub(r"\{[^}]*\}", lambda _: junk, path) + self.chance.choice(["", "", "/", "//", "/x"])

    def noise(self):
        return "".join(self.chance.choice("abc%/.;=&+\\'\"<>\0\x7f") for _ in range(self.chance.randrange(30)))

    def spoilt(self, rights):
        """One header or more gone, doubled, or of bytes."""
        pairs = list(rights.items())
        for _ in range(self.chance.randrange(1, 4)):
            name, _ = self.chance.choice(pairs)
            pairs = [pair for pair in pairs if pair[0] != name]
            junk = self.chance.choice([bytes(self.chance.randrange(256) for _ in range(9)), "x", "9" * 400, ""])
            pairs += [(name, junk)] * self.chance.choice([0, 1, 1, 2])
            pairs = pairs or [("x", "y")]
        return pairs

    def query(self, path):
        operation = self.schema["paths"].get(path, {}).get("get", {})
        names = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"] + [
            "q",
            "lie",
            "value",
            "page",
        ]
        chosen = self.chance.sample(names, self.chance.randrange(min(3, len(names))))
        values = [
            self.chance.choice([*map(str, NUMBERS[:9]), "nan", "inf", "%ff", "%00", "", self.noise()]) for _ in chosen
        ]
        return "?" + "&".join(f"{name}={value}" for name, value in zip(chosen, values, strict=True)) if chosen else ""

    def body(self, path):
        chance = self.chance
        kind = chance.random()
        if kind < 0.15:
            return bytes(chance.randrange(256) for _ in range(chance.randrange(300)))
        if kind < 0.25:
            deep = chance.choice([10, 1000, 30000])
            return chance.choice(
                [b"[" * deep, b"[" * deep + b"]" * deep, b'{"a":' * (deep // 2), b"1" * deep, b'"' + b"\\u" * 9]
            )
        if kind < 0.35:
            return json.dumps(chance.choice(ANYTHING)).encode()
        made = self.valid(self.schema_of(path))
        if kind < 0.85:
            self.mutate(made)
        return json.dumps(made).encode()

    def schema_of(self, path):
        operation = self.schema["paths"].get(path, {}).get("post", {})
        return operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})

    def valid(self, schema, depth=0):
        """A value that the schema allows."""
        chance = self.chance
        if "$ref" in schema:
            return self.valid(self.schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self.valid(chance.choice(schema[word]), depth + 1)
        if "enum" in schema or "const" in schema:
            return chance.choice(schema.get("enum") or [schema["const"]])
        low, high = schema.get("minimum", -100), schema.get("maximum", 100)
        kind = schema.get("type")
        if kind == "object":
            fields = {name: self.valid(field, depth + 1) for name, field in schema.get("properties", {}).items()}
            extra = schema.get("additionalProperties")
            return fields | ({"epochs": self.valid(extra, depth + 1)} if isinstance(extra, dict) and depth < 5 else {})
        if kind == "array":
            return [self.valid(schema.get("items", {}), depth + 1) for _ in range(chance.randrange(4))]
        plain = {"integer": lambda: chance.randint(int(low), int(high)), "number": lambda: chance.uniform(low, high)}
        plain |= {"boolean": lambda: chance.random() < 0.5, "null": lambda: None}
        return plain.get(kind, lambda: chance.choice(["x", "moons", "1", "relu"]))()

    def mutate(self, made):
        """One thing wrong somewhere inside."""
        chance = self.chance
        if not isinstance(made, dict) or not made:
            return
        name = chance.choice(list(made))
        how = chance.randrange(4)
        if isinstance(made[name], dict) and how == 3:
            self.mutate(made[name])
        elif how == 0:
            del made[name]
        elif how == 1:
            made[name] = chance.choice(ANYTHING)
        else:
            made[chance.choice(TEXTS)] = chance.choice(ANYTHING)


def fuzz(client, routes, address, count, seed):
    """Send so many; give back how often each status came, with and without the rights."""
    fuzzer, seen = Fuzzer(client, routes, address, seed), collections.Counter()
    jobs = client.app.state.jobs
    jobs.waiting = count  # or all that follow would only hear that the queue is full

    async def send():
        for number in range(count):
            method, target, headers, body, whole = fuzzer.request()
            started = len(jobs.asked)
            answer = await client.send(method, target, headers, body, stay=False)
            assert answer.status < 500, (number, method, target, headers, body)
            if not whole and method not in ("GET", "HEAD"):
                assert answer.status >= 400, (number, method, target, headers)
                assert len(jobs.asked) == started
            assert method in ("GET", "HEAD") or b"<script>" not in answer.body
            seen[whole, answer.status] += 1

    client.runner.run(send())
    return seen


def test_hundreds_of_hostile_requests_break_nothing(client, routes, address):
    seen = fuzz(client, routes, address, 500, seed=1)
    assert sum(seen.values()) == 500
    assert {status for _, status in seen} >= {403, 404, 405, 421, 422}


@pytest.mark.long
def test_ten_thousand_hostile_requests_break_nothing(client, routes, address):
    assert sum(fuzz(client, routes, address, 10_000, seed=2).values()) == 10_000


def test_the_ninth_job_in_line_is_refused_as_too_many(client, address):
    answers = [client.post(address("/claim/{id}/judge"), {}) for _ in range(8)]
    assert [answer.status for answer in answers] == [202] * 7 + [429]  # one waits since the beginning
    assert answers[-1].header("retry-after") == "5"
    assert "stop one" in answers[-1].json()["error"]


def test_what_was_wrong_with_a_body_is_not_repeated(client, routes, address):
    secret = "<script>alert(1)</script>"
    for path, methods in routes:
        if "POST" in methods:
            answer = client.post(address(path), {secret: secret, "lie": secret})
            assert answer.status >= 400 or "requestBody" not in client.app.openapi()["paths"][path]["post"]
            assert b"alert" not in answer.body


def test_there_are_no_documentation_pages(client):
    assert {client.get(path, accept="*/*").status for path in ("/docs", "/redoc", "/openapi.json")} == {404}
