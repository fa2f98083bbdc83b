"""The recipe of GPT at a tiny size: it trains, goes on where it stopped, counts fairly, and writes."""

import math
from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.data import load
from lemmata.figure import Line
from lemmata.train import Options, run_experiment
from lemmata.transformers.recipes_gpt import BASELINES, GPTTextConfig, write_plays

TINY = GPTTextConfig(width=8, depth=1, heads=2, window=32)
FEW = Options(steps=2, batch_size=4, device="cpu")


def plays(config=TINY, options=FEW):
    return write_plays(config=config, options=options)


def test_it_trains_every_parameter():
    experiment = plays()
    before = [values.detach().clone() for values in experiment.system.parameters()]
    run = run_experiment(replace(experiment, test=experiment.test[:4], picture=None))
    assert math.isfinite(run.scores["bits"])
    assert all(not torch.equal(a, b) for a, b in zip(before, run.system.parameters(), strict=True))


def test_letters_are_learnt_in_a_few_steps():
    options = Options(steps=60, batch_size=16, lr=1e-2, device="cpu")
    experiment = plays(replace(TINY, width=32), options)
    run = run_experiment(replace(experiment, test=experiment.test[:100], picture=None))
    assert run.scores["bits"] < 5.0  # all 70 alike: 6.1


def test_a_run_stopped_on_its_way_goes_on_to_the_same_end(tmp_path):
    options = replace(FEW, steps=6)

    def made(steps):
        experiment = plays(options=replace(options, steps=steps))
        return replace(experiment, test=experiment.test[:4], picture=None)

    whole = run_experiment(made(6))
    for steps in (3, 6):
        record = {"built": "gpt", "arguments": made(steps).arguments}
        run_experiment(made(steps), out=tmp_path / "run", resume=steps == 6, record=record)
    again = lemmata.load(tmp_path / "run").state_dict()
    assert all(values.equal(again[name]) for name, values in whole.system.state_dict().items())


def test_every_test_character_is_counted_once_after_half_a_window():
    experiment, text = plays(), load("shakespeare").validation.x
    counted = experiment.test.y[:, 16:].flatten()
    assert counted.equal(text[17 : 17 + len(counted)])
    assert len(text) - len(counted) < 2 * 32
    half = experiment.test[:3]
    bits = experiment.system.eval().nll(half.x, half.y)[:, 16:].mean().item() / math.log(2)
    assert experiment.loss(experiment.system, half)["bits"] == pytest.approx(bits)


def test_with_patience_the_end_of_the_training_text_is_held_out():
    text = load("shakespeare").train.x
    everything, part = plays(), plays(options=replace(FEW, patience=1))
    assert everything.validation is None
    assert part.validation is not None
    last = int(0.9 * len(text))  # learnt from before it, in windows that begin every 16 characters
    assert len(everything.train) == (len(text) - 33) // 16 + 1
    assert len(part.train) == (last - 33) // 16 + 1
    assert part.validation.x[0].equal(text[last : last + 32])
    assert part.test.x.equal(everything.test.x)


def test_windows_begin_every_stride():
    experiment, text = plays(replace(TINY, stride=5)), load("shakespeare").train.x
    assert experiment.train.x[3].equal(text[15:47])
    assert experiment.test.x.equal(plays().test.x)


def test_what_is_written_begins_with_the_prompt_and_follows_the_seed():
    experiment = plays()
    one, two = (
        experiment.sample(experiment.system, 2, torch.Generator().manual_seed(1), prompt="Enter ", length=40, top_p=0.9)
        for _ in range(2)
    )
    assert one == two
    assert [len(text) for text in one.split(f"\n{'-' * 20}\n")] == [46, 46]
    assert one.startswith("Enter ")
    assert experiment.write(experiment.system).startswith("Ham. ")
    for prompt, message in (("", "at least one character"), ("ä", "'ä': leave it out")):
        with pytest.raises(ValueError, match=message):
            experiment.sample(experiment.system, 1, torch.Generator(), prompt=prompt)


def test_the_picture_shows_the_cost_beside_all_baselines():
    experiment = plays()
    figure = experiment.picture(experiment.system)
    assert {mark.label for mark in figure.marks if isinstance(mark, Line)} == {"the model", *BASELINES}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"window": 3}, "window"),
        ({"depth": 0}, "depth"),
        ({"dropout": 2.0}, "dropout"),
        ({"attention_dropout": -0.1}, "attention_dropout"),
        ({"stride": 129}, "stride must be <= 128"),
        ({"stride": 0}, "stride"),
        ({"window": 10**6}, "window"),
    ],
)
def test_choices_that_cannot_be_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        plays(GPTTextConfig(**words))
