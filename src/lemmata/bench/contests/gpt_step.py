"""GPT-2 forward, and forward and backward: ours against Hugging Face's model with torch's fused attention.

Both have the same weights, which go from ours to theirs by a folder. On a GPU the model is GPT-2 small in bfloat16, on
a processor a small one in float32. There is no dropout, so that all compute the same.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads import model_steps
from lemmata.bench.workloads.model_steps import Results, Step
from lemmata.transformers.gpt import GPT

SIZES = {"cpu": (8, 128, 1000, 128, 4, 4)}  # batch, time, vocab_size, width, depth, heads
ON_GPU = (8, 1024, 50_257, 768, 12, 12)


@entry(
    "gpt_step",
    title="GPT-2, forward and backward",
    measures="one batch: the logits, or the loss and all gradients",
    cases={
        "forward": "8 texts of 128 tokens, 4 layers of width 128, on a GPU 1,024 tokens in GPT-2 small: logits",
        "training": "the same, loss and gradients",
        "forward_compiled": "logits, with torch.compile",
        "training_compiled": "loss and gradients, with torch.compile",
    },
    targets={"Hugging Face": 1.0, "Hugging Face, not compiled": 0.909, "Hugging Face, compiled": 1.0},
)
def texts(case: str, device: str) -> Step:
    """Random tokens, and random ones to foresee."""
    batch, time, vocab_size, width, depth, heads = SIZES.get(device, ON_GPU)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(vocab_size, width, depth, heads, max_length=time)
        x, targets = torch.randint(vocab_size, (2, batch, time))
    return model_steps.step(model, x, targets, case, device)


@ours("lemmata")
def with_ours(step: Step) -> Callable[[], Results]:
    """As it comes, or compiled if the case says so."""
    assert isinstance(step.model, GPT)
    return model_steps.repeat(step.model, lambda m: m(step.x), step.model.positions.weight, step, step.compiled)


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
    """No attention, no normalisation, no loss."""
    assert isinstance(step.model, GPT)
    width, tokens = step.model.config.width, step.x.numel()
    outputs = (tokens, step.model.vocab_size)
    return model_steps.products(step, width, 4 * width, step.model.config.depth, tokens, outputs)


def _theirs(step: Step, compiled: bool) -> Callable[[], Results]:
    model = model_steps.theirs("GPT2LMHeadModel", step)
    watched = model.get_parameter("transformer.wpe.weight")
    return model_steps.repeat(model, lambda m: m(step.x, use_cache=False).logits, watched, step, compiled)


@agreement(within=2e-3)
def in_numbers(results: Results) -> dict[str, float]:
    """Logits, or loss and gradient; in bfloat16 they differ in the fourth digit."""
    return model_steps.in_numbers(results)
