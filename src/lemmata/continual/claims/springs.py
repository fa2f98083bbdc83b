"""Staying near old parameters: divergences of answers, their curvature, the Fisher information and its springs."""

import torch
from torch import nn
from torch.func import functional_call, hessian
from torch.nn import functional

from lemmata.continual.fisher_information import fisher_diagonal
from lemmata.continual.function_anchor import FunctionAnchor, kl_of_logits
from lemmata.continual.task_stream import Task, TaskStream
from lemmata.data.examples import Examples
from lemmata.judge import all_of, at_most, claim, close, lie, slope_is
from lemmata.measure.curvature_products import FisherOperator


def softmax_network(draw, inputs=4, hidden=5, classes=3):
    """A classifier with 43 weights, and inputs for it."""
    network = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes)).double()
    with torch.no_grad():
        for part in network.parameters():
            part.copy_(0.8 * draw.normal(*part.shape))
    return network, draw.normal(12, inputs)


def vector_of(network):
    return torch.cat([part.detach().flatten() for part in network.parameters()])


def outputs_at(network, values, x):
    """The logits of a network with its parameters from one vector."""
    parts, names = {}, dict(network.named_parameters())
    for (name, part), piece in zip(names.items(), values.split([p.numel() for p in names.values()]), strict=True):
        parts[name] = piece.reshape(part.shape)
    return functional_call(network, parts, (x,))


def stream_of(*tasks):
    """Tasks of inputs and labels, judged on what they learn from."""
    made = [Task(f"task {k}", Examples(x=x, y=y), Examples(x=x, y=y), (0, 1, 2)) for k, (x, y) in enumerate(tasks)]
    return TaskStream(tuple(made), "domain", 3)


def tempered(temperature):
    """The divergence from the old answers at another temperature."""

    def divergence(old, new):
        return kl_of_logits(old / temperature, new)

    return divergence


@claim("continual.function_regulariser")
@lie("towards the old answers at another temperature", temperature=2.0)
@lie("the inputs alone are kept, and answered anew", frozen=False)
def the_old_answers_are_a_minimum(draw, temperature=1.0, frozen=True, strategy=FunctionAnchor):
    """Zero with its gradient at the old parameters; and under it a hundred steps on a new task."""
    network, x = softmax_network(draw)
    first, second = draw.integers(0, 3, 12), draw.integers(0, 3, 12)
    anchored = strategy(network, strength=300.0, divergence=tempered(temperature))
    anchored.stream = stream_of((x, first), (x + 3, second))
    anchored.after_task(Examples(x=x, y=first))
    old = network(x).detach()
    penalty = anchored.penalty(anchored.anchors)
    slope = torch.cat([part.flatten() for part in torch.autograd.grad(penalty, list(network.parameters()))])
    new_task = Examples(x=x + 3, y=second)
    before = functional.cross_entropy(network(new_task.x), second).detach()
    anchored.before_task(1)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(100):
        if not frozen:
            anchored.anchors = [Examples(x=x, logits=network(x).detach())]
        optimizer.zero_grad()
        anchored.loss(new_task).backward()
        optimizer.step()
    zero, after = torch.zeros((), dtype=torch.float64), functional.cross_entropy(network(new_task.x), second).detach()
    return all_of(
        close(penalty.detach(), zero, scale=1.0),
        close(slope, torch.zeros_like(slope), scale=1.0),
        at_most((network(x).softmax(1) - old.softmax(1)).abs().max().detach(), 0.05),
        at_most(after, before - 0.01),
    )


def with_a_kink(old, new):
    """The total variation: least where both agree, but not flat there."""
    return (old.softmax(1) - new.softmax(1)).abs().sum(1)


@claim("continual.ewc_taylor")
@lie("the vector of the printed line", printed="004/1", form=torch.mul)
@lie("without the half", half=1.0)
@lie("any divergence, such as one with a kink", divergence=with_a_kink)
def the_divergence_is_a_parabola_near_the_old_parameters(draw, half=0.5, form=torch.dot, divergence=kl_of_logits):
    """Along ten directions: the divergence against the form of the Fisher matrix, and its error as the step shrinks."""
    network, x = softmax_network(draw)
    anchor, logits = vector_of(network), network(x).detach()
    fisher = FisherOperator(network, (x, None))
    steps = torch.tensor([0.02 / 2**k for k in range(6)], dtype=torch.float64)
    evidence = []
    for _ in range(10):
        direction = draw.unit(len(anchor))
        exact = torch.stack([divergence(logits, outputs_at(network, anchor + s * direction, x)).mean() for s in steps])
        predicted = torch.stack([half * form(s * direction, fisher(s * direction)) for s in steps])
        if predicted.ndim > 1:
            return close(exact.detach(), predicted)
        ratio = exact.detach() / predicted
        evidence.append((ratio, slope_is(steps, exact.detach(), 2.0, within=0.05)))
    limits = torch.stack([2 * ratio[-1] - ratio[-2] for ratio, _ in evidence])  # the error of first order cancels
    return all_of(close(limits, torch.ones_like(limits), within=1e-3), *(slope for _, slope in evidence[:4]))


def of_the_model(model, x, y):
    return fisher_diagonal(model, x)


def of_the_data(model, x, y):
    return fisher_diagonal(model, x, y, labels="data")


def of_the_batch(model, x, y):
    """The squared gradient of a mean, as if it were the mean of squared gradients."""
    y = model(x).detach().argmax(1)
    gradients = torch.autograd.grad(functional.cross_entropy(model(x), y), list(model.parameters()))
    return {str(k): part.square() for k, part in enumerate(gradients)}


@claim("continual.kl_hessian_fisher")
@lie("the empirical Fisher of the labels", diagonal=of_the_data)
@lie("the square of a batch's gradient", diagonal=of_the_batch)
@lie("the curvature of the loss on the labels", at="loss")
@lie("half of it", factor=0.5)
def the_curvature_of_the_divergence(draw, diagonal=of_the_model, at="divergence", factor=1.0, fisher=FisherOperator):
    """All second derivatives of both directions of the divergence, and the diagonal from squared gradients."""
    network, x = softmax_network(draw)
    anchor, logits, y = vector_of(network), network(x).detach(), draw.integers(0, 3, 12)
    dense = factor * fisher(network, (x, None)).dense()
    if at == "loss":
        return close(hessian(lambda v: functional.cross_entropy(outputs_at(network, v, x), y))(anchor), dense, ulps=1e5)
    forward = hessian(lambda v: kl_of_logits(logits, outputs_at(network, v, x)).mean())(anchor)
    backward = hessian(lambda v: kl_of_logits(outputs_at(network, v, x), logits).mean())(anchor)
    found = torch.cat([part.flatten() for part in diagonal(network, x, y).values()])
    return all_of(
        close(forward, dense, ulps=1e5),
        close(backward, dense, ulps=1e5),
        close(found.detach(), forward.diagonal(), ulps=1e5),
    )
