"""The same command on several processes: torch's launcher, without its noise."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lemmata.lab.words import UserError
from lemmata.workers import end_with_parent

HANGUP = getattr(signal, "SIGHUP", None)  # a closed terminal; Windows has none


def run_processes(words: list[str], procs: int, folder: Path) -> int:
    """Run `lemmata train` with these words in so many processes that share each batch; the exit code."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(procs)]
    command += ["-m", "lemmata", "train", *_words_without(words, "--out", "--procs"), "--out", str(folder)]
    threads = str(max(1, (os.cpu_count() or 1) // procs))
    environment = {"OMP_NUM_THREADS": threads, **os.environ}
    # A process group of its own, so that Ctrl-C comes once, from us: a worker takes a second one for "at once".
    launcher = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
        preexec_fn=end_with_parent if os.name == "posix" else None,  # kill -9 of us must not leave it training
    )
    with _forwarding_signals(launcher) as asked:
        _, noise = launcher.communicate()
    if asked:
        print(f"lemmata: {how_to_resume(words[0], folder, procs)}", file=sys.stderr)
        return 128 + asked[0]
    said = _process_messages(noise)
    if launcher.returncode == 0:
        for line in said:
            print(line, file=sys.stderr)
        return 0
    if not said:
        last = next((line.strip() for line in reversed(noise.splitlines()) if line.strip()), "it said nothing")
        raise UserError(f"a process failed: {last}")
    print(said[0], file=sys.stderr)
    code = re.search(r"exitcode\s*:\s*(\d+)", noise)
    return int(code.group(1)) if code else 1


def how_to_resume(system: str, folder: Path, procs: int = 1) -> str:
    """What to tell whoever stopped a training run."""
    if not any((folder / "checkpoints").glob("*.json")):
        return "stopped before there was anything to keep"
    shared = f" --procs {procs}" if procs > 1 else ""
    return f"stopped; go on with: lemmata train {system} --resume --out {folder}{shared}"


@contextlib.contextmanager
def _forwarding_signals(launcher: subprocess.Popen) -> Iterator[list[int]]:
    """Pass Ctrl-C, SIGTERM and a hang-up on to the launcher, which passes them on to its processes and waits."""
    asked: list[int] = []

    def forward(number: int, frame: Any) -> None:
        asked.append(number)
        launcher.send_signal(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    numbers += [HANGUP] if HANGUP and signal.getsignal(HANGUP) is not signal.SIG_IGN else []  # nohup has us ignore it
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _process_messages(noise: str) -> list[str]:
    """What processes of ours wrote for people, each line once."""
    return list(dict.fromkeys(line for line in noise.splitlines() if line.startswith("lemmata: ")))


def _words_without(words: list[str], *options: str) -> list[str]:
    """The words less these options and their values."""
    kept, skip = [], False
    for word in words:
        if not skip and word not in options and not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
        skip = word in options
    return kept
