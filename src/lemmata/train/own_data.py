"""Learning from a user's own file: the loss, the metrics, what always saying the same would get, and predictions."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.examples import Dataset, Examples
from lemmata.data.preparation import Preparation
from lemmata.figure import Figure
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options

__all__ = ["baselines", "sizes", "supervised"]


def sizes(data: Dataset) -> dict[str, int]:
    """Inputs and outputs of a network for a data set: one output for each class, or one for a number."""
    return {"inputs": data.train.x[0].numel(), "outputs": len(data.classes) or 1}


def supervised(
    system: nn.Module,
    arguments: Mapping[str, Any],
    data: Dataset,
    options: Options,
    view: Callable[[Tensor], Tensor] = lambda x: x,
    picture: Callable[[Any], Figure] | None = None,
) -> Experiment:
    """Classes by cross-entropy, numbers by squared error; `view` is how the system is shown an example."""
    preparation: Preparation = data.extra["preparation"]
    classes = bool(data.classes)

    def loss(system: nn.Module, batch: Examples) -> dict[str, Tensor]:
        output = system(view(batch.x))
        if classes:
            right = (output.argmax(1) == batch.y).to(output.dtype).mean()
            return {"loss": functional.cross_entropy(output, batch.y), "accuracy": right}
        error = (output[:, 0] - batch.y).abs().mean() * preparation.target.scale  # in the target's own numbers
        return {"loss": functional.mse_loss(output[:, 0], batch.y), "mae": error}

    def predict(system: nn.Module, examples: Examples) -> dict[str, Tensor]:
        output = system(view(examples.x))
        if classes:
            probability = output.softmax(1)
            return {"class": probability.argmax(1), "probability": probability.amax(1)}
        return {preparation.target.name: preparation.value(output[:, 0])}

    return Experiment(
        system, arguments, data.train, data.test, options, loss=loss, metric="accuracy" if classes else "mae",
        largest=classes, classes=data.classes, picture=picture, predict=predict, preparation=preparation,
        notes={"baselines": baselines(data), "sha256": data.extra.get("digest", "")},
    )  # fmt: skip


def baselines(data: Dataset) -> dict[str, float]:
    """What one gets on the test examples by always saying the commonest class, or the mean, of the training ones."""
    if data.classes:
        commonest = torch.bincount(data.train.y).argmax()
        return {f"always {data.classes[commonest]}": float((data.test.y == commonest).double().mean())}
    scale = data.extra["preparation"].target.scale
    return {"always the mean": float((data.test.y - data.train.y.mean()).abs().mean()) * scale}
