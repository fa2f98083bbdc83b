"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

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

__all__ = [
    "ActNorm",
    "AffineCoupling",
    "CouplingConfig",
    "Dequantize",
    "Flow",
    "InvertibleConvolution",
    "MaskedAffine",
    "MaskedAutoregressiveFlow",
    "MaskedAutoregressiveFlowConfig",
    "Permutation",
    "RealNVP",
    "RealNVPConfig",
    "StandardNormal",
    "Transform",
    "bits_per_dimension",
    "bounded_log_scale",
]
