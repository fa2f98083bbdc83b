"""Gradient projection: updates stay out of the directions in which old activations lie."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.continual.activation_subspace import activation_basis, project_away
from lemmata.continual.rehearsal import draw_rows
from lemmata.continual.strategy import Strategy
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.train.evaluation_mode import evaluating

__all__ = ["GradientProjection", "GradientProjectionConfig"]

ROWS = 4096  # activations of a layer that a basis is made of: patches of a convolution are many


@dataclass(frozen=True)
class GradientProjectionConfig:
    """What can be chosen of gradient projection."""

    energy: float = 0.95
    """Part of the squared length of each layer's activations that is protected."""
    size: int = 500
    """Examples of a task from which the directions are taken."""

    def __post_init__(self) -> None:
        validate.number("energy", self.energy, least=0, most=1)
        validate.count("size", self.size)


@system("gradient_projection", title="Gradient projection", kind="strategy")
class GradientProjection(Strategy):
    r"""Each layer's weights change only where no old activation notices it.

    $$ \Delta W \leftarrow \Delta W (I - U U^\top), \qquad U \text{ spans the inputs of the layer in earlier tasks} $$

    It is the *step* that is projected, whatever optimiser made it: projected gradients leave the null space again with
    Adam, with momentum and with weight decay. Biases and all other parameters stay as they were after the first task,
    and layers that mix the examples of a batch are refused. With `energy` 1 old outputs do not change at all.

    Claims: continual.projection_nullspace, continual.projection_assumptions
    Source: Saha, Garg and Roy, Gradient projection memory for continual learning (2021); Farajtabar et al., Orthogonal
        gradient descent (2020).

    >>> GradientProjection(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), energy=0.99).ranks
    {'0': 0, '2': 0}
    """

    def __init__(
        self,
        model: nn.Module,
        energy: float = GradientProjectionConfig.energy,
        size: int = GradientProjectionConfig.size,
    ) -> None:
        super().__init__(model)
        self.config = config_of(GradientProjectionConfig, locals())
        for name, part in model.named_modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                raise ValueError(
                    f"model must not mix examples, {name or 'model'} is a {type(part).__name__}: use GroupNorm"
                )
        self.layers = {name: part for name, part in model.named_modules() if isinstance(part, nn.Linear | nn.Conv2d)}
        if not self.layers:
            raise ValueError("model must have linear or convolutional layers, got none")
        for name, part in self.layers.items():
            if isinstance(part, nn.Conv2d) and (part.groups > 1 or isinstance(part.padding, str)):
                raise ValueError(f"{name} must be a convolution without groups and with padding as a number")
        self.bases: dict[str, Tensor] = {}

    @property
    def ranks(self) -> dict[str, int]:
        """How many directions of each layer are taken."""
        return {name: self.bases[name].shape[1] if self.bases else 0 for name in self.layers}

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        if not self.bases:
            yield
            return
        before = [part.detach().clone() for part in self.model.parameters()]
        yield
        weights = {id(layer.weight): self.bases[name] for name, layer in self.layers.items()}
        with torch.no_grad():
            for part, was in zip(self.model.parameters(), before, strict=True):
                basis = weights.get(id(part))
                if basis is None:
                    part.copy_(was)
                else:
                    change = project_away((part - was).flatten(1), basis)  # (outputs, inputs)
                    part.copy_(was + change.reshape(part.shape))

    def after_task(self, data: Examples) -> None:
        for name, inputs in self.activations(draw_rows(data, self.config.size).x).items():
            self.bases[name] = activation_basis(inputs, self.config.energy, self.bases.get(name))

    def activations(self, x: Tensor) -> dict[str, Tensor]:
        """The inputs of every layer, (n, features); of a convolution its patches."""
        found: dict[str, Tensor] = {}
        handles = []
        for name, layer in self.layers.items():

            def record(part: Any, inputs: Any, output: Any, name: str = name) -> None:
                rows = _input_rows(part, inputs[0].detach())
                found[name] = torch.cat([found[name], rows]) if name in found else rows

            handles.append(layer.register_forward_hook(record))
        try:
            with evaluating(self.model):
                self.model(x)
        finally:
            for handle in handles:
                handle.remove()
        return {name: _thinned_rows(rows) for name, rows in found.items()}

    def state(self) -> dict[str, Any]:
        return {"bases": dict(self.bases)}

    def restore(self, state: Mapping[str, Any]) -> None:
        home = next(self.model.parameters())
        self.bases = {name: basis.to(home) for name, basis in state["bases"].items()}


def _thinned_rows(rows: Tensor) -> Tensor:
    """At most ROWS of them, evenly spread."""
    return rows[torch.linspace(0, len(rows) - 1, min(len(rows), ROWS), device=rows.device).long()]


def _input_rows(layer: Any, x: Tensor) -> Tensor:
    if isinstance(layer, nn.Conv2d):
        x = functional.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride).mT  # type: ignore[arg-type]
    return x.flatten(0, -2)
