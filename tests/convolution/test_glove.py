"""GloVe: gradients, counts by two loops, planted analogies, the optimum by alternating regressions, refusals."""

import itertools

import pytest
import torch
from torch.nn import functional

from lemmata.convolution.glove import GloVe, cooccurrence_counts


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = GloVe(6, 4, maximum=5.0, dtype=torch.float64)
    for values in model.parameters():
        torch.nn.init.normal_(values)
    return model


PAIRS = torch.tensor([[0, 1], [1, 0], [3, 3], [5, 2]])
COUNTS = torch.tensor([2.0, 2.0, 9.0, 0.5], dtype=torch.float64)


def test_gradients_are_those_of_finite_differences(model):
    assert torch.autograd.gradcheck(lambda *_: model.loss(PAIRS, COUNTS), tuple(model.parameters()))


def test_frequent_pairs_weigh_one_and_others_less(model):
    found = model.weights(torch.tensor([5.0, 80.0, 5 / 16, 0.0]))
    assert found.tolist() == pytest.approx([1.0, 1.0, 1 / 8, 0.0])


def test_counts_are_those_of_two_loops():
    tokens = torch.randint(7, (40,), generator=torch.Generator().manual_seed(0))
    for window in (1, 4, 100):
        looped = torch.zeros(7, 7)
        for s, t in itertools.permutations(range(40), 2):
            if abs(s - t) <= window:
                looped[tokens[s], tokens[t]] += 1 / abs(s - t)
        pairs, counts = cooccurrence_counts(tokens, 7, window)
        assert torch.equal(pairs, looped.nonzero())
        torch.testing.assert_close(counts, looped[looped > 0])


def test_sweeps_reach_what_alternating_regressions_reach():
    """A symmetric table without noise, of rank two: both fit it, each in its way."""
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(10, 2, generator=generator, dtype=torch.float64)
    counts = (u @ u.T / 2 + 2).exp()
    pairs = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    torch.manual_seed(0)
    model = GloVe(10, 2, dtype=torch.float64)
    squares = model.initial_squares()
    losses = [model.sweep(pairs, counts.flatten(), squares, lr=0.3, batch_size=100) for _ in range(600)]
    weights = model.weights(counts.flatten()).view(10, 10)
    x, p, y, q = u, torch.zeros(10), torch.randn(10, 2, dtype=torch.float64), torch.zeros(10, dtype=torch.float64)
    for _ in range(200):
        for _ in range(2):  # rows given columns, then the other way round: the table is symmetric
            design = torch.cat([y, torch.ones(10, 1)], 1)
            root = weights.sqrt()
            solved = torch.linalg.lstsq(root[:, :, None] * design, root * (counts.log() - q)).solution
            x, p, y, q = y, q, solved[:, :2], solved[:, 2]
    regression = weights * (x @ y.T + p[:, None] + q - counts.log()).square()
    assert regression.sum() < 1e-6
    assert losses[-1] < 1e-6


def test_a_planted_analogy_is_answered():
    """Words with two properties, such as a country and being its capital; each meets one word of each property."""
    drawn = torch.randint(12, (6000,), generator=torch.Generator().manual_seed(0))
    text = torch.stack([12 + drawn // 2, drawn, 18 + drawn % 2], 1).flatten()  # place, word, kind
    pairs, counts = cooccurrence_counts(text, 20, window=1)
    torch.manual_seed(0)
    model = GloVe(20, 16, maximum=10.0)
    squares = model.initial_squares()
    for _ in range(200):
        model.sweep(pairs, counts, squares, lr=0.2)
    questions = torch.tensor([[2 * a, 2 * a + 1, 2 * b] for a, b in itertools.permutations(range(6), 2)])
    right = model.analogies(questions)[:, 0] == questions[:, 2] + 1
    assert right.double().mean() > 0.7
    assert (model.nearest(questions[:, 2], 1)[:, 0] == questions[:, 2] + 1).double().mean() < 0.5


def test_neighbours_and_analogies_are_the_largest_cosines(model):
    vectors = functional.normalize(model.embed(torch.arange(6)).detach(), dim=1)
    words = torch.tensor([2, 5])
    for row, word, found in zip(vectors[words] @ vectors.T, words, model.nearest(words, 5), strict=True):
        assert found.tolist() == [k for k in row.argsort(descending=True).tolist() if k != word]
    wanted = (vectors[1] - vectors[0] + vectors[4]) @ vectors.T
    left = [k for k in wanted.argsort(descending=True).tolist() if k not in (0, 1, 4)]
    assert model.analogies(torch.tensor([[0, 1, 4]]), 3).tolist() == [left]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_losses_have_the_dtype(dtype):
    model = GloVe(6, 3, dtype=dtype)
    assert model.loss(PAIRS, COUNTS.to(dtype)).dtype is dtype
    assert model.sweep(PAIRS, COUNTS, model.initial_squares()) > 0
    assert "vocab_size=6, dimensions=3" in repr(model)


ONE = torch.tensor([1])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GloVe(1, 2), "vocab_size must be >= 2, got 1"),
        (lambda: GloVe(2, 0), "dimensions must be >= 1, got 0"),
        (lambda: GloVe(2, 2, maximum=0.0), "maximum must be > 0, got 0.0"),
        (lambda: GloVe(2, 2, exponent=-1.0), "exponent must be >= 0, got -1.0"),
        (lambda: GloVe(2, 2)(ONE + 1), "words must hold tokens from 0 to 1, got 2 to 2"),
        (lambda: GloVe(2, 2).loss(ONE, ONE.float()), r"pairs must be \(entries, 2\).*got shape \(1,\)"),
        (lambda: GloVe(2, 2).loss(ONE.expand(1, 2), torch.ones(2)), "counts must be one number for each of 1 pairs"),
        (lambda: GloVe(2, 2).loss(ONE.expand(1, 2), torch.zeros(1)), "counts must be > 0 and finite.*leave them out"),
        (lambda: GloVe(2, 2).loss(ONE.expand(1, 2), torch.ones(1) / 0), "counts must be > 0 and finite, got others"),
        (lambda: GloVe(2, 2).loss(ONE.expand(1, 2) + 1, torch.ones(1)), "pairs must hold tokens from 0 to 1"),
        (lambda: GloVe(2, 2).loss(ONE.expand(1, 2).to("meta"), torch.ones(1)), "pairs must be on cpu"),
        (lambda: GloVe(2, 2).sweep(ONE.expand(1, 2), torch.ones(1), None), "squares must be WordTables, got NoneType"),
        (lambda: GloVe(4, 2).analogies(ONE[None]), r"questions must be \(batch, 3\) words, got shape \(1, 1\)"),
        (lambda: GloVe(4, 2).nearest(ONE, 4), "count must be"),
        (lambda: cooccurrence_counts(ONE, 2), r"at least 2 words, got shape \(1,\)"),
        (lambda: cooccurrence_counts(ONE.repeat(3), 1), "tokens must hold tokens from 0 to 0"),
        (lambda: cooccurrence_counts(ONE.repeat(3), 2, 0), "window must be >= 1, got 0"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
