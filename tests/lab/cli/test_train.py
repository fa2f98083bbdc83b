"""`lemmata train` in-process: listing, options, the run folder, stopping and going on, and refusals in one line."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

import lemmata
from lemmata.lab.cli import live, main, several_processes
from lemmata.workers import end_with_parent


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(capsys, *words):
    """(exit code, stdout, stderr) of one command."""
    try:
        code = main(list(words))
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def train(capsys, *words):
    return call(capsys, "train", "mlp", "--data", "moons", "--device", "cpu", *words)


def test_alone_it_lists_what_can_be_trained(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # so that no column is broken, however long a name is
    code, out, _ = call(capsys, "train")
    assert code == 0
    assert "hopfield" in out
    assert "fashion digits moons" in out
    entries = json.loads(call(capsys, "train", "--json")[1])
    assert all(list(entry) == ["system", "data", "metric"] for entry in entries)
    assert {"system": "hopfield", "data": ["digits"], "metric": "recalled"} in entries


@pytest.mark.parametrize("words", [["train"], ["train", "--help"], ["predict", "--help"], ["sample", "--help"]])
def test_lists_and_help_import_no_torch(words):
    code = (
        "import sys; from lemmata.lab.cli import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"


def test_the_options_are_those_of_the_recipe_with_its_defaults(capsys):
    code, out, _ = call(capsys, "train", "mlp", "--help")
    assert code == 0
    assert "fashion, digits, moons" in out
    said = " ".join(out.replace("│", " ").split())
    assert "[INT ...]] Units of each hidden layer; without hidden layers the model is linear. (default: 512)" in said
    assert "--epochs INT Passes over the training examples. (default: 160)" in said
    assert "--shift" in out
    assert "--shift" not in call(capsys, "train", "mlp", "--data", "moons", "--help")[1]


@pytest.mark.parametrize("words", [("--optimizer", "heavy_ball"), ("--optim", "heavy_ball"), ("--optim=heavy_ball",)])
def test_every_optimiser_can_be_chosen_by_its_name(capsys, words):
    code, _, _ = train(capsys, "--steps", "2", "--out", "run", "--quiet", *words)
    assert code == 0
    assert json.loads(Path("run/run.json").read_text())["options"]["optimizer"] == "heavy_ball"


def test_an_unknown_optimiser_is_told_which_there_are(capsys):
    code, _, err = train(capsys, "--optim", "adagard")
    assert code == 2
    assert "'adagrad', 'adam', 'adamw'" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "data", "others"),
    [([], "shakespeare", "digits|adding|echo|FILE"), (["--data", "adding"], "adding", "shakespeare|digits|echo|FILE")],
)
def test_the_help_says_that_the_options_depend_on_the_data(capsys, words, data, others):
    code, out, _ = call(capsys, "train", "lru", *words, "--help")
    assert code == 0
    assert f"Train lru on {data} and keep everything in a run folder.\n" in out
    assert f"Options depend on the data: lemmata train lru --data {others} --help\n" in out
    assert ("--window" in out, "--lag" in out) == (data == "shakespeare", data == "adding")


def test_the_help_of_a_system_with_one_data_set_sends_nowhere(capsys):
    assert "depend" not in call(capsys, "train", "seq2seq", "--help")[1]


def test_a_run_leaves_everything_in_its_folder(capsys, tmp_path):
    code, out, err = train(capsys, "--epochs", "6", "--widths", "8", "4")
    assert (code, err) == (0, "")
    assert "training mlp on moons (1,000 examples, 1,000 for the test) in runs/mlp-moons-1" in out
    assert "epoch 3/6  loss" in out
    assert "lemmata predict runs/mlp-moons-1" in out
    assert "\x1b" not in out
    folder = tmp_path / "runs" / "mlp-moons-1"
    record = json.loads((folder / "run.json").read_text())
    assert (record["system"], record["data"], record["config"]["widths"]) == ("mlp", "moons", [8, 4])
    assert record["options"]["epochs"] == 6
    figures = sorted(path.name for path in (folder / "pictures").iterdir())
    assert figures == ["step-00000048.json", "step-00000048.svg", "step-00000096.json", "step-00000096.svg"]
    assert (folder / "pictures" / figures[1]).read_text().startswith("<svg ")
    scores = json.loads((folder / "result.json").read_text())["scores"]
    assert f"accuracy {100 * scores['accuracy']:.1f} %" in out
    system = lemmata.load(folder)
    assert system.config.widths == (8, 4)


def test_a_folder_is_never_taken_twice(capsys):
    for number in (1, 2):
        _, out, _ = train(capsys, "--steps", "1", "--json")
        assert json.loads(out)["folder"] == f"runs/mlp-moons-{number}"
    code, _, err = train(capsys, "--steps", "1", "--out", "runs/mlp-moons-1")
    assert code == 2
    assert "holds a run already: resume it (--resume; resume=True), or choose another folder (--out)" in err


def test_the_result_as_json_is_a_contract(capsys):
    code, out, err = train(capsys, "--steps", "3", "--json")
    assert (code, err) == (0, "")
    words = ["system", "data", "folder", "scores", "best", "steps", "epochs", "seconds", "stopped"]
    assert list(json.loads(out)) == words


def test_quiet_says_only_how_it_ended(capsys):
    _, out, _ = train(capsys, "--epochs", "3", "--quiet")
    assert out.startswith("accuracy ")


def weights(folder):
    return {name: value.clone() for name, value in lemmata.load(folder).state_dict().items()}


@pytest.mark.parametrize("words", [[], ["--out", "here"]], ids=["newest run", "named run"])
def test_ctrl_c_keeps_the_run_and_going_on_gives_the_same_weights(capsys, monkeypatch, words):
    choices = ["--epochs", "4", "--dropout", "0.2", "--lr", "0.01"]
    train(capsys, *choices, "--out", "whole")
    told = live.Live.stepped

    def stop_at_20(self, step, epoch, numbers):
        told(self, step, epoch, numbers)
        if step == 20:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(live.Live, "stepped", stop_at_20)
        code, _, err = train(capsys, *choices, *words)
    folder = "here" if words else "runs/mlp-moons-1"
    assert code == 130
    assert err == f"lemmata: stopped; go on with: lemmata train mlp --resume --out {folder}\n"
    code, out, _ = train(capsys, "--resume", *words)
    assert code == 0
    assert (
        f"going on at step 20 of 64 (epoch 2 of 4): mlp on moons (1,000 examples, 1,000 for the test) in {folder}"
        in out
    )
    one, other = weights("whole"), weights(folder)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert "finished already: mlp on moons" in train(capsys, "--resume", *words)[1]


def test_going_on_with_other_choices_names_what_differs(capsys):
    train(capsys, "--steps", "2", "--out", "here")
    for words, said in (
        (["--lr", "0.1"], "this run has lr=0.005, not 0.1: leave lr as it was, or start a new run"),
        (["--widths", "3"], "this run has widths=[64, 64], not [3]"),
    ):
        code, _, err = train(capsys, "--resume", "--out", "here", *words)
        assert code == 2
        assert said in err
    code, _, err = call(capsys, "train", "mlp", "--data", "xor", "--resume", "--out", "here")
    assert (code, err) == (2, "lemmata: here holds a run of mlp on moons: resume that one\n")


def test_a_run_that_diverges_says_where_and_what_to_do(capsys):
    code, _, err = train(capsys, "--optimizer", "sgd", "--lr", "1e6")
    assert code == 1
    assert "lower lr (now 1e+06) or set clip" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mpl"], "system 'mpl' is unknown: did you mean mlp, maml?"),
        (["resnet19"], "depth must be one of 18, 34, 50, 101, 152, got 19; see lemmata train resnet --help"),
        (["mlp3"], "system 'mlp3' is unknown: did you mean mlp"),
        (["max_margin"], "system 'max_margin' cannot be trained; lemmata train lists what can be trained"),
        (["mlp", "--data", "cifar"], "mlp is not trained on 'cifar': use --data fashion or digits or moons"),
        (["mlp", "--lr", "-1"], "lr must be > 0, got -1.0; see lemmata train mlp --help"),
        (["mlp", "--lr", "fast"], "--lr takes a number, got 'fast'"),
        (["mlp", "--widths", "wide"], "--widths takes numbers, got 'wide'"),
        (["mlp", "--activation", "rleu"], "unknown activation 'rleu': did you mean relu"),
        (["mlp", "--optimizer", "adma"], "invalid choice 'adma'"),
        (["mlp", "--epoch", "3"], "did you mean --epochs?"),
        (["mlp", "--procs", "0"], "--procs must be from 1 to 1024, got 0"),
        (["mlp", "--device", "cuda:99"], "device 'cuda:99' is not here"),
        (["mlp", "--patience", "3"], "patience needs validation examples"),
        (["mlp", "--resume"], "there is no run of mlp on fashion in runs/ to resume: leave out --resume or give --out"),
        (["mlp", "--resume", "--out", "nowhere"], "nowhere is not the folder of a run: it has no run.json"),
    ],
)
def test_bad_use_is_one_line_that_names_the_fix_and_leaves_nothing(capsys, tmp_path, words, said):
    code, _, err = call(capsys, "train", *words)
    assert code == 2
    assert said in err
    assert err.startswith("lemmata: ")
    assert err.count("\n") == 1
    assert not list(tmp_path.rglob("mlp-*"))


def test_a_damaged_record_is_one_line(capsys, tmp_path):
    train(capsys, "--steps", "1", "--out", "here")
    path = tmp_path / "here" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"options": {**record["options"], "lr": -1}}))
    code, _, err = train(capsys, "--resume", "--out", "here")
    assert code == 2
    assert "run.json has bad options (lr must be > 0, got -1)" in err
    path.write_text("{")
    assert "cannot be read" in train(capsys, "--resume", "--out", "here")[2]


class Launcher:
    """Stands for torch's launcher: keeps the command, then fails or succeeds as told."""

    returncode, noise = 0, ""

    def __init__(self, command, **options):
        Launcher.command, Launcher.options = command, options

    def communicate(self):
        return None, self.noise

    def send_signal(self, number):
        Launcher.signalled = number


@pytest.fixture
def launcher(monkeypatch):
    monkeypatch.setattr(several_processes.subprocess, "Popen", Launcher)
    monkeypatch.setattr(Launcher, "returncode", 0)
    monkeypatch.setattr(Launcher, "noise", "")
    return Launcher


def test_several_processes_are_started_by_torchs_launcher_in_one_folder(capsys, launcher):
    code, _, err = train(capsys, "--procs", "2", "--lr=0.1")
    assert (code, err) == (0, "")
    words = launcher.command
    assert words[1:6] == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    asked = "-m lemmata train mlp --data moons --device cpu --lr=0.1 --out runs/mlp-moons-1"
    assert " ".join(words[6:]) == asked
    assert launcher.options["preexec_fn"] is end_with_parent  # kill -9 of `lemmata train` leaves nobody training


def test_a_process_of_several_ends_with_its_launcher(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr("lemmata.lab.cli.train.end_with_parent", lambda: asked.append("RANK"))
    train(capsys, "--epochs", "1")
    assert asked == []
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(
        "lemmata.lab.cli.train._run_recipe", Mock(side_effect=KeyboardInterrupt)
    )  # nothing is trained here
    train(capsys, "--epochs", "1")
    assert asked == ["RANK"]


def test_of_a_failure_of_several_processes_one_line_remains(capsys, launcher, monkeypatch):
    noise = "W1115 Setting things\nlemmata: lr is wrong\nlemmata: lr is wrong\nTraceback\n  exitcode  : 2 (pid: 7)\n"
    monkeypatch.setattr(launcher, "returncode", 1)
    monkeypatch.setattr(launcher, "noise", noise)
    assert train(capsys, "--procs", "2")[::2] == (2, "lemmata: lr is wrong\n")
    monkeypatch.setattr(launcher, "noise", "Traceback\nKilled by the system\n")
    assert train(capsys, "--procs", "2")[::2] == (2, "lemmata: a process failed: Killed by the system\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_to_several_processes(capsys, launcher, monkeypatch, tmp_path, number):
    before = signal.getsignal(number)
    monkeypatch.setattr(launcher, "communicate", lambda self: (signal.raise_signal(number), ""))
    code, _, err = train(capsys, "--procs", "2", "--out", "here")
    assert (code, launcher.signalled) == (128 + number, number)
    assert err == "lemmata: stopped before there was anything to keep\n"
    (tmp_path / "here" / "checkpoints").mkdir(parents=True)
    (tmp_path / "here" / "checkpoints" / "step-00000001.json").touch()
    said = "lemmata: stopped; go on with: lemmata train mlp --resume --out here --procs 2\n"
    assert train(capsys, "--procs", "2", "--out", "here")[2] == said
    assert signal.getsignal(number) is before


def test_several_processes_under_nohup_are_not_told_of_a_closed_terminal(capsys, launcher, monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(launcher, "communicate", lambda self: (signal.raise_signal(signal.SIGHUP), ""))
        assert train(capsys, "--procs", "2")[::2] == (0, "")
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_several_processes_have_to_say_is_said_once(capsys, launcher, monkeypatch):
    monkeypatch.setattr(launcher, "noise", "W1115 Setting\nlemmata: skipped one\nlemmata: skipped one\n")
    assert train(capsys, "--procs", "2")[::2] == (0, "lemmata: skipped one\n")


def test_only_the_first_of_several_processes_speaks(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert train(capsys, "--steps", "2") == (0, "", "")
