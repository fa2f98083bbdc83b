"""Examples and data sets: columns, batches, parts, and what they refuse."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from lemmata.data.examples import Dataset, Examples


def ten():
    return Examples(x=torch.arange(20.0).reshape(10, 2), y=torch.arange(10))


def test_slices_positions_and_masks_choose_the_same_rows():
    examples, chosen = ten(), [3, 4, 5]
    mask = torch.zeros(10, dtype=torch.bool)
    mask[3:6] = True
    for which in (slice(3, 6), torch.tensor(chosen), mask, torch.tensor(chosen, dtype=torch.int32)):
        batch = examples[which]
        assert len(batch) == 3
        assert batch.y.tolist() == chosen
        assert torch.equal(batch.x, examples.x[3:6])


def test_columns_unpack_in_their_order_and_are_found_by_name():
    x, y = examples = ten()
    assert x is examples.x
    assert y is examples.columns["y"]
    with pytest.raises(AttributeError, match="no column 'z' among x, y"):
        examples.z


def test_a_dtype_changes_real_numbers_only_and_keeps_every_label():
    labels = torch.tensor([2049, 65505, 3])  # float16 has neither of the first two
    halves = Examples(x=torch.rand(3), y=labels, mask=labels > 5).to(torch.float16)
    assert halves.x.dtype is torch.float16
    assert torch.equal(halves.y, labels)
    assert halves.mask.dtype is torch.bool
    assert halves.to("meta").y.device.type == "meta"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "columns must be one or more of equal length, got none"),
        ({"x": torch.zeros(2), "y": torch.zeros(3)}, "equal length, got {'x': 2, 'y': 3}"),
        ({"x": [1, 2]}, "x must be a tensor with one row an example, got list"),
        ({"x": torch.tensor(1.0)}, "x must be a tensor with one row an example, got a single number"),
        ({"to": torch.zeros(2)}, "'to' cannot name a column, for examples have a member of that name: rename it"),
    ],
)
def test_bad_columns_are_refused_in_one_sentence(columns, message):
    with pytest.raises((ValueError, TypeError)) as refusal:
        Examples(**columns)
    assert message in str(refusal.value)


@pytest.mark.parametrize("which", [3, -7, np.int64(3), torch.tensor(3), torch.tensor(3, dtype=torch.int32)])
def test_a_position_gives_one_example_by_name_and_in_order(which):
    x, y = example = ten()[which]
    assert example.x is x is example["x"]
    assert (x.tolist(), y.item(), repr(example)) == ([6.0, 7.0], 3, "Example(x=(2,), y=())")
    with pytest.raises(AttributeError, match="no column 'z' among x, y"):
        example.z
    with pytest.raises(IndexError):
        ten()[10]


def test_a_name_gives_a_column():
    assert ten()["y"].tolist() == list(range(10))
    with pytest.raises(KeyError, match="no column 'z' among x, y"):
        ten()["z"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_loader_gives_batches_that_are_examples(workers):
    batches = list(DataLoader(ten(), batch_size=4, num_workers=workers))
    assert [repr(batch) for batch in batches] == ["Examples(x=(4, 2), y=(4,))"] * 2 + ["Examples(x=(2, 2), y=(2,))"]
    assert torch.equal(torch.cat([batch["x"] for batch in batches]), ten().x)
    shuffled = DataLoader(ten(), batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(1))
    assert sorted(torch.cat([y for _, y in shuffled]).tolist()) == list(range(10))


def test_examples_travel_between_processes():
    for made in (ten(), ten()[2]):
        again = pickle.loads(pickle.dumps(made))  # noqa: S301 - as torch's own queues do
        assert repr(again) == repr(made)
        assert torch.equal(again.x, made.x)


def test_everything_is_in_the_order_train_validation_test_and_then_as_given():
    parts = {name: Examples(x=torch.full((2,), number)) for number, name in enumerate(["later", "test", "train"])}
    assert Dataset("mine", parts).everything.x.tolist() == [2, 2, 1, 1, 0, 0]


def test_parts_of_different_shapes_are_not_joined():
    data = Dataset("mine", {"train": ten(), "test": Examples(x=torch.zeros(4, 3), y=torch.zeros(4))})
    with pytest.raises(ValueError, match=r"^the parts of mine differ in shape: take train, test one by one$"):
        data.everything


def test_a_missing_part_is_named_with_those_there_are():
    data = Dataset("mine", {"train": ten()})
    assert data.train is data.parts["train"]
    assert not hasattr(data, "test")
    with pytest.raises(AttributeError, match="mine has no validation part, only train"):
        data.validation


def test_a_data_set_tells_its_shapes_and_not_its_numbers():
    data = Dataset("mine", {"train": ten()}, extra={"weights": torch.zeros(1000)})
    assert repr(data) == "Dataset('mine', train=Examples(x=(10, 2), y=(10,)))"
    assert data.to(torch.float64).train.x.dtype is torch.float64
