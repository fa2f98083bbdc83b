"""The inner loop as an operator, and the gradients of MAML, first-order MAML and Reptile through it."""

import torch
from torch import nn
from torch.func import functional_call, hessian
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.judge import all_of, always, at_least, claim, close, lie, slope_is
from lemmata.meta.claims.quadratic_tasks import Point, drawn_losses, gradient_of, loss_of_rows, tasks_of, walked
from lemmata.meta.inner_loop import adapt
from lemmata.meta.maml import MAML, FirstOrderMAML
from lemmata.meta.reptile import Reptile


def small_network(draw, inputs=3, hidden=4):
    """A network with one hidden layer, in float64."""
    network = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, 1)).double()
    with torch.no_grad():
        for part in network.parameters():
            part.copy_(0.7 * draw.normal(*part.shape))
    return network


def flat(parameters):
    return torch.cat([part.detach().flatten() for part in parameters.values()])


def one_after_the_other(network, x, y, steps, lr):
    """torch's own gradient descent, on a copy of the weights; a negative rate climbs."""
    theta = {name: part.detach().clone().requires_grad_() for name, part in network.named_parameters()}
    optimizer = torch.optim.SGD(theta.values(), lr=abs(lr), maximize=lr < 0)
    for _ in range(steps):
        optimizer.zero_grad()
        functional.mse_loss(functional_call(network, theta, (x,)), y).backward()
        optimizer.step()
    return theta


def one_long_step(network, x, y, steps, lr):
    return one_after_the_other(network, x, y, min(steps, 1), steps * lr)


@claim("meta.inner_operator")
@lie("one step k times as long", walk=one_long_step)
@lie("up the gradient", direction=-1.0)
@lie("a step too many", more=1)
def k_steps_from_the_start(draw, walk=one_after_the_other, direction=1.0, more=0, adapt=adapt):
    """Against torch's gradient descent for several k; in two parts; and no step at all."""
    network, x = small_network(draw), draw.normal(12, 3)
    y, lr = x[:, :1].sin() + 1, 0.1
    evidence = []
    for k in (0, 1, 3, 6):
        found = flat(adapt(network, x, y, k, lr))
        evidence.append(close(found, flat(walk(network, x, y, k + more, direction * lr)), ulps=1e4))
    halfway = adapt(network, x, y, 2, lr)
    evidence.append(
        close(flat(adapt(network, x, y, 4, lr, parameters=halfway)), flat(adapt(network, x, y, 6, lr)), ulps=1e4)
    )
    start = flat(dict(network.named_parameters()))
    evidence.append(always([torch.equal(flat(adapt(network, x, y, 0, lr)), start)]))
    return all_of(*evidence)


# --- MAML ---


@claim("meta.maml_objective")
@lie("the optimum of joint training", steps=0)
@lie("a step less", steps=2)
@lie("inner loop and loss on the same set", judged="support")
def the_optimum_of_quadratic_tasks(draw, steps=3, judged="query", learner=MAML):
    """Quadratic losses on both sets: the gradient vanishes at the optimum in closed form, and nowhere near."""
    tasks, d, lr = 5, 3, 0.2
    support, query = drawn_losses(draw, tasks, d), drawn_losses(draw, tasks, d)
    outer = query if judged == "query" else support
    pull = torch.linalg.matrix_power(torch.eye(d, dtype=torch.float64) - lr * support.curvature, steps)  # of phi
    # sum_t P_t H_t (P_t phi + (I - P_t) a_t - b_t) = 0, with a_t and b_t the minima of both losses
    rest = outer.minimum - support.minimum + (pull @ support.minimum[:, :, None])[:, :, 0]  # b - (I - P) a
    weight = pull @ outer.curvature
    optimum = torch.linalg.solve((weight @ pull).sum(0), (weight @ rest[:, :, None]).sum(0)[:, 0])
    batch = tasks_of(support, query)

    def slope(where):
        return gradient_of(learner(Point(where), 3, lr, loss=loss_of_rows), batch)

    return all_of(
        close(slope(optimum), torch.zeros(d, dtype=torch.float64), scale=10.0, ulps=1e4),
        at_least(slope(optimum + draw.unit(d)).norm(), 1e-3),
    )


def transposed(factors):
    """(I - eps H_0) ... (I - eps H_{k-1})"""
    return torch.linalg.multi_dot([*factors, torch.eye(len(factors[0]), dtype=torch.float64)])


def not_transposed(factors):
    return transposed(factors[::-1])


def along_the_way(points):
    return points


def at_the_start(points):
    return points[:1] * len(points)


@claim("meta.maml_gradient")
@lie("the product in the other order", product=not_transposed)
@lie("every Hessian at the start", where=at_the_start)
@lie("Hessians of half the weight", curvature=0.5)
def the_chain_rule_through_the_inner_loop(draw, product=transposed, where=along_the_way, curvature=1.0, learner=MAML):
    """Cubic losses, whose Hessians change and do not commute: one, two and three steps, and central differences."""
    d, lr = 3, 0.15
    support, query = drawn_losses(draw, 1, d, cubic=1.0), drawn_losses(draw, 1, d, cubic=0.3)
    start, eye, batch = draw.normal(d), torch.eye(d, dtype=torch.float64), tasks_of(support, query)
    evidence = []
    for k in (1, 2, 3):
        *points, adapted = walked(support, 0, start, k, lr)
        factors = [eye - curvature * lr * support.hessian(0, point) for point in where(points)]
        model = learner(Point(start), k, lr, loss=loss_of_rows)
        evidence.append(close(gradient_of(model, batch), product(factors) @ query.gradient(0, adapted), ulps=1e5))
    width = 1e-5
    ends = [[walked(support, 0, start + side * width * axis, 3, lr)[-1] for side in (1, -1)] for axis in eye]
    differences = torch.stack([query.of(0, up) - query.of(0, down) for up, down in ends]) / (2 * width)
    evidence.append(close(gradient_of(model, batch), differences, within=1e-6 * (1 + differences.abs().max())))
    return all_of(*evidence)


def network_tasks(draw, tasks=3):
    """Regression tasks whose two sets follow different rules, so that exchanging them shows."""
    x, query_x = draw.normal(tasks, 6, 3), draw.normal(tasks, 6, 3)
    slopes, turned = draw.normal(tasks, 3, 1), draw.normal(tasks, 3, 1)
    return Examples(x=x, y=x @ slopes + 1, query_x=query_x, query_y=query_x @ turned - 1)


@claim("meta.maml_one_step")
@lie("the inner step on the query loss", printed="004/1", inner="query")
@lie("the Hessian of the query loss", bent="query")
@lie("the Hessian left out", bend=0.0)
def one_step_in_closed_form(draw, inner="support", bent="support", bend=1.0, learner=MAML):
    """A network with 21 weights, its Hessian in full, and three tasks."""
    network, batch, lr = small_network(draw), network_tasks(draw), 0.1
    names = dict(network.named_parameters())
    theta = flat(names)

    def loss(values, task, which):
        parts, sizes = {}, [part.numel() for part in names.values()]
        for (name, part), piece in zip(names.items(), values.split(sizes), strict=True):
            parts[name] = piece.reshape(part.shape)
        x, y = (batch.x, batch.y) if which == "support" else (batch.query_x, batch.query_y)
        return functional.mse_loss(functional_call(network, parts, (x[task],)), y[task])

    def gradient(values, task, which):
        return torch.func.grad(loss)(values, task, which)

    expected = []
    for task in range(3):
        adapted = theta - lr * gradient(theta, task, inner)
        back = torch.eye(len(theta), dtype=torch.float64) - bend * lr * hessian(loss)(theta, task, bent)
        expected.append(back @ gradient(adapted, task, "query"))
    model = learner(network, 1, lr)
    model.loss(batch).backward()
    found = torch.cat([part.grad.flatten() for part in network.parameters() if part.grad is not None])
    return close(found, torch.stack(expected).mean(0), ulps=1e5)


@claim("meta.fomaml")
@lie("the gradient of joint training", adapted=0.0)
@lie("an error of second order", order=2.0)
@lie("the mean gradient of the support", judged="support")
def query_gradients_at_the_adapted_parameters(draw, adapted=1.0, order=1.0, judged="query", learner=FirstOrderMAML):
    """Cubic losses: the mean of the query gradients, and what it lacks of MAML's as the inner steps grow smaller."""
    tasks, d, start = 4, 3, draw.normal(3)
    support, query = drawn_losses(draw, tasks, d, cubic=0.5), drawn_losses(draw, tasks, d, cubic=0.5)
    batch, outer = tasks_of(support, query), query if judged == "query" else support
    ends = [start + adapted * (walked(support, t, start, 2, 0.15)[-1] - start) for t in range(tasks)]
    mean = torch.stack([outer.gradient(t, ends[t]) for t in range(tasks)]).mean(0)
    rates = [0.02 / 2**k for k in range(6)]
    gaps = [
        gradient_of(MAML(Point(start), 1, lr, loss=loss_of_rows), batch)
        - gradient_of(learner(Point(start), 1, lr, loss=loss_of_rows), batch)
        for lr in rates
    ]
    lost = -torch.stack([support.hessian(t, start) @ query.gradient(t, start) for t in range(tasks)]).mean(0)
    # Halving the step doubles the ratio's distance from its limit back: two of them extrapolate it away.
    limit = 2 * gaps[-1] / rates[-1] - gaps[-2] / rates[-2]
    flat_support = support._replace(curvature=0 * support.curvature, cubic=0 * support.cubic)
    level = tasks_of(flat_support, query)
    return all_of(
        close(gradient_of(learner(Point(start), 2, 0.15, loss=loss_of_rows), batch), mean, ulps=1e5),
        slope_is(rates, [float(gap.norm()) for gap in gaps], order, within=0.1),
        close(limit, lost, within=1e-3 * (1 + lost.abs().max())),
        close(
            gradient_of(learner(Point(start), 2, 0.15, loss=loss_of_rows), level),
            gradient_of(MAML(Point(start), 2, 0.15, loss=loss_of_rows), level),
        ),
    )


# --- Reptile ---


@claim("meta.reptile_k1")
@lie("joint training with two steps as well", second=0.0)
@lie("a step of the sum over tasks", share=4.0)
@lie("the curvature term of the other sign", second=-1.0)
def one_inner_step_is_joint_training(draw, second=1.0, share=1.0, learner=Reptile):
    """Quadratic tasks: with one step the update is that of the mean loss; the second brings the Hessian."""
    tasks, d, rate = 4, 3, 0.2
    losses, start = drawn_losses(draw, tasks, d), draw.normal(3)
    batch = tasks_of(losses, losses)
    slopes = torch.stack([losses.gradient(t, start) for t in range(tasks)])
    bent = torch.stack([losses.hessian(t, start) @ slopes[t] for t in range(tasks)])
    expected = [rate * slopes.mean(0), 2 * rate * slopes.mean(0) - second * rate**2 * bent.mean(0)]
    found = [gradient_of(learner(Point(start), k, rate, loss=loss_of_rows), batch) for k in (1, 2)]
    return all_of(*(close(one, share * other, ulps=1e4) for one, other in zip(found, expected, strict=True)))
