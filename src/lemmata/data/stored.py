"""The files that travel inside the package, each checked against its digest before it is believed."""

import gzip
import hashlib
import io
from pathlib import Path

import numpy as np

__all__ = []  # for the loaders of this folder; users meet only the data sets

FOLDER = Path(__file__).parent / "embedded"

# SHA-256. Hashing the largest file takes about a millisecond, so every load does it.
DIGESTS = {
    "breast_cancer.npz": "a8b19581936a5af7f461949a8071dfd8873a7452697509f8e277524eb4647f9f",
    "debian_graph.npz": "a68dad4fa5d9216caeee82767e7d33a832cc6a1dcb6df6bfa9b3098bdc041970",
    "diabetes.npz": "84be04b1c2c84dc9fcda64184ec47f00d6d7c2cda05d51b08ff2158d53d08feb",
    "digits.npz": "37589a6f6485d7a4b49f25c5a26a7d420f8f0273416c9fcc64bfca17e023f99e",
    "fashion.npz": "f548c305304db927a6c60ee3a40e6f46bd73ba3657b8dd2c0db1cfdaee09733b",
    "furniture.npz": "ccb572f900225bc184644f7049db6bd9a5c13688eeb1d0ce9dab4a90e74ee04a",
    "glyphs.npz": "d93ddc1b0b4596188694c07d8186d13c0ded6b373d81673f86605d7cfa928f02",
    "karate.npz": "5d76d463aa520945b15c91c5bbfe124a24bd61c2699234396761542cc12c637c",
    "photos.npz": "dc8efe8ebfb7a47689d3cca3f4bac66803491dd44a1215c49c14683b1df49a73",
    "shakespeare.txt.gz": "b039bf342a014aae9d087674be8cf9663e171481d484a5442602ec3ea778f3f1",
    "speech.npz": "e775bc3e45bf3d5f5536f44aacdb2e1a20353f32bc63fb767e37d881fa276892",
    "verses_en_de.tsv.gz": "b361155ff0aeeed01d613ac27490bb67b0e79e058f9e1da191dcf40baa302932",
}


def stored_bytes(file: str) -> bytes:
    """An embedded file as it was published, or a sentence that says what happened to it."""
    try:
        content = (FOLDER / file).read_bytes()
    except OSError as error:
        why = "missing" if isinstance(error, FileNotFoundError) else f"unreadable ({error.strerror})"
        raise ValueError(f"the embedded file {file} is {why}: install lemmata again") from None
    if hashlib.sha256(content).hexdigest() != DIGESTS[file]:
        raise ValueError(f"the embedded file {file} is damaged: install lemmata again")
    return content


def stored_arrays(file: str) -> dict[str, np.ndarray]:
    """The arrays of an embedded .npz file by name."""
    with np.load(io.BytesIO(stored_bytes(file)), allow_pickle=False) as arrays:
        return dict(arrays)


def stored_text(file: str) -> str:
    """The text of an embedded .gz file."""
    return gzip.decompress(stored_bytes(file)).decode("utf-8")
