"""The ledger: written whole or not at all, read with suspicion, and never in the way of a verdict."""

import dataclasses
import errno
import json
import os
import pathlib

import pytest

from lemmata.files import cache_folder
from lemmata.judge.ledger import Ledger
from lemmata.judge.verdict import Result

KEY = "ab" + "0" * 62
EVIDENCE = {"holds": True, "by": "exact", "measured": 1, "predicted": 1, "margin": 0.0, "alpha": 0.0, "detail": ""}
EVIDENCE |= {"proof": False, "weak": "", "figure": None, "relation": "="}
LIE = {"text": "no", "printed": "", "rejected": True, "how": "measured 2"}
RESULT = Result("a.b", "holds", "exact", 0.25, "", EVIDENCE, [LIE], 3)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


def files(ledger):
    return sorted(path.name for path in ledger.folder.rglob("*") if path.is_file())


def test_what_goes_in_comes_out(ledger):
    assert ledger.get(KEY) is None
    ledger.put(KEY, RESULT)
    assert ledger.get(KEY) == RESULT
    assert Ledger(ledger.folder).get(KEY) == RESULT
    assert ledger.get("cd" + KEY[2:]) is None
    assert ledger.messages == []


def test_entries_are_plain_json_under_their_key(ledger):
    ledger.put(KEY, RESULT)
    assert files(ledger) == [f"{KEY}.json"]
    assert json.loads((ledger.folder / "ab" / f"{KEY}.json").read_text())["result"]["id"] == "a.b"
    count, size = ledger.size()
    assert count == 1
    assert size > 100


def test_the_newest_verdict_replaces_the_old(ledger):
    ledger.put(KEY, RESULT)
    ledger.put(KEY, Result("a.b", "refuted"))
    assert ledger.get(KEY).verdict == "refuted"
    assert ledger.size()[0] == 1


def test_an_empty_ledger_has_no_size(ledger):
    assert ledger.size() == (0, 0)


def test_every_damage_is_told_and_set_aside(ledger):
    for key in (KEY, "cd" + KEY[2:]):
        ledger.put(key, RESULT)
        path = ledger.folder / key[:2] / f"{key}.json"
        path.write_text(path.read_text().replace("0.25", "0.26"))
        assert ledger.get(key) is None
        assert ledger.get(key) is None, "set aside, it is simply absent"
    assert [message.split(": ")[1] for message in ledger.messages] == [
        f"{KEY}.damaged (the checksum does not match)",
        f"cd{KEY[2:]}.damaged (the checksum does not match)",
    ]
    assert ledger.size()[0] == 0


def test_an_entry_with_a_right_checksum_and_a_wrong_verdict_is_not_believed(ledger):
    ledger.put(KEY, Result("a.b", "perfect"))
    assert ledger.get(KEY) is None
    assert "unknown verdict 'perfect'" in ledger.messages[0]


def test_an_entry_under_another_key_is_not_believed(ledger):
    other = "cd" + KEY[2:]
    ledger.put(KEY, RESULT)
    ledger.put(other, RESULT)
    os.replace(ledger.folder / "ab" / f"{KEY}.json", ledger.folder / "cd" / f"{other}.json")
    assert ledger.get(other) is None
    assert "the checksum does not match" in ledger.messages[0]


@pytest.mark.parametrize(
    "data", [b"null", b"7", b'"text"', b"[]", b"{}", b'{"sha256": 1}', b"[" * 100_000, b'{"sha256": "", "result": NaN}']
)
def test_an_entry_that_is_anything_else_is_set_aside(ledger, data):
    ledger.put(KEY, RESULT)
    (ledger.folder / "ab" / f"{KEY}.json").write_bytes(data)
    assert ledger.get(KEY) is None
    assert files(ledger) == [f"{KEY}.damaged"]


def test_an_entry_of_wrong_types_with_a_right_checksum_is_set_aside(ledger):
    ledger.put(KEY, dataclasses.replace(RESULT, lies=[LIE | {"rejected": "yes"}]))
    assert ledger.get(KEY) is None
    assert "rejected of a lie cannot be of type str" in ledger.messages[0]


def fail(code):
    def failing(*arguments, **words):
        raise OSError(code, os.strerror(code))

    return failing


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("place", ["os.replace", "os.open", "os.write", "pathlib.Path.mkdir"])
def test_a_disk_that_cannot_be_written_costs_the_memory_not_the_verdict(ledger, monkeypatch, code, place):
    owner, name = place.rsplit(".", 1)
    owner = {"os": os, "pathlib.Path": pathlib.Path}[owner]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail(code))
        for _ in range(3):
            ledger.put(KEY, RESULT)
    assert len(ledger.messages) == 1
    assert os.strerror(code) in ledger.messages[0]
    assert ledger.messages[0].startswith("verdicts are shown but not kept, ")
    assert ledger.messages[0].endswith("set LEMMATA_CACHE")
    assert files(ledger) == [], "no half-written file is left"
    ledger.put(KEY, RESULT)
    assert ledger.get(KEY) == RESULT


def test_a_disk_that_fills_while_writing_leaves_nothing(ledger, monkeypatch):
    """The first part is taken, the rest is not, as on /dev/full."""
    real, calls = os.write, []

    def full(handle, data):
        calls.append(len(data))
        if len(calls) == 1:
            return real(handle, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    ledger.put(KEY, RESULT)
    monkeypatch.undo()
    assert "No space left on device" in ledger.messages[0]
    assert files(ledger) == []


def test_a_file_where_the_folder_should_be_is_survived(tmp_path):
    (tmp_path / "occupied").write_text("")
    ledger = Ledger(tmp_path / "occupied")
    assert ledger.get(KEY) is None
    ledger.put(KEY, RESULT)
    ledger.put(KEY, RESULT)
    assert len(ledger.messages) == 2
    assert ledger.messages[0].startswith("the ledger cannot be read (Not a directory): judging afresh")
    assert ledger.messages[1].startswith("verdicts are shown but not kept")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_survived(tmp_path):
    tmp_path.chmod(0o500)
    ledger = Ledger(tmp_path / "ledger")
    ledger.put(KEY, RESULT)
    assert "Permission denied" in ledger.messages[0]


def test_ctrl_c_while_writing_leaves_nothing(ledger, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.put(KEY, RESULT)
    assert files(ledger) == []


def test_the_folder_is_where_the_system_keeps_caches(monkeypatch, tmp_path):
    assert Ledger().folder == cache_folder() / "ledger"
    monkeypatch.setenv("LEMMATA_CACHE", "~/here")
    assert cache_folder() == pathlib.Path.home() / "here"
    monkeypatch.delenv("LEMMATA_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "lemmata"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == pathlib.Path.home() / ".cache" / "lemmata"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == pathlib.Path.home() / "Library" / "Caches" / "lemmata"
