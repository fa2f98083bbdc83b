"""Examples from whatever people keep them in, and one sentence where they cannot be had."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from lemmata.audit import sample as samples
from lemmata.audit.sample import Sample, as_sample
from lemmata.data import Examples, load

X, Y = torch.arange(120.0).reshape(40, 3), torch.arange(40) % 4


class Rows(torch.utils.data.Dataset):
    """Examples one by one, sorted by class as folders of pictures are."""

    def __init__(self, number=40, fails=None):
        self.number, self.fails, self.asked = number, fails, []

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        if not 0 <= index < self.number:
            raise IndexError(index)
        if self.fails:
            raise self.fails
        self.asked.append(index)
        return torch.tensor([float(index), 1.0]), 10 * index // self.number


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, Y, strict=True))


class HuggingFaceRows(Rows):
    """Dicts of plain numbers and lists, as the datasets package gives them."""

    def __getitem__(self, index):
        if not 0 <= index < self.number:
            raise IndexError(index)
        return {"input_ids": torch.tensor([index, 7]), "attention_mask": torch.ones(2), "text": "a", "label": index % 3}


@pytest.mark.parametrize(
    "given",
    [
        (X, Y),
        [(X[:25], Y[:25]), (X[25:], Y[25:])],
        {"x": X, "y": Y},
        (X.numpy(), Y.numpy()),
        Examples(x=X, y=Y),
        TensorDataset(X, Y),
        Stream(),
        DataLoader(TensorDataset(X, Y), batch_size=7),
        DataLoader(Examples(x=X, y=Y), batch_size=7),
        iter([(X[:25], Y[:25]), (X[25:], Y[25:])]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_kind_gives_the_same_examples_in_their_order(given):
    found = as_sample(given)
    assert torch.equal(found.x, X)
    assert found.targets is not None
    assert torch.equal(found.targets, Y)
    assert found.whole


class Batches:
    """Batches to be gone through, which say how many they are but have no numbers."""

    def __len__(self):
        return 2

    def __iter__(self):
        return iter([(X[:25], Y[:25]), (X[25:], Y[25:])])


class Numbered:
    """Batches with numbers that do not say how many they are."""

    def __iter__(self):
        return iter(Batches())

    def __getitem__(self, index):
        return list(self)[index]


@pytest.mark.parametrize("given", [Batches(), Numbered()])
def test_what_can_only_be_gone_through_is(given):
    assert torch.equal(as_sample(given).x, X)


def test_a_loader_of_whole_batches_is_gone_through_in_its_order(monkeypatch):
    monkeypatch.setattr(samples, "MOST", 30)
    batches = [(torch.full((2, 3), float(i)), torch.zeros(2)) for i in range(40)]
    found = as_sample(DataLoader(batches, batch_size=None))
    assert found.x[:, 0].tolist() == [float(i) for i in range(15) for _ in range(2)]
    assert not found.whole


def test_real_inputs_come_to_a_dtype_and_the_rest_stays():
    one = Sample({"x": X, "words": Y}, Y)
    moved = one.to(torch.device("cpu"), torch.float64)
    assert (moved.x.dtype, moved.inputs["words"].dtype) == (torch.float64, torch.int64)
    assert moved.targets is not None
    assert moved.targets.dtype == torch.int64
    assert one.to(torch.device("cpu")).x.dtype == torch.float32
    assert moved.whole


def test_inputs_without_targets():
    assert as_sample(X).targets is None
    assert as_sample(TensorDataset(X)).targets is None


def test_several_inputs_keep_their_order():
    found = as_sample((X, X + 1, Y))
    assert list(found.inputs) == ["x1", "x2"]
    assert torch.equal(found.tensors[1], X + 1)
    nested = as_sample(((X, X + 1), Y))
    assert list(nested.inputs) == ["x1", "x2"]


def test_dicts_by_name_as_hugging_face_has_them():
    found = as_sample(DataLoader(HuggingFaceRows(), batch_size=16))
    assert list(found.inputs) == ["input_ids", "attention_mask"]
    assert found.targets is not None
    assert found.targets.tolist() == [index % 3 for index in range(40)]
    assert as_sample(HuggingFaceRows()).x[:, 0].tolist() == list(range(40))


def test_of_many_examples_some_are_drawn_over_all_classes(monkeypatch):
    monkeypatch.setattr(samples, "MOST", 100)
    rows = Rows(5000)
    tables = torch.stack([rows[i][0] for i in range(5000)]), torch.tensor([rows[i][1] for i in range(5000)])
    for given in (rows, tables, DataLoader(rows, batch_size=20)):
        found = as_sample(given)
        assert found.targets is not None
        assert not found.whole
        assert len(found) == 100
        assert found.targets.unique().tolist() == list(range(10))
    assert found.x.shape == (100, 2)


def test_reading_stops_when_its_time_is_over():
    rows = Rows(5000)
    found = as_sample(rows, seconds=0.0)
    assert len(found) == len(rows.asked) == 8
    assert not found.whole
    assert found.x[:, 0].tolist() == sorted(rows.asked)


def test_a_shuffling_loader_gives_its_generator_back():
    generator = torch.Generator().manual_seed(3)
    loader = DataLoader(TensorDataset(X, Y), batch_size=7, shuffle=True, generator=generator)
    before = generator.get_state()
    as_sample(loader)
    as_sample(loader, seconds=0.0)
    assert torch.equal(generator.get_state(), before)


def test_padded_batches_of_several_lengths_are_read_as_far_as_they_fit():
    batches = [
        (torch.ones(4, 9), torch.zeros(4)),
        (torch.ones(4, 5), torch.zeros(4)),
        (torch.ones(4, 9), torch.zeros(4)),
    ]
    found = as_sample(batches)
    assert found.x.shape == (8, 9)
    assert not found.whole


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((X[:0], Y[:0]), "data must hold at least one example, got none"),
        (Rows(0), "data must hold at least one example, got none"),
        ([], "data must hold at least one example, got none"),
        ((), "data must hold at least one example, got none"),
        ((X, Y[:7]), "columns of data must have one row an example, got x 40, y 7"),
        ((X / 0, Y), "data.x must be finite, found 120 values that are not: remove or impute them"),
        ((X, np.array(["a"] * 40)), "data.y must hold numbers"),
        (3, "data must be tensors, arrays, a dict of them, a Dataset, a DataLoader or an iterable of batches, got int"),
        ("digits", "got str"),
        (
            (X, object(), Y),
            "data must be tensors, got object among them: what is no tensor, such as a graph, is given by",
        ),
        ({"y": Y}, "data must hold inputs beside the target y"),
        (Rows(fails=OSError("disk is gone")), "data cannot be read: OSError: disk is gone"),
        (Rows(fails=KeyError("picture")), "data cannot be read: KeyError: 'picture'"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(given, said):
    with pytest.raises((TypeError, ValueError)) as error:
        as_sample(given)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_named_data_set_brings_its_parts():
    digits = load("digits")
    assert len(as_sample(digits.train)) == 1438
