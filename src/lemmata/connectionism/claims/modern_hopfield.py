"""The modern Hopfield network: its update is attention, its energy falls, and it retrieves in one step."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from lemmata.connectionism.modern_hopfield import ModernHopfield
from lemmata.judge import all_of, at_most, claim, close, lie, probability_is


def softmax(scores):
    """Positive weights that sum to one."""
    return scores.softmax(-1)


def sign(scores):
    """The sign of each score."""
    return scores.sign()


@claim("hopfield.modern")
@lie("the similarities enter with a minus sign", factor=-1.0)
@lie("the default beta is 1 / d", power=-1.0)
@lie("a sign instead of the softmax is attention too", weigh=sign)
@lie("the squared norm enters the energy in full", norm=1.0)
@lie("two steps are attention as well", steps=2)
@lie(
    "a small beta retrieves too",
    regime="with patterns this far apart a beta of ten is large enough",
    loose="a larger beta retrieves as well",
    beta=1.0,
)
def update_is_attention_and_retrieves_in_one_step(
    draw, factor=1.0, power=-0.5, weigh=softmax, norm=0.5, steps=1, beta=50.0, memory=ModernHopfield
):
    """The update against torch's attention and against its formula; the energy along the updates, and its gradient
    against the step; retrieval of noisy patterns."""
    patterns, states = draw.normal(3, 9, 16), draw.normal(3, 5, 16)
    attended = scaled_dot_product_attention(states, patterns, patterns, scale=factor * 16**power)
    weights = weigh(factor * 0.7 * states @ patterns.mT)
    slopes, steps_back, traces = [], [], []
    for one in (memory(draw.normal(10, 8) / 3, beta=value) for value in (1.0, 8.0, 50.0)):
        state = draw.normal(100, 8).requires_grad_()
        slopes.append(torch.autograd.grad(one.energy(state).sum(), state)[0])
        state = state.detach()
        steps_back.append(2 * norm * state - one(state))
        traces.append([])
        for _ in range(6):
            traces[-1].append(one.energy(state))
            state = one(state)
    energies = torch.stack([torch.stack(trace) for trace in traces])  # (betas, steps, states)
    # The terms of the energy are larger than their sum; rounding is that of the terms.
    terms = float(energies.max()) + 1
    return all_of(
        close(memory(patterns, steps=steps)(states), attended),
        close(memory(patterns, beta=0.7)(states), weights @ patterns),
        close(torch.stack(slopes), torch.stack(steps_back)),
        at_most(energies[:, 1:] + terms, energies[:, :-1] + terms),
        probability_is(retrieves(draw, memory, beta), 0.95, effect=0.8, side="at_least"),
    )


def retrieves(draw, memory, beta):
    """20 unit vectors in 64 dimensions, one of them moved by 0.2: back to within 0.01 in one step."""

    def happens(n):
        patterns = draw.unit(n, 20, 64)
        noisy = patterns[:, :1] + 0.2 * draw.unit(n, 1, 64)
        return ((memory(patterns, beta=beta)(noisy) - patterns[:, :1]).norm(dim=-1) < 0.01)[:, 0]

    return happens
