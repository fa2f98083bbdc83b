"""The probe of leakage: copies and near copies of test examples are found, chance among few inputs is not blamed."""

import pytest
import torch
from torch import nn

from lemmata.audit import audit
from lemmata.data.registry import load


def asked(data, test, outputs=10, model=None, **more):
    model = model or nn.Sequential(nn.Flatten(), nn.Linear(data[0][0].numel(), outputs))
    return audit(model, data, test, probes=["leakage"], budget=60.0, **more)


def parts(name="digits"):
    data = load(name).parts
    return [(data[part].x, data[part].y) for part in ("train", "test")]


def leaked(share, change=lambda x: x, name="digits"):
    """With a share of the test examples, changed or not, in the training part as well."""
    (x, y), (x2, y2) = parts(name)
    number = round(share * len(x2))
    return (torch.cat([x, change(x2[:number])]), torch.cat([y, y2[:number]])), (x2, y2)


@pytest.mark.parametrize("name", ["digits", "fashion", "moons", "breast_cancer"])
def test_honest_parts_pass(name):
    report = asked(*parts(name))
    assert {one.severity for one in report.findings} == {"fine"}
    assert report["copies in test"].numbers["copies"] == 0


@pytest.mark.parametrize(("name", "share"), [("digits", 0.01), ("digits", 0.2), ("moons", 0.01), ("fashion", 0.01)])
def test_copies_are_found(name, share):
    data, test = leaked(share, name=name)
    found = asked(data, test)["copies in test"]
    number = round(share * len(test[0]))
    assert found.severity == "alarm"
    assert found.numbers["copies"] == number
    assert list(found.where) == [f"test[{index}]" for index in range(min(number, 20))]


def test_the_training_part_as_test_part():
    (x, y), _ = parts()
    assert asked((x, y), (x, y))["copies in test"].numbers["share"] == 1.0
    assert asked((x, y), (x, y))["copies in test"].severity == "alarm"


def test_one_copy_is_a_hint():
    assert asked(*leaked(1 / 359))["copies in test"].severity == "hint"


def test_duplicates_before_splitting_are_a_hint():
    """Every picture twice, then split at random: the training part repeats as often as it shares with the test part."""
    x, y = parts()[0]
    order = torch.randperm(2 * len(x), generator=torch.Generator().manual_seed(0))
    x, y = x.repeat(2, 1, 1)[order], y.repeat(2)[order]
    found = asked((x[:2000], y[:2000]), (x[2000:], y[2000:]))["copies in test"]
    assert found.severity == "hint"
    assert "the data holds duplicates" in found.verdict


def noisy(x):
    return x + 0.002 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("change", [noisy, lambda x: 0.98 * x], ids=["noise", "brightness"])
@pytest.mark.parametrize("name", ["digits", "fashion"])
def test_near_copies_are_found(name, change):
    report = asked(*leaked(0.1, change, name))
    found = report["near twins in test"]
    assert found.severity == "alarm"
    assert found.numbers["share"] == pytest.approx(0.1, abs=0.02)
    assert report["copies in test"].severity == "fine"


def test_a_test_part_that_is_the_training_part_with_noise():
    (x, y), _ = parts()
    found = asked((x, y), (noisy(x), y))["near twins in test"]
    assert found.severity == "alarm"
    assert found.numbers["share"] > 0.99


@pytest.mark.parametrize("bits", [3, 6, 12])
def test_few_inputs_meet_by_chance(bits):
    """Parity-like data: all inputs occur in both parts, and nobody copied them."""
    x = torch.randint(0, 2, (1500, bits), generator=torch.Generator().manual_seed(0)).float()
    y = x.sum(1).long() % 2
    report = asked((x[:1000], y[:1000]), (x[1000:], y[1000:]), outputs=2)
    assert report["copies in test"].numbers["share"] > 0.1
    assert not report.alarms
    assert {one.severity for one in report.findings} <= {"fine", "hint"}


def test_short_texts_repeat():
    """Tokens: words of three letters with unequal frequencies."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.tensor([0.5, 0.25, 0.125, 0.125])
    x = torch.multinomial(weights, 4500, replacement=True, generator=generator).reshape(1500, 3)
    model = nn.Sequential(nn.Embedding(4, 8), nn.Flatten(), nn.Linear(24, 2))
    report = asked((x[:1000], x[:1000, 0] % 2), (x[1000:], x[1000:, 0] % 2), model=model)
    assert not report.alarms


def test_the_dtype_of_the_model_does_not_make_copies():
    """In bfloat16 many points of the plane are equal; as they came they are not."""
    model = nn.Linear(2, 2, dtype=torch.bfloat16)
    found = asked(*parts("moons"), model=model)["copies in test"]
    assert found.numbers["copies"] == 0


def test_labels_that_differ_between_copies():
    (x, y), _ = parts()
    again = torch.cat([x, x[:30]]), torch.cat([y, (y[:30] + 1) % 10])
    found = asked(again, None)["labels of copies"]
    assert found.severity == "hint"
    assert found.numbers["lost"] == pytest.approx(30 / len(again[0]))
    assert asked((x, y), None)["labels of copies"].severity == "fine"
    assert "test part" in asked((x, y), None)["copies in test"].verdict


def test_several_inputs_are_one_example():
    """Equal in one of two inputs only: no copy."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)

        def forward(self, x1, x2):
            return self.head(torch.cat([x1, x2], 1))

    a, b = torch.randn(200, 2), torch.randn(200, 2)
    y = torch.randint(0, 2, (100,))
    found = asked(([a[:100], b[:100]], y), ([a[:100], b[100:]], y), model=Two())
    assert found["copies in test"].numbers["copies"] == 0
    found = asked(([a[:100], b[:100]], y), ([a[:100], b[:100]], y), model=Two())
    assert found["copies in test"].severity == "alarm"


def test_numbers_as_targets():
    (x, y), (x2, y2) = parts("diabetes")
    data = torch.cat([x, x2[:10]]), torch.cat([y, y2[:10]])[:, None]
    assert asked(data, (x2, y2[:, None]), outputs=1)["copies in test"].severity == "alarm"


def test_little_time_is_said():
    report = audit(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)), "fashion", probes=["leakage"], budget=1e-3)
    assert report.findings[0].severity == "skipped"
    assert "--budget" in report.findings[0].verdict
