"""GPT-2, BERT and ViT forward, and forward and backward: ours against Hugging Face's with torch's fused attention.

Both have the same weights, which go from ours to theirs by a folder. On a GPU the models are GPT-2 small, BERT-base
with its masked-language head, and ViT-B/16, in bfloat16; on a processor small ones in float32. There is no dropout, so
that all compute the same. Our ViT asks the last block for the [CLS] token alone, for nobody reads what it would say of
the patches.
"""

from collections.abc import Callable
from typing import Any

import torch

from lemmata.bench.registry import Seconds, agreement, entry, limit, ours, peer
from lemmata.bench.workloads import model_steps
from lemmata.bench.workloads.model_steps import Results, Side, Step, block_operations
from lemmata.transformers.bert_pretraining import BertForPretraining
from lemmata.transformers.gpt import GPT
from lemmata.transformers.vit import ViT

# batch, tokens of a text or pixels of a side, vocab_size or classes, width, depth, heads
SIZES = {"gpt": (8, 128, 1000, 128, 4, 4), "bert": (8, 128, 1000, 128, 2, 2), "vit": (4, 224, 100, 192, 4, 3)}
ON_GPU = {
    "gpt": (8, 1024, 50_257, 768, 12, 12),
    "bert": (16, 512, 30_522, 768, 12, 12),
    "vit": (128, 224, 1000, 768, 12, 12),
}


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
    """Random tokens, and random ones to predict."""
    batch, time, vocab_size, width, depth, heads = (SIZES if device == "cpu" else ON_GPU)["gpt"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(vocab_size, width, depth, heads, max_length=time)
        drawn = torch.randint(vocab_size, (2, batch, time))
    x, targets = model_steps.dressed(model, case, device, *drawn)
    pairs = batch * time * (time + 1) / 2  # a token looks back only
    operations = depth * block_operations(batch, time, width, 4 * width, pairs) + 2 * batch * time * width * vocab_size
    theirs = Side("transformer.wpe.weight", {"use_cache": False}, "logits")
    return _step_of_case(case, model, x, targets, Side("positions.weight"), theirs, "GPT2LMHeadModel", operations)


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
def masked_texts(case: str, device: str) -> Step:
    """Random tokens, and random ones that they should have been."""
    batch, time, vocab_size, width, depth, heads = (SIZES if device == "cpu" else ON_GPU)["bert"]
    words: dict[str, Any] = {"width": width, "depth": depth, "heads": heads, "hidden": 4 * width, "max_length": time}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertForPretraining(vocab_size, False, dropout=0.0, attention_dropout=0.0, **words)
        drawn = torch.randint(vocab_size, (2, batch, time))
    mask = torch.ones(batch, time, dtype=torch.bool)
    if "padded" in case:
        mask[1:, time // 2 :] = False
    x, targets, there = model_steps.dressed(model, case, device, *drawn, mask)
    told = (there, there.long()) if "padded" in case else (None, None)
    operations = depth * block_operations(batch, time, width, 4 * width, time * float(mask.sum()))
    operations += 2 * batch * time * width * (width + vocab_size)  # the head
    ours = Side("encoder.positions.weight", {"mask": told[0]}, "tokens")
    theirs = Side("bert.embeddings.position_embeddings.weight", {"attention_mask": told[1]}, "logits")
    return _step_of_case(case, model, x, targets, ours, theirs, "BertForMaskedLM", operations)


@entry(
    "vit_step",
    title="ViT, forward and backward",
    measures="one batch: the logits, or the loss and all gradients",
    cases={
        "forward": "4 images of 224 x 224, 4 layers of width 192, on a GPU 128 images in ViT-B/16: logits",
        "training": "the same, loss and gradients",
        "forward_compiled": "logits, with torch.compile",
        "training_compiled": "loss and gradients, with torch.compile",
    },
    targets={"Hugging Face": 1.0, "Hugging Face, not compiled": 0.909, "Hugging Face, compiled": 1.0},
)
def images(case: str, device: str) -> Step:
    """Noise, and random classes."""
    batch, side, classes, width, depth, heads = (SIZES if device == "cpu" else ON_GPU)["vit"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ViT(classes, side, width=width, depth=depth, heads=heads, hidden=4 * width)
        drawn = torch.randn(batch, 3, side, side), torch.randint(classes, (batch,))
    x, targets = model_steps.dressed(model, case, device, *drawn)
    time = model.positions.shape[1]
    operations = (depth - 1) * block_operations(batch, time, width, 4 * width, batch * time**2)
    operations += block_operations(batch, time, width, 4 * width, batch * time, answered=1)
    theirs = Side("vit.embeddings.position_embeddings", {}, "logits")
    return _step_of_case(case, model, x, targets, Side("positions"), theirs, "ViTForImageClassification", operations)


def _step_of_case(case: str, *parts: Any) -> Step:
    return Step(*parts, training="training" in case, compiled="compiled" in case)


@ours("lemmata")
def with_ours(step: Step) -> Callable[[], Results]:
    """As it comes, or compiled if the case says so."""
    return model_steps.repeat(step.model, step.ours, step, step.compiled)


@peer("Hugging Face", needs="transformers", cases="forward forward_padded training training_padded")
def with_theirs(step: Step) -> Callable[[], Results]:
    """As it comes."""
    return model_steps.repeat(model_steps.hugging_faces(step.kind, step.model), step.theirs, step, compiled=False)


@peer("Hugging Face, not compiled", needs="transformers", cases="forward_compiled training_compiled")
def with_theirs_as_it_comes(step: Step) -> Callable[[], Results]:
    """The same, beside what is compiled."""
    return with_theirs(step)


@peer("Hugging Face, compiled", needs="transformers", cases="forward_compiled training_compiled")
def with_theirs_compiled(step: Step) -> Callable[[], Results]:
    """By torch.compile."""
    return model_steps.repeat(model_steps.hugging_faces(step.kind, step.model), step.theirs, step, compiled=True)


@limit("all matrix products at the best rate, or the parameters through memory")
def products(step: Step) -> Callable[[], Seconds]:
    """No normalisation, no softmax, no loss; of the last block of a ViT, only what the classes need."""
    return model_steps.least_time(step, str(step.x.device))


@agreement(within=2e-3)
def in_numbers(results: Results) -> dict[str, float]:
    """Logits, or loss and gradient; in bfloat16 they differ in the fourth digit."""
    return model_steps.in_numbers(results)
