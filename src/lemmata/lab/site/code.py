"""The source of a check for reading: exactly its own lines, with keywords, strings and comments told apart."""

import ast
import functools
import io
import keyword
import tokenize
from pathlib import Path

from markupsafe import Markup, escape

from lemmata.catalog import ClaimEntry

__all__ = ["coloured", "source_of"]

KINDS = {tokenize.STRING: "string", tokenize.COMMENT: "comment", tokenize.NUMBER: "value", tokenize.OP: ""}


def source_of(claim: ClaimEntry) -> tuple[str, int, int]:
    """(source, first line, last line) of a claim's function with its decorators, as it stands on the disk now."""
    try:
        return _file_functions(claim.path, claim.path.stat().st_mtime_ns).get(claim.function, ("", 0, 0))
    except (OSError, SyntaxError, ValueError):
        return "", 0, 0


@functools.lru_cache(1024)
def _file_functions(path: Path, stamp: int) -> dict[str, tuple[str, int, int]]:
    """The functions of a file: parsed once, however many checks it holds. Of two with a name it is the first."""
    text = path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            last = node.end_lineno or first
            found.setdefault(node.name, ("\n".join(lines[first - 1 : last]), first, last))
    return found


@functools.lru_cache(1024)
def coloured(source: str) -> Markup:
    """Python for a page: every token escaped, some in a span. What is no Python comes back plain.

    >>> print(coloured("return 1"))
    <span class="keyword">return</span> <span class="value">1</span>
    """
    lines, parts, place = source.splitlines(keepends=True), [], (1, 0)
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.NL):
                continue
            kind = KINDS.get(token.type, "keyword" if keyword.iskeyword(token.string) else "")
            parts += [
                escape(_text_between(lines, place, token.start)),
                _code_span(_text_between(lines, token.start, token.end), kind),
            ]
            place = token.end
    except (tokenize.TokenError, SyntaxError):
        return escape(source)
    return Markup("").join([*parts, escape(_text_between(lines, place, (len(lines) + 1, 0)))])


def _text_between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    (row, column), (last, stop) = start, end
    if row == last:
        return lines[row - 1][column:stop] if row <= len(lines) else ""
    middle = "".join(lines[row : last - 1])
    return lines[row - 1][column:] + middle + (lines[last - 1][:stop] if last <= len(lines) else "")


def _code_span(text: str, kind: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, text) if kind else escape(text)
