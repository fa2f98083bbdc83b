"""What the recipe for GloVe promises: the baseline loses, neighbours share a topic, exact resumption, analogies."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from lemmata.convolution.glove import cooccurrence_counts
from lemmata.convolution.recipes_glove import GloVeConfig, entries_aside, fit_word_vectors, loss_of_constants
from lemmata.convolution.recipes_words import GROUPS, frequent_words
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment

SMALL = GloVeConfig(dimensions=16, min_freq=20)
_, OPTIONS = usual_settings(fit_word_vectors, "glove")


@pytest.mark.parametrize("data", ["shakespeare", "verses"])
def test_entries_kept_aside_are_estimated_better_than_by_constants(data):
    experiment = fit_word_vectors(data)
    run = run_experiment(experiment)
    assert run.scores["loss"] < 0.8 * experiment.notes["baselines"]["constants of the words alone"]
    # Words of a topic are next to each other: half of them, where a fourth would be by chance.
    vocabulary, _, _ = frequent_words(data, 5)
    words = [(vocabulary.numbers[word], k) for k, line in enumerate(GROUPS[data].values()) for word in line.split()
             if word in vocabulary.numbers]  # fmt: skip
    numbers, topics = torch.tensor(words).T
    vectors = functional.normalize(run.model.embed(numbers).detach(), dim=1)
    nearest = (vectors @ vectors.T).fill_diagonal_(-1).argmax(1)
    assert (topics[nearest] == topics).double().mean() > 0.45


def test_neighbours_and_analogies_are_written():
    experiment = fit_word_vectors(config=SMALL, options=replace(OPTIONS, steps=3))
    system = run_experiment(experiment).model
    assert [line.split(":")[0] for line in experiment.write(system).splitlines()] == [
        "king",
        "brutus",
        "father",
        "night",
    ]
    generator = torch.Generator().manual_seed(0)
    found = experiment.sample(system, 1, generator, prompt="Father : mother = king")
    assert found.startswith("father : mother = king : ")
    assert len(found.split()) == 12
    assert len(experiment.sample(system, 3, generator).splitlines()) == 3
    assert experiment.sample(system, 3, generator, prompt="night").startswith("night: ")
    with pytest.raises(ValueError, match="prompt must be three frequent words"):
        experiment.sample(system, 1, generator, prompt="father = king")
    assert "brutus" in experiment.picture(system).note


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path):
    options = replace(OPTIONS, epochs=1, steps=9, save=3)
    whole = run_experiment(fit_word_vectors(config=SMALL, options=options)).model
    cut = fit_word_vectors(config=SMALL, options=options)
    assert run_experiment(cut, out=tmp_path / "run", on_step=lambda state: state.step == 5).steps == 5
    again = fit_word_vectors(config=SMALL, options=options)
    run_experiment(again, out=tmp_path / "run", resume=True)
    for one, other in zip(whole.parameters(), again.system.parameters(), strict=True):
        assert torch.equal(one, other)


def test_both_orders_of_two_words_are_kept_aside_or_none():
    table = cooccurrence_counts(torch.randint(30, (500,), generator=torch.Generator().manual_seed(0)), 30)
    aside = entries_aside(table, 30)
    kept = {tuple(pair) for pair in table.pairs[aside].tolist()}
    assert kept == {pair[::-1] for pair in kept}
    assert 0.05 < aside.double().mean() < 0.15


def test_the_constants_are_those_of_least_squares():
    experiment = fit_word_vectors(config=replace(SMALL, min_freq=150))
    system, train, test = experiment.system, experiment.train, experiment.test
    design = functional.one_hot(train.x, system.vocab_size).sum(1).double()
    root = system.weights(train.counts).double().sqrt()
    wanted = torch.linalg.lstsq(root[:, None] * design, root * train.counts.double().log(), driver="gelsd").solution
    errors = wanted[test.x].sum(1) - test.counts.double().log()
    expected = (system.weights(test.counts).double() * errors.square()).mean()
    assert loss_of_constants(system, train, test) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GloVeConfig(dimensions=0), "dimensions must be >= 1, got 0"),
        (lambda: GloVeConfig(maximum=0.0), "maximum must be > 0, got 0.0"),
        (lambda: fit_word_vectors(config=GloVeConfig(min_freq=10**6)), "min_freq must leave at least two words"),
    ],
)
def test_bad_choices_are_answered_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()
