"""GPT: its parts against torch's, its size and objective; what it learns of plays, and from examples in a prompt."""

import functools
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lemmata.data.text import shakespeare
from lemmata.judge import all_of, claim, close, exactly, lie, reaches
from lemmata.recurrent.ngram import NGram
from lemmata.transformers.generation import generate
from lemmata.transformers.gpt import GPT

TANH_GELU = functools.partial(functional.gelu, approximate="tanh")


def small(draw, model=GPT, **words):
    """A GPT of two blocks in float64 with weights large enough for what it foresees to depend on what it reads."""
    made = model(vocab_size=11, width=8, depth=2, heads=2, max_length=24, **words).double().eval()
    for values in made.parameters():
        values.data = 0.6 * draw.normal(*values.shape) + (values.ndim == 1)
    return made.requires_grad_(False)


# --- The model ---


def by_torch(model, x, norm_first, activation, causal):
    """The logits of a GPT, computed by torch's blocks with its weights."""
    time, width, heads = x.shape[1], model.config.width, model.config.heads
    h = model.tokens.weight[x] + model.positions.weight[:time]  # (batch, time, width)
    behind = nn.Transformer.generate_square_subsequent_mask(time, dtype=torch.float64) if causal else None
    words = {"dropout": 0.0, "activation": activation, "norm_first": norm_first, "batch_first": True}
    for block in model.blocks:
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, **words, dtype=torch.float64).train()
        attention, network = block.self_attention, block.feed_forward
        layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias = attention.project.weight, attention.project.bias
        layer.self_attn.out_proj, layer.linear1, layer.linear2 = attention.join, network.expand, network.contract
        layer.norm1, layer.norm2 = block.self_attention_norm, block.feed_forward_norm
        h = layer(h, src_mask=behind)
    return model.norm(h) @ model.tokens.weight.mT


def written_without_caches(model, text, length):
    for _ in range(length):
        text = torch.cat([text, model(text)[:, -1:].argmax(-1)], 1)
    return text[:, -length:]


def reader_of_plays():
    return GPT(vocab_size=70, width=64, depth=2, heads=4, max_length=64)


def read_plays(model, generator, steps, lr=3e-3):
    """So many updates on pieces of the training text, each of 64 characters."""
    text = shakespeare().train.x
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for _ in range(steps):
        begins = torch.randint(len(text) - 65, (16, 1), generator=generator)
        optimizer.zero_grad()
        model.loss(text[begins + torch.arange(65)]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def bits_of_plays(model):
    """A character of the validation text costs the model this, and a bigram of the training text."""
    data = shakespeare()
    pieces = data.validation.x.unfold(0, 65, 64)  # (pieces, 65)
    with torch.no_grad():
        ours = model.loss(pieces[:200]).item() / math.log(2)
    return ours, NGram(2, 70).fit(data.train.x).bits(data.validation.x)


@claim("gpt.model")
@lie("the output has a matrix of its own", matrices=2.0)
@lie("the blocks normalise what they have added up", norm_first=False)
@lie("the activation is the exact GELU", activation=functional.gelu)
@lie("a position sees those after it too", causal=False)
def a_gpt_is_a_stack_of_causal_blocks(draw, matrices=1.0, norm_first=True, activation=TANH_GELU, causal=True):
    """Torch's blocks with the same weights; what is written with caches and without; the size; plays foreseen."""
    model, x = small(draw), draw.integers(0, 11, 4, 9)
    vocab_size, max_length, width, layers = 50_257, 1024, 768, 12
    size = sum(values.numel() for values in GPT(device="meta").parameters())
    blocks = layers * (12 * width**2 + 13 * width)
    pieces = all_of(
        close(model(x), by_torch(model, x, norm_first, activation, causal), ulps=1024),
        close(float(size), matrices * vocab_size * width + max_length * width + blocks + 2 * width, ulps=1),
        exactly(generate(model, x, 12, temperature=0), written_without_caches(model, x, 12)),
    )
    if not pieces.holds:
        return pieces  # decided without training
    ours, bigram = bits_of_plays(draw.trained(reader_of_plays, read_plays, steps=300))
    return all_of(reaches(ours, bigram, at_most=True, detail="bits a character, against a bigram"), pieces)


# --- What it is trained for ---


class LooksAhead(GPT):
    """The same without the mask."""

    def __init__(self, *positional, **named):
        super().__init__(*positional, **named)
        block: Any
        for block in self.blocks:
            block.self_attention.causal = False


@claim("gpt.objective")
@lie("each token is foreseen from a text that holds it already", shift=0)
@lie("perplexity is a power of two, of a likelihood in nats", base=2.0)
@lie("one pass does without the mask", model=LooksAhead)
def one_masked_pass_foresees_every_next_token(draw, shift=1, base=math.e, model=GPT):
    """The loss of one pass, against as many passes over beginnings of the text; and a model that knows nothing."""
    gpt, x = small(draw, model), draw.integers(0, 11, 5, 10)
    reading, chances = range(1, 10), []
    for t in reading:
        law = gpt(x[:, :t])[:, -1].softmax(-1)  # (batch, vocab_size): what comes after t tokens
        chances.append(law.gather(1, x[:, t - 1 + shift, None])[:, 0])
    nothing = small(draw, model)
    nothing.tokens.weight.zero_()
    losses = torch.stack([gpt.loss(x), nothing.loss(x)])
    return all_of(
        close(losses[0] * len(chances), -torch.stack(chances).log().sum(0).mean()),
        # The perplexity is the geometric mean of one over the probabilities: the number of tokens if all are alike.
        close(base**losses, torch.stack([1 / torch.stack(chances).log().mean().exp(), torch.tensor(11.0).double()])),
    )


# --- What it learns from a prompt ---

SYMBOLS = 6  # tokens of their own; each pair of a symbol and its image is another


def permutations(count, generator):
    return torch.rand(count, SYMBOLS, generator=generator).argsort(1)


def answered(maps, x):
    """The tokens of x and its images, which are the answers to x."""
    return SYMBOLS * (1 + x) + maps.gather(1, x)


def as_text(maps, x):
    """Symbols, each followed by its answer: (texts, 2 symbols)."""
    return torch.stack([x, answered(maps, x)], 2).flatten(1)


def learner_of_maps():
    """A GPT with weights of a variance that fits its small width: GPT-2's own are too small to begin with."""
    model = GPT(vocab_size=SYMBOLS + SYMBOLS**2, width=32, depth=2, heads=2, max_length=24, hidden=64)
    for values in model.parameters():
        if values.ndim > 1:
            nn.init.normal_(values, std=32**-0.5)
    return model


def read_maps(model, generator, steps, lr=5e-3, pairs=10):
    """Texts with a map each, of a few symbols or of all, whose answers are to be foreseen."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * min((step + 1) / 50, 1.0, 2 - 2 * step / steps)
        among = torch.randint(1, SYMBOLS + 1, (64, 1), generator=generator)
        chosen = (torch.rand(64, pairs, generator=generator) * among).long()
        text = as_text(permutations(64, generator), permutations(64, generator).gather(1, chosen))
        logits = model(text[:, :-1])[:, ::2]  # (texts, pairs, tokens): what follows each symbol
        optimizer.zero_grad()
        functional.cross_entropy(logits.flatten(0, 1), text[:, 1::2].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def of_the_task(maps, generator):
    return maps


def of_another_task(maps, generator):
    return permutations(len(maps), generator)


def accuracy(model, shots, examples, generator, count=4000):
    """The share of right answers after so many different examples, for a symbol that may be among them or not."""
    maps, asked = permutations(count, generator), torch.randint(SYMBOLS, (count, 1), generator=generator)
    shown = as_text(examples(maps, generator), permutations(count, generator)[:, :shots])
    answers = generate(model, torch.cat([shown, asked], 1), 1, temperature=0)
    return (answers == answered(maps, asked)).double().mean()


@claim("gpt.in_context")
@lie("the number of examples does not matter", gain=0.0)
@lie("it matters that there are examples, not of what", examples=of_another_task)
def examples_in_a_prompt_teach_a_task(draw, gain=1.0, examples=of_the_task):
    """Accuracy after none to five examples of a permutation, against the best that can be."""
    model = draw.trained(learner_of_maps, read_maps, steps=2000)
    shots = torch.arange(SYMBOLS)
    found = torch.stack([accuracy(model, k, examples, draw.generator) for k in shots.tolist()])
    return close(found, (1 + gain * shots.double()) / SYMBOLS, within=0.08)
