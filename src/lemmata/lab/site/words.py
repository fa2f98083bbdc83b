r"""Words of a page: what a text says in passing of code and of formulas is set, and not shown as it was typed.

Texts of the course are also read in a terminal and in source, where `z^T z`, `vocab_size` and True are what one writes.
"""

import re

from markupsafe import escape

from lemmata.catalog.dials import DIAL

__all__ = ["words"]

# A script may follow another one, which has taken the base: sigma_w^2.
SCRIPT = r"(?P<base>[^\s\^_])?(?P<mark>[\^_])(?:\{(?P<braced>[^{}]*)\}|\((?P<fenced>[^()]*)\)|(?P<bare>-?\w[^\W_]*))"
NAME = r"(?P<name>(?<![\w.])(?:[A-Za-z]\w*\.)*[A-Za-z]\w*[A-Za-z0-9]_[A-Za-z0-9]\w+(?:\.\w+)*)"
# At the start of a sentence "True" and "None" are English.
CONSTANT = r"(?P<constant>(?<!^)(?<![.!?:] )\b(?:True|False|None)\b)"
PARTS = re.compile(rf"{DIAL.pattern}|`(?P<code>[^`]+)`|{NAME}|{CONSTANT}|{SCRIPT}")
TAGS = {"^": "sup", "_": "sub"}


def words(text: str) -> str:
    r"""Text without formulas, safe to put on a page: code as code, scripts raised and lowered, dials that can be moved.

    >>> words("`a_b` of vocab_size is e_y - x^2 < 2^(N+1)")
    '<code>a_b</code> of <code>vocab_size</code> is e<sub>y</sub> - x<sup>2</sup> &lt; 2<sup>N+1</sup>'
    >>> words("sigma_w^2")
    'sigma<sub>w</sub><sup>2</sup>'
    >>> words(r"\dial{pairs}{any sentence}")
    '<span class="dial" data-dial="pairs" data-as="words">any sentence</span>'
    """
    told, last = [], 0
    for found in PARTS.finditer(text):
        told += [str(escape(text[last : found.start()])), _markup_part(found)]
        last = found.end()
    return "".join([*told, str(escape(text[last:]))])


def _markup_part(found: re.Match[str]) -> str:
    if found[1]:
        return f'<span class="dial" data-dial="{found[1]}" data-as="words">{escape(found[2])}</span>'
    if code := found["code"] or found["name"] or found["constant"]:
        return f"<code>{escape(code)}</code>"
    script = next(text for text in (found["braced"], found["fenced"], found["bare"]) if text is not None)
    raised = "⊤" if script == "T" and found["mark"] == "^" else escape(script.replace("-", "−"))
    tag = TAGS[found["mark"]]
    return f"{escape(found['base'] or '')}<{tag}>{raised}</{tag}>"
