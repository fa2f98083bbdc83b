"""The voice: baselines on the same samples, windows of whole words, sounds that a player reads, resuming."""

import io
import math
import wave
from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.convolution.recipes_sound import BASELINES, HELD_OUT, PROMPT, READ_AT_ONCE, SpeechConfig, speak_numbers
from lemmata.data.registry import load
from lemmata.train import Options, run_experiment

TINY = SpeechConfig(channels=8, skip_channels=8, depth=4, window=256)
FEW = Options(steps=2, batch_size=4, device="cpu")


def tracks():
    """The codes of the words that are learnt from, and of those held out, one after another."""
    found = load("speech")
    words = [(name, found.train.code[i, : found.train.length[i]]) for i, name in enumerate(found.classes)]
    return [torch.cat([code for name, code in words if (name in HELD_OUT) == held_out]) for held_out in (False, True)]


def small(**changed):
    return speak_numbers(config=replace(TINY, **changed), options=FEW)


def sound(content):
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8000)
        return torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16)


@pytest.mark.measures("convolution.recipes_sound", "single samples", "the sample before")
def test_counting_baselines_are_what_counts_reach():
    train, test = tracks()
    single = (torch.bincount(train, minlength=256) + 1).double()
    single /= single.sum()
    assert -single[test].log2().mean().item() == pytest.approx(BASELINES["single samples"], abs=0.002)
    pairs = torch.zeros(256, 256, dtype=torch.float64)
    pairs.index_put_((train[:-1], train[1:]), torch.ones((), dtype=torch.float64), accumulate=True)
    kinds = (pairs > 0).sum(1, keepdim=True)  # Witten and Bell: as likely something new as there were new things
    after = (pairs + kinds * single) / (pairs.sum(1, keepdim=True) + kinds)
    assert -after[test[:-1], test[1:]].log2().mean().item() == pytest.approx(BASELINES["the sample before"], abs=0.002)


@pytest.mark.measures("convolution.recipes_sound", "linear prediction")
def test_linear_prediction_is_what_eight_amplitudes_and_the_last_errors_reach():
    train, test = tracks()
    single = (torch.bincount(train, minlength=256) + 1).double()
    level = (2 * torch.arange(257).double() - 256) / 255  # the edges between codes
    edge = level.sign() * (level.abs() * math.log(256)).expm1() / 255

    def amplitudes(codes):
        x = (2 * codes.double() - 255) / 255
        return x.sign() * (x.abs() * math.log(256)).expm1() / 255

    seen = amplitudes(train).unfold(0, 9, 1)  # eight before, and the one to be foretold
    weights = torch.linalg.lstsq(seen[:, :8], seen[:, 8:]).solution
    seen, code = amplitudes(test).unfold(0, 9, 1), test[8:]
    foretold = (seen[:, :8] @ weights)[:, 0]
    errors = torch.nn.functional.pad((seen[:, 8] - foretold).abs()[:-1], (32, 0))
    spread = errors.unfold(0, 32, 1).mean(1) + 1e-6
    law = torch.distributions.Laplace(foretold, spread)
    above = torch.where(code == 255, 1.0, law.cdf(edge[code + 1].clamp(-2, 2)))
    below = torch.where(code == 0, 0.0, law.cdf(edge[code].clamp(-2, 2)))
    chance = 0.999 * (above - below) + 0.001 * single[code] / single.sum()
    assert -chance.log2().mean().item() == pytest.approx(BASELINES["linear prediction"], abs=0.02)


def test_windows_overlap_by_half_and_the_test_words_are_others():
    train, test = tracks()
    experiment = small()
    assert torch.equal(experiment.train.x[3], train[384:640])
    assert torch.equal(experiment.test.x[1], test[READ_AT_ONCE : 2 * READ_AT_ONCE])
    assert len(test) > 30_000


def test_a_voice_is_learnt_in_a_few_steps():
    options = Options(steps=60, batch_size=8, lr=1e-2, device="cpu")
    experiment = speak_numbers(config=replace(TINY, channels=16, skip_channels=32), options=options)
    run = run_experiment(replace(experiment, test=experiment.test[:2], picture=None))
    assert run.scores["bits"] < 6.5  # all codes alike: 8; single samples: 7.1
    assert run.scores["bits"] == pytest.approx(run.scores["loss"] / math.log(2))


def test_a_run_stopped_on_its_way_goes_on_to_the_same_end_and_leaves_a_sound(tmp_path):
    options = replace(FEW, steps=4)

    def shortened(steps):
        experiment = speak_numbers(config=TINY, options=replace(options, steps=steps))
        return replace(experiment, test=experiment.test[:1], picture=None)

    whole = run_experiment(shortened(4))
    for steps in (2, 4):
        experiment = shortened(steps)
        record = {"built": "wavenet", "arguments": experiment.arguments}
        run_experiment(experiment, out=tmp_path / "run", resume=steps == 4, record=record)
    again = lemmata.load(tmp_path / "run")
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in whole.system.state_dict().items())
    assert experiment.files
    assert (tmp_path / "run" / "sample.wav").read_bytes() == experiment.files(again)["sample.wav"]


def test_sounds_begin_as_recorded_depend_on_the_seed_alone_and_are_as_long_as_asked():
    experiment = small()
    assert experiment.sample
    made = [
        experiment.sample(experiment.system, 5, torch.Generator().manual_seed(seed), length=300) for seed in (0, 0, 1)
    ]
    assert made[0] == made[1] != made[2]
    first, other, *_, fifth = sound(made[0]).reshape(5, PROMPT + 300)
    assert torch.equal(first[:PROMPT], fifth[:PROMPT])  # there are four words
    assert not torch.equal(first[:PROMPT], other[:PROMPT])
    assert not torch.equal(first[PROMPT:], fifth[PROMPT:])
    clips = load("speech").train
    recorded = clips.x[16, clips.x[16].abs().argmax() - PROMPT :][:PROMPT]
    assert (first[:PROMPT] - 32767 * recorded).abs().max() <= 0.51


def test_the_picture_begins_alike_and_goes_on_otherwise():
    experiment = small()
    assert experiment.picture
    recorded, made = experiment.picture(experiment.system).marks
    assert len(recorded.x) == len(made.x) == 125
    alike = [high == pytest.approx(other + 2, abs=1e-5) for high, other in zip(recorded.high, made.high, strict=True)]
    assert all(alike[:25])
    assert not all(alike[26:])
    assert all(0 <= low <= high <= 2 for low, high in zip(recorded.low, recorded.high, strict=True))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"levels": 16}, "levels must be 256, as mu-law codes have, got 16"),
        ({"window": 1}, "window must be >= 2, got 1"),
        ({"window": 10**6}, "window must be at most the 177327 samples there are, got 1000000"),
    ],
)
def test_bad_choices_are_answered_in_words(changed, said):
    with pytest.raises(ValueError, match=said):
        small(**changed)
