r"""A classifier that keeps one learned example of each class, and answers with the class of the nearest."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["NearestPrototype"]  # what users import; a name other than the file's


@system(
    "nearest_prototype",
    title="Nearest prototype",
    kind="module",
    example="NearestPrototype(inputs=2, classes=3)(torch.randn(5, 2))",
)
class NearestPrototype(nn.Module):
    r"""The logit of class c is how near its prototype is: $\ell_c(x)=-\|x-p_c\|^2$.

    Shapes:
        x: (batch, inputs)    returns: logits (batch, classes)

    Claims: nearest_prototype.boundary
    Source: Kohonen 1986 (learning vector quantisation).  Differs: prototypes learn by gradients of any loss.

    >>> classifier = NearestPrototype(inputs=2, classes=3)
    >>> classifier(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        inputs: int,
        classes: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = validate.count("classes", classes, least=2), validate.count("inputs", inputs)
        self.prototypes = nn.Parameter(torch.randn(sizes, device=device, dtype=dtype) / sizes[1] ** 0.5)

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch classes"]:
        if validate.inputs("x", x, self.prototypes.shape[1]).ndim != 2:
            raise ValueError(f"x must be (batch, inputs), got shape {tuple(x.shape)}")
        # |x - p|^2 = |x|^2 - 2 x.p + |p|^2: one product instead of a difference for each pair
        products = x @ self.prototypes.mT  # (batch, classes)
        squares = x.square().sum(1, keepdim=True), self.prototypes.square().sum(1)  # (batch, 1), (classes,)
        return 2 * products - squares[0] - squares[1]  # (batch, classes)

    def predict(self, x: Float[Tensor, "batch inputs"]) -> Int[Tensor, "batch"]:
        """The class of the nearest prototype; |x|^2 is the same for all of them."""
        offset = self.prototypes.square().sum(1) / 2  # (classes,)
        return torch.addmm(-offset, x, self.prototypes.mT).argmax(1)
