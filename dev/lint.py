"""`python3 dev.py lint [--fix]`: ruff, import-linter and basedpyright."""

from installation import BIN
from stages import PYTHON, stage

TYPES = ("basedpyright", BIN / "basedpyright")
REPAIR = "`python3 dev.py lint --fix` repairs what can be repaired"


def style(fix: bool = False) -> None:
    """What takes seconds: ruff and import-linter."""
    if fix:
        stage("stubs", PYTHON, "-m", "lemmata.lazy")
    look = [BIN / "ruff", "check", "--output-format=concise"]
    stage("ruff check", *look, *(["--fix"] if fix else []), fix="" if fix else REPAIR)
    stage("ruff format", BIN / "ruff", "format", *([] if fix else ["--check"]), fix=REPAIR)
    stage("import-linter", BIN / "lint-imports", "--no-logo")


def main(*words: str) -> None:
    style(fix="--fix" in words)
    stage(*TYPES)
