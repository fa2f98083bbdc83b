"""Claims are theorems: one statement each, in few lines and few judges, and nothing that hides it."""

import ast
import re
from pathlib import Path

import lemmata.judge
from cases import for_each
from lemmata.catalog import load

CLAIMS = load().claims
FILES = sorted({claim.path for claim in CLAIMS.values()})
JUDGES = set(
    "always at_least at_most close count_is everywhere exactly law_is mean_is probability_is reaches same_everywhere "
    "slope_is symbolic".split()
)
MOST, LINES = 8, 45


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def called(function: ast.FunctionDef) -> list[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return [call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls]


def judges(name: str, known: dict[str, ast.FunctionDef], above: tuple[str, ...] = ()) -> int:
    """The judges that a function calls, itself or through functions of its file."""
    names = called(known[name])
    inner = [n for n in names if n in known and n not in (*above, name)]
    return sum(n in JUDGES for n in names) + sum(judges(n, known, (*above, name)) for n in inner)


def test_the_judges_are_all_that_there_are():
    assert set(dir(lemmata.judge)) >= JUDGES


@for_each("path", FILES)
def test_a_claim_is_one_statement(path):
    known = functions(path)
    own = {claim.id: claim.function for claim in CLAIMS.values() if claim.path == path}
    counted = {id: judges(name, known) for id, name in own.items()}
    assert not {id: n for id, n in counted.items() if n > MOST}
    lines = {id: (known[name].end_lineno or 0) - known[name].lineno for id, name in own.items()}
    assert not {id: n for id, n in lines.items() if n > LINES}


@for_each("path", FILES)
def test_a_claim_trains_with_what_everybody_uses(path):
    text = path.read_text()
    assert "torch._dynamo" not in text  # the worker's concern
    assert not re.search(r"beta_?[12]\b.*\n.*beta_?[12]\b", text)  # an Adam by hand


def test_no_code_explains_itself_to_the_mutation_test():
    sources = Path(lemmata.__file__).parent.rglob("*.py")
    assert not [str(path) for path in sources if re.search(r"#\s*mutant:", path.read_text(encoding="utf-8"))]
