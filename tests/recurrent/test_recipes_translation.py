"""The recipe that translates: what it computes, shows and says, before and after a few steps of training."""

import pytest
import torch

from lemmata.data import load
from lemmata.data.text import words
from lemmata.figure import Heat
from lemmata.lab.figures.svg import svg
from lemmata.measure import WordByWord, corpus_bleu
from lemmata.recurrent.recipes_translation import BASELINES, SHOWN, TranslationConfig, read, translate_verses
from lemmata.train import Options, run_experiment

SMALL = TranslationConfig(embedding=8, hidden=8, beams=2, min_freq=20)


@pytest.fixture(scope="module")
def experiment():
    return translate_verses(config=SMALL, options=Options(steps=2, batch_size=8, device="cpu"))


def test_a_batch_is_read_up_to_its_longest_verse():
    data = load("verses")
    source, target, lengths = read(data.train[:5])
    assert source.shape[1] == int(lengths.max())
    assert (source[torch.arange(5), lengths - 1] == data.extra["source"].numbers["<end>"]).all()
    ends = target == data.extra["target"].numbers["<end>"]
    assert (ends.sum(1) == 1).all()
    assert ends[:, -1].any()
    assert not (target == data.extra["target"].numbers["<start>"]).any()


def test_a_few_steps_can_be_run_and_scored():
    experiment = translate_verses(config=SMALL, options=Options(steps=2, batch_size=8, device="cpu"))
    short = type(experiment)(**{**vars(experiment), "test": experiment.test[:6]})
    scores = run_experiment(short).scores
    assert 0 <= scores["bleu"] < 5
    assert 0 <= scores["accuracy"] < 0.5
    assert 50 < scores["perplexity"] < 10_000


def test_the_same_seed_gives_the_same_model():
    first, second = (translate_verses(config=SMALL).system.state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_smoothing_is_for_training_only(experiment):
    batch = experiment.train[:4]
    system = experiment.system.eval()
    source, target, lengths = read(batch)
    assert torch.equal(experiment.loss(system, batch), system.loss(source, target, lengths))
    system.train()


def test_the_alignment_is_drawn_with_its_words(experiment):
    experiment.system.train()
    figure = experiment.picture(experiment.system)
    assert experiment.system.training
    assert [type(mark) for mark in figure.marks] == [Heat, Heat]
    assert all(abs(sum(row) - 1) < 0.02 for mark in figure.marks for row in mark.values)
    assert all(len(mark.rows) == len(mark.values) for mark in figure.marks)
    assert figure.marks[0].columns[:2] == ["<start>", "now"]
    assert svg(figure).startswith("<svg")


def test_any_sentence_is_translated_even_an_empty_one(experiment):
    generator = torch.Generator().manual_seed(0)
    assert isinstance(experiment.sample(experiment.system, 1, generator, prompt="Quetzalcoatl spake!"), str)
    assert isinstance(experiment.sample(experiment.system, 1, generator, prompt=""), str)
    assert experiment.sample(experiment.system, 3, generator).count("->") == 3
    assert experiment.write(experiment.system).count("Luther: ") == len(SHOWN)


def test_a_translation_does_not_depend_on_the_mode(experiment):
    sentence = "In the beginning God created the heaven and the earth."
    said = [experiment.sample(experiment.system.train(mode), 1, torch.Generator(), sentence) for mode in (True, False)]
    assert said[0] == said[1]


def test_predictions_are_probabilities(experiment):
    found = experiment.predict(experiment.system, experiment.test[:7])
    assert ((found["probability of a word"] > 0) & (found["probability of a word"] < 1)).all()
    assert found["words"].tolist() == [len(words(english)) for english, _ in load("verses").extra["test"][:7]]


def test_verses_of_a_larger_vocabulary_are_predicted_too(experiment):
    experiment.system.eval()
    whole = load("verses").test[:7]  # which is what the command line gives
    found = experiment.predict(experiment.system, whole)
    expected = experiment.predict(experiment.system, experiment.test[:7])
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_without_attention_there_is_no_picture_and_nothing_to_copy():
    config = TranslationConfig(embedding=8, hidden=8, beams=2, min_freq=20, attention=False)
    experiment = translate_verses(config=config)
    assert experiment.picture is None
    assert isinstance(experiment.write(experiment.system), str)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"smoothing": -0.1}, r"smoothing must be in \[0, 1\), got -0.1"),
        ({"cell": "lru"}, "cell must be one of gru, lstm, elman, got 'lru'"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_choices_name_the_fix(words, message):
    with pytest.raises(ValueError, match=message):
        TranslationConfig(**words)


@pytest.mark.long
@pytest.mark.measures(
    "recurrent.recipes_translation", "copying the English", "word by word with a learnt dictionary (IBM model 1)"
)
def test_the_baselines_are_what_they_reach():
    data = load("verses")
    learnt, test = ([(words(en), words(de)) for en, de in data.extra[part]] for part in ("train", "test"))
    german = [de for _, de in test]
    dictionary = WordByWord().fit(learnt)
    reached = [corpus_bleu([en for en, _ in test], german)]
    reached.append(corpus_bleu([dictionary.translate(en) for en, _ in test], german))
    assert reached == pytest.approx(list(BASELINES.values()), abs=0.01)


@pytest.mark.long
def test_the_translator_beats_the_dictionary():
    experiment = translate_verses()
    scores = run_experiment(experiment).scores
    assert scores["bleu"] > max(BASELINES.values())
    assert scores["perplexity"] < 248 / 5
