"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.continual.activation_subspace import activation_basis as activation_basis
from lemmata.continual.activation_subspace import project_away as project_away
from lemmata.continual.buffer import Reservoir as Reservoir
from lemmata.continual.buffer import choose_examples as choose_examples
from lemmata.continual.ewc import EWC as EWC
from lemmata.continual.ewc import EWCConfig as EWCConfig
from lemmata.continual.ewc import Spring as Spring
from lemmata.continual.fisher_information import fisher_diagonal as fisher_diagonal
from lemmata.continual.function_anchor import FunctionAnchor as FunctionAnchor
from lemmata.continual.function_anchor import kl_of_logits as kl_of_logits
from lemmata.continual.generative_replay import GenerativeReplay as GenerativeReplay
from lemmata.continual.gradient_projection import GradientProjection as GradientProjection
from lemmata.continual.gradient_projection import GradientProjectionConfig as GradientProjectionConfig
from lemmata.continual.heterogeneous_dropout import HeterogeneousDropout as HeterogeneousDropout
from lemmata.continual.k_winners import WinnerTakeAll as WinnerTakeAll
from lemmata.continual.k_winners import winner_take_all as winner_take_all
from lemmata.continual.learning import ContinualLearner as ContinualLearner
from lemmata.continual.learning import Learned as Learned
from lemmata.continual.learning import learn as learn
from lemmata.continual.rehearsal import Rehearsal as Rehearsal
from lemmata.continual.rehearsal import RehearsalConfig as RehearsalConfig
from lemmata.continual.strategy import Strategy as Strategy
from lemmata.continual.task_masks import MaskedMLP as MaskedMLP
from lemmata.continual.task_masks import TaskMask as TaskMask
from lemmata.continual.task_masks import TaskMasks as TaskMasks
from lemmata.continual.task_stream import Task as Task
from lemmata.continual.task_stream import TaskStream as TaskStream
from lemmata.continual.task_stream import permuted_tasks as permuted_tasks
from lemmata.continual.task_stream import rotated_tasks as rotated_tasks
from lemmata.continual.task_stream import split_tasks as split_tasks
from lemmata.continual.transfer_metrics import average_accuracy as average_accuracy
from lemmata.continual.transfer_metrics import backward_transfer as backward_transfer
from lemmata.continual.transfer_metrics import forgetting as forgetting
from lemmata.continual.transfer_metrics import forward_transfer as forward_transfer
from lemmata.continual.transfer_metrics import gradient_cosine as gradient_cosine

__all__ = [
    "ContinualLearner",
    "EWC",
    "EWCConfig",
    "FunctionAnchor",
    "GenerativeReplay",
    "GradientProjection",
    "GradientProjectionConfig",
    "HeterogeneousDropout",
    "Learned",
    "MaskedMLP",
    "Rehearsal",
    "RehearsalConfig",
    "Reservoir",
    "Spring",
    "Strategy",
    "Task",
    "TaskMask",
    "TaskMasks",
    "TaskStream",
    "WinnerTakeAll",
    "activation_basis",
    "average_accuracy",
    "backward_transfer",
    "choose_examples",
    "fisher_diagonal",
    "forgetting",
    "forward_transfer",
    "gradient_cosine",
    "kl_of_logits",
    "learn",
    "permuted_tasks",
    "project_away",
    "rotated_tasks",
    "split_tasks",
    "winner_take_all",
]
