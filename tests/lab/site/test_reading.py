"""A user's files may be anything: pipes, devices, endless, nested, of wrong types. No page waits for them or breaks."""

import asyncio
import contextlib
import json
import os
import random
import zipfile
from io import BytesIO

import jinja2
import pytest

from lemmata.lab.site import reading
from lemmata.lab.site.knowledge import Knowledge
from lemmata.lab.site.reading import plain_file, read_json, read_lines
from lemmata.lab.site.runs import find_run, list_runs

DEEP = b'{"system": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
PARTS = ["panel", "curve", "picture/1", "checkpoint"]
posix = pytest.mark.skipif(os.name == "nt", reason="no pipes with names, and links need rights")


def odd(path, kind):
    """Put something into the place of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 40)  # takes no space, and would take an hour to read
    else:
        path.write_bytes({"nested": DEEP, "bytes": bytes(range(256)) * 9, "empty": b"", "list": b"[1]"}[kind])


KINDS = ["pipe", "device", "folder", "loop", "huge", "nested", "bytes", "empty", "list"]


@posix
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_object_in_a_plain_file_is_nothing(tmp_path, kind):
    odd(tmp_path / "file", kind)
    assert read_json(tmp_path / "file", 1 << 20) is None
    assert read_lines(tmp_path / "file", 1 << 16) == []
    if kind in ("pipe", "device", "folder", "loop"):
        with pytest.raises(OSError, match=r"not a plain file|symbolic links"), plain_file(tmp_path / "file"):
            pass


def test_of_a_long_log_the_last_whole_lines_are_read(tmp_path):
    lines = [json.dumps({"step": step}) for step in range(1000)]
    (tmp_path / "log").write_text("\n".join(lines) + '\n{"step": 10')  # a crash cut the last one
    assert [entry["step"] for entry in read_lines(tmp_path / "log", 1 << 20)] == list(range(1000))
    some = [entry["step"] for entry in read_lines(tmp_path / "log", 500)]
    assert some == list(range(1000 - len(some), 1000))
    assert 30 < len(some) < 40


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run.json", "result.json", "log.jsonl", "pictures/step-00000001.json"])
def test_whatever_a_file_of_a_run_is_every_part_answers_in_a_line_at_most(client, run, name, kind):
    odd(run / name, kind)
    for part in [f"/runs/{run.name}/{part}" for part in PARTS] + ["/systems/perceptron/runs"]:
        answer = client.part(part, accept="*/*")
        assert answer.status == 200 or (answer.status == 404 and list(answer.json()) == ["error"]), part
    assert (find_run(run.name) is None) == (list_runs() == []) == (name == "run.json")


@posix
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop"])
def test_what_is_no_weight_is_left_out_of_the_checkpoint(client, run, kind):
    odd(run / "checkpoints" / "step-00000001.safetensors", kind)
    packed = zipfile.ZipFile(BytesIO(client.part(f"/runs/{run.name}/checkpoint").body))
    assert packed.namelist() == [f"{run.name}/run.json", f"{run.name}/checkpoints/step-00000001.json"]


VALUES = [None, True, -1, 10**400, 1e308, "x", [], {}, [[]], {"a": 1}, "\ud800", float("nan"), float("inf"), "<script>"]


@pytest.mark.parametrize("seed", range(20))
def test_wrong_types_in_every_file_of_a_run_break_no_page(client, run, seed):
    chance = random.Random(seed)
    value = lambda: chance.choice(VALUES)  # noqa: E731
    record = {"system": "perceptron", "data": "moons"}
    record |= {key: value() for key in ("metric", "command", "started", "config", "options", "format")}
    (run / "run.json").write_text(json.dumps(record))
    result = {"scores": {"accuracy": value(), "loss": value()}, "epochs": value(), "seconds": value()}
    (run / "result.json").write_text(json.dumps(chance.choice([result, {"scores": value()}])))
    events = [{"event": chance.choice(["step", "evaluation"]), "step": value(), "loss": value()} for _ in range(50)]
    (run / "log.jsonl").write_text("\n".join(map(json.dumps, events)))
    (run / "pictures").mkdir()
    mark = {"mark": chance.choice(["Line", "Bars", "Heat", "Image", "Band", "None"]), "x": value(), "y": value()}
    mark |= chance.choice([{}, {"values": value()}, {"pixels": value()}, {"names": value(), "values": value()}])
    (run / "pictures" / "step-00000001.json").write_text(json.dumps({"title": value(), "marks": [mark]}))
    (run / "pictures" / "step-x.json").write_text("{}")
    for part in [f"/runs/{run.name}/{part}" for part in PARTS] + ["/systems/perceptron/runs"]:
        assert client.part(part, accept="*/*").status in (200, 404), part


# --- The event loop ---


@pytest.fixture
def in_the_loop(monkeypatch):
    """What was slow and done in the thread that answers everybody."""
    found = []

    def watched(owner, name):
        inner = getattr(owner, name)

        def outer(*arguments, **words):
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                found.append((name, getattr(arguments[0], "name", "")))
            return inner(*arguments, **words)

        monkeypatch.setattr(owner, name, outer)

    for owner, name in ((Knowledge, "now"), (jinja2.Template, "render"), (reading, "plain_file"), (os, "listdir")):
        watched(owner, name)
    return found


def test_no_route_reads_or_renders_in_the_thread_that_answers_everybody(client, routes, address, in_the_loop):
    for path, methods in routes:
        if path.endswith("/events"):
            continue
        before = len(in_the_loop)
        body = b'{"data": "moons", "state": {}, "lie": 0, "value": 0.5}'
        headers = client.rights() | {"content-type": "application/json"}
        client.ask(methods[0], address(path), headers, body if "POST" in methods else b"")
        assert in_the_loop[before:] == [], path


def test_while_a_log_is_read_others_are_answered(client, run, monkeypatch):
    """However long it takes: the log is not read to its end before another page was answered."""
    (run / "log.jsonl").write_text('{"event": "step", "step": 1, "loss": 1.0}')

    async def scenario():
        loop, begun, answered = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        inner = reading.plain_file

        def slow(path):
            if path.name == "log.jsonl":
                loop.call_soon_threadsafe(begun.set)
                asyncio.run_coroutine_threadsafe(answered.wait(), loop).result(60)
            return inner(path)

        monkeypatch.setattr(reading, "plain_file", slow)
        reading_it = asyncio.create_task(client.send("GET", f"/runs/{run.name}/curve", client.rights()))
        await asyncio.wait_for(begun.wait(), 60)
        other = await asyncio.wait_for(client.send("GET", "/labs", client.rights()), 60)
        answered.set()
        return other.status, (await reading_it).status

    assert client.runner.run(scenario()) == (200, 200)
