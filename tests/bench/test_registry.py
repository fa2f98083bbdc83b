"""Entries are read from their files, and a file that declares none rightly is named."""

import pytest

from lemmata.bench.registry import FOLDER, entries


def test_every_entry_of_ours_states_a_limit_and_targets_for_peers_that_it_has():
    for name, entry in entries().items():
        roles = [one.role for one in entry.contenders]
        peers = {one.who for one in entry.contenders if one.role == "peer"}
        assert entry.path.is_relative_to(FOLDER)
        assert roles.count("limit") == 1, name
        assert set(entry.targets) <= peers, name
        assert all(entry.targets_for(case) for case in entry.cases), name
        assert len({one.who for one in entry.contenders}) == len(entry.contenders), name
    for path in {entry.path for entry in entries().values()}:
        there = [entry for entry in entries().values() if entry.path == path]  # they share their contenders
        told = {case for one in there[0].contenders for case in one.cases.split()}
        assert told <= {case for entry in there for case in entry.cases}, path


def test_the_words_of_an_entry_are_read_from_its_file(sums):
    assert (sums.title, sums.problem, sums.agreement, sums.within) == ("Sums", "numbers", "total", 1e-9)
    assert [(one.who, one.role) for one in sums.contenders_for("small")] == [
        ("lemmata", "ours"),
        ("loop", "peer"),
        ("absent", "peer"),
        ("counting them", "limit"),
    ]
    assert [one.who for one in sums.contenders_for("large")] == ["lemmata", "absent", "counting them"]
    assert sums.targets_for("large") == {"absent": 1.0}


def test_files_without_an_entry_are_passed_over(folder):
    assert folder(nothing="x = 1\n") == {}


MINIMAL = """
    @entry("{name}", title="", measures="", cases={{"a": {size}}}, targets={{}})
    def problem(case, device): ...
    @ours("lemmata")
    def work(problem): ...
    @agreement(within=0.0)
    def told(result): ...
"""


def test_a_name_used_twice_is_named(folder):
    with pytest.raises(ValueError, match=r"b\.py: entry 'same' is also in a\.py: rename one"):
        folder(a=MINIMAL.format(name="same", size="''"), b=MINIMAL.format(name="same", size="''"))


def test_words_that_must_be_computed_are_refused(folder):
    with pytest.raises(ValueError, match=r"a\.py:3: the words of a mark must be literals"):
        folder(a=MINIMAL.format(name="a", size="str(3)"))


def test_an_entry_without_agreement_is_refused(folder):
    with pytest.raises(ValueError, match="one @agreement and at least one @ours"):
        folder(a=MINIMAL.format(name="a", size="''").split("@agreement")[0])
