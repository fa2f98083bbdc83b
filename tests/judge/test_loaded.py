"""What a process has loaded: every source as it was compiled, never the bytecode that stands for an older one."""

import hashlib
import json
import os
import py_compile
import subprocess
import sys
import textwrap

import pytest

from lemmata.judge.loaded import PACKAGE, installed, place

PROGRAM = PACKAGE / "judge" / "loaded.py"
MAIN = """
    import importlib, json, sys

    def main(loaded):
        values = [importlib.import_module(name).value for name in sys.argv[2:]]
        print(json.dumps([values, loaded, importlib.import_module("lemmata").__file__]))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "asks.py").write_text(textwrap.dedent(MAIN))
    (tmp_path / "helper.py").write_text("value = 1\n")
    return tmp_path


def run(folder, *modules):
    """The value of each module, what was loaded, and where lemmata was found."""
    env = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-P", str(PROGRAM), "asks", *modules]
    return json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_ours_and_the_users_files_are_noted_and_installed_ones_are_not(folder):
    values, loaded, _ = run(folder, "helper")
    assert values == [1]
    assert loaded == {
        "judge/loaded.py": digest(PROGRAM),
        "__init__.py": digest(PACKAGE / "__init__.py"),
        str(folder / "asks.py"): digest(folder / "asks.py"),
        str(folder / "helper.py"): digest(folder / "helper.py"),
    }


def test_bytecode_of_an_older_source_is_not_run(folder):
    """An edit that keeps time and length: Python itself would go on running the old code."""
    helper = folder / "helper.py"
    py_compile.compile(str(helper))
    status = helper.stat()
    helper.write_text("value = 2\n")
    os.utime(helper, ns=(status.st_atime_ns, status.st_mtime_ns))
    values, loaded, _ = run(folder, "helper")
    assert values == [2]
    assert loaded[str(helper)] == digest(helper)


def test_a_file_loaded_as_two_codes_is_neither(folder):
    again = """
        import importlib, pathlib, helper
        pathlib.Path(helper.__file__).write_text("value = 2\\n")
        value = importlib.reload(helper).value
    """
    (folder / "again.py").write_text(textwrap.dedent(again))
    values, loaded, _ = run(folder, "again")
    assert values == [2]
    assert loaded[str(folder / "helper.py")] == "loaded twice, as different code"


def test_code_without_a_source_is_noted(folder):
    py_compile.compile(str(folder / "helper.py"), cfile=str(folder / "helper.pyc"))
    (folder / "helper.py").unlink()
    values, loaded, _ = run(folder, "helper")
    assert values == [1]
    assert loaded[str(folder / "helper.pyc")] == digest(folder / "helper.pyc")


def test_another_lemmata_on_the_path_is_not_taken_for_this_one(folder):
    (folder / "lemmata").mkdir()
    (folder / "lemmata" / "__init__.py").write_text("")
    assert run(folder, "helper")[2] == str(PACKAGE / "__init__.py")


def test_places_are_the_same_on_every_machine_for_our_files_only(tmp_path):
    assert place(PACKAGE / "judge" / ".." / "judge" / "loaded.py") == "judge/loaded.py"
    (tmp_path / "link.py").symlink_to(tmp_path / "mine.py")
    assert place(tmp_path / "link.py") == str((tmp_path / "mine.py").resolve())


@pytest.mark.parametrize(
    ("path", "known"),
    [
        (json.__file__, True),
        (pytest.__file__, True),
        (__file__, False),
        (str(PACKAGE / "lazy.py"), False),
        ("/home/me/site-packages.py", False),
        ("/anywhere/dist-packages/mine.py", True),
    ],
)
def test_what_is_installed_is_known_by_its_version(path, known):
    assert installed(path) == known
