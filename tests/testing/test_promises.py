"""Promises: a claim must run the system whose docstring promises it."""

import importlib
import itertools
import subprocess
import sys
import textwrap

import pytest

from lemmata.catalog import read_claims
from lemmata.testing.promises import broken, called_code, promises

NUMBERS = itertools.count()
CLAIMS = """
import functools
from lemmata.judge import claim, exactly, lie
from {house}.rooms import *

@claim("room.first")
@lie("two", x=2)
def first(draw, x=1):
{body}
    return exactly(x, 1)
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A package of one file of systems and one claim, `room.first`, whose check does what is written for it."""
    monkeypatch.syspath_prepend(tmp_path)

    def build(systems, body="pass", cost="quick"):
        root = tmp_path / f"house{next(NUMBERS)}"  # its name is imported once in this process
        root.mkdir()
        (root / "__init__.py").write_text("")
        (root / "rooms.py").write_text(textwrap.dedent(systems))
        path = root / "checks.py"
        path.write_text(CLAIMS.format(house=root.name, body=textwrap.indent(textwrap.dedent(body), "    ")))
        importlib.invalidate_caches()
        problems = []
        (entry,) = read_claims(path, f"{root.name}.checks", problems)
        entry = type(entry)(**{**vars(entry), "cost": cost})
        assert problems == []
        return [fault.replace(f"{root}/", "") for fault in broken(promises(root), {"room.first": entry})]

    return build


LAMP = '''
def lamp(x=0):
    """Light.

    Claims: room.first
    """
    return x
'''


def test_every_claim_of_ours_runs_what_promises_it():
    """In a process of its own: in this one jaxtyping looks at every call, and would be watched doing so."""
    found = subprocess.run([sys.executable, "-m", "lemmata.testing.promises"], capture_output=True, text=True)
    assert (found.stdout, found.stderr, found.returncode) == ("Every claim runs what promises it.\n", "", 0)


def test_what_is_called_keeps_its_promise(house):
    assert house(LAMP, "lamp()") == []


@pytest.mark.parametrize("body", ["pass", "other = lamp", "lamp.__doc__"])
def test_what_is_never_called_does_not(house, body):
    assert house(LAMP, body) == ["rooms.py:2: lamp promises room.first, but the check never runs it"]


def test_the_lie_does_not_count(house):
    assert len(house(LAMP, "lamp() if x == 2 else None")) == 1


def test_any_method_of_a_class_counts(house):
    chair = '''
    class Chair:
        """A seat.

        Claims: room.first
        """

        legs = 4

        @property
        def seat(self):
            return 1

        @staticmethod
        def paint():
            return 2
    '''
    assert house(chair, "Chair().seat") == []
    assert house(chair, "Chair.paint()") == []
    assert len(house(chair, "Chair(), Chair.legs")) == 1, "nothing of it runs"
    late = "import importlib, sys; importlib.reload(sys.modules[Chair.__module__])"
    assert len(house(chair, late)) == 1, "the body of a class is not the class at work"


def test_what_is_inherited_from_the_same_file_counts(house):
    chairs = '''
    class Base:
        def sit(self):
            return 1

    class Middle(Base):
        pass

    class Chair(Middle):
        """A seat.

        Claims: room.first
        """

    class Stool(dict):
        """A seat.

        Claims: room.first
        """
    '''
    (fault,) = house(chairs, "Chair().sit(), Stool()")
    assert "Stool promises room.first" in fault


def test_a_dataclass_without_methods_is_run_when_it_is_made(house):
    config = '''
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Config:
        """Choices.

        Claims: room.first
        """

        size: int = 1

    @dataclass(frozen=True)
    class Other:
        """The same fields, another class.

        Claims: room.first
        """

        size: int = 1
    '''
    (fault,) = house(config, "Config()")
    assert "Other promises" in fault


def test_what_is_remembered_is_run_again(house):
    cached = "import functools\n\n@functools.cache" + LAMP + "\nlamp()\n"
    assert house(cached, "lamp()") == []


def test_a_file_may_promise_as_a_whole(house):
    assert house('"""Rooms.\n\nClaims: room.first\n"""\ndef door():\n    return 1\n', "door()") == []
    (fault,) = house('"""Rooms.\n\nClaims: room.first\n"""\ndef door():\n    return 1\n')
    assert fault.startswith("rooms.py:1: rooms promises room.first")


def test_a_long_claim_must_mention_the_name(house):
    assert house(LAMP, "functools.partial(lamp)", cost="long") == []
    assert len(house(LAMP, "'lamp'", cost="long")) == 1


def test_an_unknown_claim_is_not_our_fault(house):
    assert house(LAMP.replace("room.first", "room.second")) == []


def test_a_debugger_is_given_back_its_trace():
    before = sys.gettrace()
    with called_code() as called, pytest.raises(ZeroDivisionError):
        (lambda: 1 / 0)()
    assert sys.gettrace() is before
    assert "<lambda>" in {code.co_name for code in called}


def test_the_promises_of_the_package_are_found():
    assert {"Gaussian", "Perceptron", "LSTM"} <= {promise.name for promise in promises()}
