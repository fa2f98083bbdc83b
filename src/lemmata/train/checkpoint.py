"""Checkpoints: everything a training needs to go on, in files that survive kills, power cuts and full disks.

A checkpoint is two files. `step-00000123.safetensors` holds the tensors. `step-00000123.json` is written last and tells
the rest: the tree of the state, and length and SHA-256 of the tensors and of itself. A checkpoint exists once its JSON
is there and everything agrees. Its first line has a fixed form, so that the checksum is checked before anything is
parsed; the format number comes first in every format there will be.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from lemmata import validate
from lemmata.files import write_whole
from lemmata.train.state_tree import BROKEN, pack, unpack

__all__ = ["Checkpoint", "CheckpointError", "NotSaved", "at", "newest", "save"]

FORMAT = 1
HEAD = '{{"format": {}, "length": {}, "sha256": "{}", "content":\n'
TAIL = b"\n}\n"
HEAD_PATTERN = re.compile(rb'\{"format": 1, "length": (\d{1,9}), "sha256": "([0-9a-f]{64})", "content":\n')
FORMAT_PATTERN = re.compile(rb'\{"format": (\d{1,9}),')
FILE_PATTERN = re.compile(r"step-(\d{8,18})(?:\.json|(?:-again)?\.safetensors)")
LARGEST_JSON = 64 * 2**20  # a million plain numbers are 20 MiB
_written: dict[tuple[int, ...], str] = {}  # SHA-256 of files this process wrote, by what a change of them would change


class CheckpointError(ValueError):
    """A checkpoint that is not there, or not as it was written; the message names the file and what is wrong."""


class NotSaved(OSError):
    """A checkpoint could not be written; the message says why and which one is kept."""


@dataclass(frozen=True)
class Checkpoint:
    """What a training needs to go on."""

    step: int
    state: Any  # the tree that was saved, its tensors on the CPU
    path: Path
    messages: list[str] = field(default_factory=list)  # which newer ones were skipped, and why


def save(folder: Path, step: int, state: Any, keep: int = 2) -> Path:
    """Write the checkpoint of a step, then remove all but the newest `keep` that verify.

    A state is a tree of dicts, lists and tuples with tensors, numbers, strings, bools and None; all of them come back
    exactly. Until the new checkpoint is complete nothing else is touched, not even one of the same step.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = save(Path(folder), 5, {"weights": torch.ones(2), "lr": 0.1})
    ...     found = newest(Path(folder))
    >>> path.name, found.step, found.state
    ('step-00000005.json', 5, {'weights': tensor([1., 1.]), 'lr': 0.1})
    """
    validate.count("step", step, least=0, most=10**18)
    validate.count("keep", keep, most=10**18)
    tree, tensors = pack(state)
    data = safetensors.torch.save(tensors)  # a copy: what is hashed is what is written, whoever goes on training
    name = _free_tensors_name(folder, step)
    facts = {"file": name, "length": len(data), "header": int.from_bytes(data[:8], "little")}
    facts["sha256"] = hashlib.sha256(data).hexdigest()
    text = _json_document({"step": step, "tensors": facts, "state": tree})
    try:
        write_whole(folder / name, data)
        write_whole(_json_path(folder, step), text)
    except OSError as error:
        with contextlib.suppress(OSError):
            if _named_tensors(folder, step) != name:
                os.unlink(folder / name)
        raise _not_saved(folder, step, error) from error
    with contextlib.suppress(OSError):  # complete by now; what cannot be removed is tried again next time
        _remember_digest(folder / name, facts["sha256"])
        _prune_checkpoints(folder, step, name, keep)
    return _json_path(folder, step)


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that verifies; None if there is none at all, CheckpointError if none is sound."""
    while True:
        listed = steps_of(folder)
        messages = [f"skipped {reason}" for reason in incomplete(folder, listed[0])] if listed else []
        for step in listed:
            try:
                return _load_checkpoint(folder, step, messages)
            except CheckpointError as error:
                messages.append(f"skipped {error}")
        if not listed:
            return None
        if listed == steps_of(folder):  # else a training wrote new ones and removed these meanwhile
            reasons = "; ".join(message.removeprefix("skipped ") for message in messages)
            raise CheckpointError(f"no checkpoint in {folder} is sound ({reasons}): restore them from a copy")


def incomplete(folder: Path, last: int = -1) -> list[str]:
    """Of steps after the last that has a JSON: tensors that lack theirs, since it was deleted or is not written yet."""
    found = {step: path.name for step, path in _checkpoint_files(folder) if step > last}
    return [f"{found[step]}: {_json_path(folder, step).name} is missing" for step in sorted(found, reverse=True)]


def at(folder: Path, step: int) -> Checkpoint:
    """The checkpoint of one step, or CheckpointError."""
    steps = steps_of(folder)
    if step not in steps:
        known = ", ".join(map(str, reversed(steps))) or "none"
        raise CheckpointError(f"{folder} has no checkpoint of step {step}: there are {known}")
    return _load_checkpoint(folder, step, [])


# --- names ---


def _json_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}.json"


def _tensors_names(step: int) -> tuple[str, str]:
    return f"step-{step:08d}.safetensors", f"step-{step:08d}-again.safetensors"


def _free_tensors_name(folder: Path, step: int) -> str:
    """The name that the present checkpoint of this step, if there is one, does not need."""
    first, second = _tensors_names(step)
    return second if _named_tensors(folder, step) == first else first


def _named_tensors(folder: Path, step: int) -> str | None:
    try:
        return _checkpoint_content(folder, step)["tensors"]["file"]
    except CheckpointError:
        return None


def _checkpoint_files(folder: Path) -> list[tuple[int, Path]]:
    """(step, path) of every file that has the name of a checkpoint's."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        matches = [FILE_PATTERN.fullmatch(name) for name in os.listdir(folder)]
        return [(int(match[1]), folder / match[0]) for match in matches if match]
    return []


def steps_of(folder: Path) -> list[int]:
    """The steps of which there is a JSON file, newest first."""
    found = {step for step, path in _checkpoint_files(folder) if path == _json_path(folder, step)}
    return sorted(found, reverse=True)


# --- writing ---


def _json_document(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, allow_nan=False).encode()
    if len(text) > LARGEST_JSON:
        size = len(text) // 2**20
        raise ValueError(f"state must hold long series as tensors, its plain numbers take {size} MiB of text")
    return HEAD.format(FORMAT, len(text), hashlib.sha256(text).hexdigest()).encode() + text + TAIL


def _remember_digest(path: Path, digest: str) -> None:
    """Note what a file holds that was just written: pruning need not read it again while it is the same."""
    _written[_file_identity(path)] = digest
    while len(_written) > 32:
        del _written[next(iter(_written))]


def _file_identity(path: Path) -> tuple[int, ...]:
    facts = os.stat(path)
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _not_saved(folder: Path, step: int, error: OSError) -> NotSaved:
    try:
        kept = newest(folder)
        rest = f"the checkpoint of step {kept.step} is kept" if kept else "no checkpoint is there yet"
    except (OSError, CheckpointError) as other:
        rest = str(other)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        text = f"the disk is full: free some space for {folder} and resume; {rest}"
    else:
        text = f"the checkpoint of step {step} cannot be written to {folder} ({error.strerror or error}); {rest}"
    failure = NotSaved(text)
    failure.errno = error.errno
    return failure


def _prune_checkpoints(folder: Path, step: int, name: str, keep: int) -> None:
    """Remove what the checkpoint of this step made needless."""
    oldest = _oldest_kept(folder, step, keep)
    needless = [path for other, path in _checkpoint_files(folder) if other < oldest]
    needless.sort(key=lambda path: path.suffix)  # .json first: without its tensors it would look damaged
    needless += [folder / other for other in _tensors_names(step) if other != name]
    for path in needless:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _oldest_kept(folder: Path, step: int, keep: int) -> int:
    """The step of the last of `keep` sound checkpoints, from this step down; 0 if there are no more than that."""
    candidates = [older for older in steps_of(folder) if older <= step]
    sound = 0
    for older in candidates if len(candidates) > keep else ():
        sound += older == step or _is_sound(folder, older)
        if sound == keep:
            return older
    return 0


# --- reading ---


def _load_checkpoint(folder: Path, step: int, messages: list[str]) -> Checkpoint:
    path = _json_path(folder, step)
    content = _checkpoint_content(folder, step)
    data = _checkpoint_tensors(folder, content)
    try:
        state = unpack(content["state"], safetensors.torch.load(data))
    except (*BROKEN, safetensors.SafetensorError, AssertionError) as error:  # only a forger gets here
        raise CheckpointError(f"{path.name}: its tree and its tensors do not fit ({_short_error(error)})") from None
    return Checkpoint(step, state, path, messages)


def _is_sound(folder: Path, step: int) -> bool:
    try:
        content = _checkpoint_content(folder, step)
        facts = content["tensors"]
        if _written.get(_file_identity(folder / facts["file"])) != facts["sha256"]:
            _checkpoint_tensors(folder, content)
    except (OSError, LookupError, CheckpointError):
        return False
    return True


def _checkpoint_content(folder: Path, step: int) -> dict[str, Any]:
    """What the JSON says, once its own length and checksum are right."""
    path = _json_path(folder, step)
    data = _read_whole(path)
    made = FORMAT_PATTERN.match(data)
    if made and int(made[1]) > FORMAT:
        raise CheckpointError(f"{path.name}: made by a newer lemmata: upgrade")
    head = HEAD_PATTERN.match(data)
    if not head:
        raise CheckpointError(f"{path.name}: it does not begin as a checkpoint does")
    text = memoryview(data)[head.end() : -len(TAIL)]
    if len(text) != int(head[1]) or not data.endswith(TAIL):
        raise CheckpointError(f"{path.name}: it has {len(text)} bytes of content, not {int(head[1])}")
    if hashlib.sha256(text).hexdigest().encode() != head[2]:
        raise CheckpointError(f"{path.name}: its checksum does not match")
    try:
        content = json.loads(bytes(text), parse_constant=_refuse_constant)
        if content["step"] == step and content["tensors"]["file"] in _tensors_names(step):
            return content
    except BROKEN as error:
        raise CheckpointError(f"{path.name}: it is no checkpoint ({_short_error(error)})") from None
    raise CheckpointError(f"{path.name}: it belongs to another step")


def _checkpoint_tensors(folder: Path, content: dict[str, Any]) -> bytes:
    """The bytes of the tensors' file, once length, checksum and the length of its header are as promised."""
    facts = content["tensors"]
    path = folder / facts["file"]
    data = _read_whole(path, facts.get("length"))
    if hashlib.sha256(data).hexdigest() != facts.get("sha256"):
        raise CheckpointError(f"{path.name}: its checksum does not match")
    if int.from_bytes(data[:8], "little") != facts.get("header"):
        raise CheckpointError(f"{path.name}: its header is not as long as promised")
    return data


def _read_whole(path: Path, length: int | None = None) -> bytes:
    """A file of the promised length, or of any that a JSON file may have; it is known before a byte is read."""
    try:
        if not path.is_file():  # a pipe would keep us waiting
            raise CheckpointError(f"{path.name}: missing" if not path.exists() else f"{path.name}: not a file")
        size = path.stat().st_size
        if length is not None and size != length:
            raise CheckpointError(f"{path.name}: it has {size} bytes, not {length}")
        if length is None and size > LARGEST_JSON + 2**10:
            raise CheckpointError(f"{path.name}: it has {size} bytes, more than any checkpoint")
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path.name}: cannot be read ({error.strerror})") from None


def _short_error(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
