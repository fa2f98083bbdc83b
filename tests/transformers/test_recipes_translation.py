"""The recipe that translates without recurrence: what it computes, shows and says, before and after a few steps."""

import dataclasses

import pytest
import torch

from lemmata.data import load
from lemmata.figure import Heat
from lemmata.recurrent.recipes_translation import BASELINES, SHOWN, read
from lemmata.train import Options, run_experiment
from lemmata.transformers.recipes_translation import (
    AligningTranslator,
    TransformerConfig,
    hidden_words,
    translate_with_attention_alone,
)

SMALL = TransformerConfig(width=8, depth=2, heads=2, hidden=16, beams=2, min_freq=20)
FEW = Options(steps=2, batch_size=8, device="cpu")


@pytest.fixture(scope="module")
def experiment():
    return translate_with_attention_alone(config=SMALL, options=FEW)


def test_a_few_steps_can_be_run_scored_and_resumed(tmp_path):
    def short(steps):
        experiment = translate_with_attention_alone(config=SMALL, options=Options(steps=steps, batch_size=8, save=1))
        return type(experiment)(**{**vars(experiment), "test": experiment.test[:6]})

    whole = run_experiment(short(2), out=tmp_path / "whole")
    assert 0 <= whole.scores["bleu"] < 5
    assert 50 < whole.scores["perplexity"] < 10_000
    run_experiment(short(1), out=tmp_path / "parts")
    resumed = run_experiment(short(2), out=tmp_path / "parts", resume=True)
    assert all(torch.equal(a, b) for a, b in zip(whole.system.parameters(), resumed.system.parameters(), strict=True))


def test_smoothing_is_for_training_only(experiment):
    batch, system = experiment.train[:4], experiment.system.eval()
    assert torch.equal(experiment.loss(system, batch), system.loss(*read(batch)))
    system.train()


def test_what_is_hidden_are_words_and_a_fraction_of_them(experiment):
    tokens = experiment.train.x
    vocabulary = load("verses", min_freq=20).extra["source"]
    torch.manual_seed(0)
    shown = hidden_words(tokens, vocabulary, 0.25)
    words = tokens > 3  # 0, 2 and 3 are marks, 1 is an unknown word already
    assert torch.equal(shown[~words], tokens[~words])
    changed = shown != tokens
    assert (shown[changed] == vocabulary.numbers["<unknown>"]).all()
    # Some 40,000 words: six standard deviations of their fraction.
    n = int(words.sum())
    assert abs(changed.sum() / n - 0.25) < 6 * (0.25 * 0.75 / n) ** 0.5
    assert torch.equal(hidden_words(tokens, vocabulary, 0.0), tokens)


def test_without_hidden_words_the_loss_is_the_models_own(experiment):
    plain = dataclasses.replace(SMALL, word_dropout=0.0, dropout=0.0)
    experiment = translate_with_attention_alone(config=plain, options=FEW)
    system, batch = experiment.system.train(), experiment.train[:30]
    source, target, lengths = read(batch)
    a_verse = (experiment.train.y[:, 1:] != 0).sum() / len(experiment.train)
    scale = system.counted(target).sum() / (a_verse * 30)
    expected = scale * system.loss(source, target, lengths, plain.smoothing)
    torch.testing.assert_close(experiment.loss(system, batch), expected)


def test_one_block_may_tell_where_is_looked(experiment):
    system, (x, y, lengths) = experiment.system.eval(), read(experiment.train[:3])
    data = load("verses", min_freq=20)
    for aligned, layer in ((0, None), (1, 0), (2, 1), (3, 1)):  # there are two blocks
        translator = AligningTranslator(data, dataclasses.replace(SMALL, aligned=aligned))
        assert torch.equal(translator.looked(system, x, y, lengths), system.alignment(x, y, lengths, layer=layer))
    system.train()


def test_alignments_are_drawn_and_sentences_translated(experiment):
    figure = experiment.picture(experiment.system)
    assert [type(mark) for mark in figure.marks] == [Heat, Heat]
    assert all(abs(sum(row) - 1) < 0.02 for mark in figure.marks for row in mark.values)
    assert isinstance(experiment.sample(experiment.system, 1, torch.Generator(), prompt="Quetzalcoatl spake!"), str)
    assert experiment.write(experiment.system).count("Luther: ") == len(SHOWN)
    predicted = experiment.predict(experiment.system, experiment.test[:5])
    assert ((predicted["probability of a word"] > 0) & (predicted["probability of a word"] < 1)).all()


def test_it_is_told_beside_what_the_score_stands(experiment):
    assert experiment.notes["baselines"] == BASELINES
    assert "seq2seq) reaches 13.1" in experiment.notes["how"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": 0}, "depth must be >= 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
        ({"beams": -1}, "beams must be >= 1, got -1"),
        ({"word_dropout": 1.0}, r"word_dropout must be in \[0, 1\)"),
        ({"aligned": -1}, "aligned must be >= 0, got -1"),
        ({"length_power": -1.0}, "length_power must be >= 0, got -1.0"),
        ({"norm_first": 1}, "norm_first must be True or False, got 1"),
    ],
)
def test_bad_settings_are_named(given, message, unchecked):
    with pytest.raises((TypeError, ValueError), match=message):
        TransformerConfig(**given)
