"""BERT forward, and forward and backward: ours against Hugging Face's model with torch's fused attention.

Both have the masked-language head and the same weights, which go from ours to theirs by a folder. On a GPU the model is
BERT-base in bfloat16, on a processor BERT-tiny in float32. There is no dropout, so that all compute the same.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads import model_steps
from lemmata.bench.workloads.model_steps import Results, Step
from lemmata.transformers.bert_pretraining import BertForPretraining

SIZES = {"cpu": (8, 128, 1000, 128, 2, 2)}  # batch, time, vocab_size, width, depth, heads
ON_GPU = (16, 512, 30_522, 768, 12, 12)


@entry(
    "bert_step",
    title="BERT, forward and backward",
    measures="one batch: the logits, or the loss and all gradients",
    cases={
        "forward": "8 texts of 128 tokens, 2 layers of width 128, on a GPU 16 of 512 tokens in BERT-base: logits",
        "forward_padded": "the same, half of each text but the first one is padding",
        "training": "loss and gradients",
        "training_padded": "loss and gradients, half of each text but the first one is padding",
        "forward_compiled": "logits, with torch.compile",
        "training_compiled": "loss and gradients, with torch.compile",
    },
    targets={"Hugging Face": 1.0, "Hugging Face, not compiled": 0.909, "Hugging Face, compiled": 1.0},
)
def texts(case: str, device: str) -> Step:
    """Random tokens, and random ones that they should have been."""
    batch, time, vocab_size, width, depth, heads = SIZES.get(device, ON_GPU)
    words: dict[str, Any] = {"width": width, "depth": depth, "heads": heads, "hidden": 4 * width, "max_length": time}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertForPretraining(vocab_size, False, dropout=0.0, attention_dropout=0.0, **words)
        x, targets = torch.randint(vocab_size, (2, batch, time))
    mask = torch.ones(batch, time, dtype=torch.bool)
    mask[1:, time // 2 :] = False
    return model_steps.step(model, x, targets, case, device, mask if "padded" in case else None)


@ours("lemmata")
def with_ours(step: Step) -> Callable[[], Results]:
    """As it comes, or compiled if the case says so."""
    assert isinstance(step.model, BertForPretraining)
    watched = step.model.encoder.positions.weight
    return model_steps.repeat(step.model, lambda m: m(step.x, mask=step.mask).tokens, watched, step, step.compiled)


@peer("Hugging Face", needs="transformers", cases="forward forward_padded training training_padded")
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
    assert isinstance(step.model, BertForPretraining)
    config, tokens = step.model.encoder.config, step.x.numel()
    outputs = (tokens, step.model.encoder.vocab_size)
    return model_steps.products(step, config.width, config.hidden, config.depth, tokens, outputs)


def _theirs(step: Step, compiled: bool) -> Callable[[], Results]:
    model = model_steps.theirs("BertForMaskedLM", step)
    watched = model.get_parameter("bert.embeddings.position_embeddings.weight")
    mask = None if step.mask is None else step.mask.long()
    return model_steps.repeat(model, lambda m: m(step.x, attention_mask=mask).logits, watched, step, compiled)


@agreement(within=2e-3)
def in_numbers(results: Results) -> dict[str, float]:
    """Logits, or loss and gradient; in bfloat16 they differ in the fourth digit."""
    return model_steps.in_numbers(results)
