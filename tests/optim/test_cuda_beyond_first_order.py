"""Muon, SAM, Newton's methods, extragradient, entropy-SGD and averages on a GPU, beside the processor."""

import pytest
import torch
from torch import nn

from lemmata.optim import SAM, EntropySGD, Extragradient, Muon, Newton, NewtonCG, PolyakAverage, newton_schulz

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
MAKES = {
    "muon": lambda model: Muon(model, lr=0.02),
    "muon by svd": lambda model: Muon(model, lr=0.02, method="svd"),
    "sam": lambda model: SAM(model.parameters(), torch.optim.SGD, lr=0.05),
    "adaptive sam": lambda model: SAM(model.parameters(), torch.optim.AdamW, lr=0.01, adaptive=True),
    "newton": lambda model: Newton(model.parameters(), lr=0.5, damping=1.0),
    "newton_cg": lambda model: NewtonCG(model.parameters(), damping=1.0, tolerance=1e-10),
    "extragradient": lambda model: Extragradient(model.parameters(), lr=0.05),
    "entropy_sgd": lambda model: EntropySGD(model.parameters(), lr=0.05, noise=0.0),
}


def learnt(make, device, dtype=torch.float64):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2)).to(device, dtype)
    x = torch.randn(16, 3).to(device, dtype)  # of full rank: no singular value lies within rounding of zero
    optimizer, average = make(model), PolyakAverage(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - x[:, :2] ** 2).square().mean()
        loss.backward()
        return loss

    losses = []
    for _ in range(10):
        if isinstance(optimizer, Muon):
            losses.append(closure())
            optimizer.step()
        else:
            losses.append(optimizer.step(closure))
        average.update()
    with average.applied():
        vector = nn.utils.parameters_to_vector(model.parameters()).detach()
    return vector, [float(loss.detach()) for loss in losses]


@pytest.mark.parametrize("name", MAKES)
def test_steps_are_those_of_the_cpu(name):
    here, _ = learnt(MAKES[name], "cpu")
    there, _ = learnt(MAKES[name], "cuda")
    assert there.is_cuda
    torch.testing.assert_close(there.cpu(), here, rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MAKES)
def test_narrow_numbers_learn_too(name, dtype):
    vector, losses = learnt(MAKES[name], "cuda", dtype)
    assert vector.isfinite().all()
    assert losses[-1] < losses[0]


def test_muon_multiplies_in_bfloat16_there_and_stays_near():
    torch.manual_seed(0)
    shapes = [(64, 64), (256, 64), (64, 256)] * 4
    weights = [nn.Parameter(torch.zeros(shape, device="cuda")) for shape in shapes]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    Muon(weights, lr=1.0, weight_decay=0.0, adjust_lr_fn="rms_to_rms").step()
    for weight in weights:
        assert weight.grad is not None
        factor = (weight.shape[0] / weight.shape[1]) ** 0.5
        expected = -factor * newton_schulz(weight.grad.double())
        assert (weight - expected).norm() < 0.05 * expected.norm()
