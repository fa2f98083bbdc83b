"""The modern Hopfield network: its update is attention, its energy falls, and it retrieves in one step."""

import torch
from torch import nn
from torch.nn.functional import normalize, scaled_dot_product_attention

from lemmata.connectionism.modern_hopfield import ModernHopfield, ModernHopfieldLayer
from lemmata.data import digits
from lemmata.judge import (
    Bars,
    Figure,
    Image,
    all_of,
    at_least,
    at_most,
    claim,
    close,
    exactly,
    lie,
    probability_is,
)


@claim("hopfield.modern")
@lie("the similarities enter with a minus sign", sign=-1.0)
@lie("the default beta is 1 / d", power=-1.0)
@lie("a sign instead of the softmax is attention too", weigh=lambda scores: scores.sign())
@lie("the squared norm enters the energy in full", norm=1.0)
@lie("two steps are attention as well", steps=2)
@lie(
    "a small beta retrieves too",
    regime="with patterns this far apart a beta of ten is large enough",
    loose="a larger beta retrieves as well",
    beta=1.0,
)
@lie("padding counts as memories", padded=0)
def update_is_attention_and_retrieves_in_one_step(
    draw,
    sign=1.0,
    power=-0.5,
    weigh=lambda scores: scores.softmax(-1),
    norm=0.5,
    steps=1,
    beta=50.0,
    padded=3,
    memory=ModernHopfield,
    layer=ModernHopfieldLayer,
):
    """Update and layer against torch's attention; energy along the updates, at copies of one pattern, and its gradient
    against the step; retrieval of noisy patterns, and the mean of all patterns as beta vanishes."""
    evidence = all_of(
        *(_update_is_attention(draw, memory, dtype, sign, power) for dtype in (torch.float64, torch.float32)),
        _weights_are_a_softmax(draw, memory, weigh),
        *(_energy_falls(draw, memory, norm, beta) for beta in (1.0, 8.0, 50.0)),
        _energy_of_copies_is_a_distance(draw, memory, norm),
        _padding_is_no_memory(draw, memory, padded),
        _layer_is_attention(draw, memory, layer, steps),
        _vanishing_beta_averages(draw, memory),
        probability_is(_retrieves_units(draw, memory, beta), 0.95, effect=0.8, side="at_least", alpha=5e-10),
        probability_is(_retrieves_signs(draw, memory), 0.95, effect=0.8, side="at_least", alpha=5e-10),
    )
    return evidence.showing(_digit_figure(draw, memory)) if evidence.holds else evidence


def _update_is_attention(draw, memory, dtype, sign, power):
    """Two steps, one memory for each batch entry, the default beta, and one of our own."""
    patterns, states = draw.normal(3, 9, 16).to(dtype), draw.normal(3, 5, 16).to(dtype)

    def attended(query, scale):
        return scaled_dot_product_attention(query, patterns, patterns, scale=sign * scale)

    return all_of(
        close(memory(patterns)(states), attended(states, 16**power)),
        close(memory(patterns, beta=0.7, steps=2)(states), attended(attended(states, 0.7), 0.7)),
        close(memory(patterns[1], beta=0.7)(states[1, 2]), attended(states, 0.7)[1, 2]),
    )


def _weights_are_a_softmax(draw, memory, weigh):
    """The weights sum to one and mix the patterns into the update."""
    patterns, states = draw.normal(7, 12), draw.normal(5, 12)
    one = memory(patterns, beta=0.3)
    weights = weigh(one.scores(states))
    return all_of(
        close(one.weights(states).sum(-1), torch.ones(5, dtype=torch.float64)),
        close(one.weights(states), weights),
        close(one(states), weights @ patterns),
    )


def _energy_falls(draw, memory, norm, beta):
    """100 starts and five steps: no rise, no negative value; the gradient is the state minus its update."""
    patterns = draw.normal(10, 8) / 3
    one, states, energies = memory(patterns, beta=beta), draw.normal(100, 8).requires_grad_(), []
    (slope,) = torch.autograd.grad(one.energy(states).sum(), states)
    state = states.detach()
    for _ in range(6):
        energies.append(one.energy(state))
        state = one(state)
    trace, largest = torch.stack(energies), patterns.square().sum(-1).max()
    # The terms of the energy are larger than their sum; rounding is that of the terms.
    terms = float(trace.max() + largest)
    return all_of(
        close(slope, 2 * norm * states.detach() - one(states.detach())),
        at_most(trace[1:] + terms, trace[:-1] + terms),
        at_least(trace + terms, terms),
        at_most(trace[1:] + terms, 2 * largest + terms),
    )


def _energy_of_copies_is_a_distance(draw, memory, norm):
    """Five copies of one pattern attract like one, and like half the squared distance from it; longer ones shift it."""
    pattern, states = draw.normal(1, 6), draw.normal(4, 6)
    distance = norm * (states - pattern).square().sum(-1)
    half = torch.cat([pattern / 2, pattern]).expand(3, 2, 6)
    apart = memory(half[0], beta=2.0).energy(states)
    return all_of(
        *(close(memory(pattern.expand(n, 6), beta=2.0).energy(states), distance, ulps=512) for n in (1, 5)),
        close(memory(half, beta=2.0).energy(states.expand(3, 4, 6)), apart.expand(3, 4), ulps=512),
        # Half the pattern lies between: at zero both scores vanish, and only the longer norm is left.
        close(memory(half[0], beta=2.0).energy(torch.zeros(1, 6).double()), pattern.square().sum(-1) / 2),
    )


def _padding_is_no_memory(draw, memory, padded):
    """A batch of memories of different sizes, padded to one, against each of them alone."""
    sizes, states = (6, 6 - padded), draw.normal(2, 4, 5)
    # The longest are padding, and what is left is shorter than 1.
    patterns = draw.unit(2, 6, 5) * torch.tensor([[0.5], [0.6], [0.7], [1], [1], [2]])
    whole = memory(patterns, beta=0.8, mask=torch.arange(6) < torch.tensor([[6], [3]]))
    parts = []
    for batch, size in enumerate(sizes):
        alone = memory(patterns[batch, :size], beta=0.8)
        parts += [
            close(whole(states)[batch], alone(states[batch])),
            close(whole.energy(states)[batch], alone.energy(states[batch]), ulps=512),
        ]
    return all_of(*parts)


def _layer_is_attention(draw, memory, layer, steps):
    """The same seed gives `MultiheadAttention`'s parameters, and with them its output; more steps iterate the keys."""
    states, memories, seed = draw.normal(2, 4, 12), draw.normal(2, 7, 12), int(draw.integers(0, 2**31, 1))
    mask = torch.arange(7) < torch.tensor([[7], [4]])
    parts = []
    for bias in (True, False):
        torch.manual_seed(seed)
        theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dtype=torch.float64)
        torch.manual_seed(seed)
        with _double():
            ours = layer(12, heads=3, steps=steps) if bias else layer(12, heads=3, steps=steps, bias=False)
        parts += [exactly(value, theirs.state_dict()[name]) for name, value in ours.state_dict().items()]
        nn.init.normal_(theirs.in_proj_weight, generator=draw.generator)
        for vector in (theirs.in_proj_bias, theirs.out_proj.bias) if bias else ():
            nn.init.normal_(vector, generator=draw.generator)
        ours.load_state_dict(theirs.state_dict())
        parts += [
            close(ours(states, memories), theirs(states, memories, memories)[0]),
            close(ours(states, memories, mask), theirs(states, memories, memories, key_padding_mask=~mask)[0]),
            close(ours(memories), theirs(memories, memories, memories)[0]),
        ]
    return all_of(*parts, _steps_iterate(layer, memory, states, memories, mask))


def _steps_iterate(layer, memory, states, memories, mask):
    """With projections that change nothing, the layer is the memory itself."""
    with _double():
        plain = layer(12, beta=0.4, steps=3, bias=False)
    nn.init.eye_(plain.out_proj.weight)
    plain.in_proj_weight.data.copy_(torch.eye(12).repeat(3, 1))
    return close(plain(states, memories, mask), memory(memories, beta=0.4, steps=3, mask=mask)(states))


class _double:
    """New parameters in float64, while it lasts."""

    def __enter__(self):
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *error):
        torch.set_default_dtype(torch.float32)


def _vanishing_beta_averages(draw, memory):
    patterns, states, beta = draw.unit(20, 16), draw.unit(5, 16), 1e-9
    mean = patterns.mean(0).expand(5, 16)
    # Each weight differs from 1 / N by at most about 2 beta / N, as all similarities lie between -1 and 1.
    return close(memory(patterns, beta=beta)(states), mean, within=2 * beta)


def _retrieves_units(draw, memory, beta):
    """20 unit vectors in 64 dimensions, one of them moved by 0.2: back to within 0.01 in one step."""

    def happens(n):
        patterns = draw.unit(n, 20, 64)
        noisy = patterns[:, :1] + 0.2 * draw.unit(n, 1, 64)
        return ((memory(patterns, beta=beta)(noisy) - patterns[:, :1]).norm(dim=-1) < 0.01)[:, 0]

    return happens


def _retrieves_signs(draw, memory):
    """10 patterns of 64 signs, one of them with a fifth of its signs flipped: cosine above 0.99 after one step."""

    def happens(n):
        patterns = draw.signs(n, 10, 64)
        flipped = draw.uniform(n, 1, 64).argsort(-1) < 13
        found = memory(patterns, beta=1.0)(torch.where(flipped, -1, 1) * patterns[:, :1])
        return (torch.cosine_similarity(found, patterns[:, :1], dim=-1) > 0.99)[:, 0]

    return happens


def _digit_figure(draw, memory):
    images, labels = digits().everything
    stored = torch.stack([images[labels == digit][0] for digit in range(10)]).double().flatten(1)
    query = (stored[3] + 0.35 * draw.normal(64)).clamp(0, 1)
    marks = [Image(stored[3].view(8, 8), "stored"), Image(query.view(8, 8), "noisy query")]
    bars = []
    for beta in (0.1, 2.0, 32.0):
        one = memory(normalize(stored - stored.mean(0), dim=-1), beta=beta)
        weights = one.weights(normalize(query - stored.mean(0), dim=-1))
        marks.append(Image((weights @ stored).view(8, 8), f"one step, β = {beta:g}"))
        bars.append(Bars([str(digit) for digit in range(10)], weights, f"β = {beta:g}"))
    note = "Small β averages all ten memories; large β retrieves one. The bars are the attention weights."
    return Figure("A digit restored by one attention step", "memory", "weight", [*marks, *bars], note=note)
