"""Layers of attention: what a sequence learns of itself and of another, in one head and in many, in any order."""

import itertools
import math

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import Figure, Heat, all_of, always, claim, close, exactly, lie, reaches
from lemmata.recurrent.claims.recall import learn, with_drawn_weights
from lemmata.transformers.cross_attention import CrossAttention
from lemmata.transformers.dot_product_attention import attention
from lemmata.transformers.self_attention import SelfAttention
from lemmata.transformers.transformer_block import FeedForward

PAIRS, VALUES = 15, 8


def drawn(draw, layer):
    """The layer with normal weights, in float64 and without gradients."""
    return with_drawn_weights(layer, draw, spread=0.5).requires_grad_(False)


def of_torch(layer, heads=1, **widths):
    """torch's own attention with the weights of one of ours."""
    theirs = nn.MultiheadAttention(layer.width, heads, batch_first=True, **widths).double().requires_grad_(False)
    if isinstance(layer, SelfAttention):
        theirs.in_proj_weight.copy_(layer.project.weight)
        theirs.in_proj_bias.copy_(layer.project.bias)
    else:
        key, value = layer.project_memory.weight.chunk(2)
        for ours, matrix in ((layer.project.weight, theirs.q_proj_weight), (key, theirs.k_proj_weight)):
            matrix.copy_(ours)
        theirs.v_proj_weight.copy_(value)
        theirs.in_proj_bias.copy_(torch.cat([layer.project.bias, layer.project_memory.bias]))
    theirs.out_proj.weight.copy_(layer.join.weight)
    theirs.out_proj.bias.copy_(layer.join.bias)
    return theirs


def associations(count, generator):
    """Fifteen tokens of a key and a value, and one that asks for the value of a key: (count, 16, 24), answers."""
    keys = torch.rand(count, PAIRS, generator=generator).argsort(1)
    values = torch.randint(VALUES, (count, PAIRS), generator=generator)
    asked = torch.randint(PAIRS, (count,), generator=generator)
    x = torch.zeros(count, PAIRS + 1, PAIRS + VALUES + 1)
    x[:, :PAIRS, :PAIRS] = functional.one_hot(keys, PAIRS)
    x[:, :PAIRS, PAIRS:-1] = functional.one_hot(values, VALUES)
    x[:, PAIRS, :PAIRS] = functional.one_hot(keys.gather(1, asked[:, None])[:, 0], PAIRS)
    x[:, PAIRS, -1] = 1
    return x, values.gather(1, asked[:, None])[:, 0]


def reader(mixing):
    """A layer that mixes the tokens or works on each of them alone, and what is read off at the last one."""
    width = PAIRS + VALUES + 1
    return nn.Sequential(SelfAttention(width) if mixing else FeedForward(width, 4 * width), nn.Linear(width, VALUES))


def teach_to_recall(model, generator, steps=250):
    """Batches of associations with a cross-entropy for the answer at the last token."""

    def loss():
        x, answers = associations(64, generator)
        return functional.cross_entropy(model(x)[:, -1], answers)

    learn(model, loss, steps, lr=0.03)


def recalled(model, generator):
    x, answers = associations(1000, generator)
    with torch.no_grad():
        return (model(x)[:, -1].argmax(-1) == answers).double().mean()


@claim("attention.self")
@lie("the values are the embeddings themselves", content="X")
@lie("a position attends only to itself and the past", sees="past")
@lie("a network at each position recalls as well", needed=False)
def a_sequence_learns_of_itself(draw, content="XW_V", sees="all", needed=True, system=SelfAttention):
    """Sequences of one to seven tokens with the same weights, what depends on what, and recall of sixteen tokens."""
    layer, found, written = drawn(draw, system(5, bias=False)), [], []
    layer.join = nn.Identity()
    for time in (1, 2, 7):
        x = draw.normal(time, 5)
        query, key, value = (x @ matrix.mT for matrix in layer.project.weight.chunk(3))
        shares = (query @ key.mT / math.sqrt(5)).softmax(-1)  # (time, time)
        written.append(shares @ (value if content == "XW_V" else x))
        found.append(layer(x[None])[0])
    slopes = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], x)  # (time, 5, time, 5)
    depends = slopes.abs().amax((1, 3)) > 1e-12
    exact = all_of(
        close(torch.cat(found), torch.cat(written)),
        exactly(depends, torch.ones(7, 7, dtype=torch.bool).tril(6 if sees == "all" else 0)),
    )
    if not exact.holds:
        return exact  # decided without training
    mixing, alone = (draw.trained(reader, teach_to_recall, mixing=mixing) for mixing in (True, False))
    x, _ = associations(1, draw.generator)
    heat = Heat(mixing[0].weights(x)[0, 0].detach(), label="weight")
    figure = Figure("Where a trained layer looks; the last token asks", "token looked at", "token that looks", [heat])
    return all_of(
        exact,
        reaches(recalled(mixing, draw.generator), 0.99).showing(figure),
        reaches(recalled(alone, draw.generator), 0.3, at_most=needed, detail="position by position; 1/8 by chance"),
    )


def before_the_softmax(scores, allowed):
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def after_the_softmax(scores, allowed):
    """Weights set to zero, so that the others no longer add up to one."""
    return scores.softmax(-1) * allowed


def times_zero(scores, allowed):
    """Scores multiplied by zero: still a weight."""
    return (scores * allowed).softmax(-1)


@claim("attention.causal_mask")
@lie("weights are set to zero after the softmax", hide=after_the_softmax)
@lie("scores of the future are set to zero", hide=times_zero)
@lie("the next position is seen, too", ahead=1)
def the_future_is_not_seen(draw, hide=before_the_softmax, ahead=0, system=SelfAttention):
    """Weights against masked scores, and each output against that of the sequence cut off there; far futures, too."""
    layer = drawn(draw, system(6, heads=2, causal=True))
    x = draw.normal(3, 9, 6) * torch.tensor([1e-3, 1.0, 1.0], dtype=torch.float64)[:, None, None]
    x[2, 5:] *= 1e4  # a future with huge scores
    query, key, _ = layer.heads_of(x)
    allowed = torch.ones(9, 9, dtype=torch.bool).tril(ahead)
    weights = layer.weights(x)  # (batch, heads, time, time)
    cut = torch.stack([layer(x[:, : s + 1])[:, s] for s in range(9)], dim=1)
    size = x.abs().amax((1, 2), keepdim=True) + 1
    return all_of(
        close(weights[:2], hide(query @ key.mT / math.sqrt(3), allowed)[:2]),
        always(weights.masked_select(~allowed) == 0),
        close(weights.sum(-1), 1.0),
        close(layer(x)[:, :5], cut[:, :5]),
        close(layer(x)[:, 5:], cut[:, 5:], scale=64 * size),
    )


def side_by_side(found, matrix):
    """[Ξ_1, ..., Ξ_h] W_O"""
    return torch.cat(list(found), dim=-1) @ matrix.mT


def averaged(found, matrix):
    """The mean of the heads at the place of each."""
    return side_by_side(found.mean(0).expand_as(found), matrix)


def of_features(projected, heads):
    """Each head has a part of the features of every token: (heads, time, d_k)."""
    return projected.unflatten(-1, (heads, -1)).transpose(0, 1)


def of_memory(projected, heads):
    """Cut as the numbers lie in memory, where each head gets a part of the sequence."""
    return projected.reshape(heads, len(projected), -1)


@claim("attention.multihead")
@lie("the heads are averaged", join=averaged)
@lie("the heads divide the sequence among them", split=of_memory)
@lie("scores are divided by the root of the whole width", shared=False)
def heads_attend_in_parallel(draw, join=side_by_side, split=of_features, shared=True, system=SelfAttention):
    """One, two and four heads written out, against torch's layer, and as a sum over the heads."""
    ours, theirs, written, sums = [], [], [], []
    for heads in (1, 2, 4):
        layer, x = drawn(draw, system(8, heads=heads)), draw.normal(5, 8)
        query, key, value = (split(part, heads) for part in layer.project(x).chunk(3, dim=-1))  # (heads, time, d_k)
        scale = (8 / heads if shared else 8) ** -0.5
        found = (query @ key.mT * scale).softmax(-1) @ value
        written.append(join(found, layer.join.weight) + layer.join.bias)
        blocks = layer.join.weight.unflatten(1, (heads, -1))  # (width, heads, d_k)
        sums.append(sum(found[i] @ blocks[:, i].mT for i in range(heads)) + layer.join.bias)
        ours.append(layer(x[None])[0])
        theirs.append(of_torch(layer, heads)(x, x, x, need_weights=False)[0])
    ours = torch.stack(ours)
    return all_of(close(ours, torch.stack(theirs)), close(ours, torch.stack(written)), close(ours, torch.stack(sums)))


def stacked(matrices):
    """One above another: (h d_k, d)."""
    return torch.cat(list(matrices), dim=0)


def interleaved(matrices):
    """The first rows of all, then the second rows, and so on."""
    return torch.stack(list(matrices), dim=1).flatten(0, 1)


def of_outputs(matrix, x, head):
    return x @ matrix.mT


def of_inputs(matrix, x, head):
    """The head reads its own part of the input with the first columns of its matrix."""
    part = x.chunk(4, dim=-1)[head]
    return part @ matrix[:, : part.shape[-1]].mT


@claim("attention.fused_projection")
@lie("rows of the heads may be interleaved", put=interleaved)
@lie("cutting the input is the same as cutting the output", cut=of_inputs)
def one_product_projects_for_all_heads(draw, put=stacked, cut=of_outputs, system=SelfAttention):
    """Twelve matrices and biases of four heads, stacked in one layer, against a product with each."""
    layer, x = drawn(draw, system(8, heads=4, head_width=3)), draw.normal(2, 5, 8)
    matrices, biases = draw.normal(3, 4, 3, 8), draw.normal(3, 4, 3)  # of queries, keys, values and the heads of each
    layer.project.weight.copy_(torch.cat([put(each) for each in matrices]))
    layer.project.bias.copy_(biases.flatten())
    found = torch.stack(layer.heads_of(x))  # (3, batch, heads, time, d_k)
    separate = [[cut(matrices[i, head], x, head) + biases[i, head] for head in range(4)] for i in range(3)]
    return close(found, torch.stack([torch.stack(each, dim=1) for each in separate]))


@claim("attention.cross")
@lie("queries come from the second sequence", asks="B")
@lie("the output follows the order of the second sequence", second="reordered")
@lie("the output ignores the order of the first sequence", first="ignored")
def one_sequence_asks_another(draw, asks="A", second="ignored", first="followed", system=CrossAttention):
    """Sequences of other lengths and widths against torch's layer, written out, in other orders, and with A = B."""
    a, b, wide, order = draw.normal(1, 5, 4), draw.normal(1, 7, 4), draw.normal(1, 7, 6), torch.arange(5).flip(0)
    other, layer = drawn(draw, system(4, heads=2, memory_width=6)), drawn(draw, system(4, heads=1))
    asking, asked = (a[0], b[0]) if asks == "A" else (b[0], a[0])
    query, (key, value) = layer.project(asking), layer.project_memory(asked).chunk(2, dim=-1)
    written = layer.join((query @ key.mT / 2).softmax(-1) @ value)
    same = drawn(draw, SelfAttention(4))
    same.project.weight.copy_(torch.cat([layer.project.weight, layer.project_memory.weight]))
    same.project.bias.copy_(torch.cat([layer.project.bias, layer.project_memory.bias]))
    same.join.load_state_dict(layer.join.state_dict())
    found, turned = layer(a, b), layer(a[:, order], b)
    exchanged = torch.cat([b[:, order], b[:, 5:]], dim=1)
    return all_of(
        close(layer(a, b)[0], written),
        close(other(a, wide), of_torch(other, 2, kdim=6, vdim=6)(a, wide, wide, need_weights=False)[0]),
        close(layer(a, exchanged), found if second == "ignored" else found[:, order]),
        close(turned, found[:, order] if first == "followed" else found),
        close(layer(a, a), same(a)),
    )


@claim("attention.equivariance")
@lie("the order of the tokens does not change the outputs", outputs="I")
@lie("the outputs are put back in the first order", outputs="inverse")
@lie("with rotary positions, too", positions=10.0)
@lie("with a causal mask, too", causal=True)
def outputs_follow_the_order_of_the_tokens(draw, outputs="P", positions=None, causal=False, system=SelfAttention):
    """All orders of four tokens, and the mean over the positions."""
    layer = drawn(draw, system(8, heads=2, causal=causal, rotary=positions))
    x = draw.normal(1, 4, 8)
    orders = [torch.tensor(order) for order in itertools.permutations(range(4))]
    found, plain = torch.cat([layer(x[:, order]) for order in orders]), layer(x)[0]
    rows = {"P": lambda order: order, "inverse": torch.argsort, "I": lambda order: torch.arange(4)}[outputs]
    expected = torch.stack([plain[rows(order)] for order in orders])
    return all_of(close(found, expected), close(found.mean(1), plain.mean(0).expand(24, -1)))


@claim("attention.pointwise")
@lie("every position may have weights of its own", shared=False)
@lie("it is a convolution of three neighbours", kernel=3)
def the_same_network_works_at_every_position(draw, shared=True, kernel=1, system=FeedForward):
    """A loop over the positions, a convolution of one position, and another order; from one position to nine."""
    network, order = drawn(draw, system(4, hidden=6)), draw.permutation(9)
    own = [network if shared else drawn(draw, system(4, hidden=6)) for _ in range(9)]
    x = attention(draw.normal(2, 9, 3), draw.normal(2, 9, 3), draw.normal(2, 9, 4))  # what attention mixed
    rows = torch.stack([own[t](x[:, t]) for t in range(9)], dim=1)
    turned = torch.stack([own[t](x[:, order[t]]) for t in range(9)], dim=1)

    def convolution(signal, layer):
        weight = layer.weight[:, :, None].repeat(1, 1, kernel)  # (outputs, inputs, kernel)
        return functional.conv1d(signal, weight, layer.bias, padding=kernel // 2)

    by_kernels = convolution(functional.gelu(convolution(x.mT, network.expand)), network.contract).mT
    return all_of(
        close(network(x), rows),
        close(network(x), by_kernels),
        close(turned, rows[:, order]),
        close(network(x[:, :1]), network(x)[:, :1]),
    )
