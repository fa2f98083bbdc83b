"""Memories by their formulas: what a layer moves on, cycles that leave the start behind, tensors of one's own."""

import torch

from lemmata.connectionism import HopfieldNetwork, ModernHopfieldLayer


def test_a_layer_of_several_steps_moves_on_the_keys_and_reads_the_values_once():
    torch.manual_seed(0)
    layer = ModernHopfieldLayer(4, heads=2, beta=0.7, steps=3).double()
    torch.nn.init.normal_(layer.in_proj_bias)
    states, memories = torch.randn(2, 5, 4).double(), torch.randn(2, 6, 4).double()
    weights, biases = layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3)
    query, key, value = (x @ w.T + b for x, w, b in zip((states, memories, memories), weights, biases, strict=True))
    heads = []
    for head in (slice(0, 2), slice(2, 4)):
        q, k, v = query[..., head], key[..., head], value[..., head]
        for _ in range(2):
            q = torch.softmax(0.7 * q @ k.mT, -1) @ k
        heads.append(torch.softmax(0.7 * q @ k.mT, -1) @ v)
    expected = torch.cat(heads, -1) @ layer.out_proj.weight.T + layer.out_proj.bias
    assert torch.allclose(layer(states, memories), expected, rtol=1e-12, atol=1e-12)


def test_a_cycle_that_does_not_go_through_the_start_is_found():
    """Two units that prefer each other's sign swap for ever, once a third has come to rest."""
    weight = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    network = HopfieldNetwork(3, weight, torch.tensor([0.0, 0.0, -1.0]))
    start = torch.tensor([[1.0, -1.0, -1.0], [1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
    found = network.recall(start, dynamics="synchronous", max_sweeps=50)
    assert found.cycled.tolist() == [True, True, False]
    assert found.converged.tolist() == [False, False, True]
    assert found.sweeps.max() <= 4  # it was noticed, not waited for
    assert found.states[:, 2].tolist() == [1.0, 1.0, 1.0]


def test_what_a_network_remembers_is_not_the_tensor_it_was_given():
    patterns = torch.tensor([[1.0, 1.0, -1.0, 1.0], [1.0, -1.0, 1.0, 1.0]])
    kept = patterns.clone()
    for rule in ("hebb", "pseudo-inverse"):
        given = kept.clone()
        network = HopfieldNetwork.from_patterns(given, rule=rule)
        given.neg_()
        assert torch.equal(network.patterns, kept)
        assert bool(network.recall(kept).exact.all())
        network.patterns.zero_()
        assert torch.equal(given, -kept)
