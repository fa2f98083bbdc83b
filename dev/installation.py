"""`.venv` beside dev.py: made, mended, and everything run in it; standard library only.

Kept readable by Python 3.6, as dev.py is.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
VENV = HERE / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
STAMP = VENV / "lemmata-setup.json"
LOG = VENV / "pip.log"

FULL_DISK = "the disk is full: free 3 GB, or 10 GB for a CUDA build of torch, and run this again"
READ_ONLY = "cannot write in {}: give the folder to your user, or copy the project to one of your own"
NO_NETWORK = "pip cannot reach its package index: check the network or proxy (HTTPS_PROXY, PIP_INDEX_URL), run again"
NO_NETWORK_SIGNS = (
    "NewConnectionError|NameResolutionError|name resolution|ConnectTimeoutError|ReadTimeoutError|Read timed out|"
    "ProxyError|Network is unreachable|Connection refused|Connection reset|SSLError|Could not fetch URL"
)
NO_CPU_BUILD = "no CPU build of torch on offer: name a place in PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS, or unset TORCH"
NO_TORCH = "no torch for this Python here: use Python 3.11 to 3.14 on 64-bit Linux, Windows or an Apple-silicon Mac"
NO_VENV = "this Python has no {}: `sudo apt install python{}.{}-venv` (Debian, Ubuntu) or use a complete Python"


class Failed(Exception):
    """A sentence for the user, and the exit code that goes with it."""

    def __init__(self, sentence, code=1):
        super().__init__(sentence)
        self.code = code


def say(line):
    print(line, flush=True)


# ---------------------------------------------------------------- running things


def environment():
    """Ours for every child: `.venv` first, nothing leaking in from another environment."""
    # Without bytecode, hundreds of processes that the tests start would each compile the library anew: a minute in all.
    foreign = ("PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PIP_TARGET", "PIP_PREFIX")
    env = {k: v for k, v in os.environ.items() if k not in foreign}
    env.update(VIRTUAL_ENV=str(VENV), PATH=str(BIN) + os.pathsep + env.get("PATH", ""))
    env.update(PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    return env


def spawn(command, variables=None, **more):
    env = dict(environment(), **(variables or {}))
    return subprocess.Popen([str(c) for c in command], cwd=str(HERE), env=env, **more)


def call(*command, variables=None):
    """Runs in the foreground and returns the exit code; Ctrl-C lets the child finish its sentence."""
    child = spawn(command, variables)
    try:
        code = child.wait()
    except KeyboardInterrupt:
        try:
            child.wait(timeout=20)
        finally:  # still there, or a second Ctrl-C
            child.kill()
            raise KeyboardInterrupt
    if code == -2:
        raise KeyboardInterrupt
    return code if code >= 0 else 128 - code


def output(*command):
    """(exit code, everything it printed), with the current line shown live on a terminal."""
    child = spawn(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
    live, lines = sys.stdout.isatty(), []
    try:
        for line in child.stdout or ():
            lines.append(line)
            if live and line.strip():
                width = shutil.get_terminal_size().columns - 1
                sys.stdout.write("\r\033[K" + ("    " + line.strip())[:width])
                sys.stdout.flush()
        return child.wait(), "".join(lines)
    finally:
        if live:
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()
        if child.stdout:
            child.stdout.close()
        if child.poll() is None:
            child.kill()
            child.wait()


def pip(*arguments):
    code, text = output(BIN / "python", "-m", "pip", *arguments, "--progress-bar", "off")
    if code == -2:
        raise KeyboardInterrupt
    if code:
        raise failure("pip", text)


def failure(who, text):
    """One sentence with the fix where we know it, and the whole story in a file; else the whole story."""
    sentence = explain(text)
    if not sentence:
        sys.stderr.write(text)
        return Failed(f"{who} failed; its words are above")
    with contextlib.suppress(OSError):
        LOG.write_text(text, encoding="utf-8")
        sentence += f" (in full: {LOG})"
    return Failed(sentence)


def explain(text):
    for signs, sentence in (
        ("No space left on device|Disk quota exceeded", FULL_DISK),
        ("Permission denied|Read-only file system", READ_ONLY.format(HERE)),
        (NO_NETWORK_SIGNS, NO_NETWORK),
        ("No matching distribution found for {0}+cpu|Cannot install {0}+cpu".format(torch_pin()), NO_CPU_BUILD),
        ("No matching distribution found for torch", NO_TORCH),
    ):
        if any(sign in text for sign in signs.split("|")):
            return sentence
    return FULL_DISK if shutil.disk_usage(str(HERE)).free < 2e7 else ""  # venv does not say why it failed


def explain_os(error):
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return READ_ONLY.format(Path(error.filename).parent if error.filename else HERE)
    return FULL_DISK if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)


# ---------------------------------------------------------------- setup


def torch_pin():
    for line in (HERE / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("torch=="):
            return line.split("#")[0].strip()
    return "torch"


def torch_wanted(recorded):
    """`TORCH` if it is set, else what the environment was made with: `test` must not undo `TORCH=system setup`."""
    wanted = os.environ.get("TORCH") or recorded or "default"
    if wanted not in ("default", "cpu", "system"):
        raise Failed(f"TORCH must be cpu, system or unset, got {wanted!r}", 2)
    return wanted


def stamp_read():
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def stamp_write(**stamp):
    """Atomic, so that a stamp that says `finished` was finished."""
    draft = STAMP.with_suffix(".tmp")
    draft.write_text(json.dumps(stamp), encoding="utf-8")
    os.replace(str(draft), str(STAMP))


def inputs(python, torch):
    """What an installation depends on. The path too: the scripts of an environment do not survive a move."""
    digest = hashlib.sha256("\0".join([python, torch, str(HERE)]).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


PROBE = """
import importlib.metadata as m, importlib.util as u, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
found = u.find_spec("lemmata")
print(json.dumps({
    "python": "%d.%d.%d" % sys.version_info[:3], "new": sys.version_info >= (3, 11), "pip": version("pip"),
    "torch": version("torch") if u.find_spec("torch") else "", "lemmata": found.origin if found else ""}))
"""


def probe():
    """What lives in `.venv`: versions and places, or None when its Python does not even start."""
    try:
        done = subprocess.run(
            [str(BIN / "python"), "-I", "-c", PROBE],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        found = json.loads(done.stdout.decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None
    scripts = [shutil.which(s, path=str(BIN)) for s in ("lemmata", "pytest", "ruff", "basedpyright", "lint-imports")]
    ours = found["lemmata"] and HERE in Path(found["lemmata"]).resolve().parents
    found["complete"] = bool(all(scripts) and ours and found["torch"])
    return found


def base_python():
    """The interpreter behind an active environment: ours must not hang on somebody else's."""
    return getattr(sys, "_base_executable", None) or sys.executable


def create(doubt):
    for module in ("venv", "ensurepip"):  # Debian packs both apart from Python
        if find_spec(module) is None:
            raise Failed(NO_VENV.format(module, *sys.version_info[:2]))
    if VENV.exists():
        say(f"Making .venv anew: {doubt}")
    say("Creating .venv with Python {}.{}.{}".format(*sys.version_info[:3]))
    VENV.mkdir(exist_ok=True)
    stamp_write(finished="")  # first of all, and it outlives the emptying: cut short from here on means half-made
    for old in VENV.iterdir():
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(str(old))
        elif old != STAMP:
            old.unlink()
    code, text = output(base_python(), "-m", "venv", VENV)
    if code:
        raise failure("python3 -m venv", text)


def system_torch():
    """Where the Python that runs this file keeps its torch."""
    python = base_python() if Path(sys.prefix).resolve() == VENV else sys.executable
    look = "import torch, pathlib; print(torch.__version__); print(pathlib.Path(torch.__file__).parent.parent)"
    done = subprocess.run([python, "-c", look], capture_output=True)
    if done.returncode:
        raise Failed(f"TORCH=system, but {python} cannot import torch: install it there, or unset TORCH")
    version, place = done.stdout.decode().split("\n")[:2]
    if tuple(int(part) for part in version.split("+")[0].split(".")[:2]) < (2, 10):
        raise Failed(f"TORCH=system found torch {version}: 2.10 or newer is needed, or unset TORCH")
    return place


def install(torch):
    say("Installing lemmata and what it needs (torch is 0.1 to 3 GB of it)")
    extra = [torch_pin() + "+cpu"] if torch == "cpu" and sys.platform.startswith("linux") else []
    pip("install", "-c", "constraints.txt", "-e", ".[dev]", *extra)


def install_around(place):
    """All but torch as usual; then one line in a .pth file appends the place where torch already is.

    Unlike `--system-site-packages` this works for the torch of an active environment too, and
    whatever else lives there stands behind our own packages and shadows none of them.
    """
    import tomllib  # 3.11; this function is never reached on less

    say(f"Installing what lemmata needs around the torch in {place}")
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    pip("install", "-c", "constraints.txt", *[w for w in wanted if not w.startswith("torch")])
    pip("install", "--no-deps", "-e", ".")
    code, text = output(BIN / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    if code:
        raise Failed(text)
    Path(text.strip(), "lemmata-system-torch.pth").write_text(place + "\n", encoding="utf-8")


@contextlib.contextmanager
def alone():
    """One setup at a time. The lock is this very file: no litter, and it dies with its holder."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(__file__, "rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another setup to finish")
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # some network drives know no locks
        yield


def distrust(stamp, found, torch):
    """Why `.venv` must be made anew; empty for a sound one, made by us or by hand, that pip can bring up to date."""
    if stamp.get("finished") == "":
        return "the last setup was cut short"
    if stamp.get("home", str(HERE)) != str(HERE):
        return "the folder was moved or copied"
    if stamp.get("torch", torch) != torch:
        return f"TORCH={torch} is new"
    if not found or not found["pip"] or (stamp and not found["complete"]):
        return "it is damaged"
    return "" if found["new"] else "its Python {python} is too old".format(**found)


def setup():
    with alone():
        stamp, found = stamp_read(), probe()
        torch = torch_wanted(stamp.get("torch"))
        if not (found and found["complete"] and stamp.get("finished") == inputs(found["python"], torch)):
            found = build(distrust(stamp, found, torch), torch)
        say("Ready: Python {python}, torch {torch} in .venv".format(**found))


def build(doubt, torch):
    place = system_torch() if torch == "system" else None
    if doubt:
        create(doubt)
    stamp_write(finished="", torch=torch, home=str(HERE))
    if place:
        install_around(place)
    else:
        install(torch)
    code, text = output(BIN / "python", "-I", "-c", "import torch, lemmata")
    found = probe()
    if code or not found or not found["complete"]:
        sys.stderr.write(text)
        raise Failed("the installation is incomplete: run `python3 dev.py setup` again, which makes it anew")
    stamp_write(finished=inputs(found["python"], torch), torch=torch, home=str(HERE))
    return found
