"""How far back the gradient of a task reaches, as the figure of a run shows it: against new starts and bounds."""

import pytest
import torch
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.recurrent import CELLS, GRU, LRU, LSTM, Elman, SequenceReader, task_gradients
from lemmata.recurrent.gradient_flow import with_spectral_norm
from lemmata.recurrent.task_gradients import gradient_reach


def last_output(block, x, state):
    """What a residual block makes of the state after a step."""
    layer = block.layer
    if isinstance(layer, LRU):
        inside = layer.readout((state @ layer.readout_matrix.mT).real, x)
    else:
        inside = state[0] if isinstance(state, tuple) else state
    u = x + block.project(inside)
    return u + block.network(u)


def reach(reader, x, y):
    """How strongly the loss depends on states of the lowest layer, by starting anew from each: the median sequence."""
    block, below = reader.layers[0], reader.embed(x).detach()
    norms = []
    for t in range(below.shape[1], -1, -1):
        early, state = block(below[:, :t])
        parts = [part.detach().requires_grad_() for part in (state if isinstance(state, tuple) else (state,))]
        state = tuple(parts) if isinstance(state, tuple) else parts[0]
        own = [last_output(block, below[:, t - 1], state)[:, None]] if t else []
        top = torch.cat([early[:, : max(t - 1, 0)], *own, block(below[:, t:], state)[0]], 1)
        for above in reader.layers[1:]:
            top = above(top)[0]
        told = reader.read(top[:, -1])
        loss = told[:, 0] - y if y.is_floating_point() else -told.log_softmax(1).gather(1, y[:, None])
        found = torch.autograd.grad((loss**2 if y.is_floating_point() else loss).sum(), parts, materialize_grads=True)
        if len(parts) == 2 and t:  # of an LSTM: its output is o tanh(c), so the cell leads to that, too
            (hidden, cell), (by_hidden, by_cell) = parts, found
            found = by_hidden, by_cell + by_hidden * hidden / cell.tanh() * (1 - cell.tanh() ** 2)
        norms.append(torch.cat(found, 1).abs().square().sum(1).sqrt())
    return (torch.stack(norms) / norms[0]).median(1).values


def limits(layer, x):
    """The most that a step leaves of a gradient, at each step, where the layer tells: by singular values or runs."""
    if isinstance(layer, Elman):
        return torch.linalg.svdvals(layer.recurrent_weight)[0].expand(x.shape[1])
    if isinstance(layer, LSTM | GRU):
        return None
    start = layer.initial_state(len(x))
    kept = [layer.step(now, start + 1)[1] - layer.step(now, start)[1] for now in x.unbind(1)]
    return torch.stack([each.abs().amax() for each in kept])


@pytest.mark.parametrize(("vocab_size", "depth"), [(None, 1), (5, 1), (None, 2)])
@pytest.mark.parametrize("cell", CELLS)
def test_the_figure_shows_what_new_starts_give_below_what_theory_allows(cell, vocab_size, depth):
    torch.manual_seed(3)
    reader = SequenceReader(2, 3 if vocab_size else 1, cell, width=4, hidden=3, depth=depth, vocab_size=vocab_size)
    x = torch.randint(5, (3, 6)) if vocab_size else torch.randn(3, 6, 2)
    y = torch.randint(3, (3,)) if vocab_size else torch.randn(3, dtype=torch.float64)
    figure = gradient_reach(reader, Examples(x=x, y=y))
    reader, x = reader.double(), x if vocab_size else x.double()
    lines = [torch.tensor(mark.y, dtype=torch.float64) for mark in figure.marks]
    torch.testing.assert_close(lines[0], reach(reader, x, y))
    assert all(mark.x == list(range(7)) for mark in figure.marks)
    assert (figure.y_log, bool(figure.note)) == (True, cell in ("lstm", "gru") or depth > 1)
    least = limits(reader.layers[0].layer, functional.layer_norm(reader.embed(x), (4,)))
    assert len(lines) == (1 if least is None else 2)
    if least is not None:
        torch.testing.assert_close(lines[1], torch.cat([least.new_ones(1), least.flip(0).cumprod(0)]))
        # With more layers gradients pass above the lowest one, too; some slack for equality up to rounding.
        assert depth > 1 or bool((lines[0] <= lines[1] * (1 + 1e-9)).all())


@pytest.mark.parametrize(("norm", "steps", "every", "within"), [(25.0, 4, 1, 3), (1e-3, 7, 1, 6), (0.95, 399, 2, 200)])
def test_of_many_lags_two_hundred_are_shown_and_of_extreme_bounds_nothing(norm, steps, every, within):
    reader = SequenceReader(2, 1, "elman", width=2, hidden=2)
    lowest = reader.layers[0].layer.recurrent_weight
    lowest.data = with_spectral_norm(lowest.data, norm)
    bound = gradient_reach(reader, Examples(x=torch.randn(1, steps, 2), y=torch.randn(1))).marks[1]
    assert bound.x == list(range(0, steps + 1, every))
    assert [each is not None for each in bound.y] == [index < within for index in range(len(bound.x))]


class Subclass(Elman):
    """What it does with its states, nobody knows."""


def test_no_bound_is_drawn_of_a_subclass_nor_where_the_measured_exceeds_it(monkeypatch):
    reader = SequenceReader(2, 1, "elman", width=2, hidden=2)
    batch = Examples(x=torch.randn(1, 9, 2), y=torch.randn(1))
    assert len(gradient_reach(reader, batch).marks) == 2
    monkeypatch.setattr(task_gradients, "known_step_bound", lambda layer: 1e-3)
    exceeded = gradient_reach(reader, batch)
    assert (len(exceeded.marks), exceeded.note) == (1, "This layer exceeds the bound of its kind: it is not drawn.")
    monkeypatch.undo()
    reader.layers[0].layer.__class__ = Subclass
    unknown = gradient_reach(reader, batch)
    assert (len(unknown.marks), unknown.note) == (1, "No bound is known for this layer.")
