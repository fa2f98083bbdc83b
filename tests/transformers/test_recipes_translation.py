"""The recipe that translates without recurrence: what it computes, shows and says, before and after a few steps."""

import pytest
import torch

from lemmata.figure import Heat
from lemmata.recurrent.recipes_translation import BASELINES, SHOWN, read
from lemmata.train import Options, run_experiment
from lemmata.transformers.recipes_translation import TransformerConfig, translate_with_attention_alone

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
        ({"norm_first": 1}, "norm_first must be True or False, got 1"),
    ],
)
def test_bad_settings_are_named(given, message, unchecked):
    with pytest.raises((TypeError, ValueError), match=message):
        TransformerConfig(**given)
