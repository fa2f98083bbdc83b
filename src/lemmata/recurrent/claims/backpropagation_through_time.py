"""Backpropagation through time: gradients of weights and of states, against autograd."""

# torch types what a module holds as Tensor | Module.
# pyright: reportArgumentType=false, reportCallIssue=false

import torch

from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.judge import all_of, claim, close, lie
from lemmata.recurrent.backpropagation_through_time import (
    backpropagate_through_time,
    forward_sensitivities,
    through_readout,
)
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.jacobians_through_time import jacobian_products, state_jacobians
from lemmata.recurrent.output_map import Tagger


def problem(draw, steps, activation="tanh"):
    """A network with a sigmoid readout, inputs, a first state, and a loss: the squared distance from targets."""
    head = Tagger(Elman(2, 3, activation), outputs=2, activation="sigmoid").double()
    with torch.no_grad():
        head.layer.recurrent_weight.mul_(2.0)
    x, start, target = draw.normal(2, steps, 2), draw.normal(2, 3) / 2, draw.uniform(2, steps, 2)

    def loss(outputs):
        return (head.read(outputs) - target).square().sum() / 2

    return head, x, start, target, loss


def immediate_sensitivities(layer, x, before):
    """The derivative of each state with respect to [U, V, b] with the state before it held fixed, by autograd."""
    found = []
    for t in range(x.shape[1]):
        output = layer.step(x[:, t], before[:, t].detach())[0]
        rows = []
        for value in output.flatten():
            u, v, b = torch.autograd.grad(
                value, (layer.recurrent_weight, layer.input_weight, layer.bias), retain_graph=True
            )
            rows.append(torch.cat([u, v, b[:, None]], dim=1))
        found.append(torch.stack(rows).unflatten(0, output.shape))
    return torch.stack(found, dim=1)


@claim("rnn.bptt.weights")
@lie("both factors are total derivatives", beside_total="total")
@lie("both factors are immediate derivatives", beside_immediate="immediate")
@lie("the readout contributes its value in place of its slope", readout="value")
@lie("one output alone is counted", counted=(0,))
@lie("the step t contributes with the state after it", before=0)
def one_factor_is_total_and_the_other_immediate(
    draw, beside_total="immediate", beside_immediate="total", readout="slope", counted=(0, 1), before=1
):
    """Backwards and forwards through time against autograd; the immediate factors by autograd of single steps."""
    parts = []
    for steps, activation in ((4, "tanh"), (10, "tanh"), (6, "softplus")):
        head, x, start, target, loss = problem(draw, steps, activation)
        layer = head.layer
        outputs = layer(x, start)[0]
        truth = torch.autograd.grad(loss(outputs), list(layer.parameters()), retain_graph=True)
        exact = torch.cat([truth[0], truth[1], truth[2][:, None]], dim=1)
        (direct,) = torch.autograd.grad(loss(outputs), outputs)
        immediate = through_readout(head, outputs, head.read(outputs) - target)
        found = backpropagate_through_time(layer, x, immediate, start)
        states = torch.cat([start[:, None], outputs], dim=1)
        of_states = {  # the derivatives of every state with respect to [U, V, b]
            "total": forward_sensitivities(layer, x, start),
            "immediate": immediate_sensitivities(layer, x, states),
        }
        of_readout = {
            "slope": ACTIVATION_TABLE["sigmoid"].derivative(head.readout(outputs)),
            "value": head.read(outputs),
        }
        delta = (head.read(outputs) - target) * of_readout[readout]
        slopes = ACTIVATION_TABLE[activation].derivative(totals(layer, x, states))
        columns = torch.cat([states.roll(before, 1)[:, 1:], x], -1)
        pairs = [
            (torch.einsum("btk,btkij->ij", found.states, of_states[beside_total]), exact),
            (torch.einsum("btk,btkij->ij", immediate, of_states[beside_immediate]), exact),
            (delta[..., counted] @ head.readout.weight[counted, :], direct),
            (torch.einsum("bti,btj->ij", found.states * slopes, columns), exact[:, :-1]),
            *[(mine, theirs) for mine, theirs in zip(found.weights().values(), truth, strict=True)],
        ]
        size = found.recurrent_weight.abs().sum(0).max()
        parts += [close(left, right, ulps=1024, scale=size) for left, right in pairs]
    return all_of(*parts)


def totals(layer, x, states):
    """What the activation is applied to at every step."""
    return states[:, :-1] @ layer.recurrent_weight.T + x @ layer.input_weight.T + layer.bias


@claim("rnn.bptt.state")
@lie("the factors stand in the order of time from left to right", order="increasing")
@lie("the derivative of a later output by the early state stands before the product", products=2)
@lie("the product begins with the factor of the state itself", first=0)
def gradients_of_states_are_products_of_step_jacobians(draw, order="decreasing", products=1, first=1):
    """Sums of products of step Jacobians against autograd and against the recursion backwards."""
    parts = []
    for steps in (1, 5):
        head, x, start, target, loss = problem(draw, steps)
        states = [start.clone().requires_grad_()]
        for now in x.unbind(1):
            states.append(head.layer.step(now, states[-1])[1])
        outputs = torch.stack(states[1:], dim=1)
        truth = torch.stack(torch.autograd.grad(loss(outputs), states, retain_graph=True), dim=1)
        immediate = through_readout(head, outputs, head.read(outputs) - target)
        jacobians = state_jacobians(head.layer, x, start)
        predicted = torch.zeros_like(truth)
        for end, t in ((i, t) for i in range(1, steps + 1) for t in range(i + 1)):
            inside = jacobians[:, max(t - 1 + first, 0) : end]
            product = jacobian_products(inside if order == "decreasing" else inside.flip(1))[:, -1]
            predicted[:, t] += (immediate[:, end - 1, None] @ torch.linalg.matrix_power(product, products))[:, 0]
        found = backpropagate_through_time(head.layer, x, immediate, start)
        rows = [torch.autograd.grad(states[-1][:, k].sum(), states[0], retain_graph=True)[0] for k in range(3)]
        parts += [
            close(predicted, truth, ulps=1024),
            close(torch.cat([found.initial[:, None], found.states], 1), truth, ulps=1024),
            close(jacobian_products(jacobians)[:, -1], torch.stack(rows, dim=1), ulps=1024),
        ]
    return all_of(*parts)
