"""Reading one file, and our own catalog."""

import re
import subprocess
import sys
import textwrap
from dataclasses import fields

import pytest

from lemmata import catalog, marks
from lemmata.catalog import CHAPTERS, read_claims

CLAIM = """
from lemmata.judge import claim, exactly, lie

@claim("neuron.counts")
@lie("eleven", number=11)
def ten_of_sixteen(draw, number=10):
    ...
"""


def test_a_users_file_states_its_own_cost(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(CLAIM).replace('"neuron.counts"', '"my.claim", cost="long"'))
    problems = []
    (claim,) = read_claims(path, "mine", problems)
    assert (claim.id, claim.cost, problems) == ("my.claim", "long", [])


def test_a_file_that_is_not_there_is_told(tmp_path):
    problems = []
    assert list(read_claims(tmp_path / "absent.py", "absent", problems)) == []
    assert problems[0].startswith(f"{tmp_path / 'absent.py'}:1: not valid Python: ")


# --- Ours ---


def test_our_own_catalog_is_read_without_torch():
    code = (
        "import sys; from lemmata import catalog; found = catalog.load(); import lemmata.judge.session;"
        "heavy = {'torch', 'numpy', 'scipy', 'sympy'} & set(sys.modules);"
        "assert found.statements and not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_formulas_of_remarks_stand_between_dollars_and_each_settlement_has_its_reason(chapter):
    remarks = [
        (statement.id, text)
        for statement in catalog.load().statements.values()
        if statement.chapter == chapter
        for erratum in statement.errata
        for text in (getattr(erratum, field.name) for field in fields(erratum))
        if isinstance(text, str)
    ]
    raw = [f"{id}: {text}" for id, text in remarks if re.search(r"\\|MISSING", re.sub(r"\$[^$]*\$", "", text))]
    assert not raw, "\n".join(raw)


def test_decorators_leave_what_they_mark_usable():
    @marks.system("a", title="A", kind="module", example="A()(1)")
    class A:
        pass

    @marks.recipe("a", data="d", metric="m")
    def train():
        return 1

    assert A.__lemmata_system__ == {"id": "a", "title": "A", "kind": "module", "example": "A()(1)"}
    assert train() == 1
