"""Gates between 0 and 1: what they keep, what they forget, and what they do to a gradient."""

import math

import torch

from lemmata.judge import all_of, always, claim, close, lie
from lemmata.recurrent.claims.recall import with_drawn_weights
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.lstm import LSTM

SHUT = -1000.0  # so far out that the sigmoid is exactly zero


def memory_behind_gate(draw, kind, bias):
    """A layer whose memory only passes a gate with this bias at every step; nothing is written into it."""
    layer = with_drawn_weights(LSTM(2, 3) if kind == "LSTM" else GRU(2, 3, reset=kind), draw)
    gate, written = ("forget", "input") if kind == "LSTM" else ("update", "candidate")
    for block, value in ((gate, bias), (written, SHUT if kind == "LSTM" else 0.0)):
        rows = layer.rows(block)
        layer.input_weight.data[rows], layer.recurrent_weight.data[rows] = 0.0, 0.0
        layer.set_bias(block, value)
    if kind == "after":
        layer.get_parameter("inner_bias").data.zero_()
    return layer


def survival(draw, kind, bias, steps):
    """What is left of a memory after so many steps, and its slope, both relative to the start."""
    layer = memory_behind_gate(draw, kind, bias)
    start = draw.uniform(1, 3, low=0.5, high=1.0).requires_grad_()
    state = (torch.zeros(1, 3, dtype=torch.float64), start) if kind == "LSTM" else start
    _, end = layer(draw.normal(1, steps, 2), state)
    memory = end[1] if kind == "LSTM" else end
    (slope,) = torch.autograd.grad(memory.sum(), start)
    return torch.cat([(memory / start).detach(), slope]).flatten()


@claim("rnn.gate")
@lie("a gate near 0 keeps the memory, near 1 forgets it", sign=-1.0)
@lie("a gradient passes gates undiminished, however many", passed=0.0)
@lie("the gate is half of 1 + tanh of the full sum", half=1.0)
@lie("gates reach below zero", least=-0.5)
def gates_scale_memory_and_gradient(draw, sign=1.0, passed=1.0, half=0.5, least=0.0):
    """Memories and gradients behind a constant gate, kept and forgotten at ±30; gates against shifted tangents."""
    parts = []
    for kind in ("LSTM", "before", "after"):
        for bias, steps in ((30.0, 5), (-30.0, 5), (-0.4, 4), (0.4, 4), (1.5, 7)):
            gate = 1 / (1 + math.exp(-sign * bias))
            left = survival(draw, kind, bias, steps)
            parts.append(close(left[:3], gate**steps, within=1e-10))
            parts.append(close(left[3:], gate ** (passed * steps), within=1e-10))
    layers = with_drawn_weights(LSTM(2, 50), draw), with_drawn_weights(GRU(2, 50), draw)
    x, state = draw.normal(4, 10, 2), draw.normal(4, 10, 50)
    shown, formula = [], []
    for layer, gated in zip(layers, (("input", "forget", "output"), ("reset", "update")), strict=True):
        for name in gated:
            rows = layer.rows(name)
            total = x @ layer.input_weight[rows].T + state @ layer.recurrent_weight[rows].T
            formula.append((1 + torch.tanh(half * (total + layer.get_parameter("bias")[rows]))) / 2)
            shown.append(getattr(layer.gates(x, state), name))
    gates = torch.stack(shown)
    return all_of(
        *parts,
        close(gates, torch.stack(formula)),
        always((gates > 0) & (gates < 1)),
        close(
            gates.min(), least, within=1e-4
        ),  # sums of variance 25 and more reach far below zero, but not where a gate is rounded to one
    )
