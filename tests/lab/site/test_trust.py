"""What a verdict rests on, as a page: the document of the project, and the part of Markdown that it is written in."""

import re
from pathlib import Path

import pytest

from lemmata.lab.site.markdown import markdown
from lemmata.lab.site.views import trust


def test_the_page_about_trust_is_the_document_of_the_project():
    document = Path(__file__).parents[3] / "docs" / "trust.md"
    assert trust.DOCUMENT.read_bytes() == document.read_bytes(), f"copy docs/trust.md to {trust.DOCUMENT}"


def test_all_of_the_document_is_rendered():
    text = str(trust.trust_context()["document"])
    assert text.count("<h1") == 1
    assert text.count("<table>") == 2
    assert not re.search(r"(?<!<)[*`|]|\]\(|^#", re.sub("<code>.*?</code>", "", text), re.M)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## A & B", '<h2 id="a-b">A &amp; B</h2>'),
        ("one\ntwo", "<p>one two</p>"),
        ("a *b* **c** `*d*`", "<p>a <em>b</em> <strong>c</strong> <code>*d*</code></p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
        ("- a\n  b\n- `c`", "<ul><li>a b</li><li><code>c</code></li></ul>"),
        ("[a](/atlas) [b](c.md)", '<p><a href="/atlas">a</a> b (docs/c.md)</p>'),
        ("[a](https://example.org)", "<p>a (https://example.org)</p>"),
        ("[a](javascript:alert(1))", "<p>a (javascript:alert(1))</p>"),
        ("<b>`<i>`", "<p>&lt;b&gt;<code>&lt;i&gt;</code></p>"),
        ('[x](/"onclick="y)', '<p><a href="/&#34;onclick=&#34;y">x</a></p>'),
    ],
)
def test_markdown_becomes_html_and_nothing_else(text, expected):
    assert markdown(text) == expected


def test_a_table_of_markdown_names_the_column_in_each_cell():
    made = markdown("| a | `b` |\n|---|---|\n| c | *d* |")
    assert '<th scope="col">a</th><th scope="col"><code>b</code></th>' in made
    assert '<tr><th scope="row">c</th><td data-head="b"><em>d</em></td></tr>' in made
