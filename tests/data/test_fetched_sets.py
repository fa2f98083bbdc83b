"""Fetched texts, molecules and drawings, from tiny archives in the layout of the real ones."""

import hashlib
import io
import json
import struct
import tarfile
import zipfile
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from lemmata.data import fetched_graphs, fetched_omniglot, fetched_text, load
from lemmata.data.archives import ArchiveError
from lemmata.data.fetched import Content, Form, keep_from


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def tgz(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def saved(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


# Two reviews of each part and label; "again" and "everywhere" occur twice.
REVIEWS = {
    ("test", "neg"): ["bad t0", "everywhere"],
    ("train", "neg"): ["everywhere", "bad t1, schön <br />"],
    ("test", "pos"): ["good t0", "good t1"],
    ("train", "pos"): ["again", "again"],
}


@pytest.fixture
def imdb(monkeypatch):
    """The source of IMDB with eight reviews, as the official archive and as the list of the npm package."""
    files = {
        f"aclImdb/{part}/{label}/{number}_{9 if label == 'pos' else 2}.txt": text.encode()
        for (part, label), texts in REVIEWS.items()
        for number, text in enumerate(texts)
    }
    rest = {"aclImdb/README": b"read me", "aclImdb/train/unsup/0_0.txt": b"unlabelled", "aclImdb/train/pos/x.txt": b"!"}
    official = tgz(rest | files)
    listed = [{"t": text, "s": int(label == "pos")} for (_, label), texts in REVIEWS.items() for text in texts]
    listed = json.dumps(listed).encode()
    monkeypatch.setattr(fetched_text, "REVIEWS", 8)
    forms = (
        Form((Content("aclImdb_v1.tar.gz", len(official), sha256(official)),), fetched_text._decode_official),
        Form(
            (Content("reviews.json", len(listed), sha256(listed), ("package/reviews.json",)),),
            fetched_text._decode_listed,
        ),
    )
    monkeypatch.setitem(fetched_text.SOURCES, "imdb", replace(fetched_text.SOURCES["imdb"], forms=forms))
    return {"official": official, "npm": tgz({"package/reviews.json": listed})}


@pytest.mark.parametrize("form", ["official", "npm"])
def test_imdb_is_the_same_from_both_archives_and_has_no_review_twice(imdb, tmp_path, form):
    keep_from(fetched_text.SOURCES["imdb"], [saved(tmp_path, "reviews", imdb[form])])
    data = load("imdb")

    def told(part):
        return [(data.extra["texts"][row], int(label)) for row, label in zip(part.text, part.y, strict=True)]

    assert told(data.train) == [("everywhere", 0), ("bad t1, schön <br />", 0), ("again", 1)]
    assert told(data.test) == [("bad t0", 0), ("good t0", 1), ("good t1", 1)]
    whole = load("imdb", duplicates=True)
    assert (len(whole.train), len(whole.test)) == (4, 4)
    assert whole.classes == ("negative", "positive")


def test_another_number_of_reviews_is_refused(imdb, tmp_path, monkeypatch):
    monkeypatch.setattr(fetched_text, "REVIEWS", 9)
    for content in imdb.values():
        with pytest.raises(ArchiveError, match="8 reviews were found, not 9"):
            keep_from(fetched_text.SOURCES["imdb"], [saved(tmp_path, "reviews", content)])


# Two molecules: a triangle of C, N, O and a pair of C, Br.
TABLES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n4, 5\n5, 4\n",
    "edge_labels": "0\n0\n1\n1\n2\n2\n3\n3\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n2\n0\n6\n",
}


@pytest.fixture
def mutag(monkeypatch):
    """The source of MUTAG with two molecules."""
    contents = tuple(Content(f"MUTAG_{name}.txt", len(t), sha256(t.encode())) for name, t in TABLES.items())
    monkeypatch.setattr(fetched_graphs, "CONTENTS", contents)
    forms = tuple(fetched_graphs._folder_files(folder) for folder in fetched_graphs.FOLDERS)
    tiny = replace(fetched_graphs.SOURCES["mutag"], forms=forms)
    monkeypatch.setitem(fetched_graphs.SOURCES, "mutag", tiny)
    return tiny


@pytest.mark.parametrize("folder", fetched_graphs.FOLDERS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_mutag_comes_from_the_wheel_or_the_collection_whatever_ends_its_lines(mutag, tmp_path, folder, ends):
    files = {f"{folder}MUTAG_{name}.txt": text.replace("\n", ends).replace(", ", ",") for name, text in TABLES.items()}
    keep_from(mutag, [saved(tmp_path, "grakel.whl", zipped(files))])
    data = load("mutag")
    triangle, pair = data.extra["molecules"]
    assert (triangle.x.argmax(1).tolist(), triangle.y) == ([0, 1, 2], 1)
    assert pair.edges.tolist() == [[0, 1], [1, 0]]
    assert pair.edge_types.tolist() == [3, 3]
    both = data.everything
    order = both.molecule.argsort()
    assert both.x[order][1, :2].argmax(1).tolist() == [0, 6]
    assert both.x[order][1, 2].abs().sum() == 0
    assert both.bonds[order][0].tolist() == [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
    assert both.y[order].tolist() == [1, 0]


def test_the_split_of_mutag_keeps_a_fifth_of_each_class_and_never_changes():
    labels = [int(row % 3 != 0) for row in range(188)]
    parts = fetched_graphs._split_by_digest(labels)
    assert sorted(torch.cat(list(parts.values())).tolist()) == list(range(188))
    assert torch.tensor(labels)[parts["test"]].bincount().tolist() == [13, 25]
    assert parts["test"][:5].tolist() == [9, 10, 14, 17, 25]


def test_molecules_that_are_none_are_refused(mutag, tmp_path):
    files = {f"MUTAG/MUTAG_{name}.txt": text for name, text in TABLES.items()}
    with pytest.raises(ArchiveError, match=r"MUTAG_A.txt is not the MUTAG_A.txt that is known"):
        keep_from(
            mutag, [saved(tmp_path, "x.zip", zipped(files | {"MUTAG/MUTAG_A.txt": TABLES["A"][::-1].strip() + "\n"}))]
        )
    del files["MUTAG/MUTAG_A.txt"]
    with pytest.raises(ArchiveError, match=r"x.zip holds no MUTAG_A.txt, so no mutag; known to hold it: the wheel of"):
        keep_from(mutag, [saved(tmp_path, "x.zip", zipped(files))])


def bitmap(ink, filtered=0, depth=1):
    """A PNG with one bit a pixel, black where there is ink; optionally each row as its difference to the row above."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = np.packbits(~ink, axis=1)
    if filtered == 2:
        rows = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), np.uint8))
    body = zlib.compress(b"".join(bytes([filtered]) + row.tobytes() for row in rows))
    header = struct.pack(">IIBBBBB", ink.shape[1], ink.shape[0], depth, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


INK = np.random.default_rng(3).random((6, 105, 105)) < 0.1


@pytest.fixture
def omniglot(monkeypatch):
    """Build the source of Omniglot, with two characters and one of two drawers each, from its six drawings."""

    def build(drawings):
        names = [
            f"images_background/{a}/character0{c}/0{c}_0{d}.png"
            for a, c in (("Greek_old", 1), ("Latin", 2))
            for d in (1, 2)
        ]
        names += [f"images_evaluation/Runes/character07/99_0{d}.png" for d in (1, 2)]
        other = {"__MACOSX/images_background/._x.png": b"?", "images_background/": b""}
        files = {
            "images_background.zip": zipped(other | dict(zip(names[:4], drawings[:4], strict=True))),
            "images_evaluation.zip": zipped(dict(zip(names[4:], drawings[4:], strict=True))),
        }
        monkeypatch.setattr(fetched_omniglot, "CHARACTERS", {"images_background.zip": 2, "images_evaluation.zip": 1})
        monkeypatch.setattr(fetched_omniglot, "DRAWERS", 2)
        contents = tuple(Content(name, len(content), sha256(content)) for name, content in files.items())
        source = replace(
            fetched_omniglot.SOURCES["omniglot"], forms=(Form(contents, fetched_omniglot._decode_drawings),)
        )
        monkeypatch.setitem(fetched_omniglot.SOURCES, "omniglot", source)
        return source, files

    return build


@pytest.mark.parametrize("filtered", [0, 2])
def test_omniglot_keeps_every_pixel_and_shrinks_by_averages(omniglot, tmp_path, filtered):
    source, files = omniglot([bitmap(ink, filtered) for ink in INK])
    keep_from(source, [saved(tmp_path, name, content) for name, content in files.items()])
    whole = load("omniglot", side=105)
    assert torch.equal(whole.everything.x, torch.from_numpy(INK).float())
    assert whole.train.y.tolist() == [0, 0, 1, 1]
    assert (whole.test.y.tolist(), whole.test.drawer.tolist()) == ([2, 2], [1, 2])
    assert whole.classes == ("Greek old 1", "Latin 2", "Runes 7")
    assert [whole.extra["alphabets"][number] for number in whole.train.alphabet] == ["Greek old"] * 2 + ["Latin"] * 2
    small = load("omniglot").train
    assert small.x.shape == (4, 28, 28)
    torch.testing.assert_close(small.x.mean((1, 2)), whole.train.x.mean((1, 2)))
    fifths = torch.from_numpy(INK[:4]).float().unfold(1, 5, 5).unfold(2, 5, 5).mean((3, 4))
    torch.testing.assert_close(load("omniglot", side=21).train.x, fifths)


@pytest.mark.parametrize("bad", [b"no picture", bitmap(INK[0][:50]), bitmap(INK[0], depth=8), bitmap(INK[0])[:-20]])
def test_drawings_that_are_none_are_refused(omniglot, tmp_path, bad):
    source, files = omniglot([bad, *(bitmap(ink) for ink in INK[1:])])
    with pytest.raises(ArchiveError) as error:
        keep_from(source, [saved(tmp_path, name, content) for name, content in files.items()])
    assert "\n" not in str(error.value)


def test_omniglot_has_a_side_that_fits(omniglot):
    with pytest.raises(ValueError, match="side must be <= 105, got 200"):
        load("omniglot", side=200)
