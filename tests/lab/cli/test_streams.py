"""Closed streams, full disks and Ctrl-C at a bad moment: an exit code and at most one line, never a traceback."""

import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest

from lemmata.lab import cli
from lemmata.lab.cli import main

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def lemmata(*words, shell="", **streams):
    """(exit code, stderr) of a process of its own; the shell may close or redirect its streams."""
    command = [sys.executable, "-m", "lemmata", *words]
    if shell:
        command = ["/bin/sh", "-c", f'exec "$@" {shell}', "sh", *command]
    environment = BUFFERED | {"LEMMATA_CACHE": os.environ["LEMMATA_CACHE"]}
    done = subprocess.run(command, stderr=subprocess.PIPE, env=environment, **streams)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("words", [["--version"], ["claims"], ["train", "--json"], ["systems", "--help"]], ids=" ".join)
def test_a_reader_that_is_gone_is_no_error(words):
    """As in `lemmata claims | head -1`; what a buffer still holds counts too."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert lemmata(*words, stdout=writing) == (0, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("words", [["--version"], ["claims"]], ids=" ".join)
def test_a_closed_stdout_is_no_fault(words):
    assert lemmata(*words, shell=">&-") == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line():
    assert lemmata("--version", shell=">/dev/full") == (2, "lemmata: No space left on device\n")


def test_with_both_streams_closed_the_exit_code_speaks():
    assert lemmata("systems", shell=">&- 2>&-") == (0, "")
    assert lemmata("nonsense", shell=">&- 2>&-") == (2, "")


# --- Ctrl-C ---


INTERRUPTED = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    [0 for _ in range(99)]
except BaseException:
    raise AttributeError("module has no attribute 'multiply'") from None
"""


def test_ctrl_c_in_an_import_ends_at_once_as_usual(tmp_path):
    """An import that is interrupted makes other errors of it, and torch a crash; so it is no exception there."""
    (tmp_path / "tyro.py").write_text(INTERRUPTED)
    environment = BUFFERED | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "lemmata", "systems"]
    done = subprocess.run(command, capture_output=True, env=environment | {"LEMMATA_CACHE": str(tmp_path)})
    assert (done.returncode, done.stderr.decode()) == (130, "lemmata: stopped; what was finished is kept\n")


def test_ctrl_c_elsewhere_is_the_usual_exception(capsys, monkeypatch):
    monkeypatch.setattr("lemmata.catalog.load", lambda: signal.raise_signal(signal.SIGINT))
    assert main(["claims"]) == 130
    assert capsys.readouterr().err == "lemmata: stopped; what was finished is kept\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_at_the_end_of_the_process_ctrl_c_is_too_late(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["lemmata", "--version"])
    try:
        assert main() == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_handlers_of_others_and_other_threads_are_left_alone(monkeypatch):
    mine = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, mine)
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]


def test_a_warning_is_one_line_and_whole_with_debug(monkeypatch):
    before, lines = warnings.formatwarning, []
    formatted = lambda words: lines.append(warnings.formatwarning("more\nsteps", UserWarning, "a.py", 7)) or 0  # noqa: E731
    monkeypatch.setattr(cli, "_write_all_output", formatted)
    assert main(["claims"]) == main(["claims", "--debug"]) == 0
    assert lines[0] == "lemmata: more steps\n"
    assert lines[1].startswith("a.py:7: UserWarning: more\nsteps")
    assert warnings.formatwarning is before
