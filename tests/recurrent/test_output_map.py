"""What the claims about heads do not say: bad input, dtypes, randomness, any layer."""

import pytest
import torch
from torch.nn import functional

from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.output_map import Autoregressor, SequenceClassifier, Tagger
from lemmata.recurrent.stacked import Stacked

TEXT = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])


def both_ways():
    return Bidirectional(Elman(2, 3), Elman(2, 3))


def model():
    return Autoregressor(Stacked(Elman(2, 3), Elman(3, 4)), vocab_size=4)


@pytest.mark.parametrize("layer", [Elman(2, 3), both_ways(), Stacked(both_ways(), Elman(6, 2))])
def test_labels_may_come_from_any_layer_and_from_tokens_or_numbers(layer):
    assert Tagger(layer, outputs=5)(torch.randn(1, 4, 2))[0].shape == (1, 4, 5)
    assert Tagger(layer, outputs=5, vocab_size=4)(TEXT)[0].shape == (2, 4, 5)
    assert SequenceClassifier(layer, outputs=5, vocab_size=4)(TEXT, lengths=torch.tensor([4, 0])).shape == (2, 5)


def test_heads_go_on_from_a_state_and_an_empty_sequence_is_read_at_zero():
    tagger = Tagger(Elman(3, 5), outputs=4, activation="sigmoid").double()
    classifier = SequenceClassifier(Elman(3, 5), outputs=4, activation="sigmoid").double()
    classifier.load_state_dict(tagger.state_dict())
    x = torch.randn(6, 7, 3).double()
    labels, last = tagger(x)
    early, middle = tagger(x[:, :4])
    late, end = tagger(x[:, 4:], middle)
    torch.testing.assert_close(torch.cat([early, late], 1), labels)
    torch.testing.assert_close(end, last)
    torch.testing.assert_close(classifier(x), labels[:, -1])
    torch.testing.assert_close(classifier(x[:, 4:], middle), labels[:, -1])
    nothing = classifier(x, lengths=torch.zeros(6, dtype=torch.int64))
    torch.testing.assert_close(nothing, torch.sigmoid(classifier.readout.bias).expand(6, 4))
    system = model().double()
    torch.testing.assert_close(system(TEXT[:, 2:], system(TEXT[:, :2])[1])[0], system(TEXT)[0][:, 2:])


def test_tokens_are_drawn_as_often_as_the_temperature_says():
    system, logits = model().double(), torch.tensor([0.0, 1.0, 2.0, -1.0]).double()
    with torch.no_grad():
        system.readout.weight.zero_()
        system.readout.bias.copy_(logits)
    start, draws = torch.zeros(1, 1, dtype=torch.int64), 20_000
    torch.testing.assert_close(system.loss(TEXT), -functional.log_softmax(logits, 0)[TEXT[:, 1:]].mean())
    assert system.sample(start.expand(5, 1), 3, temperature=0).equal(torch.full((5, 3), 2))
    for temperature in (0.5, 1.0, 4.0):
        generator = torch.Generator().manual_seed(8)
        drawn = system.sample(start.expand(draws, 1), 2, temperature, generator)[:, 1].bincount(minlength=4) / draws
        # Six standard deviations of a frequency, at most 1/2 / sqrt(n).
        torch.testing.assert_close(drawn.double(), (logits / temperature).softmax(0), rtol=0, atol=3 / draws**0.5)


def test_the_same_generator_draws_the_same_tokens():
    system = model()
    draws = [system.sample(TEXT, 20, generator=torch.Generator().manual_seed(4)) for _ in range(2)]
    assert draws[0].equal(draws[1])
    assert not draws[0].equal(system.sample(TEXT, 20, generator=torch.Generator().manual_seed(5)))
    assert not system.sample(TEXT, 2).requires_grad


def test_writing_does_not_depend_on_the_mode_and_leaves_it_alone():
    system = Autoregressor(Stacked(Elman(2, 3), Elman(3, 4), dropout=0.5), vocab_size=4).train()
    system.layer.layers[0].eval()  # a part that somebody froze
    modes = [part.training for part in system.modules()]
    text = system.sample(TEXT, 20, generator=torch.Generator().manual_seed(4))
    assert [part.training for part in system.modules()] == modes
    assert text.equal(system.eval().sample(TEXT, 20, generator=torch.Generator().manual_seed(4)))
    assert not system.training


def test_tokens_beyond_the_end_of_a_text_do_not_count_in_its_loss():
    system, other = model(), TEXT.clone()
    other[1, 2:] = 1
    lengths = torch.tensor([4, 2])
    assert system.loss(TEXT, lengths).equal(system.loss(other, lengths))
    assert not system.loss(TEXT).equal(system.loss(other))
    assert system.loss(TEXT, lengths.to(torch.uint8)).equal(system.loss(TEXT, lengths))
    assert system.loss(TEXT, torch.tensor([4, 1])).equal(system.loss(TEXT[:1]))


def test_short_whole_numbers_may_say_that_a_sequence_is_empty():
    system, lengths = SequenceClassifier(Elman(2, 3), outputs=5, vocab_size=4), torch.tensor([4, 0])
    assert system(TEXT, lengths=lengths.to(torch.uint8)).equal(system(TEXT, lengths=lengths))


BAD = [
    (lambda: Tagger(torch.nn.Linear(2, 3), 2), TypeError, "layer must be a recurrent layer, got Linear"),
    (lambda: Tagger(Elman(2, 3), 0), ValueError, "outputs must be >= 1, got 0"),
    (lambda: Tagger(Elman(2, 3), 2, "tan"), ValueError, "unknown activation 'tan': did you mean tanh?"),
    (lambda: Tagger(Elman(2, 3), 2, vocab_size=0), ValueError, "vocab_size must be >= 1, got 0"),
    (lambda: Autoregressor(both_ways(), 4), ValueError, "layer must not look ahead"),
    (lambda: Autoregressor(Stacked(both_ways(), Elman(6, 2)), 4), ValueError, "layer must not look ahead"),
    (lambda: model()(TEXT.float()), TypeError, "x must hold tokens as integers, got torch.float32"),
    (lambda: model()(TEXT + 1), ValueError, "x must hold tokens from 0 to 3, got 1 to 4"),
    (lambda: model().loss(TEXT[:, :1]), ValueError, r"with at least 2 steps, got shape \(2, 1\)"),
    (lambda: model().loss(TEXT[0]), ValueError, r"x must be \(batch, time\)"),
    (lambda: model().loss(TEXT, [4, 2]), TypeError, r"lengths must be a tensor, got list: use torch.tensor\(lengths\)"),
    (
        lambda: model().loss(TEXT, torch.tensor([4.0, 2.0])),
        TypeError,
        "lengths must hold integers, got torch.float",
    ),
    (
        lambda: model().loss(TEXT, torch.tensor([4])),
        ValueError,
        r"for each of 2 sequences, got shape \(1,\)",
    ),
    (lambda: model().loss(TEXT, torch.tensor([[4], [2]])), ValueError, r"each of 2 sequences, got shape \(2, 1\)"),
    (lambda: model().loss(TEXT, torch.tensor([5, 2])), ValueError, "lengths must be from 1 to 4, got 2 to 5"),
    (lambda: model().loss(TEXT, torch.tensor([4, 0])), ValueError, "lengths must be from 1 to 4, got 0 to 4"),
    (lambda: model().sample(TEXT[:, :0], 3), ValueError, r"with at least 1 step, got shape \(2, 0\)"),
    (lambda: model().sample(TEXT, 0), ValueError, "length must be >= 1, got 0"),
    (lambda: model().sample(TEXT, 2, temperature=-1.0), ValueError, "temperature must be >= 0, got -1.0"),
    (lambda: model().sample(TEXT, 2, temperature=float("nan")), ValueError, "temperature must be finite, got nan"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arguments_are_named_with_the_fix(unchecked, call, error, message):
    with pytest.raises(error, match=message):
        call()
