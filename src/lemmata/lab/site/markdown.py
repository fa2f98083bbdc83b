"""The part of Markdown that our own documents use, for a page: headings, paragraphs, lists, tables, code, links."""

import re

from markupsafe import Markup, escape

__all__ = ["markdown"]

CODE = re.compile(r"(`[^`]+`)")
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
STRONG, EMPHASIS = re.compile(r"\*\*([^*]+)\*\*"), re.compile(r"\*([^*\s][^*]*)\*")


def markdown(text: str) -> Markup:
    """A document as HTML, every text in it escaped.

    >>> print(markdown("Some *words* and `code`."))
    <p>Some <em>words</em> and <code>code</code>.</p>
    """
    return Markup("\n").join(_block_markup(block) for block in re.split(r"\n\s*\n", text.strip()))


def _block_markup(block: str) -> Markup:
    if heading := re.match(r"(#{1,4}) (.*)", block):
        level, words = len(heading[1]), heading[2]
        place = "-".join(re.findall(r"\w+", words.lower()))
        return Markup('<h{0} id="{1}">{2}</h{0}>').format(level, place, _inline_markup(words))
    if block.startswith("|"):
        return _table_markup(block.splitlines())
    if block.startswith("- "):
        items = re.split(r"^- ", block, flags=re.M)[1:]
        return Markup("<ul>{}</ul>").format(
            Markup("").join(Markup("<li>{}</li>").format(_inline_markup(i)) for i in items)
        )
    return Markup("<p>{}</p>").format(_inline_markup(block))


def _table_markup(lines: list[str]) -> Markup:
    head, _, *rows = [[_inline_markup(cell) for cell in line.strip().strip("|").split("|")] for line in lines]
    heads = Markup("").join(Markup('<th scope="col">{}</th>').format(cell) for cell in head)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(first, Markup("").join(map(_cell_markup, head[1:], rest)))
        for first, *rest in rows
    )
    table = Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(heads, body)
    return Markup('<div class="scroll" tabindex="0">{}</div>').format(table)


def _cell_markup(head: Markup, cell: Markup) -> Markup:
    """With the name of its column, which a narrow page shows in each cell."""
    return Markup('<td data-head="{}">{}</td>').format(head.striptags(), cell)


def _inline_markup(text: str) -> Markup:
    parts = []
    for part in CODE.split(" ".join(text.split())):
        code = part.startswith("`") and part.endswith("`") and len(part) > 2
        parts.append(Markup("<code>{}</code>").format(part[1:-1]) if code else _marked_text(part))
    return Markup("").join(parts)


def _marked_text(text: str) -> Markup:
    """Links to pages of the lab are links; other documents and other sites are not here, so their addresses must do."""
    marked = LINK.sub(_link_markup, str(escape(text)))
    return Markup(EMPHASIS.sub(r"<em>\1</em>", STRONG.sub(r"<strong>\1</strong>", marked)))


def _link_markup(found: re.Match[str]) -> str:
    words, place = found.groups()
    if place.startswith("/"):
        return f'<a href="{place}">{words}</a>'
    return f"{words} ({place if ':' in place else f'docs/{place}'})"
