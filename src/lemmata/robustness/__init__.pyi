"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.robustness.access import BlackBox as BlackBox
from lemmata.robustness.access import GreyBox as GreyBox
from lemmata.robustness.access import WhiteBox as WhiteBox
from lemmata.robustness.adaptive_gradient import apgd as apgd
from lemmata.robustness.adversarial_training import AdversarialTraining as AdversarialTraining
from lemmata.robustness.adversarial_training import FreeAdversarialTraining as FreeAdversarialTraining
from lemmata.robustness.adversarial_training import Replayed as Replayed
from lemmata.robustness.attacked_model import Attack as Attack
from lemmata.robustness.cascade import RobustAccuracy as RobustAccuracy
from lemmata.robustness.cascade import evaluate as evaluate
from lemmata.robustness.fast_gradient import fgsm as fgsm
from lemmata.robustness.fast_gradient import iterative_fgsm as iterative_fgsm
from lemmata.robustness.fast_gradient import least_likely_attack as least_likely_attack
from lemmata.robustness.feature_space import feature_attack as feature_attack
from lemmata.robustness.goals import cross_entropy_goal as cross_entropy_goal
from lemmata.robustness.goals import dlr_goal as dlr_goal
from lemmata.robustness.goals import margin_goal as margin_goal
from lemmata.robustness.linear_boundary import LinearDistance as LinearDistance
from lemmata.robustness.linear_boundary import linear_distance as linear_distance
from lemmata.robustness.nearest_boundary import deepfool as deepfool
from lemmata.robustness.norm_ball import perturbation_norms as perturbation_norms
from lemmata.robustness.norm_ball import project_ball as project_ball
from lemmata.robustness.norm_ball import steepest_direction as steepest_direction
from lemmata.robustness.penalty_search import carlini_wagner as carlini_wagner
from lemmata.robustness.plane_radius import ExactRadius as ExactRadius
from lemmata.robustness.plane_radius import exact_radius as exact_radius
from lemmata.robustness.poisoning import PoisonedExamples as PoisonedExamples
from lemmata.robustness.poisoning import Trigger as Trigger
from lemmata.robustness.poisoning import flip_labels as flip_labels
from lemmata.robustness.poisoning import plant_backdoor as plant_backdoor
from lemmata.robustness.projected_gradient import pgd as pgd
from lemmata.robustness.robust_loss import robust_logistic_loss as robust_logistic_loss
from lemmata.robustness.robust_loss import worst_margin as worst_margin
from lemmata.robustness.robust_networks import BackdooredLeNet as BackdooredLeNet
from lemmata.robustness.robust_networks import RobustLeNet as RobustLeNet
from lemmata.robustness.robust_networks import RobustMLP as RobustMLP
from lemmata.robustness.sham_flags import sham_robustness as sham_robustness
from lemmata.robustness.single_pixel import single_pixel_attack as single_pixel_attack
from lemmata.robustness.spatial import spatial_attack as spatial_attack
from lemmata.robustness.square_search import square_attack as square_attack
from lemmata.robustness.threat import Threat as Threat
from lemmata.robustness.transfer import transfer_attack as transfer_attack
from lemmata.robustness.universal import UniversalAttack as UniversalAttack
from lemmata.robustness.universal import universal_attack as universal_attack

__all__ = [
    "AdversarialTraining",
    "Attack",
    "BackdooredLeNet",
    "BlackBox",
    "ExactRadius",
    "FreeAdversarialTraining",
    "GreyBox",
    "LinearDistance",
    "PoisonedExamples",
    "Replayed",
    "RobustAccuracy",
    "RobustLeNet",
    "RobustMLP",
    "Threat",
    "Trigger",
    "UniversalAttack",
    "WhiteBox",
    "apgd",
    "carlini_wagner",
    "cross_entropy_goal",
    "deepfool",
    "dlr_goal",
    "evaluate",
    "exact_radius",
    "feature_attack",
    "fgsm",
    "flip_labels",
    "iterative_fgsm",
    "least_likely_attack",
    "linear_distance",
    "margin_goal",
    "perturbation_norms",
    "pgd",
    "plant_backdoor",
    "project_ball",
    "robust_logistic_loss",
    "sham_robustness",
    "single_pixel_attack",
    "spatial_attack",
    "square_attack",
    "steepest_direction",
    "transfer_attack",
    "universal_attack",
    "worst_margin",
]
