"""The recipe of Deep Sets: right answers, what it reaches in a short time, what it shows, and what is kept of a run."""

from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.figure import Points
from lemmata.geometric.recipes_sets import BASELINES, DigitSetConfig, digit_sets, read_digit_sets
from lemmata.geometric.set_network import SetNetwork
from lemmata.train import Options, run_experiment

SHORT = Options(epochs=6, batch_size=64, lr=2e-3, schedule="cosine", device="cpu")
ANSWERS = {"sum": sum, "max": max, "median": lambda digits: sorted(digits)[(len(digits) - 1) // 2]}


@pytest.mark.parametrize("task", ANSWERS)
def test_targets_are_the_answers_for_the_digits_that_are_there(task):
    pictures = Examples(x=torch.arange(10.0)[:, None, None].expand(10, 1, 2) + 1, y=torch.arange(10))
    sets = digit_sets(pictures, task, count=200, least=1, most=6, seed=3)
    for x, mask, y in zip(sets.x, sets.mask, sets.y, strict=True):
        digits = [int(value) - 1 for value in x[mask][:, 0]]
        assert int(y) == ANSWERS[task](digits)
        assert not x[~mask].any()
    assert set(sets.mask.sum(1).tolist()) == set(range(1, 7))


@pytest.mark.parametrize("task", ANSWERS)
def test_a_few_passes_are_better_than_the_baselines_also_for_more_digits_than_were_seen(task):
    experiment = read_digit_sets(config=DigitSetConfig(task=task), options=SHORT)
    reached = run_experiment(experiment).scores["mae"]
    assert reached < min(experiment.notes["baselines"].values())
    assert experiment.train.x.shape[1] == 10
    assert experiment.test.mask.sum(1).max() == 20
    assert experiment.system.reduce == {"sum": "sum", "max": "max", "median": "mean"}[task]
    assert isinstance(experiment.picture(experiment.system).marks[0], Points)
    found = experiment.predict(experiment.system, experiment.test[:5])["answer"]
    alone = experiment.test[:1]  # a set without a mask is whole
    whole = Examples(x=alone.x[:, alone.mask[0]])
    torch.testing.assert_close(experiment.predict(experiment.system, whole)["answer"], found[:1], rtol=1e-4, atol=1e-4)


@pytest.mark.measures("geometric.recipes_sets", "the number of digits alone")
@pytest.mark.parametrize("task", ANSWERS)
def test_the_number_of_digits_alone_is_as_good_as_told(task):
    digits = load("digits")
    known, test = (
        digit_sets(digits.train, task, 20000, 1, 20, seed=5),
        digit_sets(digits.test, task, 2000, 1, 20, seed=1),
    )
    sizes, asked = known.mask.sum(1), test.mask.sum(1)
    answer = torch.tensor([0.0] + [known.y[sizes == size].median() for size in range(1, 21)])
    error = (answer[asked] - test.y).abs().mean().item()
    assert error == pytest.approx(BASELINES[task]["the number of digits alone"], abs=0.06)


def test_parts_share_no_picture():
    experiment = read_digit_sets(config=DigitSetConfig(sets=2000), options=SHORT)
    parts = (experiment.train, experiment.validation, experiment.test)
    seen = [{picture.numpy().tobytes() for picture in part.x[part.mask]} for part in parts]
    assert [len(part) for part in parts] == [2000, 2000, 2000]
    digits = load("digits")
    assert len(seen[0]) <= len(digits.train) * 5 / 6 + 1
    assert len(seen[1]) <= len(digits.train) / 6
    assert not seen[0] & seen[1]
    assert not seen[2] & (seen[0] | seen[1])


def test_doubles_can_be_learnt_from_and_shown():
    config = DigitSetConfig(sets=100, width=8, latent=4, elements=3)
    experiment = read_digit_sets(config=config, options=replace(SHORT, epochs=1, precision="float64"))
    run_experiment(experiment)
    points, line = experiment.picture(experiment.system).marks
    assert (len(points.x), len(line.x)) == (400, 2)
    assert points.x == experiment.test.y[:400].tolist()


def test_training_goes_on_where_it_stopped_and_gives_the_same_bits(tmp_path):
    config = DigitSetConfig(sets=200, width=8, latent=4, elements=3)
    for folder, epochs in (("once", [2]), ("twice", [1, 2])):
        for number, last in enumerate(epochs):
            experiment = read_digit_sets(config=config, options=replace(SHORT, epochs=last, schedule="constant"))
            run_experiment(experiment, out=tmp_path / folder, resume=number > 0)
    first, second = (lemmata.load(tmp_path / folder) for folder in ("once", "twice"))
    assert isinstance(first, SetNetwork)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_network_is_deep_sets_of_its_two_parts():
    network, x = SetNetwork(3, 2, width=5, latent=4, reduce="mean", dtype=torch.double), torch.randn(4, 6, 3).double()
    torch.testing.assert_close(network(x), network.rho(network.phi(x).mean(1)))
    assert network.state_dict().keys() == {
        f"{n}.{i}.{w}" for n in ("phi", "rho") for i in (0, 2) for w in ("weight", "bias")
    }
    assert SetNetwork(3, 2, device="meta")(x.float().to("meta")).shape == (4, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DigitSetConfig(task="mean"), "task must be one of sum, max, median, got 'mean'"),
        (lambda: DigitSetConfig(elements=0), "elements must be >= 1, got 0"),
        (lambda: DigitSetConfig(reduce="min"), "reduce must be one of"),
        (lambda: SetNetwork(0, 1), "inputs must be >= 1, got 0"),
        (lambda: SetNetwork(1, 1, latent=-1), "latent must be >= 1, got -1"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_answered_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
