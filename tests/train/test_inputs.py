"""What `fit` takes: every form in which people have data, the same bits for the same batches, and clear refusals."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, random_split
from torch.utils.data import Dataset as TorchDataset

from lemmata.data import Dataset, Examples, as_examples
from lemmata.train import Diverged, fit

X = torch.rand(50, 4, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1) > 2).long()
CHOSEN = {"epochs": 3, "batch_size": 8, "lr": 0.05, "device": "cpu"}


def network(dropout=0.2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 2))


def weights(run):
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


class Items(TorchDataset):
    """A map-style data set whose items have any form."""

    def __init__(self, form):
        self.form = form

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return self.form(X[index], Y[index])


class Rows(IterableDataset):
    """A stream of examples, or of batches."""

    def __init__(self, items, length=None):
        self.items, self.length = items, length

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        if self.length is None:
            raise TypeError("a stream has no length")
        return self.length


class Unlisted:
    """Has items and a length, and no base class."""

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return X[index], Y[index]


INDEXED = {
    "examples": Examples(x=X, y=Y),
    "tuple": (X, Y),
    "list": [X, Y],
    "dict": {"x": X, "y": Y},
    "other names": {"picture": X, "label": Y},
    "arrays": (X.numpy(), Y.numpy()),
    "doubles and short integers": (X.numpy().astype(np.float64), Y.numpy().astype(np.int32)),
    "doubles of torch": (X.double(), Y),
    "dict of arrays": {"x": X.numpy(), "y": Y.numpy()},
    "TensorDataset": TensorDataset(X, Y),
    "part of a TensorDataset": Subset(TensorDataset(X.flip(0), Y.flip(0)), list(range(49, -1, -1))),
    "part of examples": Subset(Examples(x=X.flip(0), y=Y.flip(0)), list(range(49, -1, -1))),
    "items that are tuples": Items(lambda x, y: (x, y)),
    "items that are dicts": Items(lambda x, y: {"x": x, "y": y}),
    "items that are arrays": Items(lambda x, y: (x.double().numpy(), int(y))),
    "items that are examples": Items(lambda x, y: Examples(x=x[None], y=y[None])[0]),
    "a part of items": Subset(Items(lambda x, y: (x, y)), range(50)),
    "anything with items and a length": Unlisted(),
}


@pytest.fixture(scope="module")
def expected():
    return fit(network(), (X, Y), **CHOSEN)


@pytest.mark.parametrize("form", INDEXED)
def test_data_with_numbered_examples_train_to_the_same_bits_in_every_form(expected, form):
    run = fit(network(), INDEXED[form], validation=INDEXED[form], **CHOSEN)
    assert torch.equal(weights(run), weights(expected))
    assert run.scores["loss"] == pytest.approx(expected.scores["loss"], rel=1e-6)


BATCHES = [(X[first : first + 8], Y[first : first + 8]) for first in range(0, 50, 8)]
STREAMS = {
    "list of tuples": BATCHES,
    "tuple of lists": tuple([x, y] for x, y in BATCHES),
    "list of dicts": [{"x": x, "y": y} for x, y in BATCHES],
    "list of examples": [Examples(x=x, y=y) for x, y in BATCHES],
    "list of arrays": [(x.numpy(), y.numpy()) for x, y in BATCHES],
    "DataLoader": DataLoader(TensorDataset(X, Y), batch_size=8),
    "DataLoader of examples": DataLoader(Examples(x=X, y=Y), batch_size=8),
    "DataLoader of arrays": DataLoader(Items(lambda x, y: (x.double().numpy(), int(y))), batch_size=8),
    "DataLoader with a worker": DataLoader(TensorDataset(X, Y), batch_size=8, num_workers=1),
    "IterableDataset": Rows([(x, y) for x, y in zip(X, Y, strict=True)]),
    "IterableDataset with a length": Rows([{"x": x, "y": y} for x, y in zip(X, Y, strict=True)], 50),
    "IterableDataset of batches": Rows([Examples(x=x, y=y) for x, y in BATCHES]),
    "DataLoader of an IterableDataset": DataLoader(Rows([*zip(X, Y, strict=True)]), batch_size=8),
}


@pytest.mark.parametrize("form", STREAMS)
def test_streams_train_to_the_same_bits_in_every_form(form):
    reference = fit(network(0.0), BATCHES, **CHOSEN)  # a DataLoader draws from the generator that dropout draws from
    run = fit(network(0.0), STREAMS[form], validation=STREAMS[form], **CHOSEN)
    assert torch.equal(weights(run), weights(reference))
    assert (run.steps, run.epochs, len(run.history)) == (21, 3, 3)


def test_a_stream_is_trained_in_its_own_order():
    """Against a loop by hand, without dropout: the order is all there is."""
    line, hand = nn.Linear(4, 2), nn.Linear(4, 2)
    hand.load_state_dict(line.state_dict())
    fit(line, BATCHES, optimizer=torch.optim.SGD(line.parameters(), lr=0.1), epochs=2, device="cpu")
    optimizer = torch.optim.SGD(hand.parameters(), lr=0.1)
    for x, y in BATCHES * 2:
        optimizer.zero_grad()
        nn.functional.cross_entropy(hand(x), y).backward()
        optimizer.step()
    assert torch.allclose(line.weight, hand.weight, rtol=0, atol=1e-6)  # a rounding or two in 14 steps below 1


def test_a_generator_is_taken_once_and_refused_for_more():
    run = fit(network(), iter(BATCHES), **CHOSEN | {"epochs": 1})
    assert run.steps == 7
    assert set(run.scores) == {"loss", "lr"}  # of the way: it cannot be gone through again
    with pytest.raises(ValueError, match=r"data is a generator, which can be gone through once: .* or epochs=1$"):
        fit(network(), iter(BATCHES), **CHOSEN)
    with pytest.raises(ValueError, match=r"validation is a generator, .*: give a list of batches$"):
        fit(network(), (X, Y), validation=iter(BATCHES), **CHOSEN)


def test_an_iterable_that_is_used_up_after_an_epoch_is_named():
    class Spent:
        def __init__(self):
            self.left = iter(BATCHES)

        def __iter__(self):
            return iter(list(self.left))

    with pytest.raises(
        ValueError, match=r"data gave no batch in epoch 2: it can be gone through only once, so use epo"
    ):
        fit(network(), Spent(), **CHOSEN)
    with pytest.raises(ValueError, match=r"data gave no batch in epoch 1$"):
        fit(network(), [], **CHOSEN)


def test_an_epoch_of_a_stream_may_be_longer_than_the_last():
    class Growing:
        passes = 0

        def __iter__(self):
            self.passes += 1
            return iter(BATCHES[: self.passes])

    run = fit(network(), Growing(), validation=(X, Y), **CHOSEN)
    assert [row["step"] for row in run.history] == [1, 3, 6]
    with pytest.raises(ValueError, match="schedule and warmup must know when training ends, but data has no length"):
        fit(network(), Growing(), schedule="cosine", **CHOSEN)
    assert fit(network(), Growing(), schedule="cosine", steps=2, **CHOSEN).history.steps[-1]["step"] == 2


def test_random_splits_are_data_too():
    first, second = random_split(TensorDataset(X, Y), [40, 10], torch.Generator().manual_seed(3))
    run = fit(network(), first, validation=second, **CHOSEN)
    chosen = Examples(x=X, y=Y)[torch.tensor(first.indices)]
    assert torch.equal(weights(run), weights(fit(network(), chosen, **CHOSEN)))


def test_float64_models_and_precision_take_arrays_as_they_are():
    fine = X.double().numpy() + 1e-12  # float32 would round it away
    seen = []

    def loss(model, batch):
        seen.append(batch.x)
        return nn.functional.cross_entropy(model(batch.x), batch.y)

    fit(network(), (fine, Y), loss=loss, precision="float64", **CHOSEN)
    fit(network().double(), (fine, Y), loss=loss, **CHOSEN)
    assert all(bool(torch.isin(x, torch.from_numpy(fine)).all()) for x in seen)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "data must be tensors, arrays, a dict of them, a Dataset, a DataLoader or an iterable of batches, got int"),
        ("moons", "data must be tensors, arrays, .*, got str"),
        (None, "data must be tensors, .*, got NoneType"),
        ([1, 2], "a batch of data must be tensors or arrays, alone, in a tuple or in a dict, got int"),
        (
            [([1.0], [2])],
            r"a batch of data holds lists or plain numbers: make an array of each column \(numpy\.array\)",
        ),
        ((X.tolist(), Y.tolist()), "a batch of data holds lists or plain numbers: make an array of each column"),
        (
            [(X[0], Y[0])],
            "a batch of data.y must have one row an example, got a single number: torch's DataLoader makes",
        ),
        ((X, Y, Y, Y), "data has the inputs x1 and x2 and x3 beside the target, but Sequential.forward takes input:"),
        ({"x": X, "mask": Y, "y": Y}, "data has the inputs x and mask beside the target, but .*: leave out what is no"),
        ((X, Y[:5]), "columns of data must have one row an example, got x 50, y 5"),
        ([X, X], "data is a list of 2 arrays of one kind, columns or batches: give columns as a tuple, and batches as"),
        (
            (X, object(), Y),
            r"data must be tensors, got object among them: what is no tensor, such as a graph, .* loss=",
        ),
        (SimpleNamespace(edges=Y), "data must be tensors, .*, got SimpleNamespace: what is no tensor, such as a graph"),
        (
            {"x": X, "y": Y, "label": Y},
            "the batch has the columns y and label, each of which may be the target: rename",
        ),
        ({"y": Y}, "the batch must hold inputs beside the target y"),
        ({"a": X, "b": Y}, "this loss needs an input and a target, the batch has a, b: call the target y, label or"),
        ((X.numpy(), np.array(["a"] * 50)), "data.y must hold numbers, got an array of <U1: turn names into integers"),
        ((X * torch.nan, Y), "data.x must be finite, found 200 values that are not: remove or impute them"),
        ((X.numpy().astype(np.float64) * 1e300, Y), "data.x must be finite, found 200 values"),
        ((X[:0], Y[:0]), "data must hold at least one example"),
        (Subset(Items(lambda x, y: (x, y)), []), "data must hold at least one example"),
        ([(X[:0], Y[:0])], "a batch of data must hold at least one example"),
        ({"x": X, "to": Y}, "'to' cannot name a column"),
        (
            Dataset("mine", {"train": Examples(x=X, y=Y)}),
            r"data set mine with all its parts: give one, mine\.train",
        ),
        ({"a": X, "b": Y, "c": Y}, "this loss needs an input and a target, the batch has a, b, c: call the target y"),
        ([(X * torch.nan, Y)], r"loss became nan at step 1 .*: the batch's x must be finite, found 200 values"),
    ],
)
def test_what_cannot_be_learnt_from_is_named(data, message):
    with pytest.raises((ValueError, TypeError, Diverged), match=message):
        fit(network(), data, **CHOSEN)


class Located(nn.Module):
    """A density with one parameter, and a loss of its own, as generative models have."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(4))

    def loss(self, x):
        return (x - self.mean).square().sum(1).mean()


def test_a_model_with_a_loss_of_its_own_learns_from_inputs_alone():
    run = fit(Located(), X, epochs=150, batch_size=50, lr=0.1, progress=False)
    torch.testing.assert_close(run.model.mean.detach(), X.mean(0), atol=1e-3, rtol=0)
    with pytest.raises(ValueError, match="this loss needs an input and a target, the batch has x"):
        fit(Located(), X, loss=nn.MSELoss(), epochs=1, progress=False)


class Masked(nn.Module):
    """Takes two inputs, the second of which says which values of the first count."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 1)

    def forward(self, x, mask):
        return self.layer(x * mask)[:, 0]


MASK = (torch.rand(50, 4, generator=torch.Generator().manual_seed(2)) < 0.5).float()


@pytest.mark.parametrize(
    "data",
    [
        (X, MASK, X.sum(1)),
        ((X, MASK), X.sum(1)),
        {"mask": MASK, "x": X, "label": X.sum(1)},
        TensorDataset(X, MASK, X.sum(1)),
        Examples(x=X, mask=MASK, y=X.sum(1)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_the_last_of_a_tuple_is_the_target_for_fit_as_for_audit(data):
    """Once the second of three was learnt without a word, while the audit of the same tuple took the last."""
    from lemmata.audit.sample import as_sample
    from lemmata.audit.subject import Subject

    found = fit(Masked(), data, **CHOSEN)
    wanted = fit(Masked(), {"x": X, "mask": MASK, "y": X.sum(1)}, loss=_masked_error, **CHOSEN)
    assert torch.equal(weights(found), weights(wanted))
    sample = as_sample(data)
    assert torch.equal(sample.targets, X.sum(1))
    assert torch.equal(Subject(found.model, sample).outputs(sample), found.model(X, MASK))


def _masked_error(model, batch):
    return nn.functional.mse_loss(model(batch.x, batch.mask), batch.y)


def test_named_tuples_name_their_columns():
    from collections import namedtuple

    Pair = namedtuple("Pair", ["picture", "label"])
    assert repr(as_examples(Pair(X, Y))) == "Examples(picture=(50, 4), label=(50,))"


def test_bytes_and_masks_of_arrays_stay_what_they_are():
    made = as_examples({"x": np.zeros((2, 3), np.uint8), "mask": np.ones(2, bool), "z": np.arange(6.0)[::-3]})
    assert [str(column.dtype) for column in made] == ["torch.uint8", "torch.bool", "torch.float32"]
    assert made.z.tolist() == [5.0, 2.0]


def test_a_data_set_that_draws_is_the_same_with_and_without_a_folder(tmp_path):
    noisy = Items(lambda x, y: (x + 0.1 * torch.randn(4), y))
    plain = fit(network(), noisy, **CHOSEN)
    assert torch.equal(weights(fit(network(), noisy, out=tmp_path / "kept", **CHOSEN)), weights(plain))
    stop = {"on_step": lambda state: state.step == 9}
    fit(network(), noisy, out=tmp_path / "cut", **stop, **CHOSEN)
    assert torch.equal(weights(fit(network(), noisy, out=tmp_path / "cut", resume=True, **CHOSEN)), weights(plain))
