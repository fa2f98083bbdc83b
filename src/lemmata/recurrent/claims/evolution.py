"""The evolution of a recurrent state: what it depends on, how runs are joined, and what unrolling makes of it."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportOptionalMemberAccess=false

import math

import torch

from lemmata.judge import Figure, Heat, all_of, always, at_least, at_most, claim, close, exactly, lie
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.cells import CELLS, recurrent_layer
from lemmata.recurrent.deep_transition import DeepTransition
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.layer import RecurrentLayer, state_at_end
from lemmata.recurrent.residual_block import ResidualBlock
from lemmata.recurrent.stacked import Stacked
from lemmata.recurrent.unrolling import Unrolled


class FadingProducts(RecurrentLayer):
    """A layer without a quick way of its own: a matrix of products of inputs that fade."""

    def __init__(self, inputs):
        super().__init__(inputs, inputs**2)

    def initial_state(self, batch):
        return torch.zeros(batch, self.inputs, self.inputs, dtype=torch.float64)

    def step(self, x, state):
        state = state / 2 + x[:, :, None] * x[:, None, :]
        return state.flatten(1).tanh(), state


def both_ways(inputs, hidden):
    """A layer whose outputs depend on later inputs, too."""
    return Bidirectional(Elman(inputs, hidden), Elman(inputs, hidden))


def support(layer, x):
    """Entry (t, s) says whether the output at step t depends on the input at step s, by autograd."""
    x = x.clone().requires_grad_()
    outputs = layer(x)[0]
    rows = [torch.autograd.grad(outputs[:, t].sum(), x, retain_graph=True)[0] for t in range(x.shape[1])]
    return torch.stack([row.abs().amax((0, 2)) > 0 for row in rows])


def times(state, factor):
    """A state of one or several tensors, each multiplied by a number."""
    return tuple(times(part, factor) for part in state) if isinstance(state, tuple) else factor * state


def flat(state):
    return torch.cat([flat(part) for part in state], dim=1) if isinstance(state, tuple | list) else state.flatten(1)


def runs_alone(layer, x, lengths, start):
    """Each sequence by itself, cut off at its end, one step after another, with zeros behind it."""
    outputs, states = x.new_zeros(*x.shape[:2], layer.outputs), []
    for index, length in enumerate(lengths.tolist()):
        own = tuple(part[index : index + 1] for part in start) if isinstance(start, tuple) else start[index : index + 1]
        found, state = layer.by_steps(x[index : index + 1, :length], own)
        outputs[index, :length] = found[0]
        states.append(flat(state))
    return outputs, torch.cat(states)


def normalised(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def by_pieces(block, x):
    """What a new residual block should give, from the matrices in it: its norms do not scale yet."""
    u = x + block.layer(normalised(x))[0] @ block.project.weight.T + block.project.bias
    if block.network is None:
        return u
    _, first, _, second = block.network
    total = normalised(u) @ first.weight.T + first.bias
    return u + (total * torch.special.ndtr(total)) @ second.weight.T + second.bias


def inside(block):
    """How many units the network of a block has."""
    return 0 if block.network is None else len(block.network[1].weight)


def layers(draw):
    """Every layer by its name in a residual block, with a network of each width: against its parts, and in pieces."""
    parts = []
    for expansion, name in zip((0, 1, 2, 2, 2, 2), CELLS, strict=True):
        layer = recurrent_layer(name, 3, 5).double()
        block = (ResidualBlock(layer) if expansion == 2 else ResidualBlock(layer, expansion)).double()
        x, lengths = draw.normal(3, 5, 3), torch.tensor([5, 0, 2])
        outputs, state = block(x)
        middle = block(x[:, :3])[1]
        late, end = block(x[:, 3:], middle)
        steps, last = block.by_steps(x)
        padded, final = block(x, middle, lengths)
        alone, ends = runs_alone(block, x, lengths, middle)
        parts += [
            exactly([type(layer).__name__.lower(), layer.inputs, block.outputs, block.causal], [name, 3, 3, True]),
            exactly([flat(state).shape[1], inside(block)], [10 if name == "lstm" else 5, 3 * expansion]),
            exactly(support(block, x), torch.ones(5, 5, dtype=torch.bool).tril()),
            close(outputs, by_pieces(block, x)),
            *(close(a, b) for a, b in ((late, outputs[:, 3:]), (steps, outputs), (padded, alone))),
            *(close(flat(a), flat(b)) for a, b in ((end, state), (last, state), (final, ends))),
        ]
    thinned = ResidualBlock(Elman(3, 5), 0, dropout=0.25).double()
    ratio = (thinned(x)[0] - x) / (thinned.eval()(x)[0] - x)  # a quarter is dropped, the rest makes up for it
    left = torch.isclose(ratio, torch.tensor(4 / 3).double())
    return [*parts, always(left | (ratio == 0)), exactly([bool(left.any()), bool(left.all())], [True, False])]


def memories(hidden=300):
    """What remains of a difference between two states after one step and two, for memories on a logarithmic grid."""
    parts = []
    for name, longest in (("mingru", 100), ("minlstm", 30), ("lru", 30), ("lru", 100)):
        given = {} if longest == 100 else {"memory": longest}
        layer, x = recurrent_layer(name, 2, hidden, **given).double(), torch.zeros(2, 1, 2).double()
        start = torch.stack([torch.ones(hidden), torch.zeros(hidden)]).to(layer.initial_state(2))
        once = layer(x, start)[1]
        share, twice = once[0] - once[1], layer(x, once)[1]
        steps = longest ** (torch.arange(1, hidden + 1).double() / (hidden + 1))
        # Biases and eigenvalues were set in single precision.
        parts += [close(share.abs(), 1 - 1 / steps, within=1e-6), close((twice[0] - twice[1]).abs(), share.abs() ** 2)]
    turns = share.angle().remainder(2 * math.pi) * steps / (2 * math.pi)
    return [*parts, at_most(turns, 1.0 + 1e-5), at_least(turns.max(), 0.9), at_most(turns.min(), 0.1)]


@claim("rnn.evolution")
@lie("the state may depend on the next input", layer=both_ways)
@lie("the state at step t has seen the input at step t + 1", ahead=1)
@lie("the second part of a sequence starts anew", kept=0.0)
@lie("the first state is one", start=1.0)
@lie("what follows the end of a sequence changes its last state", padding=1)
def the_state_is_a_memory_of_the_inputs_so_far(draw, layer=Elman, ahead=0, kept=1.0, start=0.0, padding=0):
    """Dependence by autograd; all lengths from one run; runs joined by their state; lengths in one batch; memories."""
    parts = []
    cells = [layer(2, 4), DeepTransition(2, 4, (5,)), FadingProducts(2), Stacked(Elman(2, 3), Elman(3, 4, "sigmoid"))]
    for cell, length, step in zip((each.double() for each in cells), (20, 6, 5, 5), (1, 3, 3, 3), strict=True):
        x = draw.normal(4, length, 2)
        outputs, state = cell(x)
        zero, steps = times(cell.initial_state(4), 0.0), cell.by_steps(x)
        begun = cell(x, times(tuple(map(torch.ones_like, zero)) if isinstance(zero, tuple) else zero + 1, start))
        middle = cell(x[:, :3])[1]
        late, end = cell(x[:, 3:], times(middle, kept))
        lengths = torch.tensor([length, 0, length - 2, 1])
        alone, ends = runs_alone(cell, x, (lengths + padding).clamp(max=length), middle)
        padded = torch.where(torch.arange(length)[:, None] < lengths[:, None, None], x, torch.inf)
        parts += [
            exactly(support(cell, x[:, :5]), torch.ones(5, 5, dtype=torch.bool).tril(ahead)),
            close(late, outputs[:, 3:]),
            close(flat(end), flat(state)),
            close(begun[0], outputs),
            close(steps[0], outputs),
            close(flat(steps[1]), flat(state)),
            close(
                torch.stack([cell(x[:, :t])[0][:, -1] for t in range(1, length + 1, step)], dim=1), outputs[:, ::step]
            ),
            exactly(flat(cell(x[:, :0], middle)[1]), flat(middle)),
            exactly(flat(cell.by_steps(x[:, :0], middle)[1]), flat(middle)),
            exactly([cell(x[:, :0])[0].shape, cell.by_steps(x[:, :0])[0].shape], [(4, 0, 4), (4, 0, 4)]),
            close(flat(cell(x[:, :1])[1]), flat(cell.by_steps(x[:, :1])[1])),
        ]
        for way in (cell, cell.by_steps):
            found, last = way(padded, middle, lengths)
            parts += [close(found, alone), close(flat(last), ends)]
        if not all_of(*parts).holds:
            return all_of(*parts)
    parts += [*layers(draw), *memories()]
    listed, late = cell(x, list(middle)), state_at_end(x[:, :0], x[:, 0], None)  # states of a stack may be a list
    parts += [exactly(listed[0], cell(x, middle)[0]), exactly(late, x[:, 0])]
    figure = Figure("A state through time", "step", "unit", [Heat(outputs[0].detach().mT, label="upper layer")])
    return all_of(*parts).showing(figure)


@claim("rnn.unrolling")
@lie("the tied gradient is the mean over the layers", power=1.0)
@lie("the tied gradient is that of the last layer alone", discount=0.0)
@lie("layer t receives the input of the step before", late=1)
def a_recurrent_layer_is_a_deep_network_with_shared_weights(draw, power=0.0, discount=1.0, late=0):
    """Copies with weights of their own, for up to ten steps: equal outputs, and gradients that add up."""
    parts = []
    for layer, steps in ((Elman(2, 3), 10), (Elman(2, 3, "sigmoid"), 1), (Stacked(Elman(2, 2), Elman(2, 3)), 6)):
        layer = layer.double()
        x, weight = draw.normal(4, steps, 2), draw.normal(4, steps, 3)
        with torch.no_grad():
            start = times(layer(x)[1], 0.5)
        unrolled = Unrolled(layer, steps)
        (weight * layer(x, start)[0]).sum().backward()
        (weight * unrolled(x, start)[0]).sum().backward()
        tied, free = unrolled.tied_gradients(), [dict(copy.named_parameters()) for copy in unrolled.copies]
        for name, values in layer.named_parameters():
            by_hand = sum(discount ** (steps - 1 - t) * each[name].grad for t, each in enumerate(free))
            scale = sum(each[name].grad.abs().max() for each in free)
            parts += [
                close(by_hand / steps**power, values.grad, scale=scale),
                close(tied[name], values.grad, scale=scale),
            ]
        parts += [
            close(unrolled(x)[0], layer(x)[0]),
            close(flat(unrolled(x.roll(late, 1), start)[1]), flat(layer(x, start)[1])),
        ]
    return all_of(*parts)
