"""The loop over calls, and what is said of each."""

import collections
import copy
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.fast.fuzz import answers
from tests.fast.fuzz.breaking import broken
from tests.fast.fuzz.edges_and_sequences import ALL
from tests.fast.fuzz.targets import Target


def run(number: int, seed: int, first: int, only: str, note: Path, address: bool) -> int:
    """The calls; each is noted before it is made. Returns 1 if an answer was wrong."""
    warnings.simplefilter("ignore")
    names = [name for name in ALL if name == only or not only]
    counts: collections.Counter[str] = collections.Counter()
    problems = 0
    for index in range(first, first + number):
        name = random.Random(f"{seed} {index}").choice(names)
        draw = random.Random(f"{seed} {index} {name}")
        torch.manual_seed(draw.randrange(2**31))
        note.write_text(f"call {index} of seed {seed}, {name}")
        verdict = _judged(ALL[name], draw)
        counts[verdict.split(":")[0]] += 1
        if verdict.startswith("wrong"):
            problems += 1
            print(f"call {index} of seed {seed}, {name}: {verdict}")
            if problems == 20:
                break
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"{sum(counts.values())} calls of {len(names)} names{' with AddressSanitizer' if address else ''}: {told}")
    return int(problems > 0)


def _judged(target: Target, draw: random.Random) -> str:
    given = target.given(draw)
    changed = []
    how_many = draw.choices((0, 1, 2), (1, 8, 2))[0]
    try:
        for name in draw.sample(list(given), min(how_many, len(given))):
            given[name] = broken(given[name], draw)
            changed.append(f"{name}={_told(given[name])}")
    except (ValueError, TypeError) as error:  # weights are checked when they are put together
        return _refused(error)
    except (RuntimeError, IndexError, OverflowError):
        return "not made"  # torch has no such tensor
    expected, unclear = None, False
    if target.answer:
        try:
            expected = target.answer(**_copied(given))
        except answers.Anything:
            target = target._replace(answer=None)
        except Exception:
            unclear = True
    try:
        found = target.seen(target.call(**given), given)
    except (ValueError, TypeError) as error:
        return _refused(error)
    except Exception as error:
        return f"wrong: {type(error).__name__}: {' '.join(str(error).split())[:200]} to {', '.join(changed)}"
    if unclear:
        return "answered on meta" if _on_meta(found) else f"wrong: it answered {_told(found)} to {', '.join(changed)}"
    if target.answer is None or answers.same(found, expected):
        return "answered"
    return f"wrong: it answered {_told(found)}, not {_told(expected)}, to {', '.join(changed)}"


def _told(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.layout} {value.device}"
    return " ".join(str(value).split())[:300]


def _refused(error: Exception) -> str:
    said = str(error)
    # What torch, numpy and Python say of their own accord names neither argument nor fix.
    return "refused" if "must" in said and "\n" not in said and len(said) < 300 else f"wrong: refused by {said[:200]!r}"


def _copied(given: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.clone()
        if isinstance(value, torch.Tensor)
        else copy.copy(value)
        if isinstance(value, np.ndarray)
        else value
        for name, value in given.items()
    }


def _on_meta(found: Any) -> bool:
    if isinstance(found, tuple | list):
        return any(map(_on_meta, found))
    return isinstance(found, torch.Tensor) and found.device.type == "meta"
