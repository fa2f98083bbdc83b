"""Text that GPT-2 writes, the likeliest token each time: ours against Hugging Face's generate.

Both have the same weights and keep keys and values. On a GPU the model is GPT-2 small in bfloat16, on a processor a
small one in float32. The vectors of the positions are eight times those of some random text, which therefore is what a
model writes, if it knows where it stands: rounding cannot change a token, after which the texts would have nothing in
common.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import Seconds, agreement, entry, limit, ours, peer
from lemmata.bench.workloads import model_steps
from lemmata.bench.workloads.roofline import roofline
from lemmata.transformers.generation import generate
from lemmata.transformers.gpt import GPT

SIZES = {"cpu": (64, 256, 1000, 128, 4, 4)}  # tokens of the prompt, new ones, vocab_size, width, depth, heads
ON_GPU = (128, 512, 50_257, 768, 12, 12)
POSITIONS = "positions.weight"


class Writing(NamedTuple):
    """A model, the beginnings of texts, and how many tokens are to come."""

    model: GPT
    prompt: Tensor
    length: int


@entry(
    "generation",
    title="Text written by GPT-2",
    measures="256 new tokens after 64 given ones; on a GPU 512 after 128",
    cases={
        "one": "one text, 4 layers of width 128, on a GPU GPT-2 small",
        "eight": "eight texts at once, 4 layers of width 128, on a GPU GPT-2 small",
    },
    targets={"Hugging Face": 0.667, "Hugging Face, static cache": 0.667},
)
def writing(case: str, device: str) -> Writing:
    """Random weights, but positions that foretell the text."""
    given, length, vocab_size, width, depth, heads = SIZES.get(device, ON_GPU)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(vocab_size, width, depth, heads, max_length=given + length)
        text = torch.randint(vocab_size, (given + length,))
        prompt = torch.randint(vocab_size, (8 if case == "eight" else 1, given))
    model.positions.weight.data = 8 * model.tokens.weight.data[text]
    (prompt,) = model_steps.dressed(model, case, device, prompt)
    return Writing(model, prompt, length)


@ours("lemmata")
def with_ours(writing: Writing) -> Callable[[], Tensor]:
    """As it comes: on a GPU the step is a CUDA graph."""
    return lambda: generate(writing.model, writing.prompt, writing.length, temperature=0)


@peer("Hugging Face", needs="transformers")
def with_theirs(writing: Writing) -> Callable[[], Tensor]:
    """A cache that grows."""
    return _peer_generation(writing)


@peer("Hugging Face, static cache", needs="transformers")
def with_static_cache(writing: Writing) -> Callable[[], Tensor]:
    """A cache of fixed size, for which the step is compiled on a GPU."""
    return _peer_generation(writing, cache_implementation="static")


@limit("the products of every new token with all matrices at the best rate, or all matrices through memory for each")
def products(writing: Writing) -> Callable[[], Seconds]:
    """No attention, no normalisation, nothing drawn; a token is read by a row of a table and predicted by all."""
    matrices = [each for name, each in writing.model.named_parameters() if each.ndim == 2 and name != POSITIONS]
    numbers = sum(each.numel() for each in matrices)
    operations, moved = 2 * len(writing.prompt) * numbers, numbers * matrices[0].element_size()
    device, dtype = str(writing.prompt.device), matrices[0].dtype
    return roofline(writing.length * operations, writing.length * moved, device, dtype, held=moved)


def _peer_generation(writing: Writing, **words: Any) -> Callable[[], Tensor]:
    model: Any = model_steps.hugging_faces("GPT2LMHeadModel", writing.model)
    words |= {"attention_mask": torch.ones_like(writing.prompt), "do_sample": False, "pad_token_id": 0}
    words |= {"max_new_tokens": writing.length, "min_new_tokens": writing.length}
    return lambda: model.generate(writing.prompt, **words)[:, writing.prompt.shape[1] :]


@agreement(within=0.0)
def in_numbers(text: Tensor) -> dict[str, float]:
    """How much was written, and what."""
    places = torch.arange(1, 1 + text.shape[1], device=text.device)
    return {"tokens": float(text.numel()), "sum": float(text.sum()), "moment": float((text * places).sum())}
