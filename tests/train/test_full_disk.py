"""Disks that fail at any call of a save: one clear error, the older checkpoints whole, no draft left behind."""

import errno
import itertools
import os

import pytest
import torch

from lemmata.train.checkpoint import NotSaved, newest, save

CALLS = ("open", "write", "fsync", "replace")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Faults:
    """The k-th of the calls that change a disk fails; no write takes more than `most` bytes."""

    def __init__(self, monkeypatch, k, number, most=None):
        self.left, self.number, self.most, self.hit = k, number, most, None
        for name in CALLS:
            monkeypatch.setattr(os, name, self.faulty(name, getattr(os, name)))

    def faulty(self, name, real):
        def call(*arguments, **words):
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **words)
            self.left -= 1
            if self.left == 0:
                self.hit = name
                raise OSError(self.number, os.strerror(self.number))
            return real(arguments[0], arguments[1][: self.most]) if name == "write" else real(*arguments, **words)

        return call


def state(value):
    return {"weights": torch.full((300,), float(value)), "value": value}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def failures(folder, monkeypatch, number, most, before):
    """Save step 3 with a fault at the first call, the second, ... until none is hit; what each left behind."""
    for k in itertools.count(1):
        with monkeypatch.context() as patch:
            faults = Faults(patch, k, number, most)
            try:
                save(folder, 3, state(3))
            except NotSaved as error:
                yield faults.hit, error
            else:
                assert faults.hit is None
                return
        left = names(folder)
        assert set(before) <= set(left)
        assert not [name for name in left if name.startswith(".")]
        for path in folder.glob("step-00000003*"):  # for the next fault
            path.unlink()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
@pytest.mark.parametrize("most", [None, 200], ids=["", "short-writes"])
def test_a_fault_at_any_call_keeps_the_older_checkpoints_and_says_so(tmp_path, monkeypatch, number, most):
    for step in (1, 2):
        save(tmp_path, step, state(step))
    hits = []
    for hit, error in failures(tmp_path, monkeypatch, number, most, names(tmp_path)):
        hits.append(hit)
        found = newest(tmp_path)
        assert torch.equal(found.state["weights"], state(found.step)["weights"])
        assert found.step == (3 if hits.count("replace") == 2 and hit == "fsync" else 2)  # 3: not certain to last
        assert error.errno == number
        full = number in (errno.ENOSPC, errno.EDQUOT)
        assert ("the disk is full: free some space" in str(error)) == full
        assert f"the checkpoint of step {found.step} is kept" in str(error)
        assert "\n" not in str(error)
    assert newest(tmp_path).step == 3
    assert len(names(tmp_path)) == 4
    assert [hit for hit, _ in itertools.groupby(hits)] == ["open", "write", "fsync", "replace", "fsync"] * 2
    assert len(hits) == 10 if most is None else len(hits) > 15


def test_a_first_save_that_fails_leaves_an_empty_folder(tmp_path, monkeypatch):
    Faults(monkeypatch, 8, errno.ENOSPC)
    with pytest.raises(NotSaved, match=r"the disk is full: .*; no checkpoint is there yet"):
        save(tmp_path, 1, state(1))
    assert names(tmp_path) == []


def test_a_step_saved_again_on_a_full_disk_keeps_its_first_version(tmp_path, monkeypatch):
    save(tmp_path, 1, state(1))
    for k in range(1, 10):
        with monkeypatch.context() as patch:
            Faults(patch, k, errno.ENOSPC)
            with pytest.raises(NotSaved, match="the checkpoint of step 1 is kept"):
                save(tmp_path, 1, state(2))
        assert newest(tmp_path).state["value"] == 1
        assert names(tmp_path) == ["step-00000001.json", "step-00000001.safetensors"]


def test_short_writes_alone_do_no_harm(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:11]))
    save(tmp_path, 1, state(1))
    assert newest(tmp_path).state["value"] == 1


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotSaved, match=r"the checkpoint of step 1 cannot be written to .*file/run \(Not a directory\)"):
        save(tmp_path / "file" / "run", 1, state(1))
