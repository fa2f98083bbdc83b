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

from lemmata.fast import compiled_library, scan_compiled
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
    monkeypatch.setattr(compiled_library, "_compile", None)  # a second making would fail
    assert answer(tiny) == 42


def test_other_words_or_another_processor_get_their_own(tiny, cache, monkeypatch):
    assert [answer(tiny, number) for number in (1, 2)] == [1, 2]
    monkeypatch.setattr(compiled_library, "_processor", lambda: "another one")
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


def test_a_folder_open_to_others_is_closed_before_code_is_loaded_from_it(tiny, cache):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    answer(tiny)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_not_trusted(tiny, cache, monkeypatch):
    monkeypatch.setattr(compiled_library.os, "getuid", lambda: 12345)
    assert load_compiled(tiny) == (None, f"{cache} belongs to somebody else")


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


def test_a_cache_that_cannot_be_written_means_no_library(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path / "file"))
    library, problem = load_compiled(tiny)
    assert library is None
    assert "Error" in problem


def test_no_library_means_the_plain_path(monkeypatch):
    monkeypatch.setattr(scan_compiled, "_library", lambda dtype: (None, "none today"))
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
