"""The text CNN: its parts in order, short sentences, pre-trained vectors, torch's habits, refusals."""

import pytest
import torch
from torch.nn import functional

from lemmata.convolution.text_cnn import TextCNN, TextCNNConfig


def small(**changed):
    return TextCNN(**{"vocab_size": 9, "classes": 3, "dimensions": 4, "filters": 5, "dtype": torch.float64, **changed})


def test_a_network_is_the_greatest_of_its_windows():
    network, x = small(dropout=0.5).eval(), torch.randint(1, 9, (3, 7))
    vectors = functional.pad(network.embedding(x), (0, 0, 4, 4))  # (batch, zeros and words, dimensions)
    pooled = []
    for width, part in zip((2, 3, 4), network.filters, strict=True):
        windows = [vectors[:, t : t + width].mT.flatten(1) for t in range(7 + 8 - width + 1)]
        values = torch.stack([functional.linear(w, part.weight.flatten(1), part.bias).relu() for w in windows], 2)
        pooled.append(values.amax(2))
    expected = network.head(torch.cat(pooled, dim=1))
    torch.testing.assert_close(network(x), expected, rtol=1e-12, atol=1e-12)
    network.train()
    assert not torch.equal(network(x), network(x))


def test_the_strongest_window_is_where_the_phrase_stands():
    network, x = small(filters=1, widths=(2, 3)), torch.tensor([[5, 6, 1, 2, 7, 0]])
    with torch.no_grad():
        network.embedding.weight.copy_(
            functional.one_hot(torch.arange(9), 9)[:, 1:5]
        )  # words 1 to 4 alone are told apart
        for part in network.filters:
            part.weight.zero_()
            part.weight[0, 0, 0] = part.weight[0, 1, 1] = 1.0
    assert [places.tolist() for places in network.strongest(x)] == [[[2]], [[2]]]
    assert [places.tolist() for places in network.strongest(x.flip(0)[:, 2:4])] == [[[0]], [[0]]]


@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_sentence_may_be_shorter_than_a_filter(length):
    network, x = small(), torch.randint(1, 9, (2, length))
    longer = functional.pad(x, (0, 6))
    torch.testing.assert_close(network(x), network(longer), rtol=1e-12, atol=1e-12)


def test_given_vectors_are_taken_and_padding_stays_zero():
    vectors = torch.randn(9, 4)
    network = small(vectors=vectors)
    assert torch.equal(network.embedding.weight[1:].float(), vectors[1:])
    assert not network.embedding.weight[0].any()
    network(torch.tensor([[0, 1, 2]])).sum().backward()
    assert not network.embedding.weight.grad[0].any()


def test_gradients_are_those_of_finite_differences():
    network, x = small(widths=(1, 2)), torch.randint(1, 9, (2, 4))
    for part in network.filters:
        torch.nn.init.normal_(part.bias)
    others = tuple(network.filters.parameters()) + tuple(network.head.parameters())
    assert torch.autograd.gradcheck(lambda *_: network(x), others)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: small(vocab_size=1), "vocab_size must be >= 2, got 1"),
        (lambda: small(classes=1), "classes must be >= 2, got 1"),
        (lambda: TextCNNConfig(dimensions=0), "dimensions must be >= 1, got 0"),
        (lambda: TextCNNConfig(filters=0), "filters must be >= 1, got 0"),
        (lambda: TextCNNConfig(widths=()), r"widths must name at least one width, as \(2, 3\), got \(\)"),
        (lambda: small(widths=3), r"widths must name at least one width, as \(2, 3\), got 3"),
        (lambda: TextCNNConfig(widths=(2, 0)), "widths must be >= 1, got 0"),
        (lambda: TextCNNConfig(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (lambda: small(vectors=torch.zeros(9, 3)), r"vectors must be \(9, 4\), one for each token, got shape \(9, 3\)"),
        (lambda: small(vectors=[[0.0]]), "vectors must be a tensor, got list"),
        (lambda: small()([[1]]), "x must be a tensor, got list"),
        (lambda: small()(torch.tensor([1])), r"x must be \(batch, time\), got shape \(1,\)"),
        (lambda: small()(torch.tensor([[9]])), "x must hold tokens from 0 to 8, got 9 to 9"),
        (lambda: small()(torch.zeros(1, 1)), r"got torch.float32: use x.long\(\)"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
