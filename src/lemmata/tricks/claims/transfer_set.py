"""Students that see no label: what they learn from inputs labelled by their teacher, more and more of them."""

import torch
from torch import nn

import lemmata
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.tricks.distillation import TransferSet, distill, transfer_set

REPEATS, LABELLED = 6, 60
SIZES = (30, 100, 1000)


def digits(part):
    data = load("digits")
    mean = data.train.x.flatten(1).float().mean(0)
    return getattr(data, part).x.flatten(1).float() - mean, getattr(data, part).y


def _labelled_part(generator):
    x, y = digits("train")
    chosen = torch.randperm(len(x), generator=generator)[:LABELLED]
    return x[chosen], y[chosen]


def _fit_options(size):
    """About six hundred steps of 64 examples, whatever the size."""
    size_of_batch = min(64, size)
    epochs = round(600 * size_of_batch / size)
    return {
        "epochs": epochs, "evaluate": epochs, "batch_size": size_of_batch, "lr": 5e-3,
        "schedule": "cosine", "device": "cpu", "progress": False,
    }  # fmt: skip


def teachers_and_students():
    """Of every repeat a teacher of 256 units, a student of 16 for each size, and one for the labels alone."""
    return nn.ModuleList(
        nn.ModuleList(
            [MLP(64, 10, widths=(256,), dropout=0.5), *(MLP(64, 10, widths=(16,)) for _ in range(len(SIZES) + 1))]
        )
        for _ in range(REPEATS)
    )


def learn(repeats, generator, answers):
    """The teachers from sixty labels, and the students from pictures without any, as the teacher labels them."""
    pictures, _ = digits("train")
    for number, (teacher, *students) in enumerate(repeats):
        labels = _labelled_part(generator)
        lemmata.fit(teacher, labels, seed=number, **_fit_options(LABELLED))
        for student, size in zip(students, SIZES, strict=False):
            found = transfer_set(teacher, pictures, size, noise=0.3, generator=generator)
            if answers == "exchanged":
                found = TransferSet(found.x, found.logits[torch.randperm(size, generator=generator)])
            distill(teacher, student, found, temperature=2.0, seed=number, **_fit_options(size))
        lemmata.fit(students[-1], labels, seed=number, **_fit_options(LABELLED))


def _student_scores(draw, answers):
    """Agreement with the teacher by size, and the accuracy of the last student and of that from labels."""
    x, y = digits("test")
    agreement, gains = [], []
    with torch.no_grad():
        for teacher, *students in draw.trained(teachers_and_students, learn, answers=answers):
            taught, *found = (each(x).argmax(1) for each in (teacher, *students))
            agreement.append(torch.stack([(each == taught).double().mean() for each in found[:-1]]))
            gains.append((found[-2] == y).double().mean() - (found[-1] == y).double().mean())
    return torch.stack(agreement).mean(0).tolist(), float(torch.stack(gains).mean())


@claim("distill.transfer_set")
@lie("inputs do, whatever answer belongs to them", answers="exchanged")
@lie("the size of the set does not matter", sizes=(0, 0, 0))
def students_learn_from_inputs_their_teacher_labels(draw, answers="teacher", sizes=(0, 1, 2)):
    """Digits: a teacher that knows sixty labels; students of 16 units, in the mean over six repeats."""
    agreement, gain = _student_scores(draw, answers)
    small, middle, large = (agreement[number] for number in sizes)
    return all_of(
        reaches(middle, small + 0.05, detail="agreement with the teacher, of 100 inputs against 30, five points more"),
        reaches(large, middle, detail="of 1,000 inputs against 100"),
        reaches(large, 0.9, detail="agreement with the teacher on new pictures, from 1,000 inputs"),
        reaches(gain, 0.0, detail="accuracy, against the same student from the sixty labels"),
    )
