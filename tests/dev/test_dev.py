"""dev.py: setting up twice costs nothing, half-made things are mended, and every failure is one sentence.

Nothing here needs a network: the project is a scratch folder, and in pip's place stands a module that does what the
test tells it.
"""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def calls(dev):
    path = dev.HERE / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_the_second_setup_prints_one_line_and_does_not_call_pip(dev, capsys):
    assert dev.main(["setup"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("Creating .venv")
    assert dev.main(["setup"]) == 0
    version = ".".join(map(str, sys.version_info[:3]))
    assert capsys.readouterr().out == f"Ready: Python {version}, torch 2.13.0 in .venv\n"
    assert len(calls(dev)) == 1
    assert "-c constraints.txt -e .[dev]" in calls(dev)[0]


def test_changed_requirements_are_installed_into_the_same_environment(dev, capsys):
    dev.main(["setup"])
    with open(dev.HERE / "constraints.txt", "a") as handle:
        handle.write("colorama==0.4.6\n")
    capsys.readouterr()
    assert dev.main(["setup"]) == 0
    assert "Creating" not in capsys.readouterr().out
    assert len(calls(dev)) == 2


def test_an_environment_made_by_hand_is_adopted(dev, capsys):
    dev.main(["setup"])
    dev.installation.STAMP.unlink()
    capsys.readouterr()
    assert dev.main(["setup"]) == 0
    assert "Creating" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda dev: dev.installation.stamp_write(finished=""), "the last setup was cut short"),
        (lambda dev: (dev.BIN / "python").unlink(), "it is damaged"),
        (lambda dev: (dev.BIN / "ruff").unlink(), "it is damaged"),
        (
            lambda dev: dev.installation.stamp_write(finished="its", torch="default", home="/elsewhere"),
            "moved or copied",
        ),
    ],
    ids=["cut short", "no python", "no ruff", "moved"],
)
def test_a_doubtful_environment_is_made_anew(dev, capsys, damage, reason):
    dev.main(["setup"])
    damage(dev)
    capsys.readouterr()
    assert dev.main(["setup"]) == 0
    assert reason in capsys.readouterr().out.splitlines()[0]
    assert dev.main(["setup"]) == 0
    assert capsys.readouterr().out.startswith("Ready")


def test_a_damaged_stamp_is_not_believed(dev, capsys):
    dev.main(["setup"])
    dev.installation.STAMP.write_text("[")
    assert dev.main(["setup"]) == 0
    assert len(calls(dev)) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("NewConnectionError: Failed to establish a new connection", "check the network or proxy"),
        ("OSError: [Errno 28] No space left on device", "the disk is full: free 3 GB"),
        ("PermissionError: [Errno 13] Permission denied: '/x'", "give the folder to your user"),
        ("ERROR: No matching distribution found for torch>=2.10", "use Python 3.11 to 3.14"),
        ("ERROR: Cannot install torch==2.13.0+cpu because these package versions", "or unset TORCH"),
    ],
)
def test_a_failure_of_pip_that_we_know_is_one_line_with_the_fix(dev, capsys, words, sentence):
    (dev.HERE / "words").write_text("Collecting torch\n" + words)
    assert dev.main(["setup"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert sentence in told
    assert words in dev.installation.LOG.read_text()


def test_a_failure_of_pip_that_we_do_not_know_is_shown_in_full(dev, capsys):
    (dev.HERE / "words").write_text("line one\nline two")
    assert dev.main(["setup"]) == 1
    assert capsys.readouterr().err == "line one\nline two\ndev.py: pip failed; its words are above\n"


def test_after_a_failure_the_environment_is_not_trusted(dev, capsys):
    (dev.HERE / "words").write_text("boom")
    dev.main(["setup"])
    (dev.HERE / "words").write_text("")
    assert dev.main(["setup"]) == 0
    assert "Making .venv anew: the last setup was cut short" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_is_one_line_with_the_fix(dev, capsys, monkeypatch, module):
    monkeypatch.setattr(
        dev.installation, "find_spec", lambda name: None if name == module else importlib.util.find_spec(name)
    )
    assert dev.main(["setup"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"this Python has no {module}: `sudo apt install python3.{sys.version_info[1]}-venv`" in told
    assert not dev.installation.VENV.exists()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            PermissionError(13, "Permission denied", "/there/.venv"),
            "cannot write in /there: give the folder to your user",
        ),
        (OSError(30, "Read-only file system", "/there/.venv"), "cannot write in /there: give the folder to your user"),
        (OSError(28, "No space left on device"), "the disk is full"),
    ],
)
def test_a_folder_that_cannot_be_written_is_one_line_with_the_fix(dev, capsys, monkeypatch, error, sentence):
    def refuse(**_):
        raise error

    monkeypatch.setattr(dev.installation, "stamp_write", refuse)
    assert dev.main(["setup"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert sentence in told


def test_ctrl_c_is_130_without_a_traceback(dev, capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(dev.installation, "setup", interrupt)
    assert dev.main(["run"]) == 130
    assert capsys.readouterr().err == "\ndev.py: stopped\n"


def test_an_old_python_is_told_which_one_to_use(dev, capsys, monkeypatch):
    monkeypatch.setattr(dev, "NEEDS", (99, 0))
    monkeypatch.setattr(dev, "newer_python", lambda: "python3.13")
    assert dev.main(["test"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "lemmata needs Python 3.11 or newer" in told
    assert "run `python3.13 dev.py test`" in told


def test_an_old_python_can_read_the_file_that_far():
    for name in ("dev.py", "dev/installation.py"):
        ast.parse((ROOT / name).read_text(encoding="utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tset"], "no such word: tset; did you mean test?"),
        (["xyz"], "the words are setup, run, test, lint, wheel, chapter, mutate, slow, torture"),
        (["test", "--all", "-k", "x"], "test --all runs everything and takes no more words"),
        (["setup", "now"], "setup takes nothing more, got now"),
        (["lint", "--all"], "lint takes --fix or nothing, got --all"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(dev, script, capsys, arguments, sentence):
    assert dev.main(arguments) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert sentence in told


def test_an_unknown_torch_is_bad_use(dev, capsys, monkeypatch):
    monkeypatch.setenv("TORCH", "gpu")
    assert dev.main(["setup"]) == 2
    assert capsys.readouterr().err == "dev.py: TORCH must be cpu, system or unset, got 'gpu'\n"


def test_the_cpu_build_is_asked_for_by_its_label_and_remembered(dev, capsys, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("TORCH", "cpu")
    assert dev.main(["setup"]) == 0
    assert "torch==2.13.0+cpu" in calls(dev)[0]
    monkeypatch.delenv("TORCH")
    assert dev.main(["setup"]) == 0
    assert len(calls(dev)) == 1


def test_the_torch_of_the_system_is_reached_by_a_path_file(dev, monkeypatch):
    elsewhere = dev.HERE.parent / "elsewhere"
    monkeypatch.setattr(dev.installation, "system_torch", lambda: str(elsewhere))
    monkeypatch.setenv("TORCH", "system")
    assert dev.main(["setup"]) == 0
    assert not any(word.startswith("torch") for call in calls(dev) for word in call.split())
    assert [call.split()[-2:] for call in calls(dev)][-1] == ["--progress-bar", "off"]
    (path_file,) = dev.installation.VENV.rglob("lemmata-system-torch.pth")
    assert path_file.read_text() == f"{elsewhere}\n"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise ImportError", "cannot import torch"),
        ("__version__ = '2.9.1+cpu'", "found torch 2.9.1+cpu: 2.10 or newer"),
    ],
)
def test_a_system_without_a_usable_torch_changes_nothing(dev, capsys, monkeypatch, code, sentence):
    (dev.HERE.parent / "torch.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(dev.HERE.parent))
    monkeypatch.setenv("TORCH", "system")
    assert dev.main(["setup"]) == 1
    assert sentence in capsys.readouterr().err
    assert not dev.installation.VENV.exists()


def test_children_keep_what_they_compile_whatever_the_shell_says(dev, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in dev.installation.environment()


def test_wheel_says_what_it_built(dev, capsys):
    assert dev.main(["wheel"]) == 0
    wheel = dev.HERE / "dist/lemmata-0.1.0-py3-none-any.whl"
    assert capsys.readouterr().out.splitlines()[-1] == f"{wheel}  5 kB"
    assert list(wheel.parent.iterdir()) == [wheel]


def test_it_works_from_anywhere_as_a_script(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "dev.py")], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:19]) == (0, "python3 dev.py WORD")


def test_the_makefile_has_the_same_words(dev):
    words = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("WORDS"))
    assert words.split()[2:] == list(dev.WORDS)
