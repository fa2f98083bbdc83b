r"""Omniglot: 1,623 characters of 50 alphabets, each drawn by 20 people."""

import io
import re
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.data.archives import ArchiveError, members_of
from lemmata.data.examples import Dataset, Examples
from lemmata.data.fetch import Remote
from lemmata.data.fetched import Arrays, Content, Files, Form, Source, cached_arrays
from lemmata.data.image_file import read_image
from lemmata.data.registry import dataset

__all__ = ["omniglot"]

SIDE = 105
LONGEST = 10_000  # bytes of one drawing; a bare bitmap would have 1,470
DRAWERS = 20
CHARACTERS = {"images_background.zip": 964, "images_evaluation.zip": 659}  # what may be learnt from, what is tested
URL = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"
REMOTES = (
    Remote(
        f"{URL}images_background.zip",
        9_464_212,
        "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
    ),
    Remote(
        f"{URL}images_evaluation.zip",
        6_462_886,
        "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
    ),
)


def _decode_drawings(files: Files) -> Arrays:
    drawings = [
        drawing for number, file in enumerate(CHARACTERS) for drawing in _drawings_of_archive(files[file], file, number)
    ]
    characters = sorted({drawing[:3] for drawing in drawings})
    alphabets = sorted({alphabet for _, alphabet, _ in characters})
    number_of = {character: number for number, character in enumerate(characters)}
    return {
        "bits": np.stack([bits for *_, bits in drawings]),
        "y": np.array([number_of[drawing[:3]] for drawing in drawings], np.int16),
        "drawer": np.array([drawing[3] for drawing in drawings], np.uint8),
        "part": np.array([part for part, _, _ in characters], np.uint8),
        "alphabet": np.array([alphabets.index(alphabet) for _, alphabet, _ in characters], np.uint8),
        "alphabets": np.array(alphabets),
        "classes": np.array([f"{alphabet} {number}" for _, alphabet, number in characters]),
    }


def _drawings_of_archive(content: bytes, file: str, part: int) -> Iterator[tuple[int, str, int, int, np.ndarray]]:
    """Part, alphabet, number of the character, number of the drawer, and the ink in bits."""
    pattern = re.compile(rf"{file[:-4]}/([^/]+)/character(\d+)/\d+_(\d+)\.png")
    found = dict(members_of(io.BytesIO(content), file, lambda name: LONGEST if pattern.fullmatch(name) else None))
    if len(found) != CHARACTERS[file] * DRAWERS:
        raise ArchiveError(f"{file} has {len(found):,} drawings, not {CHARACTERS[file] * DRAWERS:,}")
    for name in sorted(found):
        alphabet, character, drawer = pattern.fullmatch(name).groups()  # type: ignore[union-attr]
        yield (
            part,
            alphabet.replace("_", " "),
            int(character),
            int(drawer),
            np.packbits(_black_pixels(found[name], name)),
        )


def _black_pixels(content: bytes, name: str) -> np.ndarray:
    """Where a drawing is black."""
    picture = read_image(content)
    if picture.shape != (SIDE, SIDE):
        raise ArchiveError(f"{name} is not a picture of {SIDE} x {SIDE} pixels")
    return picture == 0


SOURCES: Mapping[str, Source] = {
    "omniglot": Source(
        "omniglot",
        REMOTES,
        "the two official files images_background.zip and images_evaluation.zip, or their folder",
        (Form(tuple(Content(remote.name, remote.size, remote.sha256) for remote in REMOTES), _decode_drawings),),
    )
}


@dataset(
    "omniglot",
    title="Characters of 50 alphabets (Omniglot)",
    task="few-shot",
    origin="fetched",
    size="19,280 + 13,180",
    shape="28 x 28 grey, or 105 x 105 black and white",
    licence="MIT",
    credit="B. M. Lake, R. Salakhutdinov and J. B. Tenenbaum, Human-level Concept Learning through Probabilistic "
    "Program Induction, Science 350, 2015",
    splits="train, test",
)
def omniglot(side: int = 28, fetch: bool = False) -> Dataset:
    r"""Characters drawn by hand, ink high, in $[0, 1]$: for learning a class from one or few examples.

    The parts share no alphabet: `train` is what the field calls the background set (30 alphabets, 964 characters),
    `test` the evaluation set (20 alphabets, 659 characters). Drawings have 105 x 105 black or white pixels; in smaller
    ones each pixel is the average over what it covers.

    Shapes:
        x: (drawings, side, side) float32, y: (drawings,) int64, the character from 0 to 1,622
        alphabet: (drawings,) int64 into extra `alphabets`, drawer: (drawings,) int64 from 1 to 20

    Source: Lake, Salakhutdinov and Tenenbaum 2015 (MIT).

    >>> omniglot(fetch=True).train  # doctest: +SKIP
    Examples(x=(19280, 28, 28), y=(19280,), alphabet=(19280,), drawer=(19280,))
    """
    validate.count("side", side, least=1, most=SIDE)
    arrays = cached_arrays(SOURCES["omniglot"], fetch)
    columns = {"y": arrays["y"], "alphabet": arrays["alphabet"][arrays["y"]], "drawer": arrays["drawer"]}
    everything = Examples(
        x=_shrink_drawings(arrays["bits"], side),
        **{name: torch.from_numpy(column.astype(np.int64)) for name, column in columns.items()},
    )
    held_out = torch.from_numpy(arrays["part"][arrays["y"]] == 1)
    parts = {"train": everything[~held_out], "test": everything[held_out]}
    return Dataset(
        "omniglot", parts, tuple(arrays["classes"].tolist()), {"alphabets": tuple(arrays["alphabets"].tolist())}
    )


def _shrink_drawings(bits: np.ndarray, side: int) -> Float[Tensor, "drawings side side"]:
    """In pieces: all drawings at once as float32 would take 1.4 GB before they are made smaller."""
    cover = torch.from_numpy(_pixel_cover(side))
    pieces = []
    for some in np.array_split(bits, max(1, len(bits) // 1000)):
        pixels = np.unpackbits(some, axis=1, count=SIDE * SIDE).reshape(-1, SIDE, SIDE)
        pieces.append(cover @ torch.from_numpy(pixels).float() @ cover.T)
    return torch.cat(pieces)


def _pixel_cover(side: int) -> np.ndarray:
    """Which share of each new pixel each old one makes up, along one axis: rows that sum to one."""
    edges = np.linspace(0, SIDE, side + 1)
    old = np.arange(SIDE)
    overlap = np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)
    return (np.clip(overlap, 0, None) * side / SIDE).astype(np.float32)
