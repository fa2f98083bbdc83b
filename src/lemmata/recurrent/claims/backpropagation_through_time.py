"""Backpropagation through time: gradients of weights and of states, against autograd and central differences."""

# torch types what a module holds as Tensor | Module, and a mark of a figure may be of any kind.
# pyright: reportArgumentType=false, reportCallIssue=false

import torch

from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.jacobians import differenced_jacobian
from lemmata.judge import Bars, Figure, Line, all_of, claim, close, lie
from lemmata.recurrent.backpropagation_through_time import (
    backpropagate_through_time,
    forward_sensitivities,
    through_readout,
)
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gradient_flow import jacobian_products, state_jacobians
from lemmata.recurrent.output_map import Tagger
from lemmata.recurrent.unrolling import Unrolled


def problem(draw, steps, activation="tanh", bias=True):
    """A network with a sigmoid readout, inputs, a first state, and a loss: the squared distance from targets."""
    head = Tagger(Elman(2, 3, activation, bias=bias), outputs=2, activation="sigmoid").double()
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
@lie("both factors are total derivatives", later=1.0)
@lie("both factors are immediate derivatives", earlier=0.0)
@lie("the readout contributes its value in place of its slope", slope=0.0)
@lie("one output alone is counted", counted=(0,))
@lie("the step t contributes with the state after it", before=0)
def one_factor_is_total_and_the_other_immediate(draw, later=0.0, earlier=1.0, slope=1.0, counted=(0, 1), before=1):
    """Backwards and forwards through time against autograd; the immediate factors by autograd of single steps.

    `later` and `earlier` are the shares of all earlier steps in the derivative of a state with respect to the weights,
    where the other factor is total and where it is immediate.
    """
    parts = []
    for steps, activation in ((4, "tanh"), (10, "tanh"), (6, "softplus")):
        head, x, start, target, loss = problem(draw, steps, activation)
        layer = head.layer
        outputs = layer(x, start)[0]
        truth = torch.autograd.grad(loss(outputs), list(layer.parameters()), retain_graph=True)
        exact = torch.cat([truth[0], truth[1], truth[2][:, None]], dim=1)
        delta = head.read(outputs) - target
        value, steep = head.read(outputs), ACTIVATION_TABLE["sigmoid"].derivative(head.readout(outputs))
        factor = delta * (slope * steep + (1 - slope) * value)
        immediate = through_readout(head, outputs, delta)
        states = torch.cat([start[:, None], outputs], dim=1)
        own = immediate_sensitivities(layer, x, states)
        total, found = forward_sensitivities(layer, x, start), backpropagate_through_time(layer, x, immediate, start)
        mixed = own + later * (total - own)
        carried = own + earlier * (total - own)
        outer = torch.einsum(
            "bti,btj->ij", found.states * ACTIVATION_TABLE[activation].derivative(totals(layer, x, states)),
            torch.cat([states.roll(before, 1)[:, 1:], x], -1),
        )  # fmt: skip
        size = found.recurrent_weight.abs().sum(0).max()
        # The weights of step t alone: those of its own copy in the unrolled network.
        unrolled = Unrolled(layer, steps)
        (immediate * unrolled(x, start)[0]).sum().backward()
        copies = [dict(each.named_parameters()) for each in unrolled.copies]
        pairs = [
            (torch.einsum("btk,btkij->ij", found.states, mixed), exact),
            (torch.einsum("btk,btkij->ij", immediate, carried), exact),
            (factor[..., counted] @ head.readout.weight[counted, :], immediate),
            (outer, torch.cat(truth[:2], 1)),
            *[(found.weights()[name], value) for name, value in zip(copies[0], truth, strict=True)],
        ]
        names = ("recurrent_weight", "input_weight", "bias")
        pairs += [(getattr(found, name), torch.stack([each[name].grad for each in copies])) for name in names]
        parts += [close(left, right, ulps=1024, scale=size) for left, right in pairs]
    without = problem(draw, 5, bias=False)[0].layer
    x, weight = draw.normal(2, 5, 2), draw.normal(2, 5, 3)
    slopes = differenced_jacobian(lambda u: along(without, u, x, weight), without.recurrent_weight.detach())
    plain = backpropagate_through_time(without, x, weight)
    parts += [
        close(plain.weights()["recurrent_weight"], slopes, within=1e-7)
    ]  # central differences err by the square of 6e-6
    contributions = found.recurrent_weight.flatten(1).norm(dim=1)
    bars = Bars([str(t + 1) for t in range(len(contributions))], contributions, "size of the contribution")
    return all_of(*parts).showing(Figure("What each step adds to dL/dU", "step", "length", [bars]))


def totals(layer, x, states):
    return states[:, :-1] @ layer.recurrent_weight.T + x @ layer.input_weight.T + layer.bias


def along(layer, recurrent, x, weight):
    """A weighted sum of all states of the layer with another recurrent matrix."""
    return (weight * torch.func.functional_call(layer, {"recurrent_weight": recurrent}, (x,))[0]).sum()


@claim("rnn.bptt.state")
@lie("the factors stand in the order of time from left to right", increasing=1.0)
@lie("the derivative of a later output by the early state stands before the product", products=2)
@lie("the product begins with the factor of the state itself", first=0)
def gradients_of_states_are_products_of_step_jacobians(draw, increasing=0.0, products=1, first=1):
    """Sums of products of step Jacobians, in each order, against autograd and against the recursion backwards."""
    parts = []
    for steps in (1, 5):
        head, x, start, target, loss = problem(draw, steps)
        outputs, totals = [], []
        state = start.clone().requires_grad_()
        for now in x.unbind(1):
            totals.append(state)
            state = head.layer.step(now, state)[1]
            outputs.append(state)
        totals.append(state)
        stacked = torch.stack(outputs, dim=1)
        truth = torch.stack(torch.autograd.grad(loss(stacked), totals), dim=1)
        immediate = through_readout(head, stacked, head.read(stacked) - target)
        jacobians = state_jacobians(head.layer, x, start)
        predicted = torch.zeros_like(truth)
        for end, t in ((i, t) for i in range(1, steps + 1) for t in range(i + 1)):
            inside = jacobians[:, max(t - 1 + first, 0) : end]
            product = jacobian_products(inside)[:, -1]
            backwards = jacobian_products(inside.flip(1))[:, -1]
            product = (1 - increasing) * product + increasing * backwards
            power = torch.linalg.matrix_power(product, products)
            predicted[:, t] += (immediate[:, end - 1, None] @ power)[:, 0]
        found = backpropagate_through_time(head.layer, x, immediate, start)
        early = start.clone().requires_grad_()
        late = head.layer(x, early)[1]
        rows = [torch.autograd.grad(late[:, unit].sum(), early, retain_graph=True)[0] for unit in range(3)]
        chain = jacobian_products(jacobians)
        parts += [
            close(predicted, truth, ulps=1024),
            close(found.states, truth[:, 1:], ulps=1024),
            close(found.initial, truth[:, 0], ulps=1024),
            close(chain[:, -1], torch.stack(rows, dim=1), ulps=1024),
            close(chain[:, 0], torch.eye(3).double().expand(2, 3, 3)),
            close(chain[:, 1], jacobians[:, -1]),
        ]
    (gradient,) = torch.autograd.grad(loss(head.layer(x.requires_grad_(), start)[0]), x)
    norms = torch.linalg.matrix_norm(chain, 2)
    marks = [Line(range(steps + 1), norm, f"sequence {number}") for number, norm in enumerate(norms, start=1)]
    figure = Figure("Products of step Jacobians", "factors", "norm of the product", marks, y_log=True)
    return all_of(*parts, close(found.x, gradient, ulps=1024)).showing(figure)
