"""Arguments of a command from its dataclass, by tyro, with its error boxes turned into one line."""

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from typing import Any

import tyro

from lemmata.lab.words import UserError


def parse(kind: type, command: str, words: Sequence[str]) -> Any:
    """The command's Arguments; --help prints and exits, anything wrong is a UserError."""
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(kind, prog=f"lemmata {command}", args=words, config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit as stop:
        if not stop.code:
            sys.exit(0)
    raise UserError(f"{_one_line(box.getvalue())}; see lemmata {command} --help")


def _one_line(box: str) -> str:
    """What a tyro box says between its title and its next rule, with the option it suggests."""
    parts: list[list[str]] = [[]]
    for line in box.splitlines()[1:]:
        text = line.strip("│ ")
        if set(text) <= set("─-╰╯"):
            parts.append([])
        else:
            parts[-1].append(text)
    said = " ".join(next(part for part in parts if part)).split(" Got errors:")[0].rstrip(". ")
    value = re.fullmatch(r"Error parsing (--[\w-]+): .* instantiated from \[(.*)\]", said)
    plain = r"Error parsing (--[\w-]+): (?:invalid literal for \w+\(\) .*|could not convert string to float): (.*)"
    if value or (value := re.fullmatch(plain, said)):
        said = f"{value.group(1)} takes a number, got {value.group(2)}"
    elif value := re.fullmatch(r"Error parsing (--[\w-]+): Could not find valid parse for arguments: \[(.*)\]", said):
        said = f"{value.group(1)} takes numbers, got {value.group(2)}"
    elif value := re.fullmatch(r"Error parsing \w+: (.*)", said):  # what a dataclass itself refused
        said = value.group(1).rstrip("?.")
    meant = re.search(r"Perhaps you meant:\W*?(--[\w-]+)", box)
    return f"{said[:1].lower()}{said[1:]}" + (f" (did you mean {meant.group(1)}?)" if meant else "")
