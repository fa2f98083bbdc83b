"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.generative import adversarial as adversarial
from lemmata.generative import autoencoders as autoencoders
from lemmata.generative import autoregressive as autoregressive
from lemmata.generative import diffusion as diffusion
from lemmata.generative import flows as flows
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
from lemmata.generative.autoregressive.linear_autoregression import LinearAutoregression as LinearAutoregression
from lemmata.generative.autoregressive.linear_autoregression import autocovariances as autocovariances
from lemmata.generative.autoregressive.linear_autoregression import levinson_durbin as levinson_durbin
from lemmata.generative.autoregressive.masked_network import MADE as MADE
from lemmata.generative.autoregressive.masked_network import MADEConfig as MADEConfig
from lemmata.generative.autoregressive.masked_network import autoregressive_masks as autoregressive_masks
from lemmata.generative.autoregressive.pixel_network import PixelNetwork as PixelNetwork
from lemmata.generative.autoregressive.pixel_network import PixelNetworkConfig as PixelNetworkConfig
from lemmata.generative.diffusion.ancestral import VARIANCES as VARIANCES
from lemmata.generative.diffusion.ancestral import ancestral_sampling as ancestral_sampling
from lemmata.generative.diffusion.ancestral import reverse_kernel as reverse_kernel
from lemmata.generative.diffusion.chain_bound import DiffusionBound as DiffusionBound
from lemmata.generative.diffusion.chain_bound import diffusion_elbo as diffusion_elbo
from lemmata.generative.diffusion.chain_bound import noise_error_weights as noise_error_weights
from lemmata.generative.diffusion.ddim import ddim_inversion as ddim_inversion
from lemmata.generative.diffusion.ddim import ddim_sampling as ddim_sampling
from lemmata.generative.diffusion.ddpm import DDPM as DDPM
from lemmata.generative.diffusion.ddpm import DDPMConfig as DDPMConfig
from lemmata.generative.diffusion.ddpm_networks import ImageDDPM as ImageDDPM
from lemmata.generative.diffusion.ddpm_networks import ImageDDPMConfig as ImageDDPMConfig
from lemmata.generative.diffusion.ddpm_networks import PointDDPM as PointDDPM
from lemmata.generative.diffusion.ddpm_networks import PointDDPMConfig as PointDDPMConfig
from lemmata.generative.diffusion.denoiser_mlp import DenoiserMLP as DenoiserMLP
from lemmata.generative.diffusion.denoiser_mlp import DenoiserMLPConfig as DenoiserMLPConfig
from lemmata.generative.diffusion.denoiser_mlp import encoded_time as encoded_time
from lemmata.generative.diffusion.denoiser_unet import DenoiserUNet as DenoiserUNet
from lemmata.generative.diffusion.denoiser_unet import DenoiserUNetConfig as DenoiserUNetConfig
from lemmata.generative.diffusion.flow_ode import flow_log_prob as flow_log_prob
from lemmata.generative.diffusion.flow_ode import probability_flow as probability_flow
from lemmata.generative.diffusion.forward_process import Kernel as Kernel
from lemmata.generative.diffusion.forward_process import diffuse as diffuse
from lemmata.generative.diffusion.forward_process import posterior as posterior
from lemmata.generative.diffusion.langevin import langevin_samples as langevin_samples
from lemmata.generative.diffusion.langevin import score_of as score_of
from lemmata.generative.diffusion.noise_schedule import CosineSchedule as CosineSchedule
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps as DiffusionSteps
from lemmata.generative.diffusion.noise_schedule import LinearSchedule as LinearSchedule
from lemmata.generative.diffusion.noise_schedule import NoiseSchedule as NoiseSchedule
from lemmata.generative.diffusion.reverse_time import descending_times as descending_times
from lemmata.generative.diffusion.reverse_time import forward_sde as forward_sde
from lemmata.generative.diffusion.reverse_time import reverse_sde as reverse_sde
from lemmata.generative.diffusion.sampling_times import spaced_times as spaced_times
from lemmata.generative.diffusion.sampling_times import walked_times as walked_times
from lemmata.generative.diffusion.score_matching import NoiseLevelScore as NoiseLevelScore
from lemmata.generative.diffusion.score_matching import noise_ladder as noise_ladder
from lemmata.generative.diffusion.targets import Estimate as Estimate
from lemmata.generative.diffusion.targets import TARGETS as TARGETS
from lemmata.generative.diffusion.targets import estimate as estimate
from lemmata.generative.diffusion.targets import training_target as training_target
from lemmata.generative.flows.affine import ActNorm as ActNorm
from lemmata.generative.flows.coupling import AffineCoupling as AffineCoupling
from lemmata.generative.flows.coupling import CouplingConfig as CouplingConfig
from lemmata.generative.flows.coupling import bounded_log_scale as bounded_log_scale
from lemmata.generative.flows.dequantize import Dequantize as Dequantize
from lemmata.generative.flows.dequantize import bits_per_dimension as bits_per_dimension
from lemmata.generative.flows.flow import Flow as Flow
from lemmata.generative.flows.flow import StandardNormal as StandardNormal
from lemmata.generative.flows.masked_affine import MaskedAffine as MaskedAffine
from lemmata.generative.flows.masked_affine import MaskedAutoregressiveFlow as MaskedAutoregressiveFlow
from lemmata.generative.flows.masked_affine import MaskedAutoregressiveFlowConfig as MaskedAutoregressiveFlowConfig
from lemmata.generative.flows.mixing import InvertibleConvolution as InvertibleConvolution
from lemmata.generative.flows.mixing import Permutation as Permutation
from lemmata.generative.flows.real_nvp import RealNVP as RealNVP
from lemmata.generative.flows.real_nvp import RealNVPConfig as RealNVPConfig
from lemmata.generative.flows.transform import Transform as Transform
from lemmata.generative.sample_figures import density_map as density_map
from lemmata.generative.sample_figures import image_grid as image_grid
from lemmata.generative.sample_figures import point_cloud as point_cloud

__all__ = [
    "ActNorm",
    "AdversarialAutoencoder",
    "AdversarialAutoencoderConfig",
    "AdversarialConfig",
    "AdversarialPair",
    "AffineCoupling",
    "BernoulliOutput",
    "ContinuousBernoulliOutput",
    "CosineSchedule",
    "CouplingConfig",
    "DDPM",
    "DDPMConfig",
    "DeconvolutionNetwork",
    "DeepAutoencoder",
    "DeepAutoencoderConfig",
    "DenoiserMLP",
    "DenoiserMLPConfig",
    "DenoiserUNet",
    "DenoiserUNetConfig",
    "DenoisingAutoencoder",
    "Dequantize",
    "DiffusionBound",
    "DiffusionSteps",
    "ELBO",
    "Estimate",
    "FactorAnalysis",
    "Flow",
    "GAN",
    "GANConfig",
    "GaussianOutput",
    "ImageDDPM",
    "ImageDDPMConfig",
    "ImageDenoiser",
    "ImageDenoiserConfig",
    "InvertibleConvolution",
    "Kernel",
    "LatentPenalty",
    "LatentPenaltyConfig",
    "LinearAutoencoder",
    "LinearAutoregression",
    "LinearSchedule",
    "LinearVAE",
    "MADE",
    "MADEConfig",
    "MLPVAE",
    "MMDAutoencoder",
    "MaskedAffine",
    "MaskedAutoregressiveFlow",
    "MaskedAutoregressiveFlowConfig",
    "NoiseLevelScore",
    "NoiseSchedule",
    "OutputDistribution",
    "PCA",
    "Permutation",
    "PixelNetwork",
    "PixelNetworkConfig",
    "Player",
    "PointDDPM",
    "PointDDPMConfig",
    "ProbabilisticPCA",
    "RealNVP",
    "RealNVPConfig",
    "StandardNormal",
    "StridedCritic",
    "TARGETS",
    "Transform",
    "TwoPlayer",
    "VAE",
    "VAEConfig",
    "VARIANCES",
    "WGAN",
    "WGANConfig",
    "WassersteinAutoencoder",
    "WassersteinAutoencoderConfig",
    "ancestral_sampling",
    "autocovariances",
    "autoregressive_masks",
    "bits_per_dimension",
    "bounded_log_scale",
    "ddim_inversion",
    "ddim_sampling",
    "density_map",
    "descending_times",
    "diffuse",
    "diffusion_elbo",
    "discrete_elbo",
    "discriminator_loss",
    "encoded_time",
    "estimate",
    "flow_log_prob",
    "forward_sde",
    "gradient_norms",
    "gradient_penalty",
    "image_grid",
    "importance_weighted_bound",
    "langevin_samples",
    "levinson_durbin",
    "linear_gaussian_elbo",
    "linear_gaussian_gap",
    "minimax_loss",
    "noise_error_weights",
    "noise_ladder",
    "non_saturating_loss",
    "point_cloud",
    "posterior",
    "probability_flow",
    "reparameterize",
    "reverse_kernel",
    "reverse_sde",
    "score_of",
    "spaced_times",
    "standard_normal_kl",
    "training_target",
    "walked_times",
]
