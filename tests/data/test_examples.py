"""Examples and data sets: columns, batches, parts, and what they refuse."""

import pytest
import torch

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


def test_a_single_number_chooses_no_batch():
    with pytest.raises(TypeError, match=r"by a slice or a tensor, got 3: write \[3:4\]"):
        ten()[3]


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
