"""The key of a verdict: everything that could change it is in it, and nothing else."""

import dataclasses
import textwrap

import pytest

from lemmata import catalog
from lemmata.judge import fingerprint as module
from lemmata.judge.fingerprint import closure, fingerprint, fingerprints, versions

FILES = {
    "mine.py": """
        import numpy
        import beside
        from package import thing
        from lemmata.judge import claim
        from lemmata.connectionism.mcculloch_pitts import McCullochPittsNeuron

        @claim("a.b")
        def check(draw, n=1):
            import within_a_function
    """,
    "beside.py": "import deeper.inside",
    "within_a_function.py": "",
    "deeper/inside.py": "from beside import x",
    "package/__init__.py": "from package.parts import thing\nfrom . import relative",
    "package/parts.py": "from .sub import other",
    "package/relative.py": "",
    "package/sub/__init__.py": "from ..uncle import x\nother = 1",
    "package/uncle.py": "",
    "package/unused.py": "",
    "unused.py": "",
}
USED = set(FILES) - {"unused.py", "package/unused.py"}


@pytest.fixture
def claim(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    (entry,) = catalog.read_claims(tmp_path / "mine.py", "mine", [])
    return entry


def test_the_same_claim_has_the_same_key(claim):
    key = fingerprint(claim, 0)
    assert len(key) == 64
    assert fingerprint(dataclasses.replace(claim), 0) == key


@pytest.mark.parametrize("name", sorted(USED))
def test_every_file_that_is_imported_is_in_the_key(claim, tmp_path, name):
    key = fingerprint(claim, 0)
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text + "\n# changed")
    assert fingerprint(claim, 0) != key
    (tmp_path / name).write_text(text)
    assert fingerprint(claim, 0) == key


@pytest.mark.parametrize("name", sorted(set(FILES) - USED))
def test_a_file_that_is_not_imported_is_not(claim, tmp_path, name):
    key = fingerprint(claim, 0)
    (tmp_path / name).write_text("# changed")
    assert fingerprint(claim, 0) == key


def test_an_import_that_is_new_is_followed(claim, tmp_path):
    key = fingerprint(claim, 0)
    (tmp_path / "beside.py").write_text("import unused")
    second = fingerprint(claim, 0)
    (tmp_path / "unused.py").write_text("# changed")
    assert len({key, second, fingerprint(claim, 0)}) == 3


def test_a_file_that_goes_away_is_noticed(claim, tmp_path):
    key = fingerprint(claim, 0)
    (tmp_path / "beside.py").unlink()
    assert fingerprint(claim, 0) != key


@pytest.mark.parametrize("change", [{"id": "a.c"}, {"function": "other"}, {"cost": "long"}])
def test_the_claim_itself_is_in_the_key(claim, change):
    assert fingerprint(dataclasses.replace(claim, **change), 0) != fingerprint(claim, 0)


def test_words_about_the_claim_are_not(claim):
    assert fingerprint(dataclasses.replace(claim, sentence="other", line=99), 0) == fingerprint(claim, 0)


def test_the_seed_is_in_the_key(claim):
    assert fingerprint(claim, 1) != fingerprint(claim, 0)


@pytest.mark.parametrize("name", ["python", "machine", "torch", "numpy", "scipy", "sympy", "networkx", "scikit-learn"])
def test_every_version_is_in_the_key(claim, monkeypatch, name):
    key = fingerprint(claim, 0)
    assert name in versions()
    monkeypatch.setattr(module, "versions", lambda: versions() | {name: "another"})
    assert fingerprint(claim, 0) != key


def test_the_key_does_not_depend_on_the_place(claim, tmp_path):
    moved = tmp_path / "elsewhere"
    for name in FILES:
        (moved / name).parent.mkdir(parents=True, exist_ok=True)
        (moved / name).write_bytes((tmp_path / name).read_bytes())
    assert fingerprint(dataclasses.replace(claim, path=moved / "mine.py"), 0) == fingerprint(claim, 0)


def test_the_judge_and_the_system_are_in_the_key(claim):
    names = {
        path.relative_to(module.PACKAGE).as_posix() for path in closure(claim.path) if module.PACKAGE in path.parents
    }
    assert {"judge/decorators.py", "connectionism/mcculloch_pitts.py", "catalog.py"} <= names
    assert not any("cover" in name or "claims" in name for name in names)
    judges = {path.name for path in closure(module.JUDGES)}
    assert {"worker.py", "runner.py", "draw.py", "evidence.py", "statistics.py"} <= judges
    assert not any(path.name in ("cover.py", "hopfield.py") for path in closure(module.JUDGES))


def test_installed_packages_are_known_by_their_version_only(claim):
    assert not any("site-packages" in str(path) for path in closure(claim.path))


def test_a_working_copy_on_the_import_path_is_in_the_key(claim, tmp_path, monkeypatch):
    """The user's own library, installed for development: its change is what the claim is for."""
    library = tmp_path / "src" / "my_library_under_work"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("from my_library_under_work.core import f")
    (library / "core.py").write_text("f = 1")
    monkeypatch.syspath_prepend(library.parent)
    claim.path.write_text("from my_library_under_work import f\n")
    key = fingerprint(claim, 0)
    (library / "core.py").write_text("f = 1 + 1")
    assert fingerprint(claim, 0) != key


@pytest.mark.parametrize("text", ["def broken(", "\0", "caf\xe9 = 1".encode("latin-1")])
def test_a_file_that_cannot_be_parsed_is_hashed_all_the_same(claim, tmp_path, text):
    (tmp_path / "beside.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "package/parts.py").write_text("__all__ = [] + []")
    key = fingerprint(claim, 0)
    (tmp_path / "beside.py").write_text("")
    assert fingerprint(claim, 0) != key


def test_all_our_claims_have_keys_of_their_own():
    claims = catalog.load().claims
    keys = fingerprints(claims.values(), 0)
    assert keys.keys() == claims.keys()
    assert len(set(keys.values())) == len(claims)


def test_many_claims_at_once_have_the_keys_of_each_alone(claim):
    second = dataclasses.replace(claim, id="a.c", function="other")
    ours = catalog.load().claims["perceptron.novikoff"]
    together = fingerprints([claim, second, ours], 3)
    assert together == {each.id: fingerprint(each, 3) for each in (claim, second, ours)}
