"""Networks that draw at random: refused while they do, let through when they no longer do."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.random_parts import without_draws


class Attending(nn.Module):
    def __init__(self, dropout=0.5):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, dropout=dropout, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]  # with weights: torch has no second derivative without


@pytest.mark.parametrize(
    "make",
    [
        lambda p: Attending(p),
        lambda p: nn.LSTM(4, 4, num_layers=2, dropout=p),
        lambda p: nn.GRU(4, 4, num_layers=2, dropout=p),
        lambda p: nn.TransformerEncoderLayer(4, 2, 8, dropout=p),
        lambda p: nn.RReLU(0.1, 0.1 + p),
        lambda p: nn.AlphaDropout(p),
    ],
)
def test_a_model_that_draws_is_refused_until_it_no_longer_does(make):
    for p, training in ((0.5, True), (0.5, False), (0.0, True)):
        model = nn.Sequential(nn.Linear(4, 4), make(p)).train(training)
        if p and training:
            with pytest.raises(ValueError, match=r"call model.eval\(\) first"):
                without_draws(model)
        else:
            assert without_draws(model) is model


@pytest.mark.filterwarnings("ignore:dropout option adds dropout after all but last")
def test_a_single_recurrent_layer_drops_nothing():
    assert without_draws(nn.LSTM(4, 4, dropout=0.5)).training


def test_curvature_of_attention_is_that_without_drops():
    torch.manual_seed(0)
    x, y = torch.randn(2, 3, 4).double(), torch.randn(2, 3, 4).double()
    with pytest.raises(ValueError, match="model must not draw units while it is measured"):
        HessianOperator(Attending().double(), functional.mse_loss, (x, y))
    model, plain = Attending().double().eval(), Attending(dropout=0.0).double()
    plain.load_state_dict(model.state_dict())
    found, expected = (HessianOperator(one, functional.mse_loss, (x, y)).dense() for one in (model, plain))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
