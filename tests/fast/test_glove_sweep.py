"""A sweep over a table of co-occurrences: torch's AdaGrad on J at any batch size, in C as in torch; refusals."""

import shutil

import pytest
import torch

from lemmata.convolution.glove import GloVe
from lemmata.fast import glove_sweep
from lemmata.fast.compiled_library import COMPILERS
from lemmata.fast.glove_sweep import WordTables, sweep_entries, sweep_entries_compiled, sweep_entries_in_torch

needs_a_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")
WORDS = 11
SWEEPS = [sweep_entries_in_torch, pytest.param(sweep_entries_compiled, marks=needs_a_compiler)]


def problem(dimensions, dtype=torch.float32, entries=60):
    generator = torch.Generator().manual_seed(dimensions)
    shapes = [(WORDS, dimensions)] * 2 + [(WORDS,)] * 2
    vectors = WordTables(*(torch.randn(s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes))
    squares = WordTables(*(torch.rand(s, generator=generator, dtype=torch.float64).to(dtype) + 0.5 for s in shapes))
    pairs = torch.randint(WORDS, (entries, 2), generator=generator)
    counts = 20 * torch.rand(entries, generator=generator, dtype=torch.float64).to(dtype) + 0.1
    return vectors, squares, pairs, counts


def swept(sweep, vectors, squares, pairs, counts, batch_size):
    weights = (counts / 10).pow(0.75).clamp(max=1)
    return sweep(vectors, squares, pairs, counts.log(), weights, 0.1, batch_size)


def by_autograd(vectors, squares, pairs, counts, batch_size):
    """torch's AdaGrad on half of J, in float64; the squares that it begins with put into its state."""
    model = GloVe(WORDS, vectors.given.shape[1], maximum=10.0, dtype=torch.float64)
    parts = (model.given.weight, model.predicted.weight, model.given_bias, model.predicted_bias)
    optimizer, total = torch.optim.Adagrad(parts, lr=0.1), 0.0
    for part, values, square in zip(parts, vectors, squares, strict=True):
        part.data.copy_(values)
        optimizer.state[part]["sum"].copy_(square)
    for first in range(0, len(pairs), batch_size):
        optimizer.zero_grad()
        loss = model.loss(pairs[first : first + batch_size], counts[first : first + batch_size].double())
        (loss / 2).backward()
        optimizer.step()
        total += loss.item()
    return [*parts, *(optimizer.state[part]["sum"] for part in parts)], total / len(pairs)


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("batch_size", [1, 16, 1000])
@pytest.mark.parametrize("dimensions", [1, 3, 16, 37])
def test_a_sweep_is_torchs_adagrad_on_half_of_the_loss(sweep, dimensions, batch_size):
    vectors, squares, pairs, counts = problem(dimensions)
    expected, loss = by_autograd(vectors, squares, pairs, counts, batch_size)
    found = swept(sweep, vectors, squares, pairs, counts, batch_size)
    for one, other in zip((*vectors, *squares), expected, strict=True):
        torch.testing.assert_close(one.double(), other.detach(), rtol=1e-4, atol=1e-4)
    assert found == pytest.approx(loss, rel=1e-4)


def test_in_double_precision_it_is_to_the_last_digits():
    vectors, squares, pairs, counts = problem(5, torch.float64)
    expected, loss = by_autograd(vectors, squares, pairs, counts, 7)
    assert sweep_entries_compiled(vectors, squares, pairs, counts.log(), counts, 0.1, 7) is None
    assert swept(sweep_entries, vectors, squares, pairs, counts, 7) == pytest.approx(loss, rel=1e-12)
    for one, other in zip((*vectors, *squares), expected, strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-12, atol=1e-12)


def test_without_a_compiler_the_same_is_computed(monkeypatch):
    results = []
    for library in (glove_sweep._sweep_library, lambda: None):
        monkeypatch.setattr(glove_sweep, "_sweep_library", library)
        vectors, squares, pairs, counts = problem(8)
        results.append((swept(sweep_entries, vectors, squares, pairs, counts, 16), vectors.given))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_what_is_not_a_number_stays_none(sweep):
    vectors, squares, pairs, counts = problem(8)
    vectors.given[0] = torch.nan
    pairs[0, 0] = 0
    assert swept(sweep, vectors, squares, pairs, counts, 4) != swept(sweep, *problem(8), 4)
    assert vectors.predicted.isnan().any()


@needs_a_compiler
def test_working_space_does_not_follow_the_default_dtype_or_device():
    losses = []
    for dtype, device in ((torch.float32, "cpu"), (torch.bfloat16, "meta")):
        vectors, squares, pairs, counts = problem(64)
        targets, was = counts.log(), torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            with torch.device(device):
                losses.append(sweep_entries_compiled(vectors, squares, pairs, targets, counts, 0.1, 50))
        finally:
            torch.set_default_dtype(was)
    assert losses[0] == losses[1]


@needs_a_compiler
@pytest.mark.parametrize("wrong", [-1, WORDS, 2**60])
@pytest.mark.parametrize("side", [0, 1])
def test_words_beyond_the_vocabulary_are_refused_and_nothing_is_written(side, wrong, monkeypatch):
    vectors, squares, pairs, counts = problem(4)
    before = [values.clone() for values in (*vectors, *squares)]
    pairs[7, side] = wrong
    with pytest.raises(ValueError, match="must hold words from 0 to 10"):
        swept(sweep_entries_compiled, vectors, squares, pairs, counts, 64)
    monkeypatch.setattr(glove_sweep, "_check_entries", lambda *given: None)  # C looks once more
    with pytest.raises(ValueError, match="must hold words from 0 to 10, got others"):
        swept(sweep_entries_compiled, vectors, squares, pairs, counts, 64)
    assert all(torch.equal(one, other) for one, other in zip((*vectors, *squares), before, strict=True))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "change",
    [
        lambda v, s, p, t, w: (WordTables(*(x.to("meta") for x in v)), s, p, t, w),
        lambda v, s, p, t, w: (v._replace(predicted=v.predicted[:-1]), s, p, t, w),
        lambda v, s, p, t, w: (v, s._replace(given_bias=s.given_bias[:-1]), p, t, w),
        lambda v, s, p, t, w: (v, s._replace(given=s.given * 0), p, t, w),
        lambda v, s, p, t, w: (v, s._replace(given=s.given.double()), p, t, w),
        lambda v, s, p, t, w: (v._replace(given=v.given.clone().requires_grad_()), s, p, t, w),
        lambda v, s, p, t, w: (v._replace(given=v.given[:1].expand(WORDS, -1)), s, p, t, w),
        lambda v, s, p, t, w: (tuple(v), s, p, t, w),
        lambda v, s, p, t, w: (v, s, p.int(), t, w),
        lambda v, s, p, t, w: (v, s, p.flatten(), t, w),
        lambda v, s, p, t, w: (v, s, p[:0], t, w),
        lambda v, s, p, t, w: (v, s, p, t[:-1], w),
        lambda v, s, p, t, w: (v, s, p, t, w.double()),
        lambda v, s, p, t, w: (v, s, p, t.to("meta"), w),
    ],
)
def test_what_c_would_misread_does_not_reach_it(change):
    vectors, squares, pairs, counts = problem(4)
    for sweep in (sweep_entries, sweep_entries_compiled, sweep_entries_in_torch):
        with pytest.raises((TypeError, ValueError), match="must"):
            sweep(*change(vectors, squares, pairs, counts.log(), counts), 0.1, 16)
        with pytest.raises(ValueError, match="batch_size must be >= 1, got 0"):
            sweep(vectors, squares, pairs, counts.log(), counts, 0.1, 0)
