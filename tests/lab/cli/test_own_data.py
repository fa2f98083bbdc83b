"""`lemmata train SYSTEM --data my.csv|my.npz|folder` and `lemmata predict` on such runs and on runs made by `fit`."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import lemmata
from lemmata.data import load
from lemmata.feedforward import MLP
from lemmata.lab.cli import main
from lemmata.recurrent import GRU


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


POINTS = load("moons", n=120, noise=0.1).train
NAMES = ("upper", "lower")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table with names, one of numbers, arrays and pictures."""
    folder = tmp_path_factory.mktemp("files")
    points = zip(POINTS.x.tolist(), POINTS.y.tolist(), strict=True)
    rows = [f"{x:.6f},{'ab'[k % 2]},{NAMES[c]},{y:.6f}" for k, ((x, y), c) in enumerate(points)]
    (folder / "moons.csv").write_text("left,letter,moon,up\n" + "\n".join(rows) + "\n")
    prices = [f"{x:.6f},{y:.6f},{1000 + 300 * x - 200 * y:.4f}" for x, y in POINTS.x.tolist()]
    (folder / "prices.csv").write_text("left,up,price\n" + "\n".join(prices) + "\n")
    digits = load("digits").train[:200]
    np.savez(folder / "digits.npz", x=digits.x.numpy(), y=digits.y.numpy())
    for k, (picture, digit) in enumerate(zip(*digits, strict=True)):
        (folder / "pics" / f"d{digit}").mkdir(parents=True, exist_ok=True)
        content = (picture * 255).byte().numpy().tobytes()
        (folder / "pics" / f"d{digit}" / f"{k:03}.pgm").write_bytes(b"P5 8 8 255\n" + content)
    return folder


CASES = {
    "table": ("mlp", "moons.csv", ["--target", "moon"], 0.9),
    "table, perceptron": ("perceptron", "moons.csv", ["--target", "moon"], 0.7),
    "table, sequence": ("gru", "moons.csv", ["--target", "moon", "--epochs", "20", "--exclude", "letter"], 0.7),
    "numbers": ("mlp", "prices.csv", [], None),
    "arrays": ("mlp", "digits.npz", [], 0.8),
    "pictures": ("mlp", "pics", [], 0.8),
}


@pytest.fixture(scope="module")
def runs(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, (system, data, words, _) in CASES.items():
        out = ["--out", str(folder / name), "--device", "cpu", "--json"]
        assert main(["train", system, "--data", str(files / data), *words, *out]) == 0
    return folder


@pytest.mark.parametrize("name", CASES)
def test_a_run_learns_from_the_file_and_beats_always_saying_the_same(capsys, files, runs, name):
    least = CASES[name][3]
    record = json.loads((runs / name / "run.json").read_text())
    scores = json.loads((runs / name / "result.json").read_text())["scores"]
    (baseline,) = record["notes"]["baselines"].values()
    if least is None:
        assert scores["mae"] < baseline / 4
    else:
        assert scores["accuracy"] > max(least, baseline)
    code, out, err = call(capsys, "predict", runs / name)  # the test part of the file
    assert (code, err) == (0, "")
    found = json.loads(call(capsys, "predict", runs / name, "--json")[1])
    assert found["source"] == f"{files / CASES[name][1]}, test"
    told = found["mae"] if least is None else found["accuracy"]
    assert told == pytest.approx(scores["mae" if least is None else "accuracy"], rel=1e-4)
    assert (f"mean absolute error {told:.4g}" if least is None else f"accuracy {100 * told:.1f} %") in out


def test_predictions_have_names_and_numbers_of_the_users_own(capsys, files, runs, tmp_path):
    (tmp_path / "new.csv").write_text("up,letter,left\n1.0,a,0.0\n-0.5,b,1.0\n")  # another order, no target
    found = json.loads(call(capsys, "predict", runs / "table", "--input", tmp_path / "new.csv", "--json")[1])
    assert [row["class"] for row in found["predictions"]] == ["upper", "lower"]
    assert found["accuracy"] is None
    (tmp_path / "price.csv").write_text("left,up\n0.5,0.25\n")
    three = next((files / "pics" / "d3").iterdir())
    cases = (("numbers", tmp_path / "price.csv"), ("pictures", three))
    rows = [json.loads(call(capsys, "predict", runs / run, "--input", path, "--json")[1]) for run, path in cases]
    price, digit = (row["predictions"][0] for row in rows)
    assert price["price"] == pytest.approx(1000 + 300 * 0.5 - 200 * 0.25, abs=40)
    assert digit["class"] == "d3"
    np.save(tmp_path / "x.npy", load("digits").train.x[:4].numpy())
    assert call(capsys, "predict", runs / "arrays", "--input", tmp_path / "x.npy")[0] == 0


def test_a_run_needs_its_file_no_more(capsys, files, tmp_path):
    (tmp_path / "mine.csv").write_bytes((files / "moons.csv").read_bytes())
    words = ["--target", "moon", "--steps", "8", "--device", "cpu", "--out", tmp_path / "run", "--json"]
    assert call(capsys, "train", "mlp", "--data", tmp_path / "mine.csv", *words)[0] == 0
    with (tmp_path / "mine.csv").open("a") as file:
        file.write("1,a,upper,1\n")
    assert (
        "which this run learnt from, has changed since: give --input FILE"
        in call(capsys, "predict", tmp_path / "run")[2]
    )
    code, _, err = call(capsys, "train", "mlp", "--data", tmp_path / "mine.csv", "--resume", "--out", tmp_path / "run")
    assert (code, "mine.csv has changed since this run began: start a new one" in err) == (2, True)
    (tmp_path / "mine.csv").unlink()
    assert "is no longer there: give --input FILE" in call(capsys, "predict", tmp_path / "run")[2]
    assert call(capsys, "predict", tmp_path / "run", "--input", files / "moons.csv")[0] == 0
    assert lemmata.load(tmp_path / "run").outputs == 2


def test_a_run_on_a_file_is_resumed_to_the_bit(capsys, files, tmp_path):
    words = ["mlp", "--data", files / "moons.csv", "--target", "moon", "--schedule", "constant", "--device", "cpu"]
    call(capsys, "train", *words, "--steps", "9", "--out", tmp_path / "cut", "--json")
    call(capsys, "train", *words, "--steps", "20", "--out", tmp_path / "cut", "--resume", "--json")
    call(capsys, "train", *words, "--steps", "20", "--out", tmp_path / "whole", "--json")
    cut, whole = (lemmata.load(tmp_path / name).state_dict() for name in ("cut", "whole"))
    assert all(torch.equal(cut[name], whole[name]) for name in whole)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mlp", "--data", "nowhere.csv"], "there is no file or folder nowhere.csv"),
        (["mlp", "--data", "moon"], "mlp is not trained on 'moon': use --data fashion or digits"),
        (["hopfield", "--data", "a.csv"], "hopfield does not learn from files of one's own: use --data digits"),
        (["mlp", "--data", "bad.csv"], "bad.csv, line 3: b is missing; fill it in, remove the lines, or exclude b"),
        (["mlp", "--data", "bad.csv", "--target", "q"], "bad.csv has no column 'q': there are a, b, c"),
        (["perceptron", "--data", "numbers.csv"], "price holds numbers, but a perceptron tells classes apart: use mlp"),
    ],
)
def test_what_cannot_be_learnt_from_is_one_sentence(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("a,b,c\n1,2,3\n4,,6\n" + "7,8,3\n" * 9)
    (tmp_path / "numbers.csv").write_text("a,price\n" + "".join(f"{k},{k + 0.5}\n" for k in range(20)))
    code, _, err = call(capsys, "train", *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("runs/*"))


def test_help_and_listing_name_files_of_ones_own(capsys, files):
    assert "FILE is a table (.csv), arrays x and y (.npz) or a folder of images of yours" in call(capsys, "train")[1]
    with pytest.raises(SystemExit):
        main(["train", "mlp", "--data", str(files / "moons.csv"), "--help"])
    said = capsys.readouterr().out
    assert "--target" in said
    assert "--exclude" in said


# --- Runs made by fit ---


def test_predict_uses_a_run_that_fit_made_of_a_system_of_ours(capsys, tmp_path):
    model = MLP(2, 2, widths=(8,), activation="tanh")
    lemmata.fit(model, (POINTS.x, POINTS.y), epochs=30, lr=0.02, device="cpu", out=tmp_path / "run")
    np.savez(tmp_path / "a.npz", x=POINTS.x.numpy(), y=POINTS.y.numpy())
    found = json.loads(call(capsys, "predict", tmp_path / "run", "--input", tmp_path / "a.npz", "--json")[1])
    with torch.no_grad():
        expected = model(POINTS.x).argmax(1)
    assert [row["class"] for row in found["predictions"]] == [str(c) for c in expected.tolist()]
    assert found["accuracy"] == pytest.approx((expected == POINTS.y).double().mean().item())
    assert found["system"] == "mlp"
    assert torch.equal(lemmata.load(tmp_path / "run")(POINTS.x), model(POINTS.x))
    assert call(capsys, "predict", tmp_path / "run", "--data", "moons")[0] == 0
    assert "keeps no examples: give --input FILE or --data NAME" in call(capsys, "predict", tmp_path / "run")[2]
    assert "mlp makes nothing up: try lemmata predict" in call(capsys, "sample", tmp_path / "run")[2]


def test_a_run_of_numbers_by_fit_gives_outputs(capsys, tmp_path):
    lemmata.fit(MLP(2, 1, widths=()), (POINTS.x, POINTS.x[:, :1]), epochs=1, device="cpu", out=tmp_path / "run")
    np.save(tmp_path / "x.npy", POINTS.x[:3].numpy())
    found = json.loads(call(capsys, "predict", tmp_path / "run", "--input", tmp_path / "x.npy", "--json")[1])
    assert [list(row) for row in found["predictions"]] == [["example", "output"]] * 3


def test_a_system_that_answers_otherwise_is_left_to_python(capsys, tmp_path):
    x = POINTS.x[:, None, :].repeat(1, 3, 1)
    loss = lambda model, batch: model(batch.x)[0].square().mean()  # noqa: E731
    lemmata.fit(GRU(2, 2), {"x": x}, loss=loss, epochs=1, device="cpu", out=tmp_path / "run")
    np.save(tmp_path / "x.npy", x[:3].numpy())
    code, _, err = call(capsys, "predict", tmp_path / "run", "--input", tmp_path / "x.npy")
    assert (code, err.count("\n")) == (2, 1)
    assert "GRU answers with more than one row of numbers for an example: use it in Python, lemmata.load(" in err


def test_a_model_of_ones_own_is_named_with_the_line_that_loads_it(capsys, tmp_path):
    model = nn.Sequential(nn.Linear(2, 2))
    lemmata.fit(model, (POINTS.x, POINTS.y), epochs=1, device="cpu", out=tmp_path / "run")
    code, _, err = call(capsys, "predict", tmp_path / "run")
    assert code == 2
    assert f"holds a Sequential, which cannot be built from its record: in Python, lemmata.load('{tmp_path}/run'" in err
    again = lemmata.load(tmp_path / "run", model=nn.Sequential(nn.Linear(2, 2)))
    assert torch.equal(again(POINTS.x), model(POINTS.x))
    path = tmp_path / "run" / "run.json"
    for shapes in ({"x": 5}, {"x": [["a"], "float32"]}, {"x": [[2], "rm"]}, {"to": [[2], "float32"]}):
        record = json.loads(path.read_text()) | {"built": "mlp", "shapes": shapes}
        path.write_text(json.dumps(record | {"arguments": {"inputs": 2, "outputs": 2, "widths": []}}))
        code, _, err = call(capsys, "predict", tmp_path / "run")
        assert (code, "bad shapes" in err, err.count("\n")) == (2, True, 1)
