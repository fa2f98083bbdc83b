"""The embedded pictures: numbers, ranges, which way is up, and what simple methods reach on them."""

import numpy as np
import pytest
import torch

from lemmata.data import digits, fashion, glyphs, photos


def accuracy(classifier, data):
    (x, y), (test_x, test_y) = data.train, data.test
    return classifier.fit(x.flatten(1).numpy(), y.numpy()).score(test_x.flatten(1).numpy(), test_y.numpy())


@pytest.mark.parametrize("load", [digits, fashion, glyphs])
def test_pictures_are_float32_in_the_unit_interval_with_whole_labels(load):
    for part in load().parts.values():
        assert part.x.dtype is torch.float32
        assert part.y.dtype is torch.int64
        assert part.x.min() == 0
        assert part.x.max() == 1


def test_every_digit_is_there_and_upright():
    images, labels = digits().everything
    assert len(images) == 1797
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    zeros = images[labels == 0].mean(0)
    assert zeros[3:5, 3:5].mean() < 0.2 < zeros[3:5, 1:3].mean()  # a ring: empty in the middle
    sevens = images[labels == 7].mean(0)
    assert sevens[:3].sum() > 1.3 * sevens[5:].sum()  # the bar is on top


def test_a_logistic_regression_reads_958_digits_of_1000():
    linear = pytest.importorskip("sklearn.linear_model")
    assert accuracy(linear.LogisticRegression(max_iter=2000), digits()) == pytest.approx(0.958, abs=0.004)


def test_fashion_has_200_and_100_pictures_a_class():
    data = fashion()
    assert data.train.y.bincount().tolist() == [200] * 10
    assert data.test.y.bincount().tolist() == [100] * 10
    assert data.classes[0] == "T-shirt/top"
    assert len(data.extra["train_index"].unique()) == 2000
    assert data.extra["test_index"].max() < 10_000


def test_three_neighbours_know_761_of_1000_articles():
    neighbours = pytest.importorskip("sklearn.neighbors")
    score = accuracy(neighbours.KNeighborsClassifier(3, algorithm="brute"), fashion())
    assert score == pytest.approx(0.761, abs=0.002)


def test_fashion_pictures_have_their_rows_summed_up():
    shirts = fashion().train.x[fashion().train.y == 0].mean(0)
    assert shirts[:, 12:16].mean() > 3 * shirts[:, :3].mean()  # ink in the middle, none at the border
    assert (fashion().train.x * 255).frac().abs().max() < 1e-3


def test_background_and_evaluation_share_no_alphabet():
    data = glyphs()
    seen, unseen = (set(part.alphabet.tolist()) for part in (data.train, data.test))
    assert (len(seen), len(unseen), len(seen & unseen)) == (120, 20, 0)
    assert (len(data.train.y.unique()), len(data.test.y.unique())) == (2364, 400)
    assert not set(data.train.y.tolist()) & set(data.test.y.tolist())
    assert len(data.classes) == len(set(data.classes)) == 2764
    assert (len(data.extra["alphabets"]), len(data.extra["styles"])) == (140, 231)
    assert set(data.test.y.bincount().tolist()) == {0, 3, 4}


def test_glyphs_are_bits_and_the_letters_they_say():
    data = glyphs()
    assert set(data.train.x.unique().tolist()) == {0.0, 1.0}
    letters = data.everything
    height, width = (28 - ink.argmax(1) - ink.flip(1).argmax(1) for ink in (letters.x.amax(2), letters.x.amax(1)))
    longer = torch.maximum(height, width)
    assert longer.max() == 22  # as they were scaled; a hairline may get lost in black and white
    assert (longer == 22).double().mean() > 0.99
    ls, ts = (letters.x[letters.y == data.classes.index(letter)] for letter in "LT")
    assert (ls[:, 14:].sum((1, 2)) > ls[:, :14].sum((1, 2))).all()  # upright
    assert (ls[:, :, :14].sum((1, 2)) > ls[:, :, 14:].sum((1, 2))).all()  # not mirrored
    assert (ts[:, :14].sum((1, 2)) > ts[:, 14:].sum((1, 2))).all()


def test_one_glyph_is_found_again_in_another_font():
    """One shot, 20 letters of all evaluation alphabets, cosine distance: 90.7 % with a blur, somewhat less without."""
    data, random = glyphs().test, np.random.default_rng(0)
    firsts = torch.tensor([int((data.y == y).nonzero()[0, 0]) for y in data.y.unique()])
    seconds = torch.tensor([int((data.y == y).nonzero()[1, 0]) for y in data.y.unique()])
    assert (data.style[firsts] != data.style[seconds]).all()
    blurred = torch.nn.functional.avg_pool2d(data.x[:, None], 3, 1, 1).flatten(1)
    unit = blurred / blurred.norm(dim=1, keepdim=True)
    right = []
    for _ in range(100):
        letters = torch.from_numpy(random.choice(400, 20, replace=False))
        nearest = (unit[seconds[letters]] @ unit[firsts[letters]].T).argmax(1)
        right.append((nearest == torch.arange(20)).float().mean())
    assert torch.stack(right).mean() == pytest.approx(0.907, abs=0.04)


def test_photographs_are_batches_of_one_with_channels_first():
    shapes = {name: tuple(part.x.shape) for name, part in photos().parts.items()}
    assert shapes == {"camera": (1, 1, 256, 256), "cat": (1, 3, 192, 192), "coffee": (1, 3, 192, 192)}
    for part in photos().parts.values():
        assert part.x.dtype is torch.float32
        assert part.x.is_contiguous()
        assert 0 <= part.x.min() < 0.1 < 0.8 < part.x.max() <= 1


def test_the_noisy_camera_has_20_6_decibel():
    camera = photos().parts["camera"].x[0, 0].numpy()
    noisy = np.clip(camera + 25 / 255 * np.random.default_rng(0).standard_normal(camera.shape), 0, 1)
    assert -10 * np.log10(((noisy - camera) ** 2).mean()) == pytest.approx(20.6, abs=0.15)
