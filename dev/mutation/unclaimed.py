"""What of a source file no mutant changes: guards against bad input, their messages, appearance, what is saved.

None of it is arithmetic, and it has tests of its own. A guard is recognised by what it does: it looks at the input and
raises, or does nothing.
"""

import ast
from collections.abc import Iterator, Sequence

__all__ = []  # for `mutants` alone

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

# How an object is shown and how it is saved.
UNCLAIMED = frozenset(
    "__repr__ __str__ __format__ extra_repr __getstate__ __setstate__ __reduce__ state_dict load_state_dict "
    "_load_from_state_dict _save_to_state_dict get_extra_state set_extra_state".split()
)


def left_alone(tree: ast.Module, checks: "Checks") -> set[ast.AST]:
    """Everything that serves to refuse bad input: guards, their calls and messages, and what only those use."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTION)]
    alone = {node for node in ast.walk(tree) if checks.leaves_alone(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and checks.calls(node):  # its second argument may be computed
            alone |= {*node.args[:1], *node.args[2:], *node.keywords}
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):  # what else there is may be real work
            alone |= {node.test, *node.body}
    while True:
        dead = {node for root in alone for node in ast.walk(root)}
        more = {node for function in functions for node in _used_only_in(function, dead)}
        more |= {f for f in functions if f.name.startswith("_") and _all_in(_mentions(tree, f), dead)}
        if more <= alone:
            return dead
        alone |= more


class Checks:
    """Knows a check of the input when it sees one."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] == "validate":
                self.names |= {alias.asname or alias.name for alias in node.names}
        functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTION)]
        known = -1
        while known < len(self.names):
            known = len(self.names)
            self.names |= {function.name for function in functions if self.is_checker(function)}

    def calls(self, node: ast.AST | None) -> bool:
        """A call such as `validate.count("units", units)`, `positive("beta", beta)`, `self._check("x", x)`."""
        if not isinstance(node, ast.Call):
            return False
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id == "validate":
            return True
        return called(node) in self.names and (owner is None or getattr(owner, "id", "") in ("self", "cls"))

    def validates(self, node: ast.stmt) -> bool:
        """A statement that does nothing but look at the input and perhaps refuse it."""
        if isinstance(node, ast.Raise | ast.Assert):
            return True
        if isinstance(node, ast.Expr):
            return self.calls(node.value)
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            return not node.orelse or all(map(self.validates, node.orelse))
        if isinstance(node, ast.If | ast.For | ast.With):
            return all(map(self.validates, [*node.body, *getattr(node, "orelse", ())]))
        return False

    def is_checker(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """A function that raises or does nothing, and gives back at most what it was given."""
        spec = function.args
        own = {argument.arg for argument in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]}
        inside = [node for statement in function.body for node in ast.walk(statement)]
        refuses = any(isinstance(node, ast.Raise) or self.calls(node) for node in inside)
        return refuses and not any(self._does_something(node, own) for node in inside)

    def _does_something(self, node: ast.AST, own: set[str]) -> bool:
        if isinstance(node, ast.Return):
            value = node.value
            if isinstance(value, ast.Call) and self.calls(value) and len(value.args) > 1:
                value = value.args[1]
            return value is not None and getattr(value, "id", "") not in own
        if isinstance(node, ast.Expr):
            return not (is_text(node.value) or self.calls(node.value))
        if isinstance(node, ast.Name):
            return isinstance(node.ctx, ast.Store) and node.id in own
        stores = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        return stores or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Yield | ast.YieldFrom | ast.AugAssign)

    def leaves_alone(self, node: ast.AST) -> bool:
        if isinstance(node, FUNCTION):
            return node.name in UNCLAIMED or node.name in self.names
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return any(getattr(target, "id", "") == "__all__" for target in targets)
        if isinstance(node, ast.If):
            main = any(getattr(name, "id", "") in ("__name__", "TYPE_CHECKING") for name in ast.walk(node.test))
            return main or self.validates(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self.calls(node.value) or ast.unparse(node.value) == "super().__init__()"
        return isinstance(node, ast.For | ast.With) and self.validates(node)


def _used_only_in(function: ast.FunctionDef | ast.AsyncFunctionDef, dead: set[ast.AST]) -> Iterator[ast.stmt]:
    """Assignments of a function whose names are read only where nothing is mutated: the words of its messages."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and node not in dead:
            names = [name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.expr)]
            plain = all(isinstance(name, ast.Name | ast.Tuple) for name in names)
            wanted = {name.id for name in names if isinstance(name, ast.Name)}
            loads = [
                n for n in ast.walk(function)
                if isinstance(n, ast.Name) and n.id in wanted and isinstance(n.ctx, ast.Load)
            ]  # fmt: skip
            if plain and _all_in(loads, dead):
                yield node


def _mentions(tree: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """Where a function is named, but for its own body."""
    own, name = set(ast.walk(function)), function.name
    found = [node for node in ast.walk(tree) if name in (getattr(node, "id", ""), getattr(node, "attr", ""))]
    return [node for node in found if node not in own]


def _all_in(nodes: Sequence[ast.AST], dead: set[ast.AST]) -> bool:
    return bool(nodes) and all(node in dead for node in nodes)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
