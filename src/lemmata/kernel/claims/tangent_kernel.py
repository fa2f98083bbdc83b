"""The tangent kernel of a network: what it is, which parametrisation it needs, and how the outputs follow it."""

from typing import Any

import torch
from torch import nn
from torch.func import functional_call, jvp
from torch.nn import functional

from lemmata.judge import all_of, at_least, at_most, claim, close, lie, slope_is
from lemmata.kernel.ntk_parametrisation import ntk_mlp
from lemmata.kernel.tangent_kernel import ntk
from lemmata.optim.gradient_flow import descent_path


def small_network(draw, inputs=3, hidden=8, outputs=1):
    """Two hidden layers of tanh with drawn weights, in double precision."""
    layers = [nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, outputs)]
    model = nn.Sequential(*layers).double()
    for p in model.parameters():
        p.data = draw.normal(*p.shape) / p.shape[-1] ** 0.5
    return model


def gradients(model, x, wrt="parameters"):
    """One row for each output of each example, by a backward pass each: the definition."""
    rows = []
    for each in x:
        each = each.clone().requires_grad_()
        for value in model(each[None]).flatten():
            chosen = list(model.parameters()) if wrt == "parameters" else [each]
            rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(value, chosen, retain_graph=True)]))
    return torch.stack(rows)


@claim("ntk.kernel_def")
@lie("the gradients are those in the inputs", wrt="inputs")
@lie("half of each product", factor=0.5)
def products_of_gradients(draw, wrt="parameters", factor=1.0, kernel=ntk):
    """The kernel layer by layer against gradients one by one, for one output and three, and its smallest eigenvalue."""
    one, three, few = small_network(draw), small_network(draw, outputs=3), nn.Linear(2, 1).double()
    x, other, plane = draw.normal(7, 3), draw.normal(4, 3), draw.normal(9, 2)
    phi, many = gradients(one, x, wrt), gradients(three, x, wrt)
    whole = kernel(three, x).transpose(1, 2).flatten(2).flatten(0, 1)  # (n * outputs, n * outputs)
    gram = kernel(one, x)[:, :, 0, 0]
    values = torch.linalg.eigvalsh(gram)
    spectrum = torch.linalg.eigvalsh(kernel(few, plane)[:, :, 0, 0])  # of nine points, with three parameters
    return all_of(
        close(gram, factor * phi @ phi.mT, ulps=1000),
        close(whole, factor * many @ many.mT, ulps=1000),
        close(kernel(one, x, other)[:, :, 0, 0], factor * phi @ gradients(one, other, wrt).mT, ulps=1000),
        at_least(values, torch.zeros_like(values) - 1e-12 * values.max()),
        at_most(spectrum[:6].abs(), 1e-12 * spectrum.max()),
        at_least(spectrum[6:], 1e-6 * spectrum.max()),
    )


def width_one(inputs, outputs):
    return inputs


def parameters_of_layer(inputs, outputs):
    return inputs * outputs


def in_weights(model):
    """The same function, with the weights themselves as parameters."""
    plain = []
    for layer in model:
        if isinstance(layer, nn.ReLU):
            plain.append(layer)
            continue
        made = nn.Linear(layer.inputs, layer.outputs, bias=False).double()
        made.weight.data = layer.weight.data * (layer.weight_variance / layer.inputs) ** 0.5
        plain.append(made)
    return nn.Sequential(*plain)


def itself(model):
    return model


@claim("ntk.parametrisation")
@lie("m is the number of parameters of the layer", printed="003/2", size=parameters_of_layer)
@lie("the gradients are those in the weights", trained=in_weights)
@lie("σ/√m is the variance of a weight", power=0.25)
def the_kernel_stays_finite(draw, size=width_one, trained=itself, power=0.5):
    """k(x, x) over the width for standard normals, and for the weights themselves; both networks are one function."""
    x, widths, kernels, plain, gaps = draw.normal(1, 5), [32, 128, 512], [], [], []
    for m in widths:
        found = []
        for _ in range(6):
            model: Any = ntk_mlp([5, m, m, 1], dtype=torch.float64)
            for layer in model[::2]:
                layer.weight.data = draw.normal(*layer.weight.shape)
                shape = layer.inputs, layer.outputs
                layer.weight_variance = 2.0 * layer.inputs * size(*shape) ** (-2 * power)
            found.append((ntk(trained(model), x).item(), ntk(in_weights(model), x).item()))
            gaps.append((model(x) - in_weights(model)(x)).item() / max(1.0, abs(model(x).item())))
        kernel, other = torch.tensor(found, dtype=torch.float64).mean(0)
        kernels.append(kernel)
        plain.append(other)
    return all_of(
        slope_is(widths, torch.stack(kernels), 0.0, within=0.3),
        slope_is(widths, torch.stack(plain), 1.0, within=0.3),
        close(torch.tensor(gaps, dtype=torch.float64), torch.zeros(len(gaps)).double(), ulps=1000, scale=1.0),
    )


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def named(model, vector):
    """A vector of all parameters by their names."""
    parts = vector.split([p.numel() for p in model.parameters()])
    return {n: part.view(p.shape) for (n, p), part in zip(model.named_parameters(), parts, strict=True)}


def where_it_stands(model, x, query):
    return gradients(model, x)


def at_a_query(model, x, query):
    return gradients(model, query).expand(len(x), -1)


@claim("ntk.gradient_flow")
@lie("the gradient is that at a query", printed="000/1", slopes=at_a_query)
@lie("the residuals count half", factor=0.5)
def parameters_follow_the_residuals(draw, slopes=where_it_stands, factor=1.0):
    """One Euler step of length one of the flow, as the optimiser takes it, against the sum over examples."""
    moved, sums = [], []
    for n in (1, 2, 9):
        model, x, y, query = small_network(draw), draw.normal(n, 3), draw.normal(n), draw.normal(1, 3)

        def loss(theta, model=model, x=x, y=y):
            return (functional_call(model, named(model, theta), (x,))[:, 0] - y).square().sum() / 2

        path = descent_path(loss, flat(model), 1, lambda parameters: torch.optim.SGD(parameters, lr=1.0))
        moved.append(path[1] - path[0])
        residual = y - model(x)[:, 0].detach()
        sums.append(factor * residual @ slopes(model, x, query))
    return close(torch.cat(moved), torch.cat(sums), ulps=1000)


def at_the_parameters(model, velocity):
    return named(model, flat(model))


def at_the_velocity(model, velocity):
    return named(model, velocity)


def half_square(outputs, y):
    return (outputs - y).square().sum() / 2


def logistic(outputs, y):
    return functional.softplus(-outputs * y.sign()).sum()


@claim("ntk.functional_flow")
@lie("the gradient is taken at the velocity of the parameters", printed="003/1", place=at_the_velocity)
@lie("outputs move away from the targets", sign=1.0)
@lie("the inverse of the kernel leads", power=-1.0)
def outputs_follow_the_kernel(draw, place=at_the_parameters, sign=-1.0, power=1.0, kernel=ntk):
    """The derivative of the outputs along the velocity of the parameters, against the kernel, for two losses."""
    moved, led = [], []
    for loss in (half_square, logistic):
        model, x, y = small_network(draw), draw.normal(5, 3), draw.normal(5)

        def outputs(theta, model=model, x=x):
            return functional_call(model, theta, (x,))[:, 0]

        now = outputs(dict(model.named_parameters()))
        velocity = -torch.cat([g.flatten() for g in torch.autograd.grad(loss(now, y), list(model.parameters()))])
        moved.append(jvp(outputs, (place(model, velocity),), (named(model, velocity),))[1].detach())
        values, vectors = torch.linalg.eigh(kernel(model, x)[:, :, 0, 0])
        at = now.detach().requires_grad_()
        slope = torch.autograd.grad(loss(at, y), at)[0]
        led.append(sign * vectors @ (values**power * (vectors.mT @ slope)))
    return close(torch.cat(moved), torch.cat(led), ulps=1e5)
