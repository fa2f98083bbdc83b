"""Two players: whose gradients go where, turns, resuming to the bit, averages, and what stops them."""

from typing import Any

import pytest
import torch
from torch import nn

from lemmata import fit
from lemmata.data.examples import Examples
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.two_player import PLAYS, Player, TwoPlayer
from lemmata.generative.adversarial.wgan import WGAN
from lemmata.train.learner import Learner
from lemmata.train.run import Diverged

X = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))


def small_gan(kind: Any = GAN, **changed):
    torch.manual_seed(0)
    return kind((2,), latent=3, widths=(8,), **changed)


def test_it_is_a_learner():
    model = small_gan()
    assert isinstance(TwoPlayer(model, *model.players()), Learner)


@pytest.mark.parametrize("play", PLAYS)
def test_a_killed_game_resumes_to_the_bit(play, tmp_path):
    def play_on(out, kind=WGAN, **more):
        model = small_gan(kind)
        settings = {"play": play, "critic_steps": 1 if play == "extragradient" else 3, "ema_decay": 0.9}
        learner = TwoPlayer(model, *model.players(1e-2), schedule="linear", **settings)
        run = fit(model, X, learner=learner, epochs=4, batch_size=16, save=3, device="cpu", out=out, **more)
        return run, model.state_dict()

    _, whole = play_on(tmp_path / "whole")

    def stop(state):
        return state.step == 7

    stopped, _ = play_on(tmp_path / "cut", on_step=stop)
    assert stopped.steps == 7
    _, resumed = play_on(tmp_path / "cut", resume=True)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_each_players_gradient_stays_in_its_own_parameters():
    model = small_gan()
    first, second = model.players()
    learner = TwoPlayer(model, first, second, critic_steps=3)
    before = [weight.clone() for weight in model.decoder.parameters()]
    learner.step(Examples(x=X), 0.0)
    moved = [weight.clone() for weight in model.decoder.parameters()]
    assert not any(torch.equal(a, b) for a, b in zip(before, moved, strict=True))
    for _ in range(2):  # the critic alone
        learner.step(Examples(x=X), 0.0)
    assert all(torch.equal(a, b) for a, b in zip(moved, model.decoder.parameters(), strict=True))
    learner.step(Examples(x=X), 0.0)
    assert not torch.equal(moved[0], next(model.decoder.parameters()))


def test_the_average_is_what_is_evaluated_and_kept():
    model = small_gan()
    seen = []
    learner = TwoPlayer(
        model, *model.players(0.1), ema_decay=0.5, metrics=lambda system, batch: seen.append(system) or {"same": 1.0}
    )
    fit(model, X, validation=X, metric="same", learner=learner, epochs=2, batch_size=32, device="cpu")
    assert seen[0] is not model
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), seen[-1].parameters(), strict=True))


def test_rates_fall_with_the_schedule():
    model = small_gan()
    learner = TwoPlayer(model, *model.players(0.1, critic_lr=0.4), schedule="linear")
    learner.step(Examples(x=X), 0.75)
    assert [round(optimizer.param_groups[0]["lr"], 6) for optimizer in learner.optimizers] == [0.025, 0.1]


def test_a_loss_that_is_no_number_stops_the_game_with_its_name():
    model = small_gan()
    decoder, critic = model.players()
    broken = Player(critic.parameters, lambda system, batch: system.critic_loss(batch.x) * torch.nan)
    with pytest.raises(Diverged, match="critic_loss became nan at step"):
        fit(model, X, learner=TwoPlayer(model, decoder, broken), epochs=2, device="cpu")


def test_without_metrics_nothing_is_measured():
    model = small_gan()
    assert TwoPlayer(model, *model.players()).evaluate(Examples(x=X)) == {}


def test_another_play_does_not_take_over_a_state():
    model = small_gan()
    state = TwoPlayer(model, *model.players()).state()
    with pytest.raises(ValueError, match="played in another way"):
        TwoPlayer(model, *model.players(), play="extragradient").restore(state)


def test_bad_choices_are_answered_in_a_sentence():
    model = small_gan()
    decoder, critic = model.players()
    with pytest.raises(ValueError, match="play must be one of alternating, simultaneous, extragradient"):
        TwoPlayer(model, decoder, critic, play="fair")
    with pytest.raises(ValueError, match="critic_steps must be 1 in extragradient play, got 5"):
        TwoPlayer(model, decoder, critic, play="extragradient", critic_steps=5)
    with pytest.raises(ValueError, match="each parameter must belong to one player, found 4 that both have"):
        TwoPlayer(model, decoder, Player(list(model.decoder.parameters()), critic.loss))
    with pytest.raises(ValueError, match="parameters must hold at least one parameter"):
        Player([], critic.loss)
    with pytest.raises(ValueError, match="lr must be > 0, got -1"):
        Player(list(nn.Linear(1, 1).parameters()), critic.loss, lr=-1.0)
