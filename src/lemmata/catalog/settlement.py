"""How a remark on a source is settled: refuted by a lie that says it, read in one of four ways, or open."""

from collections.abc import Mapping
from typing import Any, Protocol

from lemmata.catalog.entries import Catalog
from lemmata.catalog.statements import Erratum

__all__ = ["contract", "settlement"]


class Judged(Protocol):
    """A claim's last result, of which only the lies matter here."""

    @property
    def lies(self) -> Any: ...


def settlement(catalog: Catalog, results: Mapping[str, Judged], id: str, erratum: Erratum) -> str:
    """As the catalog says, unless the last verdict shows that the lie was not rejected."""
    settled = catalog.settled(id, erratum)
    if settled == "refuted" and id in results:
        rejected = [lie["rejected"] for lie in results[id].lies if lie["printed"] == erratum.key]
        return "refuted" if rejected and all(rejected) else "open"
    return settled


def contract(catalog: Catalog, known: Mapping[str, Judged], id: str, erratum: Erratum) -> dict[str, Any]:
    """The stable JSON form of a remark."""
    fields = {key: getattr(erratum, key) for key in ("source", "number", "printed", "problem", "correct")}
    return {"id": id} | fields | {"settled": settlement(catalog, known, id, erratum)}
