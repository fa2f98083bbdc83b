"""The recipe that fills in blanks: its lessons, baselines, scores, texts and pictures, before and after a few steps."""

import dataclasses

import pytest
import torch

from lemmata.data import load
from lemmata.figure import Heat
from lemmata.lab.figures.svg import svg
from lemmata.train import Options, run_experiment
from lemmata.transformers.bert_pretraining import BertForPretraining, PretrainingOutput
from lemmata.transformers.recipes_bert import BASELINES, MaskedTextConfig, Restorer, fill_in_text

SMALL = MaskedTextConfig(width=8, depth=1, heads=2, hidden=16, pairs=64)
FEW = Options(steps=2, batch_size=8, device="cpu")


@pytest.fixture(scope="module")
def experiment():
    return fill_in_text(config=SMALL, options=FEW)


@pytest.fixture(scope="module")
def restorer():
    return Restorer(load("shakespeare").extra["vocabulary"], SMALL)


@pytest.mark.measures("transformers.recipes_bert", "unigram", "bigram")
def test_the_baselines_are_counted_in_the_training_text():
    text = load("shakespeare")
    train, test, size = text.train.x, text.validation.x, len(text.extra["vocabulary"])
    after = torch.bincount(train[:-1] * size + train[1:], minlength=size**2).view(size, size).argmax(1)
    unigram, bigram = (test == train.mode().values), (after[test[:-1]] == test[1:])
    assert unigram.double().mean().item() == pytest.approx(BASELINES["unigram"], abs=5e-4)
    assert bigram.double().mean().item() == pytest.approx(BASELINES["bigram"], abs=5e-4)


def test_a_lesson_is_two_passages_with_hidden_characters(experiment, restorer):
    train = experiment.train
    assert train.x.shape == train.y.shape == train.segments.shape == (64, 35)
    assert (train.x[:, [0, 17, 34]] == torch.tensor([restorer.cls, restorer.sep, restorer.sep])).all()
    assert (train.y[:, [0, 17, 34]] == -100).all()
    assert (train.segments.sum(1) == 17).all()
    assert ((train.x == restorer.mask) <= (train.y != -100)).all()
    assert 0 < train.follows.sum() < 64
    true = train.x.where(train.y == -100, train.y)
    assert (true[:, 1:17] < len(restorer.vocabulary)).all()


def test_passages_that_follow_stand_so_in_the_plays(experiment, restorer):
    text = restorer.vocabulary.decode(load("shakespeare").train.x)
    true = experiment.train.x.where(experiment.train.y == -100, experiment.train.y)
    for row, follows in zip(true[:20], experiment.train.follows[:20].tolist(), strict=True):
        first, second = restorer.vocabulary.decode(row[1:17]), restorer.vocabulary.decode(row[18:34])
        assert ((first + second) in text) == follows


def test_what_is_measured_on_the_way_is_neither_learnt_nor_the_test(experiment, restorer):
    text = load("shakespeare")
    held_out = restorer.vocabulary.decode(text.train.x[9 * len(text.train.x) // 10 :])
    true = experiment.validation.x.where(experiment.validation.y == -100, experiment.validation.y)
    assert len(true) == len(held_out) // 16
    assert all(restorer.vocabulary.decode(row[1:17]) in held_out for row in true)
    learnt = restorer.vocabulary.decode(text.train.x[: 9 * len(text.train.x) // 10])
    shown = experiment.train.x.where(experiment.train.y == -100, experiment.train.y)
    assert all(restorer.vocabulary.decode(row[1:17]) in learnt for row in shown)


def test_rows_weigh_alike_while_it_learns(experiment, restorer):
    batch, system = experiment.train[:9], experiment.system.train()
    whole = restorer.loss(system, batch)["loss"]
    parts = [restorer.loss(system, batch[part])["loss"] for part in (slice(0, 2), slice(2, 9))]
    torch.testing.assert_close(whole, (2 * parts[0] + 7 * parts[1]) / 9)
    assert torch.equal(restorer.loss(system.eval(), batch)["loss"], sum_of_tasks(system, batch))


def sum_of_tasks(system, batch):
    return system.losses(batch.x, batch.y, batch.segments, follows=batch.follows)["loss"]


def test_the_seed_decides_weights_and_lessons():
    first, second = (fill_in_text(config=SMALL, options=FEW) for _ in range(2))
    other = fill_in_text(config=SMALL, options=dataclasses.replace(FEW, seed=1))
    assert torch.equal(first.train.x, second.train.x)
    assert not torch.equal(first.train.x, other.train.x)
    assert torch.equal(first.test.x, other.test.x)  # all seeds are judged by the same blanks
    weights = [each.system.masked_language.transform.weight for each in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_a_few_steps_can_be_run_and_scored(experiment):
    short = dataclasses.replace(experiment, test=experiment.test[:40])
    scores = run_experiment(short).scores
    assert scores.keys() >= {"accuracy", "next_sentence_accuracy", "masked_language", "next_sentence", "loss"}
    assert 0 <= scores["accuracy"] < 0.4
    assert 3 < scores["masked_language"] < 8


def test_accuracy_counts_hidden_characters_only(experiment, restorer):
    class Knows(BertForPretraining):
        """Names the hidden characters and nothing else."""

        def forward(self, x, segments=None, mask=None):
            truth = batch.y.where(x == restorer.mask, 0).clamp(min=0)
            return PretrainingOutput(torch.nn.functional.one_hot(truth, restorer.vocab_size).double(), None)

    batch = experiment.test[:50]
    assert restorer.scores(Knows(9, width=2, heads=1, depth=1), batch) == {"accuracy": 1.0}


def test_without_the_next_sentence_there_is_one_task():
    alone = fill_in_text(config=dataclasses.replace(SMALL, next_sentence=False), options=FEW)
    assert alone.loss(alone.system, alone.train[:4]).keys() == {"loss", "masked_language"}
    assert alone.metrics(alone.system, alone.test[:4]).keys() == {"accuracy"}


def test_blanks_are_filled_with_characters_and_nothing_else_changes(experiment, restorer):
    text = "To be, or n_t to b_"
    for mode in (True, False):
        filled = restorer.restore(experiment.system.train(mode), text)
        assert experiment.system.training == mode
        assert len(filled) == len(text)
        assert all(a == b for a, b in zip(text, filled, strict=True) if a != "_")
        assert "_" not in filled
    places, chances = restorer.probabilities(experiment.system, text)
    assert places == [11, 18]
    assert chances.shape == (2, len(restorer.vocabulary))
    assert torch.allclose(chances.sum(1), torch.ones(2))


def test_samples_fill_in_a_text_of_ones_own(experiment):
    def said(**prompt):
        return experiment.sample(experiment.system, 3, torch.Generator().manual_seed(0), **prompt)

    assert said().count("\n") == 2
    assert said(prompt="Th_s ö") == said(prompt="Th_s ö")  # a character that the plays do not have
    with pytest.raises(ValueError, match="prompt must have a blank"):
        said(prompt="This")
    with pytest.raises(ValueError, match="at most 33 characters, got 40"):
        said(prompt="_" * 40)


def test_the_picture_has_a_row_for_each_blank(experiment):
    figure = experiment.picture(experiment.system)
    (heat,) = figure.marks
    assert isinstance(heat, Heat)
    assert len(heat.rows) == len(heat.values) == 3
    assert all(name.strip() for name in heat.columns)
    assert all(0 <= value <= 1 for row in heat.values for value in row)
    assert svg(figure).startswith("<svg")
    assert "->" in experiment.write(experiment.system)


@pytest.mark.parametrize("changed", [{"width": 0}, {"passage": 4}, {"fraction": 0.0}, {"dropout": 2.0}, {"pairs": 0}])
def test_what_cannot_be_is_refused(changed):
    with pytest.raises(ValueError, match=next(iter(changed))):
        MaskedTextConfig(**changed)


def test_passages_must_fit_into_the_text():
    with pytest.raises(ValueError, match="passage must be at most a quarter"):
        fill_in_text(config=dataclasses.replace(SMALL, passage=20_000), options=FEW)
