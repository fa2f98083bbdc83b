"""The job "lab": what a lab shows in the state of an address, its figures drawn here, where a processor is free for it.

A lab is a file NAME_lab.py beside this one or in a room below: docs/labs.md says how to write one.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lemmata.figure import Figure, Line
from lemmata.lab.site import work
from lemmata.lab.site.figures import draw, drawing
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.thumbnails import thumbnail


def lab_module(name: str) -> ModuleType:
    """The file of a lab, imported."""
    (found,) = [path.relative_to(folder) for folder in work.__path__ for path in Path(folder).rglob(f"{name}_lab.py")]
    return importlib.import_module(".".join((work.__name__, *found.with_suffix("").parts)))


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """What `lab` shows in `state`; a state that cannot be is a "problem". With `run`, what takes longer, as it goes.

    `still` adds the picture for readers without scripts, `thumbnail` asks for that alone and small; `brief` ("wide" or
    "narrow") leaves out of the figures what a hand that drags does not look at: tables and files.
    """
    lab = lab_module(parameters["lab"])
    brief = parameters.get("brief", "")
    try:
        state = read_state(lab.State, parameters["state"])
        if parameters.get("thumbnail"):
            return {"thumbnail": thumbnail(lab.still(state))}
        if parameters.get("run"):
            return drawn(lab.run(state, lambda event: tell(drawn(event, brief))))
        shown = drawn(lab.show(state), brief)
        return shown | ({"still": plain(lab.still(state))} if parameters.get("still") else {})
    except (ValueError, ArithmeticError) as error:
        if parameters.get("run"):
            raise
        return {"problem": str(error)}


def drawn(told: dict[str, Any], brief: str = "") -> dict[str, Any]:
    """The same with drawings for figures; whole ones come with the numbers of their curves, for the page's tooltips."""
    figures: dict[str, Figure] = told.get("figures", {})
    if not figures:
        return told
    if brief:
        return told | {"figures": {name: drawing(figure, brief) for name, figure in figures.items()}}
    curves = {name: _curve_data(figure) for name, figure in figures.items()}
    return told | {"figures": {name: str(draw(figure)) for name, figure in figures.items()}, "curves": curves}


def plain(figure: Figure) -> str:
    """The drawings alone: tables and files are for what stays on the page."""
    return f'<figure class="figure">{drawing(figure, "wide")}{drawing(figure, "narrow")}</figure>'


def _curve_data(figure: Figure) -> dict[str, Any]:
    lines = [{"label": m.label, "x": m.x, "y": m.y} for m in figure.marks if isinstance(m, Line)]
    return {"x": figure.x_label, "y": figure.y_label, "x_log": figure.x_log, "y_log": figure.y_log, "lines": lines}
