"""Streams that are cut and resumed: what is exact, what is skipped, and what is said about it."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from lemmata.train import Watcher, fit

X = torch.rand(44, 3, generator=torch.Generator().manual_seed(1))
Y = (X.sum(1) > 1.5).long()
CHOSEN = {"epochs": 3, "batch_size": 8, "lr": 0.05, "device": "cpu", "save": 1}
SAYS = r"is a stream: resuming is exact only if it gives the same batches again \([0-9]+ of this epoch were skipped\)"


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.Linear(8, 2))


def weights(run):
    return torch.cat([parameter.detach().flatten() for parameter in run.model.parameters()])


class Cut(Watcher):
    def __init__(self, step):
        self.step = step

    def saved(self, step, path):
        if step == self.step:
            raise KeyboardInterrupt


class Shifting(IterableDataset):
    """Draws as it goes, from the generator that torch's dropout draws from too."""

    def __iter__(self):
        for x, y in zip(X, Y, strict=True):
            yield x + torch.rand(()), y


def shuffled(seed=None):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True, generator=generator)


MAKES = {
    "list": lambda: [(X[first : first + 8], Y[first : first + 8]) for first in range(0, 44, 8)],
    "DataLoader": shuffled,
    "DataLoader with a generator of its own": lambda: shuffled(seed=5),
}


def train(make, out=None, **words):
    return fit(network(), make(), out=out, **CHOSEN | words)


@pytest.mark.parametrize("form", MAKES)
@pytest.mark.parametrize("step", [1, 5, 6, 10, 17])
def test_a_stream_that_repeats_itself_is_resumed_to_the_bit_and_a_sentence_says_so(tmp_path, form, step):
    whole = train(MAKES[form])
    with pytest.raises(KeyboardInterrupt):
        train(MAKES[form], tmp_path, watchers=[Cut(step)])
    torch.manual_seed(99)
    with pytest.warns(UserWarning, match=f"data {SAYS}"):
        resumed = train(MAKES[form], tmp_path, resume=True)
    assert f"({step % 6} of this epoch" in resumed.messages[-1]
    assert torch.equal(weights(resumed), weights(whole))
    assert resumed.history.to_json() == whole.history.to_json()
    assert not train(MAKES[form], tmp_path, resume=True).messages  # it is over: nothing is promised


def test_a_stream_that_draws_as_it_goes_is_resumed_by_skipping(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(Shifting, tmp_path, watchers=[Cut(8)])
    with pytest.warns(UserWarning, match=SAYS):
        assert train(Shifting, tmp_path, resume=True).steps == 18


def test_a_stream_that_became_shorter_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(MAKES["list"], tmp_path, watchers=[Cut(11)])
    with pytest.raises(ValueError, match=r"does not fit this run \(ValueError: data gave 2 batches, but 5 were"):
        train(lambda: MAKES["list"]()[:2], tmp_path, resume=True)


def test_examples_that_became_more_are_refused(tmp_path):
    fit(network(), (X, Y), out=tmp_path, **CHOSEN)
    with pytest.raises(ValueError, match=r"step 18 was batch 0 of epoch 3, which is no place in these data"):
        fit(network(), (X.repeat(2, 1), Y.repeat(2)), out=tmp_path, resume=True, **CHOSEN)


def test_a_generator_can_be_resumed_when_it_is_made_anew(tmp_path):
    batches = MAKES["list"]
    with pytest.raises(KeyboardInterrupt):
        train(lambda: iter(batches()), tmp_path, epochs=1, watchers=[Cut(3)])
    with pytest.warns(UserWarning, match=SAYS):
        resumed = train(lambda: iter(batches()), tmp_path, epochs=1, resume=True)
    assert torch.equal(weights(resumed), weights(train(batches, epochs=1)))


def test_validation_by_a_shuffling_loader_does_not_change_what_is_learnt():
    plain = train(MAKES["list"])
    assert torch.equal(weights(train(MAKES["list"], validation=shuffled())), weights(plain))
    scores = fit(network(), (X, Y), validation=shuffled(), **CHOSEN).scores
    assert scores["loss"] == pytest.approx(fit(network(), (X, Y), validation=(X, Y), **CHOSEN).scores["loss"], rel=1e-6)
    with pytest.raises(ValueError, match="there is no batch to evaluate on"):
        train(MAKES["list"], validation=[])


def test_several_processes_need_numbered_examples():
    from lemmata.train.device import choose_device
    from lemmata.train.options import Options
    from lemmata.train.processes import World
    from lemmata.train.sources import Place, as_source

    with pytest.raises(ValueError, match="data must be tensors or a map-style Dataset to be shared by processes"):
        as_source(MAKES["list"](), "data", Options(), Place(choose_device("cpu")), World(0, 2))
