"""Distillation: the loss in extremes, with labels, in any loop; teachers stay as they are; bad input."""

import copy
import re

import pytest
import torch
from torch import nn
from torch.nn import functional

import lemmata
from lemmata.feedforward.mlp import MLP
from lemmata.tricks import DistillationLoss, distill, distillation_loss, transfer_set


@pytest.mark.parametrize("temperature", [0.5, 1, 7.0])
def test_it_is_the_divergence_and_the_teachers_entropy(temperature: float):
    student, teacher = torch.randn(2, 9, 4, dtype=torch.double)
    p, q = (teacher / temperature).log_softmax(-1), (student / temperature).log_softmax(-1)
    entropy = -(p.exp() * p).sum(-1)
    wanted = functional.kl_div(q, p, log_target=True, reduction="none").sum(-1) + entropy
    losses = distillation_loss(student, teacher, temperature, "none")
    torch.testing.assert_close(losses, wanted)
    torch.testing.assert_close(distillation_loss(student, teacher, temperature), wanted.mean())
    torch.testing.assert_close(distillation_loss(student, teacher, temperature, "sum"), wanted.sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_large_logits_stay_finite(dtype: torch.dtype):
    student = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype, requires_grad=True)
    loss = distillation_loss(student, -student.detach(), 1.0)
    loss.backward()
    assert loss.dtype is dtype
    assert loss.isfinite()
    assert student.grad is not None
    assert student.grad.isfinite().all()


def test_gradients():
    student = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    teacher = torch.randn(3, 4, dtype=torch.double)
    loss = DistillationLoss(3.0, hard=0.3)
    y = torch.tensor([0, 3, 1])
    assert torch.autograd.gradcheck(lambda s: loss(s, teacher, y), student)


def test_the_mixture_has_its_parts():
    student, teacher, y = torch.randn(6, 4), torch.randn(6, 4), torch.randint(4, (6,))
    soft, hard = 9 * distillation_loss(student, teacher, 3.0), functional.cross_entropy(student, y)
    torch.testing.assert_close(DistillationLoss(3.0)(student, teacher), soft)
    torch.testing.assert_close(DistillationLoss(3.0, hard=0.25)(student, teacher, y), 0.75 * soft + 0.25 * hard)
    torch.testing.assert_close(DistillationLoss(3.0, hard=1)(student, teacher, y), hard)


def test_the_classes_are_on_the_last_axis():
    student, teacher, y = torch.randn(5, 4, 4), torch.randn(5, 4, 4), torch.randint(4, (5, 4))
    loss = DistillationLoss(2.0, hard=0.5)
    torch.testing.assert_close(loss(student, teacher, y), loss(student.view(20, 4), teacher.view(20, 4), y.view(20)))


def test_a_class_that_is_masked_in_both_counts_nothing():
    student, teacher = torch.randn(3, 4, dtype=torch.double), torch.randn(3, 4, dtype=torch.double)
    student[:, 1], teacher[:, 1] = -torch.inf, -torch.inf
    both = [student.requires_grad_(), teacher.requires_grad_()]
    loss, rest = distillation_loss(*both, 2.0), distillation_loss(student[:, [0, 2, 3]], teacher[:, [0, 2, 3]], 2.0)
    torch.testing.assert_close(loss, rest)
    for found, wanted in zip(torch.autograd.grad(loss, both), torch.autograd.grad(rest, both), strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("kind", "precision"), [(torch.float32, "float64"), (torch.float64, "float32")])
def test_teacher_and_student_may_have_numbers_of_their_own(kind: torch.dtype, precision: str):
    teacher, student = nn.Linear(2, 4).to(kind), nn.Linear(2, 4)
    words = {"epochs": 1, "precision": precision, "device": "cpu", "progress": False}
    distill(teacher, student, data()[0], **words)
    assert teacher.weight.dtype is kind
    assert str(student.weight.dtype) == f"torch.{precision}"


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()


@pytest.mark.parametrize("hard", [0.0, 0.5])
def test_a_student_agrees_with_its_teacher(hard: float):
    x, y = data()
    teacher = MLP(2, 4, widths=(32,), dropout=0.3)
    words = {"device": "cpu", "progress": False, "lr": 0.01}
    lemmata.fit(teacher, (x, y), epochs=20, **words)
    before = copy.deepcopy(teacher.state_dict())
    teacher.train()
    run = distill(teacher, MLP(2, 4, widths=(16,)), (x, y), 3.0, hard, epochs=25, validation=(x, y), **words)
    assert run.scores["agreement"] > 0.93
    assert "validation_agreement" in run.history.epochs[-1]
    assert teacher.training  # as it was
    assert all(torch.equal(values, before[name]) for name, values in teacher.state_dict().items())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: distillation_loss(torch.ones(2, 3), torch.ones(2, 3), 0), "temperature must be > 0, got 0"),
        (
            lambda: distillation_loss(torch.ones(2, 3), torch.ones(2, 4)),
            "teacher must have the shape of student, (2, 3)",
        ),
        (lambda: distillation_loss(torch.ones(2, 3), torch.ones(2, 3), 1, "max"), "reduction must be one of mean, sum"),
        (lambda: DistillationLoss(hard=2), "hard must be in [0, 1], got 2"),
        (lambda: DistillationLoss(hard=0.5)(torch.ones(2, 3), torch.ones(2, 3)), "hard = 0.5 needs the labels y"),
        (
            lambda: DistillationLoss(hard=0.5)(torch.ones(2, 3), torch.ones(2, 3), torch.zeros(3).long()),
            "y must have the shape (2,), a class each, got (3,)",
        ),
        (
            lambda: distill(nn.Linear(2, 3), nn.Linear(2, 3), torch.ones(4, 2), temperature=-1),
            "temperature must be > 0",
        ),
        (
            lambda: distill(nn.Linear(2, 3), nn.Linear(2, 3), torch.ones(4, 2), hard=0.5, epochs=1, progress=False),
            "hard = 0.5 needs the labels y",
        ),
    ],
)
def test_bad_input_is_told(call, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        call()


class Pair(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x


@pytest.mark.parametrize(
    ("teacher", "told"),
    [
        (nn.Linear(2, 4), "teacher and student must return logits of the same classes, got shapes (4, 4) and (4, 3)"),
        (nn.Sequential(nn.Linear(2, 3), nn.Threshold(1e9, float("nan"))), "the teacher's logits must not be NaN"),
        (Pair(), "teacher must return logits, a tensor, got tuple"),
    ],
)
def test_a_bad_teacher_is_told(teacher: nn.Module, told: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(told)):
        distill(teacher, nn.Linear(2, 3), torch.ones(4, 2), epochs=1, device="cpu", progress=False)


def test_a_transfer_set_is_what_the_teacher_says_of_inputs_like_those_given():
    teacher, x = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)).double(), torch.randn(40, 3)
    x = torch.cat([x, torch.ones(40, 1)], 1)[:, [0, 1, 3]].double() * torch.tensor([1.0, 10.0, 5.0])
    found = transfer_set(teacher, x, size=4000, noise=0.5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(found.logits, teacher.eval()(found.x).detach())
    assert not found.logits.requires_grad
    assert torch.equal(found.x[:, 2], torch.full((4000,), 5.0).double())  # what never changes is not changed
    spread = found.x.var(0, correction=0)[:2] / x.var(0, correction=0)[:2]
    assert torch.allclose(spread, torch.full((2,), 1.25).double(), rtol=0.1)
    plain = transfer_set(teacher, x, batch_size=7)
    assert torch.equal(plain.x, x)
    assert torch.allclose(plain.logits, teacher(x).detach())
    again = transfer_set(teacher, x, size=4000, noise=0.5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.x, found.x)


def test_a_transfer_set_teaches_as_the_teacher_itself_does():
    torch.manual_seed(0)
    teacher, x, students = nn.Linear(3, 4), torch.randn(64, 3), [nn.Linear(3, 4) for _ in range(2)]
    students[1].load_state_dict(students[0].state_dict())
    words = {"epochs": 3, "lr": 0.05, "device": "cpu", "progress": False}
    asked, told = (
        distill(teacher, s, data, **words) for s, data in zip(students, (x, transfer_set(teacher, x)), strict=True)
    )
    assert asked.scores["agreement"] == pytest.approx(told.scores["agreement"])
    assert torch.allclose(students[0].weight, students[1].weight, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"noise": 0.1}, "noise = 0.1 needs a size"),
        ({"size": 0}, "size must be >= 1, got 0"),
        ({"size": 5, "noise": -1.0}, "noise must be >= 0, got -1.0"),
        ({"batch_size": 0}, "batch_size must be >= 1"),
    ],
)
def test_bad_transfer_sets_are_answered_in_words(words, message: str):
    with pytest.raises(ValueError, match=message):
        transfer_set(nn.Linear(3, 2), torch.randn(5, 3), **words)
    with pytest.raises(ValueError, match=r"x must be \(examples, ...\), got shape \(5,\)"):
        transfer_set(nn.Linear(3, 2), torch.randn(5))
    found = transfer_set(nn.Linear(3, 2), torch.randn(5, 3))
    with pytest.raises(ValueError, match="which a transfer set does not have"):
        distill(nn.Linear(3, 2), nn.Linear(3, 2), found, hard=0.5)
