"""The command line: `lemmata COMMAND`. The first word chooses a file of this folder; only that one is imported."""

import contextlib
import importlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType

from lemmata.lab.words import UserError

COMMANDS = {
    "check": "judge claims, ours or those in a file or folder of yours",
    "claims": "list what is claimed, by id, topic, chapter or text",
    "show": "one claim: statement, sources, misprints, verdict, evidence, and how each lie failed",
    "errata": "every remark on the sources: false and refuted, or a convention, imprecise, notation, extraction",
    "source": "every statement of one source in its order, with verdicts",
    "systems": "list what is built",
    "data": "data sets: embedded, generated, cached, fetchable, with their licences",
    "train": "train a system, or list what can be trained",
    "predict": "what a trained system says of examples",
    "sample": "what a trained system makes up",
    "restore": "undo a blur of an image of yours",
    "audit": "what theory says about a network of your own: FILE.py:NAME, or a run",
    "attack": "how many answers of a classifier withstand small changes, with its worst examples",
    "bench": "ours and each installed peer in one run: time, memory, ratio to the peer and to the limit",
    "serve": "the lab: a local page with every formula, verdict, picture and slider",
    "report": "the lab's pages as static files that open from disk",
    "doctor": "versions, devices, caches; what is missing and the command that fixes it",
}

HELP = """\
lemmata: deep learning's knowledge as software, every statement checked by machine

usage: lemmata COMMAND [options]

{commands}

  lemmata COMMAND --help   the options of one command
  lemmata --version        the version
  --debug                  with any command: show the traceback of an error

For tests of your own:
  pytest --lemmata mine.py                  claims as tests
  lemmata.testing.check_recurrence(layer)   in Python: causality, streaming, state and lengths of a recurrent layer

Listings take --json. Exit codes: 0 fine, 1 something did not hold, 2 bad use, 130 stopped by Ctrl-C.
"""


STOPPED = "stopped; what was finished is kept"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every way out is an exit code and, at most, one line on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    _open_streams()
    words = [word for word in words if word != "--debug"]
    try:
        with _ctrl_c(ends=arguments is None), _short_warnings(debug):
            return _write_all_output(words)
    except UserError as error:
        return _print_complaint(str(error), 2)
    except KeyboardInterrupt:
        return _print_complaint(STOPPED, 130)
    except BrokenPipeError:  # `lemmata claims | head`
        return 0
    except OSError as error:
        if debug:
            raise
        return _print_complaint(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 2)
    except Exception as error:
        if debug:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _print_complaint(f"a fault of lemmata itself: {what}; the same command with --debug shows where", 1)
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # nobody reads it, or the disk is full; Python would try once more at its end, and complain
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams() -> None:
    """No letter that the terminal lacks, and no stream closed by whoever started us (`>&-`), is a reason to fall."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process lives
        elif isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextlib.contextmanager
def _short_warnings(debug: bool) -> Iterator[None]:
    """A warning is a line of its own, without the line of source that gave it; --debug shows that, too."""
    before = warnings.formatwarning
    if not debug:
        warnings.formatwarning = lambda message, *_: f"lemmata: {' '.join(str(message).split())}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


@contextlib.contextmanager
def _ctrl_c(ends: bool) -> Iterator[None]:
    """Ctrl-C as usual, but the end at once where it falls into an import: numpy and torch would make a crash of it.

    With `ends` the process does: a Ctrl-C while Python lets go of its modules would only show a traceback.
    """
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        while frame and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
            frame = frame.f_back
        if not frame:
            raise KeyboardInterrupt
        with contextlib.suppress(OSError):
            os.write(2, f"lemmata: {STOPPED}\n".encode())
        os._exit(130)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ends else signal.default_int_handler)


def _write_all_output(words: list[str]) -> int:
    """The exit code of a command, once all it said is written."""
    try:
        code = _dispatch_command(words)
    except SystemExit:  # after --help
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def _dispatch_command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(HELP.format(commands="\n".join(f"  {name:{width}}   {line}" for name, line in COMMANDS.items())))
        return 0
    if words[0] in ("--version", "version"):
        from lemmata import __version__

        print(f"lemmata {__version__}")
        return 0
    command, *rest = words
    if command not in COMMANDS:
        from lemmata.catalog.search import did_you_mean

        raise UserError(f"unknown command {command!r}{did_you_mean(command, COMMANDS)}; see lemmata --help")
    module = importlib.import_module(f"lemmata.lab.cli.{command}")
    from lemmata.lab.cli.arguments import parse

    own = getattr(module, "parse_own", None)  # the options of `train` depend on the system
    return module.run(own(rest) if own else parse(module.Arguments, command, rest))


def _print_complaint(message: str, code: int) -> int:
    # What a user typed may hold the terminal's own commands (clear the screen, set its title): shown, not obeyed.
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
    with contextlib.suppress(OSError, ValueError):
        print(f"lemmata: {shown}", file=sys.stderr)
    return code
