"""Autoencoders with a prior on their codes: gradients of each player, clipping, pixels, dtypes, resuming, refusals."""

import pytest
import torch

from lemmata.data.examples import Examples
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.generative.autoencoders.latent_penalty import (
    AdversarialAutoencoder,
    MMDAutoencoder,
    WassersteinAutoencoder,
)
from lemmata.train import fit

WITH_CRITIC = (AdversarialAutoencoder, WassersteinAutoencoder)
ALL = (*WITH_CRITIC, MMDAutoencoder)


def made(model, **settings):
    torch.manual_seed(0)
    return model(6, code=2, widths=(8,), **settings), torch.rand(9, 2, 3)


@pytest.mark.parametrize("model", ALL)
def test_examples_keep_their_shape_and_samples_are_those_of_the_generator(model):
    found, x = made(model)
    assert found(x).shape == x.shape
    assert found.encode(x).shape == (9, 2)
    drawn = [found.sample(4, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(*drawn)
    assert drawn[0].shape == (4, 6)
    assert torch.equal(found.loss(x, generator=torch.Generator()), found.loss(x, generator=torch.Generator()))


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_losses_are_finite_in_other_precisions_and_for_a_single_example(model, dtype):
    found, x = made(model, dtype=dtype)
    for batch in (x, x[:1]):
        assert bool(found.loss(batch.to(dtype)).isfinite())
        if model in WITH_CRITIC:
            assert bool(found.critic_loss(batch.to(dtype)).isfinite())


@pytest.mark.parametrize("model", ALL)
def test_without_a_penalty_the_loss_is_the_squared_error(model):
    found, x = made(model, penalty_weight=0.0)
    assert found.loss(x).item() == pytest.approx((found(x) - x).square().sum((1, 2)).mean().item(), rel=1e-5)


def test_pixels_lie_between_zero_and_one():
    found, x = made(MMDAutoencoder, pixels=True)
    assert 0 < float(found(100 * x).detach().min()) <= float(found.sample(50).max()) < 1
    assert float(made(MMDAutoencoder)[0].sample(500).min()) < 0


@pytest.mark.parametrize("model", WITH_CRITIC)
def test_each_player_moves_itself_alone(model):
    found, x = made(model)
    before = {name: value.clone() for name, value in found.state_dict().items()}
    found.critic_loss(x).backward()
    assert all(value.grad is None for name, value in found.named_parameters() if not name.startswith("critic"))
    first, _ = found.players()
    assert len(first.parameters) == len([name for name in before if not name.startswith("critic")])
    TwoPlayer(found, *found.players(), critic_steps=2).step(Examples(x=x), 0.0)
    moved = {name.split(".")[0] for name, value in found.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"encoder", "decoder", "critic"}


def test_the_critics_weights_are_clipped_from_the_start():
    found, x = made(WassersteinAutoencoder, constraint="clipping", largest_weight=0.03)
    learner = TwoPlayer(found, *found.players(lr=0.1))
    for _ in range(3):
        assert max(float(weight.detach().abs().max()) for weight in found.critic.parameters()) <= 0.0301
        learner.step(Examples(x=x), 0.0)
    assert max(float(weight.detach().abs().max()) for weight in found.decoder.parameters()) > 0.1


def test_a_penalty_is_of_the_sign_that_the_encoder_lowers():
    found, _ = made(WassersteinAutoencoder)
    critic = torch.nn.Linear(2, 1, bias=False)
    _ = critic.weight.data.copy_(torch.tensor([[1.0, 0.0]]))
    found.critic = critic
    codes, prior = torch.tensor([[3.0, 0.0]]), torch.zeros(4, 2)
    assert found.penalty(codes, prior) == 3.0
    adversarial, _ = made(AdversarialAutoencoder)
    adversarial.critic = critic  # a high logit says: prior
    assert adversarial.penalty(-codes, prior + 3) > adversarial.penalty(codes, prior - 3)


@pytest.mark.parametrize("model", WITH_CRITIC)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(model, tmp_path):
    x = torch.rand(64, 6, generator=torch.Generator().manual_seed(3))

    def run(**more):
        found, _ = made(model)
        learner = TwoPlayer(found, *found.players(), critic_steps=2, schedule="linear")
        return fit(found, x, learner=learner, batch_size=16, device="cpu", progress=False, **more).model.state_dict()

    whole = run(epochs=3)
    run(epochs=3, out=tmp_path / "run", on_step=lambda state: state.step == 5)
    resumed = run(epochs=3, out=tmp_path / "run", resume=True)
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AdversarialAutoencoder(6, penalty_weight=-1.0), "penalty_weight must be >= 0, got -1"),
        (lambda: WassersteinAutoencoder(6, constraint="spectral"), "constraint must be one of penalty, clipping"),
        (lambda: WassersteinAutoencoder(6, slope_weight=0.0), "slope_weight must be > 0, got 0"),
        (lambda: WassersteinAutoencoder(6, largest_weight=0.0), "largest_weight must be > 0, got 0"),
        (lambda: MMDAutoencoder(6, code=0), "code must be >= 1, got 0"),
        (lambda: MMDAutoencoder(6).sample(0), "n must be >= 1, got 0"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
