"""The labels: each mistake is found, and its twin is left in peace."""

import pytest
import torch
from tests.audit.probes.usage import Texts, alarms, asked, diabetes, digits, named, perceptron
from torch import nn
from torch.nn import functional

from lemmata.audit.auditing import audit
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject


def test_good_labels_are_fine():
    train, test = digits()
    findings = asked(perceptron(), train, test, probe="labels")
    assert [one.severity for one in findings] == ["fine"]
    counts = torch.bincount(train[1])
    assert findings[0].numbers["most"] == counts.max()
    assert findings[0].numbers["least"] == counts.min()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("loss", [None, "cross_entropy", functional.cross_entropy, nn.CrossEntropyLoss()])
def test_labels_that_count_from_one(loss, dtype):
    (x, y), _ = digits()
    model = perceptron().to(dtype)
    (found,) = asked(model, (x, y + 1), probe="labels", loss=loss)
    assert (found.severity, found.name, found.weight) == ("alarm", "label range", 10)
    assert "from 1 to 10, but 10 outputs stand for the classes 0 to 9" in found.verdict
    assert "y - 1" in found.advice


def test_labels_beyond_the_outputs():
    (x, y), _ = digits()
    (found,) = asked(perceptron(7), (x, y), probe="labels")
    assert found.severity == "alarm"
    assert "10 outputs" in found.advice
    assert found.numbers == {"lowest": 0, "highest": 9, "classes": 7}


def test_the_range_is_that_of_both_parts():
    (x, y), (more, labels) = digits()
    (found,) = asked(perceptron(7), (x, y), (more, labels + 3), probe="labels")
    assert found.numbers == {"lowest": 0, "highest": 12, "classes": 7}
    (beyond,) = asked(perceptron(7), (x, y + 1), probe="labels")  # from one, and more than there are outputs
    assert "11 outputs" in beyond.advice


def test_negative_labels():
    (x, y), _ = digits()
    (found,) = asked(perceptron(), (x, y - 1), probe="labels")
    assert found.severity == "alarm"
    assert "-100" in found.advice


@pytest.mark.parametrize("loss", ["cross_entropy", functional.cross_entropy, nn.CrossEntropyLoss()])
def test_a_single_output_before_a_cross_entropy_of_two_classes(loss):
    (x, y), _ = digits()
    (found,) = asked(perceptron(1), (x, y % 2), probe="labels", loss=loss)
    assert (found.severity, found.name) == ("alarm", "label range")
    assert "labels from 0 to 1 with outputs (batch, 1)" in found.verdict or "one output stands for" in found.verdict
    assert "loss='bce'" in found.advice
    fit = functional.binary_cross_entropy_with_logits
    own = lambda out, t: fit(out[:, 0], t.float())  # noqa: E731
    assert [one.severity for one in asked(perceptron(1), (x, y % 2), probe="labels", loss=own)] == ["fine"]


def test_counts_before_a_cross_entropy_of_one_output():
    (x, y), _ = digits()
    (found,) = asked(perceptron(1), (x, y), probe="labels", loss=nn.CrossEntropyLoss())
    assert (found.severity, found.name) == ("alarm", "label range")
    assert "loss='mse'" in found.advice
    squares = lambda out, t: (out[:, 0] - t).square().mean()  # noqa: E731
    assert alarms(asked(perceptron(1), (x, y), probe="labels", loss=squares)) == []


def test_only_the_test_part_is_wrong():
    train, (x, y) = digits()
    assert alarms(asked(perceptron(), train, (x, y + 1), probe="labels")) == ["label range"]


def test_the_other_probes_are_not_asked_where_labels_are_out_of_range():
    (x, y), _ = digits()
    report = audit(perceptron(), (x, y + 1), lr=0.1, optimizer="sgd", budget=20)
    assert [one.name for one in report.alarms] == ["label range"]
    refused = [one.verdict for one in report.of("skipped")]
    assert any("targets that fit the outputs" in told for told in refused)
    assert not any("IndexError" in told for told in refused)


def test_places_that_a_loss_leaves_out_are_no_mistake():
    tokens = torch.randint(0, 20, (64, 6), generator=torch.Generator().manual_seed(0))
    labels = tokens.clone()
    labels[:, 4:] = -100
    assert alarms(asked(Texts(), (tokens, labels), probe="labels")) == []
    labels[:, 4:] = 255
    for loss in (nn.CrossEntropyLoss(ignore_index=255), lambda z, t: functional.cross_entropy(z, t, ignore_index=255)):
        own = loss if isinstance(loss, nn.Module) else lambda z, t, loss=loss: loss(z.movedim(-1, 1), t)
        model = Texts() if not isinstance(loss, nn.Module) else Moved()
        assert alarms(asked(model, (tokens, labels), probe="labels", loss=own)) == []
    assert alarms(asked(Texts(), (tokens, labels), probe="labels")) == ["label range"]


class Moved(Texts):
    def forward(self, tokens):
        return super().forward(tokens).movedim(-1, 1)


def test_two_classes_kept_as_minus_one_and_one():
    x, y = diabetes()
    signs = (y > 0).float() * 2 - 1
    model = perceptron(1, 10)
    (found,) = asked(model, (x, signs), probe="labels", loss="bce")
    assert found.severity == "alarm"
    assert "(y + 1) / 2" in found.advice
    assert alarms(asked(model, (x, (y > 0).float()), probe="labels", loss="bce")) == []
    assert alarms(asked(model, (x, torch.rand(len(x))), probe="labels", loss="bce")) == []


def test_classes_kept_as_real_numbers_or_as_a_column():
    (x, y), test = digits()
    for labels, word in ((y.float(), "float32"), (y[:, None], "a column of int64"), (y.double()[:, None], "float64")):
        findings = asked(perceptron(), (x, labels), probe="labels")
        assert alarms(findings) == []
        assert word in named(findings, "label type").verdict
    subject = Subject(perceptron(), as_sample((x, y.float())), as_sample(test), "cross_entropy")
    assert subject.train.targets is not None
    assert torch.equal(subject.train.targets, y)
    assert subject.task == "classes"
    assert subject.unusable == ""
    assert [one.name for one in asked(perceptron(), (x, y.int()), probe="labels")] == ["class balance"]


def test_real_numbers_that_are_no_classes():
    (x, y), _ = digits()
    (found,) = asked(perceptron(), (x, y + 0.5), probe="labels", loss="cross_entropy")
    assert found.severity == "alarm"
    assert "real numbers" in found.verdict


def test_constant_targets():
    (x, y), _ = digits()
    for labels, model in ((torch.zeros_like(y), perceptron()), (torch.full((len(x),), 2.5), perceptron(1))):
        (found,) = asked(model, (x, labels), probe="labels")
        assert (found.severity, found.name) == ("alarm", "constant labels")


def test_classes_that_never_occur():
    (x, y), _ = digits()
    found = named(asked(perceptron(11), (x, y + 1), probe="labels"), "absent classes")
    assert found.severity == "hint"
    assert "count from one" in found.verdict
    found = named(asked(perceptron(14), (x, y), probe="labels"), "absent classes")
    assert found.severity == "hint"
    assert "4 of 14 classes" in found.verdict
    few = asked(perceptron(10), (x[:30], y[:30] % 7), probe="labels")  # too few to say
    assert all(one.name != "absent classes" for one in few)


def test_classes_only_in_the_test_part():
    (x, y), test = digits()
    keep = y < 8
    found = named(asked(perceptron(), (x[keep], y[keep]), test, probe="labels"), "classes only in the test part")
    assert found.severity == "hint"
    assert found.numbers["classes"] == 2
    assert found.numbers["share"] == pytest.approx((test[1] >= 8).float().mean().item())


def test_one_class_much_more_frequent_than_the_others():
    (x, y), _ = digits()
    for labels, model in (((y == 3).long() * (y[0] * 0 + 1), perceptron(2)), ((y == 3).long(), perceptron(1))):
        keep = (y != 3) | (torch.arange(len(y)) % 2 == 0)
        found = named(asked(model, (x[keep], labels[keep]), probe="labels"), "class balance")
        assert found.severity == "hint"
        assert found.numbers["majority"] == pytest.approx(1 - labels[keep].float().mean().item())


def test_the_scale_of_numbers():
    x, y = diabetes()
    assert named(asked(perceptron(1, 10), (x, y), probe="labels"), "target scale").severity == "fine"
    found = named(asked(perceptron(1, 10), (x, 77 * y + 150), probe="labels"), "target scale")
    assert found.severity == "hint"
    assert found.numbers["mean"] == pytest.approx(150, rel=1e-3)


def test_without_targets():
    (x, _), _ = digits()
    (found,) = asked(perceptron(), x, probe="labels")
    assert found.severity == "skipped"
