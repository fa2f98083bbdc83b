"""Activation functions: the signs, the sigmoid and tanh, ReLU and GELU, against independent constructions."""

import math

import sympy
import torch

from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.connectionism.linear_threshold import LinearThresholdUnit
from lemmata.foundations.activations import activation
from lemmata.foundations.activations.signs import hopfield_sign
from lemmata.judge import Figure, Line, all_of, always, at_most, claim, close, exactly, lie, symbolic

Z = sympy.symbols("z", real=True)
# In e = exp(z) all these are rational functions, which sympy simplifies at once: d/dz = e d/de, and -z means 1/e.
E = sympy.symbols("e", positive=True)
SIGMA = E / (1 + E)
TANH = (E - 1 / E) / (E + 1 / E)
TANH_OF_HALF = (E - 1) / (E + 1)


def slope_of(expression):
    return E * sympy.diff(expression, E)


def grid(low, high, count=401):
    return torch.linspace(low, high, count, dtype=torch.float64)


def autograd_slope(function, z):
    """Autograd's derivative, differentiable once more (torch.func would first import the compiler, for seconds)."""
    z = z if z.requires_grad else z.detach().requires_grad_()
    (slope,) = torch.autograd.grad(function(z).sum(), z, create_graph=True)
    return slope


@claim("activation.sgn")
@lie("the perceptron uses sgn(0) = +1", perceptron=hopfield_sign)
@lie("Hopfield networks use sgn(0) = 0", hopfield=torch.sign)
def the_sign_of_zero_is_a_convention_that_matters(draw, perceptron=torch.sign, hopfield=hopfield_sign):
    """Whole numbers, so that ties occur: correct means positive margin; a unit's sign is the rule of least energy."""
    w, x, y = draw.integers(-2, 3, 200, 3).double(), draw.integers(-2, 3, 200, 3).double(), draw.signs(200)
    activation = (w * x).sum(1)
    coupling = torch.triu(draw.integers(-1, 2, 6, 6).double(), 1)
    coupling[0] = 0.0  # one unit feels nothing: ties occur
    network = HopfieldNetwork(6, weight=coupling + coupling.T)
    states = draw.signs(60, 6)
    field, chosen = network.field(states), torch.stack([network.update(states, i)[:, i] for i in range(6)], dim=1)
    up = states[:, None, :].repeat(1, 6, 1)
    up[:, range(6), range(6)] = 1.0
    down = up.clone()
    down[:, range(6), range(6)] = -1.0
    rule = torch.where(network.energy(up) <= network.energy(down), 1.0, -1.0).double()
    return all_of(
        always((perceptron(activation) == y) == (y * activation > 0)),
        exactly(perceptron(x @ w[0]), LinearThresholdUnit(w[0])(x)),
        exactly(hopfield(field), rule),
        exactly(chosen, rule),
    )


@claim("activation.sigmoid")
@lie("the logit is ln((1 - y)/y)", sign=-1.0)
@lie("the sigmoid is 1/3 at 0, as with 2 exp(-z) below", middle=1 / 3)
@lie("the sigmoid takes the values between -1 and 1", low=-1.0)
def the_sigmoid_is_the_inverse_of_the_logit(draw, sign=1.0, middle=0.5, low=0.0):
    """The formula, the way back through the logit, the order, the value at 0, and the limits at large inputs."""
    z, known = grid(-15.0, 15.0), activation("sigmoid")
    values = known(z)
    return all_of(
        # A rounding of y moves the logit by eps/slope = 2e-16 e^15 = 7e-10 at the ends.
        close(sign * known.invert(values), z, within=1e-8),
        close(values, (1 + torch.exp(-z)).reciprocal(), ulps=8),
        exactly(float(known(torch.zeros(1, dtype=torch.float64))), middle),
        always(values.diff() > 0),
        close(known(torch.tensor([-40.0, 40.0], dtype=torch.float64)), [low, 1.0], within=1e-12),
        always(known(torch.tensor([-700.0], dtype=torch.float64)) > 0),
    )


@claim("activation.sigmoid_symmetry")
@lie("the sigmoid is odd", total=0.0)
@lie("the sum is one half", total=0.5)
def a_sigmoid_and_its_mirror_image_sum_to_one(draw, total=1.0):
    """By sympy, and for the shipped function up to rounding."""
    z, sigmoid = grid(-30.0, 30.0), activation("sigmoid")
    return all_of(
        symbolic(SIGMA + SIGMA.subs(E, 1 / E), sympy.nsimplify(total)),
        close(sigmoid(z) + sigmoid(-z), torch.full_like(z, total), scale=1.0, ulps=8),
    )


def squared_tanh(z):
    return torch.tanh(z) ** 2


def squared_sech(z):
    return torch.cosh(z) ** -2


@claim("activation.sigmoid_derivative")
@lie("the middle form is tanh²(z/2)/4", middle=squared_tanh)
@lie("the derivative with respect to a vector is a vector", jacobian=torch.positive)
@lie("the factor is one half", factor=0.5)
@lie("the largest slope is 0.3", largest=0.3)
def the_slope_of_the_sigmoid_is_the_product_of_both_answers(
    draw, middle=squared_sech, jacobian=torch.diag, factor=0.25, largest=0.25
):
    """Three forms by sympy and in numbers, autograd's slope and Jacobian, and the largest slope at 0."""
    z, x, sigmoid = grid(-10.0, 10.0), draw.normal(7), activation("sigmoid")
    slope = sigmoid.derivative(z)
    return all_of(
        close(slope, factor * middle(z / 2), ulps=256),
        close(slope, sigmoid(z) * (1 - sigmoid(z)), within=1e-15),
        close(slope, autograd_slope(sigmoid, z)),
        close(jacobian(sigmoid.derivative(x)), torch.autograd.functional.jacobian(sigmoid, x)),
        at_most(slope, largest, attained=True),
        symbolic(slope_of(SIGMA), SIGMA * (1 - SIGMA)),
        symbolic(slope_of(SIGMA), (1 - TANH_OF_HALF**2) / 4),
    )


@claim("activation.sigmoid_second_derivative")
@lie("the last factor is 2σ - 1", sign=-1.0)
@lie("the last factor is 1 - σ", twice=1.0)
def the_second_derivative_of_the_sigmoid(draw, sign=1.0, twice=2.0):
    """The formula in the values of the sigmoid against autograd, of the slope and twice of the value, and sympy."""
    z, sigmoid = grid(-10.0, 10.0), activation("sigmoid")
    s = sigmoid(z)
    formula = sign * s * (1 - s) * (1 - twice * s)
    return all_of(
        close(formula, autograd_slope(sigmoid.derivative, z), within=1e-15),
        close(formula, autograd_slope(lambda t: autograd_slope(sigmoid, t), z), within=1e-10),
        symbolic(slope_of(slope_of(SIGMA)), SIGMA * (1 - SIGMA) * (1 - 2 * SIGMA)),
    )


@claim("activation.tanh_sigmoid")
@lie("tanh(z) = 2σ(z) - 1", inner=1.0)
@lie("tanh(z) = σ(2z) - 1", outer=1.0)
@lie("tanh(z) = 2σ(2z)", shift=0.0)
def tanh_is_a_rescaled_sigmoid(draw, inner=2.0, outer=2.0, shift=1.0):
    """The shipped sigmoid against torch's tanh and the quotient of exponentials; the way back; and by sympy."""
    z, sigmoid = grid(-20.0, 20.0), activation("sigmoid")
    quotient = (torch.exp(z) - torch.exp(-z)) / (torch.exp(z) + torch.exp(-z))
    rescaled = outer * sigmoid(inner * z) - shift
    lines = [Line(z, torch.tanh(z), label="tanh"), Line(z, rescaled, label="rescaled sigmoid")]
    figure = Figure("The rescaled sigmoid against tanh", "z", "value", lines)
    return all_of(
        close(rescaled, torch.tanh(z), within=1e-14).showing(figure),
        close(rescaled, quotient, within=1e-14),
        close(sigmoid(z), (torch.tanh(z / inner) + shift) / outer, within=1e-14),
        symbolic(2 * SIGMA.subs(E, E**2) - 1, TANH),
    )


@claim("activation.tanh_derivative")
@lie("the slope is 1 - z²", printed="000/1", inner=torch.positive)
@lie("the slope is 1 - tanh(z)", power=1)
def the_slope_of_tanh_is_one_minus_its_square(draw, inner=torch.tanh, power=2):
    """The shipped slope against the formula in the value, against autograd, and by sympy."""
    z, tanh = grid(-5.0, 5.0), activation("tanh")
    return all_of(
        close(tanh.derivative(z), 1 - inner(z) ** power, within=1e-14),
        close(tanh.derivative(z), autograd_slope(torch.tanh, z), within=1e-12),
        symbolic(slope_of(TANH), 1 - TANH**2),
    )


@claim("activation.relu_abs")
@lie("ReLU(z) = (|z| - z)/2", sign=-1.0)
@lie("|z| = ReLU(z) - ReLU(-z)", other=-1.0)
def relu_and_the_absolute_value_give_each_other(draw, sign=1.0, other=1.0):
    """Exact in floating point, from the smallest subnormal to the largest number, zero and both signs included."""
    sizes = torch.tensor([0.0, 5e-324, 1e-300, 0.1, 1.0, 3.7, 1e300, 1.7e308], dtype=torch.float64)
    z, relu = torch.cat([-sizes, sizes, draw.normal(100)]), activation("relu")
    even = z[z.abs() != 5e-324]  # half of the smallest number is not a number of its own
    return all_of(
        exactly(relu(even), even.abs() / 2 + sign * even / 2),
        exactly(z.abs(), relu(z) + other * relu(-z)),
        exactly(relu(z) - relu(-z), z),
    )


@claim("activation.relu_derivative")
@lie("torch takes the slope 1 at 0", at_zero=1.0)
@lie("the slopes on the two sides of 0 agree", left=1.0)
@lie("the subdifferential at 0 ends at one half", highest=0.5)
def relu_has_a_slope_everywhere_but_at_zero(draw, at_zero=0.0, left=0.0, highest=1.0):
    """Finite differences away from 0, both one-sided slopes and all supporting lines at 0, and torch's choice, 0."""
    z = draw.uniform(1000, low=1e-3, high=4.0) * draw.signs(1000)
    step, relu = 2.0**-11, activation("relu")  # a step smaller than any |z|
    differences = (relu(z + step) - relu(z - step)) / (2 * step)
    zero = torch.zeros(1, dtype=torch.float64)
    right_slope, left_slope = (relu(zero + step) - relu(zero)) / step, (relu(zero) - relu(zero - step)) / step
    return all_of(
        close(relu.derivative(z), differences, within=1e-9),
        exactly(relu.derivative(z), (z > 0).double()),
        exactly((float(left_slope), float(right_slope)), (left, 1.0)),
        # A slope "at 0" that were THE derivative would be the limit from both sides; the framework's choice is 0.
        exactly(autograd_slope(relu, zero), torch.full_like(zero, at_zero)),
        exactly(relu.derivative(zero), autograd_slope(relu, zero)),
        # A line through the corner that is nowhere above the function: its slope is a subgradient.
        exactly([bool((relu(z) >= g * z).all()) for g in (-1e-9, 0, highest, highest + 1e-9)], [0, 1, 1, 0]),
    )


def below(z):
    """P(Z <= z) by adding up the density, which is independent of the error function."""
    x = torch.linspace(-12.0, 12.0, 4801, dtype=torch.float64)
    density = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    total = torch.cumulative_trapezoid(density, x)
    return torch.cat([torch.zeros(1, dtype=torch.float64), total])[torch.searchsorted(x, z - 1e-9)]


def above(z):
    """P(z <= Z)."""
    return 1 - below(z)


@claim("activation.gelu")
@lie("the factor is P(z ≤ Z)", printed="001/1", probability=above)
@lie("the slope is Φ alone", slope=0.0)
@lie("the cubic coefficient of the approximation is 0.0044715", cubic=0.0044715)
def gelu_is_the_input_times_the_normal_distribution_function(draw, probability=below, slope=1.0, cubic=0.044715):
    """A sum over the density, the approximation, and the slopes by sympy and autograd."""
    z, gelu, gelu_tanh = grid(-8.0, 8.0, 161), activation("gelu"), activation("gelu_tanh")
    cdf = (1 + sympy.erf(Z / sympy.sqrt(2))) / 2
    density = sympy.exp(-Z * Z / 2) / sympy.sqrt(2 * sympy.pi)
    inner = math.sqrt(2 / math.pi) * (z + cubic * z**3)
    normal = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return all_of(
        close(gelu(z), z * probability(z), within=1e-5),  # of the sum: step²/12 · largest slope · z
        close(gelu(z), z * (1 + torch.erf(z / math.sqrt(2))) / 2, within=1e-14),
        close(gelu_tanh(z), z / 2 * (1 + torch.tanh(inner)), within=1e-12),
        close(gelu_tanh(z), gelu(z), within=1e-3),
        close(gelu.derivative(z), (1 + torch.erf(z / math.sqrt(2))) / 2 + slope * z * normal, within=1e-12),
        close(gelu.derivative(z), autograd_slope(gelu, z), within=1e-12),
        symbolic(sympy.diff(Z * cdf, Z), cdf + Z * density),
    )
