"""Tagging with pieces of words: where the tags stand, what is shown, and the baseline, on a corpus made here."""

import pytest
import torch

from lemmata.data.examples import Dataset, Examples
from lemmata.train import Options, run_experiment
from lemmata.transformers import recipes_tagging
from lemmata.transformers.bert import Bert
from lemmata.transformers.recipes_tagging import TaggingConfig, by_the_word, pieces, tag_sentences, tagged_rows
from lemmata.transformers.tagging import Tagger
from lemmata.transformers.wordpiece import WordPiece

FEW = Options(steps=2, batch_size=4, device="cpu")
SMALL = {"width": 8, "depth": 1, "heads": 2, "hidden": 8, "vocab_size": 60}
WORDS = [["The", "dog", "barked", "."], ["They", "dog", "her", "."]]


@pytest.fixture
def corpus(monkeypatch):
    words, tags = WORDS * 10, [[0, 1, 2, 3], [4, 2, 4, 3]] * 10
    parts = {"train": Examples(sentence=torch.arange(16)), "test": Examples(sentence=torch.arange(16, 20))}
    data = Dataset("brown", parts, ("at", "nn", "vb", ".", "pp"), {"words": words, "tags": tags})
    monkeypatch.setattr(recipes_tagging, "load", lambda name: data)
    return data


def test_every_word_is_tagged_at_its_first_piece():
    tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "dog", "##ged", "a"], lower=False)
    assert pieces(tokenizer, ["a", "dogged", "\x00", "zebra"]) == ([2, 7, 5, 6, 1, 1, 3], [None, 0, 1, 1, 2, 3, None])
    rows = tagged_rows(tokenizer, [["dogged", "a"], ["a"] * 9], [[1, 0], [0] * 9], [0, 1], max_length=6)
    assert rows.x.tolist() == [[2, 5, 6, 7, 3]]
    assert rows.y.tolist() == [[-100, 1, -100, 0, -100]]
    with pytest.raises(ValueError, match="max_length must leave at least one sentence, got 2"):
        tagged_rows(tokenizer, [["a"]], [[0]], [0], max_length=2)


@pytest.mark.usefixtures("corpus")
def test_a_few_steps_can_be_run_scored_and_shown():
    assert len(tag_sentences(config=TaggingConfig(**SMALL, sentences=5), options=FEW).train) == 5
    experiment = tag_sentences(config=TaggingConfig(**SMALL), options=FEW)
    assert len(experiment.train) == 16
    run = run_experiment(experiment)
    assert 0 <= run.scores["accuracy"] <= 1
    # "dog" is noun or verb equally often: one word in eight is wrong by the word alone.
    assert experiment.notes["baselines"]["most frequent tag of the word"] == pytest.approx(7 / 8)
    assert [token.split("/")[0] for token in experiment.write(run.system).splitlines()[0].split()] == WORDS[0]
    generator = torch.Generator().manual_seed(0)
    said = experiment.sample(run.system, 1, generator, prompt="The dog.")
    assert [token.split("/")[0] for token in said.split()] == ["The", "dog", "."]
    assert len(experiment.sample(run.system, 3, generator).splitlines()) == 3
    said = experiment.predict(run.system, experiment.test)
    assert (said["words"] == 4).all()
    assert (said["right"] <= 4).all()


@pytest.mark.usefixtures("corpus")
def test_pieces_are_hidden_while_it_trains_and_at_no_other_time():
    seen = []

    class Looking(Tagger):
        """Notes what it reads."""

        def forward(self, x, segments=None, mask=None):
            seen.append(x)
            return super().forward(x, segments, mask)

    experiment = tag_sentences(config=TaggingConfig(**SMALL, word_dropout=0.5), options=FEW)
    system = Looking(**experiment.arguments)
    torch.manual_seed(0)
    experiment.loss(system.train(), experiment.train)
    experiment.loss(system.eval(), experiment.train)
    plain = seen[1]
    assert torch.equal(plain, experiment.train.x[:, : plain.shape[1]])
    marks = plain < 5  # [PAD], [UNK], [CLS], [SEP], [MASK]
    assert torch.equal(seen[0][marks], plain[marks])
    changed = seen[0] != plain
    assert 0 < changed.sum() < (~marks).sum()
    assert (seen[0][changed] == 1).all()


@pytest.mark.usefixtures("corpus")
def test_words_begin_nearly_alike_and_places_do_not():
    encoder = tag_sentences(config=TaggingConfig(**SMALL), options=FEW).system.encoder
    assert 0 < encoder.tokens.weight.abs().max() < 0.01
    assert (encoder.segments.weight == 0).all()
    rows = encoder.positions.weight.detach()
    assert torch.allclose(rows.square().mean(1), torch.tensor(0.02**2))  # sine and cosine of each pair


@pytest.mark.usefixtures("corpus")
def test_a_pre_trained_encoder_is_where_it_begins(tmp_path):
    tokenizer = WordPiece.train(["the dog barked . they her"], 60)
    tokenizer.save_pretrained(tmp_path)
    encoder = Bert(len(tokenizer.vocab), width=8, depth=1, heads=2, hidden=8, max_length=40)
    encoder.save_pretrained(tmp_path)
    experiment = tag_sentences(config=TaggingConfig(encoder=str(tmp_path), max_length=40), options=FEW)
    assert torch.equal(experiment.system.encoder.tokens.weight, encoder.tokens.weight)
    type(experiment.system)(**experiment.arguments).load_state_dict(experiment.system.state_dict())


def test_unseen_words_get_the_most_frequent_tag():
    parts = {"train": ([["a", "b", "b"]], [[0, 1, 1]]), "test": ([["c", "a", "b", "d"]], [[1, 0, 0, 0]])}
    assert by_the_word(parts) == 0.5
