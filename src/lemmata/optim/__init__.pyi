"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.optim.adagrad import Adagrad as Adagrad
from lemmata.optim.adam import Adam as Adam
from lemmata.optim.adam import AdamW as AdamW
from lemmata.optim.backpropagation import BackwardSweep as BackwardSweep
from lemmata.optim.backpropagation import CountedGradient as CountedGradient
from lemmata.optim.backpropagation import backpropagate as backpropagate
from lemmata.optim.backpropagation import finite_differences as finite_differences
from lemmata.optim.backpropagation import forward_mode as forward_mode
from lemmata.optim.first_order import FirstOrder as FirstOrder
from lemmata.optim.gradient_descent import GradientDescent as GradientDescent
from lemmata.optim.heavy_ball import HeavyBall as HeavyBall
from lemmata.optim.nesterov import Nesterov as Nesterov
from lemmata.optim.rmsprop import RMSprop as RMSprop
from lemmata.optim.schedules import PowerDecay as PowerDecay
from lemmata.optim.schedules import WarmupDecay as WarmupDecay

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "BackwardSweep",
    "CountedGradient",
    "FirstOrder",
    "GradientDescent",
    "HeavyBall",
    "Nesterov",
    "PowerDecay",
    "RMSprop",
    "WarmupDecay",
    "backpropagate",
    "finite_differences",
    "forward_mode",
]
