r"""A tokenizer.json: vocabulary and settings of a tokeniser in one file, which newer folders hold instead of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lemmata.transformers.pretrained import read_config

__all__ = ["TokenizerFile"]


class TokenizerFile:
    """What a tokenizer.json says; what a tokeniser of ours would do otherwise is refused by name."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.content = read_config(file)

    def section(self, name: str, wanted: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """One part of the file, such as its normalizer, each of whose fields must have one of the values given."""
        found = self.content.get(name) or {}
        if not isinstance(found, dict):
            raise ValueError(f"{self.file}: {name} must be an object, got {type(found).__name__}: copy it again")
        for field, values in wanted.items():
            if found.get(field) not in values:
                asked = " or ".join(map(repr, values))
                raise ValueError(
                    f"{self.file}: {name} has {field} {found.get(field)!r}, which is not supported: {asked}"
                )
        return found

    def vocab(self, model: Mapping[str, Any]) -> dict[str, int]:
        """The number of every piece of the model."""
        found = model.get("vocab")
        if not isinstance(found, dict) or not all(isinstance(number, int) for number in found.values()):
            raise ValueError(f"{self.file}: the vocab must give every piece a number: copy it again")
        return found

    def added(self) -> dict[str, int]:
        """The tokens that are looked for in a text before anything else, with their numbers."""
        return dict(added_token(token.get("id"), token, self.file) for token in self.content.get("added_tokens") or [])


def added_token(number: int | str | None, token: Mapping[str, Any], where: Path) -> tuple[str, int]:
    """A token that a file adds to its vocabulary, and its number; one that takes blanks with it is refused."""
    name = str(token.get("content"))
    if asked := [field for field in ("lstrip", "rstrip", "single_word") if token.get(field)]:
        raise ValueError(f"{where}: the added token {name!r} has {asked[0]}, which is not supported: only false")
    try:
        return name, int(number)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{where}: the added token {name!r} must have a number, got {number!r}") from None
