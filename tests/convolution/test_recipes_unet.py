"""What the recipe for U-Net promises: scenes whose parts share nothing, scores, a baseline that loses, pictures."""

import itertools
import re
from dataclasses import replace

import pytest
import torch

from lemmata.convolution import recipes_unet
from lemmata.convolution.recipes_unet import (
    BASELINES,
    UNetSceneConfig,
    find_hidden_objects,
    hidden_objects,
    object_by_threshold,
)
from lemmata.marks import usual_settings
from lemmata.measure.segmentation_measures import intersection_over_union
from lemmata.train.loop import run_experiment


@pytest.mark.parametrize("data", BASELINES)
@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_scenes_are_pictures_with_one_object_inside(data, part):
    scenes = hidden_objects(data, part, 40)
    assert scenes.x.shape == scenes.y.shape == (40, 48, 48)
    assert scenes.x.dtype is torch.float32
    assert ((scenes.x >= 0) & (scenes.x <= 1)).all()
    for y in scenes.y:
        rows, columns = y.nonzero(as_tuple=True)
        assert len(rows) > 0
        assert rows.max() - rows.min() < 28
        assert columns.max() - columns.min() < 28


def test_around_the_object_a_scene_is_the_photograph():
    (scene,) = hidden_objects("glyphs", "test", 1).x
    shown = hidden_objects("glyphs", "test", 1).y[0] == 1
    (cat,) = recipes_unet.load("photos").parts["cat"].x.mean(1)
    both = torch.stack([cat, cat.flip(1)])
    windows = both.unfold(1, 48, 1).unfold(2, 48, 1)  # (2, 145, 145, 48, 48)
    off = torch.where(shown, 0.0, (windows - scene).abs()).amax((3, 4))
    assert off.min() == 0
    assert (off == 0).sum() == 1


PARTS = ("train", "validation", "test")


def test_scenes_follow_their_seed_and_part():
    first = hidden_objects("glyphs", "train", 5)
    assert torch.equal(first.x, hidden_objects("glyphs", "train", 5).x)
    drawn = {tuple(hidden_objects("glyphs", part, 5, seed).x[0, 0].tolist()) for part in PARTS for seed in (0, 1)}
    assert len(drawn) == 6


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(PARTS, 2)])
def test_parts_share_no_letters_and_no_furniture(one, other):
    for pieces in (recipes_unet._letter_images, recipes_unet._furniture_images):
        known, held_out = ({tuple(piece.flatten().tolist()) for piece in pieces(part)} for part in (one, other))
        assert len(known & held_out) < 0.05 * len(held_out)  # some alphabets share a letter or two


def test_what_is_kept_for_the_validation_is_a_sixth_of_what_is_not_for_the_test():
    alphabets = recipes_unet.load("glyphs").train.alphabet
    kept = alphabets[recipes_unet._belongs_to_part("validation", alphabets)]
    assert len(kept.unique()) == pytest.approx(len(alphabets.unique()) / 6, abs=1)
    assert not set(kept.tolist()) & set(alphabets[recipes_unet._belongs_to_part("train", alphabets)].tolist())
    assert [len(recipes_unet._furniture_images(part)) for part in PARTS] == [8 * 201, 8 * 40, 8 * 59]


def test_the_validation_sees_the_side_of_a_photograph_that_is_not_learnt_from():
    generator, photos = torch.Generator().manual_seed(0), recipes_unet.load("photos").parts
    camera = photos["camera"].x[0].mean(0)
    for seen in recipes_unet._grey_photographs("validation", 20, generator):
        assert torch.equal(seen, camera[:, 192:]) or torch.equal(seen.flip(1), camera[:, 192:])
    learnt = [photos[name].x[0].mean(0)[:192, :192] for name in ("camera", "coffee")]
    for seen in recipes_unet._grey_photographs("train", 20, generator):
        assert any(torch.equal(way, picture) for way in (seen, seen.flip(1)) for picture in learnt)


def test_what_is_watched_on_the_way_is_not_the_test():
    experiment = find_hidden_objects("furniture", UNetSceneConfig(width=1, levels=1, scenes=2))
    assert experiment.validation
    assert torch.equal(experiment.validation.x, hidden_objects("furniture", "validation", 300).x)
    assert torch.equal(experiment.test.x, hidden_objects("furniture", "test", 300).x)


def test_silhouettes_are_closed():
    pictures = recipes_unet._furniture_images("test")
    assert pictures.shape == (8 * 59, 28, 28)
    assert set(pictures.unique().tolist()) == {0.0, 1.0}
    covered = pictures.mean((1, 2))
    assert covered.min() > 0.01
    assert covered.max() < 0.9
    half = len(pictures) // 2  # from behind, everything is mirrored: but for points on the border of two pixels
    assert (pictures[:half] != pictures[half:].flip(2)).float().mean() < 0.08


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": "digits"}, "data must be one of glyphs, furniture, got 'digits'"),
        ({"part": "dev"}, "part must be one of train, test, validation, got 'dev'"),
        ({"count": 0}, "count must be >= 1, got 0"),
    ],
)
def test_scenes_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        hidden_objects(**given)


@pytest.mark.parametrize(("given", "fix"), [({"levels": 5}, "levels of at most 4"), ({"same": False}, "--no-same")])
def test_networks_that_leave_pixels_without_a_class_are_refused(given, fix):
    with pytest.raises(ValueError, match=f"scenes have 48 x 48 pixels, all of which get a class: .*{fix}"):
        UNetSceneConfig(**given)


@pytest.mark.parametrize("bright", [True, False])
def test_the_smaller_group_is_the_object(bright):
    picture = torch.full((1, 6, 6), 0.2)
    picture[0, 2:4, 2:4] = 0.8
    found = object_by_threshold(picture if bright else 1 - picture)
    assert torch.equal(found, picture > 0.5)


@pytest.mark.measures("convolution.recipes_unet", "Otsu's threshold")
@pytest.mark.parametrize("data", BASELINES)
def test_the_baseline_is_what_the_threshold_reaches(data):
    scenes = hidden_objects(data, "test", recipes_unet.HELD_OUT)
    reached = intersection_over_union(object_by_threshold(scenes.x), scenes.y == 1).mean().item()
    assert reached == pytest.approx(BASELINES[data]["Otsu's threshold"], abs=0.005)


def test_turned_scenes_are_the_same_scenes():
    scenes = hidden_objects("glyphs", "train", 3)
    torch.manual_seed(0)
    seen = set()
    for _ in range(60):
        x, y = recipes_unet._turn_batch(scenes)
        assert torch.equal(y.sum((1, 2)), scenes.y.sum((1, 2)))
        as_it_is = torch.where(y == 1, x, 0).sum()
        negative = torch.where(y == 1, 1 - x, 0).sum()
        wanted = torch.where(scenes.y == 1, scenes.x, 0).sum()
        assert min((as_it_is - wanted).abs(), (negative - wanted).abs()) < 1e-2
        seen.add(tuple(y[0].flatten().tolist()))
    assert len(seen) == 8


def test_unet_beats_the_threshold_after_a_few_steps():
    config, options = usual_settings(find_hidden_objects, "unet")
    options = replace(options, epochs=5, warmup=5, batch_size=8, evaluate=5)
    experiment = find_hidden_objects("glyphs", replace(config, scenes=400), options)
    assert experiment.validation
    experiment = replace(experiment, test=experiment.test[:60], validation=experiment.validation[:20])
    run_experiment(experiment)
    assert experiment.loss
    assert experiment.predict
    assert experiment.picture
    system = experiment.system.eval().cpu()  # where the test examples are
    with torch.no_grad():
        scores = experiment.loss(system, experiment.test)
        placed = experiment.predict(system, experiment.test)
    assert scores["iou"] > 1.3 * BASELINES["glyphs"]["Otsu's threshold"]
    assert 0.8 < scores["accuracy"] <= 1
    truth = experiment.test.y.double()
    near = placed["pixels"] > 0
    middle = (truth.sum(2) @ torch.arange(48.0, dtype=torch.float64)) / truth.sum((1, 2))
    assert (placed["row"] - middle)[near].abs().median() < 5
    figure, labels = experiment.picture(system), ["given", "truth", "found", "wrong", "threshold"]
    assert [mark.label.partition(",")[0] for mark in figure.marks] == labels * 4
