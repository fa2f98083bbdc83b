"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.vision.blooming import bloom as bloom
from lemmata.vision.borders import pad_image as pad_image
from lemmata.vision.colour_camera import bayer_mosaic as bayer_mosaic
from lemmata.vision.colour_camera import demosaic as demosaic
from lemmata.vision.colour_camera import prism_camera as prism_camera
from lemmata.vision.gradient_kernels import difference_kernel as difference_kernel
from lemmata.vision.gradient_kernels import image_gradient as image_gradient
from lemmata.vision.gradient_kernels import laplacian_kernel as laplacian_kernel
from lemmata.vision.gradient_kernels import prewitt_kernel as prewitt_kernel
from lemmata.vision.gradient_kernels import sobel_kernel as sobel_kernel
from lemmata.vision.image_arguments import as_float_image as as_float_image
from lemmata.vision.image_filter import filter_image as filter_image
from lemmata.vision.image_noise import add_gaussian_noise as add_gaussian_noise
from lemmata.vision.image_noise import add_impulse_noise as add_impulse_noise
from lemmata.vision.image_noise import add_shot_noise as add_shot_noise
from lemmata.vision.image_noise import multiply_noise as multiply_noise
from lemmata.vision.image_noise import noise_gain as noise_gain
from lemmata.vision.image_noise import quantise as quantise
from lemmata.vision.motion_blur import motion_blur_kernel as motion_blur_kernel
from lemmata.vision.motion_blur import motion_blur_length as motion_blur_length
from lemmata.vision.motion_blur import motion_blur_spectrum as motion_blur_spectrum
from lemmata.vision.restoration import Restoration as Restoration
from lemmata.vision.restoration import Restored as Restored
from lemmata.vision.restoration import transfer_function as transfer_function
from lemmata.vision.sampling import gaussian_reconstruct as gaussian_reconstruct
from lemmata.vision.sampling import periodic_reconstruct as periodic_reconstruct
from lemmata.vision.sampling import resize_image as resize_image
from lemmata.vision.sampling import sampled_spectrum as sampled_spectrum
from lemmata.vision.sampling import siemens_star as siemens_star
from lemmata.vision.sampling import sinc_reconstruct as sinc_reconstruct
from lemmata.vision.segmentation import connected_parts as connected_parts
from lemmata.vision.segmentation import is_partition as is_partition
from lemmata.vision.segmentation import labels_of as labels_of
from lemmata.vision.segmentation import regions_of as regions_of
from lemmata.vision.sensor import Sensor as Sensor
from lemmata.vision.separable_kernel import Separable as Separable
from lemmata.vision.separable_kernel import separated as separated
from lemmata.vision.smoothing_kernels import box_kernel as box_kernel
from lemmata.vision.smoothing_kernels import gaussian_filter as gaussian_filter
from lemmata.vision.smoothing_kernels import gaussian_kernel as gaussian_kernel
from lemmata.vision.smoothing_kernels import highpass_kernel as highpass_kernel
from lemmata.vision.smoothing_kernels import median_filter as median_filter
from lemmata.vision.thresholding import Threshold as Threshold
from lemmata.vision.thresholding import area_under_roc as area_under_roc
from lemmata.vision.thresholding import best_threshold as best_threshold
from lemmata.vision.thresholding import equal_variance_threshold as equal_variance_threshold
from lemmata.vision.thresholding import roc_curve as roc_curve

__all__ = [
    "Restoration",
    "Restored",
    "Sensor",
    "Separable",
    "Threshold",
    "add_gaussian_noise",
    "add_impulse_noise",
    "add_shot_noise",
    "area_under_roc",
    "as_float_image",
    "bayer_mosaic",
    "best_threshold",
    "bloom",
    "box_kernel",
    "connected_parts",
    "demosaic",
    "difference_kernel",
    "equal_variance_threshold",
    "filter_image",
    "gaussian_filter",
    "gaussian_kernel",
    "gaussian_reconstruct",
    "highpass_kernel",
    "image_gradient",
    "is_partition",
    "labels_of",
    "laplacian_kernel",
    "median_filter",
    "motion_blur_kernel",
    "motion_blur_length",
    "motion_blur_spectrum",
    "multiply_noise",
    "noise_gain",
    "pad_image",
    "periodic_reconstruct",
    "prewitt_kernel",
    "prism_camera",
    "quantise",
    "regions_of",
    "resize_image",
    "roc_curve",
    "sampled_spectrum",
    "separated",
    "siemens_star",
    "sinc_reconstruct",
    "sobel_kernel",
    "transfer_function",
]
