"""The docstring of a system taken apart: sentence, formulas, prose, shapes, sources, example. Nothing is imported."""

import ast
import functools
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path

from lemmata.catalog import SystemEntry

__all__ = ["Description", "describe"]

LABELS = re.compile(r"(?:^|(?<=\.  ))(Claims|Source|Differs|Learnt):", re.M)


@dataclass
class Description:
    """What a system says of itself, part by part, and its source."""

    sentence: str = ""
    formulas: list[str] = field(default_factory=list)
    body: list[tuple[str, list[str] | list[list[str]]]] = field(default_factory=list)  # ("prose" or "table", its rows)
    shapes: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)  # Source, Differs, Learnt
    example: str = ""
    source: str = ""
    last: int = 0


def describe(entry: SystemEntry) -> Description:
    """The parts of a system's docstring and its source, as they stand on the disk now."""
    return _describe_system(entry.path, entry.name, entry.path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _describe_system(path: Path, name: str, stamp: int) -> Description:
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            found = _docstring_parts(ast.get_docstring(node) or "")
            first = min(mark.lineno for mark in [*node.decorator_list, node])
            found.last = node.end_lineno or first
            found.source = "\n".join(text.splitlines()[first - 1 : found.last])
            return found
    return Description()


def _docstring_parts(docstring: str) -> Description:
    found = Description()
    for number, part in enumerate(re.split(r"\n\s*\n", inspect.cleandoc(docstring))):
        if part.startswith(">>>") or found.example:
            found.example += f"\n\n{part}" if found.example else part
        elif part.startswith("$$"):
            found.formulas += [" ".join(latex.split()) for latex in re.findall(r"\$\$(.+?)\$\$", part, re.S)]
        elif part.startswith("Shapes:"):
            lines = part.removeprefix("Shapes:").splitlines()
            found.shapes = [shape.strip() for line in lines for shape in re.split(r"\s{4,}", line) if shape.strip()]
        elif LABELS.match(part):
            said = re.split(LABELS, part)
            found.notes |= {label: " ".join(text.split()) for label, text in zip(said[1::2], said[2::2], strict=True)}
        elif part.startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
            found.body.append(("table", [row for row in rows if set("".join(row)) != {"-"}]))
        elif number:
            found.body.append(("prose", [" ".join(part.split())]))
        else:
            found.sentence = " ".join(part.split())
    return found
