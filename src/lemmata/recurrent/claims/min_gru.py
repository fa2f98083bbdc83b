"""minGRU and minLSTM: gates that see only the input, states that are averages, and a scan that equals the loop."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportOptionalMemberAccess=false

import torch
from torch.nn import functional

from lemmata.judge import Bars, Figure, all_of, at_most, claim, close, lie, reaches
from lemmata.recurrent.claims.recall import learn, seeded
from lemmata.recurrent.min_gru import MinGRU
from lemmata.recurrent.min_lstm import MinLSTM


@claim("rnn.mingru")
@lie("a gate that also sees the state gives an exact scan as well", feedback=1.0)
@lie("the cell is the linear recurrent unit, which keeps the same fraction at every step", gating=0.0)
@lie("the candidate is added in full", power=0.0)
@lie("the gate is the fraction that is replaced", gate="replaces")
@lie("without gates that see the input the marked token is recalled as well", seen=False)
def states_are_averages_of_candidates(draw, feedback=0.0, gating=1.0, power=1.0, gate="keeps", seen=True):
    """Scan against loop for many lengths, states against explicit weights that add up to one, and selective copying."""
    parts = []
    for cell in (MinGRU, MinLSTM):
        layer = seeded(draw, lambda cell=cell: cell(3, 5)).double()
        with torch.no_grad():
            for steps in (1, 2, 3, 8, 65, 257):
                x, z0 = draw.normal(2, steps, 3), draw.normal(2, 5)
                parts.append(close(layer(x, z0)[0], fed_back(cell, layer, x, z0, feedback), within=1e-12))
            x, z0 = draw.normal(2, 12, 3), draw.normal(2, 5)
            weights, candidates = averages(cell, layer, x, z0, gating, power, gate)
            states = layer(x, z0)[0]
        parts += [
            close(weights.sum(1), torch.ones(2, 5).double()),
            close((weights * candidates).sum(1), states[:, -1]),
            at_most(states.amax(1), candidates.amax(1)),
            at_most(-states.amin(1), -candidates.amin(1)),
        ]
    quick = all_of(*parts)
    if not quick.holds:
        return quick
    accuracy, layer = seeded(draw, lambda: selective_copying(draw, seen))
    return all_of(quick, reaches(accuracy, 0.95)).showing(attention(draw, layer))


def fed_back(cell, layer, x, z0, feedback):
    """States of the loop in which the gates also see the last state, from a layer whose input is longer by it."""
    hidden = layer.outputs
    wide = cell(layer.inputs + hidden, hidden).double()
    wide.input_weight[:, : layer.inputs], wide.bias[:] = layer.input_weight, layer.bias
    wide.input_weight[-hidden:, layer.inputs :] = 0.0  # the candidate sees the input only
    states = [z0]
    for t in range(x.shape[1]):
        states.append(wide.step(torch.cat([x[:, t], feedback * states[-1]], 1), states[-1])[1])
    return torch.stack(states[1:], 1)


def averages(cell, layer, x, z0, gating, power, gate):
    """The weights of the last state on the first state and on every candidate, by products; and those candidates."""
    maps = layer.input_weight.split(5), layer.bias.split(5)
    gates = [torch.sigmoid(gating * x @ weight.T + bias) for weight, bias in zip(*maps, strict=True)][:-1]
    share = gates[0] if cell is MinGRU else gates[0] / (gates[0] + gates[1])
    share = share if gate == "keeps" else 1 - share
    later = torch.stack([share[:, s:].prod(1) for s in range(x.shape[1] + 1)], 1)
    weights = torch.cat([later[:, :1], (1 - share) ** power * later[:, 1:]], 1)
    return weights, torch.cat([z0[:, None], x @ maps[0][-1].T + maps[1][-1]], 1)


def selective_copying(draw, seen):
    """Train to name the marked one of 20 tokens; unless `seen`, the gates get no input."""
    layer, head = MinGRU(5, 32), torch.nn.Linear(32, 4)
    model = torch.nn.ModuleList([layer, head])

    def loss():
        with torch.no_grad():
            layer.input_weight[:32] *= seen
        x, token = marked(draw, 64)
        return functional.cross_entropy(head(layer(x)[1]), token)

    learn(model, loss, steps=120, lr=0.05)
    with torch.no_grad():
        layer.input_weight[:32] *= seen
        x, token = marked(draw, 1000)
        return (head(layer(x)[1]).argmax(-1) == token).double().mean(), layer


def marked(draw, batch, steps=20):
    """Random tokens of an alphabet of four, one of them marked."""
    tokens, place = draw.integers(0, 4, batch, steps), draw.integers(0, steps, batch)
    x = torch.cat([functional.one_hot(tokens, 4), functional.one_hot(place, steps)[..., None]], -1)
    return x.float(), tokens[torch.arange(batch), place]


def attention(draw, layer):
    """Where the last state of the trained layer looks: the mean weight of each step."""
    x, _ = marked(draw, 1)
    with torch.no_grad():
        share, _ = layer.gates(x[0])
    later = torch.stack([share[s + 1 :].prod(0) for s in range(len(share))])
    weights = ((1 - share) * later).mean(1)
    place = int(x[0, :, 4].argmax())
    bars = [Bars([str(step) for step in range(len(weights))], weights, "mean weight over the units")]
    return Figure(f"What the last state keeps: step {place} was marked", "step", "weight", bars)
