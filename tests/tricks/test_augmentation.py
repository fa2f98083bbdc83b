"""Augmentation: what each transformation may do, per picture, seeded, in every shape and dtype; bad input."""

import copy
import re

import pytest
import torch
from torch import nn

from lemmata.tricks import Augment, Crop, Cutout, Flip, Noise, Rotate, Shift, extended
from lemmata.tricks.augmentation import rotated

ALL = [Flip(), Flip(1.0, vertical=True), Shift(2), Crop(6, padding=1), Rotate(20), Noise(0.1), Cutout(3)]


def pictures(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


@pytest.mark.parametrize("part", ALL, ids=repr)
def test_the_same_generator_gives_the_same_pictures_and_leaves_the_global_one_alone(part: nn.Module):
    x, state = pictures(40, 8, 8), torch.get_rng_state()
    first = part(x, seeded())
    assert torch.equal(first, part(x, seeded()))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(5)
    again = part(x)
    torch.manual_seed(5)
    assert torch.equal(part(x), again)


@pytest.mark.parametrize("part", ALL, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_channels_are_changed_alike_in_every_dtype(part: nn.Module, dtype: torch.dtype):
    grey = pictures(9, 8, 8, dtype=dtype)
    coloured = grey[:, None].expand(-1, 3, -1, -1)
    y = part(coloured, seeded())
    assert y.dtype is dtype
    assert y.shape[:2] == (9, 3)
    if not isinstance(part, Noise):
        assert torch.equal(y[:, 0], y[:, 2])
        assert torch.equal(y[:, 1], part(grey, seeded()))


@pytest.mark.parametrize("part", ALL, ids=repr)
def test_evaluation_and_empty_batches_pass(part: nn.Module):
    quiet = copy.deepcopy(part).eval()
    x = pictures(4, 8, 8)
    assert torch.equal(quiet(x), x[:, 1:7, 1:7] if isinstance(part, Crop) else x)
    assert part(pictures(0, 8, 8)).shape[0] == 0
    assert part(pictures(1, 8, 8)).shape[0] == 1


@pytest.mark.parametrize("part", [each for each in ALL if not isinstance(each, Noise) and getattr(each, "p", 0) < 1])
def test_pictures_are_changed_one_by_one(part: nn.Module):
    same = pictures(1, 8, 8).expand(64, 8, 8)
    assert len(part(same, seeded()).flatten(1).unique(dim=0)) > 1


def test_a_flip_turns_over_or_not():
    x = pictures(400, 3, 4)
    y = Flip(0.25)(x, seeded())
    over = (y == x.flip(-1)).all(2).all(1)
    assert 60 < int(over.sum()) < 140
    assert torch.equal(y[~over], x[~over])
    assert torch.equal(Flip(1.0, vertical=True)(x), x.flip(-2))
    assert torch.equal(Flip(0.0)(x), x)


@pytest.mark.parametrize("fill", [0.0, -1.5])
def test_shifts_are_all_whole_shifts(fill: float):
    x = pictures(1, 5, 7) + 1
    moved = {tuple(y.flatten().tolist()) for y in Shift(1, fill)(x.expand(300, 5, 7), seeded())}
    wide = nn.functional.pad(x, (1, 1, 1, 1), value=fill)[0]
    wanted = {tuple(wide[i : i + 5, j : j + 7].flatten().tolist()) for i in range(3) for j in range(3)}
    assert moved == wanted
    assert torch.equal(Shift(0)(x), x)


def test_crops_are_all_windows():
    x = torch.arange(30.0).view(1, 5, 6)
    found = {int(y[0, 0]) for y in Crop(4)(x.expand(300, 5, 6), seeded())}
    assert found == {0, 1, 2, 6, 7, 8}


def test_rotations_by_quarters_are_exact_and_back_again_is_near():
    x = pictures(2, 3, 8, 8, dtype=torch.double)
    quarter = torch.full((2,), torch.pi / 2, dtype=torch.double)
    torch.testing.assert_close(rotated(x, quarter), torch.rot90(x, 1, (-2, -1)))
    smooth = torch.cos(torch.linspace(-1.5, 1.5, 64)).outer(torch.cos(torch.linspace(-1.5, 1.5, 64)))[None, None]
    back = rotated(rotated(smooth, torch.tensor([0.3])), torch.tensor([-0.3]))
    assert (back - smooth)[..., 16:48, 16:48].abs().max() < 0.01


@pytest.mark.parametrize("autocast", [False, True])
def test_rotations_are_as_exact_in_coarse_numbers(autocast: bool):
    x, angle = pictures(3, 1, 28, 28), torch.tensor([0.1, 0.2, -0.3])
    x = x if autocast else x.bfloat16().float()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = rotated(x if autocast else x.bfloat16(), angle)
    wanted = rotated(x.double(), angle.double())
    assert (found.double() - wanted).abs().max() < (1e-5 if autocast else 2**-8)  # half a unit in the last place of 1


def test_a_long_picture_keeps_its_angles():
    long = torch.zeros(1, 1, 9, 21)
    long[..., 4, 7:14] = 1  # a bar across the middle
    up = rotated(long, torch.tensor([torch.pi / 2]))
    assert up[0, 0, 1:8, 10].min() > 0.99
    assert up[..., :9].abs().max() < 1e-5


def test_a_hole_is_where_the_square_lies():
    y = Cutout(3, fill=9.0)(pictures(200, 10, 10), seeded())
    sizes = y.eq(9).sum((1, 2))
    assert set(sizes.tolist()) == {4, 6, 9}
    assert torch.equal(y[y != 9], pictures(200, 10, 10)[y != 9])


def test_noise_has_its_deviation():
    assert Noise(0.2)(torch.zeros(10, 50, 50), seeded()).std().item() == pytest.approx(0.2, rel=0.03)


def test_they_compose_and_learn_through():
    augment = Augment(Crop(6, padding=1), Flip(), Rotate(10), Cutout(2), Noise(0.1))
    x = pictures(4, 1, 8, 8, dtype=torch.double).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: augment(x, seeded()), x, atol=1e-4)
    model = nn.Sequential(augment, nn.Flatten(), nn.Linear(36, 2)).double().eval()
    assert torch.equal(model(x), model(x))
    assert torch.equal(augment.eval()(x), x[..., 1:7, 1:7])


def test_data_are_extended_in_order():
    x, y = pictures(3, 4), torch.tensor([0, 1, 2])
    more, labels = extended(x, y, [torch.positive, torch.neg])
    assert torch.equal(more, torch.cat([x, -x]))
    assert labels.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Flip(1.5), "p must be in [0, 1], got 1.5"),
        (lambda: Shift(-1), "pixels must be >= 0, got -1"),
        (lambda: Crop(9)(torch.rand(2, 8, 8)), "size must be at most that of the padded pictures, got 9"),
        (lambda: Rotate(200), "degrees must be >= 0 and <= 180, got 200"),
        (lambda: Noise(-1), "sigma must be >= 0, got -1"),
        (lambda: Cutout(0), "size must be >= 1, got 0"),
        (lambda: Flip()(torch.rand(8, 8)), "x must hold floating-point pictures, (batch, height, width) or"),
        (lambda: Flip()(torch.ones(2, 8, 8).byte()), "got torch.uint8 of shape (2, 8, 8): use x.float() / 255"),
        (
            lambda: extended(torch.rand(2, 3), torch.rand(2), [torch.neg, lambda x: x[1:]]),
            "transformation 1 must keep all 2 points, it returned 1",
        ),
        (lambda: extended(torch.rand(2, 3), torch.rand(2), []), "transformations must have one entry or more"),
        (lambda: extended(torch.rand(2, 3), torch.rand(3), [torch.neg]), "y must have an entry for each of 2 points"),
    ],
)
def test_bad_input_is_told(call, told: str):
    with pytest.raises(ValueError, match=re.escape(told)):
        call()


@pytest.mark.usefixtures("unchecked")
def test_only_transformations_are_composed():
    with pytest.raises(TypeError, match="transformations must be transformations such as Flip"):
        Augment(torch.neg)  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_a_gpu():
    augment, x = Augment(*ALL), pictures(16, 3, 8, 8).cuda()
    there = torch.Generator("cuda").manual_seed(0)
    y = augment(x, there)
    assert y.device.type == "cuda"
    assert torch.equal(y, augment(x, there.manual_seed(0)))
