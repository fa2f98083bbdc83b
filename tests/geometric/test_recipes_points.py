"""The recipes of PointNet: their parts, baselines and variations, what few steps reach, what is shown and kept."""

import dataclasses
import math

import pytest
import torch

import lemmata
from lemmata.data.examples import Examples
from lemmata.geometric.pointnet import PointNetClassifier, PointNetSegmenter
from lemmata.geometric.recipes_points import (
    ABOVE,
    CLASSES,
    PARTS,
    SIDE,
    PointCloudConfig,
    about_the_vertical,
    classify_furniture,
    mean_intersection_over_union,
    segment_furniture,
    split,
    thinned,
    varied,
)
from lemmata.train import Options, run_experiment

SMALL = PointCloudConfig(width=32, points=32)
FEW = Options(epochs=1, batch_size=48, lr=2e-3, device="cpu")
UNVARIED = {"rotation": 0.0, "stretch": 0.0, "jitter": 0.0}


def clouds(count=4, points=20):
    """Each point knows its number by its height, and its part by its number."""
    x = torch.randn(count, points, 3)
    x[..., 1] = torch.arange(points)
    return Examples(x=x, y=torch.arange(count), part=torch.arange(points).expand(count, -1) % 3)


# --- What is learnt from, and what a simpler way reaches ---


@pytest.mark.parametrize(("make", "sizes"), [(classify_furniture, (205, 36, 59)), (segment_furniture, (24, 4, 6))])
def test_the_validation_has_pieces_of_every_class_and_shares_none(make, sizes):
    experiment = make(config=SMALL, options=FEW)
    parts = (experiment.train, experiment.validation, experiment.test)
    assert tuple(map(len, parts)) == sizes
    assert experiment.validation.y.unique().tolist() == experiment.train.y.unique().tolist()
    seen = {cloud.numpy().tobytes() for part in parts for cloud in part.x}
    assert len(seen) == sum(sizes)


def test_every_sixth_of_a_class_is_held_out():
    examples = Examples(x=torch.arange(20), y=torch.tensor([0, 1] * 10))
    train, held_out = split(examples)
    assert held_out.x.tolist() == [10, 11]
    assert sorted([*train.x.tolist(), 10, 11]) == list(range(20))


@pytest.mark.measures("geometric.recipes_points", "nearest mean of sizes and spreads")
def test_the_nearest_mean_of_sizes_and_spreads_is_as_good_as_told():
    experiment = classify_furniture(config=SMALL, options=FEW)

    def measured(x):
        return torch.cat([x.amax(1) - x.amin(1), x.std(1)], 1)

    train, test = measured(experiment.train.x), measured(experiment.test.x)
    means = torch.stack([train[experiment.train.y == c].mean(0) for c in range(8)])
    nearest = torch.cdist(test / train.std(0), means / train.std(0)).argmin(1)
    right = (nearest == experiment.test.y).double().mean().item()
    assert right == pytest.approx(CLASSES["nearest mean of sizes and spreads"], abs=5e-4)


@pytest.mark.measures("geometric.recipes_points", "all body", "the lowest 36 % of the height")
def test_the_majority_and_a_height_are_as_good_as_told():
    experiment = segment_furniture(config=SMALL, options=FEW)

    def below(part, height):
        up = part.x[..., 1]
        low, high = up.amin(1, keepdim=True), up.amax(1, keepdim=True)
        return ((up - low) / (high - low) < height).long()

    def score(part, named):
        return mean_intersection_over_union(named, part.part, 2)

    test = experiment.test
    assert (experiment.train.part == 0).sum() > (experiment.train.part == 1).sum()
    assert score(test, torch.zeros_like(test.part)) == pytest.approx(PARTS["all body"], abs=5e-4)
    heights = [step / 100 + 1e-4 for step in range(100)]  # off the grid of the stored coordinates
    best = max(heights, key=lambda height: score(experiment.train, below(experiment.train, height)))
    assert best == pytest.approx(0.36, abs=0.011)
    assert score(test, below(test, 0.36)) == pytest.approx(PARTS["the lowest 36 % of the height"], abs=5e-4)


# --- Clouds as they might also have been measured ---


def test_points_keep_their_part_and_none_comes_twice():
    seen = varied(clouds(), PointCloudConfig(points=12, **UNVARIED))
    assert seen.x.shape == (4, 12, 3)
    heights = seen.x[..., 1].long()
    assert torch.equal(seen.part, heights % 3)
    assert all(len(set(row.tolist())) == 12 for row in heights)
    assert not torch.equal(heights[0], heights[1])
    assert varied(clouds(), PointCloudConfig(points=100)).x.shape == (4, 20, 3)  # all there are


def test_a_turn_keeps_heights_and_lengths_and_stays_within_its_angle():
    turns = about_the_vertical(torch.tensor([0.3, -2.0], dtype=torch.double))
    eye = torch.eye(3, dtype=torch.double).expand(2, 3, 3)
    torch.testing.assert_close(turns @ turns.mT, eye)
    torch.testing.assert_close(turns[:, 1], eye[:, 1])
    torch.testing.assert_close(torch.linalg.det(turns), torch.ones(2, dtype=torch.double))
    x = torch.zeros(500, 1, 3)
    x[..., 2] = 1.0
    seen = varied(Examples(x=x, y=torch.zeros(500), part=torch.zeros(500, 1).long()), PointCloudConfig(
        **UNVARIED | {"rotation": 30.0}
    ))  # fmt: skip
    angles = torch.atan2(seen.x[..., 0], seen.x[..., 2]).rad2deg()
    assert -30.001 < angles.min() < -25 < 25 < angles.max() < 30.001


def test_axes_are_stretched_by_at_most_the_fraction_and_sides_are_exchanged():
    x = torch.ones(500, 1, 3)
    examples = Examples(x=x, y=torch.zeros(500), part=torch.zeros(500, 1).long())
    seen = varied(examples, PointCloudConfig(**UNVARIED | {"stretch": 0.25})).x[:, 0]
    assert 0.75 < seen.abs().min() < 0.78 < 1.22 < seen.abs().max() < 1.25
    assert (seen[:, 1:] > 0).all()
    mirrored = (seen[:, 0] < 0).double().mean()
    assert 0.3 < mirrored < 0.7  # 9 standard deviations of a fair coin
    assert seen.std(0)[1:].min() > 0.1  # each cloud and each axis by itself
    shaken = varied(examples, PointCloudConfig(**UNVARIED | {"jitter": 0.5})).x[:, 0, 1:] - 1
    assert shaken.std().item() == pytest.approx(0.5, rel=0.15)  # 6 standard deviations for 1000 numbers


def test_a_cloud_alone_is_seen_in_two_ways():
    seen = varied(clouds(1), PointCloudConfig(points=12))
    assert seen.x.shape == (2, 12, 3)
    assert seen.y.tolist() == [0, 0]
    assert not torch.equal(seen.x[0], seen.x[1])


# --- Scores ---


def test_a_mean_over_parts_and_clouds_without_unknown_points():
    part = torch.tensor([[0, 0, 0, 1], [0, 0, -100, -100]])
    named = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 0]])
    # first cloud 2/3 and 1/2; in the second both points of part 0, and part 1 neither is there nor found
    assert mean_intersection_over_union(named, part, 2) == pytest.approx((2 / 3 + 1 / 2 + 1 + 1) / 4)
    assert mean_intersection_over_union(part.clamp(min=0), part, 2) == 1
    assert mean_intersection_over_union(named, part, 3) == pytest.approx((2 / 3 + 1 / 2 + 1 + 1 + 2) / 6)


def test_every_third_of_the_chosen_is_left():
    chosen = torch.tensor([[1, 0, 1, 1, 1, 0, 0], [0, 1, 1, 0, 0, 0, 0], [0] * 7]).bool()
    assert thinned(chosen).int().tolist() == [[1, 0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0, 0], [0] * 7]


def test_scores_count_what_is_right_and_known():
    experiment = classify_furniture(config=SMALL, options=FEW)
    named = experiment.system.eval()(experiment.test.x[:10]).argmax(1)
    asked = Examples(x=experiment.test.x[:10], y=torch.where(torch.arange(10) < 7, named, 7 - named))
    assert experiment.loss(experiment.system, asked)["accuracy"] == 0.7
    experiment = segment_furniture(config=SMALL, options=FEW)
    few = experiment.test[:2]
    named = experiment.system.eval()(few.x).argmax(-1)
    part = torch.where(torch.arange(512) < 128, named, torch.where(torch.arange(512) < 256, 1 - named, -100))
    found = experiment.loss(experiment.system, Examples(x=few.x, part=part))
    assert found["accuracy"] == 0.5
    assert found["iou"] == mean_intersection_over_union(named, part, 2)


# --- Runs ---


@pytest.mark.parametrize("make", [classify_furniture, segment_furniture])
@pytest.mark.parametrize("transformed", [True, False])
def test_a_few_steps_can_be_run_scored_shown_and_used(make, transformed):
    experiment = make(config=dataclasses.replace(SMALL, transformed=transformed), options=FEW)
    run = run_experiment(experiment)
    assert 0 <= run.scores[experiment.metric] <= 1
    assert (run.scores["penalty"] > 0) == transformed
    rebuilt = type(experiment.system)(**experiment.arguments).eval()
    rebuilt.load_state_dict(run.system.state_dict())
    few = experiment.test[:5]
    said = experiment.predict(rebuilt, few)
    if make is classify_furniture:
        assert torch.equal(said["class"], rebuilt(few.x).argmax(1))
        assert ((said["probability"] > 1 / 8) & (said["probability"] <= 1)).all()
    else:
        assert said.keys() == {"fraction body", "fraction support"}
        torch.testing.assert_close(
            said["fraction body"], (rebuilt(few.x)[..., 0] > rebuilt(few.x)[..., 1]).double().mean(1)
        )
        torch.testing.assert_close(said["fraction body"] + said["fraction support"], torch.ones(5).double())
    rebuilt.train()
    figure = experiment.picture(rebuilt)
    assert rebuilt.training
    drawn = sum(len(mark.x) for mark in figure.marks)
    assert drawn >= 512 * (8 if make is classify_furniture else 6) / 3 > drawn / 2


def test_the_picture_shows_the_points_that_decide():
    experiment = classify_furniture(config=SMALL, options=FEW)
    system = experiment.system.eval()
    figure = experiment.picture(system)
    other, deciding = figure.marks
    assert deciding.label == "points that decide"
    assert 8 * 512 / 3 - 8 * 11 < len(other.x) <= 8 * 512 / 3  # of the first test piece of each class
    chosen = experiment.test[[experiment.test.y.tolist().index(number) for number in range(8)]]
    named = system(chosen.x).argmax(1).tolist()
    words = [word.split(" (named ") for word in figure.note.split(", ")]
    assert [word[0] for word in words] == list(experiment.classes)
    assert [word[-1].rstrip(")") for word in words] == [experiment.classes[k] for k in named]
    shown = torch.tensor([deciding.x, deciding.y]).mT
    for number, cloud in enumerate(chosen.x):
        seen = cloud @ about_the_vertical(torch.tensor(SIDE))
        up = math.cos(ABOVE) * seen[:, 1] - math.sin(ABOVE) * seen[:, 2]
        places = torch.stack([seen[:, 0] + 2 * (number % 4), up - 2 * (number // 4)], -1)
        kept = (places[:, None] - shown).norm(dim=-1).amin(1) < 1e-4
        assert 1 <= kept.sum() < 100  # about one for each of 32 numbers of the whole's feature, at most
        # T-Nets do nothing at first: the points that decide are enough
        torch.testing.assert_close(system(cloud[None, kept]), system(cloud[None]))


def test_the_penalty_counts_by_its_weight():
    def lost(penalty):
        experiment = classify_furniture(config=dataclasses.replace(SMALL, orthogonality=penalty), options=FEW)
        for part in (experiment.system.features.feature_transform,):
            torch.nn.init.constant_(part.head[-1].bias, 0.1)
        return experiment.loss(experiment.system.eval(), experiment.test[:4])

    without, with_it = lost(0.0), lost(2.0)
    assert with_it["penalty"] > 1
    torch.testing.assert_close(with_it["loss"], without["loss"] + 2 * with_it["penalty"])


@pytest.mark.parametrize("words", [{"batch_size": 23}, {"batch_size": 4, "accumulate": 4}, {"precision": "float64"}])
def test_single_clouds_and_doubles_can_be_learnt_from(words):
    experiment = segment_furniture(config=SMALL, options=dataclasses.replace(FEW, **words))
    assert math.isfinite(run_experiment(experiment).scores["loss"])
    assert experiment.picture(experiment.system).marks


@pytest.mark.parametrize(
    ("make", "kind"), [(classify_furniture, PointNetClassifier), (segment_furniture, PointNetSegmenter)]
)
def test_training_goes_on_where_it_stopped_and_gives_the_same_bits(make, kind, tmp_path):
    for folder, epochs in (("once", [2]), ("twice", [1, 2])):
        for number, last in enumerate(epochs):
            experiment = make(config=SMALL, options=dataclasses.replace(FEW, epochs=last))
            run_experiment(experiment, out=tmp_path / folder, resume=number > 0)
    first, second = (lemmata.load(tmp_path / folder) for folder in ("once", "twice"))
    assert isinstance(first, kind)
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: PointCloudConfig(width=0), ValueError, "width must be >= 1, got 0"),
        (lambda: PointCloudConfig(points=0), ValueError, "points must be >= 1, got 0"),
        (lambda: PointCloudConfig(transformed=1), TypeError, "transformed must be True or False, got 1"),
        (lambda: PointCloudConfig(orthogonality=-1.0), ValueError, "orthogonality must be >= 0, got -1.0"),
        (lambda: PointCloudConfig(rotation=-1.0), ValueError, "rotation must be >= 0, got -1.0"),
        (lambda: PointCloudConfig(jitter=math.nan), ValueError, "jitter must be"),
        (lambda: PointCloudConfig(stretch=1.0), ValueError, r"stretch must be in \[0, 1\), got 1.0"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_answered_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
