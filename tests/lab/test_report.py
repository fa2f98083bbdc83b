"""`lemmata report`: every page of the lab that is read, as files whose links all lead to one another."""

import csv
import dataclasses
import html.parser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from lemmata import catalog as catalogs
from lemmata.figure import Figure, Line
from lemmata.files import DRAFT
from lemmata.judge.verdict import Result
from lemmata.lab.cli import main
from lemmata.lab.report.contents import narrowed, report_files
from lemmata.lab.report.folder import LIST, NotOurs, write_folder
from lemmata.lab.site.knowledge import Snapshot, sources

CURVE = Figure("Error & load", "load", "rate", [Line([0, 1], [0.0, 0.5], "theory")])
EVIDENCE = {"holds": True, "by": "exact", "measured": 1.0, "predicted": 1.0, "margin": 0.0, "alpha": 0.0}
EVIDENCE |= {"detail": "", "proof": False, "weak": "", "figure": CURVE.to_json(), "relation": "="}
SHOWCASE = "hopfield.energy"


@pytest.fixture(scope="module")
def snapshot():
    """The real catalog; every claim holds and has a figure, every lie was rejected."""
    found = catalogs.load()
    return Snapshot(found, {id: held(entry) for id, entry in found.claims.items()}, sources())


def held(entry):
    lies = [{"text": e.text, "printed": e.printed, "rejected": True, "how": "measured 7"} for e in entry.lies]
    return Result(entry.id, "holds", "exact", 0.1, evidence=EVIDENCE, lies=lies)


@pytest.fixture(scope="module")
def report(snapshot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "lab"
    write_folder(folder, report_files(snapshot))
    return folder


class Page(html.parser.HTMLParser):
    """A page's links, ids, tags and words."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.tags, self.bare = [], set(), set(), []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        self.ids |= {given["id"]} if "id" in given else set()
        self.links += [given[name] for name in ("href", "src", "action", "srcset", "poster") if name in given]
        self.bare += [tag] if tag == "a" and "href" not in given else []


def pages(folder):
    return {path: Page(path) for path in sorted(folder.rglob("*.html"))}


@pytest.fixture(scope="module")
def read(report):
    return pages(report)


def broken(folder, read=None):
    """Every link that does not lead to a file of the folder and, where it names a place, to that place."""
    found = read or pages(folder)
    wrong = []
    for path, page in found.items():
        for link in page.links:
            name, _, place = link.partition("#")
            target = Path(os.path.normpath(path.parent / unquote(name))) if name else path
            inside = folder in target.parents and target.is_file()
            if "?" in link or ":" in name or not inside or (place and unquote(place) not in found[target].ids):
                wrong.append((path.relative_to(folder).as_posix(), link))
        wrong += [(path.relative_to(folder).as_posix(), "a link that leads nowhere")] * len(page.bare)
    return wrong


def test_every_link_of_every_page_leads_to_a_file_of_the_report(report, read):
    assert broken(report, read) == []


def test_the_link_checker_sees_a_broken_link(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">b</a><a href="#c">c</a><a href="https://example.org">d</a>')
    assert [link for _, link in broken(tmp_path)] == ["b.html", "#c", "https://example.org"]


def test_there_is_a_page_for_everything_that_is_read(report, snapshot):
    found = {path.relative_to(report).as_posix() for path in report.rglob("*.html")}
    catalog = snapshot.catalog
    wanted = {f"{name}.html" for name in ("index", "atlas", "errata", "source", "systems", "trust")}
    wanted |= {f"claim/{id}.html" for id in catalog.statements} | {f"systems/{id}.html" for id in catalog.systems}
    assert found == wanted | {f"source/{code}.html" for code in snapshot.sources}


def test_no_page_needs_a_script_a_form_or_a_server(report, read):
    for page in read.values():
        assert page.tags.isdisjoint({"script", "form", "iframe", "object"})
        assert "open the link" not in page.text
    assert not [path for path in report.rglob("*") if path.suffix in (".js", ".map")]


def test_style_sheets_ask_for_nothing_outside_the_report(report):
    for sheet in report.rglob("*.css"):
        text = re.sub(r'url\("data:[^"]*"\)', "", sheet.read_text(encoding="utf-8"))
        assert all((sheet.parent / name.strip("'\"")).is_file() for name in re.findall(r"url\(([^)]*)\)", text))
        assert "@import" not in text


def test_in_place_of_sliders_stands_what_was_measured(report):
    text = (report / "claim" / f"{SHOWCASE}.html").read_text(encoding="utf-8")
    assert "rejected" in text
    assert "measured 7" in text
    assert "factor of the sum over pairs: 0.5 instead of −0.5" in text
    assert 'type="range"' not in text


def test_figures_and_misprints_come_as_files(report, snapshot):
    assert (report / "claim" / f"{SHOWCASE}.svg").read_text(encoding="utf-8").startswith("<svg")
    with (report / "claim" / f"{SHOWCASE}.csv").open(newline="") as file:
        assert list(csv.reader(file))[1:] == [["theory", "0", "0.0"], ["theory", "1", "0.5"]]
    with (report / "errata.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == sum(1 for _ in snapshot.errata())


def test_a_part_of_the_course_is_a_whole_report(snapshot, tmp_path):
    write_folder(tmp_path / "part", report_files(narrowed(snapshot, {SHOWCASE, "perceptron.novikoff"})))
    assert broken(tmp_path / "part") == []
    assert len(list((tmp_path / "part" / "claim").glob("*.html"))) == 2


def test_a_report_without_any_verdict_says_so(snapshot, tmp_path):
    write_folder(tmp_path / "new", report_files(dataclasses.replace(narrowed(snapshot, {SHOWCASE}), results={})))
    assert broken(tmp_path / "new") == []
    assert "not judged" in (tmp_path / "new" / "claim" / f"{SHOWCASE}.html").read_text(encoding="utf-8")


# --- The folder ---


def test_a_report_replaces_an_earlier_one_and_nothing_else(tmp_path):
    folder = tmp_path / "lab"
    write_folder(folder, [("a.html", b"1"), ("b.html", b"1")])
    write_folder(folder, [("a.html", b"2")])
    assert (folder / "a.html").read_bytes() == b"2"
    assert sorted(path.name for path in folder.iterdir()) == ["a.html", LIST]
    (folder / "mine.txt").write_text("precious")
    with pytest.raises(NotOurs, match=r"holds mine\.txt, which no report wrote"):
        write_folder(folder, [("a.html", b"3")])
    assert (folder / "a.html").read_bytes() == b"2"
    assert [path.name for path in tmp_path.iterdir()] == ["lab"]


def test_whatever_ends_it_early_leaves_the_earlier_report(tmp_path):
    def interrupted():
        yield "a.html", b"2"
        raise KeyboardInterrupt

    write_folder(tmp_path / "lab", [("a.html", b"1")])
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "lab", interrupted())
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "new", interrupted())
    assert (tmp_path / "lab" / "a.html").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["lab"]


@pytest.mark.skipif(os.name == "nt", reason="no locks on folders")
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    code = (
        "import os, pathlib, sys\n"
        "from lemmata.lab.report.folder import write_folder\n"
        "write_folder(pathlib.Path(sys.argv[1]), ((n, b'') for n in iter(lambda: os.kill(os.getpid(), 9), 0)))"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "lab")], capture_output=True)
    assert killed.returncode == -9
    assert [path.name.endswith(DRAFT) for path in tmp_path.iterdir()] == [True]
    write_folder(tmp_path / "lab", [("a.html", b"1")])
    assert [path.name for path in tmp_path.iterdir()] == ["lab"]


# --- The command ---


def test_the_command_says_where_the_report_is(tmp_path, capsys, monkeypatch):
    assert main(["report", "--out", str(tmp_path / "lab"), "--offline", SHOWCASE]) == 0
    said = capsys.readouterr().out
    assert f"open {tmp_path / 'lab' / 'index.html'}" in said
    assert "1 claim not judged on this machine" in said
    monkeypatch.chdir(tmp_path)
    shutil.rmtree("lab/static")  # what is missing is no reason to refuse
    assert main(["report", "--out", "lab", "--offline", SHOWCASE]) == 0
    assert broken(tmp_path / "lab") == []


def test_the_command_refuses_what_it_could_spoil(tmp_path, capsys, monkeypatch):
    (tmp_path / "thesis.txt").write_text("precious")
    monkeypatch.chdir(tmp_path.parent)
    for out, told in ((tmp_path, "holds thesis.txt"), (tmp_path / "thesis.txt", "is a file"), (".", "stand in")):
        assert main(["report", "--out", str(out), "--offline"]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.count("lemmata:") - error.count("src") <= 1
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_the_command_names_what_it_does_not_know(tmp_path, capsys):
    assert main(["report", "--out", str(tmp_path / "lab"), "--offline", "hopfield.enrgy"]) == 2
    assert "hopfield.energy" in capsys.readouterr().err
    assert main(["report", "--out", str(tmp_path / "lab"), "--offline", "mine.py"]) == 2
    assert main(["report"]) == 2
    assert not (tmp_path / "lab").exists()
