"""Cleaned characters: what vanishes, what becomes a space, what is set apart, in every setting."""

import pytest

from lemmata.transformers import CleanedCharacters


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ÄÖÜ ß ẞ", ["aou", "ß", "ß"]),
        ("İstanbul", ["istanbul"]),
        ("ΣΊΣΥΦΟΣ", ["σισυφοσ"]),  # no other letter at the end of a word
        ("a\x00b\u200bc\ufffdd\xade\ue000f", ["abcdef"]),
        ("a\tb\nc\rd\u2028e\u3000f\xa0g", list("abcdefg")),
        ("a\x0bb\x85c", ["abc"]),  # controls, though Python calls them spaces
        ("x=y$z^w", ["x", "=", "y", "$", "z", "^", "w"]),
        ("«¿qué?»", ["«", "¿", "que", "?", "»"]),
        ("日本語ab", ["日", "本", "語", "ab"]),
        ("ひらがな", ["ひらかな"]),  # the mark of a voiced sound is an accent to Unicode
        ("2€ ☃🎉", ["2€", "☃🎉"]),
        ("\u0378", ["\u0378"]),  # not assigned: kept
    ],
)
def test_words_as_uncased_models_see_them(text, words):
    assert text.translate(CleanedCharacters(lower=True, strip_accents=True, split_chinese=True)).split() == words


def test_every_setting_by_itself():
    text = "É 中文"
    plain = CleanedCharacters(lower=False, strip_accents=False, split_chinese=False)
    assert text.translate(plain) == text
    assert text.translate(CleanedCharacters(True, False, False)) == "é 中文"
    assert text.translate(CleanedCharacters(False, True, False)) == "E 中文"
    assert text.translate(CleanedCharacters(False, False, True)).split() == ["É", "中", "文"]
    assert set(plain) == {ord(char) for char in text}  # remembered
