"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.generative.adversarial.adversarial_pair import AdversarialConfig as AdversarialConfig
from lemmata.generative.adversarial.adversarial_pair import AdversarialPair as AdversarialPair
from lemmata.generative.adversarial.deconvolution_network import DeconvolutionNetwork as DeconvolutionNetwork
from lemmata.generative.adversarial.gan import GAN as GAN
from lemmata.generative.adversarial.gan import GANConfig as GANConfig
from lemmata.generative.adversarial.gan_losses import discriminator_loss as discriminator_loss
from lemmata.generative.adversarial.gan_losses import minimax_loss as minimax_loss
from lemmata.generative.adversarial.gan_losses import non_saturating_loss as non_saturating_loss
from lemmata.generative.adversarial.slope_penalty import gradient_norms as gradient_norms
from lemmata.generative.adversarial.slope_penalty import gradient_penalty as gradient_penalty
from lemmata.generative.adversarial.strided_critic import StridedCritic as StridedCritic
from lemmata.generative.adversarial.two_player import Player as Player
from lemmata.generative.adversarial.two_player import TwoPlayer as TwoPlayer
from lemmata.generative.adversarial.wgan import WGAN as WGAN
from lemmata.generative.adversarial.wgan import WGANConfig as WGANConfig

__all__ = [
    "AdversarialConfig",
    "AdversarialPair",
    "DeconvolutionNetwork",
    "GAN",
    "GANConfig",
    "Player",
    "StridedCritic",
    "TwoPlayer",
    "WGAN",
    "WGANConfig",
    "discriminator_loss",
    "gradient_norms",
    "gradient_penalty",
    "minimax_loss",
    "non_saturating_loss",
]
