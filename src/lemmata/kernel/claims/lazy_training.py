"""Wide networks in training: parameters hardly move, the kernel stays, and the kernel's prediction comes true."""

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from lemmata.judge import all_of, at_least, at_most, claim, lie, slope_is
from lemmata.kernel.infinite_width import infinite_ntk
from lemmata.kernel.kernel_regression import KernelRegression
from lemmata.kernel.linearized_network import linearize
from lemmata.kernel.ntk_parametrisation import ntk_mlp
from lemmata.kernel.tangent_kernel import ntk

WIDTHS, NARROW, NETWORKS, INPUTS, MOMENTS = [64, 128, 256, 512, 1024], 16, 6, 6, 8


def one_network(width, scaling):
    """Two layers of tanh in the NTK parametrisation; for a mean field the output is smaller by another √m."""
    model = ntk_mlp([INPUTS, width, 1], nn.Tanh, weight_variance=1.5, dtype=torch.float64)
    if scaling == "mean field":
        model.append(Shrunk(width))
    return model


class Shrunk(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return x / self.width**0.5


class WideNetworks(nn.Module):
    """Networks of all widths along their gradient flow: for each width two parameters, (moments, networks, ...)."""

    x: Tensor
    y: Tensor

    def __init__(self, scaling):
        super().__init__()
        self.scaling = scaling
        self.register_buffer("x", torch.zeros(INPUTS, INPUTS).double())
        self.register_buffer("y", torch.zeros(INPUTS).double())
        for m in [NARROW, *WIDTHS]:
            self.register_buffer(f"first_{m}", torch.zeros(MOMENTS, NETWORKS, m, INPUTS).double())
            self.register_buffer(f"second_{m}", torch.zeros(MOMENTS, NETWORKS, 1, m).double())

    def at(self, width, moment, network):
        """One network at one moment."""
        model = one_network(width, self.scaling)
        model[0].weight.data = getattr(self, f"first_{width}")[moment, network]
        model[2].weight.data = getattr(self, f"second_{width}")[moment, network]
        return model

    def kernels(self, width):
        """(moments, networks, n, n)."""
        found = [[ntk(self.at(width, t, k), self.x)[..., 0, 0] for k in range(NETWORKS)] for t in range(MOMENTS)]
        return torch.stack([torch.stack(row) for row in found])

    def weights(self, width):
        """(moments, networks, parameters)."""
        parts = getattr(self, f"first_{width}"), getattr(self, f"second_{width}")
        return torch.cat([part.flatten(2) for part in parts], 2)


def wide_networks(scaling):
    return WideNetworks(scaling)


def follow_the_flow(networks, generator, scaling):
    """Runge-Kutta's steps of gradient flow, until errors along the slowest mode have fallen by e^10."""
    mixed = torch.linalg.qr(torch.randn(INPUTS, INPUTS, generator=generator, dtype=torch.float64))[0]
    x = (mixed + 0.1 * torch.randn(INPUTS, INPUTS, generator=generator, dtype=torch.float64)) * INPUTS**0.5
    y = torch.randn(INPUTS, generator=generator, dtype=torch.float64)
    networks.x, networks.y = x, y
    for width in [NARROW, *WIDTHS]:
        model = one_network(width, scaling)
        drawn = {
            name: torch.randn(NETWORKS, *p.shape, generator=generator, dtype=torch.float64)
            for name, p in model.named_parameters()
        }

        def loss(at, model=model):
            return (functional_call(model, at, (x,))[:, 0] - y).square().sum() / 2

        slope = vmap(grad(loss))
        for name, value in drawn.items():
            model.get_parameter(name).data = value[0]
        rates = torch.linalg.eigvalsh(ntk(model, x)[..., 0, 0])
        limit = torch.linalg.eigvalsh(infinite_ntk(x, activation="tanh", weight_variance=1.5))
        step = 0.7 / float(rates[-1])
        steps = int(10 * float(limit[-1] / limit[0]) / 0.7) + 1
        marks = [round(steps * (k / (MOMENTS - 1)) ** 2) for k in range(MOMENTS)]
        for t in range(steps + 1):
            for k in (k for k, mark in enumerate(marks) if mark == t):
                getattr(networks, f"first_{width}")[k] = drawn["0.weight"]
                getattr(networks, f"second_{width}")[k] = drawn["2.weight"]
            drawn = advanced(slope, drawn, step)


def advanced(slope, at, step):
    """One step of the classical Runge-Kutta method along minus the slope."""

    def moved(along, factor):
        return {name: at[name] - factor * along[name] for name in at}

    one = slope(at)
    two = slope(moved(one, step / 2))
    three = slope(moved(two, step / 2))
    four = slope(moved(three, step))
    mean = {name: (one[name] + 2 * two[name] + 2 * three[name] + four[name]) / 6 for name in at}
    return moved(mean, step)


def trained(draw, scaling):
    return draw.trained(wide_networks, follow_the_flow, scaling=scaling)


@claim("ntk.lazy")
@lie("parameters move as far in wide networks", power=0.0)
@lie("parameters move like 1/m", power=-1.0)
@lie("the same without a second factor 1/√m at the output", scaling="mean field")
def parameters_hardly_move(draw, power=-0.5, scaling="ntk"):
    """How far the parameters have moved at the end, over their length at the start; the data are fitted by then."""
    networks = trained(draw, scaling)
    movement, missed = [], []
    for m in WIDTHS:
        path = networks.weights(m)
        movement.append(((path[-1] - path[0]).norm(dim=1) / path[0].norm(dim=1)).log().mean().exp())
        ends = [networks.at(m, MOMENTS - 1, k)(networks.x)[:, 0].detach() for k in range(NETWORKS)]
        missed.append(torch.stack([(end - networks.y).norm() for end in ends]).max())
    return all_of(
        at_most(torch.stack(missed) / networks.y.norm(), 0.02),
        slope_is(WIDTHS, torch.stack(movement), power, within=0.15),
    )


def of_the_kernel(networks, width):
    return networks.kernels(width)


def of_the_parameters(networks, width):
    return networks.weights(width)


@claim("ntk.constancy")
@lie("the kernel is constant in networks of any width", moves=0.0)
@lie("the parameters converge to the kernel", printed="003/1", what=of_the_parameters, raises=RuntimeError)
@lie("the distance to the limit does not fall", power=0.0)
@lie("the same with a mean field's output", scaling="mean field")
def the_kernel_stays(draw, moves=0.02, what=of_the_kernel, power=-0.5, scaling="ntk"):
    """The largest distance to the limit along the flow over the width, and the change in a narrow network."""
    networks = trained(draw, scaling)
    limit = infinite_ntk(networks.x, activation="tanh", weight_variance=1.5)
    farthest = []
    for m in WIDTHS:
        path = what(networks, m)
        apart = (path - limit).norm(dim=(2, 3)).amax(0) / limit.norm()  # (networks,)
        farthest.append(apart.square().mean().sqrt())
    narrow = networks.kernels(NARROW)
    changed = (narrow[-1] - narrow[0]).norm(dim=(1, 2)) / narrow[0].norm(dim=(1, 2))
    motion = changed.mean() if moves else -changed.mean()  # constant: no more than nothing
    return all_of(
        slope_is(WIDTHS, torch.stack(farthest), power, within=0.2),
        at_least(motion, moves),
    )


@claim("ntk.near_constancy")
@lie("the change falls only like 1/√m", power=-0.5)
@lie("the change does not fall with the width", power=0.0)
@lie("the same with a mean field's output", scaling="mean field")
def the_change_falls_with_the_width(draw, power=-1.0, scaling="ntk"):
    """The relative change of the kernel from start to end over the width."""
    networks = trained(draw, scaling)
    drift = []
    for m in WIDTHS:
        path = networks.kernels(m)
        change = (path[-1] - path[0]).norm(dim=(1, 2)) / path[0].norm(dim=(1, 2))
        drift.append(change.square().mean().sqrt())
    return slope_is(WIDTHS, torch.stack(drift), power, within=0.24)


@claim("ntk.infinite_solution")
@lie("the initial function is missing", printed="001/1", start=0.0)
@lie("the initial function is missing, with the inverse", printed="003/2", start=0.0)
@lie("a ridge of 1 remains", ridge=1.0)
def the_prediction_comes_true(draw, start=1.0, ridge=0.0, limit=infinite_ntk):
    """Trained networks at new points against the regression with the limit of the kernel, over the width."""
    networks = trained(draw, "ntk")
    x, new, words = networks.x, draw.normal(8, INPUTS), {"activation": "tanh", "weight_variance": 1.5}
    regression = KernelRegression(lambda a, b: limit(a, b, **words), ridge=ridge)
    errors = []
    for m in WIDTHS:
        apart = []
        for k in range(NETWORKS):
            first, last = networks.at(m, 0, k), networks.at(m, MOMENTS - 1, k)
            f, there, found = (part.detach()[:, 0] for part in (first(x), first(new), last(new)))
            predicted = regression.fit(x, networks.y, start=start * f).predict(new, start=start * there)
            apart.append((found - predicted).square().mean())
        errors.append(torch.stack(apart).mean().sqrt())
    errors = torch.stack(errors)
    return all_of(
        slope_is(WIDTHS, errors, -0.5, within=0.25),
        at_most(errors[-1], 0.15 * networks.y.std()),
    )


def hidden_direction(draw, model, x):
    """A steep function of one direction that is not given."""
    return torch.tanh(2 * x @ draw.unit(x.shape[1]))


def in_the_span(draw, model, x):
    """The network's own gradients, weighed at random."""
    linear = linearize(model)
    change = {name: draw.normal(*p.shape) for name, p in linear.start_.items()}
    return (linear.along(change)(x) - linear(x)).detach()[:, 0]


@claim("ntk.linear_limits")
@lie("the same for functions that the gradients span", target=in_the_span)
@lie("the trained network has a fifth of the error", factor=0.05)
def training_finds_directions(draw, target=hidden_direction, factor=0.7):
    """Ten networks trained, and their linearisations fitted in closed form, on functions of one hidden direction."""
    wins = 0
    for _ in range(10):
        model = nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 1))
        for p in model.parameters():  # as torch draws them, by this draw
            p.data = draw.uniform(*p.shape, low=-1.0, high=1.0).float() / (64 if len(p) == 1 else 30) ** 0.5
        x = draw.normal(1300, 30).float()
        y = target(DrawnInSingle(draw), model, x)
        linear = linearize(model).fit(x[:300], y[:300, None])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(200):
            optimizer.zero_grad()
            (model(x[:300])[:, 0] - y[:300]).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            errors = [(each(x[300:])[:, 0] - y[300:]).square().mean() for each in (model, linear)]
        wins += bool(errors[0] < factor * errors[1])
    return at_least(wins, 8)


class DrawnInSingle:
    """The draws of a claim, in the precision in which networks are trained."""

    def __init__(self, draw):
        self.draw = draw

    def normal(self, *shape):
        return self.draw.normal(*shape).float()

    def unit(self, *shape):
        return self.draw.unit(*shape).float()
