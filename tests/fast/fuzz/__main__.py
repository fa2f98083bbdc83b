"""Every public call of lemmata.fast, and every operator, with broken arguments: no crash, and no garbage for an answer.

    python -m tests.fast.fuzz --calls 10000 [--seed 0] [--address]

The calls are made in a child process; what it was about to call stands in a file before it calls it, so that a crash
has a name. With --address the C libraries are compiled with AddressSanitizer, which sees every read and write beside an
array (gcc with libasan). `--only NAME --first N --calls 1` repeats one call.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ADDRESS = ("-fsanitize=address", "-fno-omit-frame-pointer", "-g", "-O1")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fast.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--address", action="store_true")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        return _call_all(asked)
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note"
        note.write_text("the start")
        command = [sys.executable, "-m", "tests.fast.fuzz", *sys.argv[1:], "--child", str(note)]
        code = subprocess.run(command, env=_environment(asked.address, folder)).returncode
        if code not in (0, 1):
            print(f"the process ended with {code} in {note.read_text()}")
        return int(code != 0)


def _environment(address: bool, folder: str) -> dict[str, str]:
    """Libraries in a folder of their own: those of the sanitizer must not be loaded by others."""
    environment = os.environ | {"LEMMATA_CACHE": folder, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    if not address:
        return environment | {"LEMMATA_CACHE": os.environ.get("LEMMATA_CACHE", folder)}
    preloaded = []
    for name in ("libasan.so", "libstdc++.so.6"):  # the second, since torch throws exceptions that the first looks at
        asked = ["gcc", f"-print-file-name={name}"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        preloaded.append(os.path.realpath(found))
    # Python frees nothing at its end, and the sanitizer would call that a leak.
    options = "detect_leaks=0:halt_on_error=1:abort_on_error=0:exitcode=99:allocator_may_return_null=1"
    return environment | {"LD_PRELOAD": ":".join(preloaded), "ASAN_OPTIONS": options}


def _call_all(asked: argparse.Namespace) -> int:
    import faulthandler

    import torch

    from lemmata.fast import compiled_library

    faulthandler.enable()
    torch.set_num_threads(2)
    if asked.address:
        compiled_library.FLAGS = (*compiled_library.FLAGS, *ADDRESS)
        compiled_library.COMPILERS = ("gcc",)
    from tests.fast.fuzz import calls

    return calls.run(asked.calls, asked.seed, asked.first, asked.only, Path(asked.child), asked.address)


if __name__ == "__main__":
    sys.exit(main())
