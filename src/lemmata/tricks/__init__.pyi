"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.tricks.augmentation import Augment as Augment
from lemmata.tricks.augmentation import Crop as Crop
from lemmata.tricks.augmentation import Cutout as Cutout
from lemmata.tricks.augmentation import Flip as Flip
from lemmata.tricks.augmentation import Noise as Noise
from lemmata.tricks.augmentation import Rotate as Rotate
from lemmata.tricks.augmentation import Shift as Shift
from lemmata.tricks.augmentation import Transformation as Transformation
from lemmata.tricks.augmentation import extended as extended
from lemmata.tricks.batch_norm import BatchNorm as BatchNorm
from lemmata.tricks.comparison import Comparison as Comparison
from lemmata.tricks.comparison import TRICKS as TRICKS
from lemmata.tricks.comparison import Trick as Trick
from lemmata.tricks.comparison import apply_tricks as apply_tricks
from lemmata.tricks.comparison import compare as compare
from lemmata.tricks.distillation import DistillationLoss as DistillationLoss
from lemmata.tricks.distillation import TransferSet as TransferSet
from lemmata.tricks.distillation import distill as distill
from lemmata.tricks.distillation import distillation_loss as distillation_loss
from lemmata.tricks.distillation import transfer_set as transfer_set
from lemmata.tricks.dropconnect import DropConnect as DropConnect
from lemmata.tricks.dropout import Dropout as Dropout
from lemmata.tricks.dropout import DropoutEnsemble as DropoutEnsemble
from lemmata.tricks.dropout import dropout_ensemble as dropout_ensemble
from lemmata.tricks.dropout import scaled_for_inference as scaled_for_inference
from lemmata.tricks.early_stopping import EarlyStopping as EarlyStopping
from lemmata.tricks.early_stopping import descent_shrinkage as descent_shrinkage
from lemmata.tricks.early_stopping import matching_steps as matching_steps
from lemmata.tricks.initialization import InitializedParameter as InitializedParameter
from lemmata.tricks.initialization import initialize as initialize
from lemmata.tricks.initialization import weight_variance as weight_variance
from lemmata.tricks.label_smoothing import smooth_labels as smooth_labels
from lemmata.tricks.label_smoothing import uniform_confusion as uniform_confusion
from lemmata.tricks.layer_norm import LayerNorm as LayerNorm
from lemmata.tricks.mean_field import expected_profile as expected_profile
from lemmata.tricks.normalization import Standardized as Standardized
from lemmata.tricks.normalization import standardize as standardize
from lemmata.tricks.normalization import standardize_gradient as standardize_gradient
from lemmata.tricks.pruned_mlp import PrunedMLP as PrunedMLP
from lemmata.tricks.pruning import apply_masks as apply_masks
from lemmata.tricks.pruning import lottery_ticket as lottery_ticket
from lemmata.tricks.pruning import masks_of as masks_of
from lemmata.tricks.pruning import prune as prune
from lemmata.tricks.pruning import remove_masks as remove_masks
from lemmata.tricks.pruning import shuffled_masks as shuffled_masks
from lemmata.tricks.signal_propagation import VarianceProfile as VarianceProfile
from lemmata.tricks.signal_propagation import variance_profile as variance_profile
from lemmata.tricks.weight_decay import ConstrainedMinimum as ConstrainedMinimum
from lemmata.tricks.weight_decay import constrained_minimum as constrained_minimum
from lemmata.tricks.weight_decay import decay_groups as decay_groups
from lemmata.tricks.weight_decay import decay_weights as decay_weights
from lemmata.tricks.weight_decay import decayed_minimum as decayed_minimum
from lemmata.tricks.weight_decay import l2_penalty as l2_penalty
from lemmata.tricks.weight_decay import shrinkage as shrinkage
from lemmata.tricks.weight_norm import WeightNormGradients as WeightNormGradients
from lemmata.tricks.weight_norm import weight_norm_gradients as weight_norm_gradients
from lemmata.tricks.weight_norm import weight_normalized as weight_normalized
from lemmata.tricks.weight_norm import weight_of as weight_of

__all__ = [
    "Augment",
    "BatchNorm",
    "Comparison",
    "ConstrainedMinimum",
    "Crop",
    "Cutout",
    "DistillationLoss",
    "DropConnect",
    "Dropout",
    "DropoutEnsemble",
    "EarlyStopping",
    "Flip",
    "InitializedParameter",
    "LayerNorm",
    "Noise",
    "PrunedMLP",
    "Rotate",
    "Shift",
    "Standardized",
    "TRICKS",
    "TransferSet",
    "Transformation",
    "Trick",
    "VarianceProfile",
    "WeightNormGradients",
    "apply_masks",
    "apply_tricks",
    "compare",
    "constrained_minimum",
    "decay_groups",
    "decay_weights",
    "decayed_minimum",
    "descent_shrinkage",
    "distill",
    "distillation_loss",
    "dropout_ensemble",
    "expected_profile",
    "extended",
    "initialize",
    "l2_penalty",
    "lottery_ticket",
    "masks_of",
    "matching_steps",
    "prune",
    "remove_masks",
    "scaled_for_inference",
    "shrinkage",
    "shuffled_masks",
    "smooth_labels",
    "standardize",
    "standardize_gradient",
    "transfer_set",
    "uniform_confusion",
    "variance_profile",
    "weight_norm_gradients",
    "weight_normalized",
    "weight_of",
    "weight_variance",
]
