"""What the regions lab must get right: the exact counts, and a picture that tiles the square."""

import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="the page is not installed")

from lemmata.lab.site.work.regions_lab import State, show, still


@pytest.mark.parametrize(
    ("points", "count"),
    [
        ("0.5,0", 2),
        ("0.5,0;-0.5,0", 3),
        ("0.3,0.3;-0.3,0.3;0,-0.3", 7),
        ("0.5,0;0,0.5", 4),
        ("0,0", 1),  # a line without a direction cuts nothing
    ],
)
def test_lines_cut_the_square_into_as_many_regions(points, count):
    told = show(State(points=points))
    assert told["count"] == len(told["polygons"]) == count
    assert all(len(polygon["corners"]) >= 3 and 0 <= polygon["shade"] <= 1 for polygon in told["polygons"])


@pytest.mark.parametrize(("layers", "count"), [(1, 16), (2, 64), (3, 256)])
def test_a_network_that_folds_meets_the_bound(layers, count):
    told = show(State(kind="folding", layers=layers))
    assert told["count"] == count
    assert f"{count:,}" in told["words"]


@pytest.mark.parametrize("state", [State(), State(layers=3, seed=4), State(kind="folding", layers=2)])
def test_the_polygons_tile_the_square(state):
    def area(corners):
        pairs = zip(corners, [*corners[1:], corners[0]], strict=True)
        return sum(a * d - b * c for (a, b), (c, d) in pairs) / 2

    told = show(state)
    assert sum(area(polygon["corners"]) for polygon in told["polygons"]) == pytest.approx(4, abs=0.02)
    (bars,) = told["figures"]["growth"].marks
    assert bars.values[-1] == told["count"]
    assert bars.values == sorted(bars.values)
    assert f"{told['count']} regions" in still(state).title


def test_the_same_in_python_counts_the_same(tmp_path):
    for state in (State(), State(kind="folding", layers=2)):
        script = tmp_path / "shown.py"
        script.write_text(show(state)["python"])
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        assert int(done.stdout) == show(state)["count"]
