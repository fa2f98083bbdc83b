"""Compiled code: made once, kept, made again when damaged, and done without when anything is missing."""

import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from lemmata.fast import compiled_cache, compiled_library, scan_compiled
from lemmata.fast.compiled_library import load_compiled
from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_reference import scan_by_steps

TINY = "int self_test(void) { return 0; }\nint answer(void) { return ANSWER; }\n"

pytestmark = pytest.mark.skipif(
    not any(map(compiled_library.shutil.which, compiled_library.COMPILERS)), reason="no C compiler here"
)


@pytest.fixture
def tiny(tmp_path):
    source = tmp_path / "tiny.c"
    source.write_text(TINY)
    return source


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


def answer(source, number=42):
    library, problem = load_compiled(source, [f"-DANSWER={number}"])
    assert problem == ""
    return library.answer()


def test_a_library_is_made_once_and_kept_where_only_its_owner_may_write(tiny, cache, monkeypatch):
    assert answer(tiny) == 42
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    monkeypatch.setattr(compiled_library, "_compile_library", None)  # a second making would fail
    assert answer(tiny) == 42


def test_other_words_or_another_processor_get_their_own(tiny, cache, monkeypatch):
    assert [answer(tiny, number) for number in (1, 2)] == [1, 2]
    monkeypatch.setattr(compiled_library, "_processor_features", lambda: "another one")
    answer(tiny, 2)
    tiny.write_text(TINY + "\n")
    answer(tiny, 2)
    assert len(list(cache.glob("*.so"))) == 4


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[::-1]])
def test_a_damaged_file_is_made_again(tiny, cache, damage):
    answer(tiny)
    (path,) = cache.glob("*.so")
    whole = path.read_bytes()
    path.unlink()  # this process has it mapped
    path.write_bytes(damage(whole))
    code = """
import sys
from pathlib import Path
from lemmata.fast.compiled_library import load_compiled
library, problem = load_compiled(Path(sys.argv[1]), ["-DANSWER=42"])
sys.exit(library.answer() != 42)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tiny)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == whole


PLANTED = TINY.replace("ANSWER", "666")


def plant(source, cache, monkeypatch):
    """What somebody who could write to the folder leaves there: another library under the right name, with its seal."""
    answer(source)
    (path,) = cache.glob("*.so")
    path.unlink()
    monkeypatch.setattr(compiled_library, "_failures", {})
    evil = source.with_name("evil.c")
    evil.write_text(PLANTED)
    compiled_cache.keep_library(path, compiled_library._compile_library(compiled_library.shutil.which("cc"), evil, ()))
    return path


OPEN = {
    "open to others": lambda folder, path: folder.chmod(0o777),
    "open to the group": lambda folder, path: folder.chmod(0o770),
    "file of somebody else": lambda folder, path: os.chown(path, 65534, 65534),
    "seal of somebody else": lambda folder, path: os.chown(path.with_suffix(".sha256"), 65534, 65534),
    "file open to others": lambda folder, path: path.chmod(0o666),
    "folder of somebody else": lambda folder, path: os.chown(folder, 65534, 65534),
    "parent open to others": lambda folder, path: folder.parent.chmod(0o777),
}


@pytest.mark.parametrize("way", OPEN)
def test_nothing_is_loaded_that_others_could_have_written(tiny, cache, monkeypatch, way):
    if "somebody" in way and os.getuid() != 0:
        pytest.skip("only root can give files away")
    path = plant(tiny, cache, monkeypatch)
    assert load_in_child(tiny) == 666  # what is ours alone is believed
    OPEN[way](cache, path)
    assert load_in_child(tiny) == 42


@pytest.mark.parametrize("aim", ["folder", "file"])
def test_a_link_is_not_followed(tiny, cache, monkeypatch, aim):
    path = plant(tiny, cache, monkeypatch)
    place = cache if aim == "folder" else path
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")
    assert load_in_child(tiny) == 42


def test_a_chmod_without_effect_is_noticed(tiny, cache, monkeypatch):
    plant(tiny, cache, monkeypatch)
    cache.chmod(0o777)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # as on vfat
    assert answer(tiny) == 42


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_any_umask_leaves_files_that_are_believed(tiny, cache, monkeypatch, umask):
    before = os.umask(umask)
    try:
        answer(tiny)
    finally:
        os.umask(before)
    monkeypatch.setattr(compiled_library, "_compile_library", None)
    assert answer(tiny) == 42


def test_a_library_under_the_name_of_another_is_not_loaded(tiny, cache):
    answer(tiny, 41)
    (wrong,) = cache.glob("*.so")
    answer(tiny, 42)
    (path,) = set(cache.glob("*.so")) - {wrong}
    for suffix in (".so", ".sha256"):
        wrong.with_suffix(suffix).replace(path.with_suffix(suffix))
    assert load_in_child(tiny) == 42


def test_a_fifo_or_a_folder_in_the_place_of_a_library_is_no_obstacle(tiny, cache):
    answer(tiny)
    (path,) = cache.glob("*.so")
    path.unlink()
    os.mkfifo(path)
    assert load_in_child(tiny) == 42
    assert path.is_file()  # the fifo is replaced
    path.unlink()
    path.mkdir()
    assert load_in_child(tiny) == 42  # what is in the way of our own is left alone


def load_in_child(source):
    """A process that has not loaded the file yet; its folder of its own goes with it."""
    code = """
import sys
from pathlib import Path
from lemmata.fast import compiled_cache
from lemmata.fast.compiled_library import load_compiled
library, problem = load_compiled(Path(sys.argv[1]), ["-DANSWER=42"])
assert library, problem
own = compiled_cache._own_folder.cache_info().currsize and compiled_cache.own_folder()
print(library.answer(), own or "")
"""
    done = subprocess.run([sys.executable, "-c", code, str(source)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    number, _, own = done.stdout.strip().partition(" ")
    assert not own or not Path(own).exists()
    return int(number)


# --- Failures ---


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A compiler that fails as told, and how often it was asked."""
    folder, asked = tmp_path / "bin", tmp_path / "asked"
    folder.mkdir()
    asked.write_text("")

    def make(script):
        (folder / "cc").write_text(f"#!/bin/sh\necho asked >> {asked}\n{script}\n")
        (folder / "cc").chmod(0o755)
        return lambda: len(asked.read_text().splitlines())

    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return make


def failure(source):
    compiled_library._failures.clear()  # as in another process
    library, problem = load_compiled(source)
    assert library is None
    return problem


def test_a_hanging_compiler_costs_its_time_once_for_all_libraries(tiny, cache, compiler, monkeypatch):
    monkeypatch.setattr(compiled_library, "PATIENCE", 0.3)
    asked = compiler("sleep 600 & wait")  # the grandchild holds whatever the compiler had open
    assert failure(tiny).endswith("did not end within 0.3 seconds")
    tiny.with_name("other.c").write_text(TINY)
    assert "did not end within 0.3 seconds (remembered: remove " in failure(tiny.with_name("other.c"))
    assert asked() == 1
    compiler("exit 1 # another file")
    assert failure(tiny).endswith("failed: exit code 1")


def test_a_failure_is_remembered_until_source_or_compiler_change(tiny, cache, compiler):
    asked = compiler("echo 'unknown word' >&2; exit 1")
    assert failure(tiny).endswith("failed: unknown word")
    once = asked()
    assert "failed: unknown word (remembered: remove " in failure(tiny)
    assert asked() == once
    tiny.write_text(TINY + "\n")
    failure(tiny)
    assert asked() == 2 * once
    told = failure(tiny)
    Path(told.partition("remove ")[2].removesuffix(" to try again)")).unlink()
    failure(tiny)
    assert asked() == 3 * once


def test_a_full_disk_is_not_remembered_as_a_bad_source(tiny, cache, compiler):
    asked = compiler("echo 'No space left on device' >&2; exit 1")
    assert "No space left" in failure(tiny)
    once = asked()
    failure(tiny)
    assert asked() == 2 * once


def test_without_a_compiler_there_is_no_library(tiny, cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert load_compiled(tiny) == (None, "no C compiler found: tried cc, gcc, clang")


def test_a_compiler_that_fails_is_quoted(tiny, cache, monkeypatch):
    tiny.write_text("this is not C")
    library, problem = load_compiled(tiny)
    assert library is None
    assert "failed: " in problem
    assert "error" in problem


def test_what_fails_its_own_test_or_crashes_in_it_is_not_loaded(tiny, cache):
    for body in ("return 1;", "__builtin_trap();"):
        tiny.write_text(f"int self_test(void) {{ {body} }}")
        library, problem = load_compiled(tiny)
        assert library is None
        assert "fails its test with exit code" in problem


def test_a_cache_that_cannot_be_written_means_a_library_for_this_process_alone(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "file"))
    assert answer(tiny) == 42
    assert load_in_child(tiny) == 42


@pytest.mark.parametrize("arguments", [("tiny.c",), (Path("tiny.c"), "-DREAL=float"), (Path("tiny.c"), [1])])
def test_what_is_no_source_is_refused(arguments):
    with pytest.raises(TypeError, match=r"source must be a Path|defines must be words"):
        load_compiled(*arguments)


def test_no_library_means_the_plain_path(monkeypatch):
    monkeypatch.setattr(scan_compiled, "_scan_library", lambda dtype: (None, "none today"))
    a, b = torch.rand(2, 40, 3, dtype=torch.float64), torch.randn(2, 40, 3, dtype=torch.float64)
    inputs = a.requires_grad_(), b.requires_grad_()
    z, expected = linear_scan(*inputs), scan_by_steps(*inputs)
    torch.testing.assert_close(z, expected)
    torch.testing.assert_close(torch.autograd.grad(z.sum(), inputs), torch.autograd.grad(expected.sum(), inputs))


# --- Threads ---


@pytest.fixture
def threads(monkeypatch):
    monkeypatch.setattr(scan_compiled, "WORTH_A_THREAD", 1)
    yield
    torch.set_num_threads(1)


@pytest.mark.parametrize("shape", [(1, 5, 300), (3, 5, 2), (5, 4, 600), (1, 5, 1)])
def test_the_number_of_threads_changes_no_bit(threads, shape):
    a, b, grad = torch.rand(shape), torch.randn(shape), torch.randn(shape)
    found = []
    for count in (1, 2, 3, 7):
        torch.set_num_threads(count)
        z = linear_scan(a, b)
        found.append((z, *scan_compiled.compiled_backward(a, z, None, grad, False)))
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def test_many_threads_of_python_may_scan_at_once(threads):
    torch.set_num_threads(2)
    a, b = torch.rand(4, 50, 40), torch.randn(4, 50, 40)
    expected = linear_scan(a, b)
    with ThreadPoolExecutor(4) as pool:
        assert all(torch.equal(z, expected) for z in pool.map(lambda _: linear_scan(a, b), range(20)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads: that is the point
def test_a_forked_process_starts_threads_of_its_own(threads):
    torch.set_num_threads(2)
    a, b = torch.rand(4, 50, 40), torch.randn(4, 50, 40)
    z = linear_scan(a, b)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # rather than wait for ever for threads that are gone
        os._exit(not torch.equal(linear_scan(a, b), z))
    assert os.waitpid(child, 0)[1] == 0


def test_an_interrupted_caller_leaves_its_tensors_to_the_threads_that_still_write(threads, monkeypatch):
    torch.set_num_threads(2)
    begin, done = threading.Event(), threading.Event()

    def slow(work, bounds):
        thread = threading.Thread(target=lambda: (begin.wait(), work(0, bounds[-1]), done.set()))
        thread.start()
        raise KeyboardInterrupt

    monkeypatch.setattr(scan_compiled, "share_work", slow)
    with pytest.raises(KeyboardInterrupt):
        linear_scan(torch.rand(2, 50, 40), torch.randn(2, 50, 40))
    begin.set()
    assert done.wait(60)


def test_the_source_travels_with_the_package():
    assert Path(scan_compiled.__file__).with_name("scan.c").is_file()
