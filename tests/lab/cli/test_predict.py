"""`lemmata predict` in-process: predictions of a run's own examples and of files, and every way a file can be wrong."""

import csv
import json

import numpy as np
import pytest
import torch

import lemmata
from lemmata.data import Examples, load
from lemmata.lab.cli import main
from lemmata.lab.cli.input_file import _fit_shape


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of a few steps, trained once for all tests."""
    folder = tmp_path_factory.mktemp("runs")
    for system, data in (("mlp", "moons"), ("mlp", "digits"), ("perceptron", "digits"), ("hopfield", "digits")):
        words = [
            "--data",
            data,
            "--steps",
            "40",
            "--out",
            str(folder / f"{system}-{data}"),
            "--json",
            "--device",
            "cpu",
        ]
        assert main(["train", system, *words]) == 0
    return folder


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("name", ["mlp-moons", "mlp-digits", "perceptron-digits", "hopfield-digits"])
def test_it_says_what_the_system_says_of_the_test_examples(capsys, runs, name):
    scores = json.loads((runs / name / "result.json").read_text())["scores"]
    code, out, err = call(capsys, "predict", runs / name)
    assert (code, err) == (0, "")
    test = load(name.split("-")[1]).test
    assert f"accuracy {100 * scores['accuracy']:.1f} %  on {len(test):,} examples" in out
    found = json.loads(call(capsys, "predict", runs / name, "--json")[1])
    assert list(found) == ["run", "system", "source", "count", "accuracy", "predictions"]
    assert found["accuracy"] == pytest.approx(scores["accuracy"])
    assert len(found["predictions"]) == found["count"] == len(test)


def test_a_single_picture_gets_the_class_the_system_gives_it(capsys, runs, tmp_path):
    digits = load("digits")
    np.save(tmp_path / "one.npy", digits.test.x[3].numpy())
    (row,) = json.loads(call(capsys, "predict", runs / "mlp-digits", "--input", tmp_path / "one.npy", "--json")[1])[
        "predictions"
    ]
    with torch.no_grad():
        probability = lemmata.load(runs / "mlp-digits")(digits.test.x[3:4]).softmax(1)
    assert row["class"] == digits.classes[probability.argmax()]
    assert row["probability"] == pytest.approx(probability.max().item(), abs=1e-6)
    assert "truth" not in row


def test_files_of_every_kind_give_the_same_predictions(capsys, runs, tmp_path):
    points = load("moons").test[:20]
    x, y = points.x.double().numpy(), points.y.numpy()
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    np.savetxt(tmp_path / "bare.csv", x, delimiter=",", fmt="%.17g")
    rows = "\n".join(f"{b!r},{t},{a!r}" for (a, b), t in zip(x.tolist(), y.tolist(), strict=True))
    (tmp_path / "named.csv").write_text(f"first,y,second\n{rows}\n".replace("first,y,second", "a,y,b"))
    swapped = np.savetxt(tmp_path / "swapped.csv", x[:, ::-1], delimiter=",", fmt="%.17g")
    assert swapped is None
    answers = {}
    for name in ("a.npy", "a.npz", "bare.csv", "named.csv", "swapped.csv"):
        code, out, _ = call(capsys, "predict", runs / "mlp-moons", "--input", tmp_path / name, "--json")
        assert code == 0
        answers[name] = json.loads(out)
    probabilities = {name: [row["probability"] for row in answer["predictions"]] for name, answer in answers.items()}
    assert probabilities["a.npy"] == probabilities["a.npz"] == probabilities["bare.csv"]
    assert probabilities["named.csv"] == probabilities["swapped.csv"]
    assert answers["a.npz"]["accuracy"] is not None
    assert answers["a.npy"]["accuracy"] is None


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_predictions_are_written_in_full(capsys, runs, tmp_path, suffix):
    out = tmp_path / f"all{suffix}"
    code, said, _ = call(capsys, "predict", runs / "mlp-moons", "--out", out, "--part", "train")
    assert code == 0
    assert f"1,000 predictions written to {out}" in said
    if suffix == ".csv":
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = json.loads(out.read_text())["predictions"]
    assert len(rows) == 1000
    assert list(rows[0]) == ["example", "class", "probability", "truth"]


def test_other_data_with_other_classes_have_no_truth(capsys, runs):
    found = json.loads(call(capsys, "predict", runs / "mlp-moons", "--data", "rings", "--json")[1])
    assert found["accuracy"] is None
    assert set(found["predictions"][0]) == {"example", "class", "probability"}


@pytest.fixture
def saved(tmp_path):
    """A run that ended at step 16, with checkpoints of steps 8 and 16."""
    words = ["--data", "moons", "--epochs", "1", "--save", "8", "--out", str(tmp_path / "run"), "--device", "cpu"]
    assert main(["train", "mlp", "--quiet", *words]) == 0
    return tmp_path / "run"


def cut(path):
    path.write_bytes(path.read_bytes()[:-8])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flip_a_bit])
@pytest.mark.parametrize("name", ["step-00000016.json", "step-00000016.safetensors"])
def test_where_the_end_of_a_run_is_damaged_the_step_used_instead_is_named(capsys, saved, damage, name):
    kept = lemmata.load(saved).state_dict()
    damage(saved / "final" / name)
    for part, step in (("final", 16), ("checkpoints", 8)):  # the same step, then an older one
        said = f"step {step} of {saved}/checkpoints is used instead"
        code, out, err = call(capsys, "predict", saved)
        assert (code, err.count("\n")) == (0, 1)
        assert "accuracy" in out
        assert err.startswith(f"lemmata: no checkpoint in {saved}/final is sound ({name}: ")
        assert err.endswith(f"; {said}\n")
        with pytest.warns(UserWarning, match="is used instead") as warned:
            found = lemmata.load(saved).state_dict()
        assert [str(each.message) for each in warned] == [err.removeprefix("lemmata: ").removesuffix("\n")]
        assert warned[0].filename == __file__
        assert all(torch.equal(found[word], kept[word]) for word in kept) == (part == "final")
        damage(saved / "checkpoints" / name)


@pytest.mark.parametrize("damage", [cut, flip_a_bit])
def test_where_nothing_sound_is_left_one_line_says_so(capsys, saved, damage):
    for path in saved.glob("*/step-*"):
        damage(path)
    refused(capsys, f"no checkpoint in {saved}/checkpoints is sound (step-00000016.json: ", "predict", saved)
    with pytest.raises(ValueError, match=r"no checkpoint in .*/final is sound \(step-00000016.json: .*restore them"):
        lemmata.load(saved)


def test_where_the_end_of_a_run_is_missing_it_is_said_as_well(capsys, saved):
    for path in (saved / "final").iterdir():
        path.unlink()
    code, _, err = call(capsys, "predict", saved)
    assert (code, err.count("\n")) == (0, 1)
    assert f"{saved}/final is empty, though the run has ended: restore it from a copy; step 16 of " in err


def refused(capsys, said, *words):
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("lemmata: ")
    assert err.count("\n") == 1


def test_what_is_no_run_is_refused_in_one_line(capsys, runs, tmp_path):
    refused(capsys, "there is no folder nowhere: give the folder of a run", "predict", "nowhere")
    refused(capsys, "is not the folder of a run: it has no run.json", "predict", tmp_path)
    record = json.loads((runs / "mlp-moons" / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(record | {"system": "mpl"}))
    refused(capsys, "system 'mpl' is unknown: did you mean mlp, maml?", "predict", tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(record | {"data": "cifar"}))
    refused(capsys, "mlp is not trained on 'cifar'", "predict", tmp_path)
    (tmp_path / "run.json").write_text("[]")
    refused(capsys, "run.json is damaged", "predict", tmp_path)


def test_bad_choices_are_refused_in_one_line(capsys, runs):
    run = runs / "mlp-moons"
    refused(capsys, "--out must end in .csv or .json, got x.txt", "predict", run, "--out", "x.txt")
    refused(capsys, "moons has no part 'dev': use --part train or test", "predict", run, "--part", "dev")
    refused(capsys, "unknown data set 'moon': did you mean moons?", "predict", run, "--data", "moon")
    refused(
        capsys, "examples of digits do not fit: this run learnt from 2 numbers an", "predict", run, "--data", "digits"
    )
    refused(capsys, "give --input or --data, not both", "predict", run, "--data", "xor", "--input", "x.csv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"1", "--input must end in .npy, .npz, .csv, got"),
        ("gone.npy", None, "there is no file"),
        ("x.npy", b"nonsense", "cannot be read"),
        ("x.npz", b"PK\x03\x04nonsense", "cannot be read"),
        ("x.csv", b"", "cannot be read: it is empty"),
        ("x.csv", b"1,2\n3\n", "its rows have different lengths"),
        ("x.csv", b"a,b\n1,2\n3,x\n", "row 3 holds 'x', which is no number"),
        ("x.csv", b"a,b\n", "got an array of shape"),
        ("x.csv", b"1,2,3\n", "x must hold examples of 2 numbers, got an array of shape (1, 3)"),
        ("x.csv", b"1,nan\n", "x must be finite, found 1 values that are not"),
        ("x.csv", b"a,b,y\n1,2,0.5\n", "must be an integer for each of the 1 examples"),
    ],
)
def test_bad_files_are_refused_in_one_line(capsys, runs, tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(capsys, said, "predict", runs / "mlp-moons", "--input", tmp_path / name)


def test_what_may_be_negative_is_no_picture_and_may_be_large():
    clouds = Examples(x=torch.linspace(-1, 1, 12).reshape(2, 2, 3))
    assert _fit_shape(np.full((1, 2, 3), 1.5), clouds).max() == 1.5
    with pytest.raises(ValueError, match="pictures must lie"):
        _fit_shape(np.full((1, 2, 3), 1.5), Examples(x=clouds.x.abs()))


def test_bad_arrays_are_refused_in_one_line(capsys, runs, tmp_path):
    path = tmp_path / "x.npz"
    for arrays, said in (
        ({"z": np.zeros((3, 8, 8))}, "it has no array x, only z"),
        ({"x": np.zeros((3, 7, 8))}, "x must hold examples of 8 x 8 numbers, got an array of shape (3, 7, 8)"),
        ({"x": np.array(["a"])}, "x must hold numbers, got <U1"),
        ({"x": np.full((1, 8, 8), 16)}, "pictures must lie in [0, 1] like those of the training, got 16: divide by"),
        ({"x": np.zeros((2, 64)), "y": np.zeros(3, int)}, "must be an integer for each of the 2 examples"),
        ({"x": np.array({"a": 1}, dtype=object)}, "cannot be read"),
    ):
        np.savez(path, **arrays)
        refused(capsys, said, "predict", runs / "mlp-digits", "--input", path)
