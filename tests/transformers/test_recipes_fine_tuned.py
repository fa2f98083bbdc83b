"""The recipes that fine-tune BERT: what they compute, show and say, and the baselines beside them."""

import dataclasses

import pytest
import torch

from lemmata.data import load
from lemmata.data.examples import Dataset, Examples
from lemmata.train import Options, run_experiment
from lemmata.transformers.bert import Bert
from lemmata.transformers.recipes_fine_tuned import (
    FineTuningConfig,
    TextTuningConfig,
    answer_questions,
    classify_texts,
    most_frequent_tag,
    naive_bayes,
    tag_words,
    tell_negations,
    trimmed,
)
from lemmata.transformers.wordpiece import WordPiece

TINY = FineTuningConfig(width=8, depth=1, heads=2, hidden=8)
FEW = Options(steps=2, batch_size=8, device="cpu")


@pytest.mark.parametrize(
    ("make", "metric"), [(tell_negations, "accuracy"), (tag_words, "accuracy"), (answer_questions, "exact")]
)
def test_a_few_steps_can_be_run_scored_and_shown(make, metric):
    experiment = make(config=TINY, options=FEW)
    short = dataclasses.replace(experiment, test=experiment.test[:20])
    run = run_experiment(short)
    assert 0 <= run.scores[metric] <= 1
    again = type(experiment.system)(**experiment.arguments)
    again.load_state_dict(run.system.state_dict())
    assert len(experiment.write(again).splitlines()) >= 4
    said = experiment.predict(again.eval(), experiment.test[:5])
    assert {len(column) for column in said.values()} == {5}
    first, second = (make(config=TINY, options=FEW).system.state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_reviews_with_negations_are_learnt_and_a_bag_of_words_does_not():
    options = dataclasses.replace(FEW, steps=None, epochs=4, batch_size=32, lr=2e-3, warmup=30, clip=1.0)
    config = FineTuningConfig(width=32, hidden=64)
    experiment = tell_negations(config=config, options=options)
    run = run_experiment(experiment)
    assert run.scores["accuracy"] > 0.95
    assert experiment.notes["baselines"]["naive Bayes"] < 0.6


def test_texts_are_read_by_pieces_and_named():
    config = TextTuningConfig(width=8, depth=1, heads=2, hidden=8, vocab_size=300)
    experiment = classify_texts(config=config, options=FEW)
    generator = torch.Generator().manual_seed(0)
    assert 0.7 < experiment.notes["baselines"]["naive Bayes"] < 1
    assert experiment.system.classes == ("Shakespeare", "Bible")
    said = experiment.sample(experiment.system, 1, generator, prompt="Thou shalt not steal")
    assert said.split(" ")[0] in experiment.system.classes
    assert len(experiment.sample(experiment.system, 3, generator).splitlines()) == 3
    assert experiment.system.training


def test_a_pre_trained_encoder_is_where_it_begins(tmp_path):
    tokenizer = WordPiece.train(["thou shalt not steal from the king"], 60)
    tokenizer.save_pretrained(tmp_path)
    encoder = Bert(len(tokenizer.vocab), width=8, depth=1, heads=2, hidden=8, max_length=16)
    encoder.save_pretrained(tmp_path)
    config = TextTuningConfig(encoder=str(tmp_path), max_length=16)
    experiment = classify_texts(config=config, options=FEW)
    assert torch.equal(experiment.system.encoder.tokens.weight, encoder.tokens.weight)
    assert torch.equal(experiment.system.encoder.pool.weight, encoder.pool.weight)
    type(experiment.system)(**experiment.arguments).load_state_dict(experiment.system.state_dict())
    with pytest.raises(ValueError, match="max_length must be <= 16, got 128"):
        classify_texts(config=TextTuningConfig(encoder=str(tmp_path)), options=FEW)


def test_the_picture_shows_where_an_answer_begins_and_ends():
    experiment = answer_questions(config=TINY, options=FEW)
    figure = experiment.picture(experiment.system)
    begins, ends = figure.marks
    length = int((experiment.test.x[0] != 0).sum())
    assert len(begins.values) == len(ends.values) == length
    assert all(abs(sum(mark.values) - 1) < 0.01 for mark in figure.marks)
    assert abs(experiment.notes["baselines"]["any of the answers"] - 1 / 2) < 1e-6


def test_padding_is_trimmed_to_the_longest_row():
    x, mask = trimmed(torch.tensor([[5, 6, 0, 0], [5, 6, 7, 0]]))
    assert x.tolist() == [[5, 6, 0], [5, 6, 7]]
    assert mask.tolist() == [[True, True, False], [True, True, True]]
    assert trimmed(torch.zeros(2, 3).long())[0].shape == (2, 1)


def test_the_baselines_by_hand():
    train = Examples(x=torch.tensor([[1, 1, 0], [2, 2, 3]]), y=torch.tensor([0, 1]))
    test = Examples(x=torch.tensor([[1, 3, 0], [1, 1, 3], [2, 0, 0]]), y=torch.tensor([1, 0, 1]))
    # Smoothed by one over a vocabulary of 4: the first text is 3/6 * 1/6 against 1/7 * 2/7, said wrongly.
    assert naive_bayes(Dataset("hand", {"train": train, "test": test}, ("a", "b")), 4) == pytest.approx(2 / 3)
    tags = {
        "train": Examples(x=torch.tensor([[1, 1, 1, 2]]), y=torch.tensor([[0, 1, 1, -100]])),
        "test": Examples(x=torch.tensor([[1, 2, 3, 1]]), y=torch.tensor([[1, 1, 0, -100]])),
    }
    assert most_frequent_tag(Dataset("hand", tags, ("a", "b")), 4) == pytest.approx(2 / 3)
    assert most_frequent_tag(load("homographs"), 60) < 0.9
