"""What a verdict rests on: the document of that name."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from lemmata.lab.site.markdown import markdown
from lemmata.lab.site.pages import page

router = APIRouter()

# A copy of docs/trust.md, which no wheel holds; a test compares the two.
DOCUMENT = Path(__file__).parents[2] / "trust.md"


@router.get("/trust")
def trust(request: Request) -> HTMLResponse:
    """The document as a page."""
    return page(request, "trust.html", **trust_context())


def trust_context() -> dict[str, Any]:
    """The document."""
    return {"document": markdown(DOCUMENT.read_text(encoding="utf-8"))}
