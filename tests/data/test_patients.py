"""The embedded medical tables: scikit-learn's numbers, an honest split, and what simple methods reach."""

import numpy as np
import pytest
import torch

from lemmata.data import breast_cancer, diabetes, stored

SIZES = {"diabetes": (442, 10, 88), "breast_cancer": (569, 30, 113)}
LOADERS = {"diabetes": diabetes, "breast_cancer": breast_cancer}


@pytest.mark.parametrize("name", LOADERS)
def test_the_numbers_are_those_of_scikit_learn(name):
    sets = pytest.importorskip("sklearn.datasets")
    words = {"scaled": False} if name == "diabetes" else {}
    theirs = getattr(sets, f"load_{name}")(**words)
    kept = stored.stored_arrays(f"{name}.npz")
    assert np.array_equal(kept["x"], theirs.data)
    assert np.array_equal(kept["y"], theirs.target)
    assert kept["names"].tolist() == list(theirs.feature_names)
    data = LOADERS[name](standardised=False)
    rows, held = theirs.data.astype(np.float32), kept["split"] == 1
    assert np.array_equal(data.train.x.numpy(), rows[~held])
    assert np.array_equal(data.test.x.numpy(), rows[held])
    assert np.array_equal(data.test.y.numpy(), theirs.target[held])
    if name == "breast_cancer":
        assert data.classes == tuple(theirs.target_names)


@pytest.mark.parametrize("name", LOADERS)
def test_the_training_part_has_mean_zero_and_deviation_one(name):
    data = LOADERS[name]()
    rows, columns, test = SIZES[name]
    assert (data.train.x.shape, data.test.x.shape) == ((rows - test, columns), (test, columns))
    assert data.train.x.double().mean(0).abs().max() < 1e-6
    assert (data.train.x.double().std(0, correction=0) - 1).abs().max() < 1e-6
    raw = data.train.x.double() * data.extra["scale"] + data.extra["mean"]
    assert torch.allclose(raw.float(), LOADERS[name](standardised=False).train.x, rtol=1e-5, atol=1e-5)
    assert len(set(data.extra["names"])) == columns
    with pytest.raises(ValueError, match="standardised must be True or False, got 2"):
        LOADERS[name](standardised=2)


def test_benign_and_malignant_are_split_alike():
    data = breast_cancer()
    assert data.train.y.bincount().tolist() == [170, 286]
    assert data.test.y.bincount().tolist() == [42, 71]
    assert data.train.y.dtype is torch.int64
    assert diabetes().train.y.dtype is torch.float32


def test_simple_methods_reach_what_the_docstrings_say():
    linear = pytest.importorskip("sklearn.linear_model")
    (x, y), (test_x, test_y) = (map(torch.Tensor.numpy, part) for part in (breast_cancer().train, breast_cancer().test))
    assert linear.LogisticRegression(max_iter=5000).fit(x, y).score(test_x, test_y) == pytest.approx(0.973, abs=0.009)
    (x, y), (test_x, test_y) = (map(torch.Tensor.numpy, part) for part in (diabetes().train, diabetes().test))
    fitted = linear.LinearRegression().fit(x, y)
    assert fitted.score(test_x, test_y) == pytest.approx(0.573, abs=0.002)
    assert np.abs(fitted.predict(test_x) - test_y).mean() == pytest.approx(42.17, abs=0.05)
    assert np.abs(test_y - y.mean()).mean() == pytest.approx(67.35, abs=0.05)
