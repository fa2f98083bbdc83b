"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.generative.autoencoders.decoders import BernoulliOutput as BernoulliOutput
from lemmata.generative.autoencoders.decoders import ContinuousBernoulliOutput as ContinuousBernoulliOutput
from lemmata.generative.autoencoders.decoders import GaussianOutput as GaussianOutput
from lemmata.generative.autoencoders.decoders import OutputDistribution as OutputDistribution
from lemmata.generative.autoencoders.deep_autoencoder import DeepAutoencoder as DeepAutoencoder
from lemmata.generative.autoencoders.deep_autoencoder import DeepAutoencoderConfig as DeepAutoencoderConfig
from lemmata.generative.autoencoders.denoising_autoencoder import DenoisingAutoencoder as DenoisingAutoencoder
from lemmata.generative.autoencoders.denoising_autoencoder import ImageDenoiser as ImageDenoiser
from lemmata.generative.autoencoders.denoising_autoencoder import ImageDenoiserConfig as ImageDenoiserConfig
from lemmata.generative.autoencoders.elbo import ELBO as ELBO
from lemmata.generative.autoencoders.elbo import discrete_elbo as discrete_elbo
from lemmata.generative.autoencoders.elbo import importance_weighted_bound as importance_weighted_bound
from lemmata.generative.autoencoders.elbo import linear_gaussian_elbo as linear_gaussian_elbo
from lemmata.generative.autoencoders.elbo import linear_gaussian_gap as linear_gaussian_gap
from lemmata.generative.autoencoders.elbo import reparameterize as reparameterize
from lemmata.generative.autoencoders.elbo import standard_normal_kl as standard_normal_kl
from lemmata.generative.autoencoders.factor_analysis import FactorAnalysis as FactorAnalysis
from lemmata.generative.autoencoders.latent_penalty import AdversarialAutoencoder as AdversarialAutoencoder
from lemmata.generative.autoencoders.latent_penalty import AdversarialAutoencoderConfig as AdversarialAutoencoderConfig
from lemmata.generative.autoencoders.latent_penalty import LatentPenalty as LatentPenalty
from lemmata.generative.autoencoders.latent_penalty import LatentPenaltyConfig as LatentPenaltyConfig
from lemmata.generative.autoencoders.latent_penalty import MMDAutoencoder as MMDAutoencoder
from lemmata.generative.autoencoders.latent_penalty import WassersteinAutoencoder as WassersteinAutoencoder
from lemmata.generative.autoencoders.latent_penalty import WassersteinAutoencoderConfig as WassersteinAutoencoderConfig
from lemmata.generative.autoencoders.linear_autoencoder import LinearAutoencoder as LinearAutoencoder
from lemmata.generative.autoencoders.linear_vae import LinearVAE as LinearVAE
from lemmata.generative.autoencoders.pca import PCA as PCA
from lemmata.generative.autoencoders.probabilistic_pca import ProbabilisticPCA as ProbabilisticPCA
from lemmata.generative.autoencoders.vae import MLPVAE as MLPVAE
from lemmata.generative.autoencoders.vae import VAE as VAE
from lemmata.generative.autoencoders.vae import VAEConfig as VAEConfig

__all__ = [
    "AdversarialAutoencoder",
    "AdversarialAutoencoderConfig",
    "BernoulliOutput",
    "ContinuousBernoulliOutput",
    "DeepAutoencoder",
    "DeepAutoencoderConfig",
    "DenoisingAutoencoder",
    "ELBO",
    "FactorAnalysis",
    "GaussianOutput",
    "ImageDenoiser",
    "ImageDenoiserConfig",
    "LatentPenalty",
    "LatentPenaltyConfig",
    "LinearAutoencoder",
    "LinearVAE",
    "MLPVAE",
    "MMDAutoencoder",
    "OutputDistribution",
    "PCA",
    "ProbabilisticPCA",
    "VAE",
    "VAEConfig",
    "WassersteinAutoencoder",
    "WassersteinAutoencoderConfig",
    "discrete_elbo",
    "importance_weighted_bound",
    "linear_gaussian_elbo",
    "linear_gaussian_gap",
    "reparameterize",
    "standard_normal_kl",
]
