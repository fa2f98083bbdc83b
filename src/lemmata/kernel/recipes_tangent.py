"""What `lemmata train kernel_regression` and `lemmata train linearized_network` do: classes without a gradient."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.recipes_regression import AllAtOnce
from lemmata.figure import Figure
from lemmata.kernel.tangent_classifiers import InfiniteWidthClassifier, LinearizedClassifier
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options
from lemmata.train.pictures import labelled_pictures

__all__ = ["InfiniteWidthConfig", "LinearizedConfig", "classify_at_infinite_width", "classify_by_the_tangent"]

ONCE = Options(epochs=1, batch_size=65_536, precision="float64", device="cpu")  # all examples in one step
LOGISTIC_RIDGE = {"digits": 1e-4, "fashion": 1e-3}


@dataclass(frozen=True)
class InfiniteWidthConfig:
    """What can be chosen of a network of infinite width."""

    depth: int = 3
    """Linear layers, one above another."""
    bias_variance: float = 0.1
    """Variance of the biases, beside 2 for the weights."""
    ridge: float = 1e-3
    """Weight of the norm, in mean diagonal entries of the kernel."""
    examples: int = 2000
    """Training pictures; time grows with their cube."""

    def __post_init__(self) -> None:
        validate.count("examples", self.examples, most=10_000)
        InfiniteWidthClassifier(2, self.depth, self.bias_variance, self.ridge)


@recipe("kernel_regression", data="digits fashion", metric="accuracy")
def classify_at_infinite_width(
    data: str = "digits",
    config: InfiniteWidthConfig = InfiniteWidthConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Pictures by the infinitely wide network of relu, in closed form."""
    found = load(data)
    train, test = _flatten_inputs(found.train[: config.examples]), _flatten_inputs(found.test[:2000])
    arguments = {
        "classes": len(found.classes), "depth": config.depth, "bias_variance": config.bias_variance,
        "ridge": config.ridge,
    }  # fmt: skip
    lost = {
        "logistic regression": _logistic_accuracy(train, test, LOGISTIC_RIDGE[data]),
        "three nearest neighbours": _neighbour_accuracy(train, test),
    }
    return _make_experiment(InfiniteWidthClassifier(**arguments), arguments, train, test, options, found.classes, lost)


@dataclass(frozen=True)
class LinearizedConfig:
    """What can be chosen of a linearised perceptron."""

    width: int = 256
    """Hidden units."""
    ridge: float = 1.0
    """Weight of the squared change of the parameters."""
    examples: int = 250
    """Training pictures; time grows with the cube of ten times as many."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.number("ridge", self.ridge, least=0)
        validate.count("examples", self.examples, most=1000)


@recipe("linearized_network", data="digits", metric="accuracy")
def classify_by_the_tangent(
    data: str = "digits",
    config: LinearizedConfig = LinearizedConfig(),  # noqa: B008 - frozen
    options: Options = ONCE,
) -> Experiment:
    """Digits by the tangent of a network at its first weights, beside the same network when it is trained."""
    found = load(data)
    train, test = _flatten_inputs(found.train[: config.examples]), _flatten_inputs(found.test)
    arguments = {
        "inputs": train.x.shape[1], "classes": len(found.classes), "widths": (config.width,), "ridge": config.ridge,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        system = LinearizedClassifier(**arguments)
        trained = _trained_accuracy(MLP(arguments["inputs"], arguments["classes"], arguments["widths"]), train, test)
    lost = {
        "logistic regression": _logistic_accuracy(train, test, LOGISTIC_RIDGE[data]),
        "the network, trained": trained,
    }
    return _make_experiment(system, arguments, train, test, options, found.classes, lost)


def _make_experiment(
    system: Any,
    arguments: dict[str, Any],
    train: Examples,
    test: Examples,
    options: Options,
    classes: Sequence[str],
    lost: dict[str, float],
) -> Experiment:
    side = round(test.x.shape[1] ** 0.5)

    def measure(system: Any, examples: Examples) -> dict[str, float]:
        right = (system.predict(examples.x) == examples.y).double().mean().item()
        return {"accuracy": right, "loss": 1 - right}

    def picture(system: Any) -> Figure:
        shown = test[:15]
        pixels = shown.x.view(-1, side, side).float()
        return labelled_pictures(pixels, system.predict(shown.x.double()), shown.y, classes, "Test pictures")

    def predict(system: Any, examples: Examples) -> dict[str, Tensor]:
        scores = system.decision_function(examples.x.flatten(1).double())
        return {"class": scores.argmax(1), "score": scores.amax(1)}

    class Fitted(AllAtOnce):
        """Which gives its classes itself."""

        def __init__(self) -> None:
            super().__init__(system, measure, classes=len(classes))
            self.system = _WithoutClasses(system)

    return Experiment(
        system, arguments, train, test, options, learner=Fitted(), metric="accuracy", largest=True,
        classes=tuple(classes), picture=picture, predict=predict,
        notes={"baselines": lost, "how": "accuracy on the same test pictures, from the same training pictures"},
    )  # fmt: skip


class _WithoutClasses:
    """A system that knows how many classes there are."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def fit(self, x: Tensor, y: Tensor, classes: int) -> None:
        del classes
        self.system.fit(x, y)

    def predict(self, x: Tensor) -> Tensor:
        return self.system.predict(x)


def _flatten_inputs(examples: Examples) -> Examples:
    return Examples(x=examples.x.flatten(1), y=examples.y)


def _fraction_right(found: Tensor, test: Examples) -> float:
    return (found == test.y).double().mean().item()


def _logistic_accuracy(train: Examples, test: Examples, ridge: float) -> float:
    """By quasi-Newton steps: Newton's own would need a matrix with a row for each weight of 784 pixels."""
    layer = torch.nn.Linear(train.x.shape[1], int(train.y.max()) + 1)
    torch.nn.init.zeros_(layer.weight)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(layer(train.x), train.y) + ridge * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[arg-type]
    with torch.no_grad():
        return _fraction_right(layer(test.x).argmax(1), test)


def _neighbour_accuracy(train: Examples, test: Examples) -> float:
    nearest = torch.cdist(test.x, train.x).topk(3, largest=False).indices
    return _fraction_right(train.y[nearest].mode(1).values, test)


def _trained_accuracy(network: MLP, train: Examples, test: Examples) -> float:
    """The same network, all examples in each of 300 steps."""
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(train.x), train.y).backward()
        optimizer.step()
    with torch.no_grad():
        return _fraction_right(network(test.x).argmax(1), test)
