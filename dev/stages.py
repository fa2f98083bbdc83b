"""Stages of a run: a title, a command, and its price in CPU seconds and on the clock."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

import installation
from installation import BIN, Failed, say

PYTHON = BIN / "python"

prices: list[tuple[str, float, float]] = []  # title, CPU seconds, seconds


def stage(title: str, *command: object, fix: str = "", variables: Mapping[str, str] | None = None) -> None:
    """Run a command under a title; Failed if it fails."""
    say("\n== " + title)
    with priced(title):
        code = installation.call(*command, variables=variables)
    if code:
        raise Failed(f"{title} failed (exit {code}){': ' + fix if fix else ''}", code)


@contextlib.contextmanager
def beside(title: str, *command: object) -> Iterator[None]:
    """Run a command beside what the block does; its words and its failure come after the block."""
    with tempfile.TemporaryFile("w+", errors="replace") as words:
        child = installation.spawn(command, stdout=words, stderr=subprocess.STDOUT)
        try:
            yield
            say(f"\n== {title}, begun beside the last one")
            with priced(title):
                code = child.wait()
        finally:
            child.kill()
            child.wait()
        words.seek(0)
        sys.stdout.write(words.read())
    if code:
        raise Failed(f"{title} failed (exit {code})", code)


@contextlib.contextmanager
def priced(title: str) -> Iterator[None]:
    """Note what the children that end in the block cost, and say it."""
    began, before = time.monotonic(), os.times()
    yield
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    prices.append((title, cpu, time.monotonic() - began))
    say(f"   {cpu:.0f} CPU seconds in {prices[-1][2]:.0f} s")


def answer(*command: object, variables: Mapping[str, str] | None = None) -> Any:
    """What a command prints as JSON; its other words go where ours go."""
    child = installation.spawn(command, variables, stdout=subprocess.PIPE, text=True)
    text, _ = child.communicate()
    try:
        return json.loads(text)
    except ValueError:
        raise Failed(f"{' '.join(map(str, command))} answered no JSON (exit {child.returncode})") from None


def say_prices() -> None:
    """A table of all stages so far."""
    say("\n   CPU s       s  part")
    total = "together", sum(cpu for _, cpu, _ in prices), sum(seconds for *_, seconds in prices)
    for title, cpu, seconds in [*prices, total]:
        say(f"{cpu:8.0f}{seconds:8.0f}  {title}")
