"""`lemmata audit` in-process: models and data of one's own, reports, exit codes, and every way to type it wrong."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from lemmata import workers
from lemmata.audit import auditing
from lemmata.audit.finding import alarm, fine, hint
from lemmata.audit.probe import Probe
from lemmata.data import load
from lemmata.lab.cli import main
from lemmata.lab.cli.audit_child import perform
from lemmata.lab.cli.audit_input import read_model

MINE = '''
"""A network of one's own."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from beside import WIDTH

net = nn.Sequential(nn.Flatten(), nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))
small = nn.Linear(4, 3)
number = 7

class Network(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)

class Pairs(nn.Module):
    """Two inputs by name, and an answer as Hugging Face gives it."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, input_ids, attention_mask):
        hidden = (self.embedding(input_ids) * attention_mask[..., None]).sum(1)
        return {"loss": None, "logits": self.head(hidden)}

def build():
    print("building")
    return Network()

def needs(width):
    return Network()

def gives_number():
    return 7

def ends():
    raise SystemExit(3)

x, y = torch.randn(40, 4), torch.arange(40) % 3
columns = (x, y)
both = (TensorDataset(x, y), TensorDataset(x[:9], y[:9]))
loaders = DataLoader(TensorDataset(x, y), batch_size=8), DataLoader(TensorDataset(x[:9], y[:9]), batch_size=8)
parts = {"train": (x, y), "test": (x[:9], y[:9])}
nothing = (x[:0], y[:0])
far = (x, y + 10)

class Texts(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, index):
        ids = torch.tensor([index % 20, 3, 4])
        return {"input_ids": ids, "attention_mask": torch.ones(3), "labels": index % 3}

texts = DataLoader(Texts(), batch_size=8)

def half(outputs, targets):
    return 0.5 * nn.functional.cross_entropy(outputs, targets)

def twice(model, batch):
    return 2 * model(batch["x"])
'''


def shape(subject, clock):
    test = 0 if subject.test is None else len(subject.test)
    yield fine("shape", f"{len(subject.train)} {test} {subject.task} {subject.training.lr} {subject.training.momentum}")
    outputs = subject.outputs(subject.train)
    numbers = {"loss": float(subject.loss(outputs, subject.train.targets)), "mean": float(outputs.mean())}
    yield hint("loss", "the loss is there", numbers=numbers)


def wrong(subject, clock):
    yield alarm("wrong", "it is wrong", advice="mend it", weight=9)


@pytest.fixture(autouse=True)
def probes(monkeypatch):
    """Probes of the tests' own, of which none raises an alarm."""
    known = [Probe("shape", "Shape", shape, 1, 0.5, ())]
    monkeypatch.setattr(auditing, "all_probes", lambda: known)
    return known


class InThisProcess:
    """What stands for the process of an audit where nothing ends it: a start of Python takes seconds."""

    killed, said = False, ""

    def __init__(self, command, environment):
        self.task = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def give(self, task):
        self.task = json.loads(json.dumps(task))

    def wait(self, seconds, on_progress=None):
        if self.task is None:
            return {}
        workers._say.append(lambda message: on_progress(json.loads(json.dumps(message["progress"]))))
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return perform(self.task)
        finally:
            workers._say.clear()


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(workers, "Worker", InThisProcess)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text("WIDTH = 16")
    yield tmp_path
    sys.modules.pop("beside", None)
    sys.modules.pop("mine", None)


@pytest.fixture
def call(capsys, in_this_process):
    def call(*words):
        capsys.readouterr()
        code = main(["audit", *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def told(call, *words):
    """What the probe of the tests says of a command."""
    code, out, err = call(*words, "--json")
    assert code == 0, err
    return {one["name"]: one for one in json.loads(out)["findings"]}


@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        ("mine.py:columns", "40 0"),
        ("mine.py:both", "40 9"),
        ("mine.py:loaders", "40 9"),
        ("mine.py:parts", "40 9"),
    ],
)
@pytest.mark.parametrize("model", ["small", "Network", "build"])
def test_models_and_data_in_a_file(here, call, model, data, sizes):
    found = told(call, f"mine.py:{model}", "--data", data, "--lr", "0.1", "--optimizer", "momentum")
    assert found["shape"]["verdict"] == f"{sizes} classes 0.1 0.9"


def test_a_named_data_set_brings_its_test_part(here, call):
    assert told(call, "mine.py:net", "--data", "digits")["shape"]["verdict"] == "1438 359 classes None 0.0"


def test_several_inputs_by_name_in_a_loader_of_dicts(here, call):
    assert told(call, "mine.py:Pairs", "--data", "mine.py:texts")["shape"]["verdict"] == "30 0 classes None 0.0"


def test_arrays_come_as_they_are(here, call):
    x, y = 255 * np.random.default_rng(0).random((30, 4)), np.arange(30) % 3
    np.savez(here / "a.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5])
    np.savez(here / "b.npz", x=x, y=y)
    assert told(call, "mine.py:small", "--data", "a.npz")["shape"]["verdict"].startswith("30 5 ")
    assert told(call, "mine.py:small", "--data", "b.npz")["shape"]["verdict"].startswith("30 0 ")
    assert told(call, "mine.py:small", "--data", "b.npz", "--test", "b.npz")["shape"]["verdict"].startswith("30 30 ")


def test_a_table_is_prepared_as_train_does(here, call):
    rows = ["a,b,c,d,kind", *(f"{i},{i % 7},{-i},{i * i},{'xyz'[i % 3]}" for i in range(50))]
    (here / "t.csv").write_text("\n".join(rows))
    assert told(call, "mine.py:small", "--data", "t.csv")["shape"]["verdict"].startswith("41 9 classes")


def test_a_loss_and_a_forward_of_ones_own(here, call):
    plain = told(call, "mine.py:small", "--data", "mine.py:columns")["loss"]["numbers"]
    half = told(call, "mine.py:small", "--data", "mine.py:columns", "--loss", "mine.py:half")["loss"]["numbers"]
    assert half["loss"] == pytest.approx(plain["loss"] / 2)
    twice = told(call, "mine.py:small", "--data", "mine.py:columns", "--forward", "mine.py:twice")["loss"]["numbers"]
    assert twice["mean"] == pytest.approx(2 * plain["mean"])


def test_weights_from_a_file(here, call):
    zero = {name: torch.zeros_like(value) for name, value in nn.Linear(4, 3).state_dict().items()}
    save_file(zero, here / "zero.safetensors")
    found = told(call, "mine.py:small", "--data", "mine.py:columns", "--weights", "zero.safetensors")
    assert found["loss"]["numbers"]["loss"] == pytest.approx(np.log(3), rel=1e-5)
    # Weights that were kept are those of a finished model; without them it stays as its file made it.
    assert not read_model("mine.py:small", here / "zero.safetensors", "").training
    assert read_model("mine.py:build", None, "").training


def test_alarms_are_exit_code_one_and_the_summary_says_what_to_do(here, call, probes):
    probes.append(Probe("wrong", "Wrong", wrong, 1, 0.1, ()))
    code, out, err = call("mine.py:build", "--data", "mine.py:columns", "--out", "r.html")
    assert (code, err) == (1, "building\n")
    assert "1 alarm  1 hint  1 fine  in " in out
    lines = out.splitlines()
    assert [lines.index(next(line for line in lines if word in line)) for word in ("it is wrong", "mend it")]
    assert out.index("it is wrong") < out.index("the loss is there") < out.index("40 0 classes")
    assert out.rstrip().endswith("report   r.html")
    assert "it is wrong" in (here / "r.html").read_text(encoding="utf-8")


def test_the_report_as_a_file(here, call):
    assert call("mine.py:small", "--data", "mine.py:columns", "--out", "deep/r.json")[0] == 0
    assert json.loads((here / "deep" / "r.json").read_text())["subject"] == "Linear"
    code, out, _ = call("mine.py:small", "--data", "mine.py:columns")
    assert code == 0
    place = out.rstrip().rpartition("report   ")[2]
    assert "<!doctype html>" in Path(place).read_text(encoding="utf-8")


def test_what_a_file_prints_does_not_stand_in_the_json(here, call):
    code, out, err = call("mine.py:build", "--data", "mine.py:columns", "--json")
    assert code == 0
    assert json.loads(out)["format"] == 1
    assert "building" in err


def test_a_model_is_named_by_its_file_alone_where_there_is_one(here, call):
    (here / "one.py").write_text("from torch import nn\nmodel = nn.Linear(4, 3)\n")
    assert told(call, "one.py", "--data", "mine.py:columns")["shape"]["verdict"].startswith("40 ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which model? lemmata audit FILE.py:NAME --data D, the folder of a run, or --demo"),
        (["mine.py:net", "--demo"], "--demo brings its own model: leave one of them out"),
        (["mine.py:net"], "--data is missing"),
        (["mine.py:nte", "--data", "digits"], "mine.py has no 'nte': did you mean net"),
        (["mine.py:q", "--data", "digits"], "mine.py has no 'q'; it has net, small, Network, Pairs"),
        (["mine.py", "--data", "digits"], "which model of mine.py? it has net, small, Network, Pairs: write"),
        (["mien.py:net", "--data", "digits"], "there is no file mien.py: did you mean mine.py"),
        (["resnet18", "--data", "digits"], "the model must be FILE.py:NAME or the folder of a run, got 'resnet18'"),
        (["mine.py:number", "--data", "digits"], "mine.py:number must be a torch module or a function"),
        (["mine.py:gives_number", "--data", "digits"], "a function that returns one, got int"),
        (["mine.py:needs", "--data", "digits"], "mine.py:needs cannot be called without arguments: TypeError"),
        (["mine.py:ends", "--data", "digits"], "mine.py:ends cannot be called without arguments: it ends the program"),
        (["mine.py:net", "--data", "digtis"], "unknown data set 'digtis': did you mean digits"),
        (["mine.py:net", "--data", "gone.npz"], "there is no file gone.npz"),
        (["mine.py:net", "--data", "gone.csv"], "there is no file or folder gone.csv"),
        (["mine.py:net", "--data", "mine.py:gone"], "mine.py has no 'gone'"),
        (["mine.py:net", "--data", "mine.py:number"], "data must be tensors, arrays"),
        (["mine.py:small", "--data", "mine.py:nothing"], "data must hold at least one example, got none"),
        (["mine.py:net", "--data", "mine.py:columns"], "the model cannot take a batch of x (2, 4) float32"),
        (["mine.py:net", "--test", "digits"], "--test needs --data"),
        (["mine.py:small", "--data", "mine.py:columns", "--loss", "hinge"], "loss must be one of cross_entropy"),
        (["mine.py:small", "--data", "mine.py:columns", "--forward", "x"], "--forward must be FILE.py:NAME"),
        (["mine.py:small", "--data", "mine.py:columns", "--lr", "-1"], "lr must be > 0, got -1"),
        (["mine.py:small", "--data", "mine.py:columns", "--lr", "fast"], "--lr takes a number, got 'fast'"),
        (["mine.py:small", "--data", "mine.py:columns", "--budget", "0"], "budget must be > 0"),
        (["mine.py:small", "--data", "mine.py:columns", "--optimizer", "sdg"], "optimizer must be one of"),
        (["mine.py:small", "--data", "mine.py:columns", "--probes", "shpae"], "probes must be one of shape"),
        (["mine.py:small", "--data", "mine.py:columns", "--device", "gpu"], "--device gpu: "),
        (["mine.py:small", "--data", "mine.py:columns", "--weights", "w.pt"], "there is no file w.pt"),
        (["mine.py:small", "--data", "mine.py:columns", "--weights", "mine.py"], "must be a .safetensors file"),
        (["mine.py:small", "--data", "mine.py:columns", "--out", "report.pdf"], "--out must end in .html or .json"),
        (["no/such/run", "--data", "digits"], "FILE.py:NAME or the folder of a run, got 'no/such/run'"),
    ],
)  # fmt: skip
def test_bad_use_is_one_line_that_names_the_fix(here, call, words, said):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("lemmata: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import torch\nnet = nn.Linear(4, 3)\n", "bad.py cannot be imported: line 2: NameError: name 'nn' is not"),
        ("net = (\n", "bad.py cannot be imported: line 1: SyntaxError: "),
        ("import no_such_package\n", "line 1: ModuleNotFoundError: No module named 'no_such_package'"),
        ("import sys\nsys.exit(1)\n", "line 2: it ends the program: put what it does under if __name__"),
    ],
)
def test_a_file_that_cannot_be_imported_is_told_with_its_line(here, call, text, said):
    (here / "bad.py").write_text(text)
    code, _, err = call("bad.py:net", "--data", "digits")
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_weights_that_do_not_fit_or_are_no_numbers(here, call):
    save_file({"weight": torch.zeros(2, 2)}, here / "other.safetensors")
    save_file({"weight": torch.full((3, 4), torch.nan), "bias": torch.zeros(3)}, here / "nan.safetensors")
    (here / "bad.safetensors").write_bytes(b"no")
    words = ["mine.py:small", "--data", "mine.py:columns", "--weights"]
    assert "other.safetensors does not fit the model: " in call(*words, "other.safetensors")[2]
    assert "bad.safetensors does not fit the model: " in call(*words, "bad.safetensors")[2]
    code, _, err = call(*words, "nan.safetensors")
    assert code == 2
    assert "weights must be finite, found NaN or infinity in weight: load them again" in err


def test_ctrl_c_says_that_nothing_was_written(here, call, probes):
    def stopped(subject, clock):
        raise KeyboardInterrupt
        yield

    probes.append(Probe("stopped", "Stopped", stopped, 9, 0.1, ()))
    code, out, err = call("mine.py:small", "--data", "mine.py:columns", "--out", "r.html")
    assert (code, out) == (130, "")
    assert err == "lemmata: stopped; no report was written\n"
    assert not (here / "r.html").exists()


# --- Runs ---


def test_a_run_is_audited_with_its_own_examples_and_choices(here, call, capsys):
    words = ["--data", "moons", "--steps", "20", "--out", "run", "--json", "--device", "cpu", "--lr", "0.02"]
    assert main(["train", "mlp", *words]) == 0
    found = told(call, "run")
    moons = load("moons")
    verdict = found["shape"]["verdict"]
    assert verdict.startswith(f"{len(moons.train)} {len(moons.test)} classes 0.02 ")
    result = json.loads((here / "run" / "result.json").read_text())
    assert "loss" in result["scores"]
    assert told(call, "run", "--lr", "0.5")["shape"]["verdict"].split()[3] == "0.5"
    assert "leave out --weights" in call("run", "--weights", "w.safetensors")[2]


def test_pictures_are_given_to_a_run_as_its_recipe_gives_them(here, call):
    words = ["--data", "fashion", "--steps", "2", "--out", "run", "--json", "--device", "cpu"]
    assert main(["train", "lenet", *words]) == 0
    assert told(call, "run")["shape"]["verdict"].startswith("2000 1000 classes")


def test_a_run_of_a_table_finds_its_file_or_says_that_it_has_changed(here, call):
    rows = ["a,b,kind", *(f"{i},{i % 7},{'xy'[i % 2]}" for i in range(60))]
    (here / "t.csv").write_text("\n".join(rows))
    assert main(["train", "mlp", "--data", "t.csv", "--steps", "5", "--out", "run", "--json", "--device", "cpu"]) == 0
    assert told(call, "run")["shape"]["verdict"].startswith("48 12 classes")
    (here / "t.csv").write_text("\n".join(rows[:50]))
    code, _, err = call("run")
    assert code == 2
    assert "t.csv, which this run learnt from, has changed since" in err


def test_a_system_that_is_no_classifier_is_told(here, call):
    assert main(["train", "hopfield", "--data", "digits", "--steps", "5", "--out", "run", "--json"]) == 0
    code, _, err = call("run")
    assert code == 2
    assert err.startswith("lemmata: the model cannot take a batch of x (2, 8, 8) float32: ")
    assert err.count("\n") == 1


def test_help_imports_no_torch():
    code = "import sys; from lemmata.lab.cli import main\ntry: main(['audit', '--help'])\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"
    assert "FILE.py:NAME" in done.stdout
