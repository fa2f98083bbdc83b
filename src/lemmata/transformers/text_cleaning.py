r"""What BERT does to a text before it looks for pieces: each character cleaned, lower-cased, freed of accents."""

import string
import unicodedata

__all__ = ["CleanedCharacters"]

# Blocks of Chinese characters, each of which is a word by itself. 2B920 is no slip of ours: it is where the tokenizers
# of the world begin the block of extension E, which begins at 2B820.
CHINESE = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class CleanedCharacters(dict[int, str]):
    r"""A table for `str.translate` that cleans a text, so that the words are what `split` finds; filled as it is used.

    Control characters vanish, spaces of every kind become one kind, letters are lower-cased and freed of accents, and
    punctuation and Chinese characters get spaces round them. Every character is treated by itself.

    >>> "Crème brûlée, 2×!\n".translate(CleanedCharacters(lower=True, strip_accents=True, split_chinese=True)).split()
    ['creme', 'brulee', ',', '2×', '!']
    """

    def __init__(self, lower: bool, strip_accents: bool, split_chinese: bool) -> None:
        super().__init__()
        self.lower, self.strip_accents, self.split_chinese = lower, strip_accents, split_chinese

    def __missing__(self, code: int) -> str:
        self[code] = cleaned = "".join(
            f" {char} " if _is_punctuation(char) else char for char in self._plain_character(chr(code))
        )
        return cleaned

    def _plain_character(self, char: str) -> str:
        """A character without its accent and in lower case; a space, or nothing, for those that are not to be seen."""
        if char in "\t\n\r" or unicodedata.category(char) in ("Zs", "Zl", "Zp"):
            return " "
        if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co"):
            return ""
        chinese = self.split_chinese and any(first <= ord(char) <= last for first, last in CHINESE)
        if self.strip_accents:
            parts = unicodedata.normalize("NFD", char)
            char = "".join(part for part in parts if unicodedata.category(part) != "Mn")
        if self.lower:  # each by itself: a Greek sigma at the end of a word is not written otherwise
            char = "".join(part.lower() for part in char)
        return f" {char} " if chinese else char


def _is_punctuation(char: str) -> bool:
    """Whether it is a mark; of ASCII, everything that is neither letter nor digit nor space is."""
    return char in string.punctuation or unicodedata.category(char).startswith("P")
