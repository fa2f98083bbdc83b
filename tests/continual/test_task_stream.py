"""Streams: which examples are in which task, what is told in each scenario, and what is refused."""

import math

import pytest
import torch

from lemmata.continual import Task, TaskStream, permuted_tasks, rotated_tasks, split_tasks
from lemmata.data import load
from lemmata.data.examples import Dataset, Examples


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def part(n=6, classes=3):
    return Examples(x=torch.randn(n, 2), y=torch.arange(n) % classes)


def test_every_example_is_in_one_task_of_a_split(digits):
    stream = split_tasks(digits, tasks=4)
    assert [task.classes for task in stream] == [(0, 1), (2, 3, 4), (5, 6), (7, 8, 9)]
    for name in ("train", "test"):
        together = torch.cat([getattr(task, name).y for task in stream])
        assert torch.equal(together.sort().values, getattr(digits, name).y.sort().values)
    for task in stream:
        assert set(task.train.y.tolist()) == set(task.classes)
    assert split_tasks(digits, tasks=10)[3].classes == (3,)


def test_permuted_tasks_are_the_same_values_in_another_order(digits):
    stream = permuted_tasks(digits, tasks=3, seed=4)
    first = stream[0].train.x
    assert torch.equal(first, digits.train.x.flatten(1))
    for task in stream.tasks[1:]:
        assert not torch.equal(task.train.x, first)
        assert torch.equal(task.train.x.sort(1).values, first.sort(1).values)
        # the same order for training and test: the mean image of one is nearly that of the other
        assert float((task.train.x.mean(0) - task.test.x.mean(0)).abs().max()) < 0.1
    again = permuted_tasks(digits, tasks=2, seed=4)
    assert torch.equal(again[1].train.x, stream[1].train.x)
    assert not torch.equal(permuted_tasks(digits, tasks=2, seed=5)[1].train.x, stream[1].train.x)


def test_rotations_by_right_angles_move_every_pixel_where_it_belongs(digits):
    stream = rotated_tasks(digits, [0.0, 90.0, 180.0, -90.0])
    x = digits.test.x
    assert torch.allclose(stream[0].test.x, x, atol=1e-5)
    for k, turns in ((1, 1), (2, 2), (3, -1)):
        assert torch.allclose(stream[k].test.x, x.rot90(turns, (1, 2)), atol=1e-4)


def test_only_the_scenario_task_hides_classes():
    tasks = (Task("a", part(), part(), (0, 2)), Task("b", part(), part(), (1,)))
    logits = torch.randn(4, 3)
    seen = TaskStream(tasks, "task", 3).visible(logits, 0)
    assert torch.equal(seen[:, [0, 2]], logits[:, [0, 2]])
    assert seen[:, 1].tolist() == [-math.inf] * 4
    assert torch.equal(TaskStream(tasks, "class", 3).visible(logits, 0), logits)
    with pytest.raises(ValueError, match="the model must have 3 outputs, got 4"):
        TaskStream(tasks, "task", 3).visible(torch.randn(4, 4), 0)


def test_all_tasks_together_know_where_each_example_is_from(digits):
    stream = split_tasks(digits, tasks=2)
    joint = stream.joint()
    assert len(joint) == len(digits.train)
    assert torch.equal(joint.task, (joint.y >= 5).long())


def test_a_stream_is_moved_as_a_whole(digits):
    moved = split_tasks(digits, tasks=2, scenario="task").to(torch.device("meta"))
    assert moved.scenario == "task"
    assert {column.device.type for task in moved for column in (*task.train, *task.test)} == {"meta"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: split_tasks(d, tasks=11), "tasks must be <= 10, got 11"),
        (lambda d: split_tasks(d, tasks=0), "tasks must be >= 1, got 0"),
        (lambda d: split_tasks(d, scenario="online"), "scenario must be one of"),
        (lambda d: split_tasks(d, tasks=2, scenario="domain"), 'tasks of the scenario "domain" must have the same'),
        (lambda d: split_tasks(d, groups=[[0, 12]]), "groups must hold different classes from 0 to 9, got"),
        (lambda d: split_tasks(d, groups=[[1, 1]]), "groups must hold different classes"),
        (lambda d: split_tasks(d, groups=[[]]), "groups must hold different classes"),
        (lambda d: permuted_tasks(d, tasks=0), "tasks must be >= 1, got 0"),
        (lambda d: rotated_tasks(load("moons")), "data must hold images"),
        (lambda d: rotated_tasks(d, [math.nan]), "degrees must be"),
        (lambda d: TaskStream((), "class", 3), "tasks must be one or more, got none"),
        (
            lambda d: TaskStream((Task("a", part(), part(), (0, 3)),), "class", 3),
            "outputs must be more than the class 3",
        ),
        (lambda d: TaskStream((Task("a", part(), part()[:0], (0,)),), "class", 3), "a must have examples to learn"),
    ],
)
def test_bad_streams_are_refused_in_a_sentence(digits, make, words):
    with pytest.raises(ValueError, match=words):
        make(digits)


def test_targets_that_are_no_classes_are_refused():
    numbers = Examples(x=torch.randn(4, 2), y=torch.randn(4))
    with pytest.raises(TypeError, match=r"data\.train\.y must hold classes as integers, got torch\.float32"):
        split_tasks(Dataset("numbers", {"train": numbers, "test": numbers}))
