"""Runs whose files were changed by hand, with every checksum right: each is refused, or named, in one sentence."""

import copy
import hashlib
import json
import math
import os

import pytest
import torch
from torch import nn

import lemmata
from lemmata.train import Options, checkpoint, fit, read_record, restore_system

pytestmark = pytest.mark.usefixtures("no_waiting")
X = torch.rand(12, 3, generator=torch.Generator().manual_seed(1))
ODD = [None, True, -1, 1.5, math.nan, 10**30, "x", [], [[1]], {}, {"a": 1}]


def train(out, resume=False, epochs=1, **words):
    torch.manual_seed(0)
    options = Options(epochs=epochs, batch_size=4, ema_decay=0.5, save=1, device="cpu")
    return fit(nn.Linear(3, 1), (X, X[:, :1]), test=(X, X[:, :1]), options=options, out=out, resume=resume, **words)


def places(tree, path=()):
    """Every place in a tree of dicts and lists; of a list the first item stands for all."""
    found = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else list(enumerate(tree))[:1] if isinstance(tree, list) else ()
    return found + [place for key, item in items for place in places(item, (*path, key))]


def changed(tree, place, value):
    tree = copy.deepcopy(tree)
    inside = tree
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return tree


def forge(path, content):
    """Write the JSON of a checkpoint as somebody would who knows the format."""
    text = json.dumps(content)
    head = (
        f'{{"format": 1, "length": {len(text)}, "sha256": "{hashlib.sha256(text.encode()).hexdigest()}", "content":\n'
    )
    path.write_text(f"{head}{text}\n}}\n")


def one_sentence(error):
    assert 20 < len(str(error)) < 700
    assert "\n" not in str(error)


NEEDED = [("system",), ("learner",), ("loop",), ("random",), ("ranks",), ("versions",), ("system", "weight")]
NEEDED += [("loop", name) for name in ("step", "epoch", "position", "sums", "count", "best", "seconds", "stopped")]
NEEDED += [("loop", "epoch_sums"), ("loop", "epoch_count")]
NEEDED += [("loop", "best", name) for name in ("scores", "system", "since")]
NEEDED += [("random", name) for name in ("torch", "numpy", "python")]
NEEDED += [("learner", "optimizer"), ("learner", "average"), ("learner", "optimizer", "state")]


def test_a_checkpoint_changed_in_any_place_is_refused_in_one_sentence_or_does_no_harm(tmp_path):
    train(tmp_path)
    files = tmp_path / "checkpoints"
    (files / "step-00000002.json").unlink()  # nothing older to fall back on
    path = files / "step-00000003.json"
    kept = path.read_bytes()
    content = json.loads(kept)["content"]
    refused = set()
    for number, place in enumerate(places(content["state"])):
        for value in ODD if place in NEEDED else (ODD[number % len(ODD)], ODD[(number + 5) % len(ODD)]):
            forge(path, changed(content, ("state", *place), value))
            try:
                train(tmp_path, resume=True)
            except ValueError as error:
                one_sentence(error)
                refused.add(place)
    assert set(NEEDED) <= refused
    assert number > 60
    path.write_bytes(kept)
    assert train(tmp_path, resume=True).steps == 3


def test_moments_of_another_shape_are_refused(tmp_path):
    train(tmp_path)
    found = checkpoint.newest(tmp_path / "checkpoints")
    found.state["learner"]["optimizer"]["state"][0]["exp_avg"] = torch.zeros(2, 2)
    checkpoint.save(tmp_path / "checkpoints", found.step, found.state)
    with pytest.raises(ValueError, match=r"does not fit this run .*exp_avg of parameter 0 has shape \(2, 2\)"):
        train(tmp_path, resume=True)


def test_rates_and_the_like_follow_from_the_options_whatever_a_checkpoint_says(tmp_path):
    whole = train(None, epochs=2).system.weight
    train(tmp_path)
    found = checkpoint.newest(tmp_path / "checkpoints")
    found.state["learner"]["optimizer"]["param_groups"][0] |= {"weight_decay": 9.0, "betas": (0.0, 0.0)}
    checkpoint.save(tmp_path / "checkpoints", found.step, found.state)
    assert torch.equal(train(tmp_path, resume=True, epochs=2).system.weight, whole)


def test_the_weights_of_another_system_are_refused(tmp_path):
    train(tmp_path)
    found = checkpoint.newest(tmp_path / "checkpoints")
    found.state["system"]["weight"] = torch.zeros(1, 4)
    checkpoint.save(tmp_path / "checkpoints", found.step, found.state)
    with pytest.raises(ValueError, match=r"step-00000003.json does not fit this run \(.*size mismatch.*\): start a"):
        train(tmp_path, resume=True)


@pytest.mark.parametrize("state", [[], {}, 5, None, {"system": 5}, {"system": []}, {"system": {"weight": "a"}}, "x"])
def test_weights_that_are_none_are_refused_in_one_sentence(tmp_path, state):
    train(tmp_path)
    checkpoint.save(tmp_path / "final", 3, state)
    with pytest.raises(ValueError, match=r"the weights in .* do not fit Linear: ") as refused:
        restore_system(nn.Linear(3, 1), tmp_path)
    one_sentence(refused.value)


# --- run.json ---

STRINGS = ("system", "built", "recipe", "data", "metric", "class", "command", "started")
OBJECTS = ("options", "config", "arguments", "notes", "versions")


@pytest.mark.parametrize("name", [*STRINGS, *OBJECTS, "classes", "format"])
def test_a_record_whose_entry_is_of_another_kind_is_damaged(tmp_path, name):
    usual = {"format": 1, "classes": ["a"], "data": "moons", "options": {"lr": 0.1}}
    good = [usual["classes"], []] if name == "classes" else []
    for value in ODD:
        (tmp_path / "run.json").write_text(json.dumps(usual | {name: value}))
        fits = isinstance(value, str if name in STRINGS else dict if name in OBJECTS else ()) or value in good
        if fits:
            assert read_record(tmp_path)[name] == value
            continue
        with pytest.raises(ValueError, match=r"run\.json (is damaged|was made by a newer)") as refused:
            read_record(tmp_path)
        one_sentence(refused.value)


def test_a_record_that_is_no_file_or_too_deep_is_refused(tmp_path):
    (tmp_path / "run.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="cannot be read"):
        read_record(tmp_path)
    (tmp_path / "run.json").unlink()
    os.mkfifo(tmp_path / "run.json")  # nobody writes: to open it would be to wait for ever
    with pytest.raises(ValueError, match=r"cannot be read \(it is not a file\)"):
        read_record(tmp_path)


def test_facts_that_could_not_be_read_again_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="record cannot be kept: notes must be an object"):
        train(tmp_path, record={"notes": "some"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [{"inputs": "a"}, {"inputs": [1]}, {"inputs": 10**13}, {"inputs": 10**30}, {}])
def test_arguments_that_build_no_system_are_refused_in_one_sentence(tmp_path, arguments):
    usual = {"inputs": 3, "outputs": 2}
    record = {"format": 1, "built": "mlp", "arguments": usual | arguments if arguments else {"nothing": 1}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"run\.json does not fit MLP \(.*\): train again") as refused:
        lemmata.load(tmp_path)
    one_sentence(refused.value)


# --- What is used though something is wrong ---


def test_weights_that_are_not_finite_are_named(tmp_path):
    run = train(tmp_path)
    weights = dict(run.system.state_dict())
    for bad in (math.nan, math.inf):
        weights["bias"] = torch.tensor([bad])
        checkpoint.save(tmp_path / "final", 3, {"system": weights})
        said = f"bias in step 3 of {tmp_path}/final holds values that are not finite: "
        assert restore_system(nn.Linear(3, 1), tmp_path) == said + "what the system says is worth nothing"


def test_a_newest_checkpoint_without_its_json_is_named(tmp_path):
    train(tmp_path)
    files = tmp_path / "checkpoints"
    (files / "step-00000003.json").unlink()
    said = "skipped step-00000003.safetensors: step-00000003.json is missing"
    found = checkpoint.newest(files)
    assert (found.step, found.messages) == (2, [said])
    assert checkpoint.at(files, 2).messages == []
    resumed = train(tmp_path, resume=True)
    assert resumed.messages == [said]
    assert torch.equal(resumed.system.weight, train(None).system.weight)
    (files / "step-00000002.json").unlink()
    assert checkpoint.newest(files).messages == []  # 3 is whole again, and the older one is needed no more
    for step in (7, 9):
        (files / f"step-{step:08d}.safetensors").touch()
    said = [f"skipped step-{step:08d}.safetensors: step-{step:08d}.json is missing" for step in (9, 7)]
    assert checkpoint.newest(files).messages == said


def test_a_run_that_has_gone_on_since_it_ended_says_which_weights_are_used(tmp_path):
    train(tmp_path)
    system = nn.Linear(3, 1)
    assert restore_system(system, tmp_path) == ""
    found = checkpoint.newest(tmp_path / "checkpoints")
    checkpoint.save(tmp_path / "checkpoints", 5, found.state)
    said = f"step 3 of {tmp_path}/final is used, where the run ended once; it has gone on to step 5 since"
    assert restore_system(system, tmp_path) == said
