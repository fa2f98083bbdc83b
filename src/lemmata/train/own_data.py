"""Learning from a user's own file: the loss, the metrics, what always saying the same would get, and predictions."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.data.examples import Dataset
from lemmata.data.preparation import Preparation
from lemmata.figure import Figure
from lemmata.train.experiment import Experiment
from lemmata.train.forms import Classification, Form, Regression, mean_absolute_error
from lemmata.train.options import Options

__all__ = ["baselines", "sizes", "supervised"]


def sizes(data: Dataset) -> dict[str, int]:
    """Inputs and outputs of a network for a data set: one output for each class, or one for a number."""
    return {"inputs": data.train.x[0].numel(), "outputs": len(data.classes) or 1}


def supervised(
    system: nn.Module | type[nn.Module],
    arguments: Mapping[str, Any],
    data: Dataset,
    options: Options,
    view: Callable[[Tensor], Tensor] = lambda x: x,
    picture: Callable[[Any], Figure] | None = None,
) -> Experiment:
    """Classes by cross-entropy, numbers by squared error; `view` is how the system is shown an example."""
    preparation: Preparation = data.extra["preparation"]
    notes = {"baselines": baselines(data), "sha256": data.extra.get("digest", "")}
    more: dict[str, Any] = {"classes": data.classes, "picture": picture, "preparation": preparation, "notes": notes}
    if data.classes:
        form: Form = Classification(lambda system, batch: system(view(batch.x)))
    else:
        target = preparation.target
        form = Regression(
            lambda system, batch: system(view(batch.x))[:, 0],
            scores={"mae": lambda output, y: mean_absolute_error(output, y) * target.scale},  # in its own numbers
            name=target.name, value=preparation.value,
        )  # fmt: skip
    return form.experiment(system, arguments, data.train, data.test, options, **more)


def baselines(data: Dataset) -> dict[str, float]:
    """What one gets on the test examples by always saying the commonest class, or the mean, of the training ones."""
    if data.classes:
        commonest = torch.bincount(data.train.y).argmax()
        return {f"always {data.classes[commonest]}": float((data.test.y == commonest).double().mean())}
    scale = data.extra["preparation"].target.scale
    return {"always the mean": float((data.test.y - data.train.y.mean()).abs().mean()) * scale}
