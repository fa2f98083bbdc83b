"""The Fisher diagonal: rules of layers against the gradient of each example, labels, and what is refused."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.continual import fisher_diagonal


def by_hand(model, x, y=None):
    """One example and one class at a time."""
    named = dict(model.named_parameters())
    total = {name: torch.zeros_like(part) for name, part in named.items()}
    for row in range(len(x)):
        log_probability = model(x[row : row + 1]).log_softmax(1)[0]
        for k in range(len(log_probability)) if y is None else [int(y[row])]:
            weight = 1.0 if y is not None else float(log_probability[k].detach().exp())
            slopes = torch.autograd.grad(log_probability[k], list(named.values()), retain_graph=True)
            for name, slope in zip(named, slopes, strict=True):
                total[name] += weight * slope.square() / len(x)
    return total


class Positions(nn.Module):
    """A sequence of vectors, (batch, length, 3), of which the mean is classified."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 5), nn.Linear(5, 4, bias=False)

    def forward(self, x):
        return self.outer(self.inner(x).tanh()).mean(1)


class Shared(nn.Module):
    """One layer that is used twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(self.layer(x).tanh())


MODELS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 4)), (7, 3)),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Tanh(), nn.Conv2d(3, 4, 2, dilation=2, bias=False),
            nn.Flatten(), nn.Linear(4, 3),
        ),
        (5, 2, 6, 6),
    ),
    "sequences": (Positions, (6, 4, 3)),
    "a layer used twice": (Shared, (6, 3)),
    "groups": (lambda: nn.Sequential(nn.Conv2d(2, 4, 2, groups=2), nn.Flatten(), nn.Linear(4, 3)), (5, 2, 2, 2)),
    "a norm": (lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 3)), (6, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("labels", ["expected", "data"])
def test_it_is_the_mean_square_of_each_examples_gradient(name, labels):
    make, shape = MODELS[name]
    torch.manual_seed(0)
    model, x = make().double(), torch.randn(shape, dtype=torch.float64)
    y = torch.arange(shape[0]) % 3 if labels == "data" else None
    found, wanted = fisher_diagonal(model, x, y, labels=labels, at_once=4), by_hand(model, x, y)
    assert found.keys() == wanted.keys()
    for key in wanted:
        assert torch.allclose(found[key], wanted[key], rtol=1e-9, atol=1e-14), key


def test_sampled_labels_are_right_on_average():
    torch.manual_seed(1)
    model, x = nn.Linear(2, 3).double(), torch.randn(1, 2, dtype=torch.float64)
    wanted = by_hand(model, x)["bias"]
    drawn = fisher_diagonal(model, x.expand(40_000, 2), labels="sampled", generator=torch.Generator().manual_seed(0))
    # A squared gradient lies in [0, 1], so its mean over 40,000 is within 0.5 / 200 times six deviations.
    assert float((drawn["bias"] - wanted).abs().max()) < 6 * 0.5 / 200


def test_sampled_labels_come_from_the_generator():
    model, x = nn.Linear(2, 3), torch.randn(20, 2)
    draw = lambda seed: fisher_diagonal(model, x, labels="sampled", generator=torch.Generator().manual_seed(seed))  # noqa: E731
    assert torch.equal(draw(1)["weight"], draw(1)["weight"])
    assert not torch.equal(draw(1)["weight"], draw(2)["weight"])


def test_classes_that_are_hidden_get_none_of_it():
    model, x = nn.Linear(2, 4), torch.randn(9, 2)

    def first_two(logits):
        return logits.masked_fill(torch.tensor([False, False, True, True]), float("-inf"))

    found = fisher_diagonal(model, x, logits=first_two)
    assert bool(found["weight"].isfinite().all())
    assert found["bias"][2:].tolist() == [0.0, 0.0]
    assert bool((found["bias"][:2] > 0).all())


def test_frozen_parameters_are_left_out_and_the_model_stays_as_it_was():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    x = torch.randn(8, 3)
    assert set(fisher_diagonal(model, x)) == {"2.weight", "2.bias"}
    assert model.training
    assert all(part.grad is None for part in model.parameters())
    assert torch.equal(fisher_diagonal(model, x)["2.bias"], fisher_diagonal(model, x)["2.bias"])  # no dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_precisions(dtype):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(30, 3)
    wide = fisher_diagonal(model.double(), x.double())["weight"]
    found = fisher_diagonal(model.to(dtype), x.to(dtype))["weight"]
    assert found.dtype == dtype
    assert float((found.double() - wide).abs().max() / wide.max()) < 40 * torch.finfo(dtype).eps


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"labels": "guessed"}, "labels must be one of"),
        ({"labels": "data"}, 'y must be given with labels="data"'),
        ({"y": torch.zeros(4, dtype=torch.long)}, 'y must be given with labels="data", and with no others'),
        ({"x": torch.zeros(0, 2)}, "x must not be empty"),
        ({"at_once": 0}, "at_once must be >= 1, got 0"),
        ({"model": nn.Linear(2, 2).requires_grad_(False)}, "model must have parameters that learn, got none"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(words, message):
    given = {"model": nn.Linear(2, 2), "x": torch.randn(4, 2)} | words
    with pytest.raises(ValueError, match=message):
        fisher_diagonal(given.pop("model"), given.pop("x"), given.pop("y", None), **given)


def test_it_is_the_curvature_of_the_mean_loss_at_the_models_own_labels():
    torch.manual_seed(2)
    model, x = nn.Linear(3, 4, bias=False).double(), torch.randn(10, 3, dtype=torch.float64)
    own = (x @ model.weight.detach().T).softmax(1)
    loss = lambda weight: functional.cross_entropy(x @ weight.view(4, 3).T, own)  # noqa: E731
    curvature = torch.autograd.functional.hessian(loss, model.weight.detach().flatten()).diagonal()
    assert torch.allclose(fisher_diagonal(model, x)["weight"].flatten(), curvature, rtol=1e-9)
