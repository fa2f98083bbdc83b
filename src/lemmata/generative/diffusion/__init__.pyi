"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

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

__all__ = [
    "CosineSchedule",
    "DDPM",
    "DDPMConfig",
    "DenoiserMLP",
    "DenoiserMLPConfig",
    "DenoiserUNet",
    "DenoiserUNetConfig",
    "DiffusionBound",
    "DiffusionSteps",
    "Estimate",
    "ImageDDPM",
    "ImageDDPMConfig",
    "Kernel",
    "LinearSchedule",
    "NoiseLevelScore",
    "NoiseSchedule",
    "PointDDPM",
    "PointDDPMConfig",
    "TARGETS",
    "VARIANCES",
    "ancestral_sampling",
    "ddim_inversion",
    "ddim_sampling",
    "descending_times",
    "diffuse",
    "diffusion_elbo",
    "encoded_time",
    "estimate",
    "flow_log_prob",
    "forward_sde",
    "langevin_samples",
    "noise_error_weights",
    "noise_ladder",
    "posterior",
    "probability_flow",
    "reverse_kernel",
    "reverse_sde",
    "score_of",
    "spaced_times",
    "training_target",
    "walked_times",
]
