"""The pages of systems, the form of a training, and runs as they lie in their folders."""

import asyncio
import importlib
import io
import json
import re
import zipfile

import pytest

from cases import for_each
from lemmata import catalog
from lemmata.catalog import SystemEntry
from lemmata.figure import Figure
from lemmata.files import cache_folder
from lemmata.lab.site import work
from lemmata.lab.site.app import Settings, create_app
from lemmata.lab.site.docstrings import describe
from lemmata.lab.site.job import JobFailed
from lemmata.lab.site.jobs import Jobs
from lemmata.lab.site.knowledge import known
from lemmata.lab.site.pages import render
from lemmata.lab.site.runs import find_run, list_runs, new_run
from lemmata.lab.site.views.systems import system_context, systems_context
from lemmata.lab.site.work import train

SYSTEMS = catalog.load().systems


class Inline(Jobs):
    """Quick work done here and now; jobs that are started never run."""

    async def call(self, kind, parameters, seconds=10.0):
        module = importlib.import_module(f"{work.__name__}.{kind}")
        return json.loads(json.dumps(module.perform(parameters, lambda event: None)))


@pytest.fixture
def page(client):
    """The whole app behind its guard, whose quick work is done in this process."""
    made = type(client)(create_app(Settings(port=8417, jobs=Inline)))
    yield made
    made.runner.close()


# --- The list ---


def test_systems_stand_in_the_rooms_of_their_chapter():
    told = render("systems.html", **systems_context(known()))
    parts = re.split(r'<h3 id="foundations-(\w+)">', told.split('id="chapter-connectionism"')[0])[1:]
    rooms = dict(zip(parts[::2], parts[1::2], strict=True))
    found = {entry.id: entry.room for entry in SYSTEMS.values() if entry.chapter == "foundations"}
    assert list(rooms) == list(dict.fromkeys(found.values()))
    for id, room in found.items():
        assert [name for name, part in rooms.items() if f'<h4><a href="/systems/{id}">' in part] == [room]


# --- Docstrings ---


def test_a_docstring_comes_apart(tmp_path):
    text = '''
@system("x")
class X:
    r"""A sentence
    on two lines.

    $$ a =
       b $$

    Prose with `code`.

    | head | other |
    |---|---|
    | one | two |

    Shapes:
        x: (batch,)    returns: (batch,)

    Claims: a.b, c.d
    Source: Somebody 1999.  Differs: in much,
        and more.

    >>> X()
    1

    >>> X(2)
    2
    """
    value = 1
'''
    path = tmp_path / "x.py"
    path.write_text(text)
    found = describe(SystemEntry("x", "X", "module", "c", "m", "X", path, 3, ""))
    assert found.sentence == "A sentence on two lines."
    assert found.formulas == ["a = b"]
    assert found.body == [("prose", ["Prose with `code`."]), ("table", [["head", "other"], ["one", "two"]])]
    assert found.shapes == ["x: (batch,)", "returns: (batch,)"]
    assert found.notes == {"Claims": "a.b, c.d", "Source": "Somebody 1999.", "Differs": "in much, and more."}
    assert found.example == ">>> X()\n1\n\n>>> X(2)\n2"
    assert found.source.startswith('@system("x")')
    assert found.source.endswith("value = 1")


@for_each("entry", SYSTEMS.values())
def test_every_system_of_the_course_tells_what_it_is(entry):
    found = describe(entry)
    assert found.sentence == entry.sentence
    assert bool(found.formulas) == ("$$" in found.source)
    assert bool(found.example) == (">>>" in found.source)


# --- Pages ---


def test_the_list_has_every_system_with_its_import_and_what_it_is_trained_on(client):
    text = client.get("/systems").text
    for entry in SYSTEMS.values():
        assert f"/systems/{entry.id}" in text
        assert f"from lemmata.{entry.chapter} import {entry.name}" in text
    assert "<code>fashion</code>, <code>digits</code>, <code>moons</code>" in text


@for_each("id", SYSTEMS)
def test_every_system_has_a_page_that_needs_no_child_process(client, id):
    answer = client.get(f"/systems/{id}")
    assert answer.status == 200
    assert f"lemmata systems {id}" in answer.text
    stated = [claim for claim in SYSTEMS[id].claims if claim in catalog.load().statements]
    assert all(f"/claim/{claim}" in answer.text for claim in stated)
    assert ("Train it" in answer.text) == any(recipe.system == id for recipe in catalog.load().recipes)


def test_unknown_systems_are_not_there(client):
    assert client.get("/systems/nothing", accept="*/*").status == 404
    assert client.get("/systems/nothing/form", accept="*/*").status == 404
    assert client.post("/systems/nothing/train", {"data": "moons"}).status == 404


def test_where_nothing_runs_the_commands_stand_instead_of_the_form():
    text = render("system.html", **system_context(known(), "mlp"))
    assert "lemmata train mlp --data moons" in text
    assert "data-load" not in text


def test_a_browser_that_only_reads_makes_no_process_work(page):
    plain = {"host": "127.0.0.1:8417"}
    assert "lemmata train mlp --data moons" in page.ask("GET", "/systems/mlp", plain).text
    for target in ("/systems/mlp/form?data=moons", "/claim/hopfield.energy/dials"):
        assert page.ask("GET", target, plain).status == 403


# --- The form ---


def test_the_form_has_native_controls_with_help_and_bounds(page):
    text = page.get("/systems/mlp/form?data=moons").text
    assert re.search(
        r'<input type="number" id="field-epochs" name="epochs"[^>]* value="60" step="1" min="1" required>', text
    )
    assert re.search(r'<input type="number" id="field-dropout"[^>]* step="any" min="0" max="1.0" required>', text)
    assert re.search(r'<input type="checkbox" id="field-bias"[^>]* checked>', text)
    assert '<select id="field-activation" name="activation"' in text
    names = re.findall(r'<(?:input|select)[^>]* id="field-(\w+)"', text)
    assert all(f'<label for="field-{name}">' in text for name in names)
    assert "4,482 parameters" in text


def test_the_form_is_filled_from_the_address(page):
    text = page.get("/systems/mlp/form?data=moons&widths=8&epochs=3&run=x").text
    assert re.search(r'name="widths"[^>]* value="8"', text)
    assert "lemmata train mlp --data moons --widths 8 --epochs 3" in text


def test_a_page_carries_the_form_once_it_is_known_and_never_waits_for_it(page):
    assert 'data-load="/systems/mlp/form?data=moons"' in page.get("/systems/mlp?data=moons").text
    page.get("/systems/mlp/form?data=moons")
    assert 'data-load="/systems/mlp/form' not in page.get("/systems/mlp?data=moons").text
    assert 'data-load="/systems/mlp/form?data=moons&amp;epochs=3"' in page.get("/systems/mlp?data=moons&epochs=3").text


def test_what_is_wrong_in_the_address_is_told_in_the_form(page):
    assert "lr must be &gt; 0, got -1.0" in page.get("/systems/mlp/form?data=moons&lr=-1").text


def test_options_about_gradients_are_left_out_where_nothing_descends(page):
    text = page.get("/systems/perceptron/form").text
    assert "field-epochs" in text
    assert "field-optimizer" not in text


def test_a_choice_is_answered_with_its_size_and_the_same_elsewhere(page):
    found = page.post("/systems/mlp/choice", {"data": "moons", "chosen": {"widths": "3"}}).json()
    assert found["size"] == "17 parameters, 1,000 examples, 1,000 for the test"
    assert found["command"] == "lemmata train mlp --data moons --widths 3"
    assert "MLPConfig(widths=(3,))" in found["python"]
    assert page.post("/systems/mlp/choice", {"data": "moons", "chosen": {"lr": "x"}}).json()["problem"]


@pytest.mark.parametrize(
    "asked",
    [
        {"data": "mnist"},
        {"data": "../moons"},
        {"data": "moons", "chosen": {"widths": [3]}},
        {"data": "moons", "chosen": {"lr": "-1"}},
        {"data": "moons", "chosen": {"nothing": "1"}},
        {"data": "moons", "chosen": {"lr": "1" * 300}},
        {"data": "moons", "chosen": {f"n{k}": "1" for k in range(65)}},
        {"data": "moons", "run": "mlp-moons-1"},
        {},
    ],
)
def test_a_training_that_cannot_be_is_refused_in_a_line_and_leaves_nothing(page, asked):
    answer = page.post("/systems/mlp/train", asked)
    assert answer.status == 422
    assert list(answer.json()) == ["error"]
    assert not (cache_folder() / "runs").exists()


# --- Runs ---


def begin(page, **chosen):
    answer = page.post("/systems/mlp/train", {"data": "moons", "chosen": {"epochs": "2", "evaluate": "1"} | chosen})
    return answer.json()


def trained(**chosen):
    """A run that is over, trained in this process."""
    run = new_run("mlp", "moons")
    given = {"epochs": "2", "evaluate": "1", "device": "cpu"} | chosen
    given = {"system": "mlp", "data": "moons", "chosen": given}
    train.perform({**given, "run": run, "resume": False}, lambda event: None)
    return run


def test_a_training_gets_a_name_and_a_job_at_once(page):
    first, second = begin(page), begin(page)
    assert (first["run"], second["run"]) == ("mlp-moons-1", "mlp-moons-2")
    job = page.app.state.jobs.get(first["job"])
    chosen = {"epochs": "2", "evaluate": "1"}
    given = {"system": "mlp", "data": "moons", "chosen": chosen, "resume": False, "run": "mlp-moons-1"}
    assert (job.kind, job.parameters) == ("train", given)
    assert list_runs() == []  # until there is something to show


def test_a_run_has_a_page_with_its_curves_pictures_and_result(client):
    run = trained()
    text = client.part(f"/runs/{run}/panel").text
    assert "finished" in text
    assert "Loss as training went on" in text
    assert "Accuracy as training went on" in text
    assert 'data-run-steps="16 32"' in text
    assert f"/runs/{run}/checkpoint?ticket=" in text
    assert f"{run}</a>" in client.part("/systems/mlp/runs").text
    assert run not in client.part("/systems/hopfield/runs").text


def test_what_is_the_users_own_comes_after_the_page(client):
    run = trained()
    page = client.get("/systems/mlp").text
    assert 'data-load="/systems/mlp/runs"' in page
    assert run not in page
    assert f'data-load="/runs/{run}/panel"' in client.get(f"/systems/mlp?run={run}").text
    assert "script" not in re.search(r"data-run-panel[^>]*>", client.get("/systems/mlp?run=%3Cscript%3E").text).group()
    assert f'data-load="/runs/{run}/panel"' in client.get(f"/runs/{run}").text


def test_pictures_come_as_part_of_the_page_with_their_files_inside(client):
    run = trained()
    text = client.part(f"/runs/{run}/picture/16").text
    assert text.startswith("<figure")
    assert 'href="data:text/csv;base64,' in text
    assert 'href="data:image/svg+xml;base64,' in text
    for wrong in ("17", "16.exe", "x", "-16", "99999999999999999999"):
        assert client.part(f"/runs/{run}/picture/{wrong}", accept="*/*").status in (404, 422)


def test_the_checkpoint_is_a_zip_that_loads(client, tmp_path):
    panel = client.part(f"/runs/{trained(widths='8')}/panel").text
    answer = client.get(re.search(r'href="(/runs/[^"]*/checkpoint[^"]*)"', panel)[1])
    assert answer.header("content-disposition") == 'attachment; filename="mlp-moons-1.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        for name in archive.namelist():
            archive.extract(name, tmp_path)
    import lemmata

    assert lemmata.load(tmp_path / "mlp-moons-1").config.widths == (8,)


def test_a_finished_run_cannot_go_on_and_an_unknown_one_is_not_there(client):
    run = trained()
    assert client.post(f"/runs/{run}/resume").status == 409
    for name in ("nothing", "mlp-moons-9", "..", "%2e%2e", ".hidden", "mlp-moons-1%00", "mlp-moons-1%2f.."):
        assert client.part(f"/runs/{name}/panel", accept="*/*").status == 404
        assert client.part(f"/runs/{name}/checkpoint", accept="*/*").status == 404
        assert client.post(f"/runs/{name}/resume").status == 404


def test_a_run_that_was_stopped_can_go_on_once(client):
    run = trained()
    (cache_folder() / "runs" / run / "result.json").unlink()
    assert "data-run-resume" in client.part(f"/runs/{run}/panel").text
    answer = client.post(f"/runs/{run}/resume")
    assert answer.status == 202
    (job,) = client.app.state.jobs.asked
    assert (job.kind, job.parameters) == ("train", {"run": run, "resume": True})
    assert client.post(f"/runs/{run}/resume").status == 409
    panel = client.part(f"/runs/{run}/panel").text
    assert f'data-job="{job.id}" data-events="{answer.json()["events"]}"' in panel


def test_of_two_who_go_on_at_once_one_is_refused(client):
    run = trained()
    (cache_folder() / "runs" / run / "result.json").unlink()

    async def both():
        asked = [client.send("POST", f"/runs/{run}/resume", client.rights()) for _ in range(2)]
        return sorted([answer.status for answer in await asyncio.gather(*asked)])

    assert client.runner.run(both()) == [202, 409]


def test_damaged_and_foreign_folders_are_passed_over():
    run = trained()
    root = cache_folder() / "runs"
    (root / "mlp-moons-7").mkdir()
    (root / "mlp-moons-8").mkdir()
    (root / "mlp-moons-8" / "run.json").write_text("{")
    (root / "notes").mkdir()
    (root / "notes" / "run.json").write_text("{}")
    assert [found.name for found in list_runs()] == [run]
    assert find_run("notes") is None
    log = root / run / "log.jsonl"
    log.write_text(log.read_text() + '{"event": "st')
    (root / run / "pictures" / "step-00000032.json").write_text("[]")
    (root / run / "figure-damaged.json").write_text("[]")
    (root / run / "figure-last.json").write_text(json.dumps(Figure("What was left").to_json()))
    found = find_run(run)
    assert [figure.title for figure in found.curves()][2:] == ["What was left"]
    assert found.picture(32) is None


def test_a_record_that_lacks_things_still_makes_a_page(client):
    run = trained()
    folder = cache_folder() / "runs" / run
    (folder / "run.json").write_text('{"system": "mlp", "data": "moons"}')
    (folder / "result.json").write_text('{"scores": 3, "epochs": "x"}')
    assert client.part(f"/runs/{run}/panel").status == client.part("/systems/mlp/runs").status == 200
    (folder / "run.json").write_text('{"system": ["mlp"]}')
    assert client.part(f"/runs/{run}/panel", accept="*/*").status == 404


def test_names_of_runs_are_never_taken_twice():
    assert [new_run("mlp", "moons") for _ in range(3)] == ["mlp-moons-1", "mlp-moons-2", "mlp-moons-3"]
    assert new_run("mlp", "digits") == "mlp-digits-1"


def test_a_failed_call_is_a_line_on_the_page(client):
    answer = client.get("/systems/mlp/form", accept="*/*")
    assert (answer.status, answer.json()) == (422, {"error": str(JobFailed("nothing runs here"))})
