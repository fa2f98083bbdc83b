"""Skip-gram: its losses by torch's own parts, planted synonyms, pairs and distributions, torch's habits, refusals."""

import pytest
import torch
from torch.nn import functional

from lemmata.convolution.skip_gram import SkipGram, cooccurring_pairs, thinned, unigram_distribution
from lemmata.fast.skip_gram_sweep import alias_table


@pytest.fixture
def model():
    model = SkipGram(6, 4, dtype=torch.float64)
    for values in model.parameters():
        torch.nn.init.normal_(values)
    return model


def test_both_losses_are_those_of_their_formulas(model):
    words, contexts, negatives = torch.tensor([0, 3]), torch.tensor([5, 3]), torch.tensor([[1, 2, 1], [0, 0, 4]])
    x, y = model.given.weight, model.predicted.weight
    softmax = torch.stack([-(x[w] @ y.T).softmax(0)[c].log() for w, c in ((0, 5), (3, 3))]).mean()
    torch.testing.assert_close(model.loss(words, contexts), softmax, rtol=1e-12, atol=1e-12)
    terms = [(x[w] @ y[c]).sigmoid().log() for w, c in ((0, 5), (3, 3))]
    terms += [(1 - (x[w] @ y[n]).sigmoid()).log() for w, row in ((0, (1, 2, 1)), (3, (0, 0, 4))) for n in row]
    found = model.negative_sampling_loss(words, contexts, negatives)
    torch.testing.assert_close(found, -torch.stack(terms).sum() / 2, rtol=1e-12, atol=1e-12)
    thrice = model.negative_sampling_loss(words, contexts, negatives, beta=3.0)
    torch.testing.assert_close(found, thrice, rtol=1e-12, atol=1e-12)
    assert model.negative_sampling_loss(words, contexts, negatives, beta=1.0) < found


def test_huge_scores_do_not_overflow(model):
    model.given.weight.data *= 1e4
    zero = torch.tensor([0])
    assert model.negative_sampling_loss(zero, zero + 1, zero[None]).isfinite()
    assert model.loss(zero, zero + 1).isfinite()


def test_gradients_are_those_of_finite_differences(model):
    words, contexts, negatives = torch.tensor([0, 3]), torch.tensor([5, 3]), torch.tensor([[1, 2], [0, 4]])
    values = tuple(model.parameters())
    assert torch.autograd.gradcheck(lambda *_: model.loss(words, contexts), values)
    assert torch.autograd.gradcheck(lambda *_: model.negative_sampling_loss(words, contexts, negatives), values)


def test_pairs_are_those_of_two_loops():
    tokens = torch.randint(9, (20,))
    for window in (1, 3, 50):
        looped = [
            (int(tokens[s]), int(tokens[t])) for s in range(20) for t in range(20) if s != t and abs(s - t) <= window
        ]
        assert sorted(map(tuple, cooccurring_pairs(tokens, window).tolist())) == sorted(looped)


def test_the_law_of_negatives_is_that_of_the_powers():
    tokens = torch.tensor([[0, 0, 0, 0], [2, 0, 2, 3]])
    powers = torch.tensor([5.0, 0.0, 2.0, 1.0]) ** 0.75
    torch.testing.assert_close(unigram_distribution(tokens, 4), powers / powers.sum())
    torch.testing.assert_close(unigram_distribution(tokens, 4, power=0.0), torch.tensor([1.0, 0.0, 1.0, 1.0]) / 3)


def test_neighbours_are_the_largest_cosines(model):
    words = torch.tensor([2, 5])
    cosines = functional.cosine_similarity(model.given.weight[words][:, None], model.given.weight[None], dim=-1)
    for row, word, found in zip(cosines, words, model.nearest(words, 5), strict=True):
        assert found.tolist() == [k for k in row.argsort(descending=True).tolist() if k != word]


def test_planted_synonyms_become_neighbours():
    # Words 2k and 2k + 1 are drawn in each other's place; each of ten meanings is followed by the next.
    torch.manual_seed(0)
    text = 2 * (torch.arange(8000) % 10) + torch.randint(2, (8000,))
    pairs, distribution = cooccurring_pairs(text, window=2), unigram_distribution(text, 20)
    model = SkipGram(20, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(150):
        words, contexts = pairs[torch.randint(len(pairs), (512,))].unbind(1)
        negatives = torch.multinomial(distribution, 512 * 5, replacement=True).view(512, 5)
        optimizer.zero_grad()
        model.negative_sampling_loss(words, contexts, negatives).backward()
        optimizer.step()
    words = torch.arange(20)
    assert torch.equal(model.nearest(words, 1)[:, 0], words ^ 1)


def test_sweeps_find_planted_synonyms_and_their_loss_falls():
    torch.manual_seed(0)
    text = 2 * (torch.arange(8000) % 10) + torch.randint(2, (8000,))
    pairs, table = cooccurring_pairs(text, window=2), alias_table(unigram_distribution(text, 20))
    model = SkipGram(20, 12)
    losses = [model.sweep(pairs[torch.randperm(len(pairs))], table, lr=0.05, batch_size=16) for _ in range(4)]
    words = torch.arange(20)
    assert losses[-1] < losses[0] < 6 * 0.6931471805599453  # the loss of vectors that are zero
    assert torch.equal(model.nearest(words, 1)[:, 0], words ^ 1)


def test_a_sweep_follows_from_its_generator(model):
    pairs, distribution = torch.randint(6, (40, 2)), torch.ones(6) / 6
    twins = [SkipGram(6, 4), SkipGram(6, 4)]
    twins[1].load_state_dict(twins[0].state_dict())
    torch.manual_seed(1)
    first = twins[0].sweep(pairs, distribution, generator=torch.Generator().manual_seed(3))
    torch.manual_seed(2)
    assert first == twins[1].sweep(
        pairs.int(), alias_table(distribution), 0.025, 5, 256, torch.Generator().manual_seed(3)
    )
    assert torch.equal(twins[0].given.weight, twins[1].given.weight)
    assert twins[0].given.weight.grad is None
    assert model.sweep(pairs, distribution) > 0  # float64, by the path in torch


def test_a_large_batch_takes_the_sum_of_its_pairs():
    one, two = SkipGram(6, 4, dtype=torch.float64), SkipGram(6, 4, dtype=torch.float64)
    two.load_state_dict(one.state_dict())
    pairs, distribution = torch.tensor([[0, 1], [2, 3]]), torch.tensor([0.0, 0, 0, 0, 0, 1])
    one.sweep(pairs, distribution, lr=0.1, samples=1, batch_size=2)
    two.sweep(pairs[:1], distribution, lr=0.1, samples=1)
    # The vectors of predicted words are zero, so only these change: by half of lr times the given vector.
    torch.testing.assert_close(one.predicted.weight[1], 0.05 * one.given.weight[0], rtol=1e-12, atol=0)
    assert torch.equal(one.predicted.weight[1], two.predicted.weight[1])
    both = -0.05 * (one.given.weight[0] + one.given.weight[2])
    torch.testing.assert_close(one.predicted.weight[5], both, rtol=1e-12, atol=1e-16)


def test_frequent_words_are_thinned_and_rare_ones_kept():
    tokens = torch.cat([torch.zeros(100_000, dtype=torch.int64), torch.arange(1, 11)])
    kept = thinned(tokens, 11, 1e-3, torch.Generator().manual_seed(0))
    assert kept[-10:].tolist() == list(range(1, 11))
    share = 0.001**0.5 + 0.001
    # Six standard deviations of a count.
    assert abs(len(kept) - 10 - share * 100_000) < 6 * (share * 100_000) ** 0.5
    again = thinned(tokens, 11, 1e-3, torch.Generator().manual_seed(0))
    assert torch.equal(kept, again)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_losses_have_the_dtype_and_vectors_begin_small(dtype):
    model, one = SkipGram(5, 3, dtype=dtype), torch.tensor([1])
    assert model.negative_sampling_loss(one, one, one[None]).dtype is dtype
    assert model.given.weight.abs().max() <= 0.5 / 3 + 1e-3  # bfloat16 rounds a sixth upwards
    assert not model.predicted.weight.any()
    assert "vocab_size=5, dimensions=3" in repr(model)


def test_pairs_and_law_must_be_where_the_vectors_are():
    pairs, distribution = torch.randint(5, (4, 2)), torch.ones(5)
    with pytest.raises(ValueError, match="pairs must be on meta, where the vectors are, got cpu"):
        SkipGram(5, 3, device="meta").sweep(pairs, distribution)
    with pytest.raises(ValueError, match="pairs must be on cpu"):
        SkipGram(5, 3).sweep(pairs.to("meta"), distribution)


ONE, PAIR, LAW = torch.tensor([1]), torch.tensor([[1, 1]]), torch.ones(2) / 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SkipGram(1, 2), "vocab_size must be >= 2, got 1"),
        (lambda: SkipGram(2, 0), "dimensions must be >= 1, got 0"),
        (lambda: SkipGram(2, 2)(ONE + 1), "words must hold tokens from 0 to 1, got 2 to 2"),
        (lambda: SkipGram(2, 2).loss(ONE, ONE + 1), "contexts must hold tokens from 0 to 1"),
        (lambda: SkipGram(2, 2).loss(ONE, ONE.repeat(2)), r"same length, got shapes \(1,\) and \(2,\)"),
        (lambda: SkipGram(2, 2).loss(ONE[:0], ONE[:0]), r"same length, got shapes \(0,\) and \(0,\)"),
        (lambda: SkipGram(2, 2).negative_sampling_loss(ONE, ONE, ONE), r"negatives must be \(1, samples\), got shape"),
        (lambda: SkipGram(2, 2).negative_sampling_loss(ONE, ONE, ONE[None] + 1), "negatives must hold tokens"),
        (lambda: SkipGram(2, 2).negative_sampling_loss(ONE, ONE, ONE[None], 0.0), "beta must be > 0, got 0.0"),
        (lambda: SkipGram(2, 2).nearest(ONE, 2), "count must be"),
        (lambda: SkipGram(2, 2).sweep(ONE, LAW), r"pairs must be \(pairs, 2\).*got shape \(1,\)"),
        (lambda: SkipGram(2, 2).sweep(PAIR[:0], LAW), r"pairs must be.*got shape \(0, 2\)"),
        (lambda: SkipGram(2, 2).sweep(PAIR + 1, LAW), "pairs must hold tokens from 0 to 1, got 2 to 2"),
        (lambda: SkipGram(2, 2).sweep(PAIR, LAW, lr=0.0), "lr must be > 0, got 0.0"),
        (lambda: SkipGram(2, 2).sweep(PAIR, LAW, samples=0), "samples must be >= 1, got 0"),
        (lambda: SkipGram(2, 2).sweep(PAIR, LAW, batch_size=0), "batch_size must be >= 1, got 0"),
        (lambda: SkipGram(3, 2).sweep(PAIR, LAW), "distribution must be over 3 words, got 2"),
        (lambda: SkipGram(2, 2).sweep(PAIR, 0 * LAW), "distribution must be a row of probabilities"),
        (lambda: SkipGram(2, 2).nearest(PAIR, 1), r"words must be one row of words, got shape \(1, 2\)"),
        (lambda: SkipGram(2, 2).sweep([[1, 1]], LAW), "pairs must be a tensor, got list"),
        (lambda: SkipGram(2, 2).sweep(PAIR, [0.5, 0.5]), "distribution must be a tensor, got list"),
        (lambda: thinned(PAIR, 2), r"tokens must be one row of words, got shape \(1, 2\)"),
        (lambda: cooccurring_pairs([1, 2]), "tokens must be a tensor, got list"),
        (lambda: thinned(ONE, 2, 0.0), "threshold must be > 0, got 0.0"),
        (lambda: cooccurring_pairs(ONE), r"at least 2 words, got shape \(1,\)"),
        (lambda: cooccurring_pairs(ONE.repeat(3), 0), "window must be >= 1, got 0"),
        (lambda: unigram_distribution(ONE, 1), "tokens must hold tokens from 0 to 0"),
        (lambda: unigram_distribution(ONE[:0], 1), "tokens must not be empty"),
        (lambda: unigram_distribution(ONE, 2, -1.0), "power must be >= 0, got -1.0"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
