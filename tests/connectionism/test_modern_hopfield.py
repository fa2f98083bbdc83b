"""Modern Hopfield network and layer: bad input, gradients, dtypes, masks, state_dict."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lemmata.connectionism.modern_hopfield import ModernHopfield, ModernHopfieldLayer
from lemmata.judge import Draw


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"patterns": [[1.0]]}, TypeError, "patterns must be a tensor, got list"),
        ({"patterns": torch.ones(2, 3).int()}, TypeError, "patterns must be floating point, got torch.int32"),
        (
            {"patterns": torch.ones(3)},
            ValueError,
            "patterns must be a .* tensor, got shape \\(3,\\)",
        ),
        ({"patterns": torch.ones(0, 3)}, ValueError, "patterns must not be empty"),
        ({"patterns": torch.full((2, 3), torch.nan)}, ValueError, "patterns must be finite, found 6 NaN values"),
        ({"patterns": torch.ones(2, 3), "beta": -1.0}, ValueError, "beta must be > 0, got -1.0"),
        ({"patterns": torch.ones(2, 3), "beta": torch.inf}, ValueError, "beta must be finite, got inf"),
        ({"patterns": torch.ones(2, 3), "steps": 0}, ValueError, "steps must be >= 1, got 0"),
        (
            {"patterns": torch.ones(2, 3), "mask": torch.ones(2)},
            TypeError,
            "mask must be a boolean tensor, got torch",
        ),
        (
            {"patterns": torch.ones(2, 3), "mask": torch.ones(3, dtype=torch.bool)},
            ValueError,
            "mask must have shape \\(2,\\), got \\(3,\\)",
        ),
        (
            {"patterns": torch.ones(2, 3), "mask": torch.zeros(2, dtype=torch.bool)},
            ValueError,
            "mask must keep at least one pattern of each memory",
        ),
    ],
)
def test_bad_memories_are_refused(options, error, message, unchecked):
    with pytest.raises(error, match=message):
        ModernHopfield(**options)


@pytest.mark.parametrize("verb", ["forward", "energy", "weights", "scores"])
def test_bad_states_are_refused_by_every_verb(verb, unchecked):
    single, batched = (getattr(ModernHopfield(normal(*shape)), verb) for shape in ((4, 3), (2, 4, 3)))
    with pytest.raises(ValueError, match="states must have 3 features on its last axis, got shape \\(5, 4\\)"):
        single(torch.ones(5, 4).double())
    with pytest.raises(ValueError, match="states must be a \\(2, queries, 3\\) tensor, got shape \\(5, 3\\)"):
        batched(torch.ones(5, 3).double())
    with pytest.raises(ValueError, match="states must be a \\(2, queries, 3\\) tensor, got shape \\(1, 5, 3\\)"):
        batched(torch.ones(1, 5, 3).double())
    with pytest.raises(ValueError, match="states must be finite, found 3 NaN values"):
        single(torch.full((3,), torch.nan).double())
    with pytest.raises(ValueError, match="states must not be empty"):
        single(torch.ones(0, 3).double())
    with pytest.raises(TypeError, match="states must be a tensor"):
        single([1.0, 2.0, 3.0])


def test_bad_layers_are_refused(unchecked):
    with pytest.raises(ValueError, match="heads must divide features, got 3 heads for 8 features"):
        ModernHopfieldLayer(8, heads=3)
    with pytest.raises(ValueError, match="features must be >= 1, got 0"):
        ModernHopfieldLayer(0)
    with pytest.raises(ValueError, match="heads must be >= 1, got -1"):
        ModernHopfieldLayer(8, heads=-1)
    with pytest.raises(ValueError, match="beta must be > 0, got 0"):
        ModernHopfieldLayer(8, beta=0)
    with pytest.raises(ValueError, match="steps must be >= 1, got -2"):
        ModernHopfieldLayer(8, steps=-2)
    layer = ModernHopfieldLayer(8)
    with pytest.raises(ValueError, match="memories must hold one memory for each of 2 states, got 3"):
        layer(torch.ones(2, 4, 8), torch.ones(3, 4, 8))
    with pytest.raises(ValueError, match="mask must have shape \\(2, 4\\), got \\(2, 5\\)"):
        layer(torch.ones(2, 4, 8), mask=torch.ones(2, 5, dtype=torch.bool))


def test_gradients_reach_states_and_patterns():
    mask = torch.tensor([[True, True, False], [True, True, True]])

    def both(patterns, states):
        memory = ModernHopfield(patterns, beta=0.9, steps=2, mask=mask)
        return memory(states), memory.energy(states)

    assert torch.autograd.gradcheck(both, (normal(2, 3, 2).requires_grad_(), normal(2, 1, 2, seed=1).requires_grad_()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_dtype_is_kept(dtype):
    patterns, states = normal(5, 8, dtype=torch.float64), normal(3, 8, seed=1, dtype=torch.float64)
    memory = ModernHopfield(patterns.to(dtype))
    tolerance = 8 * torch.finfo(dtype).eps
    assert memory(states.to(dtype)).dtype is memory.energy(states.to(dtype)).dtype is dtype
    torch.testing.assert_close(
        memory(states.to(dtype)).double(), ModernHopfield(patterns)(states), rtol=tolerance, atol=tolerance
    )


def test_autocast_is_accepted():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ModernHopfield(normal(5, 8, dtype=torch.float32))(normal(3, 8, dtype=torch.float32)).isfinite().all()


def test_a_huge_beta_overflows_nothing():
    memory = ModernHopfield(normal(5, 8), beta=1e8)
    assert memory(normal(3, 8, seed=1)).isfinite().all()
    assert memory.energy(normal(3, 8, seed=1)).isfinite().all()


def test_one_state_and_any_shape_of_states():
    memory, states = ModernHopfield(normal(5, 8), beta=2.0), normal(2, 3, 4, 8, seed=1)
    torch.testing.assert_close(memory(states)[1, 2, 3], memory(states[1, 2, 3]))
    assert memory.energy(states).shape == (2, 3, 4)
    assert memory.energy(states[0, 0, 0]).shape == ()
    assert memory.weights(states).shape == (2, 3, 4, 5)


def test_padding_may_hold_anything_finite():
    patterns = normal(2, 4, 3)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    changed = patterns.clone()
    changed[1, 2:] = 1e6
    states = normal(2, 2, 3, seed=1)
    one, other = (ModernHopfield(p, mask=mask) for p in (patterns, changed))
    torch.testing.assert_close(one(states), other(states))
    torch.testing.assert_close(one.energy(states), other.energy(states))


def test_state_dict_and_repr():
    memory, other = ModernHopfield(normal(5, 8)), ModernHopfield(normal(5, 8, seed=1))
    other.load_state_dict(memory.state_dict())
    assert other.patterns.equal(memory.patterns)
    assert set(memory.state_dict()) == {"patterns", "mask"}
    assert "patterns=(5, 8), beta=0.353553, steps=1" in repr(memory)
    assert "features=8, heads=2, beta=0.5, steps=1" in repr(ModernHopfieldLayer(8, heads=2))


def test_the_layer_and_torch_load_each_other():
    layer, theirs = ModernHopfieldLayer(8, heads=2), nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.load_state_dict(layer.state_dict())
    layer.load_state_dict(theirs.state_dict())
    assert (
        ModernHopfieldLayer(8, bias=False).state_dict().keys()
        == nn.MultiheadAttention(8, 1, bias=False).state_dict().keys()
    )


def double(make, *arguments, **options):
    """A layer with parameters in float64."""
    return make(*arguments, **options, dtype=torch.float64)


def test_several_steps_repeat_attention_for_a_batch_and_for_one_state():
    draw = Draw("steps")
    patterns, states = draw.normal(3, 9, 16), draw.normal(3, 5, 16)

    def attended(query):
        return F.scaled_dot_product_attention(query, patterns, patterns, scale=0.7)

    torch.testing.assert_close(ModernHopfield(patterns, beta=0.7, steps=2)(states), attended(attended(states)))
    torch.testing.assert_close(ModernHopfield(patterns[1], beta=0.7)(states[1, 2]), attended(states)[1, 2])


def test_the_weights_sum_to_one_and_mix_the_patterns():
    draw = Draw("weights")
    patterns, states = draw.normal(7, 12), draw.normal(5, 12)
    memory = ModernHopfield(patterns, beta=0.3)
    torch.testing.assert_close(memory.weights(states).sum(-1), torch.ones(5).double())
    torch.testing.assert_close(memory.weights(states) @ patterns, memory(states))


def test_energies_lie_between_zero_and_twice_the_largest_square():
    draw = Draw("energy")
    for beta in (1.0, 8.0, 50.0):
        patterns = draw.normal(10, 8) / 3
        memory = ModernHopfield(patterns, beta=beta)
        energy = memory.energy(memory(draw.normal(100, 8)))
        assert energy.min() > -1e-12
        assert energy.max() < 2 * patterns.square().sum(-1).max()


def test_copies_of_one_pattern_attract_like_half_the_squared_distance():
    draw = Draw("copies")
    pattern, states = draw.normal(1, 6), draw.normal(4, 6)
    distance = (states - pattern).square().sum(-1) / 2
    for n in (1, 5):
        torch.testing.assert_close(ModernHopfield(pattern.expand(n, 6), beta=2.0).energy(states), distance)
    half = torch.cat([pattern / 2, pattern])
    apart = ModernHopfield(half, beta=2.0)
    batched = ModernHopfield(half.expand(3, 2, 6), beta=2.0)
    torch.testing.assert_close(batched.energy(states.expand(3, 4, 6)), apart.energy(states).expand(3, 4))
    # At zero both scores vanish, and only the longer norm is left.
    torch.testing.assert_close(apart.energy(torch.zeros(1, 6).double()), pattern.square().sum(-1) / 2)


def test_padding_is_no_memory():
    """A batch of memories of different sizes, padded to one, against each of them alone."""
    draw = Draw("padding")
    states = draw.normal(2, 4, 5)
    # The longest are padding, and what is left is shorter than 1.
    patterns = draw.unit(2, 6, 5) * torch.tensor([[0.5], [0.6], [0.7], [1], [1], [2]])
    whole = ModernHopfield(patterns, beta=0.8, mask=torch.arange(6) < torch.tensor([[6], [3]]))
    for batch, size in enumerate((6, 3)):
        alone = ModernHopfield(patterns[batch, :size], beta=0.8)
        torch.testing.assert_close(whole(states)[batch], alone(states[batch]))
        torch.testing.assert_close(whole.energy(states)[batch], alone.energy(states[batch]))


@pytest.mark.parametrize("bias", [True, False])
def test_the_layer_is_torchs_attention_from_the_same_seed(bias):
    draw = Draw("layer")
    states, memories = draw.normal(2, 4, 12), draw.normal(2, 7, 12)
    mask = torch.arange(7) < torch.tensor([[7], [4]])
    torch.manual_seed(3)
    theirs = double(nn.MultiheadAttention, 12, 3, bias=bias, batch_first=True)
    torch.manual_seed(3)
    ours = double(ModernHopfieldLayer, 12, heads=3, bias=bias)
    assert all(value.equal(theirs.state_dict()[name]) for name, value in ours.state_dict().items())
    for value in theirs.parameters():
        nn.init.normal_(value)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(states, memories), theirs(states, memories, memories)[0])
    torch.testing.assert_close(ours(memories), theirs(memories, memories, memories)[0])
    masked = theirs(states, memories, memories, key_padding_mask=~mask)[0]
    torch.testing.assert_close(ours(states, memories, mask), masked)


def test_a_layer_whose_projections_change_nothing_is_the_memory_itself():
    draw = Draw("plain")
    states, memories = draw.normal(2, 4, 12), draw.normal(2, 7, 12)
    mask = torch.arange(7) < torch.tensor([[7], [4]])
    plain = double(ModernHopfieldLayer, 12, beta=0.4, steps=3, bias=False)
    nn.init.eye_(plain.out_proj.weight)
    plain.in_proj_weight.data.copy_(torch.eye(12).repeat(3, 1))
    memory = ModernHopfield(memories, beta=0.4, steps=3, mask=mask)
    torch.testing.assert_close(plain(states, memories, mask), memory(states))


def test_a_vanishing_beta_averages_the_memories():
    draw = Draw("average")
    patterns, states, beta = draw.unit(20, 16), draw.unit(5, 16), 1e-9
    mixed = ModernHopfield(patterns, beta=beta)(states)
    # Each weight differs from 1 / N by at most about 2 beta / N, as all similarities lie between -1 and 1.
    assert (mixed - patterns.mean(0)).abs().max() < 2 * beta


def test_patterns_of_signs_come_back_in_one_step():
    draw = Draw("signs")
    patterns = draw.signs(100, 10, 64)
    flipped = draw.uniform(100, 1, 64).argsort(-1) < 13
    found = ModernHopfield(patterns, beta=1.0)(torch.where(flipped, -1, 1) * patterns[:, :1])
    alike = torch.cosine_similarity(found, patterns[:, :1], dim=-1) > 0.99
    assert alike.double().mean() > 0.9
