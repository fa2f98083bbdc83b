r"""Byte-pair encoding: the pieces that GPT-2 reads, from and to the vocab.json and merges.txt that the world uses."""

import functools
import heapq
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from lemmata import validate
from lemmata.files import write_whole
from lemmata.marks import system
from lemmata.transformers.pair_merging import Pair, merged_pairs, several_texts
from lemmata.transformers.pretrained import read_config, read_text
from lemmata.transformers.tokenizer_file import TokenizerFile, TokenizerSettings, numbered_pieces, tokenizer_settings

__all__ = ["BytePairEncoding"]

END = "<|endoftext|>"  # what GPT-2 knows between two texts
CACHED_WORDS = 1 << 18  # a text's words repeat: their pieces are remembered, up to so many
# White space as Unicode has it: unlike Python's, without the separators of data 1C to 1F.
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@system("byte_pair_encoding", title="Byte-pair encoding", kind="estimator")
class BytePairEncoding:
    r"""Texts as pieces of bytes: the pair of a word's pieces that was learnt first is merged, until none is known.

    A text is split into words with the blank before them, numbers, marks and white space; each is written as its bytes
    in UTF-8, so that every text has tokens and is given back exactly. `merges` are the pairs in the order in which they
    were learnt; `vocab` gives every piece its number. A byte is written as one character (a blank as `Ġ`), as in the
    files. `BytePairEncoding.from_pretrained(folder)` reads a folder of GPT-2, `BytePairEncoding.train(texts,
    vocab_size)` learns one. It can stand where `Vocabulary` does: `len`, `encode` and `decode`.

    Shapes:
        returns: (time,)

    Source: Sennrich, Haddow and Birch 2016; Radford et al. 2019.
    Differs: letters and digits are those of Python's own Unicode tables.

    >>> tokenizer = BytePairEncoding.train(["low lower lowest", "new newer newest"], vocab_size=266)
    >>> tokenizer.tokenize("slow newest")
    ['s', 'lo', 'w', 'Ġnewe', 'st']
    >>> tokenizer.decode(tokenizer.encode("naïve ☃"))
    'naïve ☃'
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Sequence[Pair],
        special: Sequence[str] = (END,),
        add_prefix_space: bool = False,
    ) -> None:
        self.numbers = dict(vocab)
        self.pieces = {number: piece for piece, number in vocab.items()}
        if len(self.pieces) < len(self.numbers):
            raise ValueError("vocab must give every piece a number of its own: copy vocab.json again")
        self.merges = [(first, second) for first, second in merges]
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        known = [*byte_characters(), *special, *(first + second for first, second in self.merges)]
        if missing := [piece for piece in known if piece not in self.numbers]:
            raise ValueError(f"vocab must hold the piece {missing[0]!r}: the files are not of one folder")
        self.special = tuple(special)
        self.add_prefix_space = validate.flag("add_prefix_space", add_prefix_space)
        ordered = sorted(map(re.escape, special), key=len, reverse=True)
        self._special = re.compile("(" + "|".join(ordered) + ")" if ordered else "(?!)")
        self._cache: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return max(self.pieces) + 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} pieces)"

    # --- from texts to pieces and back ---

    def numbered(self, text: str) -> list[int]:
        """The numbers of the pieces of a text; the names of special tokens are taken for what they name."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        numbers: list[int] = []
        for place, part in enumerate(self._special.split(text)):
            if place % 2:
                numbers.append(self.numbers[part])
                continue
            if self.add_prefix_space and part and part[0] != " ":
                part = " " + part
            for word in word_pattern().findall(part):
                numbers.extend(self._cache.get(word) or self.split(word))
        return numbers

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text, their bytes written as characters."""
        return [self.pieces[number] for number in self.numbered(text)]

    def encode(self, text: str) -> Int[Tensor, " time"]:
        """The numbers of the pieces of a text, for a model."""
        return torch.tensor(self.numbered(text), dtype=torch.int64)

    def decode(self, tokens: Int[Tensor, " time"] | Iterable[int], special: bool = True) -> str:
        """The text of tokens; bytes that are no UTF-8, as where a character is cut, become a replacement mark."""
        numbers = [int(token) for token in tokens]
        if strangers := [number for number in numbers if number not in self.pieces]:
            raise ValueError(f"tokens must be numbers of the vocabulary, got {strangers[0]}")
        values, found = {char: value for value, char in enumerate(byte_characters())}, bytearray()
        for piece in (self.pieces[number] for number in numbers):
            if piece not in self.special:
                found.extend(values[char] for char in piece)
            elif special:
                found.extend(piece.encode())
        return found.decode(errors="replace")

    def split(self, word: str) -> tuple[int, ...]:
        """The numbers of the pieces of one word: of its pairs, the one that was learnt first is merged, and again."""
        parts = _merge_parts(_byte_characters(word), self.ranks)
        if len(self._cache) >= CACHED_WORDS:
            self._cache.clear()
        self._cache[word] = numbers = tuple(self.numbers[part] for part in parts)
        return numbers

    # --- vocabularies ---

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int, min_freq: int = 2, special: Sequence[str] = (END,)
    ) -> "BytePairEncoding":
        """Learn a vocabulary: the 256 bytes, then the pair that is most frequent, merged, and again; `special` last."""
        table = byte_characters()
        validate.count("vocab_size", vocab_size, least=len(table) + len(special))
        counts = Counter(word for text in several_texts(texts) for word in word_pattern().findall(text))
        words = {tuple(_byte_characters(word)): times for word, times in counts.items()}
        pieces, merges = dict.fromkeys(table), []
        for pair in merged_pairs(words, "count", min_freq):
            if len(pieces) + len(special) == vocab_size:
                break
            pieces[pair[0] + pair[1]] = None
            merges.append(pair)
        return cls({piece: number for number, piece in enumerate([*pieces, *special])}, merges, special)

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> "BytePairEncoding":
        """A tokeniser from a folder with a vocab.json and a merges.txt, or with a tokenizer.json."""
        folder = Path(folder)
        files = tokenizer_settings(folder)
        prefix = validate.flag("add_prefix_space", files.config.get("add_prefix_space", False))
        if (folder / "tokenizer.json").exists():
            vocab, merges, added = _of_one_file(TokenizerFile(folder / "tokenizer.json"), files)
            _check_older_files(folder, {**added, **vocab}, merges)
        else:
            vocab, merges = _read_vocab(folder / "vocab.json"), _read_merges(folder / "merges.txt")
            added = {}
        added |= files.added
        named = dict.fromkeys(("bos", "eos", "unk"), END) | files.named
        special = dict.fromkeys([*(each for each in named.values() if each is not None), *files.extra, *added])
        return cls(added | vocab, merges, list(special), prefix)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write vocab.json, merges.txt and tokenizer_config.json, which `GPT2Tokenizer.from_pretrained` reads."""
        config = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": self.add_prefix_space}
        first = self.special[0] if self.special else None  # a field that is left out would mean GPT-2's own
        config |= {f"{name}_token": first for name in ("bos", "eos", "unk")}
        plain = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False) | {"special": True}
        config["added_tokens_decoder"] = {str(self.numbers[name]): {"content": name, **plain} for name in self.special}
        lines = ["#version: 0.2", *(f"{first} {second}" for first, second in self.merges)]
        write_whole(Path(folder) / "vocab.json", json.dumps(self.numbers, ensure_ascii=False).encode())
        write_whole(Path(folder) / "merges.txt", "".join(f"{line}\n" for line in lines).encode())
        write_whole(Path(folder) / "tokenizer_config.json", (json.dumps(config, indent=2) + "\n").encode())


@functools.cache
def byte_characters() -> tuple[str, ...]:
    """The character that stands for each byte: itself where it can be seen, else the next from 256 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in seen else next(hidden)) for byte in range(256))


def _byte_characters(word: str) -> list[str]:
    """The bytes of a word as characters."""
    try:
        return [byte_characters()[byte] for byte in word.encode()]
    except UnicodeEncodeError:
        raise ValueError(f"text must be valid Unicode, got half a surrogate pair in {word!r}: remove it") from None


@functools.cache
def word_pattern() -> re.Pattern[str]:
    """What GPT-2 takes for a word: endings of English, letters, digits or marks with one blank before, white space.

    White space before a word leaves its last blank to the word. Python's own classes mix letters with digits, so they
    are written out from the tables of Unicode.
    """
    kinds: dict[str, list[str]] = {"L": [], "N": []}
    for code in range(0x110000):
        if (kind := unicodedata.category(chr(code))[0]) in kinds:
            kinds[kind].append(chr(code))
    letters, digits = (_class_of(kinds[kind]) for kind in "LN")
    return re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{digits}]+| ?[^{SPACE}{letters}{digits}]+"
        rf"|[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+"
    )


def _class_of(chars: Sequence[str]) -> str:
    """Characters as ranges within the brackets of a regular expression."""
    ends = [place for place in range(1, len(chars)) if ord(chars[place]) > ord(chars[place - 1]) + 1]
    runs = zip([0, *ends], [*ends, len(chars)], strict=True)
    return "".join(f"{re.escape(chars[start])}-{re.escape(chars[stop - 1])}" for start, stop in runs)


def _merge_parts(parts: list[str], ranks: Mapping[Pair, int]) -> list[str]:
    """Pieces whose pairs are merged, the lowest rank first and of equals the leftmost, until no pair has a rank.

    A heap of the pairs and links between neighbours: n log n steps, since a "word" may be a file without blanks.
    """
    after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
    heap = [(ranks[pair], place) for place, pair in enumerate(pairwise(parts)) if pair in ranks]
    heapq.heapify(heap)
    while heap:
        rank, place = heapq.heappop(heap)
        right = after[place]
        if right == len(parts) or ranks.get((parts[place], parts[right])) != rank:
            continue  # one of the two has been merged since with something else
        parts[place] += parts[right]
        parts[right] = ""  # no piece is empty, so that no pair with it has a rank
        after[place] = after[right]
        if after[place] < len(parts):
            before[after[place]] = place
        for left in (before[place], place):
            if left >= 0 and after[left] < len(parts):
                pair = parts[left], parts[after[left]]
                if pair in ranks:
                    heapq.heappush(heap, (ranks[pair], left))
    return [part for part in parts if part]


def _of_one_file(file: TokenizerFile, files: TokenizerSettings) -> tuple[dict[str, int], list[Pair], dict[str, int]]:
    """Vocabulary, merges and added tokens of a tokenizer.json."""
    nothing = (None, False, "")
    never = ("dropout", "byte_fallback", "ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
    model = file.section("model", {"type": ("BPE",)} | dict.fromkeys(never, nothing))
    splitting = file.section("pre_tokenizer", {"type": ("ByteLevel",), "use_regex": (True, None)})
    file.section("normalizer", {"type": (None,)})
    file.check_template("A:0", None, {})
    blank, told = splitting.get("add_prefix_space", True), files.config.get("add_prefix_space", False)
    if blank != told:  # Hugging Face takes the config's, and false where it is silent
        raise ValueError(f"{file.file}: add_prefix_space is {blank}, but {told} in {files.file}: make them agree")
    found = model.get("merges") or []
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in found] if isinstance(found, list) else found
    merges: list[Pair] = []
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(piece, str) for piece in pair):
            raise ValueError(f"{file.file}: merges must be pairs of pieces, got {pair}: copy it again")
        merges.append((pair[0], pair[1]))
    return file.vocab(model), merges, file.added()


def _check_older_files(folder: Path, numbers: Mapping[str, int], merges: list[Pair]) -> None:
    """Refuse a vocab.json or merges.txt that says anything else than the tokenizer.json beside it."""
    for name, same in (
        ("vocab.json", lambda file: _read_vocab(file).items() <= numbers.items()),
        ("merges.txt", lambda file: _read_merges(file) == merges),
    ):
        if (folder / name).exists() and not same(folder / name):
            raise ValueError(f"{folder / name} and tokenizer.json differ: remove the older of the two")


def _read_vocab(file: Path) -> dict[str, int]:
    """The pieces of a vocab.json with their numbers."""
    return numbered_pieces(read_config(file), file)


def _read_merges(file: Path) -> list[Pair]:
    """The pairs of a merges.txt, one a line, under a line with its version."""
    lines = read_text(file).replace("\r\n", "\n").split("\n")
    merges = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#version") or not line:
            continue
        parts = line.split(" ")
        if len(parts) != 2:
            raise ValueError(f"{file}, line {number}: must hold two pieces with a blank between, got {line!r}")
        merges.append((parts[0], parts[1]))
    return merges
