"""A text CNN: phrases count wherever they stand, and negation needs filters wider than a word."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.convolution.text_cnn import TextCNN
from lemmata.judge import all_of, claim, close, lie, reaches

WORDS, NOT, GOOD, BAD = 20, 1, 2, 3


def _negated_sentences(draw, count):
    """Ten words, one of them an adjective and one of them "not"; in half of the sentences it negates the adjective."""
    x = draw.integers(4, WORDS, count, 10)
    place, good, negated = draw.integers(3, 10, count), draw.integers(0, 2, count), draw.integers(0, 2, count)
    rows = torch.arange(count)
    x[rows, place] = torch.where(good > 0, GOOD, BAD)
    x[rows, torch.where(negated > 0, place - 1, place - 3)] = NOT
    return x, good ^ negated


class BagOfWords(nn.Module):
    """A linear function of how often each word occurs."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WORDS, 2)

    def forward(self, x):
        return self.head(functional.one_hot(x, WORDS).sum(1).float())


def _trained_accuracy(draw, network, count):
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(80):
        x, y = _negated_sentences(draw, 64)
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()
    x, y = _negated_sentences(draw, count)
    return (network(x).argmax(1) == y).double().mean()


class MeanOverTime(TextCNN):
    """The mean over the sentence in place of the greatest value."""

    def forward(self, x):
        return self.head(torch.cat([scores.mean(2) for scores in self.scores(x)], dim=1))


@claim("conv.text_cnn")
@lie("filters that see one word detect negation", widths=(1,))
@lie("the mean over time does not depend on padding", network=MeanOverTime)
@lie("a bag of words detects negation", unordered=0.95)
def phrases_count_wherever_they_stand(draw, widths=(2, 3, 4), unordered=0.5, network=TextCNN):
    """A phrase at every place among padding, and at the edges; then two thousand sentences with a "not"."""
    drawn, phrase = network(WORDS, 3, 6, 5, dtype=torch.float64), draw.integers(1, WORDS, 4)
    moved = [functional.pad(phrase, (place, more))[None] for place in range(9) for more in (0, 1, 5)]
    logits = torch.cat([drawn(x) for x in moved]).detach()  # (27, 3)
    place = close(logits, logits[:1].expand(27, -1), ulps=64, detail="one phrase, padded in 27 ways")
    if not place.holds:
        return place  # decided without training
    # Without the order of the words one answer is as good as the other: 30,000 fair coins, six deviations.
    bag = close(
        _trained_accuracy(draw, BagOfWords(), 30_000), unordered, within=3 / 30_000**0.5, detail="a bag of words"
    )
    if not bag.holds:
        return bag
    accuracy = _trained_accuracy(draw, network(WORDS, 2, 16, 16, widths), 2000)
    return all_of(place, bag, reaches(accuracy, 0.95, detail="accuracy of the text CNN"))
