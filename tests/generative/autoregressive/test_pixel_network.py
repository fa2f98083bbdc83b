"""The pixel network: a law that sums to one, no blind spot, crops that change nothing, and what is refused."""

import itertools

import pytest
import torch

from lemmata.generative.autoregressive import PixelNetwork, PixelNetworkConfig


def test_probabilities_of_all_small_images_add_up():
    torch.manual_seed(0)
    model = PixelNetwork(width=6, depth=2).double()
    images = torch.tensor(list(itertools.product([0.0, 1.0], repeat=6)), dtype=torch.float64).view(-1, 2, 3)
    assert float(model.log_prob(images).exp().sum().detach()) == pytest.approx(1.0, abs=1e-12)


def test_no_pixel_is_blind_to_what_is_above_it_on_the_right():
    torch.manual_seed(0)
    model, x = PixelNetwork(width=16, depth=4).double(), torch.rand(5, 5, 5).double().requires_grad_()
    model(x)[:, 4, 1].sum().backward()
    seen = (x.grad != 0).any(0)
    assert seen[0].all()
    assert seen[3].all()
    assert seen[4].tolist() == [True, False, False, False, False]


def test_sampling_looks_at_no_more_rows_than_matter():
    torch.manual_seed(0)
    model = PixelNetwork(width=5, depth=1).double()
    x = model.sample(3, height=7, width=4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole, cropped = model(x)[:, -1], model(x[:, -3:])[:, -1]  # one layer: two rows above, and its own
    assert torch.allclose(whole, cropped)
    assert torch.equal(x, model.sample(3, height=7, width=4, generator=torch.Generator().manual_seed(0)))
    assert x.unique().tolist() == [0.0, 1.0]


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    model = PixelNetwork(width=4, depth=1)
    with pytest.raises(ValueError, match="kernel_size must be odd, got 4: use 5"):
        PixelNetworkConfig(kernel_size=4)
    with pytest.raises(ValueError, match="a Bernoulli law knows no grey"):
        model.log_prob(torch.full((1, 3, 3), 0.5))
    with pytest.raises(ValueError, match="height must be >= 1, got 0"):
        model.sample(1, height=0, width=3)
    with pytest.raises(ValueError, match=r"x must be \(batch, height, width\)"):
        model(torch.zeros(2, 1, 3, 3))
