"""Damaged and forged checkpoints: skipped with a reason, never trusted, never a crash."""

import hashlib
import json
import os
import random
import struct

import pytest
import torch
from safetensors.torch import save as safetensors_bytes

from lemmata.train.checkpoint import CheckpointError, at, newest, save

OLD, NEW = 10, 20


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def state(step):
    generator = torch.Generator().manual_seed(step)
    weights = torch.randn(8, 8, generator=generator)
    return {"weights": weights, "half": weights.bfloat16(), "step": step, "tree": [1.5, "a", None, (2**70, True)]}


def equal(found, step):
    expected = state(step)
    tensors = all(torch.equal(found.pop(name), expected.pop(name)) for name in ("weights", "half"))
    return tensors and found == expected


@pytest.fixture
def folder(tmp_path):
    for step in (OLD, NEW):
        save(tmp_path, step, state(step))
    return tmp_path


def flip(data, rng, other):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def overwrite(data, rng, other):
    start, length = rng.randrange(len(data)), rng.randrange(1, 64)
    return data[:start] + rng.choice([bytes(length), rng.randbytes(length)]) + data[start + length :]


MUTATIONS = [
    flip,
    flip,
    overwrite,
    lambda data, rng, other: data[: rng.randrange(len(data))],
    lambda data, rng, other: data[rng.randrange(len(data)) :],
    lambda data, rng, other: data + rng.randbytes(rng.randrange(1, 20)),
    lambda data, rng, other: b"",
    lambda data, rng, other: other,
    lambda data, rng, other: data[: (cut := rng.randrange(len(data)))] + other[cut:],
    lambda data, rng, other: bytes(len(data)),
    lambda data, rng, other: rng.randbytes(len(data)),
    lambda data, rng, other: None,
]


def put(path, data):
    path.unlink(missing_ok=True)  # a new file: file systems wait for the disk when an old one is emptied and filled
    if data is not None:
        path.write_bytes(data)


def mutants(folder, count):
    """Change the files of the newest checkpoint, again and again; yield (whether they differ, what is found)."""
    rng = random.Random(0)
    names = sorted(path.name for path in folder.iterdir())
    whole = {name: (folder / name).read_bytes() for name in names}
    targets = [name for name in names if str(NEW) in name]
    for _ in range(count):
        name = rng.choice(targets)
        data = rng.choice(MUTATIONS)(whole[name], rng, whole[rng.choice(names)])
        put(folder / name, data)
        yield data != whole[name], newest(folder)
        put(folder / name, whole[name])


def check_mutants(folder, count):
    for changed, found in mutants(folder, count):
        assert equal(found.state, OLD if changed else NEW)
        if changed:
            assert found.messages[0].startswith("skipped step-00000020.")
            assert "\n" not in found.messages[0]


def test_a_thousand_damaged_files_are_skipped(folder):
    check_mutants(folder, 1000)


@pytest.mark.long
def test_ten_thousand_damaged_files_are_skipped(folder):
    check_mutants(folder, 10_000)


def test_when_all_are_damaged_it_is_said_and_not_begun_again_in_silence(folder):
    (folder / "step-00000010.safetensors").unlink()
    (folder / "step-00000020.json").write_bytes(b"")
    said = (
        r"no checkpoint in .* is sound \(step-00000020.json: it does not begin .*; step-00000010.safetensors: missing\)"
    )
    with pytest.raises(CheckpointError, match=said):
        newest(folder)


@pytest.mark.parametrize("first", [b'{"format": 2, "anything": "else"}', b'{"format": 17,'])
def test_a_newer_format_asks_for_an_upgrade(folder, first):
    (folder / "step-00000020.json").write_bytes(first)
    found = newest(folder)
    assert found.step == OLD
    assert found.messages == ["skipped step-00000020.json: made by a newer lemmata: upgrade"]
    with pytest.raises(CheckpointError, match=r"step-00000020\.json: made by a newer lemmata: upgrade$"):
        at(folder, NEW)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def folder_instead(path):
    path.unlink()
    path.mkdir()


def loop_of_links(path):
    path.unlink()
    path.symlink_to(path)


def endless(path):
    os.truncate(path, 2**42)  # four tebibytes of holes: must not be read


@pytest.mark.parametrize("replace", [pipe, folder_instead, loop_of_links, endless])
@pytest.mark.parametrize("kind", ["json", "safetensors"])
def test_what_is_not_a_file_of_a_checkpoint_is_not_read(folder, replace, kind):
    try:
        replace(folder / f"step-00000020.{kind}")
    except OSError:
        pytest.skip("not on this file system")
    assert newest(folder).step == OLD
    save(folder, 30, state(30))  # and saving goes on beside it
    assert newest(folder).step == 30


def forge(folder, values=2, text=None, data=None, **changes):
    """A checkpoint by somebody who knows the format and gets every checksum right."""
    data = safetensors_bytes({"/a": torch.ones(values)}) if data is None else data
    header = int.from_bytes(data[:8], "little")
    facts = {"file": "step-00000020.safetensors", "length": len(data), "header": header}
    facts |= {"sha256": hashlib.sha256(data).hexdigest()} | changes.pop("facts", {})
    content = {"step": 20, "tensors": facts, "state": {"$": "tensor", "name": "/a", "dtype": "float32", "shape": [2]}}
    text = json.dumps(content | changes) if text is None else text
    (folder / "step-00000020.safetensors").write_bytes(data)
    digest = hashlib.sha256(text.encode()).hexdigest()
    head = f'{{"format": 1, "length": {len(text.encode())}, "sha256": "{digest}", "content":\n'
    (folder / "step-00000020.json").write_text(f"{head}{text}\n}}\n")


def raw(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def tensor(**changes):
    return {"state": {"$": "tensor", "name": "/a", "dtype": "float32", "shape": [2]} | changes}


FORGERIES = {
    "another step": {"step": 21},
    "a path": {"facts": {"file": "../precious.safetensors"}},
    "another checkpoint's tensors": {"facts": {"file": "step-00000010.safetensors"}},
    "no file": {"facts": {"file": None}},
    "a wrong length": {"facts": {"length": 1}},
    "a length that is none": {"facts": {"length": None, "sha256": None}},
    "a wrong header": {"facts": {"header": 2**40}},
    "a list of facts": {"tensors": []},
    "no state": {"text": '{"step": 20, "tensors": {"file": "step-00000020.safetensors"}}'},
    "a list": {"text": "[20]"},
    "no JSON": {"text": "{"},
    "not a number": {"text": '{"step": NaN}'},
    "too many digits": {"text": '{"step": ' + "9" * 10_000 + "}"},
    "too deep": {"text": "[" * 200_000},
    "deep enough to parse": {"state": json.loads('{"a":' * 900 + "1" + "}" * 900)},
    "a missing tensor": tensor(name="/b"),
    "a tensor without a name": {"state": {"$": "tensor"}},
    "a name that cannot be one": tensor(name=["/a"]),
    "a wrong shape": tensor(shape=[1, 2]),
    "a wrong dtype": tensor(dtype="int32"),
    "a dtype that is a function": tensor(dtype="load"),
    "a complex tensor of the wrong size": tensor(dtype="complex64") | {"values": 3},
    "an unknown kind": {"state": {"$": "module", "name": "os"}},
    "a kind that is a list": {"state": {"$": []}},
    "items that are none": {"state": {"$": "tuple", "items": 5}},
    "pairs that are none": {"state": {"$": "dict", "items": [[1, 2, 3]]}},
    "a key that is none": {"state": {"$": "dict", "items": [[[], 2]]}},
    "bits that are none": {"state": {"$": "float", "bits": "00"}},
    "an integer that is none": {"state": {"$": "int", "hex": "ten"}},
    "no safetensors": {"data": b"rot"},
    "an endless header": {"data": struct.pack("<Q", 2**63) + b"{}"},
    "a header that is no JSON": {"data": raw(b"{{{{{{{{")},
    "overlapping tensors": {
        "data": raw({k: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for k in ("/a", "/b")}, bytes(8))
    },
    "a tensor beyond the end": {"data": raw({"/a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]}}, bytes(8))},
    "a negative shape": {"data": raw({"/a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, bytes(8))},
    "an endless shape": {"data": raw({"/a": {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}})},
    "a dtype of tomorrow": {"data": raw({"/a": {"dtype": "F8_E8M0", "shape": [8], "data_offsets": [0, 8]}}, bytes(8))},
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_checkpoint_with_right_checksums_is_skipped(folder, name):
    (folder.parent / "precious.safetensors").write_bytes(safetensors_bytes({"/a": torch.ones(2)}))
    forge(folder, **FORGERIES[name])
    found = newest(folder)
    assert equal(found.state, OLD)
    assert len(found.messages) == 1
    assert len(found.messages[0]) < 300


def test_the_forger_of_these_tests_knows_the_format(folder):
    forge(folder)
    assert torch.equal(newest(folder).state, torch.ones(2))
