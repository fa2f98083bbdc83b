"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.train.as_found import kept_as_found as kept_as_found
from lemmata.train.callbacks import TrainingState as TrainingState
from lemmata.train.checkpoint import Checkpoint as Checkpoint
from lemmata.train.checkpoint import CheckpointError as CheckpointError
from lemmata.train.checkpoint import NotSaved as NotSaved
from lemmata.train.checkpoint import at as at
from lemmata.train.checkpoint import newest as newest
from lemmata.train.checkpoint import save as save
from lemmata.train.device import choose_device as choose_device
from lemmata.train.evaluation_mode import evaluating as evaluating
from lemmata.train.experiment import Experiment as Experiment
from lemmata.train.folder import read_record as read_record
from lemmata.train.forms import Classification as Classification
from lemmata.train.forms import Language as Language
from lemmata.train.forms import Regression as Regression
from lemmata.train.forms import accuracy as accuracy
from lemmata.train.forms import likeliest_class as likeliest_class
from lemmata.train.gradient import GradientLearner as GradientLearner
from lemmata.train.history import History as History
from lemmata.train.learner import Learner as Learner
from lemmata.train.loop import fit as fit
from lemmata.train.loop import run_experiment as run_experiment
from lemmata.train.optimizers import lr_factor as lr_factor
from lemmata.train.options import Options as Options
from lemmata.train.own_data import baselines as baselines
from lemmata.train.own_data import sizes as sizes
from lemmata.train.own_data import supervised as supervised
from lemmata.train.pictures import confusion_matrix as confusion_matrix
from lemmata.train.pictures import decision_map as decision_map
from lemmata.train.pictures import filter_pictures as filter_pictures
from lemmata.train.pictures import labelled_pictures as labelled_pictures
from lemmata.train.processes import World as World
from lemmata.train.randomness import batch_indices as batch_indices
from lemmata.train.randomness import seeded as seeded
from lemmata.train.recipe import Recipe as Recipe
from lemmata.train.run import Diverged as Diverged
from lemmata.train.run import Run as Run
from lemmata.train.saved import load_run as load_run
from lemmata.train.saved import restore_system as restore_system
from lemmata.train.watch import TensorBoard as TensorBoard
from lemmata.train.watch import Watcher as Watcher

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Classification",
    "Diverged",
    "Experiment",
    "GradientLearner",
    "History",
    "Language",
    "Learner",
    "NotSaved",
    "Options",
    "Recipe",
    "Regression",
    "Run",
    "TensorBoard",
    "TrainingState",
    "Watcher",
    "World",
    "accuracy",
    "at",
    "baselines",
    "batch_indices",
    "choose_device",
    "confusion_matrix",
    "decision_map",
    "evaluating",
    "filter_pictures",
    "fit",
    "kept_as_found",
    "labelled_pictures",
    "likeliest_class",
    "load_run",
    "lr_factor",
    "newest",
    "read_record",
    "restore_system",
    "run_experiment",
    "save",
    "seeded",
    "sizes",
    "supervised",
]
