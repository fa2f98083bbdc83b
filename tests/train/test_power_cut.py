"""Power cuts at every moment of a save: whatever a disk may legally have kept, a whole checkpoint is found.

The calls of a few saves are recorded. A disk must have kept what was synced before the cut; of the rest it may have
kept any part: each rename, removal or new name or not, and of unsynced content nothing, some, or as many zeros. All
these disks are made and read.
"""

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from lemmata import files
from lemmata.train import checkpoint
from lemmata.train.checkpoint import CheckpointError, newest, save

# (step, value, keep): one step is saved twice; then all but one are pruned at once
SAVES = [(1, 0.0, 3), (2, 1.0, 3), (3, 2.0, 3), (3, 3.0, 3), (4, 4.0, 3), (5, 5.0, 1), (6, 6.0, 2), (7, 7.0, 2)]
VALUES = [value for _, value, _ in SAVES]
SAVED = ("saved",)  # stands in the log where a save is complete
LONGEST_WRITE = 256  # bytes, so that a cut can fall between two writes of one file


def state(value):
    return {"weights": torch.full((4,), value), "value": value}


class Recorder:
    """Does what os does below a folder, and notes it; the disk is not waited for."""

    def __init__(self, root, monkeypatch):
        self.root, self.log, self.handles, self.inodes = root, [], {}, {}
        self.real = {name: getattr(os, name) for name in ("open", "write", "close", "replace", "unlink", "mkdir")}
        for name in (*self.real, "fsync"):
            monkeypatch.setattr(os, name, getattr(self, name))

    def open(self, path, flags, *more, **words):
        handle = self.real["open"](path, flags, *more, **words)
        path = Path(path)
        self.handles[handle] = path
        if flags & os.O_CREAT:
            self.handles[handle] = self.inodes[path] = len(self.log)
            self.log.append(("name", path, self.inodes[path]))
        return handle

    def write(self, handle, data):
        count = self.real["write"](handle, data[:LONGEST_WRITE])
        self.log.append(("write", self.handles[handle], bytes(data[:count])))
        return count

    def fsync(self, handle):
        self.log.append(("sync", self.handles[handle]))

    def close(self, handle):
        self.real["close"](handle)
        self.handles.pop(handle, None)

    def replace(self, draft, path):
        self.real["replace"](draft, path)
        self.inodes[path] = self.inodes.pop(draft)
        self.log.append(("replace", draft, path, self.inodes[path]))

    def unlink(self, path):
        self.real["unlink"](path)
        self.log.append(("unlink", path))

    def mkdir(self, path, *mode):
        self.real["mkdir"](path, *mode)
        self.log.append(("name", path, None))


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A function: what the saves of a training ask of the disk, in order."""

    def recorded():
        with monkeypatch.context() as patch:
            recorder = Recorder(tmp_path, patch)
            for step, value, keep in SAVES:
                save(tmp_path / "run" / "checkpoints", step, state(value), keep)
                recorder.log.append(SAVED)
        monkeypatch.setattr(os, "fsync", lambda handle: None)
        return recorder.log

    return recorded


@dataclass
class Disk:
    """What is certain, and what is on its way. An inode is a number, or None for a folder."""

    root: Path
    names: dict[Path, int | None] = field(default_factory=dict)  # certain names
    pending: list[tuple] = field(default_factory=list)  # changes of names, oldest first
    kept: dict[int, bytes] = field(default_factory=dict)  # certain content
    written: dict[int, bytes] = field(default_factory=dict)  # content as processes see it

    def take(self, kind, *what):
        if kind == "write":
            self.written[what[0]] = self.written.get(what[0], b"") + what[1]
        elif kind == "sync" and isinstance(what[0], int):
            self.kept[what[0]] = self.written.get(what[0], b"")
        elif kind == "sync":
            self.names = changed(self.names, [change for change in self.pending if change[1].parent == what[0]])
            self.pending = [change for change in self.pending if change[1].parent != what[0]]
        elif (kind,) != SAVED:
            self.pending.append((kind, *what))

    def after_a_cut(self):
        """Every content of the disk that a cut now may leave, as {path: bytes, or None for a folder}."""
        for chosen in itertools.product((True, False), repeat=len(self.pending)):
            names = changed(self.names, itertools.compress(self.pending, chosen))
            there = {path: inode for path, inode in names.items() if self.reachable(path.parent, names)}
            for contents in itertools.product(*(self.contents(inode) for inode in there.values())):
                yield dict(zip(there, contents, strict=True))

    def reachable(self, folder, names):
        return folder == self.root or (folder in names and self.reachable(folder.parent, names))

    def contents(self, inode):
        if inode is None:
            return [None]
        kept, written = self.kept.get(inode, b""), self.written.get(inode, b"")
        return {written} if kept == written else {kept, written, written[: len(written) // 2], bytes(len(written))}


def changed(names, changes):
    names = dict(names)
    for kind, path, *more in changes:
        if kind == "name":
            names[path] = more[0]
        else:
            names.pop(path, None)
        if kind == "replace":  # atomic; it may have lasted even where the draft's name never did
            names[more[0]] = more[1]
    return names


def cuts(log, root):
    """(disk content, values that may be found on it) for every moment and every legal loss, each once."""
    disk, complete, seen = Disk(root), 0, set()
    for entry in log:
        disk.take(*entry)
        complete += entry == SAVED
        for content in disk.after_a_cut():
            key = (frozenset(content.items()), complete)
            if key not in seen:
                seen.add(key)
                yield content, [None, *VALUES][complete : complete + 2]


def found(content, root, folder):
    """Make the disk below a folder and read the newest checkpoint on it; its value, None or "unsound"."""
    for path in sorted(content):
        target = folder / path.relative_to(root)
        target.mkdir() if content[path] is None else target.write_bytes(content[path])
    try:
        whole = newest(folder / "run" / "checkpoints")
    except CheckpointError:
        return "unsound"
    if whole is None:
        return None
    value = whole.state["value"]
    assert torch.equal(whole.state["weights"], torch.full((4,), value)), "a mixture"
    return value


def losses(log, root):
    """(what was found, what may be) for every cut at which they differ; the disks stay, in numbered folders."""
    for number, (content, allowed) in enumerate(cuts(log, root)):
        folder = root.with_name(f"{root.name}-cut") / str(number)
        folder.mkdir(parents=True)
        value = found(content, root, folder)
        if value not in allowed:
            yield value, allowed


def test_a_power_cut_leaves_the_last_checkpoint_or_the_next_one(record, tmp_path):
    assert list(losses(record(), tmp_path)) == []
    made = list(tmp_path.with_name(f"{tmp_path.name}-cut").iterdir())
    assert len(made) > 200
    for folder in made:  # and the training goes on
        save(folder / "run" / "checkpoints", 9, state(9.0))
        assert newest(folder / "run" / "checkpoints").state["value"] == 9.0
        assert not [path.name for path in folder.rglob(".*")]


def json_first(path, data, held=[]):  # noqa: B006 - what waits for its turn
    held.append((path, data))
    while path.suffix == ".json" and held:
        files.write_whole(*held.pop())


@pytest.mark.parametrize(
    ("module", "name", "lie"),
    [
        (files, "_sync_file", lambda handle: None),
        (files, "sync_folder", lambda folder: None),
        (files, "_make_folder", lambda folder, lasting: folder.mkdir(parents=True, exist_ok=True)),
        (checkpoint, "write_whole", json_first),
        (checkpoint, "_free_tensors_name", lambda folder, step: f"step-{step:08d}.safetensors"),
    ],
    ids="content-unsynced names-unsynced new-folders-unsynced json-first tensors-overwritten".split(),
)
def test_every_precaution_is_needed(record, tmp_path, monkeypatch, module, name, lie):
    monkeypatch.setattr(module, name, lie)
    assert any(losses(record(), tmp_path))
