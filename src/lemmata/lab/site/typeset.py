r"""Every formula of the course set once, by Temml under Node, into the table that the pages read.

What Temml writes is brought into the form that the page takes: inline styles become classes, since the page's policy
forbids inline styles, and the parts between relations become rows, since no browser breaks a formula by itself.
"""

import ast
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from lemmata.catalog import Catalog
from lemmata.catalog.dials import without_dials
from lemmata.lab.site.formulas import pieces, with_classes

__all__ = ["formulas_of", "typeset"]

HERE = Path(__file__).parent
TEMPLATED = re.compile(r"{%-?\s*filter formula(?:\(.*?\))?\s*-?%}(.*?){%-?\s*endfilter\s*-?%}", re.S)
SCRIPTED = ("msub", "msup", "msubsup", "munder", "mover", "munderover")
BIG = "∑∏∫∬∮⋃⋂⨁⨂⋁⋀"
BREAKABLE = re.compile(r"[=<>≤≥≈≡≐∼∝≪≫⇒⇔⇐→↦∈⊆⊂≠≻≺⪰⪯+−±∧∨∪∩,;:]|:=|=:")


def formulas_of(catalog: Catalog) -> list[str]:
    """The LaTeX of every formula that a page may show: of statements, misprints, checks, systems and templates."""
    found = {
        latex.strip() for text in _formula_texts(catalog) for _, latex, _ in pieces(" ".join(text.split())) if latex
    }
    for template in (HERE / "templates").rglob("*.html"):
        found |= {latex.strip() for latex in TEMPLATED.findall(template.read_text(encoding="utf-8"))}
    return sorted(found)


def typeset(formulas: list[str], node: str, temml: Path) -> tuple[dict[str, dict[str, str]], str]:
    """The table for the pages with a stylesheet for its classes; "failed" tells what Temml refused and why."""
    done = subprocess.run(
        [node, str(HERE / "render_formulas.js"), str(temml)],
        input=json.dumps({latex: with_classes(latex) for latex in formulas}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(next((line for line in done.stderr.splitlines() if "Error" in line), "Node failed"))
    table, rules = json.loads(done.stdout), {}
    for style in ("inline", "block"):
        table[style] = {latex: tidy(markup, rules, latex) for latex, markup in table[style].items()}
    css = "".join(f"math .{name} {{ {declared} }}\n" for name, declared in sorted(rules.items()))
    return table, "/* Made with the formulas: the styles of Temml's output as classes. */\n" + css


def tidy(markup: str, rules: dict[str, str], latex: str = "") -> str:
    """MathML as the page takes it: no inline style (its rule is added to `rules`), rows where a line may break.

    A dial of the LaTeX becomes a row of its own, and the LaTeX that is copied has none.
    """
    math = ElementTree.fromstring(markup)
    math.attrib.pop("style", None)  # the stylesheet knows how a formula on its own line stands
    if latex != (plain := without_dials(latex)):
        _set_dials(math)
        for annotation in math.iter("annotation"):
            annotation.text = plain
    for element in math.iter():
        if declared := element.attrib.pop("style", ""):
            name = "m" + hashlib.sha256(declared.encode()).hexdigest()[:6]
            rules[name] = declared
            element.set("class", f"{element.get('class', '')} {name}".strip())
    _space_operators(math)
    row = math.find("semantics/mrow")
    if row is not None and len(lines := list(_row_lines(row))) > 1:
        row[:] = lines
        math.set("class", f"{math.get('class', '')} lines".strip())
    return ElementTree.tostring(math, encoding="unicode")


def _set_dials(math: Element) -> None:
    """Each dial as a row with its name and style as data, whatever element Temml gave the class to."""
    for parent in list(math.iter()):
        for k, child in enumerate(parent):
            names = child.get("class", "").split()
            if "dial" not in names:
                continue
            first = names.index("dial")
            _, name, style = names[first : first + 3]
            child.attrib.pop("class")
            if rest := names[:first] + names[first + 3 :]:
                child.set("class", " ".join(rest))
            if child.tag == "mo" and k and _core_operator(parent[k - 1]) is None:  # Temml sets a lone sign as a prefix
                child.attrib = {"form": "infix"}
            row = Element("mrow", {"class": "dial", "data-dial": name, "data-as": style})
            row.append(child)
            parent[k] = row


def _space_operators(math: Element) -> None:
    """TeX's spacing where MathML's differs: tight scripts, nothing before a first relation, primes of full size."""
    for element in list(math.iter()):
        if element.tag in SCRIPTED:
            for mo in (mo for script in element[1:] for mo in script.iter("mo")):
                _tighten_operator(mo, "lspace", "rspace")
        if element.tag == "msup" and "tml-prime" in element[1].get("class", ""):
            element.tag, element[1].attrib = "mrow", {"lspace": "0", "rspace": "0"}
        if element.tag in ("mtd", "msqrt", "math") or (element.tag == "mrow" and len(element) > 1):
            _space_row(element)


def _space_row(row: Element) -> None:
    cores = [_core_operator(child) for child in row]
    for k, core in enumerate(cores):
        if core is None or (k and cores[k - 1] is None):
            continue  # no operator, or one after a letter, which keeps its space
        if (core.text or "") in BIG or (k == 0 and core.get("form") != "prefix"):
            _tighten_operator(core, "lspace")


def _core_operator(element: Element) -> Element | None:
    """The operator that an element is, or carries with limits."""
    while (element.tag in SCRIPTED and len(element)) or (element.tag == "mrow" and len(element) == 1):
        element = element[0]
    return element if element.tag == "mo" else None


def _tighten_operator(mo: Element, *sides: str) -> None:
    for side in sides:
        mo.attrib.setdefault(side, "0")


def _row_lines(row: Element) -> Iterator[Element]:
    """The row in parts, each up to a relation or a binary sign: TeX's own places for a break."""
    part: list[Element] = []
    for child in row:
        part.append(child)
        sign = child.tag == "mo" and BREAKABLE.fullmatch(child.text or "")
        prefix = child.get("form") == "prefix" or child.get("fence") == "true"
        # Words and blanks with a sign would count as one sign, and lose the space between them.
        if sign and not prefix and any(other.tag not in ("mtext", "mspace") for other in part[:-1]):
            yield _make_row(part)
            part = []
    if part:
        yield _make_row(part)


def _make_row(children: list[Element]) -> Element:
    row = Element("mrow")
    row.extend(children)
    return row


def _formula_texts(catalog: Catalog) -> Iterator[str]:
    for statement in catalog.statements.values():
        yield from (statement.title, statement.statement, statement.dialled, statement.why)
        yield from (source["where"] for source in statement.sources)
        yield from (label for argument in statement.arguments for _, label in argument.values)
        yield from (argument.words for argument in statement.arguments)
        for erratum in statement.errata:
            yield from (erratum.printed, erratum.problem, erratum.correct, erratum.reason)
    for claim in catalog.claims.values():
        yield from (claim.sentence, *(lie.text for lie in claim.lies))
    for path in {entry.path for entry in catalog.systems.values()}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""
