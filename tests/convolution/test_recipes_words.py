"""What the recipes for words promise: baselines on the same pairs that lose, neighbours, pictures, exact resumption."""

from dataclasses import replace

import pytest
import torch

from lemmata.convolution.recipes_words import SkipGramConfig, learn_word_vectors, ranked
from lemmata.data.examples import Examples
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment

SMALL = SkipGramConfig(dimensions=16, min_freq=20)


@pytest.mark.parametrize("data", ["shakespeare", "verses"])
def test_vectors_know_held_out_pairs_better_than_counts_do(data):
    experiment = learn_word_vectors(data)
    run = run_experiment(experiment)
    counts = experiment.notes["baselines"]["counts of the pairs"]
    assert run.scores["accuracy"] > counts + 0.01
    assert counts > 0.5


def test_neighbours_are_told_and_drawn():
    _, options = usual_settings(learn_word_vectors, "skipgram")
    experiment = learn_word_vectors(config=SMALL, options=replace(options, steps=20))
    system = run_experiment(experiment).model
    assert experiment.write is not None
    assert experiment.sample is not None
    assert experiment.picture is not None
    told = experiment.write(system)
    king, _, _, night = told.splitlines()
    assert [line.split(":")[0] for line in told.splitlines()] == ["king", "brutus", "father", "night"]
    assert all(len(line.split()) == 7 for line in told.splitlines())
    generator = torch.Generator().manual_seed(0)
    assert experiment.sample(system, 3, generator, prompt="Night King") == f"{night}\n{king}"
    assert len(str(experiment.sample(system, 3, generator)).splitlines()) == 3
    with pytest.raises(ValueError, match=r"prompt must hold words .* got 'computer': try another"):
        experiment.sample(system, 1, generator, prompt="computer")
    figure = experiment.picture(system)
    assert [mark.label for mark in figure.marks][:2] == ["in Julius Caesar", "in Hamlet"]
    assert "brutus" in figure.note


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path):
    _, options = usual_settings(learn_word_vectors, "skipgram")
    options = replace(options, epochs=1, steps=30, save=10)
    whole = run_experiment(learn_word_vectors(config=SMALL, options=options)).model
    cut = learn_word_vectors(config=SMALL, options=options)
    stopped = run_experiment(cut, out=tmp_path / "run", on_step=lambda state: state.step == 15)
    assert stopped.steps == 15
    again = learn_word_vectors(config=SMALL, options=options)
    run_experiment(again, out=tmp_path / "run", resume=True)
    for one, other in zip(whole.parameters(), again.system.parameters(), strict=True):
        assert torch.equal(one, other)


def test_equal_scores_count_half():
    examples = Examples(x=torch.tensor([[0, 1], [0, 2], [0, 3]]), drawn=torch.tensor([2, 2, 1]))
    assert ranked(lambda words, contexts: contexts.double(), examples) == pytest.approx(0.5)
    assert ranked(lambda words, contexts: -contexts.double(), examples) == pytest.approx(0.5)
    assert ranked(lambda words, contexts: (contexts == 3).double(), examples) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SkipGramConfig(dimensions=0), "dimensions must be >= 1, got 0"),
        (lambda: SkipGramConfig(threshold=0.0), "threshold must be > 0, got 0.0"),
        (lambda: learn_word_vectors(config=SkipGramConfig(min_freq=10**6)), "min_freq must leave at least two words"),
    ],
)
def test_bad_choices_are_answered_in_words(make, said):
    with pytest.raises(ValueError, match=said):
        make()
