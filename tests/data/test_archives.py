"""Archives: the wanted members and nothing else, however the archive was made; every fault is one line."""

import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from lemmata.data import archives
from lemmata.data.archives import ArchiveError, gunzip, idx_array, idx_bytes, members, npy_array

WANTED = {"package/a.txt": 10, "package/b.bin": 100_000}
FILES = {"package/package.json": b"{}", "package/a.txt": b"hello", "package/b.bin": bytes(range(256)) * 300}
RIGHT = {name: FILES[name] for name in WANTED}


def tar(files, **header):
    """The bytes of a tar archive; `header` goes to every member."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in header.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def zipped(files, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def deb(data, name=b"data.tar.xz"):
    def member(name, content):
        return (
            b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"100644", len(content))
            + content
            + b"\n" * (len(content) % 2)
        )

    return b"!<arch>\n" + member(b"debian-binary", b"2.0\n") + member(b"control.tar.xz", b"xyz") + member(name, data)


def read(folder, content, wanted=WANTED):
    path = folder / "archive"
    path.write_bytes(content)
    return dict(members(path, wanted.get))


def refuse(folder, content, wanted=WANTED, match=""):
    with pytest.raises(ArchiveError, match=match) as error:
        read(folder, content, wanted)
    assert "\n" not in str(error.value)


def tried(folder, content):
    """What is found, or nothing where the archive is refused; any other error falls through."""
    try:
        return read(folder, content)
    except ArchiveError as error:
        one_line = "\n" not in str(error)
    assert one_line
    return {}


@pytest.mark.parametrize(
    "content",
    [
        tar(FILES),
        gzip.compress(tar(FILES)),
        lzma.compress(tar(FILES)),
        bz2.compress(tar(FILES)),
        zipped(FILES),
        zipped(FILES, zipfile.ZIP_STORED),
        deb(lzma.compress(tar(FILES))),
        deb(gzip.compress(tar(FILES)), b"data.tar.gz"),
        deb(tar(FILES), b"data.tar"),
    ],
    ids=["tar", "tar.gz", "tar.xz", "tar.bz2", "zip", "stored", "deb", "deb.gz", "deb.tar"],
)
def test_every_kind_of_archive_gives_the_wanted_members(tmp_path, content):
    assert read(tmp_path, content) == RIGHT


def test_a_folder_gives_the_files_that_lie_in_it(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a", "b", "deep/c"):
        (tmp_path / name).write_text(name)
    assert dict(members(tmp_path, {"a": 9, "c": 9, "deep": 9, "deep/c": 9, "d": 9}.get)) == {"a": b"a"}


def test_a_file_whose_own_name_is_wanted_is_not_opened_as_an_archive(tmp_path):
    content = gzip.compress(tar(FILES))
    assert read(tmp_path, content, {"archive": len(content)}) == {"archive": content}
    refuse(tmp_path, content, {"archive": len(content) - 1}, match="archive is larger than")


def test_names_are_compared_and_never_followed(tmp_path):
    odd = {"../a.txt": b"1", "/package/a.txt": b"2", "./package/a.txt": b"3", "package/../package/a.txt": b"4"}
    for pack in (tar, zipped):
        assert read(tmp_path, pack(odd)) == {}
    assert not list(tmp_path.parent.glob("a.txt"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_no_members(tmp_path, kind):
    assert read(tmp_path, tar({"package/a.txt": b""}, type=kind, linkname="/etc/passwd")) == {}


def test_an_archive_inside_an_archive_is_not_opened(tmp_path):
    assert read(tmp_path, zipped({"inner.zip": zipped(FILES), "inner.tgz": gzip.compress(tar(FILES))})) == {}


@pytest.mark.parametrize("pack", [tar, zipped], ids=["tar", "zip"])
def test_a_member_above_its_limit_is_refused(tmp_path, pack):
    refuse(tmp_path, pack({"package/a.txt": b"x" * 11}), match="package/a.txt is larger than the 10 bytes")
    assert read(tmp_path, pack({"package/a.txt": b"x" * 10})) == {"package/a.txt": b"x" * 10}


def test_a_bomb_is_read_no_further_than_its_limit(tmp_path, monkeypatch):
    refuse(tmp_path, zipped({"package/a.txt": bytes(10_000_000)}), match="larger")
    with pytest.raises(ArchiveError, match=r"x.gz is larger than the 10 bytes"):
        gunzip(gzip.compress(bytes(10_000_000)), 10, "x.gz")
    monkeypatch.setattr(archives, "LONGEST", 1 << 20)
    refuse(tmp_path, gzip.compress(tar({"other": bytes(10_000_000)} | FILES)), match="damaged or cannot be read: more")


def test_sizes_that_lie_are_found_out(tmp_path):
    longer = bytearray(tar({"package/b.bin": b"x" * 600}))
    longer[124:136] = b"%011o\0" % 90_000
    longer[148:156] = b"%06o\0 " % (sum(longer[:148]) + 8 * 32 + sum(longer[156:512]))
    refuse(tmp_path, bytes(longer), match="damaged")
    shorter = bytearray(zipped({"package/b.bin": b"x" * 600}, zipfile.ZIP_STORED))
    directory = shorter.index(b"PK\x01\x02")
    shorter[directory + 20 : directory + 28] = struct.pack("<II", 100, 100)
    refuse(tmp_path, bytes(shorter), match="damaged or cannot be read: Bad CRC-32")


@pytest.mark.parametrize("size", [-512, -1024, -(1 << 40)])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_points_backwards_ends_the_search(tmp_path, size, kind):
    content = bytearray(tar({"other": b"y", "package/a.txt": b"x"}))
    content[156:157] = kind
    content[124:136] = (size + (1 << 96)).to_bytes(12, "big")
    content[148:156] = b"%06o\0 " % (sum(content[:148]) + 8 * 32 + sum(content[156:512]))
    assert tried(tmp_path, bytes(content)) == {}


def test_a_giant_header_is_not_read_into_memory(tmp_path):
    content = tar({"x": b""}, type=tarfile.XHDTYPE)
    header = bytearray(content[:512])
    header[124:136] = b"%011o\0" % (1 << 30)
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    refuse(tmp_path, gzip.compress(bytes(header) + bytes(1 << 20)), match="a header of 1,073,741,824 bytes")


@pytest.mark.parametrize(
    "content",
    [gzip.compress(tar(FILES)), lzma.compress(tar(FILES)), zipped(FILES), tar(FILES)],
    ids=["tar.gz", "tar.xz", "zip", "tar"],  # gzip writes the time: named by its bytes, a test had two names
)
def test_whatever_is_cut_off_is_told_or_missing_and_never_wrong(tmp_path, content):
    for end in random.Random(0).sample(range(len(content)), 60):
        assert tried(tmp_path, content[:end]).items() <= RIGHT.items()


@pytest.mark.parametrize(
    "pack", [tar, zipped, lambda files: gzip.compress(tar(files)), lambda files: deb(tar(files), b"data.tar")]
)
def test_damage_anywhere_is_one_line_at_worst(tmp_path, pack):
    chance = random.Random(1)
    content = pack({"package/a.txt": b"hello", "other": b"there"})
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(min(len(damaged), 1200))] = chance.randrange(256)
        tried(tmp_path, bytes(damaged))


def test_a_password_or_a_strange_method_is_told(tmp_path):
    for change in ({6: 1, 8: 0}, {6: 0, 8: 99}):  # the flags and the method in the local header
        content = bytearray(zipped({"package/a.txt": b"x"}))
        directory = content.index(b"PK\x01\x02")
        for place, value in change.items():
            content[place] = content[directory + place + 2] = value
        refuse(tmp_path, bytes(content), match="damaged or cannot be read")


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"!<arch>\n", b"!<arch>\n" + b"x" * 100, b"PK\x03\x04", b"\x1f\x8b"]
)
def test_what_is_no_archive_is_called_so(tmp_path, content):
    refuse(tmp_path, content, match="no archive that is known here|damaged or cannot be read")


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 4), (2, 3, 4)])
def test_idx_files_give_the_array_that_went_in(shape):
    array = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(idx_array(idx_bytes(array)), array)


def test_idx_files_hold_other_kinds_too():
    assert idx_array(b"\0\0\x0c\x01\0\0\0\x02" + struct.pack(">ii", -5, 7)).tolist() == [-5, 7]
    with pytest.raises(ArchiveError, match="bytes is needed, got float64"):
        idx_bytes(np.zeros(3))


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\x08", b"\0\0\x08\0", b"\1\0\x08\1\0\0\0\0", b"\0\0\x07\1\0\0\0\0", b"\0\0\x08\2\0\0\0\1"]
)
def test_what_is_no_idx_file_is_called_so(content):
    with pytest.raises(ArchiveError, match="this is no idx file"):
        idx_array(content)


def test_an_idx_file_of_another_length_than_it_says_is_refused():
    for lengths in (b"\0\0\0\x04", b"\xff\xff\xff\xff"):
        with pytest.raises(ArchiveError, match=r"the header promises .* bytes, there are 3"):
            idx_array(b"\0\0\x08\x01" + lengths + b"abc")


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_npy_files_give_the_array_that_went_in(order, version):
    array = np.asarray(np.random.default_rng(0).random((4, 3)), order=order)
    assert np.array_equal(npy_array(npy(array, version=version)), array)


def test_npy_files_with_objects_lies_or_rubbish_are_refused():
    with pytest.raises(ArchiveError, match="Python objects"):
        npy_array(npy(np.array([{}], object)))
    honest = npy(np.zeros(10, np.uint8))
    with pytest.raises(ArchiveError, match="promises 99,000,000,000,000 bytes, there are 10"):
        npy_array(honest.replace(b"(10,), }" + b" " * 12, b"(99000000000000,), }"))
    for rubbish in (
        b"",
        b"rubbish",
        honest[:20],
        honest.replace(b"descr", b"desc!"),
        b"\x93NUMPY\x09\x00" + honest[8:],
    ):
        with pytest.raises(ArchiveError, match="this is no npy file"):
            npy_array(rubbish)
