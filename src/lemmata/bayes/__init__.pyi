"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.bayes.chain_learner import ChainLearner as ChainLearner
from lemmata.bayes.chain_streams import ChainStreams as ChainStreams
from lemmata.bayes.chees import ChEES as ChEES
from lemmata.bayes.chees import LengthAdaptation as LengthAdaptation
from lemmata.bayes.draws import Draws as Draws
from lemmata.bayes.draws import DrawsSummary as DrawsSummary
from lemmata.bayes.energy import PosteriorEnergy as PosteriorEnergy
from lemmata.bayes.energy import posterior_energy as posterior_energy
from lemmata.bayes.ensemble import Ensemble as Ensemble
from lemmata.bayes.ensemble import MLPEnsemble as MLPEnsemble
from lemmata.bayes.ensemble import posterior_weights as posterior_weights
from lemmata.bayes.ensemble import summed_over_members as summed_over_members
from lemmata.bayes.finite_chain import barker as barker
from lemmata.bayes.finite_chain import is_balanced as is_balanced
from lemmata.bayes.finite_chain import is_irreducible as is_irreducible
from lemmata.bayes.finite_chain import metropolis as metropolis
from lemmata.bayes.finite_chain import metropolis_matrix as metropolis_matrix
from lemmata.bayes.finite_chain import period as period
from lemmata.bayes.finite_chain import probability_flow as probability_flow
from lemmata.bayes.finite_chain import stationary_distribution as stationary_distribution
from lemmata.bayes.hmc import HamiltonianMonteCarlo as HamiltonianMonteCarlo
from lemmata.bayes.langevin import MetropolisAdjustedLangevin as MetropolisAdjustedLangevin
from lemmata.bayes.langevin import UnadjustedLangevin as UnadjustedLangevin
from lemmata.bayes.langevin import UnderdampedLangevin as UnderdampedLangevin
from lemmata.bayes.langevin import VelocityState as VelocityState
from lemmata.bayes.leapfrog_integrator import Trajectory as Trajectory
from lemmata.bayes.leapfrog_integrator import leapfrog as leapfrog
from lemmata.bayes.mass import Mass as Mass
from lemmata.bayes.metropolis_hastings import MetropolisHastings as MetropolisHastings
from lemmata.bayes.metropolis_hastings import RandomWalk as RandomWalk
from lemmata.bayes.metropolis_hastings import acceptance_probability as acceptance_probability
from lemmata.bayes.no_u_turn import NoUTurn as NoUTurn
from lemmata.bayes.predictive import ClassificationPredictive as ClassificationPredictive
from lemmata.bayes.predictive import Coverage as Coverage
from lemmata.bayes.predictive import RegressionPredictive as RegressionPredictive
from lemmata.bayes.predictive import gaussian_nll as gaussian_nll
from lemmata.bayes.sampling import sample as sample
from lemmata.bayes.step_adaptation import DualAveraging as DualAveraging
from lemmata.bayes.step_adaptation import PooledCovariance as PooledCovariance
from lemmata.bayes.step_adaptation import mass_windows as mass_windows
from lemmata.bayes.stochastic_gradient import SGHMC as SGHMC
from lemmata.bayes.stochastic_gradient import SGLD as SGLD
from lemmata.bayes.transition import Kernel as Kernel
from lemmata.bayes.transition import LogDensity as LogDensity
from lemmata.bayes.transition import PointState as PointState
from lemmata.bayes.transition import Random as Random
from lemmata.bayes.transition import SlopeState as SlopeState
from lemmata.bayes.transition import Transition as Transition

__all__ = [
    "ChEES",
    "ChainLearner",
    "ChainStreams",
    "ClassificationPredictive",
    "Coverage",
    "Draws",
    "DrawsSummary",
    "DualAveraging",
    "Ensemble",
    "HamiltonianMonteCarlo",
    "Kernel",
    "LengthAdaptation",
    "LogDensity",
    "MLPEnsemble",
    "Mass",
    "MetropolisAdjustedLangevin",
    "MetropolisHastings",
    "NoUTurn",
    "PointState",
    "PooledCovariance",
    "PosteriorEnergy",
    "Random",
    "RandomWalk",
    "RegressionPredictive",
    "SGHMC",
    "SGLD",
    "SlopeState",
    "Trajectory",
    "Transition",
    "UnadjustedLangevin",
    "UnderdampedLangevin",
    "VelocityState",
    "acceptance_probability",
    "barker",
    "gaussian_nll",
    "is_balanced",
    "is_irreducible",
    "leapfrog",
    "mass_windows",
    "metropolis",
    "metropolis_matrix",
    "period",
    "posterior_energy",
    "posterior_weights",
    "probability_flow",
    "sample",
    "stationary_distribution",
    "summed_over_members",
]
