"""What the recipes for texts promise: a bag of words that loses, predictions, pictures; reviews by the same path."""

from dataclasses import replace

import pytest
import torch
from sklearn.naive_bayes import MultinomialNB

from lemmata.convolution import recipes_text
from lemmata.convolution.recipes_text import PhraseConfig, bag_of_words, tell_reviews_apart, tell_verses_from_plays
from lemmata.data.examples import Dataset, Examples
from lemmata.figure import Heat
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment


def test_phrases_tell_verses_from_plays_better_than_words_alone():
    experiment = tell_verses_from_plays()
    assert len(experiment.train) == 1000
    run = run_experiment(experiment)
    assert run.scores["accuracy"] > experiment.notes["baselines"]["bag of words"] + 0.01
    assert experiment.predict is not None
    assert experiment.picture is not None
    assert experiment.write is not None
    system = experiment.system.eval().cpu()  # where the test examples are
    with torch.no_grad():
        predicted = experiment.predict(system, experiment.test)
    assert (predicted["class"] == experiment.test.y).double().mean().item() == pytest.approx(run.scores["accuracy"])
    assert ((predicted["probability"] >= 0.5) & (predicted["probability"] <= 1)).all()
    (heat,) = experiment.picture(system).marks
    assert isinstance(heat, Heat)
    counts = torch.tensor(heat.values)
    assert int(counts.sum()) == len(experiment.test)
    assert counts.diag().sum().item() / len(experiment.test) == pytest.approx(run.scores["accuracy"])
    assert counts.sum(1).tolist() == torch.bincount(experiment.test.y).tolist()
    assert {line.split(":")[0] for line in experiment.write(system).splitlines()} <= {"Shakespeare", "verse"}


def test_the_bag_of_words_is_naive_bayes():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randint(0, 12, (300, 5), generator=generator), torch.randint(0, 3, (300,), generator=generator)
    x = torch.where((y[:, None] == 2) & (x > 6), 7, x)
    train, test = Examples(x=x[:200], y=y[:200]), Examples(x=x[200:], y=y[200:])

    def counts(rows):
        return torch.stack([torch.bincount(row, minlength=12)[1:] for row in rows]).numpy()

    theirs = MultinomialNB().fit(counts(train.x), train.y.numpy()).score(counts(test.x), test.y.numpy())
    assert bag_of_words(train, test, 12) == pytest.approx(theirs)


def test_reviews_take_the_same_path(monkeypatch):
    texts = ["a good and fine film"] * 20 + ["a bad and dull film"] * 20
    rows = Examples(text=torch.arange(40), y=torch.tensor([1] * 20 + [0] * 20))
    reviews = Dataset("imdb", {"train": rows, "test": rows[::4]}, ("negative", "positive"), {"texts": texts})
    monkeypatch.setattr(recipes_text, "load", lambda name: {"imdb": reviews}[name])
    _, options = usual_settings(tell_reviews_apart, "textcnn")
    config = PhraseConfig(length=8, labelled=25_000)
    experiment = tell_reviews_apart(config=config, options=replace(options, batch_size=8, epochs=4))
    assert len(experiment.train) == 40
    assert experiment.train.x.shape == (40, 8)
    assert run_experiment(experiment).scores["accuracy"] == 1.0


def test_vectors_are_those_of_the_texts_only_where_they_are_wanted():
    _, options = usual_settings(tell_verses_from_plays, "textcnn")
    own, given = (
        tell_verses_from_plays(config=PhraseConfig(dimensions=8, filters=4, pretrained=wanted), options=options).system
        for wanted in (False, True)
    )
    assert not torch.equal(own.embedding.weight, given.embedding.weight)
    assert not given.embedding.weight[0].any()
    assert given.embedding.weight[1:].std().item() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"labelled": 1}, "labelled must be >= 2, got 1"),
        ({"length": 0}, "length must be >= 1, got 0"),
        ({"min_freq": 0}, "min_freq must be >= 1, got 0"),
        ({"widths": ()}, r"widths must name at least one width, as \(2, 3\), got \(\)"),
    ],
)
def test_bad_choices_are_answered_in_words(chosen, said):
    with pytest.raises(ValueError, match=said):
        PhraseConfig(**chosen)


@pytest.mark.parametrize(("read", "passes"), [(5_000_000, 6), (1200, 2), (100, 1)])
def test_a_short_text_is_read_six_times_and_a_long_one_once(monkeypatch, read, passes):
    rates = []
    monkeypatch.setattr(recipes_text.SkipGram, "sweep", lambda self, pairs, law, lr: rates.append(lr))
    monkeypatch.setattr(recipes_text, "READ", read)
    recipes_text._word_vectors(torch.randint(1, 9, (50, 10)), 9, 4)
    assert rates == pytest.approx([0.025 * (1 - number / passes) for number in range(passes)])
