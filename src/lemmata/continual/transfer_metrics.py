"""What a matrix of accuracies says of remembering and of transfer."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["average_accuracy", "backward_transfer", "forgetting", "forward_transfer", "gradient_cosine"]


@system("average_accuracy", title="Average accuracy after all tasks", kind="function")
def average_accuracy(accuracies: Float[Tensor, "moments tasks"]) -> float:
    r"""The mean accuracy over all tasks when the last of them is learnt.

    $$ \frac1T \sum_{j=1}^T R_{T,j} $$

    Shapes:
        accuracies: (tasks + 1, tasks), row i after i tasks, row 0 before the first

    Source: Lopez-Paz and Ranzato, Gradient episodic memory for continual learning (2017).

    >>> average_accuracy(torch.tensor([[0.1, 0.1], [0.9, 0.2], [0.5, 0.75]]))
    0.625
    """
    return _mean_number(_accuracy_matrix(accuracies)[-1])


@system("forgetting", title="Forgetting", kind="function")
def forgetting(accuracies: Float[Tensor, "moments tasks"]) -> float:
    r"""How much accuracy is lost since it was best, mean over all tasks but the last; 0 for a single task.

    $$ \frac1{T-1} \sum_{j<T} \Big(\max_{j \le i < T} R_{i,j} - R_{T,j}\Big) $$

    Shapes:
        accuracies: (tasks + 1, tasks)

    Source: Chaudhry et al., Riemannian walk for incremental learning (2018).

    >>> forgetting(torch.tensor([[0.1, 0.1], [0.75, 0.2], [0.5, 0.8]]))
    0.25
    """
    found = _accuracy_matrix(accuracies)
    best = [found[j + 1 : -1, j].amax() - found[-1, j] for j in range(found.shape[1] - 1)]
    return _mean_number(torch.stack(best)) if best else 0.0


@system("backward_transfer", title="Backward transfer", kind="function")
def backward_transfer(accuracies: Float[Tensor, "moments tasks"]) -> float:
    r"""What later tasks changed of earlier ones since these were learnt: negative where they are forgotten.

    $$ \frac1{T-1} \sum_{j<T} (R_{T,j} - R_{j,j}) $$

    Shapes:
        accuracies: (tasks + 1, tasks)

    Source: Lopez-Paz and Ranzato, Gradient episodic memory for continual learning (2017).

    >>> backward_transfer(torch.tensor([[0.1, 0.1], [0.75, 0.2], [0.5, 0.8]]))
    -0.25
    """
    found = _accuracy_matrix(accuracies)
    return _mean_number(found[-1, :-1] - found[1:, :].diagonal()[:-1]) if found.shape[1] > 1 else 0.0


@system("forward_transfer", title="Forward transfer", kind="function")
def forward_transfer(accuracies: Float[Tensor, "moments tasks"]) -> float:
    r"""What earlier tasks gave to those not learnt yet, against the model before the first.

    $$ \frac1{T-1} \sum_{j>1} (R_{j-1,j} - R_{0,j}) $$

    Shapes:
        accuracies: (tasks + 1, tasks)

    Source: Lopez-Paz and Ranzato, Gradient episodic memory for continual learning (2017).

    >>> forward_transfer(torch.tensor([[0.1, 0.25], [0.9, 0.5], [0.5, 0.8]]))
    0.25
    """
    found = _accuracy_matrix(accuracies)
    return _mean_number(found[1:, 1:].diagonal() - found[0, 1:]) if found.shape[1] > 1 else 0.0


@system("gradient_cosine", title="Cosine of two tasks' gradients", kind="function")
def gradient_cosine(first: Float[Tensor, " parameters"], second: Float[Tensor, " parameters"]) -> Tensor:
    r"""Whether a small step for one task helps the other (positive) or harms it (negative).

    $$ \cos(g_A, g_B) = \frac{g_A^\top g_B}{\|g_A\|\,\|g_B\|} $$

    Shapes:
        first, second: (parameters,)    returns: ()

    Claims: continual.transfer
    Source: Lopez-Paz and Ranzato, Gradient episodic memory for continual learning (2017).

    >>> gradient_cosine(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
    tensor(0.7071)
    """
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"gradients must be vectors of one length, got {tuple(first.shape)} and {tuple(second.shape)}")
    sizes = torch.linalg.vector_norm(first), torch.linalg.vector_norm(second)
    return torch.dot(first / sizes[0], second / sizes[1])


def _accuracy_matrix(accuracies: Tensor) -> Tensor:
    found = validate.tensor("accuracies", accuracies)
    if found.ndim != 2 or found.shape[0] != found.shape[1] + 1 or not found.shape[1]:
        raise ValueError(f"accuracies must be (tasks + 1, tasks), got {tuple(found.shape)}")
    return found.double()


def _mean_number(values: Tensor) -> float:
    return float(values.mean())
