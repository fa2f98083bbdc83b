"""The habits of the house: file sizes, forbidden calls, docstrings, no registries, and papers that agree."""

import ast
import collections
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import lemmata
from lemmata.lab.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGE = sorted((ROOT / "src").rglob("*.py"))
DOOR = [ROOT / "dev.py", *sorted((ROOT / "dev").rglob("*.py"))]
SOURCES = [*PACKAGE, *sorted((ROOT / "tests").rglob("*.py")), *DOOR]


def name(path):
    return str(path.relative_to(ROOT))


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def committed():
    """Every file that is, or on the next commit may be, part of the repository."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / file for file in done.stdout.split("\0") if file and (ROOT / file).is_file()]


def of_each(files, fault):
    """File -> what is wrong with it, for those where something is: one test for all, since files are many."""
    return {name(path): found for path in files if (found := fault(path))}


def test_no_file_is_longer_than_400_lines():
    def length(path):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        return lines if lines > 400 else 0

    assert not of_each(SOURCES, length), "split them along their subjects"


def test_no_folder_of_the_package_holds_more_than_40_files():
    folders = collections.Counter(path.parent for path in PACKAGE)
    assert not {name(folder): files for folder, files in folders.items() if files > 40}, (
        "divide them along their subjects"
    )


def test_no_name_stands_for_three_files():
    """A claim or a contest is named like its system; apart from those and recipes, a name has two files at the most."""
    subjects = [path for path in PACKAGE if not {"claims", "contests"} & set(path.parts) and path.stem[0] != "_"]
    names = collections.Counter(path.stem for path in subjects if path.stem != "recipes")
    assert [stem for stem, files in names.items() if files > 2] == []


def test_private_functions_say_their_noun():
    """`_trial_message`, not `_told`: a name of one word means something else in every file, and no search finds it."""

    def one_word(path):
        functions = [n for n in ast.walk(parse(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        names = {f.name for f in functions if f.name.startswith("_") and not f.name.startswith("__")}
        # `_` is registered for a kernel and never called by name; `_apply` is torch's own
        return sorted(n for n in names - {"_", "_apply"} if "_" not in n.strip("_"))

    assert not of_each(PACKAGE, one_word)


def forbidden(node):
    """What is wrong with a node, or None. `model.eval()` is fine; the builtin is not."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = getattr(node, "module", None) or ""
        modules = {alias.name.split(".")[0] for alias in node.names} | {module.split(".")[0]}
        return modules & {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
    if not isinstance(node, ast.Call):
        return None
    called = ast.unparse(node.func)
    if called in ("eval", "exec", "torch.load", "torch.save"):
        return called
    return called if called.split(".")[-1] in ("extractall", "sleep") else None


def test_the_package_never_runs_or_unpickles_what_it_reads_and_never_sleeps():
    def calls(path):
        return [f"line {node.lineno}: {forbidden(node)}" for node in ast.walk(parse(path)) if forbidden(node)]

    assert not of_each([*PACKAGE, *DOOR], calls)


def test_tests_do_not_sleep():
    def sleeps(path):
        calls = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Call)]
        return [node.lineno for node in calls if ast.unparse(node.func).split(".")[-1] == "sleep"]

    assert not of_each([path for path in SOURCES if path not in PACKAGE], sleeps)


def test_the_forbidden_calls_are_recognised():
    bad = "import pickle\nfrom torch import load\neval('1')\ntorch.load(f)\narchive.extractall()\ntime.sleep(1)"
    lines = {node.lineno for node in ast.walk(ast.parse(bad)) if forbidden(node)}
    assert lines == {1, 3, 4, 5, 6}
    assert not any(forbidden(node) for node in ast.walk(ast.parse("model.eval()\nsafetensors.torch.load_file(f)")))


def docstrings(tree):
    """(node, its docstring's expression or None) for the file and every class and function in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            yield node, first.value if told and isinstance(first.value.value, str) else None


def test_every_file_says_what_it_is():
    assert not of_each(SOURCES, lambda path: not ast.get_docstring(parse(path))), "begin them with a docstring"


def test_docstrings_with_a_backslash_are_raw():
    def cooked(path):
        text = path.read_text(encoding="utf-8")
        rows, found = text.splitlines(), []
        for node, expression in docstrings(ast.parse(text)):
            # A segment is cut out of the whole file each time, which is slow: only where there is a backslash at all.
            near = "".join(rows[expression.lineno - 1 : expression.end_lineno]) if expression else ""
            written = ast.get_source_segment(text, expression) if "\\" in near else ""
            if "\\" in written and written[0] not in "rR":
                found.append(getattr(node, "name", "the file"))
        return found

    assert not of_each(PACKAGE, cooked), "write r before them"


def test_public_names_have_docstrings():
    def silent(path):
        tree = parse(path)
        lists = [n for n in tree.body if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n)]
        public = set(ast.literal_eval(lists[0].value)) if lists else set()
        return [node.name for node, told in docstrings(tree) if getattr(node, "name", "") in public and told is None]

    assert not of_each([path for path in PACKAGE if "claims" not in path.parts], silent)


def test_no_committed_file_names_a_registry():
    # In pieces, or this file would be the first to be found.
    hosts = ["py{}.org", "python{}.org", "npm{}.com", "npm{}.org", "download.py{}.org", "js{}.net", "un{}.com"]
    middles = ["pi", "hosted", "js", "js", "torch", "delivr", "pkg"]
    pattern = re.compile("|".join(re.escape(h.format(m)) for h, m in zip(hosts, middles, strict=True)))
    found = [name(p) for p in committed() if pattern.search(p.read_bytes().decode("utf-8", "replace"))]
    assert not found


def test_the_papers_agree_on_the_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == lemmata.__version__
    first = re.search(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert first
    assert lemmata.__version__ in first.group()


@pytest.mark.parametrize("paper", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_the_commands_the_papers_name_exist(paper):
    text = (ROOT / paper).read_text(encoding="utf-8")
    code = re.findall(r"^```(?:sh|console)?\n(.*?)^```", text, re.M | re.S) + re.findall(r"`([^`\n]+)`", text)
    lines = [line.strip() for block in code for line in block.splitlines()]
    ours = {m.group(1) for line in lines if (m := re.match(r"(?:\.venv/bin/)?lemmata ([a-z]+)", line))}
    assert ours <= set(COMMANDS)
    dev = (ROOT / "dev.py").read_text(encoding="utf-8")
    for word in {m.group(1) for line in lines if (m := re.search(r"python3 dev\.py ([a-z]+)", line))}:
        assert f'"{word}":' in dev


def test_the_files_that_documents_name_are_there():
    def missing(path):
        text = path.read_text(encoding="utf-8")
        named = {ROOT / file for file in re.findall(r"`((?:src|tests|docs)/[\w/.-]+)`", text)}
        linked = {path.parent / link for link in re.findall(r"\]\(([\w/.-]+)\)", text)}
        return [str(file) for file in named | linked if not file.exists()]

    assert not of_each([ROOT / "README.md", *(ROOT / "docs").glob("*.md")], missing)


def test_the_list_of_slow_tests_names_no_unknown_one():
    def unknown(nodeid):
        file, _, test = nodeid.partition("::")
        if not (ROOT / file).is_file():
            return True
        tree = parse(ROOT / file)
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        return file.startswith("tests/") and test.split("::")[-1] not in defined

    listed = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed))
    assert not [nodeid for nodeid in listed if unknown(nodeid)], "`python3 dev.py slow` writes tests/slow.txt anew"


def pasted(paper, folder):
    """Write every Python and YAML block of a paper below a folder, to the file named in the line before it."""
    text = (ROOT / paper).read_text(encoding="utf-8")
    for said, block in re.findall(r"([^\n]*)\n\n?```(?:python|yaml)\n(.*?)^```", text, re.M | re.S):
        named = re.search(r"`([\w/]+\.(?:py|yaml))`", said)
        path = folder / (named.group(1) if named else "block.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as handle:
            handle.write(block)
        yield path


def python(folder, *arguments):
    """Run Python in a folder, on the package that lies in its src if there is one; return what it printed."""
    env = os.environ | {"PYTHONPATH": str(folder / "src"), "LEMMATA_CACHE": str(folder / "cache")}
    env["OMP_NUM_THREADS"] = "1"  # threads that wait for each other take minutes on a busy machine
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_code_of_the_readme_runs(tmp_path):
    mine, block, training = pasted("README.md", tmp_path)
    assert (mine.name, training.name) == ("mine.py", "train_digits.py")
    assert python(tmp_path, "block.py").strip() == block.read_text().rsplit("# ")[-1].strip()
    (verdict,) = json.loads(python(tmp_path, "-m", "lemmata", "check", "mine.py", "--json"))
    assert verdict["verdict"] == "holds"
    assert "'loss': 0.167" in python(tmp_path, "train_digits.py")


EXAMPLE = ROOT / "docs" / "example"
NO_ASSETS = shutil.ignore_patterns("__pycache__", "assets")


def test_contributing_quotes_its_example():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:python|yaml)\n(.*?)^```", text, re.M | re.S)
    quoted = [line.strip() for block in blocks for line in block.splitlines()]
    files = [path for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".yaml")]
    whole = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(quoted) > 20
    assert not [line for line in quoted if line != "..." and line not in whole]
    named = re.findall(r"`((?:src|tests)/[\w/]+\.(?:py|html|js))`", text)
    assert not [file for file in named if not (EXAMPLE / file).exists() and not (ROOT / file).exists()]


def test_the_example_of_contributing_works_as_it_stands(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=NO_ASSETS)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    stated = tmp_path / "src" / "lemmata" / "connectionism" / "statements.yaml"
    if "nearest_prototype" not in stated.read_text():  # whoever follows the paper has it in the tree
        with open(stated, "a") as handle:
            handle.write((EXAMPLE / "statements.yaml").read_text())
    (verdict,) = json.loads(python(tmp_path, "-m", "lemmata", "check", "nearest_prototype.boundary", "--json"))
    assert verdict["verdict"] == "holds"
    stated = "from lemmata import catalog; print(catalog.load().statements['nearest_prototype.boundary'])"
    assert "why='Both distances" in python(tmp_path, "-c", stated)
    assert "NearestPrototype" in python(tmp_path, "-m", "lemmata", "systems", "nearest_prototype")
    files = [str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*.py")]
    tests = [file for file in files if "/test_" in file or file.endswith("connectionism/nearest_prototype.py")]
    assert "4 passed" in python(tmp_path, "-m", "pytest", "-p", "no:cacheprovider", *tests)
    python(tmp_path, "-m", "ruff", "check", *files)
    python(tmp_path, "-m", "ruff", "format", "--check", *files)
    found = "from lemmata.bench.registry import entries; print(*entries())"
    assert "nearest_prototype" in python(tmp_path, "-c", found)
    if importlib.util.find_spec("fastapi"):
        lab = "from lemmata.lab.site.labs import labs; from lemmata.lab.site.work.prototype_lab import State, show;"
        assert "0.37" in python(tmp_path, "-c", f"{lab} assert 'prototype' in labs(); print(show(State())['part'])")


def test_the_empty_chapter_of_contributing_is_one(tmp_path):
    (commands,) = re.findall(r"^```sh\n(mkdir .*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=NO_ASSETS)
    subprocess.run(["bash", "-euc", commands], cwd=tmp_path, check=True)
    look = "import lemmata; from lemmata import catalog, dynamics; print(dir(dynamics), 'dynamics' in dir(lemmata)); "
    look += "print([problem for problem in catalog.load().problems if 'dynamics' in problem], dynamics.__doc__)"
    assert python(tmp_path, "-c", look) == "[] True\n[] Dynamics: maps that are applied again and again.\n"


def test_every_dependency_has_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    names = {re.match(r"[\w-]+", requirement).group() for requirement in asked}
    assert not [n for n in sorted(names) if f"`{n}`" not in changes]


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE}), ids=lambda path: path.name)
def test_no_public_name_is_exported_twice_or_named_like_its_file(folder):
    found = [
        (name, path.stem)
        for path in folder.glob("[!_]*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        for name in ast.literal_eval(node.value)
    ]
    names = [name for name, _ in found]
    assert len(names) == len(set(names))
    if (folder / "__init__.py").exists() and "lazy(" in (folder / "__init__.py").read_text(encoding="utf-8"):
        assert not [name for name, stem in found if name == stem]
