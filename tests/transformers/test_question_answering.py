"""Spans: the quick search against all spans, masks, lengths, ties, dtypes; and what is refused."""

import itertools

import pytest
import torch

from lemmata.transformers.question_answering import QuestionAnswerer, best_span, passage_mask


def by_trying(start, end, mask, max_length):
    """Every span of one row."""
    time = range(len(start))
    longest = max_length or len(start)
    spans = [(i, j) for i, j in itertools.product(time, time) if i <= j < i + longest and mask[i] and mask[j]]
    return max(spans, key=lambda span: start[span[0]] + end[span[1]])


@pytest.mark.parametrize("max_length", [None, 1, 2, 3, 50])
def test_the_best_span_is_the_best_of_all(max_length):
    generator = torch.Generator().manual_seed(0)
    for time in (1, 2, 7, 12):
        start, end = torch.randn(2, 5, 4, time, generator=generator, dtype=torch.float64)
        mask = torch.rand(5, 4, time, generator=generator) < 0.6
        mask[..., -1] = True
        found = best_span(start, end, mask, max_length)
        assert found.start.shape == found.end.shape == found.score.shape == (5, 4)
        for n in itertools.product(range(5), range(4)):
            i, j = by_trying(start[n], end[n], mask[n], max_length)
            assert (int(found.start[n]), int(found.end[n])) == (i, j)
            assert found.score[n] == start[n][i] + end[n][j]


def test_one_row_without_a_batch_and_without_a_mask():
    found = best_span(torch.tensor([1.0, 0.0, 3.0]), torch.tensor([0.5, 2.0, 0.0]))
    assert [part.item() for part in found] == [0, 1, 3.0]
    # The best start is 2 and the best end 1, which is no span: (2, 2) and (0, 1) both have 3, and the first end wins.


def test_a_sum_in_bfloat16_is_taken_in_float32():
    start = torch.tensor([256.0, 0.0], dtype=torch.bfloat16)
    end = torch.tensor([0.0, 1.0], dtype=torch.bfloat16)  # 257 is no number of bfloat16
    found = best_span(start, end)
    assert (int(found.end), found.score.item(), found.score.dtype) == (1, 257.0, torch.float32)


def test_huge_logits_and_minus_infinity():
    start = torch.tensor([-torch.inf, 1e30, 5.0])
    end = torch.tensor([1e38, -torch.inf, 7.0])
    assert [int(part) for part in best_span(start, end)[:2]] == [1, 2]


def test_the_passage_is_segment_one_without_its_end():
    segments = torch.tensor([[0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1]])
    mask = torch.arange(8) < torch.tensor([[6], [7]])
    expected = torch.tensor([[0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0]]).bool()
    assert torch.equal(passage_mask(segments, mask), expected)
    assert torch.equal(passage_mask(segments[:1]), expected[:1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.zeros(2), torch.zeros(3)), ValueError, r"start and end must be \(..., time\), got \(2,\) and \(3,\)"),
        ((torch.zeros(2, 0), torch.zeros(2, 0)), ValueError, "start and end must be"),
        ((torch.zeros(()), torch.zeros(())), ValueError, "start and end must be"),
        ((torch.zeros(2).int(), torch.zeros(2)), TypeError, "start must hold floating-point numbers, got torch.int32"),
        (([0.0], torch.zeros(1)), TypeError, "start must be a tensor, got list"),
        ((torch.zeros(2), torch.zeros(2), torch.zeros(3).bool()), ValueError, "mask must have the shape of start"),
        ((torch.zeros(2), torch.zeros(2), torch.zeros(2).bool()), ValueError, "mask must leave at least one token"),
        ((torch.zeros(2), torch.zeros(2), None, 0), ValueError, "max_length must be >= 1, got 0"),
    ],
)
def test_what_is_refused(arguments, error, message, unchecked):
    with pytest.raises(error, match=message):
        best_span(*arguments)


def test_the_loss_takes_places_of_any_whole_numbers():
    model = QuestionAnswerer(20, width=8, depth=1, heads=2, hidden=8).eval()
    x, start, end = torch.randint(20, (2, 6)), torch.tensor([1, 2]), torch.tensor([3, 2])
    assert model.loss(x, start.int(), end.to(torch.int16)).equal(model.loss(x, start, end))
