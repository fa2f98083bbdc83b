"""ViT forward, and forward and backward: ours against Hugging Face's model with torch's fused attention.

Both have the same weights, which go from ours to theirs by a folder. On a GPU the model is ViT-B/16 in bfloat16, on a
processor four layers of ViT-Ti/16 in float32. There is no dropout, so that all answer the same; ours asks the last
block for the [CLS] token alone, for nobody reads what it would say of the patches.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads import model_steps
from lemmata.bench.workloads.model_steps import Results, Step
from lemmata.transformers.vit import ViT

SIZES = {"cpu": (4, 224, 100, 192, 4, 3)}  # batch, side of a picture, classes, width, depth, heads
ON_GPU = (128, 224, 1000, 768, 12, 12)


@entry(
    "vit_step",
    title="ViT, forward and backward",
    measures="one batch: the logits, or the loss and all gradients",
    cases={
        "forward": "4 pictures of 224 x 224, 4 layers of width 192, on a GPU 128 pictures in ViT-B/16: logits",
        "training": "the same, loss and gradients",
        "forward_compiled": "logits, with torch.compile",
        "training_compiled": "loss and gradients, with torch.compile",
    },
    targets={"Hugging Face": 1.0, "Hugging Face, not compiled": 0.909, "Hugging Face, compiled": 1.0},
)
def pictures(case: str, device: str) -> Step:
    """Noise, and random classes."""
    batch, side, classes, width, depth, heads = SIZES.get(device, ON_GPU)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ViT(classes, side, width=width, depth=depth, heads=heads, hidden=4 * width)
        x, targets = torch.randn(batch, 3, side, side), torch.randint(classes, (batch,))
    return model_steps.step(model, x, targets, case, device)


@ours("lemmata")
def with_ours(step: Step) -> Callable[[], Results]:
    """As it comes, or compiled if the case says so."""
    assert isinstance(step.model, ViT)
    return model_steps.repeat(step.model, lambda m: m(step.x), step.model.positions, step, step.compiled)


@peer("Hugging Face", needs="transformers", cases="forward training")
def with_theirs(step: Step) -> Callable[[], Results]:
    """As it comes."""
    return _theirs(step, compiled=False)


@peer("Hugging Face, not compiled", needs="transformers", cases="forward_compiled training_compiled")
def with_theirs_as_it_comes(step: Step) -> Callable[[], Results]:
    """The same, beside what is compiled."""
    return _theirs(step, compiled=False)


@peer("Hugging Face, compiled", needs="transformers", cases="forward_compiled training_compiled")
def with_theirs_compiled(step: Step) -> Callable[[], Results]:
    """By torch.compile."""
    return _theirs(step, compiled=True)


@limit("the products with all matrices alone")
def products(step: Step) -> Callable[[], Tensor]:
    """No patches, no attention, no normalisation, no loss; of the last block, only what the classes need."""
    assert isinstance(step.model, ViT)
    config, batch = step.model.config, len(step.x)
    tokens, outputs = batch * step.model.positions.shape[1], (batch, step.model.classes or 0)
    return model_steps.products(step, config.width, config.hidden, config.depth, tokens, outputs, answered=batch)


def _theirs(step: Step, compiled: bool) -> Callable[[], Results]:
    model = model_steps.theirs("ViTForImageClassification", step)
    watched = model.get_parameter("vit.embeddings.position_embeddings")
    return model_steps.repeat(model, lambda m: m(step.x).logits, watched, step, compiled)


@agreement(within=2e-3)
def in_numbers(results: Results) -> dict[str, float]:
    """Logits, or loss and gradient; in bfloat16 they differ in the fourth digit."""
    return model_steps.in_numbers(results)
