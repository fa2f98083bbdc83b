"""A sweep over pairs of words: the gradient of the loss at any size, in C as in torch; and what is drawn."""

import math
import shutil

import pytest
import torch

from lemmata.convolution.skip_gram import SkipGram
from lemmata.fast import skip_gram_sweep
from lemmata.fast.compiled_library import COMPILERS
from lemmata.fast.skip_gram_sweep import (
    WHOLE,
    AliasTable,
    alias_negatives,
    alias_table,
    sweep_pairs,
    sweep_pairs_compiled,
    sweep_pairs_in_torch,
)

needs_a_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")
SEED = 2**63 + 12345  # its highest bit is set
WORDS = 11


def problem(dimensions, dtype=torch.float32, pairs=50):
    generator = torch.Generator().manual_seed(dimensions)
    vectors = [torch.randn(WORDS, dimensions, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2)]
    distribution = torch.rand(WORDS, generator=generator)
    return *vectors, torch.randint(WORDS, (pairs, 2), generator=generator), alias_table(distribution)


def by_autograd(given, predicted, pairs, table, lr, samples, batch_size, seed):
    """Plain gradient descent on the sum of the losses of each batch, in float64."""
    model = SkipGram(WORDS, given.shape[1], dtype=torch.float64)
    model.given.weight.data, model.predicted.weight.data = given.double(), predicted.double()
    optimizer, total = torch.optim.SGD(model.parameters(), lr), 0.0
    for first in range(0, len(pairs), batch_size):
        words, contexts = pairs[first : first + batch_size].unbind(1)
        negatives = alias_negatives(table, seed, first * samples, (len(words), samples))
        optimizer.zero_grad()
        loss = model.negative_sampling_loss(words, contexts, negatives) * len(words)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return model.given.weight.detach(), model.predicted.weight.detach(), total / len(pairs)


@pytest.mark.parametrize("sweep", [sweep_pairs_in_torch, pytest.param(sweep_pairs_compiled, marks=needs_a_compiler)])
@pytest.mark.parametrize(("samples", "batch_size"), [(1, 1), (5, 16), (9, 1000)])
@pytest.mark.parametrize("dimensions", [1, 3, 16, 37])
def test_a_sweep_is_gradient_descent_on_the_loss(sweep, dimensions, samples, batch_size):
    given, predicted, pairs, table = problem(dimensions)
    settings = (pairs, table, 0.05, samples, batch_size, SEED)
    x, y, loss = by_autograd(given, predicted, *settings)
    found = sweep(given, predicted, *settings)
    # Some hundred additions of numbers of order ten, each with half a rounding of float32.
    bound = 4 * torch.finfo(torch.float32).eps * max(1.0, float(x.abs().max()), float(y.abs().max())) * 100
    assert (given - x).abs().max() < bound
    assert (predicted - y).abs().max() < bound
    assert found == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("sweep", [sweep_pairs_in_torch, pytest.param(sweep_pairs_compiled, marks=needs_a_compiler)])
def test_scores_may_be_huge_and_the_loss_is_still_told(sweep):
    given, predicted, pairs, table = problem(8)
    given, predicted = 3 * given, 3 * predicted
    _, _, loss = by_autograd(given, predicted, pairs, table, 1e-9, 9, 64, SEED)
    assert loss > 60  # -ln of a product that float64 could not hold
    assert sweep(given, predicted, pairs, table, 1e-9, 9, 64, SEED) == pytest.approx(loss, rel=1e-5)
    given[0] = torch.nan
    assert math.isnan(sweep(given, predicted, pairs, table, 0.1, 5, 64, SEED))
    assert predicted.isnan().any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_take_the_path_in_torch(dtype):
    given, predicted, pairs, table = problem(4, dtype)
    assert sweep_pairs_compiled(given, predicted, pairs, table, 0.1, 5, 16, SEED) is None
    x, _, _ = by_autograd(given, predicted, pairs, table, 0.1, 5, 16, SEED)
    sweep_pairs(given, predicted, pairs, table, 0.1, 5, 16, SEED)
    assert given.dtype is dtype
    assert (given - x).abs().max() < 1000 * torch.finfo(dtype).eps
    across = torch.ones(4, WORDS).mT
    assert sweep_pairs_compiled(across, across, pairs, table, 0.1, 5, 16, SEED) is None


@needs_a_compiler
@pytest.mark.parametrize("wrong", [-1, WORDS, 2**60])
@pytest.mark.parametrize("where", ["words", "contexts", "negatives"])
def test_words_beyond_the_vocabulary_are_refused_and_nothing_is_written(where, wrong):
    given, predicted, pairs, table = problem(4)
    before = given.clone(), predicted.clone()
    if where == "negatives":
        table = AliasTable(torch.zeros_like(table.keep), torch.full_like(table.other, wrong))
    else:
        pairs[7, int(where == "contexts")] = wrong
    with pytest.raises(ValueError, match="must hold words from 0 to 10"):
        sweep_pairs_compiled(given, predicted, pairs, table, 0.1, 5, 64, SEED)
    assert torch.equal(given, before[0])
    assert torch.equal(predicted, before[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y, pairs, table: (x.to("meta"), y.to("meta"), pairs, table),
        lambda x, y, pairs, table: (x, y, pairs.to("meta"), table),
        lambda x, y, pairs, table: (x, y, pairs.int(), table),
        lambda x, y, pairs, table: (x, y, pairs.flatten(), table),
        lambda x, y, pairs, table: (x, y[:-1], pairs, table),
        lambda x, y, pairs, table: (x, y, pairs, AliasTable(table.keep, table.other[:-1])),
        lambda x, y, pairs, table: (x, y, pairs, AliasTable(table.keep.int(), table.other)),
        lambda x, y, pairs, table: (x, y, pairs[:0], table),
    ],
)
def test_what_c_would_misread_does_not_reach_it(change):
    for sweep in (sweep_pairs, sweep_pairs_compiled, sweep_pairs_in_torch):
        with pytest.raises((TypeError, ValueError), match="must"):
            sweep(*change(*problem(4)), 0.1, 5, 16, SEED)
        with pytest.raises(ValueError, match="batch_size must be >= 1, got 0"):
            sweep(*problem(4), 0.1, 5, 0, SEED)


def test_a_law_whose_sum_overflows_is_a_law():
    mass = [int(part) for part in alias_table(torch.tensor([1e308, 1e308, 1e308], dtype=torch.float64)).keep]
    assert min(mass) >= WHOLE - 3


@needs_a_compiler
def test_working_space_does_not_follow_the_default_dtype_or_device():
    losses = []
    for dtype, device in ((torch.float32, "cpu"), (torch.bfloat16, "meta")):
        given, predicted, pairs, table = problem(64)
        was = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.device(device):
                losses.append(sweep_pairs_compiled(given, predicted, pairs, table, 0.1, 5, 50, SEED))
        finally:
            torch.set_default_dtype(was)
    assert losses[0] == losses[1]


def test_without_a_compiler_the_same_is_computed(monkeypatch):
    results = []
    for library in (skip_gram_sweep._sweep_library, lambda: None):
        monkeypatch.setattr(skip_gram_sweep, "_sweep_library", library)
        given, predicted, pairs, table = problem(8)
        results.append((sweep_pairs(given, predicted, pairs, table, 0.1, 5, 16, SEED), given))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "distribution", [[1.0], [0.75, 0.25], [0.0, 3.0, 0.0, 1e-3, 5.0], [1.0] * 7, [1e30, 1e-30, 1.0]]
)
def test_the_slots_of_a_table_add_up_to_the_law(distribution):
    distribution = torch.tensor(distribution, dtype=torch.float64)
    keep, other = alias_table(distribution)
    mass = keep.clone().index_add_(0, other, WHOLE - keep)  # integers
    assert int(mass.sum()) == len(distribution) * WHOLE
    assert (
        (mass.double() / (len(distribution) * WHOLE) - distribution / distribution.sum()).abs()
        <= len(distribution) / WHOLE
    ).all()
    assert not mass[distribution == 0].any()


def test_draws_have_the_law_and_do_not_depend_on_how_they_are_cut():
    distribution = torch.tensor([0.0, 0.5, 0.2, 0.3], dtype=torch.float64)
    table, count = alias_table(distribution), 200_000
    drawn = alias_negatives(table, SEED, 0, (count, 1))[:, 0]
    shares = torch.bincount(drawn, minlength=4) / count
    # Each share has variance at most 1/4n; the draws follow from the seed, six deviations are room enough.
    assert ((shares - distribution).abs() <= 6 * 0.5 / count**0.5).all()
    assert shares[0] == 0
    together = alias_negatives(table, SEED, 0, (6, 4))
    assert torch.equal(together[2:], alias_negatives(table, SEED, 8, (4, 4)))
    assert not torch.equal(together, alias_negatives(table, SEED + 1, 0, (6, 4)))


def test_the_stream_is_that_of_splitmix64():
    # With 2^31 equal slots a draw is the upper 31 bits; here by integers of any length.
    def splitmix(seed, n):
        z = (seed + (n + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    table = alias_table(torch.ones(1000))
    expected = [(splitmix(SEED, n) >> 32) * 1000 >> 32 for n in range(40)]
    assert alias_negatives(table, SEED, 0, (40, 1))[:, 0].tolist() == expected


@pytest.mark.parametrize("distribution", [[], [0.0, 0.0], [0.5, -0.1], [float("nan"), 1.0], [[1.0]]])
def test_what_is_no_law_is_refused(distribution):
    with pytest.raises(ValueError, match="distribution must be a row of probabilities"):
        alias_table(torch.tensor(distribution))
