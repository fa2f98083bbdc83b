"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.optim.adagrad import Adagrad as Adagrad
from lemmata.optim.adam import Adam as Adam
from lemmata.optim.adam import AdamW as AdamW
from lemmata.optim.averaging import PolyakAverage as PolyakAverage
from lemmata.optim.backpropagation import BackwardSweep as BackwardSweep
from lemmata.optim.backpropagation import CountedGradient as CountedGradient
from lemmata.optim.backpropagation import backpropagate as backpropagate
from lemmata.optim.backpropagation import finite_differences as finite_differences
from lemmata.optim.backpropagation import forward_mode as forward_mode
from lemmata.optim.entropy_sgd import EntropySGD as EntropySGD
from lemmata.optim.extragradient import Extragradient as Extragradient
from lemmata.optim.first_order import FirstOrder as FirstOrder
from lemmata.optim.gradient_descent import GradientDescent as GradientDescent
from lemmata.optim.gradient_flow import descent_path as descent_path
from lemmata.optim.gradient_flow import flow_path as flow_path
from lemmata.optim.heavy_ball import HeavyBall as HeavyBall
from lemmata.optim.landscapes import LANDSCAPES as LANDSCAPES
from lemmata.optim.landscapes import Landscape as Landscape
from lemmata.optim.landscapes import landscape as landscape
from lemmata.optim.muon import Muon as Muon
from lemmata.optim.muon import hidden_matrices as hidden_matrices
from lemmata.optim.muon import newton_schulz as newton_schulz
from lemmata.optim.muon import polar_factor as polar_factor
from lemmata.optim.nesterov import Nesterov as Nesterov
from lemmata.optim.newton import Newton as Newton
from lemmata.optim.newton_cg import NewtonCG as NewtonCG
from lemmata.optim.newton_cg import truncated_cg as truncated_cg
from lemmata.optim.rmsprop import RMSprop as RMSprop
from lemmata.optim.sam import SAM as SAM
from lemmata.optim.schedules import PowerDecay as PowerDecay
from lemmata.optim.schedules import WarmupDecay as WarmupDecay
from lemmata.optim.stepsizes import StepModel as StepModel
from lemmata.optim.stepsizes import best_constant_step as best_constant_step
from lemmata.optim.stepsizes import stability_limit as stability_limit
from lemmata.optim.stepsizes import step_model as step_model

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "BackwardSweep",
    "CountedGradient",
    "EntropySGD",
    "Extragradient",
    "FirstOrder",
    "GradientDescent",
    "HeavyBall",
    "LANDSCAPES",
    "Landscape",
    "Muon",
    "Nesterov",
    "Newton",
    "NewtonCG",
    "PolyakAverage",
    "PowerDecay",
    "RMSprop",
    "SAM",
    "StepModel",
    "WarmupDecay",
    "backpropagate",
    "best_constant_step",
    "descent_path",
    "finite_differences",
    "flow_path",
    "forward_mode",
    "hidden_matrices",
    "landscape",
    "newton_schulz",
    "polar_factor",
    "stability_limit",
    "step_model",
    "truncated_cg",
]
