"""Preferences: losses by hand, padding does not count, the reference stays, a recipe that learns, refusals."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment
from lemmata.transformers.gpt import GPT
from lemmata.transformers.preferences import (
    DPO,
    Comparisons,
    RewardModel,
    aligned_distribution,
    answer_log_likelihood,
    preference_loss,
)
from lemmata.transformers.recipes_preferences import (
    PreferenceConfig,
    RewardConfig,
    avoid_a_letter,
    judge_answers,
)

SIZES = {"vocab_size": 9, "width": 16, "depth": 1, "heads": 2, "max_length": 12}


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    better, worse = torch.randint(9, (2, 5, 8), generator=generator)
    place = torch.arange(8).expand(5, 8)
    return Comparisons(better, worse, place >= 3, (place >= 3) & (place < 6))  # the worse ones are shorter


def strayed(beta=0.3):
    """A policy that has left its reference."""
    torch.manual_seed(0)
    model = DPO(**SIZES, beta=beta, dtype=torch.float64)
    for values in model.policy.parameters():
        values.data += 0.1 * torch.randn_like(values)
    return model


def test_the_loss_is_that_of_its_formula(pairs):
    model = strayed()

    def log_probability(gpt, x, first, last):
        laws = gpt(x).log_softmax(-1)
        return sum(laws[t - 1, x[0, t]] for laws in laws for t in range(first, last))

    losses = []
    for better, worse in zip(pairs.better.split(1), pairs.worse.split(1), strict=True):
        up = log_probability(model.policy, better, 3, 8) - log_probability(model.reference, better, 3, 8)
        down = log_probability(model.policy, worse, 3, 6) - log_probability(model.reference, worse, 3, 6)
        losses.append(-functional.logsigmoid(0.3 * (up - down)))
    torch.testing.assert_close(model.loss(pairs), torch.stack(losses).mean(), rtol=1e-10, atol=1e-12)


def test_padding_after_an_answer_does_not_count(pairs):
    padded = pairs.worse.clone()
    padded[:, 6:] = 0
    for model in (strayed(), RewardModel(**SIZES)):
        torch.nn.init.normal_(model.head.weight) if isinstance(model, RewardModel) else None
        torch.testing.assert_close(model.loss(pairs), model.loss(pairs._replace(worse=padded)))


def test_the_reference_never_learns(pairs):
    model = DPO(**SIZES)
    before = model.reference.tokens.weight.clone()
    assert model.loss(pairs).item() == pytest.approx(0.693147, abs=1e-5)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        model.loss(pairs).backward()
        optimizer.step()
    assert model.loss(pairs) < 0.3
    assert torch.equal(model.reference.tokens.weight, before)
    assert model.log_ratio(pairs.better, pairs.better_answers).mean() > 0
    again = DPO(**SIZES)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.loss(pairs), model.loss(pairs))


def test_it_begins_with_a_gpt_that_has_been_trained():
    gpt = GPT(**SIZES, dtype=torch.float64)
    model, x = DPO.of(gpt, beta=2.0), torch.randint(9, (2, 5))
    assert torch.equal(model(x), gpt(x))
    assert model.beta == 2.0
    model.policy.tokens.weight.data += 1
    assert not torch.equal(model(x), gpt(x))


def test_the_divergence_is_what_samples_say(pairs):
    """Answers of one token can be listed: the mean log-ratio under the policy is the divergence, not below zero."""
    model = strayed()
    prompt = torch.tensor([[1, 2]])
    texts = torch.cat([prompt.expand(9, 2), torch.arange(9)[:, None]], 1)
    answers = (torch.arange(3) == 2).expand(9, 3)
    policy = answer_log_likelihood(model.policy, texts, answers).exp()
    torch.testing.assert_close(policy.sum(), torch.ones((), dtype=torch.float64))
    assert (policy * model.log_ratio(texts, answers)).sum() > 0


def test_impossible_answers_stay_impossible():
    found = aligned_distribution(torch.tensor([0.5, 0.0, 0.5]), torch.tensor([0.0, 1e6, 0.0]), 0.1)
    assert found.tolist() == [0.5, 0.0, 0.5]


def test_a_letter_is_avoided(tmp_path):
    """A short training: the counted letter becomes rarer, and preferences are explained better than by likelihood."""
    _, options = usual_settings(avoid_a_letter, "dpo")
    config = PreferenceConfig(comparisons=500, reading=60)
    experiment = avoid_a_letter(config=config, options=replace(options, epochs=2, device="cpu"))
    run = run_experiment(experiment)
    assert run.scores["accuracy"] > experiment.notes["baselines"]["the reference's likelihood"]
    words = experiment.write(run.model).split()
    assert float(words[0]) < 0.7 * float(words[7].rstrip(";"))


def test_answers_without_a_letter_are_liked():
    """A short training: rewards explain preferences better than likelihood, and answers are shown in their order."""
    _, options = usual_settings(judge_answers, "reward_model")
    config = RewardConfig(comparisons=1000, reading=60)
    experiment = judge_answers(config=config, options=replace(options, epochs=4, device="cpu"))
    run = run_experiment(experiment)
    assert run.scores["accuracy"] > experiment.notes["baselines"]["the reference's likelihood"] + 0.03
    rewards = [float(line.split()[0]) for line in experiment.write(run.model).splitlines()]
    assert rewards == sorted(rewards, reverse=True)
    assert rewards[0] > rewards[-1]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DPO(**SIZES, beta=0.0), "beta must be > 0, got 0.0"),
        (lambda: DPO.of(torch.nn.Linear(2, 2)), "gpt must be a GPT, got Linear"),
        (lambda: aligned_distribution(torch.ones(2) / 2, torch.ones(3), 1.0), "rewards must be one for each answer"),
        (lambda: preference_loss(torch.ones(2), torch.ones(3)), "better and worse must be rewards of the same pairs"),
        (lambda: RewardModel(**SIZES)(torch.ones(2, 3).long(), torch.ones(2, 3)), "answers must be true or false"),
        (lambda: PreferenceConfig(letter="ee"), "letter must be one letter, got 'ee'"),
        (lambda: PreferenceConfig(beta=-1.0), "beta must be > 0, got -1.0"),
    ],
)
def test_bad_input_is_answered(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
