"""The key of a verdict: everything that could change it is in it, and nothing else."""

import dataclasses
import os
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


@pytest.mark.parametrize(
    "name", ["python", "machine", "instructions", "torch", "numpy", "scipy", "sympy", "networkx", "scikit-learn"]
)
def test_every_version_is_in_the_key(claim, monkeypatch, name):
    key = fingerprint(claim, 0)
    assert name in versions()
    monkeypatch.setattr(module, "versions", lambda: versions() | {name: "another"})
    assert fingerprint(claim, 0) != key


@pytest.fixture
def processor(monkeypatch):
    """Another processor, and none of the variables that change what it does."""

    def put(features, maker="GenuineIntel"):
        monkeypatch.setattr(module, "_processor_features", lambda: (maker, frozenset(features.split())))
        versions.cache_clear()

    for name in module.SWITCHES:
        monkeypatch.delenv(name, raising=False)
    yield put
    versions.cache_clear()


def test_the_instruction_set_is_in_the_key(claim, monkeypatch, processor):
    keys = set()
    for features in ("fma avx2", "fma avx2 avx512f", "fma avx2 avx512f avx512_bf16", ""):
        processor(features)
        keys.add(fingerprint(claim, 0))
    processor("fma avx2", "AuthenticAMD")
    keys.add(fingerprint(claim, 0))
    for name in module.SWITCHES:
        monkeypatch.setenv(name, "another")
        versions.cache_clear()
        keys.add(fingerprint(claim, 0))
    assert len(keys) == 5 + len(module.SWITCHES)
    processor("fma avx2 nx erms")
    assert versions()["instructions"].startswith("GenuineIntel avx2 fma; ATEN_CPU_CAPABILITY=another; ")


@pytest.mark.parametrize(
    ("features", "chosen", "expected"),
    [
        ("fma avx2 avx512vl avx512bw avx512dq", "", "AVX512"),
        ("fma avx2 avx512f", "", "AVX2"),
        ("avx2", "", "DEFAULT"),
        ("sse2", "", "DEFAULT"),
        ("", "", ""),
        ("fma avx2 avx512vl avx512bw avx512dq", "avx2", "AVX2"),
        ("fma avx2", "default", "DEFAULT"),
        ("fma avx2", "nonsense", "AVX2"),
    ],
)
def test_what_torch_will_compute_with_is_foreseen(monkeypatch, processor, features, chosen, expected):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    processor(features)
    if chosen:
        monkeypatch.setenv("ATEN_CPU_CAPABILITY", chosen)
    assert module.capability() == expected
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert module.capability() == ""


def test_what_was_foreseen_is_so_here():
    import torch

    assert module.capability() in ("", torch.backends.cpu.get_cpu_capability())


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
    assert {"judge/decorators.py", "connectionism/mcculloch_pitts.py", "marks.py"} <= names
    assert not any("cover" in name or "claims" in name for name in names)
    judges = {path.name for path in closure(module.JUDGES)}
    assert {"worker.py", "runner.py", "draw.py", "evidence.py", "statistics.py"} <= judges
    assert not any(path.name in ("cover.py", "hopfield.py") for path in closure(module.JUDGES))


def test_the_optimisers_that_a_training_may_name_are_in_its_key():
    files = {path.name for path in closure(module.PACKAGE / "train" / "loop.py")}
    assert {"loop.py", "optimizers.py", "adam.py", "gradient_descent.py", "first_order.py"} <= files


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


def test_all_that_a_star_may_bring_is_in_the_key(claim, tmp_path):
    claim.path.write_text("from lemmata.judge import *\nfrom package import *\n")
    (tmp_path / "package/__init__.py").write_text("__all__ = ['unused', 'nothing_of_that_name']")
    names = {path.name for path in closure(claim.path)}
    assert {"exact.py", "numeric.py", "statistics.py", "unused.py"} <= names


def test_the_packages_around_a_file_are_in_the_key(tmp_path):
    """They are imported before it."""
    for name in ("package/__init__.py", "package/claims/__init__.py", "package/claims/mine.py", "__init__.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    mine = tmp_path / "package" / "claims" / "mine.py"
    assert closure(mine) == {mine, *(folder / "__init__.py" for folder in (mine.parent, mine.parents[1]))}
    ours = {module.place(path) for path in closure(catalog.load().claims["cover.theorem"].path)}
    assert {"__init__.py", "connectionism/__init__.py", "connectionism/claims/__init__.py"} <= ours


def test_a_name_of_a_room_is_followed_through_its_chapter(claim, tmp_path):
    lazy = "from lemmata.lazy import lazy\n__getattr__, __dir__ = lazy(__name__, __file__)\n"
    files = {
        "chapter/__init__.py": lazy,
        "chapter/room/__init__.py": lazy,
        "chapter/room/statements.yaml": "",
        "chapter/room/chair.py": '__all__ = ["Chair"]\nChair = 4\n',
        "chapter/room/table.py": '__all__ = ["Table"]\nTable = 4\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for line in ("from chapter import Chair", "from chapter.room import Chair", "from chapter.room.chair import Chair"):
        claim.path.write_text(f"{line}\n")
        names = {str(path.relative_to(tmp_path)) for path in closure(claim.path) if tmp_path in path.parents}
        assert names == {"mine.py", "chapter/__init__.py", "chapter/room/__init__.py", "chapter/room/chair.py"}


def test_an_edit_that_keeps_time_and_length_is_seen(claim, tmp_path):
    key, file = fingerprint(claim, 0), tmp_path / "beside.py"
    status = file.stat()
    file.write_text(file.read_text().replace("deeper", "deepER"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fingerprint(claim, 0) != key


def test_a_file_that_is_gone_has_a_key_all_the_same(claim):
    key = fingerprint(claim, 0)
    claim.path.unlink()
    assert fingerprint(claim, 0) != key


def test_a_file_must_be_the_same_before_while_and_after_it_is_judged(claim, tmp_path):
    before = module.sources(claim.path)
    loaded = {where: source.digest for where, source in before.items()}
    mine, beside = str(tmp_path / "mine.py"), str(tmp_path / "beside.py")
    assert module.changed(before, loaded, before) == ""
    assert module.changed(before, {}, before) == "", "what was not compiled was not written to either"
    assert module.changed(before, loaded | {beside: "other"}, before) == beside
    assert module.changed(before, loaded | {"of another claim": "other"}, before) == ""
    touched = before | {beside: before[beside]._replace(stamp=(0, 0, 0, 0))}
    assert module.changed(before, loaded, touched) == "", "compiled as it was, and restored"
    assert module.changed(before, {mine: loaded[mine]}, touched) == beside
    assert module.changed(before, loaded, before | {mine: before[mine]._replace(digest="other")}) == mine
    assert module.changed(before, loaded, {k: v for k, v in before.items() if k != mine}) == mine
    assert module.changed(before, loaded, before | {"new": before[mine]}) == "new"


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
