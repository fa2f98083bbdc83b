"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.kernel.activation_kernels import ActivationKernel as ActivationKernel
from lemmata.kernel.activation_kernels import activation_kernel as activation_kernel
from lemmata.kernel.covariance_functions import ConstantKernel as ConstantKernel
from lemmata.kernel.covariance_functions import CovarianceFunction as CovarianceFunction
from lemmata.kernel.covariance_functions import ProductKernel as ProductKernel
from lemmata.kernel.covariance_functions import SumKernel as SumKernel
from lemmata.kernel.gaussian_process import GaussianPrediction as GaussianPrediction
from lemmata.kernel.gaussian_process import GaussianProcess as GaussianProcess
from lemmata.kernel.gp_likelihood import gaussian_log_likelihood as gaussian_log_likelihood
from lemmata.kernel.infinite_width import InfiniteKernels as InfiniteKernels
from lemmata.kernel.infinite_width import infinite_kernels as infinite_kernels
from lemmata.kernel.infinite_width import infinite_ntk as infinite_ntk
from lemmata.kernel.infinite_width import nngp as nngp
from lemmata.kernel.inner_product_kernels import ArcCosineKernel as ArcCosineKernel
from lemmata.kernel.inner_product_kernels import LinearKernel as LinearKernel
from lemmata.kernel.kernel_regression import KernelRegression as KernelRegression
from lemmata.kernel.linearized_network import LinearizedNetwork as LinearizedNetwork
from lemmata.kernel.linearized_network import linearize as linearize
from lemmata.kernel.named_kernels import covariance_function as covariance_function
from lemmata.kernel.ntk_parametrisation import NTKLinear as NTKLinear
from lemmata.kernel.ntk_parametrisation import ntk_mlp as ntk_mlp
from lemmata.kernel.stationary_kernels import MaternKernel as MaternKernel
from lemmata.kernel.stationary_kernels import PeriodicKernel as PeriodicKernel
from lemmata.kernel.stationary_kernels import RBFKernel as RBFKernel
from lemmata.kernel.tangent_classifiers import InfiniteWidthClassifier as InfiniteWidthClassifier
from lemmata.kernel.tangent_classifiers import LinearizedClassifier as LinearizedClassifier
from lemmata.kernel.tangent_kernel import ntk as ntk
from lemmata.kernel.tangent_kernel import ntk_by_definition as ntk_by_definition
from lemmata.kernel.tangent_kernel import tangent_rules as tangent_rules
from lemmata.kernel.tangent_spectra import TangentSpectrum as TangentSpectrum
from lemmata.kernel.tangent_spectra import kernel_drift as kernel_drift
from lemmata.kernel.tangent_spectra import tangent_spectrum as tangent_spectrum

__all__ = [
    "ActivationKernel",
    "ArcCosineKernel",
    "ConstantKernel",
    "CovarianceFunction",
    "GaussianPrediction",
    "GaussianProcess",
    "InfiniteKernels",
    "InfiniteWidthClassifier",
    "KernelRegression",
    "LinearKernel",
    "LinearizedClassifier",
    "LinearizedNetwork",
    "MaternKernel",
    "NTKLinear",
    "PeriodicKernel",
    "ProductKernel",
    "RBFKernel",
    "SumKernel",
    "TangentSpectrum",
    "activation_kernel",
    "covariance_function",
    "gaussian_log_likelihood",
    "infinite_kernels",
    "infinite_ntk",
    "kernel_drift",
    "linearize",
    "nngp",
    "ntk",
    "ntk_by_definition",
    "ntk_mlp",
    "tangent_rules",
    "tangent_spectrum",
]
