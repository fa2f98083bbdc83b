"""Distillation: where the tempered cross-entropy is least, its gradient, its limit, and a student that learns by it."""

import torch
from torch import nn
from torch.nn import functional

import lemmata
from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, at_least, claim, close, lie, reaches, slope_is
from lemmata.tricks.distillation import DistillationLoss, distill, distillation_loss


def points(count, seed):
    """Points of the plane, with the third of it that they lie in as their class, now and then mistaken."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator)
    y = (torch.atan2(x[:, 1], x[:, 0]) * 3 / (2 * torch.pi)).floor().long() % 3
    wrong = torch.rand(count, generator=generator) < 0.05
    return x, torch.where(wrong, (y + 1) % 3, y)


def network(width):
    return MLP(2, 3, widths=(width,), activation="tanh")


def learn_labels(model, generator, epochs):
    lemmata.fit(model, points(600, 0), epochs=epochs, lr=0.01, device="cpu", progress=False)


def learn_from(student, generator, epochs, temperature, minus):
    """By `distill`; or, without the minus sign, by the same steps on the negative of its loss."""
    teacher = network(64)
    learn_labels(teacher, generator, epochs)
    x = points(600, 1)[0]
    words = {"epochs": epochs, "lr": 0.01, "device": "cpu", "progress": False}
    if minus:
        distill(teacher, student, x, temperature, **words)
    else:
        wanted = teacher(x).detach()
        lemmata.fit(student, (x, wanted), loss=Likelihood(temperature), clip=1.0, **words)


class Likelihood(nn.Module):
    """The sum without the minus sign."""

    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, output, target):
        return -(self.temperature**2) * distillation_loss(output, target, self.temperature)


def _student_divergence(draw, minus):
    """Of the student from its teacher, on points that neither has seen."""
    words = {"epochs": 30}
    teacher = draw.trained(network, learn_labels, width=64, **words)
    student = draw.trained(network, learn_from, width=16, temperature=4.0, minus=minus, **words)
    x = points(2000, 2)[0]
    with torch.no_grad():
        p, q = teacher(x).log_softmax(-1), student(x).log_softmax(-1)
    return functional.kl_div(q, p, log_target=True, reduction="batchmean")


def _negative_loss(student, teacher, temperature, reduction="mean"):
    return -distillation_loss(student, teacher, temperature, reduction)


@claim("distill")
@lie("the sum without the minus sign", printed="000/1", sign=1.0)
@lie("the sum without the minus sign is least at the teacher", printed="001/2", loss=_negative_loss)
@lie("a student that minimises it without the minus sign comes near its teacher", printed="003/3", minus=False)
@lie("beside the labels it is multiplied by the temperature", factor=1.0)
def students_learn_tempered_probabilities(draw, sign=-1.0, factor=2.0, loss=distillation_loss, minus=True):
    """The loss against the formula, its least value, the entropy of tempered teachers; and a student of 16 units."""
    teacher, others, formula, least, entropies = 4 * draw.normal(50, 5), [], [], [], []
    student, labels, mixed = 4 * draw.normal(50, 5), draw.integers(0, 5, 50), []
    near = [teacher + 0.1 * draw.normal(50, 5) for _ in range(3)]
    for t in (0.5, 1.0, 4.0, 20.0):
        p = (teacher / t).softmax(-1)
        inner = student / t - torch.logsumexp(student / t, -1, keepdim=True)
        soft = sign * (p * inner).sum(-1)
        formula.append(soft - distillation_loss(student, teacher, t, "none"))
        hard = -student.log_softmax(-1).gather(1, labels[:, None]).mean()
        mixed += [
            DistillationLoss(t, alpha)(student, teacher, labels) - (1 - alpha) * t**factor * soft.mean() - alpha * hard
            for alpha in (0.0, 0.25, 1.0)
        ]
        entropies.append(torch.distributions.Categorical(p).entropy())
        least.append(loss(teacher + draw.normal(50, 1), teacher, t, "none"))
        others.append(torch.stack([loss(each, teacher, t, "none") for each in (student, *near)]))
    told = all_of(
        close(torch.stack(formula), 0.0, scale=50.0),
        close(torch.stack(mixed), 0.0, scale=20.0**2 * 50.0),
        close(torch.stack(least), torch.stack(entropies), scale=20.0),
        at_least(torch.stack(others), torch.stack(least)[:, None]),
        at_least(torch.stack(entropies).diff(dim=0), 0.0),
    )
    if not told.holds:
        return told  # decided without training
    return all_of(
        told, reaches(_student_divergence(draw, minus), 0.05, at_most=True, detail="divergence from the teacher")
    )


@claim("distill.gradient")
@lie("the sign of the likelihood", sign=-1.0)
@lie("without the factor 1/T", power=0.0)
@lie("a difference of tempered logits", tempered=torch.positive)
def the_gradient_is_a_difference_of_probabilities(draw, sign=1.0, power=1.0, tempered=None, loss=distillation_loss):
    """Autograd, for two classes and more, cold and hot, logits from small to large."""
    found, formula = [], []
    squash = tempered or (lambda z: z.softmax(-1))
    for classes in (2, 3, 10):
        for t in (0.5, 1.0, 4.0):
            scale = 10.0 ** draw.uniform(20, 1, low=-2, high=2)
            student, teacher = (scale * draw.normal(20, classes) for _ in range(2))
            student.requires_grad_()
            (slope,) = torch.autograd.grad(loss(student, teacher, t, "sum"), student)
            found.append(slope.flatten())
            formula.append(sign / t**power * (squash(student / t) - squash(teacher / t)).detach().flatten())
    return close(torch.cat(found), torch.cat(formula), ulps=1000, scale=2.0)


@claim("distill.high_temperature")
@lie("the gradient falls like 1/T", power=1.0)
@lie("without the number of classes", classes=0.0)
@lie("the student's logits are not centred", centred=0.0)
def hot_students_match_centred_logits(draw, power=2.0, classes=1.0, centred=1.0, loss=distillation_loss):
    """The gradient of logits with other means than the teacher's: at T = 10⁶, and how fast it comes there."""
    student, teacher = 2 + draw.normal(30, 5), draw.normal(30, 5) - 1
    student.requires_grad_()
    gap = student - centred * student.mean(-1, keepdim=True) - (teacher - teacher.mean(-1, keepdim=True))

    def scaled(t):
        (slope,) = torch.autograd.grad(loss(student, teacher, t, "sum"), student)
        return 5**classes * t**power * slope

    hot = [1e2, 1e3, 1e4]
    errors = [(scaled(t) - gap).abs().max().detach() for t in hot]
    return all_of(
        close(scaled(1e6), gap, within=1e-4),  # the probabilities of 1e-6 logits have ten digits left
        slope_is(hot, torch.stack(errors), -1.0, within=0.05),
    )
