"""The embedded point clouds: counts, geometry, parts, credits, and what a bounding box tells."""

from collections import Counter

import pytest
import torch

from lemmata.data import furniture

CHAIR, TABLE, SOFA = 0, 1, 2


def test_there_are_300_models_in_8_classes():
    data = furniture()
    counts = dict(zip(data.classes, data.everything.y.bincount().tolist(), strict=True))
    expected = {"chair": 49, "table": 47, "sofa": 38, "storage": 36, "lamp": 32, "plant": 29}
    assert counts == expected | {"door-window": 34, "vessel": 35}
    assert (len(data.train), len(data.test)) == (241, 59)


def test_clouds_are_centred_in_the_unit_sphere_and_sorted_by_height():
    x = furniture().everything.x
    assert x.shape == (300, 512, 3)
    assert x.dtype is torch.float32
    assert x.is_contiguous()
    assert x.mean(1).abs().max() < 0.01
    lengths = x.norm(dim=2).amax(1)
    assert 0.97 < lengths.min() < lengths.max() < 1.01  # up to the rounding to 1/127
    assert (x[:, :, 1].diff(dim=1) >= -1e-6).all()


def test_parts_are_known_for_34_chairs_tables_and_sofas():
    data = furniture()
    for part, expected in (("train", 28), ("test", 6)):
        known = (data.parts[part].part != -100).any(1)
        assert known.sum() == expected
        assert set(data.parts[part].y[known].tolist()) <= {CHAIR, TABLE, SOFA}
    marks = data.everything.part
    assert set(marks.unique().tolist()) == {-100, 0, 1}
    assert (marks == 0).sum() / (marks != -100).sum() == pytest.approx(0.70, abs=0.05)
    assert data.extra["parts"] == ("body", "support")


def test_supports_stand_below_bodies():
    data = furniture().everything
    heights = [data.x[:, :, 1][data.part == part].mean() for part in (0, 1)]
    assert heights[0] > heights[1] + 0.2


def test_cross_entropy_leaves_unknown_points_out():
    part = furniture().train.part
    logits = torch.zeros(*part.shape, 2)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), part.flatten())
    assert loss == pytest.approx(0.6931, abs=1e-3)


def test_every_model_has_its_credit():
    data = furniture()
    licences = Counter(model.licence for part in ("train", "test") for model in data.extra[part])
    assert licences == {"CC-BY-3.0": 191, "CC0-1.0": 70, "CC-BY-3.0-US": 39}
    assert [len(data.extra[part]) for part in ("train", "test")] == [241, 59]
    sofas = [model.name for model, y in zip(data.extra["train"], data.train.y, strict=True) if y == SOFA]
    assert sum("ofa" in name or "ouch" in name for name in sofas) > len(sofas) / 2
