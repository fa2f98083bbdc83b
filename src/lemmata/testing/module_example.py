"""The example that a system is marked with, read without eval: one call that makes a module and runs it."""

import ast
import functools
import importlib
import operator
import sys
from typing import Any, NamedTuple

import torch
from torch import nn

__all__ = []  # for the suite alone


class Example(NamedTuple):
    """A module's constructor with its arguments, and the inputs of one call."""

    build: functools.partial[nn.Module]
    inputs: tuple[Any, ...]


def example_of(system: type[nn.Module]) -> Example:
    """The example in the mark of a class.

    >>> from lemmata.recurrent import LSTM
    >>> LSTM.__lemmata_system__["example"]
    'LSTM(3, 5)(torch.randn(4, 7, 3))'
    >>> build, (x,) = example_of(LSTM)
    >>> build()(x)[0].shape
    torch.Size([4, 7, 5])
    """
    text = getattr(system, "__lemmata_system__", {}).get("example", "")
    if not text:
        raise ValueError(
            f"{system.__name__} has no example: give a module and inputs, or mark it @system(..., example='...')"
        )
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Call) or call.keywords:
        raise ValueError(f"the example of {system.__name__} must be a call such as Net(3)(x), got {text!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = call.func
        arguments = [_expression_value(part, system) for part in made.args]
        options = {word.arg or "": _expression_value(word.value, system) for word in made.keywords}
        inputs = tuple(_expression_value(part, system) for part in call.args)
    return Example(functools.partial(_expression_value(made.func, system), *arguments, **options), inputs)


def _expression_value(node: ast.expr, system: type) -> Any:
    """What an expression of names, attributes, calls, sums and literals stands for."""
    if isinstance(node, ast.Call):
        options = {word.arg or "": _expression_value(word.value, system) for word in node.keywords}
        return _expression_value(node.func, system)(*(_expression_value(part, system) for part in node.args), **options)
    if isinstance(node, ast.Attribute):
        return getattr(_expression_value(node.value, system), node.attr)
    if isinstance(node, ast.Name):
        return _named_object(node.id, system)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return operator.add(_expression_value(node.left, system), _expression_value(node.right, system))
    if isinstance(node, ast.List | ast.Tuple):
        return (list if isinstance(node, ast.List) else tuple)(_expression_value(part, system) for part in node.elts)
    return ast.literal_eval(node)


def _named_object(name: str, system: type) -> Any:
    """A name of the file that holds the system, or else of its chapter."""
    found = {"torch": torch, "nn": nn, **vars(sys.modules[system.__module__])}
    if name in found:
        return found[name]
    return getattr(importlib.import_module(system.__module__.rpartition(".")[0]), name)
