"""dev.py: setting up twice costs nothing, half-made things are mended, and every failure is one sentence.

Nothing here needs a network: the project is a scratch folder with a space in its name, its `.venv` is a real one
without pip, and in pip's place stands a module that does what the test tells it.
"""

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FAKE_PIP = """
import pathlib, sys, sysconfig
home = pathlib.Path({home!r})
with open(home / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
words = (home / "words").read_text()
if words:
    sys.exit(words)
if sys.argv[1] == "wheel":
    pathlib.Path(sys.argv[sys.argv.index("-w") + 1], "lemmata-0.1.0-py3-none-any.whl").write_bytes(b"x" * 5000)
site, scripts = (pathlib.Path(sysconfig.get_path(kind)) for kind in ("purelib", "scripts"))
(site / "torch-2.13.0.dist-info").mkdir(exist_ok=True)
(site / "torch-2.13.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\\nName: torch\\nVersion: 2.13.0\\n")
(site / "torch.py").write_text("")
(site / "lemmata.pth").write_text(str(home / "src"))
for name in ("lemmata", "pytest", "ruff", "basedpyright", "lint-imports"):
    (scripts / name).write_text("")
    (scripts / name).chmod(0o755)
"""


def load(folder):
    spec = importlib.util.spec_from_file_location("dev", folder / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install_fake_pip(home):
    site = next(home.glob(".venv/lib/python*/site-packages"))
    (site / "pip").mkdir()
    (site / "pip/__init__.py").touch()
    (site / "pip/__main__.py").write_text(FAKE_PIP.format(home=str(home)))
    (site / "pip-1.dist-info").mkdir()
    (site / "pip-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: pip\nVersion: 1\n")


@pytest.fixture
def dev(tmp_path, monkeypatch):
    home = tmp_path / "a project"
    (home / "src/lemmata").mkdir(parents=True)
    (home / "src/lemmata/__init__.py").touch()
    (home / "words").touch()
    for name in ("dev.py", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, home / name)
    module = load(home)
    real = module.output

    def output(*command):
        if "venv" not in command:
            return real(*command)
        outcome = real(*command, "--without-pip")
        install_fake_pip(home)
        return outcome

    monkeypatch.setattr(module, "output", output)
    monkeypatch.delenv("TORCH", raising=False)
    monkeypatch.chdir(tmp_path)
    return module


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
    dev.STAMP.unlink()
    capsys.readouterr()
    assert dev.main(["setup"]) == 0
    assert "Creating" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda dev: dev.stamp_write(finished=""), "the last setup was cut short"),
        (lambda dev: (dev.BIN / "python").unlink(), "it is damaged"),
        (lambda dev: (dev.BIN / "ruff").unlink(), "it is damaged"),
        (lambda dev: dev.stamp_write(finished="its", torch="default", home="/elsewhere"), "moved or copied"),
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
    dev.STAMP.write_text("[")
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
    assert words in dev.LOG.read_text()


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
    monkeypatch.setattr(dev, "find_spec", lambda name: None if name == module else importlib.util.find_spec(name))
    assert dev.main(["setup"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"this Python has no {module}: `sudo apt install python3.{sys.version_info[1]}-venv`" in told
    assert not dev.VENV.exists()


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

    monkeypatch.setattr(dev, "stamp_write", refuse)
    assert dev.main(["setup"]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert sentence in told


def test_ctrl_c_is_130_without_a_traceback(dev, capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(dev, "setup", interrupt)
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
    ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tset"], "no such word: tset; did you mean test?"),
        (["xyz"], "the words are setup, run, test, lint, wheel, torture"),
        (["setup", "now"], "setup takes nothing more, got now"),
        (["lint", "--all"], "lint takes --fix or nothing, got --all"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(dev, capsys, arguments, sentence):
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
    monkeypatch.setattr(dev, "system_torch", lambda: str(elsewhere))
    monkeypatch.setenv("TORCH", "system")
    assert dev.main(["setup"]) == 0
    assert not any(word.startswith("torch") for call in calls(dev) for word in call.split())
    assert [call.split()[-2:] for call in calls(dev)][-1] == ["--progress-bar", "off"]
    (path_file,) = dev.VENV.rglob("lemmata-system-torch.pth")
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
    assert not dev.VENV.exists()


def test_children_keep_what_they_compile_whatever_the_shell_says(dev, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in dev.environment()


@pytest.fixture
def script(dev, monkeypatch):
    """The commands a word would run, each succeeding unless its name is in `failing`."""
    record = []
    failing = set()

    def call(*command, variables=None):
        words = [Path(command[0]).name, *map(str, command[1:])]
        record.append(" ".join([*(f"{k}={v}" for k, v in (variables or {}).items()), *words]))
        return 3 if failing & set(words) else 0

    monkeypatch.setattr(dev, "setup", lambda: None)
    monkeypatch.setattr(dev, "call", call)
    return record, failing


def test_test_runs_everything_and_pytest_last(dev, script, capsys):
    record, _ = script
    assert dev.main(["test", "-k", "judge"]) == 0
    assert record == [
        "ruff check --output-format=concise",
        "ruff format --check",
        "basedpyright",
        "lint-imports --no-logo",
        "lemmata check --all --fresh --twice --budget 720 --slowest 20",
        "python -m lemmata.lab.site.assets --dev",
        "python -m pytest -k judge",
    ]
    assert capsys.readouterr().out.endswith("\n== pytest\n")


def test_all_tests_are_shared_out_among_the_cores(dev, script, monkeypatch):
    record, _ = script
    monkeypatch.setattr(dev.os, "cpu_count", lambda: 2)
    assert dev.main(["test"]) == 0
    assert record[-1] == "python -m pytest -n 2 --dist loadfile --no-loadscope-reorder"


def test_claims_and_numeric_tests_are_run_as_other_processors_compute_them(dev, script, monkeypatch):
    record, _ = script
    monkeypatch.setattr(dev, "has_instructions", lambda name: True)
    for name in ("foundations", "train"):
        (dev.HERE / "tests" / name).mkdir(parents=True)
    assert dev.main(["test"]) == 0
    elsewhere = [line for line in record if line.startswith("ATEN_CPU_CAPABILITY")]
    assert [line.split()[0].split("=")[1] for line in elsewhere] == ["default", "default", "avx2", "avx2"]
    assert all("/tests/foundations " in line and "/tests/train" not in line for line in elsewhere[1::2])


def test_a_processor_pretends_to_be_another_only_where_it_can(dev, monkeypatch):
    monkeypatch.setattr(dev.platform, "machine", lambda: "arm64")
    assert not any(map(dev.has_instructions, dev.PROCESSORS))
    monkeypatch.setattr(dev.platform, "machine", lambda: "AMD64")
    monkeypatch.setattr(dev.Path, "read_text", lambda path: "flags : sse4_1 fma\n")
    assert list(map(dev.has_instructions, dev.PROCESSORS)) == [True, False]


def test_test_stops_at_the_first_stage_that_fails(dev, script, capsys):
    record, failing = script
    failing.add("basedpyright")
    assert dev.main(["test"]) == 3
    assert record[-1] == "basedpyright"
    assert capsys.readouterr().err == "dev.py: basedpyright failed (exit 3)\n"


def test_nothing_is_printed_after_the_closing_line_of_pytest(dev, script, capsys, monkeypatch):
    _, failing = script
    monkeypatch.setattr(dev, "has_instructions", lambda name: False)
    failing.add("pytest")
    assert dev.main(["test"]) == 3
    assert capsys.readouterr().err == ""


def test_run_hands_its_words_to_check(dev, script):
    record, failing = script
    failing.add("--fresh")
    assert dev.main(["run", "perceptron.*", "--fresh"]) == 3
    assert record == ["lemmata check perceptron.* --fresh"]


def test_lint_fix_repairs_before_it_looks(dev, script):
    record, _ = script
    assert dev.main(["lint", "--fix"]) == 0
    assert record[:3] == ["python -m lemmata.lazy", "ruff check --output-format=concise --fix", "ruff format"]


def test_torture_goes_on_after_a_failure_and_names_it(dev, script, capsys):
    record, failing = script
    failing.add("lemmata.testing.mutate")
    assert dev.main(["torture"]) == 1
    assert len(record) == 3
    assert capsys.readouterr().err == "dev.py: mutation failed (exit 3)\n"


def test_wheel_says_what_it_built(dev, capsys):
    assert dev.main(["wheel"]) == 0
    wheel = dev.HERE / "dist/lemmata-0.1.0-py3-none-any.whl"
    assert capsys.readouterr().out.splitlines()[-1] == f"{wheel}  5 kB"
    assert list(wheel.parent.iterdir()) == [wheel]


def test_it_works_from_anywhere_as_a_script(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "dev.py")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("python3 dev.py WORD")


def test_the_makefile_has_the_same_words(dev):
    words = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("WORDS"))
    assert words.split()[2:] == list(dev.WORDS)
