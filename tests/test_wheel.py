"""What people install: the wheel, in an environment that knows nothing of this checkout, without a network."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# No connection leaves the process: whatever needs the network falls here.
OFFLINE = """
import socket, sys
def refuse(*_): raise OSError("the network is out of reach")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""
LOAD_ALL = (
    OFFLINE
    + """
import lemmata
from lemmata.data import entries, load
for name, entry in entries().items():
    if entry.origin != "fetched":
        assert load(name) is not None, name
print(lemmata.__file__)
"""
)
TRAIN = OFFLINE + "from lemmata.lab.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(
        sign in done.stderr for sign in ("ConnectionError", "No matching distribution", "retry")
    ):
        pytest.skip("building a wheel needs the package index once, for hatchling")
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of a new environment that holds the wheel; what it depends on is borrowed from ours."""
    folder = tmp_path_factory.mktemp("empty") / "env"
    venv.create(folder, with_pip=False)
    bin = folder / ("Scripts" if os.name == "nt" else "bin")
    install = [sys.executable, "-m", "pip", "--python", str(bin / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*install, "--quiet", str(wheel)], check=True, capture_output=True)
    place = subprocess.run(
        [bin / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    # A .pth file inside a folder named by a .pth file is not read: our editable install stays out of sight.
    (Path(place.stdout.strip()) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return bin / "python"


def run(python, folder, code, *words):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LEMMATA"))}
    environment |= {"LEMMATA_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [python, "-c", code, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_holds_the_package_and_nothing_that_was_not_committed(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert any(name.endswith("data/embedded/fashion.npz") for name in names)
    assert any(name.endswith("LICENCES.md") for name in names)
    assert not [name for name in names if "test" in name.split("/")[0] or name.endswith((".pyc", ".tmp"))]


def test_every_loader_works_offline_from_the_wheel(python, tmp_path):
    done = run(python, tmp_path, LOAD_ALL)
    assert done.returncode == 0, done.stderr
    assert str(ROOT / "src") not in done.stdout


def test_the_wheel_trains_twenty_steps_and_uses_what_it_trained(python, tmp_path):
    words = ("train", "mlp", "--data", "digits", "--steps", "20", "--out", "run", "--device", "cpu")
    done = run(python, tmp_path, TRAIN, *words)
    assert done.returncode == 0, done.stderr
    used = run(python, tmp_path, TRAIN, "predict", "run", "--json")
    assert used.returncode == 0, used.stderr
    assert '"accuracy"' in used.stdout
