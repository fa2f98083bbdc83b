"""tokenizer.json: folders that Hugging Face's tokenisers have saved are read as they were, or refused by name."""

import json
import warnings

import pytest

from lemmata.transformers import BytePairEncoding, SpecialTokens, WordPiece

A, END = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}
TEMPLATE = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, A, END]
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


def configure(folder, **fields):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


@pytest.fixture
def pieces(tmp_path):
    ours = WordPiece.train(TEXTS, 120, min_freq=1, lower=False, split_chinese=False)
    return ours, saved_by_hugging_face(ours, "BertTokenizer", tmp_path)


@pytest.fixture
def pairs(tmp_path):
    ours = BytePairEncoding.train(TEXTS, 280)
    return ours, saved_by_hugging_face(ours, "GPT2Tokenizer", tmp_path / "pairs")


def test_wordpiece(pieces):
    ours, folder = pieces
    back = WordPiece.from_pretrained(folder)
    assert (back.vocab, back.lower, back.strip_accents, back.split_chinese) == (ours.vocab, False, False, False)
    assert [back.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]
    change(folder, "model", max_input_chars_per_word=4)
    assert WordPiece.from_pretrained(folder).tokenize("said there") == [*ours.tokenize("said"), "[UNK]"]


def test_byte_pairs(pairs):
    ours, folder = pairs
    back = BytePairEncoding.from_pretrained(folder)
    assert (back.numbers, back.merges, back.special) == (ours.numbers, ours.merges, ours.special)
    assert [back.numbered(text) for text in TEXTS] == [ours.numbered(text) for text in TEXTS]
    assert back.add_prefix_space is False
    change(folder, "pre_tokenizer", add_prefix_space=True)
    configure(folder, add_prefix_space=True)
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
        ("model", {"unk_token": "?"}, "model has unk_token '.', which is not supported"),
        (
            "normalizer",
            {"lowercase": True},
            "has lowercase True, but in .*config.json do_lower_case is False",
        ),
        ("normalizer", {"strip_accents": None}, "has strip_accents None, but in .*config.json strip_accents is False"),
        ("normalizer", {"lowercase": "no"}, "normalizer has lowercase 'no', which is not supported: True or False"),
        (
            "post_processor",
            {"single": [TEMPLATE[0], A]},
            r"makes '\[CLS\]:0 A:0' of a single, which is not supported",
        ),
        ("post_processor", {"pair": [*TEMPLATE, A]}, r"makes '\[CLS\]:0 A:0 \[SEP\]:0 A:0' of a pair"),
        ("post_processor", {"special_tokens": {"[CLS]": {"ids": [7]}}}, r"writes \[CLS\] as \[7\], but the vocab"),
        ("post_processor", {"type": "ByteLevel"}, "makes 'A:0' of a single"),
        ("post_processor", {"type": "RobertaProcessing"}, "has type 'RobertaProcessing', which is not supported"),
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
        ("model", {"merges": 3}, "merges must be pairs of pieces, got"),
        ("model", {"vocab": {"a": 1.0}}, "the vocab must give every piece a number"),
        ("pre_tokenizer", {"add_prefix_space": True}, "add_prefix_space is True, but False in .*: make them agree"),
        ("post_processor", {"type": "TemplateProcessing", "single": TEMPLATE, "pair": []}, "post_processor makes"),
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


def tokens_of(kind, folder, text):
    """The tokens by Hugging Face's tokeniser of the same folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        return getattr(transformers, kind).from_pretrained(folder, local_files_only=True)(text)["input_ids"]


USER = {"content": "<user>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": False}


@pytest.mark.parametrize("where", ["tokenizer.json", "additional", "extra", "named", "special_tokens_map.json"])
def test_special_tokens_are_those_of_hugging_face_wherever_they_are_named(pairs, where, tmp_path):
    ours, folder = pairs
    text, number = "light<user> light", len(ours)
    if where == "tokenizer.json":  # beside the older files that do not know of the token
        ours.save_pretrained(folder)
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
        content = json.loads((folder / "tokenizer.json").read_text())
        content["added_tokens"].append({"id": number, "special": True, **USER})
        (folder / "tokenizer.json").write_text(json.dumps(content))
    else:
        (folder / "tokenizer.json").unlink()
        ours.save_pretrained(folder)
        vocab = json.loads((folder / "vocab.json").read_text())
        (folder / "vocab.json").write_text(json.dumps(vocab | {"<user>": number}))
        fields = {
            "additional": {"additional_special_tokens": ["<user>"]},
            "extra": {"extra_special_tokens": ["<user>"]},
            "named": {"sep_token": "<user>"},
            "special_tokens_map.json": {},
        }[where]
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"} | fields))
        if where == "special_tokens_map.json":
            (folder / where).write_text(json.dumps({"pad_token": USER}))
    wanted = [*ours.numbered("light"), number, *ours.numbered(" light")]
    assert BytePairEncoding.from_pretrained(folder).numbered(text) == wanted == tokens_of("GPT2Tokenizer", folder, text)


def test_other_special_tokens_of_wordpiece_are_refused_wherever_they_are_named(pieces):
    ours, folder = pieces
    configure(folder, added_tokens_decoder={})
    for fields in (
        {"additional_special_tokens": ["<user>"]}, {"extra_special_tokens": {"user": "<user>"}},
        {"bos_token": "<user>"}, {"added_tokens_decoder": {"1": USER}},
    ):  # fmt: skip
        before = (folder / "tokenizer_config.json").read_text()
        configure(folder, **fields)
        with pytest.raises(ValueError, match="adds the token '<user>', which is not supported: only"):
            WordPiece.from_pretrained(folder)
        (folder / "tokenizer_config.json").write_text(before)
    ours.save_pretrained(folder)  # the older files beside tokenizer.json
    (folder / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["<user>"]}))
    with pytest.raises(ValueError, match="adds the token '<user>', which is not supported: only"):
        WordPiece.from_pretrained(folder)
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[UNK]"}))
    with pytest.raises(ValueError, match=r"pad_token is '\[UNK\]', but '\[PAD\]' in tokenizer_config.json"):
        WordPiece.from_pretrained(folder)
    (folder / "special_tokens_map.json").unlink()
    assert WordPiece.from_pretrained(folder).vocab == ours.vocab
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"].append(USER | {"id": len(ours.vocab)})
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="adds the token '<user>', which is not supported: only"):
        WordPiece.from_pretrained(folder)


def test_files_of_one_folder_that_disagree_are_refused(pieces, pairs):
    ours, folder = pieces
    ours.save_pretrained(folder)
    (folder / "tokenizer_config.json").unlink()  # which means that capitals are lowered
    with pytest.raises(ValueError, match=r"has lowercase False, but .* do_lower_case, which is not there, means True"):
        WordPiece.from_pretrained(folder)
    ours.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join([*ours.vocab, "new"]))
    with pytest.raises(ValueError, match=r"vocab.txt and tokenizer.json hold different pieces: remove the older"):
        WordPiece.from_pretrained(folder)
    ours, folder = pairs
    for name, more in (("vocab.json", json.dumps(ours.numbers | {"new": 999})), ("merges.txt", "l i")):
        (folder / name).write_text(more)
        with pytest.raises(ValueError, match=rf"{name} and tokenizer.json differ: remove the older of the two"):
            BytePairEncoding.from_pretrained(folder)
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"add_bos_token": True}, "add_bos_token is True, which is not supported: only false"),
        ({"split_special_tokens": True}, "split_special_tokens is True, which is not supported"),
        ({"added_tokens_decoder": [1]}, "added_tokens_decoder must be an object, got list"),
        ({"added_tokens_decoder": {"1": "a"}}, "an added token must be an object, got str"),
        ({"added_tokens_decoder": {"1": {}}}, "an added token must have a content, got None"),
        ({"added_tokens_decoder": {"1.5": USER}}, "the added token '<user>' must have a number, got '1.5'"),
        ({"eos_token": 3}, "eos_token must be an object, got int"),
        ({"eos_token": ""}, "eos_token must be an object, got str"),
        ({"extra_special_tokens": "x"}, "extra_special_tokens must be a list of tokens, got 'x'"),
    ],
)
def test_settings_of_another_kind_are_answered_in_one_sentence(pieces, pairs, fields, message):
    for kind, folder in ((WordPiece, pieces[1]), (BytePairEncoding, pairs[1])):
        configure(folder, **fields)
        with pytest.raises(ValueError, match=message):
            kind.from_pretrained(folder)
