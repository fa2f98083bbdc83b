#!/usr/bin/env python3
"""One door to the project: `python3 dev.py WORD`, standard library only.

Everything happens in `.venv` next to this file, whatever environment is active and
whatever folder it is called from. The file is kept readable by Python 3.6, so that an old
Python gets as far as the sentence that says what is needed.
"""

import difflib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "dev"))

import installation
from installation import BIN, HERE, Failed

NEEDS = (3, 11)

HELP = """\
python3 dev.py WORD

  setup      make .venv and install lemmata in it, editable; seconds when nothing changed
  run        setup (2 minutes), then judge every instant and quick claim (2 to 5 minutes on two cores the first time,
             seconds after that; more words go to `lemmata check`)
  test       setup, then lint, types, instant and quick claims, and the tests that are not slow: about 10 minutes on
             two cores (more words go to pytest); `test --all` is what CI runs, everything: about 35 minutes
  lint       ruff, import-linter, basedpyright; `lint --fix` repairs what can be repaired
  wheel      build a wheel into dist/
  chapter    what a chapter brings, measured: `chapter recurrent --seeds 16 --mutate 0.1`
  mutate     break the code in one place after the other: who notices? (docs/mutation.md)
  slow       mark the tests that took over 2 CPU seconds in the last `test --all`
  torture    hours: every claim under sixteen seeds, fuzzed kernels, mutation of every chapter, the long tests

  TORCH=system   reuse the torch (2.10 or newer) of the Python that runs this file
  TORCH=cpu      insist on the CPU build, where your package index or PIP_FIND_LINKS offers it
"""


def run_word(*more):
    code = installation.call(BIN / "lemmata", "check", *more)
    if not shutil.which("lemmata") and os.name != "nt":
        installation.say("  (lemmata lives in .venv: type `source .venv/bin/activate` first)")
    return code


def wheel_word():
    dist = HERE / "dist"
    dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=str(dist)) as fresh:
        # Fonts and formulas; without a network it says so.
        installation.call(BIN / "python", "-m", "lemmata.lab.site.assets")
        installation.say("Building the wheel")
        installation.pip("wheel", "--no-deps", "-w", fresh, ".")
        (built,) = Path(fresh).glob("*.whl")
        wheel = dist / built.name
        os.replace(str(built), str(wheel))
    installation.say(f"{wheel}  {wheel.stat().st_size / 1e3:.0f} kB")


def script(name):
    """The `main` of a file of the folder dev, imported when it is wanted: it may need a newer Python than this file."""
    return lambda *more: importlib.import_module(name).main(*more)


WORDS = {
    "setup": lambda: None,
    "run": run_word,
    "test": script("suite"),
    "lint": script("lint"),
    "wheel": wheel_word,
    "chapter": script("chapter"),
    "mutate": script("mutation"),
    "slow": script("slow"),
    "torture": script("torture"),
}
ALONE = ("setup", "wheel", "slow", "torture")  # words that take no other


def newer_python():
    for name in ("python3.14", "python3.13", "python3.12", "python3.11"):
        if shutil.which(name) and not subprocess.call([name, "-c", ""], stderr=subprocess.DEVNULL):
            return name
    return ""


def act(arguments):
    word, more = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if word in ("help", "-h", "--help"):
        print(HELP, end="")
        return 0
    if sys.version_info < NEEDS:
        fix = f"run `{newer_python()} dev.py {word}`" if newer_python() else "install one and run this with it"
        raise Failed(f"lemmata needs Python 3.11 or newer and this is {sys.version.split()[0]}: {fix}", 2)
    if word not in WORDS:
        near = difflib.get_close_matches(word, WORDS, 1)
        raise Failed(
            f"no such word: {word}; {f'did you mean {near[0]}?' if near else 'the words are ' + ', '.join(WORDS)}", 2
        )
    if more and word in ALONE:
        raise Failed("{} takes nothing more, got {}".format(word, " ".join(more)), 2)
    if word == "lint" and more not in ([], ["--fix"]):
        raise Failed("lint takes --fix or nothing, got {}".format(" ".join(more)), 2)
    installation.setup()
    return WORDS[word](*more) or 0


def main(arguments):
    """Every way out is a sentence: no traceback for what the user can mend."""
    try:
        return act(arguments)
    except Failed as failure:
        print(f"dev.py: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        print("\ndev.py: stopped", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"dev.py: {installation.explain_os(error)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
