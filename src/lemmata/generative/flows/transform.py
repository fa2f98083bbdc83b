"""What the layers of a flow have in common: a way there, a way back, and the log-determinant of each."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate

__all__ = ["Transform"]


class Transform(nn.Module, ABC):
    r"""An invertible map of examples, with the logarithm of the volume by which it stretches each of them.

    $$ x = f(z), \qquad \log\Big|\det\frac{\partial f}{\partial z}\Big| $$

    `forward` goes from noise to data, `inverse` from data to noise, each with the log-determinant of its own direction,
    one number per example. At the same point one is the negative of the other.

    Shapes:
        z: (batch, features)    returns: x (batch, features), log_det (batch,)

    Claims: flow.change_of_variables, flow.log_density
    """

    features: int

    @abstractmethod
    def forward(self, z: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        """Towards data: x, and its log-determinant for each example."""

    @abstractmethod
    def inverse(self, x: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        """Towards noise: z, and the log-determinant of this direction."""

    def checked(self, name: str, value: Tensor) -> Tensor:
        """Examples (batch, features), or a sentence that says what is wrong with them."""
        validate.inputs(name, value, self.features)
        if value.ndim != 2:
            raise ValueError(f"{name} must be (batch, {self.features}), got shape {tuple(value.shape)}")
        return value
