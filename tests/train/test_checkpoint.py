"""Checkpoints: every value comes back exactly, damage is skipped with a reason, and only the needless is removed."""

import collections
import json
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lemmata.train import checkpoint
from lemmata.train.checkpoint import CheckpointError, at, newest, save
from lemmata.train.state_tree import BYTES, PAIRS, PLAIN

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Whether disks are waited for is asked elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def same(a, b):
    """Equal in kind and in every bit."""
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return type(b) is float and struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and a == b


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).tolist() if tensor.numel() else []


def back(folder, state):
    save(folder, 1, state)
    return newest(folder).state


def random_tensor(dtype, shape=(3, 5)):
    size = torch.empty((), dtype=dtype).element_size()
    data = torch.randint(0, 2 if dtype == torch.bool else 256, (*shape[:-1], shape[-1] * size), dtype=torch.uint8)
    return data.view(dtype)


@pytest.mark.parametrize("dtype", [*PLAIN, *PAIRS, *BYTES])
@pytest.mark.parametrize("shape", [(3, 5), (1,), (0,), (2, 0, 3)])
def test_tensors_of_every_dtype_come_back_bit_for_bit(tmp_path, dtype, shape):
    tensor = random_tensor(getattr(torch, dtype), shape)
    assert same(back(tmp_path, tensor), tensor)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[0, 0],
        lambda t: t.mT,
        lambda t: t[:, ::2],
        lambda t: t[:1].expand(4, 6),
        lambda t: torch.complex(t, t).conj(),
        lambda t: torch.complex(t, t).conj().imag,
        lambda t: torch.nn.Parameter(t),
    ],
    ids="scalar transposed strided expanded conjugate negative parameter".split(),
)
def test_views_come_back_equal(tmp_path, view):
    tensor = view(torch.randn(4, 6))
    found = back(tmp_path, [tensor])[0]
    assert same(found, tensor.detach().clone().resolve_conj().resolve_neg())
    assert type(found) is torch.Tensor
    assert not found.requires_grad


def test_tied_tensors_are_kept_once_and_come_back_tied(tmp_path):
    weight = torch.randn(50, 20)
    path = save(tmp_path, 1, {"encoder": weight, "decoder": weight.view(50, 20), "list": [weight]})
    state = newest(tmp_path).state
    state["encoder"][0, 0] = 7.0
    assert state["decoder"][0, 0] == state["list"][0][0, 0] == 7.0
    assert path.with_suffix(".safetensors").stat().st_size < 1.2 * 50 * 20 * 4


def test_overlapping_views_come_back_equal_with_memory_of_their_own(tmp_path):
    whole = torch.arange(10.0)
    state = back(tmp_path, {"whole": whole, "part": whole[2:5], "row": whole.view(2, 5), "back": whole[5:]})
    assert same(state, {"whole": whole, "part": whole[2:5], "row": whole.view(2, 5), "back": whole[5:]})
    state["whole"].zero_()
    assert same(state["part"], whole[2:5])


PLAIN_VALUES = [
    *(0, -1, 2**53 - 1, 2**53, -(2**64), 3**20_000, True, False, None),
    *(0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan),
    struct.unpack("d", struct.pack("Q", 0xFFF8DEADBEEF0001))[0],  # a NaN with a sign and a payload
    *("", "é∀😀", "half a \ud800 character", 'quote " and \\ and \0', "NaN"),
    *([], (), {}, [()], ((1, (2.0,)), [None])),
    *({"$": "tensor"}, {"$": {"$": 1}, "": [{"a/b": 1, "a~1b": 2}]}, {0: "a", 1: {"x": 1.5}, "1": "b", -(2**70): 1}),
]


@pytest.mark.parametrize("value", PLAIN_VALUES, ids=lambda value: type(value).__name__)
def test_plain_values_come_back_exactly(tmp_path, value):
    assert same(back(tmp_path, {"value": value}), {"value": value})


def test_tensors_at_places_with_odd_names_do_not_meet(tmp_path):
    keys = ["a", "a/b", "a~1b", "~", "/", "", "__metadata__", "\ud800", "\ud801", "1", 1, "$", "é"]
    state = {key: torch.tensor([float(number)]) for number, key in enumerate(keys)}
    state["nested"] = {"a": {"b": torch.tensor(1)}, "a/b": torch.tensor(2)}
    assert same(back(tmp_path, state), state)


def test_subclasses_come_back_as_the_plain_kinds(tmp_path):
    pair = collections.namedtuple("pair", "a b")
    state = [collections.OrderedDict(a=1), pair(1, 2), np.float64(0.1), torch.Size([2, 3])]
    assert same(back(tmp_path, state), [{"a": 1}, (1, 2), 0.1, (2, 3)])


def test_optimisers_and_modules_go_in_as_they_are(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(module.parameters(), fused=False)
    module(torch.randn(8, 3)).sum().backward()
    optimizer.step()
    state = {"module": module.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
    assert same(back(tmp_path, state), state | {"module": dict(module.state_dict())})


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"a": [1, {2}]}, "state/a/1 must be made of .* got builtins.set: convert it"),
        ({"a": np.float32(1)}, "state/a must be made of .* got numpy.float32"),
        ({"a": {(1, 2): 3}}, r"keys of state/a must be strings or ints, got \(1, 2\)"),
        ({True: 3}, "keys of state must be strings or ints, got True"),
        ({"a": torch.eye(2).to_sparse()}, "state/a must be a dense tensor"),
        ({"a": torch.empty(2, device="meta")}, "state/a must be a dense tensor"),
        ({"a": torch.empty(2, dtype=torch.bits8)}, "state/a must have a dtype that files can hold, got bits8"),
    ],
)
def test_what_a_checkpoint_cannot_hold_is_named_before_a_file_is_touched(tmp_path, state, said):
    with pytest.raises(TypeError, match=said):
        save(tmp_path / "new", 1, state)
    assert not (tmp_path / "new").exists()


def test_a_deep_state_comes_back_and_one_that_holds_itself_is_refused(tmp_path):
    state = 1.5
    for kind in [lambda inside: [inside], lambda inside: (inside,), lambda inside: {"$": inside}] * 33:
        state = kind(state)
    assert same(back(tmp_path, state), state)
    state = {}
    state["self"] = state
    with pytest.raises(ValueError, match="nested deeper than 100"):
        save(tmp_path, 1, state)


def test_a_million_plain_numbers_belong_in_a_tensor(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGEST_JSON", 2**20)
    with pytest.raises(ValueError, match=r"hold long series as tensors, .* take 1 MiB"):
        save(tmp_path, 1, list(range(200_000)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("word", "value"), [("step", -1), ("step", 1.0), ("step", True), ("keep", 0), ("keep", None)])
def test_steps_and_numbers_kept_are_whole_numbers(tmp_path, word, value):
    told = f">= [01], got {value}" if type(value) is int else f"an integer, got {type(value).__name__}"
    with pytest.raises((ValueError, TypeError), match=f"{word} must be {told}"):
        save(tmp_path, **({"step": 1, "state": {}} | {word: value}))


def test_the_files_are_plain_json_and_safetensors_for_everybody(tmp_path):
    path = save(tmp_path, 123, {"system": {"0.weight": torch.ones(2)}, "lr": 0.1, "large": [2**53 - 1, 2**53]})
    assert path == tmp_path / "step-00000123.json"
    content = json.loads(path.read_text())
    assert content["format"] == 1
    assert content["content"]["state"]["lr"] == 0.1
    assert content["content"]["state"]["large"] == [2**53 - 1, {"$": "int", "hex": "0x20000000000000"}]
    assert same(load_file(tmp_path / "step-00000123.safetensors"), {"/system/0.weight": torch.ones(2)})


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def pair(*steps):
    return sorted(f"step-{step:08d}.{kind}" for step in steps for kind in ("json", "safetensors"))


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_newest_are_kept_and_nothing_else_is_touched(tmp_path, keep):
    others = ["step-1.json", "notes.txt", "step-00000001.json.bak", "best-00000001.json", "step-00000001.pt"]
    for name in others:
        (tmp_path / name).touch()
    for step in range(0, 60, 10):
        save(tmp_path, step, {"step": step}, keep)
    kept = range(50, 50 - 10 * keep, -10)
    assert files(tmp_path) == sorted([*others, *pair(*kept)])
    for step in kept:
        assert at(tmp_path, step).state == {"step": step}


def test_at_names_what_there_is(tmp_path):
    for step in (5, 10):
        save(tmp_path, step, {})
    with pytest.raises(CheckpointError, match="has no checkpoint of step 7: there are 5, 10"):
        at(tmp_path, 7)
    (tmp_path / "step-00000005.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"step-00000005\.safetensors: missing"):
        at(tmp_path, 5)


def test_none_is_found_where_nothing_was_saved(tmp_path):
    assert newest(tmp_path) is None
    assert newest(tmp_path / "absent") is None
    (tmp_path / "step-00000005.safetensors").touch()  # a first save that was killed half way
    assert newest(tmp_path) is None


def test_an_unsound_checkpoint_does_not_count_as_kept(tmp_path):
    for step in (1, 2):
        save(tmp_path, step, {"step": step})
    (tmp_path / "step-00000002.safetensors").write_bytes(b"rot")
    save(tmp_path, 3, {"step": 3})
    assert files(tmp_path) == pair(1, 2, 3)  # 1 is the second sound one; 2 may still be worth something to somebody
    save(tmp_path, 4, {"step": 4})
    assert files(tmp_path) == pair(3, 4)


def test_newer_files_neither_prune_nor_are_pruned(tmp_path):
    for step in (1, 2, 9):
        save(tmp_path, step, {"step": step}, keep=3)
    (tmp_path / "step-00000009.json").write_bytes(b"rot")
    save(tmp_path, 3, {"step": 3})
    assert files(tmp_path) == pair(2, 3, 9)
    found = newest(tmp_path)
    assert found.step == 3
    assert found.messages == ["skipped step-00000009.json: it does not begin as a checkpoint does"]


def test_a_step_saved_again_replaces_the_former_and_leaves_two_files(tmp_path):
    for value in range(4):
        save(tmp_path, 5, {"value": torch.tensor(value)})
        assert newest(tmp_path).state == {"value": torch.tensor(value)}
        assert len(files(tmp_path)) == 2


def test_a_reader_beside_a_training_takes_what_came_meanwhile(tmp_path, monkeypatch):
    save(tmp_path, 1, {"step": 1})
    load = checkpoint._load_checkpoint

    def overtaken(*arguments):
        monkeypatch.setattr(checkpoint, "_load_checkpoint", load)
        save(tmp_path, 2, {"step": 2}, keep=1)
        return load(*arguments)

    monkeypatch.setattr(checkpoint, "_load_checkpoint", overtaken)
    assert newest(tmp_path).state == {"step": 2}


def test_files_that_cannot_be_removed_do_not_spoil_a_save(tmp_path, monkeypatch):
    def stuck(path):
        raise PermissionError(13, "no")

    for step in range(3):
        save(tmp_path, step, {"step": step})
    monkeypatch.setattr(os, "unlink", stuck)
    save(tmp_path, 3, {"step": 3})
    assert newest(tmp_path).step == 3
    monkeypatch.undo()
    save(tmp_path, 4, {"step": 4})
    assert files(tmp_path) == pair(3, 4)


def test_what_is_needless_goes_in_an_order_in_which_nothing_ever_looks_damaged(tmp_path, monkeypatch):
    removed, real = [], os.unlink
    monkeypatch.setattr(os, "unlink", lambda path: removed.append(Path(path).name) or real(path))
    for step in range(3):
        save(tmp_path, step, {"weights": torch.zeros(3)})
    assert [name for name in removed if name in pair(0)] == ["step-00000000.json", "step-00000000.safetensors"]


def test_a_file_is_hashed_once_and_read_again_only_if_it_may_have_changed(tmp_path, monkeypatch):
    read, real = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or real(path))
    for step in range(3):
        save(tmp_path, step, {"weights": torch.zeros(3)})
    assert not [name for name in read if name.endswith("safetensors")]
    os.utime(tmp_path / "step-00000002.safetensors")
    save(tmp_path, 3, {"weights": torch.zeros(3)})
    assert "step-00000002.safetensors" in read
    assert files(tmp_path) == pair(2, 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_of_a_gpu_come_back_on_the_cpu(tmp_path):
    weight = torch.randn(4, 5, device="cuda")
    state = {"weight": weight, "tied": weight, "view": weight.mT, "half": weight.bfloat16()}
    found = back(tmp_path, state)
    assert same(found, {name: value.cpu() for name, value in state.items()})
    assert found["weight"] is found["tied"]


FORMAT_1 = {
    "system": {"weight": torch.tensor([[1.0, -0.0], [math.inf, 0.1]]), "half": torch.ones(2, dtype=torch.bfloat16)},
    "numbers": (1, 2**80, -0.0, math.nan, True, None, "é"),
    "moments": {0: torch.tensor(3), 1: torch.tensor([True, False])},
    "phase": torch.tensor([1 - 2j]),
    "$": [[], {}],
}


def test_checkpoints_of_every_format_can_be_read_for_ever():
    found = at(FIXTURES, 1)  # written by format 1, never again
    assert same(found.state, FORMAT_1)
