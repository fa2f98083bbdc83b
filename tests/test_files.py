"""Files that are whole or not there: short writes, failures at every call, and the drafts of the dead."""

import errno
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lemmata import files
from lemmata.files import DRAFT, remove_dead_drafts, sync_folder, write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("lasting", [True, False])
def test_a_file_is_written_and_replaced_whole_in_a_folder_that_need_not_exist(tmp_path, lasting):
    path = tmp_path / "a" / "b" / "file"
    for data in (b"old", b"", b"new" * 100_000):
        write_whole(path, data, lasting)
        assert path.read_bytes() == data
    assert names(path.parent) == ["file"]


def test_a_file_is_for_whoever_the_user_shares_with(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_short_writes_are_continued(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    write_whole(tmp_path / "file", bytes(range(256)))
    assert (tmp_path / "file").read_bytes() == bytes(range(256))


def test_a_disk_that_takes_nothing_is_an_error_and_not_an_endless_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda handle, data: 0)
    with pytest.raises(OSError, match="takes no more"):
        write_whole(tmp_path / "file", b"x")
    assert names(tmp_path) == []


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "bad"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch, call, failure):
    write_whole(tmp_path / "file", b"old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(failure)):
        write_whole(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_the_draft_of_a_killed_process_is_removed_by_the_next_write(tmp_path):
    program = (
        "import os, signal, sys; from pathlib import Path; from lemmata import files\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_whole(Path(sys.argv[1]), b'x')"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")])
    assert done.returncode == -9
    (draft,) = names(tmp_path)
    assert draft.startswith(".file.")
    write_whole(tmp_path / "other", b"x")
    assert names(tmp_path) == ["other"]


def test_the_draft_of_a_living_process_stays_until_it_is_done(tmp_path, monkeypatch):
    replace, seen = os.replace, []

    def remove_and_replace(draft, path):
        remove_dead_drafts(tmp_path)  # at the last moment at which the draft has its name
        seen.extend(names(tmp_path))
        replace(draft, path)

    monkeypatch.setattr(os, "replace", remove_and_replace)
    write_whole(tmp_path / "file", b"x")
    assert len(seen) == 1
    assert seen[0].endswith(DRAFT)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("moment", ["before the lock", "during the lock"])
def test_a_writer_whose_fresh_draft_was_taken_for_dead_begins_another(tmp_path, monkeypatch, moment):
    flock, calls = fcntl.flock, []

    def lose_the_first_race(handle, kind):
        calls.append(handle)
        if len(calls) == 1:
            os.unlink(tmp_path / names(tmp_path)[0])
            if moment == "during the lock":
                raise BlockingIOError
        flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", lose_the_first_race)
    write_whole(tmp_path / "file", b"x")
    assert len(calls) == 2
    assert names(tmp_path) == ["file"]


def test_where_there_are_no_locks_files_are_written_and_no_draft_is_removed(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / f".x.1{DRAFT}").touch()
    write_whole(tmp_path / "file", b"x")
    assert names(tmp_path) == [f".x.1{DRAFT}", "file"]


def test_without_fcntl_files_are_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    write_whole(tmp_path / "file", b"x")
    assert names(tmp_path) == ["file"]


def test_many_writers_in_one_folder_do_not_disturb_each_other(tmp_path):
    def write(number):
        write_whole(tmp_path / f"file-{number % 3}", bytes([number]) * 5000, lasting=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    assert names(tmp_path) == ["file-0", "file-1", "file-2"]
    for number in range(3):
        data = (tmp_path / f"file-{number}").read_bytes()
        assert data == data[:1] * 5000


def test_only_drafts_are_removed(tmp_path):
    (tmp_path / "precious").write_bytes(b"x")
    others = [".file.tmp", "file.tmp", f"file{DRAFT}", ".hidden", f".x{DRAFT}.old"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / f".link{DRAFT}").symlink_to(tmp_path / "precious")
    (tmp_path / f".folder{DRAFT}").mkdir()
    os.mkfifo(tmp_path / f".pipe{DRAFT}")
    (tmp_path / f".dead{DRAFT}").touch()
    before = names(tmp_path)
    remove_dead_drafts(tmp_path)
    assert set(before) - set(names(tmp_path)) == {f".dead{DRAFT}"}
    assert (tmp_path / "precious").read_bytes() == b"x"


def test_a_file_that_need_not_last_waits_for_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("waited"))
    write_whole(tmp_path / "new" / "file", b"x", lasting=False)


def test_a_drive_that_cannot_sync_folders_is_accepted_and_a_failing_one_is_not(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", fail)
    number = errno.EINVAL
    sync_folder(tmp_path)
    number = errno.EIO
    with pytest.raises(OSError, match="no"):
        sync_folder(tmp_path)
