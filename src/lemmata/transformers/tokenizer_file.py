r"""Files beside a vocabulary: a tokenizer.json, which holds everything in one, and those that name special tokens."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lemmata.transformers.pretrained import read_config

__all__ = ["TokenizerFile"]

# What would change a text's tokens and is done by neither of our tokenisers.
NOT_DONE = ("add_bos_token", "add_eos_token", "split_special_tokens")
EXTRA = ("additional_special_tokens", "extra_special_tokens")  # the same in versions 4 and 5


class TokenizerSettings(NamedTuple):
    """What a folder says beside the vocabulary: the fields of its config, and the tokens that are no text."""

    file: Path
    config: dict[str, Any]
    named: dict[str, str | None]  # by role: bos, eos, unk, pad, cls, sep, mask and others; None where none is wanted
    extra: tuple[str, ...]  # without a role
    added: dict[str, int]  # tokens that are looked for in a text before anything else, with their numbers


def tokenizer_settings(folder: Path) -> TokenizerSettings:
    """What tokenizer_config.json, special_tokens_map.json and added_tokens.json say, as far as they are there."""
    file, tokens_map, older = (
        folder / name for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    )
    config = read_config(file) if file.exists() else {}
    for field in NOT_DONE:
        if config.get(field):
            raise ValueError(f"{file}: {field} is {config[field]!r}, which is not supported: only false")
    decoder = _checked_object(config.get("added_tokens_decoder"), "added_tokens_decoder", file)
    added = dict(added_token(number, token, file) for number, token in decoder.items())
    named, extra = _special_tokens(config, file)
    if "added_tokens_decoder" not in config:  # newer folders have there what older ones have in two more files
        if tokens_map.exists():
            more, others = _special_tokens(read_config(tokens_map), tokens_map)
            for role in named.keys() & more.keys():
                if named[role] != more[role]:
                    told = f"{role}_token is {more[role]!r}, but {named[role]!r} in {file.name}"
                    raise ValueError(f"{tokens_map}: {told}: make them agree")
            named, extra = named | more, extra + others
        if older.exists():
            added |= numbered_pieces(read_config(older), older)
    return TokenizerSettings(file, config, named, tuple(dict.fromkeys(extra)), added)


def _special_tokens(config: Mapping[str, Any], where: Path) -> tuple[dict[str, str | None], list[str]]:
    """The special tokens that a file names by their roles, and those without one."""
    named, extra = {}, []
    for field, value in config.items():
        if field in EXTRA:
            values = value.values() if isinstance(value, dict) else value or []
            if not isinstance(values, Iterable) or isinstance(values, str):
                raise ValueError(f"{where}: {field} must be a list of tokens, got {value!r}")
            extra += [_token_text(each, field, where) for each in values]
        elif field.endswith("_token") and not field.startswith("add_"):
            named[field.removesuffix("_token")] = None if value is None else _token_text(value, field, where)
    return named, extra


def _token_text(token: Any, field: str, where: Path) -> str:
    """The text of a token, which is told as it is or with its flags."""
    if isinstance(token, str) and token:
        return token
    return added_token(0, _checked_object(token, field, where), where)[0]


class TokenizerFile:
    """What a tokenizer.json says; what a tokeniser of ours would do otherwise is refused by name."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.content = read_config(file)

    def section(self, name: str, wanted: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """One part of the file, such as its normalizer, each of whose fields must have one of the values given."""
        found = _checked_object(self.content.get(name), name, self.file)
        for field, values in wanted.items():
            if found.get(field) not in values:
                asked = " or ".join(map(repr, values))
                raise ValueError(
                    f"{self.file}: {name} has {field} {found.get(field)!r}, which is not supported: {asked}"
                )
        return found

    def vocab(self, model: Mapping[str, Any]) -> dict[str, int]:
        """The number of every piece of the model."""
        return numbered_pieces(model.get("vocab"), self.file)

    def added(self) -> dict[str, int]:
        """The tokens that are looked for in a text before anything else, with their numbers."""
        tokens = self.content.get("added_tokens") or []
        if not isinstance(tokens, list):
            raise ValueError(f"{self.file}: added_tokens must be a list, got {type(tokens).__name__}: copy it again")
        each = (_checked_object(token, "an added token", self.file) for token in tokens)
        return dict(added_token(token.get("id"), token, self.file) for token in each)

    def check_template(self, single: str, pair: str | None, numbers: Mapping[str, int]) -> None:
        """Refuse a post_processor that puts other tokens round a text (A), or a pair of them (A and B), than these.

        Tokens are told as "[CLS]:0 A:0 [SEP]:0", each with its segment.
        """
        found = self.section("post_processor", {"type": (None, "ByteLevel", "TemplateProcessing", "BertProcessing")})
        kind, said, tokens = found.get("type"), {"single": "A:0", "pair": "A:0 B:1"}, {}
        if kind == "TemplateProcessing":
            said = {name: _template_text(found.get(name)) for name in said}
            parts = _checked_object(found.get("special_tokens"), "special_tokens", self.file)
            tokens = {name: _checked_object(part, name, self.file).get("ids") for name, part in parts.items()}
        elif kind == "BertProcessing":
            (first, number), (end, other) = (self._token_and_number(found, role) for role in ("cls", "sep"))
            said = {"single": f"{first}:0 A:0 {end}:0", "pair": f"{first}:0 A:0 {end}:0 B:1 {end}:1"}
            tokens = {first: [number], end: [other]}
        for name, wanted in (("single", single), ("pair", pair)):
            if wanted is not None and said[name] != wanted:
                raise ValueError(
                    f"{self.file}: post_processor makes {said[name]!r} of a {name}, which is not supported: {wanted!r}"
                )
        for token, ids in tokens.items():
            if ids != [numbers.get(token)]:
                raise ValueError(f"{self.file}: post_processor writes {token} as {ids}, but the vocab does not")

    def _token_and_number(self, found: Mapping[str, Any], role: str) -> tuple[str, Any]:
        """A token and its number, which a post_processor tells as a list of two."""
        pair = found.get(role)
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{self.file}: {role} of post_processor must be a token and its number, got {pair!r}")
        return str(pair[0]), pair[1]


def _template_text(parts: Any) -> str:
    """A template in words: tokens and the texts A and B, each with its segment."""
    told = []
    for part in parts if isinstance(parts, list) else []:
        (inside,) = part.values() if isinstance(part, dict) and len(part) == 1 else (None,)
        told.append(f"{inside.get('id')}:{inside.get('type_id')}" if isinstance(inside, dict) else repr(part))
    return " ".join(told)


def numbered_pieces(found: Any, where: Path) -> dict[str, int]:
    """Pieces with their numbers, as a file has them."""
    if not isinstance(found, dict) or not all(type(number) is int and number >= 0 for number in found.values()):
        raise ValueError(f"{where}: the vocab must give every piece a number: copy it again")
    return found


def added_token(number: Any, token: Any, where: Path) -> tuple[str, int]:
    """A token that a file adds to its vocabulary, and its number; one that takes blanks with it is refused."""
    name = _checked_object(token, "an added token", where).get("content")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{where}: an added token must have a content, got {name!r}: copy it again")
    if asked := [field for field in ("lstrip", "rstrip", "single_word") if token.get(field)]:
        raise ValueError(f"{where}: the added token {name!r} has {asked[0]}, which is not supported: only false")
    if isinstance(number, bool | float) or not str(number).isdecimal():
        raise ValueError(f"{where}: the added token {name!r} must have a number, got {number!r}")
    return name, int(number)


def _checked_object(found: Any, name: str, where: Path) -> dict[str, Any]:
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{where}: {name} must be an object, got {type(found).__name__}: copy it again")
    return found or {}
