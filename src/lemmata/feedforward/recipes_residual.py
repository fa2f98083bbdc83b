"""What can be trained of residual networks: many layers on pictures and on points in the plane."""

from dataclasses import dataclass

from lemmata import validate
from lemmata.data.registry import load
from lemmata.feedforward.recipes import DIGITS, FASHION, HOW, classification, straight_line
from lemmata.feedforward.residual import ResidualMLP, ResidualMLPConfig
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.options import Options

__all__ = ["ResidualPictureConfig", "residual_clothing", "residual_digits", "residual_points"]


@dataclass(frozen=True)
class ResidualPictureConfig(ResidualMLPConfig):
    """What can be chosen of a residual network for pictures, and of how its pictures are varied."""

    shift: int = 0
    """Pixels by which a training picture is moved at most, each way."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("shift", self.shift, least=0)


@recipe("resmlp", data="digits", metric="accuracy")
def residual_digits(
    data: str = "digits",
    config: ResidualPictureConfig = ResidualPictureConfig(width=256, depth=32, dropout=0.3),  # noqa: B008 - frozen
    options: Options = Options(epochs=30, lr=5e-4, weight_decay=0.05, schedule="cosine", evaluate=3),  # noqa: B008
) -> Experiment:
    """Ten handwritten digits, from 1,438 pictures of 8 by 8 pixels, by 32 residual layers."""
    return _residual_experiment(data, config, options, {"baselines": DIGITS, "how": HOW})


@recipe("resmlp", data="fashion", metric="accuracy")
def residual_clothing(
    data: str = "fashion",
    config: ResidualPictureConfig = ResidualPictureConfig(width=256, depth=8, dropout=0.3, shift=1),  # noqa: B008
    options: Options = Options(epochs=60, batch_size=128, lr=5e-4, weight_decay=0.05, schedule="cosine", evaluate=4),  # noqa: B008
) -> Experiment:
    """Ten kinds of clothing, from 2,000 small pictures, by eight residual layers."""
    return _residual_experiment(data, config, options, {"baselines": FASHION, "how": HOW})


@recipe("resmlp", data="moons rings spirals xor", metric="accuracy")
def residual_points(
    data: str = "moons",
    config: ResidualMLPConfig = ResidualMLPConfig(width=16, depth=64),  # noqa: B008
    options: Options = Options(epochs=15, lr=1e-3, schedule="cosine", evaluate=3),  # noqa: B008
) -> Experiment:
    """Classes of points in the plane that no straight line separates, by 64 residual layers of 16 units."""
    return _residual_experiment(data, config, options, straight_line(data))


def _residual_experiment(data: str, config: ResidualMLPConfig, options: Options, notes: dict) -> Experiment:
    return classification(load(data), config, options, notes, ResidualMLP, ResidualMLPConfig)
