r"""Distillation: a student learns the tempered probabilities of its teacher."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.data.columns import inputs_and_target
from lemmata.data.examples import Examples
from lemmata.marks import system
from lemmata.train.evaluation_mode import evaluating
from lemmata.train.loop import fit
from lemmata.train.run import Run

__all__ = ["DistillationLoss", "TransferSet", "distill", "distillation_loss", "transfer_set"]


@system("distillation_loss", title="Tempered cross-entropy of a student", kind="function")
def distillation_loss(
    student: Float[Tensor, "*batch classes"],
    teacher: Float[Tensor, "*batch classes"],
    temperature: int | float = 1.0,
    reduction: str = "mean",
) -> Float[Tensor, "..."]:
    r"""The cross-entropy of the student's tempered probabilities under the teacher's, from the logits of both.

    $$ \ell = -\sum_y p_y \log q_y, \qquad p = \mathrm{softmax}(F/T), \quad q = \mathrm{softmax}(G/T), \qquad
       \frac{\partial\ell}{\partial G_y} = \frac1T (q_y - p_y) $$

    It is least, and equal to the entropy of $p$, where $G = F$ up to a constant for each example. A high temperature
    $T$ shows what the teacher holds of the wrong classes; as $T \to \infty$ the gradient is that of least squares on
    centred logits, divided by $KT^2$.

    Shapes:
        student, teacher: (..., classes)    returns: scalar, or (...) with `reduction="none"`

    Claims: distill, distill.gradient, distill.high_temperature
    Source: G. Hinton, O. Vinyals and J. Dean, Distilling the knowledge in a neural network (2015).

    >>> teacher = torch.tensor([[4.0, 2.0, 0.0]])
    >>> [round(distillation_loss(teacher + 1, teacher, T).item(), 3) for T in (1, 2, 100)]  # entropies
    [0.441, 0.832, 1.098]
    """
    validate.positive("temperature", temperature)
    validate.one_of("reduction", reduction, ("mean", "sum", "none"))
    if student.shape != teacher.shape:
        raise ValueError(f"teacher must have the shape of student, {tuple(student.shape)}, got {tuple(teacher.shape)}")
    p = functional.softmax(teacher / temperature, -1)  # (..., classes)
    log_q = functional.log_softmax(student / temperature, -1).masked_fill(p == 0, 0.0)  # 0 log 0 is 0
    losses = -(p * log_q).sum(-1)  # (...)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


class DistillationLoss(nn.Module):
    r"""A mixture of the teacher's opinion and of the labels, for any training loop.

    $$ (1-\alpha)\,T^2 \ell(G, F) + \alpha\,\ell_{\mathrm{CE}}(G, y) $$

    The gradient of the first part falls like $1/T^2$; the factor $T^2$ keeps its weight as the temperature is changed.

    Shapes:
        student, teacher: (..., classes); y: (...) of class numbers, needed for `hard` > 0    returns: scalar

    Source: Hinton, Vinyals and Dean (2015), section 2.

    >>> loss = DistillationLoss(temperature=4.0, hard=0.1)
    >>> loss(torch.zeros(2, 3), torch.eye(3)[:2], torch.tensor([0, 1])).item() < loss(
    ...     torch.eye(3)[1:], torch.eye(3)[:2], torch.tensor([0, 1])).item()
    True
    """

    def __init__(self, temperature: int | float = 4.0, hard: int | float = 0.0) -> None:
        super().__init__()
        self.temperature = validate.positive("temperature", temperature)
        self.hard = validate.fraction("hard", hard, most=1.0)

    def forward(
        self,
        student: Float[Tensor, "*batch classes"],
        teacher: Float[Tensor, "*batch classes"],
        y: Int[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, ""]:
        soft = self.temperature**2 * distillation_loss(student, teacher, self.temperature)
        if not self.hard:
            return soft
        if y is None:
            raise ValueError(f"hard = {self.hard:g} needs the labels y")
        if y.shape != student.shape[:-1]:
            raise ValueError(f"y must have the shape {tuple(student.shape[:-1])}, a class each, got {tuple(y.shape)}")
        # torch would take the second of several axes for the classes
        rows = student.reshape(-1, student.shape[-1])
        return (1 - self.hard) * soft + self.hard * functional.cross_entropy(rows, y.flatten())

    def extra_repr(self) -> str:
        return f"temperature={self.temperature}, hard={self.hard}"


class TransferSet(NamedTuple):
    """Inputs and what a teacher says of them: all that a student is given in place of labels.

    Shapes:
        x: (size, ...), logits: (size, classes)
    """

    x: Tensor
    logits: Tensor


@system("transfer_set", title="Inputs labelled by a teacher", kind="function")
def transfer_set(
    teacher: nn.Module,
    x: Float[Tensor, "examples ..."],
    size: int | None = None,
    noise: int | float = 0.0,
    generator: torch.Generator | None = None,
    batch_size: int = 1024,
) -> TransferSet:
    r"""Label inputs by a teacher, once and for all; with a `size`, so many inputs that are generated from those given.

    $$ \tilde x = x_I + \mathrm{noise} \cdot s \odot \varepsilon, \qquad I \sim \mathrm{Unif}\{1, \dots, n\}, \quad
       \varepsilon \sim \mathcal N(0, \mathbf 1), \qquad \text{labels } F(\tilde x) $$

    Each generated input is a given one, drawn with replacement, plus noise of so many standard deviations $s$ of every
    feature over the given inputs: draws from a smoothed estimate of their distribution. True labels are not needed, of
    any. The teacher is asked in evaluation mode and stays as it is.

    Shapes:
        x: (examples, ...)    returns: x (size, ...), logits (size, classes)

    Claims: distill.transfer_set
    Source: C. Bucila, R. Caruana and A. Niculescu-Mizil, Model compression (2006).
    Differs: they exchange features between neighbours; noise of a given size needs no distances.

    >>> found = transfer_set(nn.Linear(2, 3), torch.randn(50, 2), size=1000, noise=0.1)
    >>> found.x.shape, found.logits.shape
    (torch.Size([1000, 2]), torch.Size([1000, 3]))
    """
    validate.number("noise", noise, least=0)
    validate.count("batch_size", batch_size)
    if validate.floating("x", x).ndim < 2:
        raise ValueError(f"x must be (examples, ...), got shape {tuple(x.shape)}")
    if size is None:
        if noise:
            raise ValueError(f"noise = {noise:g} needs a size, the number of inputs to be generated")
    else:
        validate.count("size", size)
        spread = x.std(0, correction=0)  # (...) of an example; zero where a feature never changes
        chosen = torch.randint(len(x), (size,), generator=generator).to(x.device)
        drawn = torch.randn((size, *x.shape[1:]), generator=generator, dtype=x.dtype).to(x.device)
        x = x[chosen] + noise * spread * drawn  # (size, ...)
    with evaluating(teacher):
        return TransferSet(x, torch.cat([_teacher_logits(teacher, part) for part in x.split(batch_size)]))


@system("distill", title="Distillation", kind="function")
def distill(
    teacher: nn.Module,
    student: nn.Module,
    data: Any,
    temperature: int | float = 4.0,
    hard: int | float = 0.0,
    **options: Any,
) -> Run:
    r"""Train a student to give the probabilities of its teacher, on examples whose labels need not be known.

    `data`, `validation` and all other options are those of `lemmata.fit`: `(x, y)`, or `x` alone where `hard` is 0.
    The teacher is asked in evaluation mode, batch by batch, so that it sees what the student sees; it stays as it is.
    Where `data` is a `TransferSet`, the teacher has answered before: `distill(teacher, student, transfer_set(...))`.
    The score `agreement` is the fraction of examples on which both prefer the same class.

    Claims: distill, distill.transfer_set
    Source: Hinton, Vinyals and Dean (2015); C. Bucila, R. Caruana and A. Niculescu-Mizil, Model compression (2006).

    >>> teacher, student, x = nn.Linear(2, 3), nn.Linear(2, 3), torch.randn(200, 2)
    >>> run = distill(teacher, student, x, epochs=60, lr=0.1, device="cpu", progress=False)
    >>> run.scores["agreement"] > 0.95
    True
    """
    objective = DistillationLoss(temperature, hard)

    def answers(batch: Examples) -> tuple[Tensor, Tensor, Tensor | None]:
        if ANSWERS in batch.columns:
            return batch.x, batch.columns[ANSWERS], None
        inputs, y = inputs_and_target(batch)
        if len(inputs) > 1:
            raise ValueError(f"data must have one input x beside the target y, got {' and '.join(inputs)}")
        x = next(iter(inputs.values()))
        with evaluating(teacher):
            return x, _teacher_logits(teacher, x), y

    def loss(model: nn.Module, batch: Examples) -> dict[str, Tensor]:
        x, wanted, y = answers(batch)
        found = model(x)
        if wanted.shape != found.shape:
            told = f"{tuple(wanted.shape)} and {tuple(found.shape)}"
            raise ValueError(f"teacher and student must return logits of the same classes, got shapes {told}")
        # Looking at them elsewhere would make every step wait.
        if wanted.device.type == "cpu" and bool(wanted.isnan().any()):
            raise ValueError("the teacher's logits must not be NaN: train it again with a lower lr")
        same = (found.argmax(-1) == wanted.argmax(-1)).double().mean()
        return {"loss": objective(found, wanted, y), "agreement": same.detach()}

    if isinstance(data, TransferSet):
        if hard:
            raise ValueError(f"hard = {hard:g} needs the labels y, which a transfer set does not have")
        data = {"x": data.x, ANSWERS: data.logits}
    return fit(student, data, loss=loss, **options)


ANSWERS = "logits of the teacher"  # the column of a transfer set


def _teacher_logits(teacher: nn.Module, x: Tensor) -> Tensor:
    """What a teacher answers: it comes to where the student learns, and is asked in its own numbers."""
    weight = next((values for values in teacher.parameters() if values.is_floating_point()), None)
    if weight is not None and weight.device != x.device:
        teacher.to(x.device)
    other = weight is not None and weight.dtype != x.dtype and x.is_floating_point()
    found = teacher(x.to(weight.dtype) if weight is not None and other else x)
    if not isinstance(found, Tensor):
        raise TypeError(f"teacher must return logits, a tensor, got {type(found).__name__}")
    return found.to(x.dtype) if other else found
