"""Transfer: what is made on a surrogate fools another network that is asked for nothing but its answer."""

import torch
from tests.robustness.digit_classifier import Changed, classifier, digits

from lemmata.robustness import BlackBox, Threat, transfer_attack


def test_examples_of_another_network_fool_one_that_hides_its_gradients():
    (x, y), surrogate = digits(), classifier(seed=1)
    hiding = Changed(before=lambda x: (x * 16).round() / 16, behind=lambda logits: logits * 1e6)
    box = BlackBox(hiding)
    found = transfer_attack(box, x, y, 0.2, surrogate=surrogate)
    assert found.success.double().mean() > 0.6
    assert bool(Threat(0.2).admits(x, found.examples).all())
    assert box.queries == 2 * len(x)  # before, and to verify
    assert int(found.gradients.sum()) == 0


def test_it_goes_on_where_the_surrogate_is_fooled_already():
    x, y = digits()
    x, y = x[y != 0], y[y != 0]
    all_zeros = Changed(behind=lambda z: z + 100.0 * torch.eye(10)[0], seed=1)
    assert bool((all_zeros(x).argmax(1) != y).all())
    assert transfer_attack(classifier(), x, y, 0.3, surrogate=all_zeros).success.double().mean() > 0.6


def test_the_surrogate_is_given_back_as_it_was_and_its_signs_are_told():
    (x, y), surrogate = digits(6), Changed(behind=lambda z: z * 0, seed=1)
    before = {name: value.clone() for name, value in surrogate.state_dict().items()}
    found = transfer_attack(classifier(), x, y, 0.1, surrogate=surrogate)
    assert found.flags == ("of the surrogate: gradients that are exactly zero",)
    assert all(torch.equal(value, before[name]) for name, value in surrogate.state_dict().items())
    assert all(each.requires_grad and each.grad is None for each in surrogate.parameters())
