"""The index: what is remembered equals what would be read, and nothing is remembered too long."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from lemmata.catalog.index import Index


@dataclass(frozen=True)
class Leaf:
    text: str


@dataclass(frozen=True)
class Entry:
    id: str
    path: Path
    leaves: tuple[Leaf, ...] = ()
    facts: tuple[dict[str, str], ...] = ()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.py"
    path.write_text("one")
    return path


def index(source):
    return Index(source.parent / "cache" / "index.json", (Entry, Leaf), [Path(__file__)])


def reading(calls, source):
    def read(problems):
        calls.append(1)
        problems.append("a problem")
        yield Entry(source.read_text(), source, (Leaf("a"), Leaf("b")), ({"where": "there"},))

    return read


def look(source, calls):
    found = index(source)
    seen = found.read(source, "entries", reading(calls, source))
    found.keep()
    return seen


def test_what_did_not_change_is_read_once_and_comes_back_equal(source):
    calls = []
    first, second = look(source, calls), look(source, calls)
    assert first == second == ([Entry("one", source, (Leaf("a"), Leaf("b")), ({"where": "there"},))], ["a problem"])
    assert len(calls) == 1


def test_a_changed_file_is_read_again(source):
    calls = []
    look(source, calls)
    source.write_text("two")
    assert look(source, calls)[0][0].id == "two"
    assert len(calls) == 2


def test_another_kind_of_entry_is_another_matter(source):
    found = index(source)
    found.read(source, "claims", lambda problems: [Leaf("claim")])
    assert found.read(source, "systems", lambda problems: [Leaf("system")]) == ([Leaf("system")], [])


def test_who_asks_for_little_forgets_little_and_the_oldest_goes_first(source, monkeypatch):
    calls = []
    look(source, calls)
    other = source.with_name("other.py")
    other.write_text("other")
    look(other, calls)
    look(source, calls)
    assert len(calls) == 2
    monkeypatch.setattr("lemmata.catalog.index.MOST", 1)
    for word in ("two", "three"):  # after which one earlier entry is kept, and the one before it is gone
        other.write_text(word)
        look(other, calls)
    look(source, calls)
    assert len(calls) == 5


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 3}', None])
def test_a_damaged_index_costs_time_and_nothing_else(source, damage):
    calls = []
    expected = look(source, calls)
    path = source.parent / "cache" / "index.json"
    path.write_text(damage if damage is not None else path.read_text().replace("Leaf", "Leaves"))
    assert look(source, calls) == expected
    assert len(calls) == 2


def test_a_folder_that_cannot_be_written_is_no_error(source):
    (source.parent / "cache").write_text("a file where a folder should be")
    assert look(source, [])[0][0].id == "one"
