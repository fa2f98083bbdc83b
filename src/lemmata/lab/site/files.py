"""Static files, from a fixed listing: a request names one of the names we know, and never becomes a path."""

import re
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response

__all__ = ["assets_edition", "listing"]

HERE = Path(__file__).parent
FOLDERS = {"static": HERE / "static", "assets": HERE / "assets"}
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
EDITION = r"v-[0-9a-f]+-[0-9a-f]+"
router = APIRouter()


def listing(folder: Path) -> dict[str, Path]:
    """Name -> file, for what a folder holds now, since assets may come while the lab runs; no symbolic links."""
    paths = sorted(folder.rglob("*")) if folder.is_dir() else []
    plain = [path for path in paths if path.suffix in KINDS and path.is_file() and not path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path for path in plain}


@router.get("/static/{name:path}")
def static(request: Request, name: str) -> Response:
    """A style sheet or script of ours."""
    return _file_response(request, FOLDERS["static"], name)


@router.get("/assets/{name:path}")
def asset(request: Request, name: str) -> Response:
    """A font, style sheet or script of others; under the name of its edition it never changes."""
    edition, _, rest = name.partition("/")
    if not re.fullmatch(EDITION, edition):
        return _file_response(request, FOLDERS["assets"], name)
    answer = _file_response(request, FOLDERS["assets"], rest)
    if edition == assets_edition(FOLDERS["assets"]):
        answer.headers["cache-control"] = "public, max-age=31536000, immutable"
    return answer


def assets_edition(folder: Path) -> str:
    """The edition of the assets in a folder, as a part of their address: another one whenever they are built anew."""
    try:
        facts = (folder / "built.json").stat()
    except OSError:
        return ""
    return f"v-{facts.st_mtime_ns:x}-{facts.st_size:x}"


def _file_response(request: Request, folder: Path, name: str) -> Response:
    path = listing(folder).get(name)
    if path is None:
        raise HTTPException(404, "there is no such file")
    facts = path.stat()
    tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
    headers = {"etag": tag, "cache-control": "no-cache"}  # kept, but asked about: a new version is seen at once
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=headers)
