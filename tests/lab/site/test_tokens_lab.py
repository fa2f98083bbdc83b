"""The tokens lab: its pieces are those of a tokeniser that was trained so far and no further."""

import runpy

import pytest

from lemmata.data.stored import stored_text
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import tokens_lab
from lemmata.transformers import BytePairEncoding, WordPiece

TEXT = "What dreames may come, when we haue shuffled off"


def show(**state):
    return tokens_lab.show(read_state(tokens_lab.State, {name: str(value) for name, value in state.items()}))


@pytest.mark.parametrize("method", ["count", "likelihood"])
def test_a_vocabulary_of_fewer_merges_is_the_beginning_of_a_larger_one(method):
    plays = stored_text("shakespeare.txt.gz")[: tokens_lab.LEARNT_FROM]
    found = show(method=method, merges=100)
    assert WordPiece.train([plays], found["size"], by=method).tokenize(TEXT) == found["pieces"]


def test_byte_pairs():
    plays = stored_text("shakespeare.txt.gz")[: tokens_lab.LEARNT_FROM]
    found = show(method="bytes", merges=100)
    assert BytePairEncoding.train([plays], found["size"]).tokenize(TEXT) == found["pieces"]
    assert found["numbers"] == [tokens_lab.learnt("bytes").numbers[piece] for piece in found["pieces"]]


def test_more_merges_make_fewer_pieces():
    counts = [len(show(merges=merges)["pieces"]) for merges in (0, 100, 500, 1500)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == len(TEXT.replace(" ", ""))
    assert counts[-1] < 2 * show()["words"]


def test_nothing_typed_and_characters_that_were_not_met():
    assert show(text="")["pieces"] == []
    assert show(text="☃")["pieces"] == ["[UNK]"]
    assert len(show(text="☃", method="bytes")["pieces"]) == 3


@pytest.mark.parametrize("method", ["count", "bytes"])
def test_the_python_on_the_page_gives_the_same(method, tmp_path, capsys):
    found = show(method=method, merges=20)
    (tmp_path / "page.py").write_text(found["python"], encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"))
    assert capsys.readouterr().out.strip() == str(found["pieces"])
