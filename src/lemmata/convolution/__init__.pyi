"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.convolution.alexnet import AlexNet as AlexNet
from lemmata.convolution.alexnet import AlexNetConfig as AlexNetConfig
from lemmata.convolution.convolution_backward import conv_input_gradient as conv_input_gradient
from lemmata.convolution.convolution_backward import conv_weight_gradient as conv_weight_gradient
from lemmata.convolution.convolution_cost import direct_operations as direct_operations
from lemmata.convolution.convolution_cost import fft_operations as fft_operations
from lemmata.convolution.convolution_cost import fft_pays as fft_pays
from lemmata.convolution.convolution_layer import conv_nd as conv_nd
from lemmata.convolution.convolution_layer import conv_transpose_nd as conv_transpose_nd
from lemmata.convolution.densenet import DenseBlock as DenseBlock
from lemmata.convolution.densenet import DenseNet as DenseNet
from lemmata.convolution.densenet import DenseNetConfig as DenseNetConfig
from lemmata.convolution.discrete_convolution import convolve as convolve
from lemmata.convolution.discrete_convolution import correlate as correlate
from lemmata.convolution.fourier import fourier_transform as fourier_transform
from lemmata.convolution.fourier import inverse_fourier_transform as inverse_fourier_transform
from lemmata.convolution.glove import CoOccurrences as CoOccurrences
from lemmata.convolution.glove import GloVe as GloVe
from lemmata.convolution.glove import cooccurrence_counts as cooccurrence_counts
from lemmata.convolution.inception import GoogLeNet as GoogLeNet
from lemmata.convolution.inception import GoogLeNetConfig as GoogLeNetConfig
from lemmata.convolution.inception import InceptionModule as InceptionModule
from lemmata.convolution.lenet import LeNet5 as LeNet5
from lemmata.convolution.lenet import LeNet5Config as LeNet5Config
from lemmata.convolution.padding import pad_space as pad_space
from lemmata.convolution.pooling import Pool as Pool
from lemmata.convolution.pooling import pool_nd as pool_nd
from lemmata.convolution.receptive_fields import ReceptiveField as ReceptiveField
from lemmata.convolution.receptive_fields import gradient_field as gradient_field
from lemmata.convolution.receptive_fields import receptive_field as receptive_field
from lemmata.convolution.resnet import BasicResidualBlock as BasicResidualBlock
from lemmata.convolution.resnet import BottleneckResidualBlock as BottleneckResidualBlock
from lemmata.convolution.resnet import ResNet as ResNet
from lemmata.convolution.resnet import ResNetConfig as ResNetConfig
from lemmata.convolution.sizes import ParameterCounts as ParameterCounts
from lemmata.convolution.sizes import output_size as output_size
from lemmata.convolution.sizes import parameter_counts as parameter_counts
from lemmata.convolution.sizes import same_padding as same_padding
from lemmata.convolution.sizes import transposed_output_size as transposed_output_size
from lemmata.convolution.skip_gram import SkipGram as SkipGram
from lemmata.convolution.skip_gram import cooccurring_pairs as cooccurring_pairs
from lemmata.convolution.skip_gram import thinned as thinned
from lemmata.convolution.skip_gram import unigram_distribution as unigram_distribution
from lemmata.convolution.temporal_convolution import CausalConv1d as CausalConv1d
from lemmata.convolution.temporal_convolution import TCN as TCN
from lemmata.convolution.temporal_convolution import TCNConfig as TCNConfig
from lemmata.convolution.text_cnn import TextCNN as TextCNN
from lemmata.convolution.text_cnn import TextCNNConfig as TextCNNConfig
from lemmata.convolution.toeplitz import convolution_matrix as convolution_matrix
from lemmata.convolution.toeplitz import toeplitz_matrix as toeplitz_matrix
from lemmata.convolution.unet import UNet as UNet
from lemmata.convolution.unet import UNetConfig as UNetConfig
from lemmata.convolution.vgg import VGG as VGG
from lemmata.convolution.vgg import VGGConfig as VGGConfig
from lemmata.convolution.wavenet import WaveNet as WaveNet
from lemmata.convolution.wavenet import WaveNetConfig as WaveNetConfig
from lemmata.convolution.wavenet import WaveNetState as WaveNetState

__all__ = [
    "AlexNet",
    "AlexNetConfig",
    "BasicResidualBlock",
    "BottleneckResidualBlock",
    "CausalConv1d",
    "CoOccurrences",
    "DenseBlock",
    "DenseNet",
    "DenseNetConfig",
    "GloVe",
    "GoogLeNet",
    "GoogLeNetConfig",
    "InceptionModule",
    "LeNet5",
    "LeNet5Config",
    "ParameterCounts",
    "Pool",
    "ReceptiveField",
    "ResNet",
    "ResNetConfig",
    "SkipGram",
    "TCN",
    "TCNConfig",
    "TextCNN",
    "TextCNNConfig",
    "UNet",
    "UNetConfig",
    "VGG",
    "VGGConfig",
    "WaveNet",
    "WaveNetConfig",
    "WaveNetState",
    "conv_input_gradient",
    "conv_nd",
    "conv_transpose_nd",
    "conv_weight_gradient",
    "convolution_matrix",
    "convolve",
    "cooccurrence_counts",
    "cooccurring_pairs",
    "correlate",
    "direct_operations",
    "fft_operations",
    "fft_pays",
    "fourier_transform",
    "gradient_field",
    "inverse_fourier_transform",
    "output_size",
    "pad_space",
    "parameter_counts",
    "pool_nd",
    "receptive_field",
    "same_padding",
    "thinned",
    "toeplitz_matrix",
    "transposed_output_size",
    "unigram_distribution",
]
