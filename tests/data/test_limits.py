"""Small files that ask for much memory, pipes and devices in the place of files, and numbers near the largest."""

import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from lemmata.data import FileChoices, load_file, read_image
from lemmata.data.array_file import read_arrays
from lemmata.data.limits import memory_limit, read_regular
from lemmata.data.tables import _check_names

MB = 10**6


def peak(work):
    """The most bytes of Python and numpy at a time, and what came of it."""
    tracemalloc.start()
    try:
        found = work()
    except ValueError as error:
        found = error
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most, found


def chunk(kind, body):
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def png(width, height, rows, colour=0):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def arrays(path, shape=(1000, 8000), dtype="f8"):
    np.savez_compressed(path, x=np.zeros(shape, dtype), y=np.arange(shape[0]) % 2)
    return path


def categories(path):
    rows = [",".join(f"c{(row + column) % 400}" for column in range(10)) + f",{row % 2}" for row in range(900)]
    path.write_text("\n".join([",".join([*(f"a{k}" for k in range(10)), "y"]), *rows]))
    return path


# --- Memory ---


def test_a_small_archive_that_holds_large_arrays_is_refused_by_its_headers(tmp_path):
    path = arrays(tmp_path / "a.npz")
    assert path.stat().st_size < MB
    most, said = peak(lambda: load_file(path, max_memory=20 * MB))
    assert f"{path}: x and y in it needs 64 MB, more than the 20 MB of max_memory" in str(said)
    assert most < MB
    np.save(tmp_path / "b.npy", np.zeros((1000, 1000)))
    with pytest.raises(ValueError, match="the array needs 8 MB, more than the 1 MB of max_memory"):
        read_arrays(tmp_path / "b.npy", max_memory=MB)


def test_a_header_that_promises_more_than_there_is_takes_nothing(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(10))
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content.replace(b"(10,), }" + b" " * 12, b"(10000000000000,), }"))
    with pytest.raises(ValueError, match=r"needs 8e\+04 GB, more than"):
        read_arrays(tmp_path / "a.npy")


def test_a_picture_is_refused_by_its_header():
    content = png(13000, 13000, bytes(10 * MB))
    most, said = peak(lambda: read_image(content, max_memory=100 * MB))
    assert "the image of 13000 x 13000 needs 1.01 GB, more than the 100 MB of max_memory" in str(said)
    assert most < MB
    with pytest.raises(ValueError, match="the image of 10000 x 10000 needs 600 MB, more than the 100 MB"):
        read_image(b"P5 10000 10000 255 x", max_memory=100 * MB)


def test_categories_are_counted_before_they_become_inputs(tmp_path):
    path = categories(tmp_path / "a.csv")
    most, said = peak(lambda: load_file(path, max_memory=20 * MB))
    assert "900 rows of 4000 inputs, one for each number or category, needs 28.8 MB, more than the 20 MB" in str(said)
    assert most < 4 * MB
    with pytest.raises(ValueError, match=r"a file of 43.6 kB, needs 218 kB, more than the 100 kB of max_memory"):
        load_file(path, max_memory=MB // 10)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("f8", (1000, 3000)), ("f4", (1000, 50, 60)), ("u1", (1000, 50, 60)), ("i8", (3000, 1000))]
)
def test_arrays_take_less_than_twice_what_they_declare(tmp_path, dtype, shape):
    path = arrays(tmp_path / "a.npz", shape, dtype)
    declared = 3 * MB * (np.dtype(dtype).itemsize + 4)  # as they are stored, and in single precision
    most, data = peak(lambda: load_file(path))
    assert data.train.x.shape[1:] == shape[1:]
    assert most + 4 * 3 * MB < 2 * declared + 8 * MB  # torch holds the two parts; blocks are widened


def test_pictures_and_tables_take_less_than_twice_what_they_declare(tmp_path):
    rows = (b"\4" + bytes(range(200)) * 15) * 1000
    most, picture = peak(lambda: read_image(png(1000, 1000, rows, colour=2)))
    assert picture.shape == (1000, 1000, 3)
    assert most < 12 * MB  # what Pillow itself holds, 4 bytes a pixel, is not seen here
    most, data = peak(lambda: load_file(categories(tmp_path / "a.csv")))
    assert data.train.x.shape == (720, 4000)
    assert most < 2 * 4 * 900 * 4000


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "1GB", True])
def test_a_limit_is_a_number_of_bytes(wrong):
    with pytest.raises(ValueError, match="max_memory must be a number of bytes"):
        memory_limit(wrong)


# --- Pipes, devices, names ---


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", ["a.csv", "a.npz", "pics/cat/a.png"])
def test_pipes_and_devices_are_not_waited_for(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    asked = tmp_path / "pics" if "pics" in name else path
    with pytest.raises(ValueError, match=r"must be a regular file|holds no image"):
        load_file(asked)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"must be a regular file|holds no image"):
        load_file(asked)
    with pytest.raises(ValueError, match="must be a regular file"):
        read_regular(path)


def test_names_of_columns_are_not_compared_pair_by_pair():
    compared = []

    class Name(str):
        __hash__ = str.__hash__
        __slots__ = ()

        def __eq__(self, other):
            compared.append(other)
            return str(self) == str(other)

    _check_names(Path("a.csv"), tuple(Name(f"column {k}") for k in range(3000)))
    assert len(compared) < 3000


# --- Numbers near the largest and the smallest ---


@pytest.mark.parametrize("size", [1e308, 1.7e308, 1e-200, 5e-310])
@pytest.mark.parametrize("kind", ["csv", "npz", "npz of pictures"])
def test_columns_of_any_size_are_standardised(tmp_path, size, kind):
    random = np.random.default_rng(0)
    x = random.choice([-1.0, -0.5, 0.5, 1.0], (60, 2)) * size
    y = x[:, 0]
    if kind == "csv":
        path = tmp_path / "a.csv"
        path.write_text(
            "\n".join(["a,b,y", *(f"{a!r},{b!r},{c!r}" for (a, b), c in zip(x.tolist(), y.tolist(), strict=True))])
        )
    else:
        path = tmp_path / "a.npz"
        np.savez(path, x=x if kind == "npz" else x[:, :, None], y=y)
    data = load_file(path, FileChoices(task="regression"))
    for values in (data.train.x.flatten(1), data.train.y[:, None]):
        assert values.isfinite().all()
        assert values.mean().abs() < 0.2
        assert 0.8 < values.std(0).mean() < 1.2
    kept = data.extra["preparation"]
    assert torch.equal(kept.read(path).x[:0], data.train.x[:0])
    assert kept.read(path).y.isfinite().all()


def test_what_lies_too_far_from_what_was_learnt_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a,y", *(f"{k * 1e-30},{k % 2}" for k in range(20))]))
    kept = load_file(path).extra["preparation"]
    (tmp_path / "new.csv").write_text("a\n1e20\n2e20\n")
    with pytest.raises(ValueError, match=r"new\.csv, column a: 1e\+20 is too far from the mean .* correct or exclude"):
        kept.read(tmp_path / "new.csv")
