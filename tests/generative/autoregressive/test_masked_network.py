"""MADE: masks, orders, mixtures, generators, and what is refused."""

import itertools

import pytest
import torch

from lemmata.generative.autoregressive import MADE, MADEConfig, autoregressive_masks


def all_bits(size):
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=size)))


@pytest.mark.parametrize("widths", [(1,), (7,), (9, 4), (5, 5, 5)])
def test_paths_lead_from_earlier_to_later_alone(widths):
    order = torch.tensor([2, 0, 4, 1, 3])
    paths = torch.eye(5)
    for mask in autoregressive_masks(order, widths):
        paths = mask @ paths
    place = order.argsort()
    assert not paths[place[:, None] <= place].any()
    if min(widths) >= 4:
        assert paths[place[:, None] > place].all()


def test_one_input_has_no_paths():
    first, last = autoregressive_masks(torch.tensor([0]), (3,))
    assert not (last @ first).any()


def test_several_orders_are_a_mixture():
    torch.manual_seed(0)
    model, x = MADE(3, widths=(8,), orders=4, order_seed=3), all_bits(3)
    logits = model(x)  # (8, 4, 3)
    each = torch.distributions.Bernoulli(logits=logits).log_prob(x[:, None]).sum(-1).exp()  # (8, 4)
    assert torch.allclose(each.sum(0), torch.ones(4), atol=1e-5)
    assert torch.allclose(model.log_prob(x).exp(), each.mean(1), atol=1e-6)
    assert torch.equal(model.order[0], torch.arange(3))


def test_samples_of_a_mixture_follow_its_law():
    torch.manual_seed(1)
    model = MADE(2, widths=(6,), orders=2, order_seed=1)
    assert torch.equal(model.order, torch.tensor([[0, 1], [1, 0]]))
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.mul_(3)
            layer.bias.normal_()
    x, log_prob = model.sample_and_log_prob(20_000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(log_prob, model.log_prob(x))
    found = torch.stack([(x == row).all(1).float().mean() for row in all_bits(2)])
    assert torch.allclose(found, model.log_prob(all_bits(2)).exp(), atol=0.02)


def test_a_generator_repeats_a_sample_and_leaves_the_global_stream():
    model = MADE(6, widths=(8,))
    state = torch.get_rng_state()
    first, second = (model.sample(4, generator=torch.Generator().manual_seed(2)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_weights_that_are_masked_learn_nothing():
    model = MADE(4, widths=(6,))
    model.loss(all_bits(4)).backward()
    for number, layer in enumerate(model.layers):
        assert not layer.weight.grad[model.get_buffer(f"mask{number}")[0] == 0].any()


def test_images_are_vectors_and_loss_is_a_mean():
    model, x = MADE(4, widths=(6,)), all_bits(4).view(-1, 2, 2)
    assert torch.equal(model.log_prob(x), model.log_prob(x.flatten(1)))
    assert torch.allclose(model.loss(x), -model.log_prob(x).mean())
    assert model.log_prob(x[:1]).shape == (1,)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="x must hold only 0 and 1, for a Bernoulli law knows no grey"):
        MADE(4, widths=(6,)).log_prob(torch.full((1, 4), 0.5))
    with pytest.raises(TypeError, match="widths must be a tuple"):
        MADEConfig(widths=())
    with pytest.raises(ValueError, match="orders must be >= 1, got 0"):
        MADE(4, orders=0)
    with pytest.raises(ValueError, match="n must be >= 1, got 0"):
        MADE(4).sample(0)
    with pytest.raises(ValueError, match="with 4 values each"):
        MADE(4).log_prob(torch.zeros(2, 3))
