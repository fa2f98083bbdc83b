"""What a chapter may cost: the slowest claims, those over their class, and the limits above which it is told."""

import pytest
from rich.console import Console

from lemmata import catalog as catalogs
from lemmata.catalog import CHAPTERS
from lemmata.judge.verdict import Result
from lemmata.lab.cli import check as check_module
from lemmata.lab.cli import main
from lemmata.lab.cli.costs import spent, tell_slowest, too_dear

# One claim of each class, of two chapters.
INSTANT, QUICK, LONG = "mcculloch.neuron", "linalg.sylvester", "seq.seq2seq"


def results(**seconds):
    ids = {"instant": INSTANT, "quick": QUICK, "long": LONG, "yours": "mine.half"}
    return [Result(ids[word], "holds", seconds=value) for word, value in seconds.items()]


def told(found, how_many=2, seeds=1):
    screen = Console(width=120, no_color=True)
    with screen.capture() as capture:
        tell_slowest(screen, catalogs.load(), found, how_many, seeds)
    return capture.get()


def test_the_slowest_come_first_and_every_chapter_has_a_row():
    text = told(results(instant=0.3, quick=2.0, long=70.0, yours=1.0))
    lines = text.splitlines()
    assert lines[1] == "The slowest of 4 claims, 73 s of work in all:"
    assert [line.split() for line in lines[2:4]] == [["70.00", "s", LONG], ["2.00", "s", QUICK]]
    rows = {line.split()[0]: line.split()[1:] for line in lines if line and line.split()[0] in (*CHAPTERS, "yours")}
    assert rows == {
        "connectionism": ["0.3", "0.0", "0.0"],
        "foundations": ["0.0", "2.0", "0.0"],
        "recurrent": ["0.0", "0.0", "70.0"],
        "yours": ["0.0", "1.0", "0.0"],
    }


def test_a_claim_is_named_when_it_is_over_its_class_by_more_than_chance():
    assert "may take" not in told(results(instant=0.9, quick=9.9, long=500.0))
    text = told(results(instant=1.1, quick=10.1), how_many=0)
    assert f"{INSTANT} took 1.1 s: instant claims may take 0.5 s" in text
    assert f"{QUICK} took 10.1 s: quick claims may take 5 s" in text
    assert "may take" not in told(results(instant=1.1, quick=10.1), seeds=2), "of two seeds each took half"


def test_long_claims_of_a_chapter_have_three_minutes_on_two_cores():
    assert too_dear(spent(catalogs.load(), results(long=359.0))) == []
    assert too_dear(spent(catalogs.load(), results(long=362.0))) == [
        "the long claims of recurrent take 181 s on 2 cores, they may take 180 s"
    ]
    assert too_dear(spent(catalogs.load(), results(long=362.0), seeds=2)) == []


def test_instant_and_quick_claims_have_their_share_of_twelve_minutes():
    share = 720 / len(CHAPTERS)
    assert too_dear(spent(catalogs.load(), results(quick=2 * share - 1))) == []
    (fault,) = too_dear(spent(catalogs.load(), results(quick=2 * share + 2)))
    assert fault == "the instant and quick claims of 1 chapter take 43 s on 2 cores, their share is 42 s"
    assert too_dear(spent(catalogs.load(), results(quick=2 * share + 2, instant=1.0))) == [], "two chapters have two"
    assert too_dear(spent(catalogs.load(), results(yours=5000.0))) == [], "one's own claims cost what they cost"


@pytest.mark.parametrize(("taken", "dear"), [(1.0, False), (400.0, True)])
def test_a_chapter_that_is_too_dear_is_told_and_no_failure(monkeypatch, capsys, taken, dear):
    judged = {LONG: Result(LONG, "holds", seconds=taken)}
    monkeypatch.setattr(check_module, "_judge_claims", lambda *_: judged)
    assert main(["check", LONG]) == 0
    assert main(["check", LONG, "--slowest", "3"]) == 0
    captured = capsys.readouterr()
    assert f"{taken:8.2f} s  {LONG}" in captured.out
    assert ("lemmata: the long claims of recurrent take 200 s" in captured.err) == dear
    assert main(["check", LONG, "--slowest", "3", "--json"]) == 0


def test_the_number_of_slowest_must_make_sense(capsys):
    assert main(["check", LONG, "--slowest", "-1"]) == 2
    assert "--slowest must be >= 0" in capsys.readouterr().err
