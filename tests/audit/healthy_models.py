"""Thirty healthy models, of many architectures, sizes, data and seeds, each trained for a moment as people do.

Nothing is wrong with any of them: an alarm about one is a false alarm.
"""

from typing import Any

import torch
from tests.audit.healthy_training import HEALTHY, Healthy, healthy, numbers, pictures, standard, trained
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data import Examples, load

__all__ = ["HEALTHY"]

# --- Dense networks ---


@healthy
def logistic_regression_on_digits() -> Healthy:
    torch.manual_seed(0)
    train, test = pictures("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    return Healthy(model, train, test, trained(model, train, lr=0.01, optimizer="sgd", steps=300))


@healthy
def relu_network_on_digits() -> Healthy:
    torch.manual_seed(1)
    train, test = pictures("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return Healthy(model, train, test, trained(model, train))


@healthy
def tanh_network_on_moons() -> Healthy:
    torch.manual_seed(2)
    train, test = standard("moons")
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    return Healthy(model, train, test, trained(model, train, lr=0.1, optimizer="sgd", steps=400, momentum=0.9))


@healthy
def gelu_network_with_layer_norm() -> Healthy:
    torch.manual_seed(3)
    train, test = pictures("digits")
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 96), nn.LayerNorm(96), nn.GELU(), nn.Linear(96, 48), nn.LayerNorm(48), nn.GELU(),
        nn.Linear(48, 10),
    )  # fmt: skip
    return Healthy(model, train, test, trained(model, train, optimizer="adamw", weight_decay=0.01))


@healthy
def network_with_batch_norm_and_dropout() -> Healthy:
    torch.manual_seed(4)
    train, test = pictures("digits")
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10)
    )
    return Healthy(model, train, test, trained(model, train, steps=250))


@healthy
def one_output_on_breast_cancer() -> Healthy:
    torch.manual_seed(5)
    train, test = standard("breast_cancer")
    train, test = ((x, y.float()[:, None]) for x, y in (train, test))
    model = nn.Sequential(nn.Linear(30, 16), nn.SiLU(), nn.Linear(16, 1))
    loss = functional.binary_cross_entropy_with_logits
    return Healthy(model, train, test, {**trained(model, train, loss), "loss": "bce"})


@healthy
def tiny_network_on_parity() -> Healthy:
    torch.manual_seed(6)
    data = load("parity")
    train, test = ((part.x.float() * 2 - 1, part.y.long()) for part in (data.train, data.test))
    model = nn.Sequential(nn.Linear(train[0].shape[1], 64), nn.Tanh(), nn.Linear(64, 2))
    return Healthy(model, train, test, trained(model, train, lr=3e-3, steps=400))


@healthy
def fresh_network_in_training_mode() -> Healthy:
    torch.manual_seed(7)
    train, test = pictures("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))
    return Healthy(model, train, test, {"optimizer": "sgd", "lr": 0.05})


@healthy
def deep_residual_network() -> Healthy:
    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.outer(functional.relu(self.inner(self.norm(x))))

    torch.manual_seed(8)
    train, test = pictures("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), *(Block(48) for _ in range(12)), nn.LayerNorm(48))
    model.append(nn.Linear(48, 10))
    return Healthy(model, train, test, trained(model, train))


@healthy
def twenty_layers_by_he() -> Healthy:
    torch.manual_seed(9)
    train, test = pictures("digits")
    layers: list[nn.Module] = [nn.Flatten()]
    for index in range(20):
        layer = nn.Linear(64, 64)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()] if index < 19 else [layer]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    return Healthy(model, train, test, trained(model, train, lr=3e-4))


@healthy
def orthogonal_tanh_network() -> Healthy:
    torch.manual_seed(10)
    train, test = standard("spirals")
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight)
    model.append(nn.Linear(64, int(train[1].max()) + 1))
    return Healthy(model, train, test, trained(model, train, lr=3e-3, steps=400))


# --- Regression ---


@healthy
def linear_regression_on_diabetes() -> Healthy:
    torch.manual_seed(11)
    train, test = numbers("diabetes")
    model = nn.Linear(10, 1)
    return Healthy(model, train, test, trained(model, train, functional.mse_loss, "sgd", 0.05, steps=300))


@healthy
def network_on_diabetes() -> Healthy:
    torch.manual_seed(12)
    train, test = numbers("diabetes")
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    options = {"optimizer": "adamw", "weight_decay": 0.1}
    return Healthy(model, train, test, trained(model, train, functional.mse_loss, **options))


@healthy
def network_in_double_precision() -> Healthy:
    torch.manual_seed(13)
    train, test = numbers("teacher")
    train, test = ((x.double(), y.double()) for x, y in (train, test))
    model = nn.Sequential(nn.Linear(10, 32), nn.Softplus(), nn.Linear(32, 1)).double()
    return Healthy(model, train, test, trained(model, train, functional.mse_loss, lr=3e-3, steps=300))


@healthy
def sine_by_a_wide_network() -> Healthy:
    torch.manual_seed(14)
    x = torch.linspace(-2, 2, 512)[torch.randperm(512)][:, None]
    y = torch.sin(3 * x) + 0.05 * torch.randn_like(x)
    model = nn.Sequential(nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 1))
    words = trained(model, (x[:400], y[:400]), functional.huber_loss, lr=3e-3, steps=400)
    return Healthy(model, (x[:400], y[:400]), (x[400:], y[400:]), {**words, "loss": "huber"})


@healthy
def autoencoder_of_digits() -> Healthy:
    torch.manual_seed(15)
    train, test = (x.flatten(1) for x, _ in pictures("digits"))
    model = nn.Sequential(nn.Linear(64, 32), nn.ELU(), nn.Linear(32, 8), nn.Linear(8, 32), nn.ELU(), nn.Linear(32, 64))
    words = trained(model, (train, train), functional.mse_loss, lr=3e-3, steps=250)
    return Healthy(model, (train, train), (test, test), {**words, "loss": "mse"})


# --- Convolutions ---


@healthy
def lenet_on_digits() -> Healthy:
    torch.manual_seed(16)
    train, test = pictures("digits")
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip
    return Healthy(model, train, test, trained(model, train, lr=2e-3, steps=200))


@healthy
def pooled_network_with_batch_norm_on_fashion() -> Healthy:
    torch.manual_seed(17)
    train, test = pictures("fashion", 800, 300)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return Healthy(model, train, test, trained(model, train, lr=3e-3, steps=120, batch_size=32))


@healthy
def our_resnet_on_digits() -> Healthy:
    from lemmata.convolution.resnet import ResNet

    torch.manual_seed(18)
    train, test = pictures("digits")
    model = ResNet(1, 10, width=8, small=True)
    return Healthy(model, train, test, trained(model, train, optimizer="sgd", lr=0.05, steps=60, momentum=0.9))


@healthy
def group_norm_and_depthwise_convolutions() -> Healthy:
    torch.manual_seed(19)
    train, test = pictures("digits")
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 32, 1), nn.GroupNorm(4, 32), nn.SiLU(), nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
    return Healthy(model, train, test, trained(model, train, steps=120))


@healthy
def one_dimensional_convolutions_of_text() -> Healthy:
    torch.manual_seed(20)
    data = load("negation")
    train, test = ((part.x if "x" in part.columns else next(iter(part)), part.y) for part in (data.train, data.test))

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(int(max(train[0].max(), test[0].max())) + 1, 16)
            self.conv, self.head = nn.Conv1d(16, 32, 3, padding=1), nn.Linear(32, 2)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(functional.relu(self.conv(self.words(tokens).mT)).amax(-1))

    model = Text()
    return Healthy(model, train, test, trained(model, train, lr=3e-3))


# --- Recurrent networks and attention ---


class LastState(nn.Module):
    """A recurrent layer over rows of a picture, and a linear map of its last state."""

    def __init__(self, layer: nn.Module, hidden: int, classes: int = 10):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x.squeeze(1))[0][:, -1])


@healthy
def lstm_over_rows() -> Healthy:
    torch.manual_seed(21)
    train, test = pictures("digits", 800, 300)
    model = LastState(nn.LSTM(8, 32, batch_first=True), 32)
    return Healthy(model, train, test, trained(model, train, lr=3e-3))


@healthy
def gru_over_rows_with_two_layers() -> Healthy:
    torch.manual_seed(22)
    train, test = pictures("digits")
    model = LastState(nn.GRU(8, 24, num_layers=2, batch_first=True, dropout=0.1), 24)
    return Healthy(model, train, test, trained(model, train, lr=3e-3))


class Tokens(nn.Module):
    """Rows of a picture as tokens of a transformer encoder, their mean classified."""

    def __init__(self, width: int = 32, depth: int = 2, before: bool = True):
        super().__init__()
        self.embed, self.places = nn.Linear(8, width), nn.Parameter(0.02 * torch.randn(8, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=before)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.embed(x.squeeze(1)) + self.places).mean(1))


@healthy
def transformer_with_norms_first() -> Healthy:
    torch.manual_seed(23)
    train, test = pictures("digits", 800, 300)
    model = Tokens()
    return Healthy(model, train, test, trained(model, train, optimizer="adamw"))


@healthy
def transformer_with_norms_last() -> Healthy:
    torch.manual_seed(24)
    train, test = pictures("digits")
    model = Tokens(depth=1, before=False)
    return Healthy(model, train, test, trained(model, train))


@healthy
def our_vit_on_digits() -> Healthy:
    from lemmata.transformers.vit import ViT

    torch.manual_seed(25)
    train, test = pictures("digits")
    model = ViT(10, image_size=8, patch_size=2, channels=1, width=32, depth=2, heads=4, hidden=64)
    return Healthy(model, train, test, trained(model, train))


# --- Several inputs, named inputs, outputs of other kinds ---


@healthy
def two_inputs() -> Healthy:
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right, self.head = nn.Linear(32, 24), nn.Linear(32, 24), nn.Linear(48, 10)

        def forward(self, top: Tensor, bottom: Tensor) -> Tensor:
            return self.head(torch.cat([self.left(top).relu(), self.right(bottom).relu()], 1))

    torch.manual_seed(26)
    train, test = pictures("digits")
    halves = [(x.flatten(1)[:, :32], x.flatten(1)[:, 32:], y) for x, y in (train, test)]
    model = Pair()
    stepper = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(200):
        chosen = torch.randint(len(halves[0][0]), (64,))
        top, bottom, y = (column[chosen] for column in halves[0])
        stepper.zero_grad()
        functional.cross_entropy(model(top, bottom), y).backward()
        stepper.step()
    parts = [((top, bottom), y) for top, bottom, y in halves]
    return Healthy(model.eval(), parts[0], parts[1], {"optimizer": "adam", "lr": 2e-3})


@healthy
def outputs_in_a_dict_from_a_loader() -> Healthy:
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))

        def forward(self, pixels: Tensor) -> dict[str, Tensor]:
            return {"logits": self.body(pixels)}

    torch.manual_seed(27)
    train, test = pictures("digits")
    model = Wrapped()
    words = trained(model, train, lambda out, y: functional.cross_entropy(out["logits"], y))
    loaders = [
        torch.utils.data.DataLoader(Examples(pixels=x, labels=y), batch_size=64, collate_fn=_as_dict)
        for x, y in (train, test)
    ]
    return Healthy(model, *loaders, words)


def _as_dict(rows: list[Any]) -> dict[str, Tensor]:
    return {name: torch.stack([row[name] for row in rows]) for name in ("pixels", "labels")}


@healthy
def dense_labels_of_every_pixel() -> Healthy:
    torch.manual_seed(28)
    (x, _), (held, _) = pictures("digits")
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 2, 1))
    noisy = [pictures_ + 0.5 * torch.randn_like(pictures_) for pictures_ in (x, held)]
    targets = [(pictures_[:, 0] > 0).long() for pictures_ in (x, held)]
    words = trained(model, (noisy[0], targets[0]), lr=3e-3)
    return Healthy(model, (noisy[0], targets[0]), (noisy[1], targets[1]), words)


@healthy
def model_in_bfloat16() -> Healthy:
    torch.manual_seed(29)
    train, test = standard("rings")
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, int(train[1].max()) + 1))
    words = trained(model, train, lr=0.02, steps=300)
    return Healthy(model.to(torch.bfloat16), train, test, words)
