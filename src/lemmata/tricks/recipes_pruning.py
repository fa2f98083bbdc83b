"""Lottery tickets that are looked for and then trained, beside the same masks with other values and other masks."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch

from lemmata import validate
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLPConfig
from lemmata.feedforward.recipes import classification
from lemmata.marks import recipe
from lemmata.train.experiment import Experiment
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options
from lemmata.train.randomness import seeded
from lemmata.tricks.pruned_mlp import PrunedMLP
from lemmata.tricks.pruning import apply_masks, lottery_ticket, masks_of, shuffled_masks

__all__ = ["TicketConfig", "train_ticket"]

STARTS = ("ticket", "fresh", "random")


@dataclass(frozen=True)
class TicketConfig(MLPConfig):
    """What can be chosen of a perceptron, of how its ticket is looked for, and of what is trained in the end."""

    fraction: float = 0.3
    """How much of the weights that are left each round removes."""
    rounds: int = 11
    """Rounds of training, pruning and rewinding; (1 - fraction)^rounds of the weights are left."""
    search_epochs: int = 15
    """Passes over the data in each round."""
    start: str = "ticket"
    """What is trained: the ticket, its mask with fresh weights, or as many weights in random places."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.fraction("fraction", self.fraction, most=1.0)
        validate.count("rounds", self.rounds)
        validate.count("search_epochs", self.search_epochs)
        validate.one_of("start", self.start, STARTS)


@recipe("pruned_mlp", data="fashion digits", metric="accuracy")
def train_ticket(
    data: str = "fashion",
    config: TicketConfig = TicketConfig(widths=(200, 100)),  # noqa: B008 - frozen
    options: Options = Options(epochs=10, batch_size=64, lr=1e-2, schedule="cosine"),  # noqa: B008
) -> Experiment:
    """A perceptron of which one weight in fifty is left: its lottery ticket is looked for, then trained alone."""
    plain = classification(load(data), config, options, notes(data), PrunedMLP)
    measured = plain.loss
    assert measured is not None

    def loss(network: PrunedMLP, batch: Examples) -> Any:
        # Before the first step; a run that is resumed has its masks from the checkpoint.
        if network.training and network.kept == 1.0:
            network.load_state_dict(_starting_network(plain, config, options).state_dict())
        return measured(network, batch)

    def left(network: PrunedMLP) -> str:
        return f"{network.kept:.1%} of the weights are left."

    return replace(plain, loss=loss, write=left)


def _starting_network(plain: Experiment, config: TicketConfig, options: Options) -> PrunedMLP:
    """The ticket, with its initial values; or what it is compared with."""
    searching = replace(options, epochs=config.search_epochs, evaluate=config.search_epochs)

    def train(network: PrunedMLP) -> None:
        run_experiment(replace(plain, system=network, options=searching, picture=None))

    with seeded(options.seed):  # what the training draws later does not depend on the search
        ticket = lottery_ticket(copy.deepcopy(plain.system).train(), train, config.fraction, config.rounds)
    if config.start == "ticket":
        return ticket
    generator = torch.Generator().manual_seed(options.seed)
    masks = shuffled_masks(masks_of(ticket), generator) if config.start == "random" else masks_of(ticket)
    with seeded(options.seed + 1):  # other values than those that the search began with
        return apply_masks(PrunedMLP(**plain.arguments), masks)


def notes(data: str) -> dict[str, Any]:
    """What the ticket is compared with, and how that was measured."""
    return {"baselines": BASELINES[data], "how": HOW}


BASELINES = {
    "fashion": {"the same mask, fresh weights": 0.802, "as many weights in random places": 0.789},
    "digits": {"the same mask, fresh weights": 0.851, "as many weights in random places": 0.369},
}
HOW = "mean over seeds 0 to 4, of the same options with start = fresh and start = random"
