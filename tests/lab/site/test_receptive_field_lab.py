"""What the receptive field lab must get right: the count beside what gradients reach, and stacks that cannot be."""

import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="the page is not installed")

from pydantic import ValidationError

from lemmata.lab.site.work.receptive_field_lab import SIDE, State, show, still


@pytest.mark.parametrize(
    ("stack", "size", "stride"),
    [
        ("c3.c3", 5, 1),
        ("c5", 5, 1),
        ("c3.c3d2.c3d4", 15, 1),
        ("c3s2.c3s2.c3", 15, 4),
        ("c3.p2.c3.u2", 8, 1),
        ("p2.p2.p2.p2.p2", 32, 32),
    ],
)
def test_the_field_is_counted_and_nothing_lies_outside(stack, size, stride):
    told = show(State(stack=stack))
    assert (told["size"], told["stride"]) == (size, (stride, stride))
    assert "0 outside" in told["words"]
    x, y, width, height = told["field"]
    heat = [told["heat"][SIDE * k : SIDE * (k + 1)] for k in range(SIDE)]
    lit = [(row, column) for row in range(SIDE) for column in range(SIDE) if heat[row][column] != "0"]
    assert (min(row for row, _ in lit), min(column for _, column in lit)) == (max(0, y), max(0, x))
    assert max(row for row, _ in lit) == min(SIDE, y + height) - 1
    assert max(column for _, column in lit) == min(SIDE, x + width) - 1


def test_every_layer_is_told():
    told = show(State(stack="c3.p2.c3d2", shortcuts="yes"))
    assert told["layers"] == [
        ["convolution 3 × 3", "40", "3", "1"],
        ["mean of 2 × 2", "20", "4", "2"],
        ["convolution 3 × 3, dilation 2", "20", "12", "2"],
    ]
    (bars,) = told["figures"]["growth"].marks
    assert bars.values == [3, 4, 12]
    assert "sees 12 × 12 places" in still(State(stack="c3.p2.c3d2")).title


def test_a_dilation_misses_places_and_shortcuts_do_not_widen_the_field():
    assert "81 places" in show(State(stack="c3d4"))["words"]
    assert "reaches 9 of them" in show(State(stack="c3d4"))["words"]
    with_shortcuts = show(State(stack="c3.c3", shortcuts="yes", weights="random"))
    assert with_shortcuts["size"] == 5


def test_units_are_where_they_are_told():
    corner, middle = show(State(stack="c3", unit="0,0")), show(State(stack="c3"))
    assert corner["field"] == [-1, -1, 3, 3]
    assert "4 places" in corner["words"]
    assert middle["unit"] == [20, 20]
    assert middle["field"] == [19, 19, 3, 3]


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="the maps must have from 1 to 80 units a side, got none: take a layer away"):
        show(State(stack="p2.p2.p2.p2.p2.p2"))
    with pytest.raises(ValueError, match="got 160"):
        show(State(stack="u2.u2"))
    with pytest.raises(ValueError, match="unit must be below 40,40"):
        show(State(stack="c3", unit="40,0"))
    for stack in ("c4", "c3..c3", ".".join(["c3"] * 9), "import"):
        with pytest.raises(ValidationError):
            State(stack=stack)


def test_the_same_in_python_counts_the_same(tmp_path):
    state = State(stack="c3.p2.c3d2.u2", unit="3,4")
    script = tmp_path / "shown.py"
    script.write_text(show(state)["python"])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "12 x 12" in done.stdout
    assert "(slice(0, 9, None), slice(0, 11, None))" in done.stdout
