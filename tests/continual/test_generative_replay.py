"""Generative replay: whose samples, whose labels, densities that are no modules, and what is refused."""

import pytest
import torch
from tests.continual.small import network, stream
from torch.nn import functional

from lemmata.continual import GenerativeReplay
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA


class Same:
    """Gives the same point again and again."""

    def __init__(self):
        self.point = torch.zeros(6)

    def sample(self, n):
        return self.point.expand(n, 6)

    def state_dict(self):
        return {"point": self.point}

    def load_state_dict(self, state):
        self.point = state["point"]


def told(make=Same, train=lambda density, data: setattr(density, "point", data.x.mean(0)), **words):
    strategy = GenerativeReplay(network(), make, train)
    strategy.stream = stream(**words)
    return strategy


def test_the_loss_is_the_mean_over_tasks_with_the_labels_of_the_network_of_then():
    strategy = told()
    tasks = strategy.stream
    strategy.after_task(tasks[0].train)
    then = strategy.model(strategy.models[0].point[None]).softmax(1).detach()
    with torch.no_grad():
        strategy.model[0].weight += 0.3
    strategy.before_task(1)
    batch = tasks[1].train
    replayed = functional.cross_entropy(strategy.model(strategy.models[0].point[None]), then)
    wanted = (functional.cross_entropy(strategy.model(batch.x), batch.y) + replayed) / 2
    assert torch.allclose(strategy.loss(batch), wanted, rtol=1e-5)


def test_the_old_network_is_a_copy_that_does_not_learn():
    strategy = told()
    strategy.after_task(strategy.stream[0].train)
    assert strategy.old is not strategy.model
    assert not any(part.requires_grad for part in strategy.old.parameters())
    assert all(part.requires_grad for part in strategy.model.parameters())
    assert not strategy.old.training


def test_samples_take_the_shape_of_the_examples_and_have_no_gradient():
    strategy = told(make=lambda: ProbabilisticPCA(6, 2), train=lambda density, data: density.fit(data.x.flatten(1)))
    tasks = strategy.stream
    images = type(tasks[0].train)(x=tasks[0].train.x.view(-1, 2, 3), y=tasks[0].train.y)
    strategy.stream = type(tasks)((type(tasks[0])("images", images, images, (0, 1, 2)), *tasks.tasks[1:]), "domain", 3)
    strategy.model = torch.nn.Sequential(torch.nn.Flatten(), *strategy.model)
    strategy.after_task(images)
    made = strategy.replayed(0, 5)
    assert made.shape == (5, 2, 3)
    assert not made.requires_grad


def test_a_density_that_is_no_module_is_kept_and_given_back():
    strategy = told()
    strategy.after_task(strategy.stream[0].train)
    other = told()
    other.restore(strategy.state())
    assert torch.equal(other.models[0].point, strategy.models[0].point)
    x = strategy.stream[0].test.x
    assert torch.equal(other.labels(x, 0), strategy.labels(x, 0))


@pytest.mark.parametrize(
    ("make", "train", "message"),
    [(3, print, "make must be a function, got int"), (Same, None, "train must be a function, got NoneType")],
)
def test_what_cannot_be_called_is_refused(make, train, message):
    with pytest.raises(TypeError, match=f"{message}|parameter"):
        GenerativeReplay(network(), make, train)
