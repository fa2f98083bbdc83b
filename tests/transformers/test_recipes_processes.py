"""Two processes learn what one does, from text, verses and pictures: the parts of a batch add up to the batch."""

import os
import subprocess
import sys

import pytest
import torch

from lemmata.train import Options, checkpoint, run_experiment
from lemmata.transformers.recipes_bert import MaskedTextConfig, fill_in_text
from lemmata.transformers.recipes_gpt import GPTTextConfig, write_plays
from lemmata.transformers.recipes_translation import TransformerConfig, translate_with_attention_alone
from lemmata.transformers.recipes_vit import ViTPictureConfig, attend_to_few_pictures

SMALL = {"width": 8, "depth": 1, "heads": 2, "dropout": 0.0}  # what is left out would be drawn anew in each process
# Three steps of seven examples: the shares of the two processes are uneven.
FEW = Options(steps=3, batch_size=7, lr=0.01, clip=0.5, precision="float64", device="cpu")
RECIPES = {
    "gpt": (write_plays, GPTTextConfig(window=16, **SMALL)),
    "bert": (fill_in_text, MaskedTextConfig(hidden=8, pairs=40, **SMALL)),
    "vit": (attend_to_few_pictures, ViTPictureConfig(hidden=8, patch_size=14, shift=0, **SMALL)),
    "transformer": (
        translate_with_attention_alone,
        TransformerConfig(hidden=8, word_dropout=0.0, beams=1, min_freq=50, **SMALL),
    ),
}


def learnt(name, out=None):
    """The weights after a few steps; what would be measured on the way and in the end is left out."""
    make, config = RECIPES[name]
    experiment = make(config=config, options=FEW)
    short = vars(experiment) | {"test": experiment.test[:2], "validation": None, "picture": None}
    return run_experiment(type(experiment)(**short), out=out).system


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Folders of all recipes, each run by two processes."""
    folder = tmp_path_factory.mktemp("two")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, __file__, str(folder)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", RECIPES)
def test_two_processes_learn_what_one_does(name, two):
    both, alone = checkpoint.newest(two / name / "final").state["system"], learnt(name).state_dict()
    assert both.keys() == alone.keys()
    # Adam divides by what it remembers of gradients: an ulp in one of 1e-8 moves a weight by 1e-10 at most.
    for key, weights in alone.items():
        torch.testing.assert_close(both[key], weights, rtol=0, atol=1e-9)


if __name__ == "__main__":
    for each in RECIPES:
        learnt(each, out=f"{sys.argv[1]}/{each}")
