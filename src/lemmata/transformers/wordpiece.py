r"""WordPiece: the pieces of words that BERT reads, from and to the vocab.txt that the world uses."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lemmata import validate
from lemmata.files import write_whole
from lemmata.marks import system
from lemmata.transformers.pair_merging import merged_pairs, several_texts
from lemmata.transformers.pretrained import read_text
from lemmata.transformers.text_cleaning import CleanedCharacters
from lemmata.transformers.tokenizer_file import TokenizerFile, TokenizerSettings, tokenizer_settings

__all__ = ["Encoding", "SpecialTokens", "TokenBatch", "WordPiece"]

CONTINUED = "##"  # what a piece begins with that continues a word
CACHED_WORDS = 1 << 18  # a text's words repeat: their pieces are remembered, up to so many


class SpecialTokens(NamedTuple):
    """The pieces that stand for no text; where a text contains their names they are taken for what they name."""

    padding: str = "[PAD]"
    unknown: str = "[UNK]"
    first: str = "[CLS]"
    separator: str = "[SEP]"
    mask: str = "[MASK]"


USUAL = SpecialTokens()


class Encoding(NamedTuple):
    """A text or a pair as tokens, with the segment of each and the characters of its text that it stands for."""

    tokens: list[int]
    segments: list[int]
    offsets: list[tuple[int, int]]


class TokenBatch(NamedTuple):
    """Texts as `Bert` takes them: `model(*tokenizer(texts))`."""

    x: Int[Tensor, "batch time"]
    segments: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]


@system("wordpiece", title="WordPiece tokeniser", kind="estimator")
class WordPiece:
    r"""Texts as pieces of a vocabulary: the longest that a word begins with, then the longest of what is left of it.

    A text is cleaned of control characters, lower-cased and freed of accents (unless it is said otherwise), and split
    at spaces; every punctuation mark and every Chinese character is a word by itself. A word is split greedily, pieces
    within it are written with `##`; where the walk ends at a rest that no piece begins, or the word is longer than
    `max_chars`, the whole word is `[UNK]`. `WordPiece.from_pretrained(folder)` reads the vocab.txt (and the settings)
    of a folder in Hugging Face's format, `WordPiece.train(texts, vocab_size)` learns a vocabulary.

    Shapes:
        returns: x, segments and mask (batch, time), padded to the longest text

    Claims: transformer.wordpiece
    Source: Schuster and Nakajima 2012; Devlin et al. 2019.
    Differs: characters have the categories of Python's own Unicode tables, those of Hugging Face's are of 2015:
    some hundred marks and accents that Unicode has gained since are not told from letters there.

    >>> tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!"])
    >>> tokenizer.tokenize("Unaffable!")
    ['un', '##aff', '##able', '!']
    >>> tokenizer(["unaffable", "!"]).x
    tensor([[2, 5, 6, 7, 3],
            [2, 8, 3, 0, 0]])
    """

    def __init__(
        self,
        vocab: Sequence[str],
        lower: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        max_chars: int = 100,
        special: SpecialTokens = USUAL,
    ) -> None:
        self.vocab = list(vocab)
        self.numbers = {piece: number for number, piece in enumerate(self.vocab)}
        if len(self.numbers) < len(self.vocab):
            twice = next(piece for piece, times in Counter(self.vocab).items() if times > 1)
            raise ValueError(f"vocab must hold every piece once, got {twice!r} twice: remove one")
        for name, piece in special._asdict().items():
            if piece not in self.numbers:
                raise ValueError(f"vocab must hold the {name} token {piece}: add it, or name another in special")
        self.special = special
        self.lower = validate.flag("lower", lower)
        self.strip_accents = lower if strip_accents is None else validate.flag("strip_accents", strip_accents)
        self.split_chinese = validate.flag("split_chinese", split_chinese)
        self.max_chars = validate.count("max_chars", max_chars)
        self.longest = max(len(piece) for piece in self.vocab)
        self._table = CleanedCharacters(self.lower, self.strip_accents, self.split_chinese)
        self._special = re.compile("(" + "|".join(sorted(map(re.escape, special), key=len, reverse=True)) + ")")
        self._cache: dict[str, tuple[int, ...]] = {}

    # --- from texts to pieces ---

    def words(self, text: str) -> list[str]:
        """The cleaned words of a text, before they are split into pieces."""
        return _checked_string("text", text).translate(self._table).split()

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text."""
        return [self.vocab[number] for number in self.numbered(text)]

    def numbered(self, text: str) -> list[int]:
        """The numbers of the pieces of a text."""
        numbers: list[int] = []
        for place, part in enumerate(self._special.split(_checked_string("text", text))):
            if place % 2:
                numbers.append(self.numbers[part])
            else:
                for word in part.translate(self._table).split():
                    numbers.extend(self._cache.get(word) or self.split(word))
        return numbers

    def split(self, word: str) -> tuple[int, ...]:
        """The numbers of the pieces of one word: each the longest that fits, or the unknown token alone."""
        found = self._longest_pieces(word) if len(word) <= self.max_chars else None
        if len(self._cache) >= CACHED_WORDS:
            self._cache.clear()
        self._cache[word] = pieces = found or (self.numbers[self.special.unknown],)
        return pieces

    def _longest_pieces(self, word: str) -> tuple[int, ...] | None:
        """The longest pieces one after another, or None where no piece begins what is left."""
        numbers, start = [], 0
        while start < len(word):
            prefix = CONTINUED if start else ""
            for end in range(min(len(word), start + self.longest), start, -1):
                number = self.numbers.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return None
            numbers.append(number)
            start = end
        return tuple(numbers)

    # --- sequences for a model ---

    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Encoding:
        """`[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]` as tokens, with the characters that each stands for.

        Offsets are places in the text as it was given, (0, 0) for the special tokens that were added. What exceeds
        `max_length` is cut from the end of the longer text.
        """
        sides = [self._located_pieces(text)] + ([] if pair is None else [self._located_pieces(pair)])
        sides = _cut_sides(sides, max_length)
        edge = (0, 0)
        tokens, segments = [self.numbers[self.special.first]], [0]
        offsets: list[tuple[int, int]] = [edge]
        for segment, side in enumerate(sides):
            tokens += [number for number, _ in side] + [self.numbers[self.special.separator]]
            offsets += [place for _, place in side] + [edge]
            segments += [segment] * (len(side) + 1)
        return Encoding(tokens, segments, offsets)

    def __call__(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        max_length: int | None = None,
        device: torch.device | str | None = None,
    ) -> TokenBatch:
        """Texts, or pairs of texts, as a batch that `Bert` takes, padded at the end to the longest of them."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        seconds = [pairs] if isinstance(pairs, str) else pairs
        if not texts:
            raise ValueError("texts must hold at least 1 text, got none")
        if seconds is not None and len(seconds) != len(texts):
            raise ValueError(f"pairs must hold one text for each of the {len(texts)} texts, got {len(seconds)}")
        first, separator = self.numbers[self.special.first], self.numbers[self.special.separator]
        rows, lengths = [], []
        for text, pair in itertools.zip_longest(texts, seconds or []):
            sides = [self.numbered(text)] + ([] if seconds is None else [self.numbered(pair)])
            sides = _cut_sides(sides, max_length)
            rows.append([first, *sides[0], separator] + ([] if seconds is None else [*sides[1], separator]))
            lengths.append((len(sides[0]) + 2, len(rows[-1])))
        time, padding = max(len(row) for row in rows), self.numbers[self.special.padding]
        x = torch.tensor([row + [padding] * (time - len(row)) for row in rows], device=device)  # (batch, time)
        one, both = torch.tensor(lengths, device=device).T[..., None]  # (batch, 1) each
        places = torch.arange(time, device=device)
        mask = places < both
        return TokenBatch(x, ((places >= one) & mask).long(), mask)

    def decode(self, tokens: Int[Tensor, " time"] | Iterable[int], special: bool = False) -> str:
        """The text of tokens, words apart by one space; without the special tokens unless `special` asks for them."""
        numbers = [int(token) for token in tokens]
        if strangers := [number for number in numbers if not 0 <= number < len(self.vocab)]:
            raise ValueError(f"tokens must be from 0 to {len(self.vocab) - 1}, got {strangers[0]}")
        pieces = [self.vocab[number] for number in numbers]
        if not special:
            pieces = [piece for piece in pieces if piece not in self.special]
        return " ".join(pieces).replace(f" {CONTINUED}", "")

    def _located_pieces(self, text: str) -> list[tuple[int, tuple[int, int]]]:
        """The numbers of the pieces of a text with the characters of it, from and to, that each stands for."""
        found, place = [], 0
        for part in self._special.split(_checked_string("text", text)):
            if part in self.special:
                found.append((self.numbers[part], (place, place + len(part))))
            else:
                letters = [(each, place + at) for at, char in enumerate(part) for each in self._table[ord(char)]]
                for word, places in _word_spans(letters):
                    numbers = self._cache.get(word) or self.split(word)
                    start = 0
                    for number in numbers:
                        piece = self.vocab[number]
                        whole = len(numbers) == 1
                        size = len(word) if whole else len(piece) - len(CONTINUED) * (start > 0)
                        found.append((number, (places[start], places[start + size - 1] + 1)))
                        start += size
            place += len(part)
        return found

    # --- vocabularies ---

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        min_freq: int = 2,
        by: str = "likelihood",
        special: SpecialTokens = USUAL,
        **settings: Any,
    ) -> "WordPiece":
        """Learn a vocabulary: the characters of the texts, then pairs merged as `merged_pairs` says, best first.

        `by` = "count" merges the most frequent pairs instead, as byte-pair encoding does: texts become shorter.
        """
        cleaner = cls(special, special=special, **settings)
        counts = Counter(word for text in several_texts(texts) for word in cleaner.words(text))
        words: dict[tuple[str, ...], int] = {}
        for word, times in counts.items():
            words[(word[0], *(CONTINUED + char for char in word[1:]))] = times
        letters = sorted({piece for word in words for piece in word})
        vocab = dict.fromkeys([*special, *letters])
        if not letters:
            raise ValueError("texts must hold at least one word, got none")
        if validate.count("vocab_size", vocab_size) < len(vocab):
            raise ValueError(f"vocab_size must be >= {len(vocab)}, the characters and special tokens, got {vocab_size}")
        for pair in merged_pairs(words, by, min_freq, _join_pieces):
            if len(vocab) == vocab_size:
                break
            vocab[_join_pieces(*pair)] = None  # another pair may have made the same piece before
        return cls(list(vocab), special=special, **settings)

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> "WordPiece":
        """A tokeniser from a folder with a vocab.txt, or a tokenizer.json, and the tokenizer_config.json beside it."""
        folder = Path(folder)
        files = tokenizer_settings(folder)
        settings, vocab = _tokenizer_settings(files), folder / "vocab.txt"
        if not (folder / "tokenizer.json").exists():
            return cls(_vocab_lines(vocab), **settings)
        arguments = settings | _of_one_file(TokenizerFile(folder / "tokenizer.json"), files, settings)
        if vocab.exists() and _vocab_lines(vocab) != arguments["vocab"]:
            raise ValueError(f"{vocab} and tokenizer.json hold different pieces: remove the older of the two")
        return cls(**arguments)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write vocab.txt and tokenizer_config.json, which `BertTokenizer.from_pretrained` reads."""
        names = {f"{theirs}_token": getattr(self.special, ours) for theirs, ours in SPECIAL_FIELDS.items()}
        settings = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lower,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_chinese,
            "max_input_chars_per_word": self.max_chars,  # which theirs has always as 100
        }
        write_whole(Path(folder) / "vocab.txt", "".join(f"{piece}\n" for piece in self.vocab).encode())
        write_whole(Path(folder) / "tokenizer_config.json", (json.dumps(settings | names, indent=2) + "\n").encode())


SPECIAL_FIELDS = {"pad": "padding", "unk": "unknown", "cls": "first", "sep": "separator", "mask": "mask"}
SETTINGS = {
    "do_lower_case": "lower", "strip_accents": "strip_accents", "tokenize_chinese_chars": "split_chinese",
    "max_input_chars_per_word": "max_chars",
}  # fmt: skip
# Fields of a tokenizer_config.json, their names in a tokenizer.json, and what they are where they are not told.
NORMALISED = (
    ("do_lower_case", "lowercase", True),
    ("strip_accents", "strip_accents", None),
    ("tokenize_chinese_chars", "handle_chinese_chars", True),
)


def _tokenizer_settings(files: TokenizerSettings) -> dict[str, Any]:
    """The arguments that the files beside a vocabulary give; tokens that we would not find in a text are refused."""
    config, where = files.config, files.file
    settings = {ours: config[field] for field, ours in SETTINGS.items() if config.get(field) is not None}
    names = {ours: files.named.get(theirs) for theirs, ours in SPECIAL_FIELDS.items()}
    special = SpecialTokens(**{ours: name for ours, name in names.items() if name is not None})
    if config.get("do_basic_tokenize") is False:
        raise ValueError(f"{where}: do_basic_tokenize is false, which is not supported: texts are split at marks first")
    whole = config.get("never_split") or []
    if not isinstance(whole, list):
        raise ValueError(f"{where}: never_split must be a list of tokens, got {whole!r}")
    others = [name for name in files.named.values() if name is not None]
    _only_special([*files.added, *files.extra, *others, *whole], special, where.parent)
    return settings | {"special": special}


def _only_special(tokens: Iterable[str], special: SpecialTokens, where: Path) -> None:
    for token in tokens:
        if token not in special:
            raise ValueError(f"{where} adds the token {token!r}, which is not supported: only {', '.join(special)}")


def _of_one_file(file: TokenizerFile, files: TokenizerSettings, settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a tokenizer.json gives."""
    special: SpecialTokens = settings["special"]
    known = {"type": ("WordPiece",), "continuing_subword_prefix": (CONTINUED,), "unk_token": (special.unknown,)}
    model = file.section("model", known)
    flags = {"clean_text": (True,), "lowercase": (True, False), "handle_chinese_chars": (True, False)}
    flags |= {"type": ("BertNormalizer",), "strip_accents": (None, True, False)}
    cleaning = file.section("normalizer", flags)
    file.section("pre_tokenizer", {"type": ("BertPreTokenizer",)})
    _only_special(file.added(), special, file.file)
    vocab = file.vocab(model)
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise ValueError(f"{file.file}: the pieces must be numbered from 0 to {len(vocab) - 1} without gaps")
    if file.content.get("post_processor") or not str(files.config.get("tokenizer_class")).startswith("BertTokenizer"):
        first, end = special.first, special.separator
        file.check_template(f"{first}:0 A:0 {end}:0", f"{first}:0 A:0 {end}:0 B:1 {end}:1", vocab)
    # Hugging Face takes these from the config, and their usual values where it is silent: both must say the same.
    for field, theirs, usual in NORMALISED:
        if cleaning[theirs] != (told := files.config.get(field, usual)):
            said = f"{field} is {told!r}" if field in files.config else f"{field}, which is not there, means {told!r}"
            raise ValueError(f"{file.file}: normalizer has {theirs} {cleaning[theirs]!r}, but in {files.file} {said}")
    return {
        "vocab": sorted(vocab, key=vocab.__getitem__),
        "lower": cleaning["lowercase"],
        "strip_accents": cleaning["strip_accents"],
        "split_chinese": cleaning["handle_chinese_chars"],
        "max_chars": model.get("max_input_chars_per_word", 100),
    }


def _vocab_lines(file: Path) -> list[str]:
    """The pieces of a vocab.txt, one a line."""
    text = read_text(file).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")  # not splitlines: some pieces are separators of lines


def _join_pieces(first: str, second: str) -> str:
    return first + second.removeprefix(CONTINUED)


def _checked_string(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    return value


def _cut_sides(sides: list[list[Any]], max_length: int | None) -> list[list[Any]]:
    """Sides that fit into `max_length` with the tokens round them; the longer is cut first, from its end."""
    if max_length is None:
        return sides
    room = validate.count("max_length", max_length, least=len(sides) + 1) - len(sides) - 1
    if len(sides) == 1:
        return [sides[0][:room]]
    short, long = sorted(len(side) for side in sides)
    if short + long > room:
        short = min(short, room // 2)
        long = room - short
    sizes = (short, long) if len(sides[0]) <= len(sides[1]) else (long, short)
    return [side[:size] for side, size in zip(sides, sizes, strict=True)]


def _word_spans(letters: Iterable[tuple[str, int]]) -> Iterable[tuple[str, list[int]]]:
    """The words of cleaned characters, with the place in the text of each character."""
    for blank, group in itertools.groupby(letters, key=lambda letter: letter[0] == " "):
        if not blank:
            chars, places = zip(*group, strict=True)
            yield "".join(chars), list(places)
