"""Sentences made by rule: what the words say is what the labels say, and a word by itself does not say it."""

import pytest
import torch

from lemmata.data import load
from lemmata.data.sentences import ARTICLES, BAD, BOTH, GOOD, PERSONS, plays_or_verses


def sentences(data, part="train"):
    tokens = data.extra["vocabulary"].tokens
    return [[tokens[n] for n in row if n] for row in data.parts[part].x.tolist()]


@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_answer_is_what_the_passage_says_of_the_thing(count):
    data = load("facts", n=60, test=5, count=count)
    for words, segments, start, end in zip(
        sentences(data), data.train.segments, data.train.start.tolist(), data.train.end.tolist(), strict=True
    ):
        thing = words[5]
        assert words[:8] == ["[CLS]", "what", "colour", "is", "the", thing, "?", "[SEP]"]
        facts = [fact.split() for fact in " ".join(words[8:-1]).removesuffix(" .").split(" . ")]
        assert len(facts) == count
        assert [fact[3:] for fact in facts if fact[1] == thing] == [words[start : end + 1]]
        assert words[start - 2] == thing
        assert segments.tolist() == [0] * 8 + [1] * (len(words) - 8) + [0] * (len(segments) - len(words))


def test_tags_follow_from_what_stands_before():
    data = load("homographs", n=400, test=5)
    noun, verb = (data.classes.index(tag) for tag in ("noun", "verb"))
    seen = {word: set() for word in BOTH}
    for words, y in zip(sentences(data), data.train.y.tolist(), strict=True):
        assert words[0] == "[CLS]"
        assert words[-1] == "[SEP]"
        assert [tag == -100 for tag in y] == [t in (0,) or t >= len(words) - 1 for t in range(len(y))]
        for t, word in enumerate(words):
            if word in BOTH:
                assert y[t] == (noun if words[t - 1] in ARTICLES else verb)
                seen[word].add(y[t])
            if word in PERSONS + ARTICLES:
                assert data.classes[y[t]] == "other"
    assert all(tags == {noun, verb} for tags in seen.values())
    assert data.extra["ambiguous"] == [data.extra["vocabulary"].numbers[word] for word in BOTH]


def test_not_turns_praise_into_its_contrary():
    data = load("negation", n=400, test=5)
    kinds = set()
    for words, label in zip(sentences(data), data.train.y.tolist(), strict=True):
        good = words[-2] in GOOD
        assert good or words[-2] in BAD
        assert label == (good != ("not" in words))
        kinds.add((good, "not" in words))
    assert len(kinds) == 4
    assert int(data.train.y.sum()) == 200


@pytest.mark.parametrize("name", ["facts", "homographs", "negation"])
def test_the_seed_decides(name):
    first, again, other = (load(name, n=20, test=8, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.train.x, again.train.x)
    assert not torch.equal(first.train.x, other.train.x)
    assert torch.equal(first.test.x, load(name, n=5, test=8).test.x)  # the parts do not touch one another


def test_six_words_of_either_book():
    data = plays_or_verses()
    texts = data.extra["texts"]
    assert {len(text.split()) for text in texts} == {6}
    assert all(text == text.lower() and text.replace(" ", "").isalpha() for text in texts)
    assert (len(data.train), len(data.test)) == (8928, 988)
    for part in data.parts.values():
        assert part.y.double().mean() == 0.5
    places = torch.cat([part.text for part in data.parts.values()])
    assert torch.equal(places, torch.arange(len(texts)))


def test_more_things_than_there_are_is_refused():
    with pytest.raises(ValueError, match="count must be <= 10, got 11"):
        load("facts", count=11)
