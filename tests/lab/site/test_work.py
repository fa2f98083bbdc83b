"""What child processes do for the page: judging, probing, describing a recipe, training."""

import dataclasses
import json
import shlex
import signal
from types import SimpleNamespace

import pytest

from lemmata import catalog
from lemmata.data.registry import entries as datasets
from lemmata.files import cache_folder
from lemmata.judge.fingerprint import Source, fingerprint
from lemmata.judge.ledger import Ledger
from lemmata.judge.session import remembered
from lemmata.lab.cli.train import parse_own
from lemmata.lab.site.work import judge, probe, recipe, train
from lemmata.train.options import Options
from lemmata.train.saved import load_run

ID = "hopfield.energy"


def perform(kind, **parameters):
    """The result of a job and what it told on the way, all of it as JSON would bring it."""
    told = []
    result = kind.perform(json.loads(json.dumps(parameters)), told.append)
    return json.loads(json.dumps(result)), json.loads(json.dumps(told))


# --- judge ---


def test_judging_tells_its_stages_and_keeps_the_verdict_where_check_looks_for_it():
    result, told = perform(judge, id=ID, seed=0)
    claim = catalog.load().claims[ID]
    assert result["verdict"] == "holds"
    assert [event["stage"] for event in told] == ["truth", *(f"lie {k} of 4" for k in (1, 2, 3, 4))]
    assert remembered([claim], Ledger())[ID].to_json() == result


def test_judging_again_forgets_nothing_of_how_sharp_the_check_is():
    claim, ledger = catalog.load().claims[ID], Ledger()
    perform(judge, id=ID, seed=0)
    first = remembered([claim], ledger)[ID]
    measured = [lie | {"notices": None} for lie in first.lies]
    ledger.put(fingerprint(claim, 0), dataclasses.replace(first, lies=measured))
    perform(judge, id=ID, seed=0)
    assert all("notices" in lie for lie in remembered([claim], ledger)[ID].lies)


def test_a_verdict_of_old_code_is_not_kept_under_the_key_of_new_code(monkeypatch):
    monkeypatch.setattr(judge, "STARTED", 0)
    with pytest.raises(ValueError, match="edited after the page started"):
        perform(judge, id=ID, seed=0)
    assert not remembered([catalog.load().claims[ID]], Ledger())


def test_a_verdict_on_code_that_changes_meanwhile_is_not_kept(monkeypatch):
    looks = iter(({"a.py": Source("a.py", "1", (1, 1, 1, 1))}, {"a.py": Source("a.py", "1", (1, 1, 1, 1))}))
    monkeypatch.setattr(judge, "sources", lambda path: next(looks, {"a.py": Source("a.py", "1", (1, 2, 1, 1))}))
    with pytest.raises(ValueError, match=r"a\.py changed while it was judged"):
        perform(judge, id=ID, seed=0)
    assert not remembered([catalog.load().claims[ID]], Ledger())


def test_an_error_is_shown_and_not_kept(monkeypatch):
    broken = SimpleNamespace(verdict="error", to_json=lambda: {"verdict": "error"})
    monkeypatch.setattr(judge, "judge", lambda *arguments: broken)
    assert perform(judge, id=ID, seed=0)[0] == {"verdict": "error"}
    assert not remembered([catalog.load().claims[ID]], Ledger())


@pytest.mark.parametrize("kind", [judge, probe])
def test_only_claims_of_the_catalogue_are_run(kind):
    with pytest.raises(ValueError, match=r"there is no claim 'os\.path'"):
        perform(kind, id="os.path", seed=0)


# --- probe ---


def test_a_probe_without_a_value_tells_what_there_is_to_turn():
    (first, *rest) = perform(probe, id=ID)[0]["dials"]
    assert first == {"argument": "quadratic", "kind": "real", "truth": -0.5, "lie": 0.5}
    assert [dial["kind"] for dial in rest] == ["whole", "real", "real"]


def test_a_probe_answers_with_outcome_and_evidence():
    found = perform(probe, id=ID, lie=0, at=40, seed=0, part=[])[0]
    assert found["outcome"] == "rejected"
    assert found["evidence"]["measured"] != found["evidence"]["predicted"]
    assert perform(probe, id=ID, lie=0, at=0, seed=0, part=[])[0]["outcome"] == "still holds"


def test_what_cannot_be_probed_is_told_in_a_line():
    assert perform(probe, id=ID, lie=0, at=41, seed=0, part=[])[0] == {
        "problem": "quadratic has positions from 0 to 40, got 41"
    }
    assert perform(probe, id=ID, lie=9, at=0, seed=0, part=[])[0] == {"problem": "lie must be from 0 to 3, got 9"}


# --- recipe ---


def described(system="mlp", data="moons", **chosen):
    return perform(recipe, system=system, data=data, chosen=chosen)[0]


def field(found, name):
    return next(field for field in found["config"] + found["options"] if field["name"] == name)


def test_fields_have_the_names_defaults_and_sentences_of_the_dataclasses():
    found = described()
    assert [each["name"] for each in found["options"]] == [each.name for each in dataclasses.fields(Options)]
    assert field(found, "widths")["usual"] == "64 64"
    assert field(found, "lr")["help"] == "Learning rate at its highest."
    assert all(each["help"] for each in found["config"] + found["options"])


def test_bounds_and_choices_are_those_that_the_dataclass_enforces():
    found = described()
    assert field(found, "activation")["choices"][:2] == ["relu", "leaky_relu"]
    assert field(found, "optimizer")["choices"][:3] == ["adagrad", "adam", "adamw"]
    assert [field(found, name)["least"] for name in ("epochs", "keep", "seed", "lr")] == [1, 2, 0, 0]
    assert [field(found, name)["most"] for name in ("dropout", "momentum", "lr")] == [1.0, 1.0, None]
    assert field(found, "steps")["empty"]
    assert field(found, "bias")["kind"] == "switch"


# No page takes a path, and what is not fetched yet is told in one sentence.
HERE = {name for name, entry in datasets().items() if entry.origin != "fetched"}
SHOWN = [entry for entry in catalog.load().recipes if entry.data.split()[0] in HERE]


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: f"{entry.system} {entry.data}")
def test_every_recipe_of_the_course_has_a_form(entry):
    found = described(entry.system, entry.data.split()[0])
    assert not found["problem"]
    assert found["sentence"]
    assert found["parameters"] or found["stored"] or not found["gradient"]
    assert found["examples"]["train"] > 0
    assert found["command"] == f"lemmata train {entry.system} --data {entry.data.split()[0]}"


CHOSEN = {
    "widths": "8, 16",
    "activation": "tanh",
    "bias": "false",
    "steps": "20",
    "clip": "",
    "lr": "0.01",
    "optimizer": "sgd",
}


def test_the_command_says_what_the_form_says():
    found = described(**CHOSEN)
    arguments = parse_own(shlex.split(found["command"])[2:])
    assert (arguments.config.widths, arguments.config.activation) == ((8, 16), "tanh")
    assert (arguments.config.bias, arguments.config.dropout) == (False, 0.0)
    options = arguments.options
    assert (options.steps, options.lr, options.optimizer, options.epochs) == (20, 0.01, "sgd", 60)


def test_switches_are_words_of_their_own():
    @dataclasses.dataclass(frozen=True)
    class Config:
        mirror: bool = False
        keep_all: bool = True

    usual, chosen = (Config(), Options()), (Config(True, False), Options(steps=3, clip=None))
    assert recipe.words(usual, chosen) == ["--mirror", "--no-keep-all", "--steps", "3"]
    assert recipe.words(chosen, usual) == ["--no-mirror", "--keep-all", "--steps", "None"]


def test_the_python_says_what_the_form_says():
    lines = described(**CHOSEN)["python"]
    assert compile(lines, "page", "exec")
    assert 'MLPConfig(widths=(8, 16), activation="tanh", bias=False)' in lines
    assert 'Options(epochs=60, steps=20, optimizer="sgd", lr=0.01,' in lines
    assert "config=" not in described()["python"]


def test_parameters_are_counted_as_chosen():
    assert described(widths="3")["parameters"] == (2 + 1) * 3 + (3 + 1) * 2
    assert described(widths="")["parameters"] == 6


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"lr": "-1"}, "lr must be > 0, got -1.0"),
        ({"lr": "nan"}, "lr must be a number"),
        ({"lr": "1e999"}, "lr must be a number"),
        ({"lr": ""}, "lr must be a number"),
        ({"epochs": "2.5"}, "epochs must be an integer"),
        ({"epochs": "0"}, "epochs must be >= 1, got 0"),
        ({"widths": "64 x"}, "widths must be integers"),
        ({"widths": "0"}, "widths must be >= 1, got 0"),
        ({"bias": "yes"}, "bias must be true or false"),
        ({"optimizer": "magic"}, "optimizer must be one of adagrad, adam, adamw, "),
        ({"device": "cuda:99"}, "device must be one of auto, cpu"),
        ({"__class__": "x"}, "there is nothing called '__class__' to choose here"),
    ],
)
def test_a_value_that_cannot_be_is_told_in_a_line(chosen, problem):
    assert described(**chosen)["problem"].startswith(problem)


# --- train ---


def trained(run, resume=False, **chosen):
    chosen = {"epochs": "2", "evaluate": "1", "device": "cpu"} | chosen
    given = {"system": "mlp", "data": "moons", "chosen": chosen} if not resume else {}
    (cache_folder() / "runs" / run).mkdir(parents=True, exist_ok=True)
    return perform(train, run=run, resume=resume, **given)


def test_training_tells_how_it_goes_and_leaves_a_run_that_loads():
    result, told = trained("mlp-moons-1", widths="8")
    events = [event["event"] for event in told]
    assert events[0] == "started"
    assert {"step", "evaluation", "picture", "saved"} <= set(events)
    assert [event["step"] for event in told if event["event"] == "evaluation"] == [16, 32]
    assert all("accuracy" in event["told"] for event in told if event["event"] == "evaluation")
    assert (result["run"], result["steps"], result["stopped"]) == ("mlp-moons-1", 32, "finished")
    folder = cache_folder() / "runs" / "mlp-moons-1"
    assert load_run(folder).config.widths == (8,)
    record = json.loads((folder / "run.json").read_text())
    assert record["command"] == "lemmata train mlp --data moons --widths 8 --epochs 2 --evaluate 1 --device cpu"


def test_a_stop_keeps_a_checkpoint_from_which_the_same_weights_come():
    whole = load_run(cache_folder() / "runs" / trained("mlp-moons-1")[0]["run"]).state_dict()
    folder = cache_folder() / "runs" / "mlp-moons-2"

    def stop(event):
        if event["event"] == "evaluation":
            signal.raise_signal(signal.SIGTERM)

    folder.mkdir()
    chosen = {"epochs": "2", "evaluate": "1", "device": "cpu"}
    given = {"system": "mlp", "data": "moons", "chosen": chosen, "run": folder.name, "resume": False}
    with pytest.raises(SystemExit):
        train.perform(given, stop)
    assert not (folder / "result.json").exists()
    result, told = trained(folder.name, resume=True)
    assert (told[0]["step"], result["steps"]) == (16, 32)
    again = load_run(folder).state_dict()
    assert all((again[name] == whole[name]).all() for name in whole)


def test_what_fails_before_it_begins_leaves_no_folder(monkeypatch):
    def fail(*arguments, **rest):
        raise ValueError("no data")

    monkeypatch.setattr(train, "run_experiment", fail)
    with pytest.raises(ValueError, match="no data"):
        trained("mlp-moons-1")
    assert not (cache_folder() / "runs" / "mlp-moons-1").exists()
