"""Lazy packages: names without imports, and imports only of what is used."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import lemmata
from lemmata.catalog import CHAPTERS
from lemmata.lazy import lazy_packages, package_stub, public_names, stub

PACKAGES = sorted(lazy_packages())
CHAPTERS_HERE = [chapter for chapter in CHAPTERS if f"lemmata.{chapter}" in PACKAGES]


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "lazy_house"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from lemmata.lazy import lazy\n__getattr__, __dir__ = lazy(__name__, __file__)\n"
    )
    (folder / "room.py").write_text('__all__ = ["Chair", "TABLE"]\nclass Chair:\n    pass\nTABLE = 4\n_hidden = 1\n')
    (folder / "cellar.py").write_text('__all__ = ["Wine"]\nraise RuntimeError("the cellar was opened")\n')
    (folder / "_attic.py").write_text('__all__ = ["Ghost"]\n')
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("lazy_house")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazy_house"]:
        del sys.modules[name]


def test_names_are_known_before_anything_is_imported(package):
    assert dir(package) == ["Chair", "TABLE", "Wine"]
    assert package.__all__ == ["Chair", "TABLE", "Wine"]
    assert "lazy_house.room" not in sys.modules


def test_only_the_file_of_a_name_is_imported(package):
    assert package.TABLE == 4
    assert package.Chair is importlib.import_module("lazy_house.room").Chair
    assert "lazy_house.cellar" not in sys.modules
    with pytest.raises(RuntimeError, match="the cellar was opened"):
        package.Wine


@pytest.mark.parametrize("name", ["Nobody", "_hidden", "Ghost"])
def test_what_is_not_public_is_not_there(package, name):
    with pytest.raises(AttributeError, match=f"module 'lazy_house' has no attribute '{name}'"):
        getattr(package, name)


def test_from_imports_work(package):
    from lazy_house import Chair
    from lazy_house.room import Chair as same

    assert Chair is same
    with pytest.raises(ImportError, match="Nobody"):
        from lazy_house import Nobody  # noqa: F401


@pytest.mark.parametrize("name", PACKAGES)
def test_our_packages_import_nothing_heavy(name):
    code = f"import sys, {name} as p; dir(p); print(sorted({{'torch', 'numpy', 'scipy', 'pytest'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_of_ours_is_there_and_no_file_has_its_name(name):
    package = importlib.import_module(name)
    (folder,) = package.__path__
    names = public_names(Path(folder))
    hiding = {part for home in names.values() for part in home.split(".")}
    assert not set(names) & hiding, "after its import, a file or a room would hide the name"
    for public in names:
        assert getattr(package, public) is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_type_checkers_see_every_public_name(name):
    folder = lazy_packages()[name]
    committed = (folder / "__init__.pyi").read_text(encoding="utf-8")
    assert committed == stub(name, folder), "run `python3 dev.py lint --fix`"


def test_type_checkers_see_every_package_of_ours():
    committed = Path(lemmata.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert committed == package_stub(), "run `python3 dev.py lint --fix`"
    assert all(f"from lemmata import {name} as {name}\n" in committed for name in CHAPTERS_HERE)


def test_a_stub_names_the_home_of_every_name(package):
    (folder,) = package.__path__
    told = stub("lazy_house", Path(folder))
    assert "from lazy_house.room import Chair as Chair\n" in told
    assert told.endswith('__all__ = [\n    "Chair",\n    "TABLE",\n    "Wine",\n]\n')


def test_the_names_of_a_room_are_the_chapters_too(package):
    (folder,) = package.__path__
    attic = Path(folder, "attic")
    attic.mkdir()
    (attic / "statements.yaml").write_text("")
    (attic / "__init__.py").write_text(Path(folder, "__init__.py").read_text())
    (attic / "trunks.py").write_text('__all__ = ["Trunk"]\nTrunk = "old"\n')
    public_names.cache_clear()
    assert dir(package) == ["Chair", "TABLE", "Trunk", "Wine", "attic"]
    assert package.Trunk == package.attic.Trunk == "old"
    assert "from lazy_house import attic as attic\n" in stub("lazy_house", Path(folder))
    assert "from lazy_house.attic.trunks import Trunk as Trunk\n" in stub("lazy_house", Path(folder))
    Path(folder, "other.py").write_text('__all__ = ["Trunk"]\n')
    public_names.cache_clear()
    with pytest.raises(ValueError, match=r"Trunk is public in other and in attic\.trunks: rename one"):
        dir(package)


def test_recipes_are_no_public_names(package):
    (folder,) = package.__path__
    Path(folder, "recipes_memory.py").write_text('__all__ = ["learn"]\n')
    public_names.cache_clear()
    assert "learn" not in dir(package)


def test_types_reach_the_user(tmp_path):
    checker = Path(sys.executable).with_name("basedpyright")
    if not checker.exists():
        pytest.skip("basedpyright is not installed beside this Python")
    (tmp_path / "mine.py").write_text(
        "import lemmata\nfrom lemmata.recurrent import LSTM\n"
        'LSTM("8", 16)\nlemmata.recurrent.GRU(8, hiden=16)\nlemmata.recurrent.LSTM(8, 16)\n'
        "lemmata.optim.Muon, lemmata.transformers.GPT, lemmata.geometric.Graph, lemmata.audit.audit\n"
    )
    done = subprocess.run(
        [checker, "--pythonpath", sys.executable, "--outputjson", "mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    errors = [e for e in json.loads(done.stdout)["generalDiagnostics"] if e["severity"] == "error"]
    assert {e["range"]["start"]["line"] for e in errors} == {2, 3}


def test_the_package_completes_to_chapters_and_first_words():
    assert {"foundations", "recurrent", "data", "fit", "load"} <= set(dir(lemmata))
    assert lemmata.recurrent is importlib.import_module("lemmata.recurrent")
    assert lemmata.fit is lemmata.train.fit
    with pytest.raises(AttributeError, match="module 'lemmata' has no attribute 'nothing'"):
        lemmata.nothing


@pytest.mark.parametrize(
    ("package", "name", "meant"),
    [
        (lemmata, "recurent", "recurrent"),
        (lemmata.geometric, "PointNet", "PointNetClassifier or PointNetFeatures or PointNetSegmenter"),
        (lemmata.recurrent, "Lstm", "LSTM"),
        (lemmata.optim, "Moun", "Muon"),
    ],
)
def test_a_name_nearly_right_is_answered_with_the_right_one(package, name, meant):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}': did you mean {meant}\?$"):
        getattr(package, name)


def test_the_package_itself_imports_nothing():
    assert lemmata.__version__
    code = "import sys; old = set(sys.modules); import lemmata; print(set(sys.modules) - old)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'lemmata'}"
