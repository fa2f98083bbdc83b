"""`lemmata.check`, the judge from Python."""

import pytest

import lemmata
from lemmata.judge import claim, close, lie

MINE = """
from lemmata.judge import claim, close, lie

@claim("mine.{name}")
@lie("three", two=3.0)
def doubled(draw, two=2.0):
    x = draw.normal(10)
    return close(x + x, {factor} * x)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "cache"))


@claim("mine.halves")
@lie("a third", part=1 / 3)
def halves(draw, part=0.5):
    x = draw.normal(10)
    return close(part * x + part * x, x)


def test_a_function_at_hand_is_judged_under_every_seed():
    found = lemmata.check(halves, seeds=2)
    assert [(result.id, result.verdict) for result in found] == [("mine.halves", "holds")]
    assert found
    assert repr(found) == "holds    mine.halves"


def test_ids_files_and_folders_are_judged_and_what_fell_is_said(tmp_path):
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "deep" / "true.py").write_text(MINE.format(name="true", factor="two"))
    (notes / "false.py").write_text(MINE.format(name="false", factor="5"))
    (notes / "other.py").write_text("raise RuntimeError('never read')")
    found = lemmata.check(notes, "mcculloch.neuron", jobs=1)
    assert [(result.id, result.verdict) for result in found][:2] == [("mine.true", "holds"), ("mine.false", "refuted")]
    assert len(found) == 3
    assert not found
    assert [result.id for result in found.fallen] == ["mine.false"]
    assert found["mcculloch.neuron"].verdict == "holds"


def test_what_is_unknown_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"unknown id .cover\.theorm.: did you mean cover\.theorem"):
        lemmata.check("cover.theorm")
    with pytest.raises(TypeError, match="give ids, paths or functions decorated with @claim, got 3"):
        lemmata.check(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seeds must be >= 1, got 0"):
        lemmata.check(halves, seeds=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty has no claims"):
        lemmata.check(tmp_path / "empty")
