"""Byte-pair encoding: the numbers that Hugging Face's GPT2Tokenizer gives, texts given back exactly, vocabularies."""

import itertools
import json
import random
import unicodedata
import warnings

import pytest
import torch

from lemmata.data import load
from lemmata.data.text import Vocabulary
from lemmata.transformers import BytePairEncoding
from lemmata.transformers.byte_pair import END, _merge_parts, byte_characters, word_pattern
from lemmata.transformers.pair_merging import with_merged


@pytest.fixture(scope="module")
def text():
    data = load("shakespeare")
    return data.extra["vocabulary"].decode(data.train.x[:200_000])


@pytest.fixture(scope="module")
def learnt(text):
    return BytePairEncoding.train([text], 1200)


def theirs(folder, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import GPT2Tokenizer

        return GPT2Tokenizer.from_pretrained(folder, local_files_only=True, **settings)


def odd_texts(number, seed=0):
    """Characters of every kind that both sides know, that is, assigned by 2002; ends of English words; white space."""
    draw = random.Random(seed)
    codes = [code for code in range(0x30000) if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs")]
    rare = [
        "'s",
        "'S",
        "'ll",
        "'",
        " ",
        "  ",
        "\n",
        "\t",
        "\x1c",
        "\x1f",
        "\x85",
        "\xa0",
        "\u3000",
        "²",
        "Ⅷ",
        "中",
        "一",
    ]
    rare += [
        END,
        "<|endoftext",
        "the",
        " the",
        "7",
        " 7",
        "é",
        "e\u0301",
        "🎉",
        "\x00",
        "_",
        "\u200b",
        "\u180e",
        "\ufeff",
    ]
    texts = ["", " ", "   a", "a   ", "\n\n  b", "don't DON'T", END, f"a{END} b{END}{END}", "x" * 500]
    for _ in range(number):
        kinds = [lambda: chr(draw.choice(codes)), lambda: draw.choice(rare), lambda: chr(draw.randrange(0x250))]
        texts.append("".join(draw.choice(kinds)() for _ in range(draw.randrange(30))))
    return texts


@pytest.mark.parametrize("prefix", [False, True])
def test_the_numbers_are_those_of_hugging_face(learnt, text, prefix, tmp_path):
    ours = BytePairEncoding(learnt.numbers, learnt.merges, add_prefix_space=prefix)
    ours.save_pretrained(tmp_path)
    texts = [*text.split("\n")[:3000], text[:20_000], *odd_texts(2000)]
    reference = theirs(tmp_path)
    expected = reference(texts)["input_ids"]
    for each, ids in zip(texts, expected, strict=True):
        assert ours.numbered(each) == ids, repr(each)
    assert BytePairEncoding.from_pretrained(tmp_path).add_prefix_space is prefix


def test_every_text_is_given_back(learnt):
    for each in odd_texts(500, seed=1):
        assert learnt.decode(learnt.encode(each)) == each
    assert learnt.decode(learnt.encode("é")[:1]) == "\ufffd"  # half a character
    assert learnt.decode(learnt.encode(f"a{END}b"), special=False) == "ab"
    assert learnt.encode("").shape == (0,)


def test_the_folder_read_back(learnt, tmp_path):
    learnt.save_pretrained(tmp_path)
    back = BytePairEncoding.from_pretrained(tmp_path)
    assert (back.numbers, back.merges, back.special) == (learnt.numbers, learnt.merges, (END,))
    config = {"eos_token": {"content": END}, "pad_token": "Ġthe", "added_tokens_decoder": {"1": {"content": "an"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert BytePairEncoding.from_pretrained(tmp_path).special == (END, "Ġthe", "an")
    (tmp_path / "tokenizer_config.json").unlink()
    assert BytePairEncoding.from_pretrained(tmp_path).special == (END,)


@pytest.mark.parametrize("special", [(), (END, "<pad>"), ("[A]", "[B]", END)])
def test_all_special_tokens_come_back_and_are_those_of_hugging_face(text, special, tmp_path):
    ours = BytePairEncoding.train([text[:5000]], 300, special=special)
    ours.save_pretrained(tmp_path)
    assert BytePairEncoding.from_pretrained(tmp_path).special == special
    told = "one<pad> [A][B] two" + END
    assert BytePairEncoding.from_pretrained(tmp_path).numbered(told) == ours.numbered(told)
    if special:
        assert theirs(tmp_path)(told)["input_ids"] == ours.numbered(told)


@pytest.mark.parametrize("older", [False, True])
def test_tokens_that_were_added_behind_the_vocabulary(learnt, older, tmp_path):
    learnt.save_pretrained(tmp_path / "old")
    reference = theirs(tmp_path / "old")
    reference.add_special_tokens({"pad_token": "[PAD]"})
    reference.save_pretrained(tmp_path / "new")
    if older:  # before there was a field for them in tokenizer_config.json
        (tmp_path / "old/tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
        (tmp_path / "old/added_tokens.json").write_text('{"[PAD]": 1200}')
        assert theirs(tmp_path / "old")("a[PAD] b")["input_ids"] == reference("a[PAD] b")["input_ids"]
    back = BytePairEncoding.from_pretrained(tmp_path / ("old" if older else "new"))
    assert (
        back.numbered("a[PAD] b")
        == reference("a[PAD] b")["input_ids"]
        == [*learnt.numbered("a"), 1200, *learnt.numbered(" b")]
    )
    assert (len(back), back.decode([1200, *learnt.numbered(" b")])) == (1201, "[PAD] b")


def test_an_added_token_that_takes_blanks_with_it_is_refused(learnt, tmp_path):
    learnt.save_pretrained(tmp_path)
    for number, token, message in (
        ("1200", {"content": "[PAD]", "lstrip": True}, r"the added token '\[PAD\]' has lstrip, which is not supported"),
        ("last", {"content": "[PAD]"}, r"the added token '\[PAD\]' must have a number, got 'last'"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {number: token}}))
        with pytest.raises(ValueError, match=message):
            BytePairEncoding.from_pretrained(tmp_path)


def test_the_words_and_bytes_of_gpt2():
    assert word_pattern().findall("I'll  go 3²: now\n\n ") == ["I", "'ll", " ", " go", " 3²", ":", " now", "\n\n "]
    table = byte_characters()
    assert len(set(table)) == 256
    assert (table[ord(" ")], table[ord("\n")], table[ord("a")], table[0xAD]) == ("Ġ", "Ċ", "a", "Ń")


def test_learning(text):
    ours = BytePairEncoding.train(["aab aab aab ab"], 300, min_freq=1)
    assert ours.merges[:2] == [("a", "b"), ("a", "ab")]
    assert ours.tokenize("aab ab") == ["aab", "Ġab"]
    small = BytePairEncoding.train([text[:30_000]], 400)
    assert len(small) == 400
    assert small.numbers[END] == 399  # the last one, as GPT-2 has it
    assert len(BytePairEncoding.train(["a"], 300, min_freq=2).merges) == 0
    assert torch.equal(BytePairEncoding.train([text[:30_000]], 400).encode(text[:5000]), small.encode(text[:5000]))


def test_it_stands_where_a_vocabulary_does(learnt, text):
    for tokens in (learnt, Vocabulary(sorted(set(text)))):
        assert tokens.decode(tokens.encode(text[:100])) == text[:100]
        assert int(tokens.encode(text[:1000]).max()) < len(tokens)


def test_merging_is_that_of_looking_for_the_lowest_pair_again_and_again(learnt):
    draw = random.Random(2)
    for letters in ("a", "ab", "theans "):
        ranks = {pair: rank for rank, pair in enumerate(learnt.merges)}
        ranks |= {
            ("a", "a"): 0,
            ("aa", "aa"): 5000,
            ("aa", "a"): 5001,
            ("a", "b"): 1,
            ("b", "a"): 2,
            ("ab", "ab"): 6000,
        }
        for _ in range(200):
            word = parts = draw.choices(letters, k=draw.randint(0, 12))
            while known := [pair for pair in itertools.pairwise(parts) if pair in ranks]:
                best = min(known, key=ranks.__getitem__)
                parts = with_merged(parts, best, "".join(best))
            assert _merge_parts(list(word), ranks) == parts


def test_a_word_may_be_as_long_as_a_file(learnt):
    word = "".join(random.Random(3).choices("etaoinshrdlu", k=30_000))
    assert learnt.decode(learnt.encode(word)) == word


def test_remembered_words_are_dropped_in_time(learnt, text, monkeypatch):
    monkeypatch.setattr("lemmata.transformers.byte_pair.CACHED_WORDS", 10)
    small = BytePairEncoding(learnt.numbers, learnt.merges)
    assert small.numbered(text[:2000]) == learnt.numbered(text[:2000])
    assert len(small._cache) <= 10


def test_bad_input_names_the_fix(learnt, tmp_path):
    with pytest.raises(TypeError, match="text"):
        learnt.encode(3)
    with pytest.raises(ValueError, match=r"text must be valid Unicode, got half a surrogate pair in '.ud800'"):
        learnt.encode("x\ud800")
    with pytest.raises(ValueError, match="tokens must be numbers of the vocabulary, got 1200"):
        learnt.decode([1200])
    with pytest.raises(ValueError, match="vocab_size must be >= 257, got 256"):
        BytePairEncoding.train(["a"], 256)
    with pytest.raises(TypeError, match=r"texts must be several texts, got one string: write \[text\]"):
        BytePairEncoding.train("low lower", 300)
    with pytest.raises(ValueError, match="vocab must hold the piece '!x': the files are not of one folder"):
        BytePairEncoding(learnt.numbers, [("!", "x")])
    with pytest.raises(ValueError, match="vocab must give every piece a number of its own"):
        BytePairEncoding(learnt.numbers | {"another": 7}, [])
    with pytest.raises(FileNotFoundError, match=r"vocab.json is missing"):
        BytePairEncoding.from_pretrained(tmp_path)
    learnt.save_pretrained(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b c\n")
    with pytest.raises(ValueError, match="line 2: must hold two pieces with a blank between, got 'a b c'"):
        BytePairEncoding.from_pretrained(tmp_path)
    (tmp_path / "merges.txt").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="cannot be read as text"):
        BytePairEncoding.from_pretrained(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"merges.txt is missing"):
        BytePairEncoding.from_pretrained(tmp_path)
