"""The job "recipe": what can be chosen for a training, as fields of a form; and what the chosen values come to.

Everything is read from the recipe's own dataclasses: names, defaults and the sentences below their fields as they stand
there, bounds by trying which values the dataclass itself refuses. Values travel as text, as on the command line.
"""

import ast
import dataclasses
import inspect
import json
import math
import re
import shlex
import textwrap
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from lemmata import catalog
from lemmata.catalog import RecipeEntry
from lemmata.lab.recipe_choice import choose, defaults
from lemmata.train.experiment import Experiment
from lemmata.train.recipe import Recipe

EMPTY = ("", "None")


def perform(parameters: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The form of `system` on `data`, filled with the values `chosen`; "problem" says what is wrong with them."""
    entry, data = choose(catalog.load(), parameters["system"], parameters["data"])
    usual = defaults(entry, {})
    forms = [form(each) for each in usual]
    found: dict[str, Any] = {"config": forms[0], "options": forms[1], "sentence": Recipe.at(entry).sentence}
    found |= {"problem": "", "command": "", "python": ""}
    try:
        config, options = settings(usual, parameters["chosen"])
        experiment = Recipe.at(entry)(data, config, options)
    except (ValueError, TypeError) as error:
        return found | {"problem": " ".join(str(error).split())[:300]}
    found["command"] = shlex.join(["lemmata", "train", entry.system, "--data", data, *words(usual, (config, options))])
    return found | {"python": _python_text(entry, data, usual, (config, options)), **_experiment_size(experiment)}


# --- Fields ---


def form(chosen: Any) -> list[dict[str, Any]]:
    """One field for each choice of a frozen dataclass that a form can hold."""
    hints, told, fields = typing.get_type_hints(type(chosen)), _field_sentences(type(chosen)), []
    for field in dataclasses.fields(chosen):
        value = getattr(chosen, field.name)
        about = {"name": field.name, "help": told.get(field.name, ""), "usual": text(value), "empty": False}
        kind = hints[field.name]
        if typing.get_origin(kind) in (types.UnionType, typing.Union) and type(None) in typing.get_args(kind):
            about["empty"] = True
            (kind,) = (arm for arm in typing.get_args(kind) if arm is not type(None))
        about |= _field_kind(chosen, field.name, kind, about["help"])
        if about["kind"]:
            fields.append(about)
    return fields


def _field_kind(chosen: Any, name: str, kind: Any, help: str) -> dict[str, Any]:
    def accepts(value: Any) -> bool:
        try:
            dataclasses.replace(chosen, **{name: value})
        except (ValueError, TypeError):
            return False
        return True

    if typing.get_origin(kind) is typing.Literal:
        return {"kind": "choice", "choices": list(typing.get_args(kind))}
    if name == "device":
        return {"kind": "choice", "choices": _device_names()}
    if kind is bool:
        return {"kind": "switch"}
    if kind is int:
        return {"kind": "whole", "least": next((n for n in range(3) if accepts(n) and not accepts(n - 1)), None)}
    if kind is float:
        most = next((n for n in (0.5, 1.0) if accepts(n - 1e-6) and not accepts(n + 1e-6)), None)
        return {"kind": "real", "least": None if accepts(-1e-6) else 0, "most": most}
    if kind == tuple[int, ...]:
        return {"kind": "wholes"}
    if kind is str:  # "Activation: relu or tanh." lists what there is, if the dataclass agrees and takes nothing else
        listed = re.findall(r"\w+", re.sub(r"\bor\b", "", help.rpartition(":")[2]))
        agreed = listed and all(map(accepts, listed)) and not accepts("nonsense")
        return {"kind": "choice", "choices": listed} if agreed else {"kind": "text"}
    return {"kind": ""}


def _device_names() -> list[str]:
    gpus = [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    return ["auto", "cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]


def _field_sentences(kind: type) -> dict[str, str]:
    """The string below each field, which Python itself forgets."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__[:-1]):
        with suppress(OSError, TypeError):
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
            for field, below in zip(node.body, node.body[1:], strict=False):  # type: ignore[attr-defined]
                if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                    found[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(below.value)).split())
    return found


# --- Values ---


def settings(usual: tuple[Any, Any], chosen: dict[str, str]) -> tuple[Any, Any]:
    """Config and options with the chosen values in place; ValueError for a name or a value they do not take."""
    known = {field["name"]: field for each in usual for field in form(each)}
    for name in chosen:
        if name not in known:
            raise ValueError(f"there is nothing called {name!r} to choose here")
    values = {name: read(known[name], said) for name, said in chosen.items()}
    config, options = (
        dataclasses.replace(each, **{f.name: values[f.name] for f in dataclasses.fields(each) if f.name in values})
        for each in usual
    )
    return config, options


def read(field: dict[str, Any], said: str) -> Any:
    """The value that a text stands for."""
    kind, name = field["kind"], field["name"]
    if field["empty"] and said.strip() in EMPTY:
        return None
    try:
        if kind == "whole":
            return int(said)
        if kind == "wholes":
            return tuple(int(word) for word in re.split(r"[\s,]+", said.strip()) if word)
        if kind == "real" and math.isfinite(float(said)):
            return float(said)
    except ValueError:
        pass
    if kind == "switch" and said in ("true", "false"):
        return said == "true"
    if kind == "text" or (kind == "choice" and said in field["choices"]):
        return said
    wanted = {"choice": f"one of {', '.join(field.get('choices', ()))}", "switch": "true or false", "real": "a number"}
    raise ValueError(f"{name} must be {wanted.get(kind, 'integers' if kind == 'wholes' else 'an integer')}")


def text(value: Any) -> str:
    """A value as a form shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


# --- The same elsewhere ---


def words(usual: tuple[Any, Any], chosen: tuple[Any, Any]) -> list[str]:
    """The options to type for values that differ from the recipe's own."""
    found: list[str] = []
    for before, now in zip(usual, chosen, strict=True):
        for field in dataclasses.fields(now):
            value, flag = getattr(now, field.name), field.name.replace("_", "-")
            if value == getattr(before, field.name):
                continue
            if isinstance(value, bool):
                found.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                found += [f"--{flag}", *("None" if value is None else text(value)).split()]
    return found


def _python_text(entry: RecipeEntry, data: str, usual: tuple[Any, Any], chosen: tuple[Any, Any]) -> str:
    made = [(name, now) for name, was, now in zip(("config", "options"), usual, chosen, strict=True) if was != now]
    imports = {entry.module: {entry.name}, "lemmata.train": {"run_experiment"}}
    for _, now in made:
        module = "lemmata.train" if type(now).__module__.startswith("lemmata.train.") else type(now).__module__
        imports.setdefault(module, set()).add(type(now).__name__)
    lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(imports.items())]
    arguments = [json.dumps(data), *(f"{name}={_call_text(now)}" for name, now in made)]
    if Recipe.at(entry).names_its_system:
        arguments.append(f"system={json.dumps(entry.system)}")
    inside = "\n    ".join(f"{argument}," for argument in arguments)
    called = f"{entry.name}({arguments[0]})" if len(arguments) == 1 else f"{entry.name}(\n    {inside}\n)"
    return "\n".join([*lines, "", f"experiment = {called}", f'run = run_experiment(experiment, out="runs/my-{data}")'])


def _call_text(value: Any) -> str:
    given = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
    told = [f"{f.name}={json.dumps(v) if isinstance(v, str) else repr(v)}" for f, v in given if v != f.default]
    return f"{type(value).__name__}({', '.join(told)})"


def _experiment_size(experiment: Experiment) -> dict[str, Any]:
    """How much there is to learn: parameters, or the numbers that a system without any keeps."""
    system = experiment.system
    parameters = sum(each.numel() for each in system.parameters()) if hasattr(system, "parameters") else 0
    kept = sum(each.numel() for each in system.state_dict().values() if torch.is_tensor(each))
    counts = {"train": len(experiment.train), "test": len(experiment.test)}
    gradient = experiment.learner is None  # else the options about gradients say nothing
    return {"parameters": parameters, "stored": kept, "examples": counts, "gradient": gradient}
