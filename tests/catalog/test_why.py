"""Why a statement is true is said in a few sentences of its own; the catalog itself finds unknown ids and circles."""

import re
from collections import Counter

import pytest

from lemmata import catalog

# Chapters in which every statement says why.
EXPLAINED = (
    "foundations connectionism feedforward optim tricks convolution vision recurrent transformers geometric "
    "kernel bayes generalization"
).split()


def test_every_statement_of_an_explained_chapter_says_why():
    statements = [s for s in catalog.load().statements.values() if s.chapter in EXPLAINED]
    assert statements
    assert [s.id for s in statements if not s.why] == []


def test_a_reason_is_a_few_sentences():
    lengths = {s.id: len(s.why.split()) for s in catalog.load().statements.values() if s.why}
    assert {id: length for id, length in lengths.items() if not 25 <= length <= 120} == {}


def test_no_sentence_is_said_twice():
    sentences = Counter(
        sentence
        for statement in catalog.load().statements.values()
        for sentence in re.split(r"(?<=[.:]) ", statement.why)
        if len(sentence.split()) > 4
    )
    assert [sentence for sentence, times in sentences.items() if times > 1] == []


STATEMENT = "- {{id: {id}, kind: theorem, title: t, statement: s, cost: quick, why: Because., builds_on: {grounds}}}\n"


@pytest.fixture
def stated(tmp_path):
    """What is read of statements, given by their ids and what each builds on."""

    def read(**grounds):
        chapter = tmp_path / "house" / "connectionism"
        chapter.mkdir(parents=True, exist_ok=True)
        entries = (STATEMENT.format(id=id, grounds=list(ids)) for id, ids in grounds.items())
        (chapter / "statements.yaml").write_text("".join(entries))
        catalog.load.cache_clear()
        return catalog.load(tmp_path / "house")

    yield read
    catalog.load.cache_clear()


def test_statements_know_what_they_build_on_and_what_builds_on_them(stated):
    found = stated(first=[], second=["first"], third=["first", "second"])
    assert found.problems == []
    assert (found.statements["third"].why, found.statements["third"].builds_on) == ("Because.", ("first", "second"))
    assert found.built_on == {"first": ["second", "third"], "second": ["third"]}


def test_nothing_builds_on_what_is_unknown_or_on_itself(stated):
    (unknown,) = stated(first=["nowhere"]).problems
    assert unknown.endswith("statements.yaml:1: first builds on the unknown statement 'nowhere'")
    (circle,) = stated(first=["second"], second=["first"]).problems
    assert "in a circle: " in circle
    (number,) = stated(first=[2]).problems
    assert "builds_on must name statements by their ids, got 2" in number
