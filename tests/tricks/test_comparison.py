"""Tricks as changes of an experiment, and the comparison of runs with and without them."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.connectionism.recipes import separate_classes
from lemmata.data.examples import Examples
from lemmata.feedforward.recipes import PictureConfig, classify_clothing, classify_points
from lemmata.feedforward.recipes_residual import residual_clothing
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options
from lemmata.tricks import TRICKS, Shift, apply_tricks, compare

SHORT = Options(epochs=2, lr=5e-3, device="cpu", evaluate=1)


def loss_of(experiment, system, batch):
    assert experiment.loss is not None
    found = experiment.loss(system, batch)
    return found["loss"] if isinstance(found, dict) else found


def points(**changed) -> Any:
    return classify_points("moons", options=Options(**{"epochs": 2, "device": "cpu", **changed}))


def pictures() -> Any:
    return classify_clothing(config=PictureConfig(widths=(16,)), options=SHORT)


@pytest.mark.parametrize("name", [name for name in TRICKS if name != "augmentation"])
def test_every_trick_changes_what_is_learnt_and_nothing_else(name: str):
    experiment = points()
    before = copy.deepcopy(experiment.system.state_dict())
    changed = apply_tricks(points(), name)
    assert changed.metric == experiment.metric
    assert torch.equal(changed.test.x, experiment.test.x)
    shared = set(before) & set(changed.system.state_dict())
    if name not in ("lecun", "glorot", "he", "orthogonal", "weightnorm", "dropconnect"):
        assert shared == set(before)
        assert all(torch.equal(before[key], changed.system.state_dict()[key]) for key in shared)
    again = apply_tricks(points(), name)
    batch = experiment.train[:40]
    torch.manual_seed(0)
    first = loss_of(changed, changed.system.train(), batch)
    torch.manual_seed(0)
    assert torch.equal(first, loss_of(again, again.system.train(), batch))  # the same every time


def test_where_dropout_and_normalisations_stand():
    dropped, normalised = apply_tricks(points(), "dropout", {"dropout": 1.0}), apply_tricks(points(), "layernorm")
    first, middle, last = dropped.system.layers
    assert not hasattr(first, "dropout")
    assert torch.equal(dropped.system.train()(torch.randn(3, 2)), last.bias.expand(3, 2))
    assert not hasattr(normalised.system.layers[-1], "norm")
    hidden = normalised.system.layers[0](torch.randn(5, 2))
    torch.testing.assert_close(hidden.mean(1), torch.zeros(5), atol=1e-6, rtol=0)
    assert middle.dropout.p == 1.0


def test_copies_of_a_changed_system_have_parts_of_their_own():
    system = apply_tricks(points(), "batchnorm").system
    twin = copy.deepcopy(system)
    twin.train()(torch.randn(50, 2) + 5)
    assert system.layers[0].norm.running_mean.eq(0).all()
    assert not twin.layers[0].norm.running_mean.eq(0).all()


def test_smoothing_and_augmentation_are_for_training_alone():
    experiment = apply_tricks(pictures(), "augmentation+label_smoothing", {"label_smoothing": 0.5, "augmentation": 3})
    batch, system = experiment.train[:30], experiment.system
    plain = functional.cross_entropy(system.eval()(batch.x), batch.y)
    torch.testing.assert_close(loss_of(experiment, system, batch), plain)
    torch.manual_seed(0)
    found = loss_of(experiment, system.train(), batch)
    torch.manual_seed(0)
    wanted = functional.cross_entropy(system(Shift(3)(batch.x)), batch.y, label_smoothing=0.5)
    torch.testing.assert_close(found, wanted)


def test_early_stopping_holds_out_a_fifth():
    plain, experiment = points(), apply_tricks(points(), "early_stopping", {"early_stopping": 4})
    assert experiment.options.patience == 4
    assert experiment.validation is not None
    assert len(experiment.validation) == len(plain.train) // 5
    whole = torch.cat([experiment.train.x, experiment.validation.x])
    assert torch.equal(whole.sort(0).values, plain.train.x.sort(0).values)


def test_several_tricks_do_not_depend_on_their_order():
    a, b = (apply_tricks(points(), names) for names in ("batchnorm+glorot+dropout", "dropout+batchnorm+glorot"))
    for name, values in a.system.state_dict().items():
        assert torch.equal(values, b.system.state_dict()[name])


def test_a_comparison_trains_the_plain_one_first_and_turns_the_recipes_tricks_off():
    seen = {}

    def on_run(name, experiment):
        seen[name] = experiment
        return ()

    own = PictureConfig(widths=(32,), dropout=0.25, shift=2)
    settings = {"config": own, "options": Options(epochs=1, weight_decay=0.5, device="cpu"), "on_run": on_run}
    found = compare(classify_clothing, ["dropout", "weight_decay", "early_stopping"], **settings)
    assert list(found.runs) == list(seen) == ["plain", "dropout", "weight_decay", "early_stopping"]
    assert seen["plain"].system.config.dropout == 0
    assert seen["plain"].options.weight_decay == 0
    assert seen["weight_decay"].options.weight_decay == 0.5  # as strong as in the recipe
    assert seen["dropout"].system.layers[1].dropout.p == 0.25
    assert found.tested == 1000
    assert found.scores["plain"] == found.runs["plain"].scores["accuracy"]
    assert found.noise == pytest.approx(0.04, abs=0.01)
    figure = found.figure()
    assert [mark.label.split()[0] for mark in figure.marks] == list(found.runs)
    assert "within the noise of 1,000 test examples" in figure.note


@pytest.mark.parametrize("wrong", ["batchnorm+layernorm", "augmentation"])
def test_a_trick_that_cannot_be_is_refused_before_anything_is_trained(wrong: str):
    begun = []
    with pytest.raises(ValueError, match=r"needs layers that are not normalised|needs pictures"):
        compare(classify_points, ["dropout", wrong], "moons", on_run=lambda name, _: begun.append(name) or ())
    assert begun == []


def test_the_plain_run_does_not_depend_on_what_it_is_compared_with():
    options = Options(epochs=2, device="cpu")
    first, second = (compare(classify_points, [name], "moons", options=options) for name in ("orthogonal", "batchnorm"))
    alone = run_experiment(classify_points("moons", options=options))
    assert first.runs["plain"].scores == second.runs["plain"].scores == alone.scores


def test_a_short_run_with_batch_normalisation_is_cautioned():
    found = compare(classify_points, ["batchnorm", "layernorm"], "moons", options=Options(epochs=1, device="cpu"))
    steps = found.runs["batchnorm"].steps
    assert steps < 40
    told = f"batchnorm: after {steps} steps running averages are {0.9**steps:.0%} what they began as: train longer."
    assert found.caution.endswith(f"test examples. {told}")
    longer = compare(classify_points, ["batchnorm"], "moons", options=Options(epochs=12, device="cpu"))
    assert "running averages" not in longer.caution


def test_steps_of_a_sequence_are_normalised_as_examples_are():
    layers = apply_tricks(points(), "batchnorm").system.layers
    x = torch.randn(4, 6, 2)
    torch.testing.assert_close(layers[0](x), layers[0](x.flatten(0, 1)).view(4, 6, -1))


def test_residual_networks_take_them_too():
    found = compare(residual_clothing, ["batchnorm+dropout"], options=SHORT)
    assert set(found.scores) == {"plain", "batchnorm+dropout"}


def test_batch_normalisation_and_its_kin_help_a_network_that_is_badly_scaled():
    experiments = [points(epochs=8, lr=5e-3), apply_tricks(points(epochs=8, lr=5e-3), "batchnorm")]
    for experiment in experiments:
        with torch.no_grad():
            for layer in experiment.system.layers[:-1]:
                layer.weight.mul_(0.01)
    plain, normalised = (run_experiment(experiment).scores["loss"] for experiment in experiments)
    assert normalised < plain / 2


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: apply_tricks(points(), "magic"), "tricks must be one of lecun, glorot, he, orthogonal, batchnorm"),
        (lambda: apply_tricks(points(), "augmentation"), "augmentation needs pictures"),
        (lambda: apply_tricks(points(), "layernorm+batchnorm"), "layernorm needs layers that are not normalised"),
        (lambda: compare(classify_points, "he"), r"tricks must be a list of names, got 'he': use \['he'\]"),
        (lambda: apply_tricks(points(), "he", {"drop": 1}), "strengths must be one of lecun"),
        (lambda: compare(classify_points, []), "tricks must have one name or more, each once, got none"),
        (lambda: compare(classify_points, ["dropout", "dropout"]), "each once, got dropout, dropout"),
        (
            lambda: compare(separate_classes, ["dropout"]),
            "tricks are for systems that learn by gradients, OneVersusRest does",
        ),
    ],
)
def test_what_cannot_be_is_told(call, told: str):
    with pytest.raises(ValueError, match=told):
        call()


def test_a_system_without_hidden_layers_is_told():
    experiment = points()
    line = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="batchnorm needs a system with hidden linear layers, such as mlp; Linear"):
        apply_tricks(replace(experiment, system=line), "batchnorm")
    with pytest.raises(ValueError, match="label_smoothing needs classes"):
        apply_tricks(replace(experiment, classes=()), "label_smoothing")
    few = Examples(x=torch.rand(3, 2), y=torch.tensor([0, 1, 0]))
    with pytest.raises(ValueError, match="early_stopping needs 5 training examples or more, got 3"):
        apply_tricks(replace(experiment, train=few), "early_stopping")
