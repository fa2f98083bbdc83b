r"""What two variables tell about each other: mutual information and conditional entropy of their joint distribution."""

from jaxtyping import Float
from torch import Tensor

from lemmata.foundations.information.discrete import entropy, kl_divergence
from lemmata.foundations.probability import parameters
from lemmata.marks import system

__all__ = ["conditional_entropy", "mutual_information"]


@system("mutual_information", title="Mutual information", kind="function")
def mutual_information(joint: Float[Tensor, "*batch x y"]) -> Float[Tensor, "*batch"]:
    r"""How much one variable tells about the other, from their joint table: 0 iff they are independent.

    $$ I(X;Y) = D_{KL}(p_{XY} \,\|\, p_X p_Y) = H(X) - H(X \mid Y) $$

    Shapes:
        joint: (..., values of x, values of y)    returns: (...)

    Claims: information.mutual_information, probability.uncorrelated

    >>> mutual_information(torch.tensor([[[0.5, 0.0], [0.0, 0.5]], [[0.25, 0.25], [0.25, 0.25]]]))
    tensor([0.6931, 0.0000])
    """
    joint = parameters.masses("joint", joint, (-2, -1))
    product = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    return kl_divergence(joint.flatten(-2), product.flatten(-2))


@system("conditional_entropy", title="Conditional entropy", kind="function")
def conditional_entropy(joint: Float[Tensor, "*batch x y"]) -> Float[Tensor, "*batch"]:
    r"""The entropy of $X$ that is left when $Y$ is known, from the table of their joint distribution.

    $$ H(X \mid Y) = \sum_y p(y)\,H(X \mid Y=y) = H(X, Y) - H(Y) $$

    Shapes:
        joint: (..., values of x, values of y)    returns: (...)

    Claims: information.mutual_information

    >>> conditional_entropy(torch.tensor([[0.5, 0.0], [0.25, 0.25]]))
    tensor(0.4774)
    """
    joint = parameters.masses("joint", joint, (-2, -1))
    return entropy(joint.flatten(-2)) - entropy(joint.sum(-2))
