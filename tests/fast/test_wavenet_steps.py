"""Steps of a WaveNet: C against torch whatever the sizes and numbers, and draws that follow the logits."""

import dataclasses
import shutil

import pytest
import torch

from lemmata.fast import wavenet_steps
from lemmata.fast.compiled_library import COMPILERS
from lemmata.fast.wavenet_steps import StepWeights, compiled_steps, drawn_level, one_step, why_no_compiled_steps

needs_a_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")


def weights(channels=5, skips=7, levels=6, taps=1, dilation=(1, 2, 4), dtype=torch.float64):
    generator, layers = torch.Generator().manual_seed(channels), len(dilation)

    def normal(*shape):
        scale = shape[-2] ** -0.5 if len(shape) > 1 else 1.0
        return scale * torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    return StepWeights(
        normal(levels, channels), normal(layers, taps * channels, 2 * channels), normal(layers, channels, 2 * channels),
        normal(layers, 2 * channels), normal(layers, channels, channels), normal(layers, channels),
        normal(layers * channels, skips), normal(skips), normal(skips, skips), normal(skips), normal(skips, levels),
        normal(levels), torch.tensor(dilation),
    )  # fmt: skip


def beginning(given, batch):
    generator = torch.Generator().manual_seed(1)
    memory = torch.randn(int(given.slots.sum()), batch, given.now.shape[1], generator=generator, dtype=torch.float64)
    last = torch.randn(batch, given.now.shape[1], generator=generator, dtype=torch.float64)
    return memory.to(given.now.dtype), last.to(given.now.dtype)


def in_torch(given, memory, last, position, temperature, chance):
    samples = []
    for t, row in enumerate(chance):
        samples.append(drawn_level(one_step(given, memory, last, position + t), temperature, row))
        last = given.embedding[samples[-1]]
    return torch.stack(samples), last


def test_a_step_sees_now_and_each_tap_in_its_place():
    given = weights(channels=1, skips=1, levels=2, taps=2, dilation=(3,))
    memory, last, seen = torch.zeros(6, 1, 1, dtype=torch.float64), torch.tensor([[0.5]], dtype=torch.float64), {}
    for position in range(20):
        seen[position] = last.item()
        lags = [seen.get(position - 6, 0.0), seen.get(position - 3, 0.0)]
        both = given.gate_bias[0] + sum(x * w for x, w in zip(lags, given.past[0], strict=True)) + last * given.now[0]
        z = both[:, :1].tanh() * both[:, 1:].sigmoid()
        middle = (z @ given.skip + given.skip_bias).relu() @ given.hidden + given.hidden_bias
        expected = middle.relu() @ given.head + given.head_bias
        torch.testing.assert_close(one_step(given, memory, last, position), expected, rtol=1e-12, atol=1e-12)
        last = last.cos() + position / 7


@needs_a_compiler
@pytest.mark.parametrize("temperature", [0.0, 3.0])
@pytest.mark.parametrize(
    ("sizes", "batch"),
    [
        ({}, 1),
        ({"taps": 2, "dilation": (1, 2, 1, 2)}, 3),
        ({"channels": 32, "skips": 64, "levels": 33}, 2),
        ({"channels": 1, "skips": 1, "levels": 2, "dilation": (1,)}, 1),
    ],
)
def test_c_and_torch_take_the_same_steps(sizes, batch, temperature):
    given = weights(**sizes)
    chance = torch.rand(40, batch, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    memory, last = beginning(given, batch)
    expected_memory = memory.clone()
    expected, expected_last = in_torch(given, expected_memory, last.clone(), 5, temperature, chance)
    assert torch.equal(compiled_steps(given, memory, last, 5, temperature, chance), expected)
    assert torch.equal(last, expected_last)
    # A few hundred sums and products of numbers of size 1 in each of four layers.
    torch.testing.assert_close(memory, expected_memory, rtol=1e-11, atol=1e-11)
    assert temperature == 0 or expected.unique().numel() > 1


@needs_a_compiler
def test_single_precision_is_compiled_too():
    given = weights(dtype=torch.float32)
    memory, last = beginning(given, 1)
    for position in range(30):
        expected = memory.clone()
        upto = one_step(given, expected, last, position).double().softmax(-1).cumsum(-1)[0]
        edges = torch.cat([upto.new_zeros(1), upto])
        widest = int(edges.diff().argmax())
        chance = edges[widest : widest + 2].mean().reshape(1, 1)  # far from where rounding could decide
        assert compiled_steps(given, memory, last, position, 1.0, chance).tolist() == [[widest]]
        torch.testing.assert_close(memory, expected, rtol=1e-5, atol=1e-5)


@needs_a_compiler
def test_many_calls_are_as_good_as_one(monkeypatch):
    given, chance = weights(), torch.rand(20, 2, dtype=torch.float64)
    found = []
    for at_once in (4096, 6, 1):
        monkeypatch.setattr(wavenet_steps, "AT_ONCE", at_once)
        memory, last = beginning(given, 2)
        found.append((compiled_steps(given, memory, last, 0, 1.0, chance), memory, last))
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@needs_a_compiler
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w, m, x, c: (w, m, x[:1], c[:, :1]), "memory must be"),
        (lambda w, m, x, c: (w, m, x[:, :-1].contiguous(), c), "last must be"),
        (lambda w, m, x, c: (w, m[:-1], x, c), "memory must be"),
        (lambda w, m, x, c: (w, m, x, c[:, :1]), "chance must be"),
        (lambda w, m, x, c: (w, m.transpose(1, 2).contiguous().transpose(1, 2), x, c), "must be contiguous"),
        (lambda w, m, x, c: (w, m.float(), x, c), "must be torch.float64"),
        (lambda w, m, x, c: (w, m, x, c.float()), "chance must be float64"),
        (lambda w, m, x, c: (dataclasses.replace(w, head=w.head[:, :-1]), m, x, c), "head must be"),
        (lambda w, m, x, c: (dataclasses.replace(w, dilation=w.dilation * 0), m[:0], x, c), "numbers from 1 to"),
    ],
)
def test_what_c_would_misread_is_refused(change, said):
    given = weights()
    state = beginning(given, 2), torch.rand(3, 2, dtype=torch.float64)

    def steps():
        weights, memory, last, chance = change(given, *state[0], state[1])
        return compiled_steps(weights, memory, last, 0, 1.0, chance)

    with pytest.raises((ValueError, TypeError), match=said):
        steps()


@needs_a_compiler
def test_dilations_that_are_changed_by_hand_do_not_move_what_c_writes():
    found = []
    for changed in (1, 10**9):
        given, chance = weights(), torch.rand(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        memory, last = beginning(given, 2)
        given.dilation.mul_(changed)
        found.append(compiled_steps(given, memory, last, 0, 1.0, chance))
    assert torch.equal(*found)


@needs_a_compiler
def test_samples_do_not_follow_the_default_device():
    given, chance = weights(), torch.rand(20, 2, dtype=torch.float64)
    memory, last = beginning(given, 2)
    with torch.device("meta"):
        assert compiled_steps(given, memory, last, 0, 1.0, chance).device.type == "cpu"


@pytest.mark.parametrize(
    ("temperature", "levels"),
    [(1.0, [0, 0, 1, 1, 2, 2]), (0.5, [0, 1, 1, 1, 1, 2]), (0.0, [1] * 6), (1e-300, [1] * 6)],
)
def test_a_draw_is_the_stretch_that_holds_the_chance(temperature, levels):
    logits = torch.tensor([1.0, 2.0, 1.0]).log().expand(6, 3)  # stretches 1/4, 1/2, 1/4; at half the heat 1/6, 4/6, 1/6
    chance = torch.tensor([0.0, 0.24, 0.26, 0.74, 0.76, 1 - 2**-53], dtype=torch.float64)
    assert drawn_level(logits, temperature, chance).tolist() == levels


def test_it_is_said_why_steps_are_not_compiled():
    assert why_no_compiled_steps(torch.zeros(1, dtype=torch.bfloat16)) == "no compiled numbers of type torch.bfloat16"
    assert why_no_compiled_steps(torch.zeros(1, device="meta")) == "no compiled steps on meta"
