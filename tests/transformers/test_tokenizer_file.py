"""tokenizer.json: folders that Hugging Face's tokenisers have saved are read as they were, or refused by name."""

import json
import warnings

import pytest

from lemmata.transformers import BytePairEncoding, SpecialTokens, WordPiece

TEXTS = ["He said: Let there be Light, and there was light.", "Ünïcödé ☃ [MASK] <|endoftext|> don't", ""]


def saved_by_hugging_face(ours, kind, folder):
    """The folder that its tokeniser writes after reading ours: a tokenizer.json alone, and the config beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        ours.save_pretrained(folder / "ours")
        theirs = getattr(transformers, kind).from_pretrained(folder / "ours", local_files_only=True)
        theirs.save_pretrained(folder / "theirs")
    assert not (folder / "theirs/vocab.txt").exists()
    assert not (folder / "theirs/vocab.json").exists()
    return folder / "theirs"


def change(folder, part, **fields):
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    content[part] = (content[part] or {}) | fields
    file.write_text(json.dumps(content))


@pytest.fixture
def pieces(tmp_path):
    ours = WordPiece.train(TEXTS, 120, min_freq=1, lower=False, split_chinese=False)
    return ours, saved_by_hugging_face(ours, "BertTokenizer", tmp_path)


@pytest.fixture
def pairs(tmp_path):
    ours = BytePairEncoding.train(TEXTS, 280)
    return ours, saved_by_hugging_face(ours, "GPT2Tokenizer", tmp_path)


def test_wordpiece(pieces):
    ours, folder = pieces
    back = WordPiece.from_pretrained(folder)
    assert (back.vocab, back.lower, back.strip_accents, back.split_chinese) == (ours.vocab, False, False, False)
    assert [back.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]
    (folder / "tokenizer_config.json").unlink()
    change(folder, "model", max_input_chars_per_word=4)
    assert WordPiece.from_pretrained(folder).tokenize("said there") == [*ours.tokenize("said"), "[UNK]"]


def test_byte_pairs(pairs):
    ours, folder = pairs
    back = BytePairEncoding.from_pretrained(folder)
    assert (back.numbers, back.merges, back.special) == (ours.numbers, ours.merges, ours.special)
    assert [back.numbered(text) for text in TEXTS] == [ours.numbered(text) for text in TEXTS]
    assert back.add_prefix_space is False
    (folder / "tokenizer_config.json").unlink()
    change(folder, "pre_tokenizer", add_prefix_space=True)
    assert BytePairEncoding.from_pretrained(folder).add_prefix_space is True
    change(folder, "model", merges=[" ".join(pair) for pair in ours.merges])  # as older versions write them
    assert BytePairEncoding.from_pretrained(folder).merges == ours.merges


@pytest.mark.parametrize(
    ("part", "fields", "message"),
    [
        ("model", {"type": "Unigram"}, "model has type 'Unigram', which is not supported: 'WordPiece'"),
        ("model", {"continuing_subword_prefix": "_"}, "has continuing_subword_prefix '_', which is not supported"),
        ("normalizer", {"clean_text": False}, "normalizer has clean_text False, which is not supported: True"),
        ("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer has type 'Whitespace', which is not supported"),
        ("model", {"vocab": {piece: 3 * number for number, piece in enumerate(SpecialTokens())}}, "without gaps"),
        ("model", {"vocab": ["a"]}, "the vocab must give every piece a number: copy it again"),
    ],
)
def test_what_wordpiece_would_do_otherwise_is_refused(pieces, part, fields, message):
    change(pieces[1], part, **fields)
    with pytest.raises(ValueError, match=message):
        WordPiece.from_pretrained(pieces[1])


@pytest.mark.parametrize(
    ("part", "fields", "message"),
    [
        ("model", {"type": "WordPiece"}, "model has type 'WordPiece', which is not supported: 'BPE'"),
        ("model", {"ignore_merges": True}, "model has ignore_merges True, which is not supported"),
        ("pre_tokenizer", {"use_regex": False}, "pre_tokenizer has use_regex False, which is not supported"),
        ("normalizer", {"type": "NFC"}, "normalizer has type 'NFC', which is not supported: None"),
        ("model", {"merges": [["a", "b", "c"]]}, "merges must be pairs of pieces, got"),
    ],
)
def test_what_byte_pairs_would_do_otherwise_is_refused(pairs, part, fields, message):
    change(pairs[1], part, **fields)
    with pytest.raises(ValueError, match=message):
        BytePairEncoding.from_pretrained(pairs[1])


def test_added_tokens_and_broken_files(pieces):
    folder = pieces[1]
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"].append({"content": "<user>", "id": 1})
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="adds the token '<user>', which is not supported: only"):
        WordPiece.from_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(content | {"model": [1]}))
    with pytest.raises(ValueError, match="model must be an object, got list"):
        WordPiece.from_pretrained(folder)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        WordPiece.from_pretrained(folder)
