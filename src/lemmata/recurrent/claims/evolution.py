"""The evolution of a recurrent state: what it depends on, how runs are joined, and what unrolling makes of it."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportOptionalMemberAccess=false

import torch

from lemmata.judge import all_of, claim, close, exactly, lie
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.deep_transition import DeepTransition
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.layer import RecurrentLayer
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


@claim("rnn.evolution")
@lie("the state may depend on the next input", layer=both_ways)
@lie("the state at step t has seen the input at step t + 1", ahead=1)
@lie("the second part of a sequence starts anew", kept=0.0)
@lie("the first state is one", start=1.0)
def the_state_is_a_memory_of_the_inputs_so_far(draw, layer=Elman, ahead=0, kept=1.0, start=0.0):
    """Dependence by autograd; all lengths from one run; runs joined by their state; the first state."""
    parts = []
    cells = [layer(2, 4), DeepTransition(2, 4, (5,)), FadingProducts(2), Stacked(Elman(2, 3), Elman(3, 4, "sigmoid"))]
    for cell, length, step in zip((each.double() for each in cells), (20, 6, 5, 5), (1, 3, 3, 3), strict=True):
        x = draw.normal(4, length, 2)
        outputs, state = cell(x)
        zero = times(cell.initial_state(4), 0.0)
        begun = cell(x, times(tuple(map(torch.ones_like, zero)) if isinstance(zero, tuple) else zero + 1, start))
        late, end = cell(x[:, 3:], times(cell(x[:, :3])[1], kept))
        shorter = [cell(x[:, :t])[0][:, -1] for t in range(1, length + 1, step)]
        parts += [
            exactly(support(cell, x[:, :5]), torch.ones(5, 5, dtype=torch.bool).tril(ahead)),
            close(torch.stack(shorter, dim=1), outputs[:, ::step]),
            close(late, outputs[:, 3:]),
            close(flat(end), flat(state)),
            close(begun[0], outputs),
        ]
        if not all_of(*parts).holds:
            break
    return all_of(*parts)


@claim("rnn.unrolling")
@lie("the tied gradient is the mean over the layers", joined=torch.mean)
@lie("the tied gradient is that of the last layer alone", discount=0.0)
@lie("layer t receives the input of the step before", late=1)
def a_recurrent_layer_is_a_deep_network_with_shared_weights(draw, joined=torch.sum, discount=1.0, late=0):
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
            by_hand = torch.stack([discount ** (steps - 1 - t) * each[name].grad for t, each in enumerate(free)])
            scale = sum(each[name].grad.abs().max() for each in free)
            parts += [
                close(joined(by_hand, 0), values.grad, scale=scale),
                close(tied[name], values.grad, scale=scale),
            ]
        parts += [
            close(unrolled(x)[0], layer(x)[0]),
            close(flat(unrolled(x.roll(late, 1), start)[1]), flat(layer(x, start)[1])),
        ]
    return all_of(*parts)
