"""What generating costs: recurrent layers against attention, in counted multiplications and in steps that must wait."""

from itertools import pairwise

import torch

from lemmata.fast.scan_reference import scan_by_doubling
from lemmata.judge import all_of, claim, exactly, lie, slope_is
from lemmata.recurrent.generation_cost import CausalAttention, KeyValueCache, dependency_depth, multiplications
from lemmata.recurrent.gru import GRU

WIDTH = 2
CONTEXTS = [64, 128, 256, 512]
LENGTHS = [4, 8, 16, 32]


def more(counts, parts=1):
    """How much more each count is than the one before it, or than that twice: constant or linear terms drop out."""
    return [late - parts * early for early, late in pairwise(counts)]


def generated(step, state, x, tokens):
    """Every output is the next input."""
    outputs = []
    for _ in range(tokens):
        x, state = step(x, state)
        outputs.append(x)
    return torch.stack(outputs, 1)


@claim("rnn.vs_transformer.cost")
@lie("a step of attention is quadratic in the context length", attention_step=2.0)
@lie("a step of a recurrent layer is linear in the context length", recurrent_step=1.0)
@lie("computing everything again at each step costs no more than keeping keys and values", again_step=1.0)
@lie("a whole sequence costs attention no more than a recurrent layer", attention_total=1.0)
@lie("a nonlinear recurrence is parallel over time", sequential=0.0)
def a_step_of_attention_is_linear_in_the_context_and_of_recurrence_constant(
    draw, attention_step=1.0, recurrent_step=0.0, again_step=2.0, attention_total=2.0, sequential=1.0
):
    """Exponents of counted multiplications over context lengths, and the depth of the graphs of whole sequences."""
    attention, layer = CausalAttention(WIDTH).double(), GRU(WIDTH, WIDTH).double()
    x = draw.normal(2, max(CONTEXTS), WIDTH)
    token = x[:, 0]
    with torch.no_grad():
        caches = [KeyValueCache(draw.normal(2, t, WIDTH), draw.normal(2, t, WIDTH)) for t in CONTEXTS]
        cached = [multiplications(lambda cache=cache: attention.step(token, cache)) for cache in caches]
        states = [layer(x[:, :t])[1] for t in CONTEXTS]
        constant = [multiplications(lambda state=state: layer.step(token, state)) for state in states]
        again = [multiplications(lambda t=t: attention(x[:, :t])) for t in CONTEXTS]
        attended = [
            multiplications(lambda n=n: generated(attention.step, attention.empty(2), token, n)) for n in LENGTHS
        ]
        carried = [multiplications(lambda n=n: generated(layer.step, states[0], token, n)) for n in LENGTHS]
    x = draw.normal(1, max(LENGTHS), WIDTH).requires_grad_()
    gate, b = draw.uniform(1, max(LENGTHS), WIDTH).requires_grad_(), draw.normal(1, max(LENGTHS), WIDTH)
    looked = [dependency_depth(attention(x[:, :t])) for t in LENGTHS]
    looped = [dependency_depth(layer.by_steps(x[:, :t])[0]) for t in LENGTHS]
    rounds = more([dependency_depth(scan_by_doubling((gate[:, :t], b[:, :t]))[1]) for t in LENGTHS])
    return all_of(
        slope_is(CONTEXTS[1:], more(cached), attention_step, within=1e-9),
        slope_is(CONTEXTS, constant, recurrent_step, within=1e-9),
        slope_is(CONTEXTS[1:], more(again, 2), again_step, within=1e-9),
        slope_is(LENGTHS[1:], more(attended, 2), attention_total, within=1e-9),
        slope_is(LENGTHS, carried, 1.0, within=1e-9),
        exactly(looked, looked[:1] * 4),
        exactly(rounds, rounds[:1] * 3, detail="twice the time, as many more operations: a logarithm"),
        slope_is(LENGTHS[1:], more(looped), sequential, within=1e-9),
    )
