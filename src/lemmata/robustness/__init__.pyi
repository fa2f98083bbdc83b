"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.robustness.attacked_model import Attack as Attack
from lemmata.robustness.fast_gradient import fgsm as fgsm
from lemmata.robustness.goals import cross_entropy_goal as cross_entropy_goal
from lemmata.robustness.goals import dlr_goal as dlr_goal
from lemmata.robustness.goals import margin_goal as margin_goal
from lemmata.robustness.norm_ball import perturbation_norms as perturbation_norms
from lemmata.robustness.norm_ball import project_ball as project_ball
from lemmata.robustness.norm_ball import steepest_direction as steepest_direction
from lemmata.robustness.threat import Threat as Threat

__all__ = [
    "Attack",
    "Threat",
    "cross_entropy_goal",
    "dlr_goal",
    "fgsm",
    "margin_goal",
    "perturbation_norms",
    "project_ball",
    "steepest_direction",
]
