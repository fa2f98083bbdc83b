"""One word for one thing: neither names nor sentences have a word that the glossary says we do not use."""

import ast
import re
from pathlib import Path

import pytest

from lemmata.catalog import CHAPTERS

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
FOLDERS = (*CHAPTERS, "audit", "certified", "data", "fast", "measure", "train", "testing")
LINE = re.compile(r"\|([^|]+)\|([^|]*)\|([^|]+)\|([^|]*)\|")


def halves():
    """What the glossary says of parameters, and of the words of names and sentences."""
    before, rest = GLOSSARY.read_text().split("## Words of names and sentences")
    words, after = rest.split("\n## ", 1)
    return before + after, words


def rows():
    """(word, parameters, names that are avoided) of every row."""
    found = [LINE.fullmatch(line).groups() for line in halves()[0].splitlines() if line.startswith("| ")]
    named = [(word.strip(), *(re.findall(r"`([\w.]+)`", cell) for cell in cells)) for word, _, *cells in found]
    return [row for row in named if row[0] != "word"]


def files():
    folders = [ROOT / "src" / "lemmata" / name for name in FOLDERS]
    return [path for folder in folders for path in sorted(folder.rglob("*.py")) if "claims" not in path.parts]


def parameters(path):
    """(who, parameter) for every function, method and field that a file makes public."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    marks = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    public = set(ast.literal_eval(marks[0])) if marks else set()
    for node in tree.body:
        if getattr(node, "name", None) not in public:
            continue
        yield from signature(node.name, node)
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(part, ast.AnnAssign):
                yield node.name, part.target.id
            elif getattr(part, "name", "_") == "__init__" or not getattr(part, "name", "_").startswith("_"):
                yield from signature(node.name, part)


def signature(who, node):
    if isinstance(node, ast.FunctionDef):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        yield from ((who, argument.arg) for argument in given if argument.arg not in ("self", "cls"))


def avoided(found, unwanted):
    return [f"{who}({name})" for who, name in found if name in unwanted or f"{who}.{name}" in unwanted]


def test_no_public_signature_uses_a_name_that_the_glossary_avoids():
    unwanted = {name for _, _, names in rows() for name in names}
    found = {path: avoided(parameters(path), unwanted) for path in files()}
    assert {path.name: names for path, names in found.items() if names} == {}


def test_the_glossary_names_what_is_in_use():
    used = {name for path in files() for _, name in parameters(path)}
    wanted = {name for _, names, _ in rows() for name in names}
    attributes = {"readout", "layers", "gates", "nll", "time"}  # of objects and axes, not of signatures
    assert wanted - used <= attributes
    assert len(used) > 200


def test_no_name_is_both_wanted_and_avoided():
    assert len(rows()) > 40
    assert not {name for _, names, _ in rows() for name in names} & {name for _, _, names in rows() for name in names}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("__all__ = ['f']\ndef f(x, *, rate=1): ...\ndef _g(share): ...", ["x", "rate"]),
        (
            "__all__ = ['C']\nclass C:\n    share: int\n    def __init__(self, n): ...\n    def _h(self, rate): ...",
            ["share", "n"],
        ),
        ("def f(rate): ...", []),
    ],
)
def test_only_public_signatures_count(tmp_path, source, names):
    path = tmp_path / "file.py"
    path.write_text(source)
    assert [name for _, name in parameters(path)] == names
    assert avoided(parameters(path), {"C.share", "rate"}) == [
        f"{'fC'['C' in source]}({name})" for name in names if name in ("share", "rate")
    ]


PACKAGE = [path for path in sorted((ROOT / "src" / "lemmata").rglob("*.py")) if "claims" not in path.parts]
# Named so by the field (companding, coupled weight decay) or in statements; a deprecated name; laws of equivariance.
KEPT = set("mu_law mu_law_inverse law_is gcn_coupling demand_law _may_be_coupled coupled lipschitz_deviation".split())


def names(tree):
    """Classes, functions and what functions take."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (given.arg for given in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))


def sentences(tree):
    """Docstrings, and the strings that stand below a field and are its help."""
    statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [value.value for value in statements if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def wrong_words(path, unwanted):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {name for name in (path.stem, *names(tree)) if name not in KEPT}
    parts = {name: set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")) for name in found}
    wrong = sorted(name for name, words in parts.items() if words & unwanted)
    said = " ".join(" ".join(sentences(tree)).lower().split())
    return wrong + sorted(words for words in unwanted if " " in words and re.search(rf"\b{words}\b", said))


def test_names_and_sentences_use_the_words_of_the_glossary():
    unwanted = set(re.findall(r"`([a-z ]+)`", halves()[1]))
    assert {"law", "whole number"} <= unwanted
    found = {str(path.relative_to(ROOT)): wrong_words(path, unwanted) for path in PACKAGE}
    assert {path: words for path, words in found.items() if words} == {}


def test_words_are_found_in_names_and_sentences(tmp_path):
    path = tmp_path / "weight_law.py"
    path.write_text('class FiniteLaw:\n    n: int\n    """A whole\n    number."""\n\n    def _f(self, law_of): ...\n')
    assert wrong_words(path, {"law", "whole number"}) == ["FiniteLaw", "law_of", "weight_law", "whole number"]
    path.write_text('def outlaw(lawful):\n    """The law of large numbers."""\n')
    assert wrong_words(path.rename(tmp_path / "named.py"), {"law", "whole number"}) == []
