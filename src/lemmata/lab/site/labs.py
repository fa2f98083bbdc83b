"""What a lab is: a file work/NAME_lab.py, a template lab_NAME.html and its script; found by listing, nothing imported.

The file may stand in a room of `work`, as work/robustness/NAME_lab.py. docs/labs.md says how to add one.
"""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lemmata.lab.site import work

__all__ = ["Lab", "LabState", "labs", "read_state"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Lab:
    """One lab, as its file describes it."""

    name: str
    title: str
    sentence: str
    year: int
    chapter: str
    claims: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    command: str = "lemmata serve"
    thumbnail: Mapping[str, str] = field(default_factory=dict)
    """The state whose picture stands in the list of labs; how it begins, if nothing is said."""
    seconds: float = 20.0
    """How long an answer may take; longer where whoever comes first waits for a small training."""


def labs() -> dict[str, Lab]:
    """Every lab by name, in the order in which history came to them."""
    paths = [path for folder in work.__path__ for path in sorted(Path(folder).rglob("*_lab.py"))]
    found = [_read_lab(path, path.stat().st_mtime_ns) for path in paths]
    return {
        lab.name: lab for lab in sorted(found, key=lambda lab: (lab.year, lab.name)) if _lab_template(lab).is_file()
    }


@functools.lru_cache(128)
def _read_lab(path: Path, stamp: int) -> Lab:
    for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["LAB"]:
            return Lab(path.stem.removesuffix("_lab"), **ast.literal_eval(node.value))
    raise ValueError(f"{path.name} must have a literal LAB = {{...}}")


def _lab_template(lab: Lab) -> Path:
    return HERE / "templates" / f"lab_{lab.name}.html"


class LabState(BaseModel):
    """What the address of a lab says: nothing unknown, nothing out of bounds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


State = TypeVar("State", bound=LabState)


def read_state(model: type[State], given: Mapping[str, str]) -> State:
    """The state that the texts of an address stand for; ValueError, in a line that does not repeat them.

    >>> class Noisy(LabState):
    ...     noise: int = 10
    >>> read_state(Noisy, {"noise": "25"}).noise
    25
    >>> read_state(Noisy, {"noise": "much"})
    Traceback (most recent call last):
    ValueError: noise: Input should be a valid integer, unable to parse string as an integer
    """
    try:
        return model.model_validate_strings(dict(given), strict=True)
    except ValidationError as error:
        (first, *_) = error.errors(include_input=False, include_url=False, include_context=False)
        name = str(first["loc"][0]) if first["loc"] else ""
        if name not in model.model_fields:
            raise ValueError("the address holds a name that this lab does not know") from None
        ill = first["type"] == "string_pattern_mismatch"
        raise ValueError(f"{name}: {'not written as this lab writes it' if ill else first['msg']}") from None
