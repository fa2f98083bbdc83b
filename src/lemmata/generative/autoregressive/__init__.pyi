"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.generative.autoregressive.linear_autoregression import LinearAutoregression as LinearAutoregression
from lemmata.generative.autoregressive.linear_autoregression import autocovariances as autocovariances
from lemmata.generative.autoregressive.linear_autoregression import levinson_durbin as levinson_durbin
from lemmata.generative.autoregressive.masked_network import MADE as MADE
from lemmata.generative.autoregressive.masked_network import MADEConfig as MADEConfig
from lemmata.generative.autoregressive.masked_network import autoregressive_masks as autoregressive_masks
from lemmata.generative.autoregressive.pixel_network import PixelNetwork as PixelNetwork
from lemmata.generative.autoregressive.pixel_network import PixelNetworkConfig as PixelNetworkConfig

__all__ = [
    "LinearAutoregression",
    "MADE",
    "MADEConfig",
    "PixelNetwork",
    "PixelNetworkConfig",
    "autocovariances",
    "autoregressive_masks",
    "levinson_durbin",
]
