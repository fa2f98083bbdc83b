"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.tricks.dropout import Dropout as Dropout
from lemmata.tricks.dropout import DropoutEnsemble as DropoutEnsemble
from lemmata.tricks.dropout import dropout_ensemble as dropout_ensemble
from lemmata.tricks.dropout import scaled_for_inference as scaled_for_inference
from lemmata.tricks.early_stopping import EarlyStopping as EarlyStopping
from lemmata.tricks.early_stopping import descent_shrinkage as descent_shrinkage
from lemmata.tricks.early_stopping import matching_steps as matching_steps
from lemmata.tricks.weight_decay import ConstrainedMinimum as ConstrainedMinimum
from lemmata.tricks.weight_decay import constrained_minimum as constrained_minimum
from lemmata.tricks.weight_decay import decay_groups as decay_groups
from lemmata.tricks.weight_decay import decay_weights as decay_weights
from lemmata.tricks.weight_decay import decayed_minimum as decayed_minimum
from lemmata.tricks.weight_decay import l2_penalty as l2_penalty
from lemmata.tricks.weight_decay import shrinkage as shrinkage

__all__ = [
    "ConstrainedMinimum",
    "Dropout",
    "DropoutEnsemble",
    "EarlyStopping",
    "constrained_minimum",
    "decay_groups",
    "decay_weights",
    "decayed_minimum",
    "descent_shrinkage",
    "dropout_ensemble",
    "l2_penalty",
    "matching_steps",
    "scaled_for_inference",
    "shrinkage",
]
